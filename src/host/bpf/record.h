/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * record - the bytes that the programs in the kernel and the agent share: records of samples, and
 * the tables by which stacks are unwound.
 *
 * Compiled for BPF and for user space: only fixed types, no libc.
 *
 * Table memory is one array of 64-bit words that user space maps and writes and the kernel reads.
 * It is cut into slots; a slot begins with a header word, then come its words:
 *
 *   header    low half: generation (never 0 while the slot is whole); high half: when it was last
 *             used, in ticks of 2^27 ns, written by whoever walks through it
 *   of a page       one word a row, sorted by address; the first row is at address 0 of the page,
 *                   so that every address of the page has one
 *   of a process    four words a mapping, sorted by start: start, end, bias, file and flags
 *
 * The directory, a hash, says where: (file, page) -> rows; (0, pid) -> executable mappings.  A page
 * is 16 KiB of a file's own addresses (those of its program headers).  A reader finds the slot
 * in the directory, reads, and then looks whether the header still has the generation of the
 * directory's entry: if not, the slot was given to somebody else meanwhile, and what was read is a
 * miss.  A writer zeroes the generation, writes, sets the new generation, then the directory.
 *
 * Threads: plain data; one writer of the tables, readers in the kernel on every processor.
 */
#ifndef KILN_HOST_BPF_RECORD_H
#define KILN_HOST_BPF_RECORD_H

#include <linux/types.h>

enum {
    KILN_PAGE_BITS = 14,
    KILN_ROWS_MAX = 1 << KILN_PAGE_BITS, /* of one page */
    KILN_USER_FRAMES_MAX = 1024,
    KILN_KERNEL_FRAMES_MAX = 128,
    KILN_SLICE_MAX = 65536, /* bytes of stack in a raw record */
    KILN_TICK_SHIFT = 27,
    KILN_COMM_LEN = 16,
};

/* ---- rows ---- */

/*
 * How the canonical frame address is found.  On x86-64 the return address is at CFA-8, and the
 * caller's stack pointer is the CFA.
 */
enum kiln_cfa {
    KILN_CFA_NONE,      /* nothing is known of this code */
    KILN_CFA_END,       /* the outermost frame: nobody called it */
    KILN_CFA_SP,        /* sp + offset */
    KILN_CFA_FP,        /* fp + offset */
    KILN_CFA_SP_DEREF,  /* *(sp + offset) */
    KILN_CFA_SP_DEREF8, /* *(sp + offset) + 8 */
    KILN_CFA_FP_DEREF,  /* *(fp + offset) */
    KILN_CFA_FP_DEREF8, /* *(fp + offset) + 8 */
    KILN_CFA_PLT,       /* sp + 8, and 8 more from the 11th byte of each 16 on */
    KILN_CFA_SIGNAL,    /* a signal's trampoline: the registers are in the frame at sp */
    KILN_CFA_FRAME,     /* code known to keep frame pointers (Go): CFA = fp + 16, fp at fp */
    KILN_CFA_REG = 16,  /* + DWARF's number of a register: register + offset; in the leaf alone */
};

/* Where the caller's frame pointer is. */
enum kiln_fp {
    KILN_FP_SAME,
    KILN_FP_AT_CFA, /* *(CFA + offset) */
    KILN_FP_AT_FP,  /* *(fp + offset) */
    KILN_FP_RA_REG, /* the same; and the return address is in register `offset`; leaf alone */
};

/*
 * Where the caller's rbx is, which code that aligns its stack keeps the CFA in (the dynamic
 * linker, on its way to a function that is called for the first time): 0 the same, 1-14 saved at
 * CFA - 8 * (n + 1), LOST.
 */
enum { KILN_BX_LOST = 15, KILN_CFA_OFF_BITS = 22, KILN_FP_OFF_BITS = 16 };

/*
 * A row: bits 0-13 address in the page, 14-18 cfa, 19-21 fp, 22-25 rbx, 26-47 CFA's offset, 48-63
 * fp's.
 */
static inline __u64 kiln_row_pack(__u32 address, __u32 cfa, __u32 fp, __s32 cfa_off, __s32 fp_off)
{
    return (__u64)(address & 0x3fff) | (__u64)(cfa & 31) << 14 | (__u64)(fp & 7) << 19 |
           (__u64)((__u32)cfa_off & 0x3fffff) << 26 | (__u64)((__u32)fp_off & 0xffff) << 48;
}
static inline __u64 kiln_row_with_bx(__u64 row, __u32 bx)
{
    return row | (__u64)(bx & 15) << 22;
}
static inline __u32 kiln_row_address(__u64 row)
{
    return (__u32)(row & 0x3fff);
}
static inline __u32 kiln_row_cfa(__u64 row)
{
    return (__u32)(row >> 14) & 31;
}
static inline __u32 kiln_row_fp(__u64 row)
{
    return (__u32)(row >> 19) & 7;
}
static inline __u32 kiln_row_bx(__u64 row)
{
    return (__u32)(row >> 22) & 15;
}
static inline __s64 kiln_row_cfa_off(__u64 row)
{
    return (__s64)(row << 16) >> 42;
}
static inline __s64 kiln_row_fp_off(__u64 row)
{
    return (__s64)row >> 48;
}

/* ---- mappings of a process, executable ones alone ---- */

/* pc - bias = the file's own address.  `file` 0: no file; then code that a program made (JIT). */
struct kiln_table_map {
    __u64 start, end, bias;
    __u32 file;
    __u32 flags; /* KILN_MAP_* */
};
enum {
    KILN_MAP_WORDS = sizeof(struct kiln_table_map) / 8,
    KILN_MAP_JIT = 1, /* no file with tables: cross it by frame pointers */
};

/* ---- directory ---- */

struct kiln_dir_key {
    __u32 file; /* 0: `page` is the id of a process */
    __u32 page;
};

struct kiln_dir_entry {
    __u32 slot; /* word of its header */
    __u32 n;    /* rows or mappings */
    __u32 generation;
    __u32 check; /* kiln_dir_check() of its key; set by whoever writes a directory in the kernel */
    __u64 era;   /* of a process: kiln_record's era, else another program ran under this id */
};

/*
 * The kernel uses the memory of entries again at once: one that was found may be another's when it
 * is read.
 */
static inline __u32 kiln_dir_check(const struct kiln_dir_key *key)
{
    return key->file * 0x9e3779b1U + key->page + 1;
}

/* ---- records ---- */

/* How the walk of a user stack ended.  One sentence for each: host/reason.h. */
enum kiln_end {
    KILN_END_COMPLETE,    /* at a frame that nobody called */
    KILN_END_NO_USER,     /* there is none: a kernel thread */
    KILN_END_COMPAT,      /* a 32-bit program: not walked */
    KILN_END_JIT,         /* code without tables, and its frame pointers do not lead on */
    KILN_END_NO_TABLE,    /* code of a file that has no row for this address */
    KILN_END_UNMAPPED,    /* an address outside of every executable mapping */
    KILN_END_READ,        /* the stack could not be read */
    KILN_END_STUCK,       /* the stack pointer did not rise */
    KILN_END_DEPTH,       /* more frames than fit */
    KILN_END_RULE,        /* a rule that needs a register only the leaf has */
    KILN_END_NEW_PROCESS, /* miss: the mappings of this process are not in the tables */
    KILN_END_NEW_MAP,     /* miss: its mappings are, but none of them is here */
    KILN_END_NEW_PAGE,    /* miss: the page's rows are not in the tables */
    KILN_END_SLICE,       /* user space: the slice of stack was too short */
    KILN_ENDS,
};

/* A miss: the tables will be there next time. */
static inline int kiln_end_is_miss(__u8 end)
{
    return end == KILN_END_NEW_PROCESS || end == KILN_END_NEW_MAP || end == KILN_END_NEW_PAGE;
}

enum kiln_record_kind {
    KILN_KIND_CPU,  /* taken by a processor's clock: what it burns */
    KILN_KIND_WAIT, /* taken when a thread runs again: how long it did not */
    KILN_KINDS,
};

/* How a thread that waits left its processor. */
enum kiln_wait_state {
    KILN_WAIT_SLEEP,     /* a signal could wake it */
    KILN_WAIT_DISK,      /* nothing but what it waits for can */
    KILN_WAIT_PREEMPTED, /* it would have run on */
};

enum {
    KILN_RECORD_USER_MODE = 1,     /* the processor was in user mode */
    KILN_RECORD_KERNEL_THREAD = 2, /* no user part at all */
    KILN_RECORD_RAW = 4,           /* registers and a slice follow: walk on in user space */
    KILN_RECORD_LEAF = 8,          /* RAW: pc is no return address, and all registers are known: no
                                      step was done yet, or a signal interrupted here */
    KILN_RECORD_BEGINS = 16,       /* WAIT: how long it was is in another record */
    KILN_RECORD_ENDS = 32, /* WAIT: that record, of the thread's wait that began at began_ns */
};

/* DWARF's numbers: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15 r8-r15. */
struct kiln_registers {
    __u64 r[16];
    __u64 pc;
};

/*
 * Who a process is, as far as the kernel knows it without /proc (host/bpf/who.h).  It is told where
 * the agent may not know the process yet: while ns_pid is 0, it was not.
 */
struct kiln_who {
    __u64 cgroups;         /* of all hierarchies together; 0: not told */
    __u64 root;            /* which mount namespace, and which folder in it, paths begin at; 0 */
    __u32 parent_pid;      /* as the agent's own PID namespace has it; 0: it is outside */
    __u32 ns_pid;          /* in the process' own PID namespace */
    __u32 uid;             /* effective, as the first user namespace has it */
    __u32 user_namespace;  /* inode */
    __u32 mount_namespace; /* inode; 0: it has none any more */
    __u32 pad;
};

/*
 * A sample.  Behind the head: frames[n_kernel], then frames[n_user], both leaf first, then where
 * RAW, a kiln_registers and `slice` bytes of stack from its r[7] on.  User frames are adjusted: a
 * caller is its return address - 1, so that each address lies in the code it stands for; kernel
 * frames are as the kernel gives them (return addresses but the first).
 *
 * A miss without RAW (the rate of raw records is limited) ends with the frames it has; `miss` is
 * the address whose table is wanted.
 */
struct kiln_record {
    __u32 size; /* all of it, a multiple of 8 */
    __u8 end;   /* enum kiln_end */
    __u8 flags; /* KILN_RECORD_* */
    __u16 n_kernel;
    __u16 n_user;
    __u16 cpu;
    __u32 slice;
    __u32 pid, tid; /* as the agent's own PID namespace has them */
    __u64 time_ns;  /* CLOCK_MONOTONIC */
    __u64 start_ns; /* CLOCK_BOOTTIME at which the process (its first thread) began */
    __u64 era;      /* changes with every exec */
    __u64 cgroup;   /* id in the unified hierarchy */
    __u64 miss;
    __u32 maps;               /* generation of the process' mappings that was walked by; 0: none */
    __u32 weight;             /* CPU: how many samples it stands for: 1 */
    char comm[KILN_COMM_LEN]; /* of the thread */
    __u32 hz;                 /* CPU: the rate at which its process is sampled */
    __u8 kind;                /* enum kiln_record_kind */
    __u8 wait_state;          /* WAIT: enum kiln_wait_state */
    __u16 syscall;            /* WAIT: the number of the system call it is in, and 1; 0: none */
    __u64 wait_ns;            /* WAIT: the time it stands for, blocked and runnable together */
    __u64 runnable_ns;        /* WAIT: of that, when it could have run */
    __u64 began_ns;           /* WAIT: when it left the processor, CLOCK_MONOTONIC */
    __u64 between_ns;         /* WAIT: between the two looks at it; 0: one look was enough */
    __u32 wait_file;          /* WAIT: kind of the file that the system call is about, as in the
                                 bits of a mode from 12 on; 0: none */
    __u32 chance;             /* WAIT, in two records: with which it was taken, of 2^32 */
    __u8 trace_id[16];        /* of the span that the thread was in; zeroes: none */
    __u8 span_id[8];
    struct kiln_who who;
    __u64 frames[];
};

/* ---- where threads keep their span: host/bpf/context.h ---- */

enum { KILN_CONTEXT_GLIBC = 16, KILN_CONTEXT_MUSL = 8 };

/* Of a process. */
struct kiln_context_place {
    __u64 era;         /* kiln_record's, else another program ran under this id */
    __s64 offset;      /* of the variable: from the thread pointer, or in its module's block */
    __u64 generation;  /* how new a thread's vector must be to have the block; 0: not known */
    __u32 module;      /* 0: from the thread pointer */
    __u32 entry_bytes; /* of the vector: KILN_CONTEXT_* */
};

/* ---- counters, one set a processor ---- */

enum kiln_count {
    KILN_COUNT_SAMPLES,      /* that a record was sent for */
    KILN_COUNT_LOST,         /* no room in the ring */
    KILN_COUNT_FILTERED,     /* not wanted */
    KILN_COUNT_RAW,          /* of the samples: raw ones */
    KILN_COUNT_RAW_HELD,     /* misses without a slice, by the rate limit */
    KILN_COUNT_FOREIGN,      /* of processes that the agent's PID namespace does not have */
    KILN_COUNT_PAUSED,       /* of processes that an order left alone */
    KILN_COUNT_NS,           /* time that taking samples of the clocks took */
    KILN_COUNT_SWITCHES,     /* of threads, that the hook for waits saw */
    KILN_COUNT_WAITS,        /* of the samples: waits */
    KILN_COUNT_WAITS_MISSED, /* waits of which one end was seen alone */
    KILN_COUNTS,
};

/* ---- filter: what is wanted ---- */

enum kiln_filter_kind { KILN_FILTER_PID, KILN_FILTER_CGROUP, KILN_FILTER_COMM };

/*
 * A key of the filter's hash, whose values say nothing.  All its bytes count, so that it is zeroed
 * before it is filled: naming a member leaves the rest of a union as it was.
 */
struct kiln_filter_key {
    __u32 kind;
    __u32 pad;
    union {
        char comm[KILN_COMM_LEN]; /* the first, so that {.kind = x} makes all of it zero */
        __u64 id;                 /* pid (with its descendants), cgroup (with those below) */
    };
};

#endif /* KILN_HOST_BPF_RECORD_H */
