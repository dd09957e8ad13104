/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * take - a record of the thread that runs: its kernel stack, its user stack by the tables, and
 * where a table is missing the stack itself; put together in scratch memory and copied to the ring
 * with exactly the bytes it needs.
 *
 * Scratch memory is large enough for the largest record.  A processor has one for each kind of
 * record: its clock may interrupt a program that takes a wait, but neither interrupts itself.
 *
 * The reader is not woken for each record but when the ring is a quarter full, and at once where
 * it has something to do before the process is gone; it looks by itself now and then.
 *
 * The verifier accepts an access only behind a comparison of its offset or size with a constant.
 * barrier_var() hides the value from the compiler, which would otherwise drop or move such a
 * comparison where it derives the range by itself.
 *
 * Threads: BPF only.
 */
#ifndef KILN_HOST_BPF_TAKE_H
#define KILN_HOST_BPF_TAKE_H

#include "host/bpf/record.h"
#include "host/bpf/settings.h"
#include "host/bpf/task.h"
#include "host/bpf/who.h"

#include "host/bpf/arch.h"

enum {
    PAGE = 4096,
    FRAMES_MAX = KILN_KERNEL_FRAMES_MAX + KILN_USER_FRAMES_MAX,
    REGISTERS = sizeof(struct kiln_registers) / 8,
    /* Pieces of a slice are read wherever they begin and cut afterwards. */
    WORDS = FRAMES_MAX + REGISTERS + (KILN_SLICE_MAX + PAGE) / 8,
    HOLES_MAX = 8,    /* pages in a row that are not there: then the stack has ended */
    ARGUMENTS = 1024, /* bytes of a slice above a program's first frame: pointers to arguments */
    NS_PER_S = 1000000000,
};

struct scratch; /* with the walk, which needs the functions below */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} kiln_words SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, struct kiln_dir_key);
    __type(value, struct kiln_dir_entry);
} kiln_directory SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, PAGE);
} kiln_ring SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct kiln_settings);
} kiln_settings SEC(".maps");

struct counts {
    __u64 n[KILN_COUNTS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct counts);
} kiln_counts SEC(".maps");

static __always_inline void count_by(__u32 which, __u64 n)
{
    __u32 zero = 0;
    struct counts *counts = bpf_map_lookup_elem(&kiln_counts, &zero);
    if (counts && which < KILN_COUNTS)
        counts->n[which] += n;
}

static __always_inline void count(__u32 which)
{
    count_by(which, 1);
}

/* ---- what the walk asks for ---- */

struct kiln_walk_env {
    struct scratch *scratch;
};

static __always_inline int kiln_walk_read(struct kiln_walk_env *env, __u64 address, void *to,
                                          __u32 size)
{
    return (int)bpf_probe_read_user(to, size, (const void *)address);
}

static __always_inline int kiln_walk_find(struct kiln_walk_env *env, const struct kiln_dir_key *key,
                                          struct kiln_dir_entry *ret_entry)
{
    struct kiln_dir_entry *entry = bpf_map_lookup_elem(&kiln_directory, key);
    if (!entry)
        return -1;
    *ret_entry = *entry;
    return ret_entry->check == kiln_dir_check(key) ? 0 : -1;
}

static __always_inline __u64 kiln_walk_word(struct kiln_walk_env *env, __u32 index)
{
    volatile __u64 *word = bpf_map_lookup_elem(&kiln_words, &index);
    return word ? *word : 0;
}

/* Only the half that nobody else writes. */
static __always_inline void kiln_walk_stamp(struct kiln_walk_env *env, __u32 index, __u32 tick)
{
    __u32 *word = bpf_map_lookup_elem(&kiln_words, &index);
    if (word)
        word[1] = tick;
}

static void kiln_walk_frame(struct kiln_walk_env *env, __u32 n, __u64 address);

#include "host/bpf/context.h"
#include "host/walk.h"

struct scratch {
    struct kiln_walk walk;
    struct kiln_registers registers;
    __u64 tokens_ns; /* of raw records: time that was saved up for them */
    __u64 tokens_at; /* when that was counted */
    __u64 ticks;     /* of the clock */
    struct kiln_record record;
    __u64 words[WORDS]; /* the record's frames, then the rest of it */
};

/* One a processor and kind; a per-CPU array has no room for values as large as these. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} kiln_scratch SEC(".maps");

/* Where the threads of a process keep their span, by its pid. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, KILN_CONTEXTS_MAX);
    __type(key, __u32);
    __type(value, struct kiln_context_place);
} kiln_contexts SEC(".maps");

static __always_inline void kiln_walk_frame(struct kiln_walk_env *env, __u32 n, __u64 address)
{
    __u32 at = env->scratch->record.n_kernel + n;
    barrier_var(at);
    if (at < FRAMES_MAX)
        env->scratch->words[at] = address;
}

/* Verifying it once halves the time of loading, for the price of looking the memory up anew. */
KILN_VERIFIED_ONCE int kiln_take_step(__u32 index)
{
    struct scratch *s = bpf_map_lookup_elem(&kiln_scratch, &index);
    struct kiln_walk_env env = {.scratch = s};
    return s ? kiln_walk_step(&env, &s->walk) : 1;
}

/* bpf_loop() takes 0 and 1 alone: the comparison proves it. */
static long step(__u32 n, void *index)
{
    return kiln_take_step(*(__u32 *)index) ? 1 : 0;
}

/* ---- raw records ---- */

/* Whether a raw record may be sent now: so many a second, saved up for a second at most. */
static __always_inline int may_be_raw(struct scratch *s, const struct kiln_settings *settings)
{
    __u64 now = s->record.time_ns;
    __u64 price = NS_PER_S / (settings->raw_per_s ? settings->raw_per_s : 1);
    __u64 saved = s->tokens_ns + (now - s->tokens_at);
    s->tokens_at = now;
    s->tokens_ns = saved > NS_PER_S ? NS_PER_S : saved;
    if (s->tokens_ns < price)
        return 0;
    s->tokens_ns -= price;
    return 1;
}

/*
 * How much of the stack is worth having: where a program's first stack begins, there are no frames
 * above, only its arguments and its environment, which are nobody's business.
 */
static __always_inline __u32 slice_limit(__u64 sp)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u64 above = BPF_CORE_READ(task, mm, start_stack) + ARGUMENTS - sp;
    return above < KILN_SLICE_MAX ? (__u32)above : KILN_SLICE_MAX;
}

/*
 * The stack from sp on, page by page, up to the last that is there; its length in bytes.  A large
 * local array may have pages that nobody touched yet: they read as zeroes, which is also what the
 * helper leaves where it fails, so that no other process' stack shows through.
 */
static __always_inline __u32 read_slice(struct scratch *s, __u32 at, __u64 sp)
{
    __u32 length = 0, next = 0, holes = 0, limit = slice_limit(sp);
    for (int i = 0; i < KILN_SLICE_MAX / PAGE + 1; i++) {
        __u32 piece = PAGE - ((__u32)(sp + next) & (PAGE - 1));
        barrier_var(next);
        barrier_var(piece);
        barrier_var(at);
        if (next >= limit || next >= KILN_SLICE_MAX || piece > PAGE || at > FRAMES_MAX + REGISTERS)
            break;
        long failed = bpf_probe_read_user((char *)&s->words[at] + next, piece, (void *)(sp + next));
        next += piece;
        if (!failed) {
            length = next;
            holes = 0;
        } else if (++holes > HOLES_MAX) {
            break;
        }
    }
    return (length > limit ? limit : length) & ~7U;
}

/* Puts the registers and the slice behind `at` frames; how many words the record has then. */
static __always_inline __u32 add_raw(struct scratch *s, __u32 at)
{
    struct kiln_walk_env env = {.scratch = s};
    struct kiln_walk *walk = &s->walk;
    struct kiln_registers *to;
    barrier_var(at);
    if (at > FRAMES_MAX)
        return at;
    to = (struct kiln_registers *)&s->words[at];
    kiln_walk_registers(&env, walk, to);
    at += REGISTERS;
    s->record.flags |= KILN_RECORD_RAW | (walk->leaf ? KILN_RECORD_LEAF : 0);
    s->record.slice = read_slice(s, at, walk->sp);
    count(KILN_COUNT_RAW);
    return at + s->record.slice / 8;
}

/* ---- the record ---- */

static __always_inline __u32 scratch_index(__u32 kind)
{
    return bpf_get_smp_processor_id() * KILN_KINDS + kind;
}

static __always_inline struct scratch *scratch_of(__u32 kind)
{
    __u32 index = scratch_index(kind);
    return bpf_map_lookup_elem(&kiln_scratch, &index);
}

/* Without the first `skip` frames, at most 255. */
static __always_inline void take_kernel_stack(struct scratch *s, void *context, __u64 skip)
{
    long bytes = bpf_get_stack(context, s->words, KILN_KERNEL_FRAMES_MAX * 8, skip);
    if (bytes > 0 && bytes <= KILN_KERNEL_FRAMES_MAX * 8)
        s->record.n_kernel = (__u16)(bytes / 8);
}

/*
 * Between giving up the old program's memory and entering the new one, a process has registers of
 * the one and memory of the other: no user stack at all.
 */
static __always_inline int is_amid_exec(const struct kiln_arch_regs *regs)
{
    __u64 word;
    return (regs->orig_ax == KILN_ARCH_EXECVE || regs->orig_ax == KILN_ARCH_EXECVEAT) &&
           bpf_probe_read_user(&word, sizeof(word), (const void *)regs->sp);
}

/*
 * The registers that the program had, `given` or those that it entered the kernel with; 0, or how
 * the walk ends without them.
 */
static __always_inline int take_registers(struct scratch *s, const struct kiln_arch_regs *given,
                                          struct task_struct *task)
{
    struct kiln_arch_regs regs;
    if (given)
        regs = *given;
    else if (bpf_probe_read_kernel(&regs, sizeof(regs), (void *)bpf_task_pt_regs(task)))
        return KILN_END_NO_USER;
    if (!regs.cs) /* a worker of the kernel's that belongs to a process */
        return KILN_END_NO_USER;
    if (!given && is_amid_exec(&regs))
        return KILN_END_NO_USER;
    if (regs.cs != KILN_ARCH_USER_CS)
        return KILN_END_COMPAT;
    kiln_arch_registers(&regs, &s->registers);
    return 0;
}

static __always_inline void take_user_stack(struct scratch *s)
{
    __u32 index = scratch_index(s->record.kind);
    s->walk.pid = s->record.pid;
    s->walk.era = s->record.era;
    s->walk.tick = (__u32)(s->record.time_ns >> KILN_TICK_SHIFT);
    kiln_walk_begin(&s->walk, &s->registers, 1);
    bpf_loop(KILN_USER_FRAMES_MAX + 1, step, &index, 0);
    s->record.end = s->walk.end;
    s->record.n_user = (__u16)s->walk.n;
    s->record.miss = s->walk.miss;
    s->record.maps = s->walk.generation;
}

/* The span that the thread works for, where its process tells. */
static __always_inline void take_context(struct scratch *s, struct task_struct *task)
{
    struct kiln_walk_env env = {.scratch = s};
    struct kiln_context_place *place = bpf_map_lookup_elem(&kiln_contexts, &s->record.pid);
    struct kiln_context_place copy;
    if (!place)
        return;
    copy = *place; /* the kernel uses the memory of entries again at once */
    if (copy.era == s->record.era && *(volatile __u64 *)&place->era == s->record.era)
        kiln_context_read(&env, &copy, task->thread.fsbase, &s->record);
}

/* All but whose it is. */
static __always_inline void fill_head(struct kiln_record *record, struct task_struct *task,
                                      __u32 kind, __u32 hz)
{
    record->end = KILN_END_NO_USER;
    record->flags = 0;
    record->n_kernel = record->n_user = 0;
    record->cpu = (__u16)bpf_get_smp_processor_id();
    record->slice = 0;
    record->time_ns = bpf_ktime_get_ns();
    record->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
    record->era = kiln_task_era(task, record->start_ns);
    record->cgroup = bpf_get_current_cgroup_id();
    record->miss = 0;
    record->maps = 0;
    record->weight = 1;
    record->hz = hz;
    record->kind = (__u8)kind;
    record->wait_state = 0;
    record->syscall = 0;
    record->wait_ns = record->runnable_ns = record->began_ns = 0;
    record->between_ns = 0;
    record->wait_file = record->chance = 0;
    __builtin_memset(record->trace_id, 0, sizeof(record->trace_id));
    __builtin_memset(record->span_id, 0, sizeof(record->span_id));
    __builtin_memset(&record->who, 0, sizeof(record->who));
    bpf_get_current_comm(record->comm, sizeof(record->comm));
}

static __always_inline void send(struct scratch *s, const struct kiln_settings *settings,
                                 __u32 words, int urgent)
{
    __u32 size = sizeof(s->record) + words * 8;
    __u64 flags = BPF_RB_NO_WAKEUP;
    barrier_var(size);
    if (size > sizeof(s->record) + sizeof(s->words))
        return;
    s->record.size = size;
    if (urgent || bpf_ringbuf_query(&kiln_ring, BPF_RB_AVAIL_DATA) >= settings->wake_bytes)
        flags = BPF_RB_FORCE_WAKEUP;
    if (bpf_ringbuf_output(&kiln_ring, &s->record, size, flags))
        count(KILN_COUNT_LOST);
    else
        count(KILN_COUNT_SAMPLES);
}

KILN_VERIFIED_ONCE int kiln_take_who(__u32 index)
{
    __u32 zero = 0;
    struct scratch *s = bpf_map_lookup_elem(&kiln_scratch, &index);
    struct kiln_settings *settings = bpf_map_lookup_elem(&kiln_settings, &zero);
    if (s && settings)
        kiln_who_tell(&s->record.who, (void *)bpf_get_current_task_btf(), settings);
    return 0;
}

/* The user's part and, where a table is missing, the stack itself; then the record is sent. */
static __always_inline void take_user(struct scratch *s, const struct kiln_arch_regs *given,
                                      struct task_struct *task,
                                      const struct kiln_settings *settings)
{
    struct kiln_record *record = &s->record;
    if (task->flags & KILN_TASK_KERNEL_THREAD) {
        record->flags |= KILN_RECORD_KERNEL_THREAD;
    } else if (task->mm) { /* none: it is on its way out */
        record->end = (__u8)take_registers(s, given, task);
        if (!record->end) {
            take_context(s, task);
            take_user_stack(s);
        }
    }
    __u32 words = record->n_kernel + record->n_user;
    int urgent = 0;
    if (!record->maps && task->mm)
        kiln_take_who(scratch_index(record->kind)); /* nobody may know it yet */
    if (kiln_end_is_miss(record->end)) {
        /* Until somebody loads what is missing, every sample from there is raw. */
        urgent = may_be_raw(s, settings);
        if (urgent)
            words = add_raw(s, words);
        else
            count(KILN_COUNT_RAW_HELD);
    } else if (record->end == KILN_END_NO_USER && task->mm) {
        urgent = may_be_raw(s, settings); /* amid exec */
    }
    send(s, settings, words, urgent);
}

/* Whose record it is; 0: nobody's that the agent's PID namespace has. */
static __always_inline int take_ids(struct scratch *s, struct task_struct *task,
                                    const struct kiln_settings *settings)
{
    s->record.tid = kiln_task_number(task, settings->pid_namespace);
    s->record.pid = kiln_task_number(task->group_leader, settings->pid_namespace);
    if (s->record.tid && s->record.pid)
        return 1;
    count(KILN_COUNT_FOREIGN);
    return 0;
}

#endif /* KILN_HOST_BPF_TAKE_H */
