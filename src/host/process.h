/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - what is known of the host's processes: who they are, and what code is mapped where.
 *
 * A process is a pid and the time it began, so that a pid used again is another process.  The table
 * is kept by events (host/sideband.h), applied in order of time between the samples; /proc is read
 * once at start, and for a process that somebody asks for and no event told of.  A fork inherits
 * the mappings; an exec drops them and begins another `era`, as does each change of mappings a new
 * `version`.
 *
 * Files are opened, and what /proc says of a process is read, when it is first sampled and not
 * before: most processes of a host never are.  Of those longest not sampled it is forgotten, and
 * read again, where all of it would take too much memory.  A process that is gone stays for a few
 * seconds: its last samples may come behind the event of its end.
 *
 * Privacy: arguments are never read but the first (the command); of the environment only names
 * that are allowed.
 *
 * Threads: one owner, the reader's thread; `struct kiln_identity` is constant and counted.
 */
#ifndef KILN_HOST_PROCESS_H
#define KILN_HOST_PROCESS_H

#include "base/err.h"
#include "base/str.h"
#include "host/bpf/record.h"
#include "host/object.h"
#include "host/process_context.h"
#include "host/sideband.h"

struct kiln_metrics;

struct kiln_identity_rules;

struct kiln_identity_attr {
    const char *key, *value;
};

/* Who a process is, for its resource.  Constant; another exec makes another. */
struct kiln_identity {
    _Atomic uint32_t refs;
    uint32_t size; /* bytes of all of it */
    uint32_t pid, parent_pid;
    uint32_t ns_pid;        /* in its own PID namespace: names of perf-map files */
    uint32_t uid;           /* UINT32_MAX: not known */
    bool is_kernel;         /* all kernel threads share one */
    uint64_t start_unix_ns; /* 0: not known */
    uint64_t start_ns;      /* CLOCK_BOOTTIME; 0: not known */
    uint64_t cgroup;
    const char *name;        /* of the executable: "sqlite3"; never empty */
    const char *path;        /* "/usr/bin/sqlite3", "" where not known */
    const char *command;     /* the first argument, or the name of the first thread */
    const char *owner;       /* name or number of the user; "" */
    const char *cgroup_path; /* as /proc/PID/cgroup has it; "" */
    const char *service;     /* what is published as service.name; NULL: `name` is */
    const char *container_id, *container_name; /* NULL: none */
    const struct kiln_identity_attr *attrs; /* of its resource, but for numbers; each name once */
    uint32_t n_attrs;
    const struct kiln_object *executable; /* NULL: not known; held */
};
struct kiln_identity *kiln_identity_ref(struct kiln_identity *identity);
void kiln_identity_unref(struct kiln_identity *identity);

/* What is published as its service.name; never empty.  Borrowed from the identity. */
static inline struct kiln_str kiln_identity_service(const struct kiln_identity *identity)
{
    return kiln_str_of(identity->service ? identity->service : identity->name);
}

/* Its container, where it is in one; else "".  Borrowed. */
static inline struct kiln_str kiln_identity_container_id(const struct kiln_identity *identity)
{
    return kiln_str_of(identity->container_id ? identity->container_id : "");
}

static inline struct kiln_str kiln_identity_container_name(const struct kiln_identity *identity)
{
    return kiln_str_of(identity->container_name ? identity->container_name : "");
}

enum kiln_map_kind {
    KILN_MAP_FILE,      /* `object` is set once it was asked for and could be had */
    KILN_MAP_ANONYMOUS, /* "//anon", "/memfd:..." without ELF, "[heap]": made by the program */
    KILN_MAP_VDSO,
    KILN_MAP_VSYSCALL,
};

/* A mapping of code. */
struct kiln_map {
    uint64_t start, end, offset;
    uint64_t bias; /* of a file: address - bias = the file's own address; valid with `object` */
    uint32_t kind; /* enum kiln_map_kind */
    struct kiln_object *object; /* NULL: not asked for yet, or it cannot be had */
    const char *path;           /* without " (deleted)"; "" of anonymous memory */
    uint64_t device, inode;     /* as the kernel told; inode 0: it did not, or there is no file */
    uint8_t build_id[KILN_BUILD_ID_MAX]; /* as the kernel told */
    uint8_t build_id_len;
    bool tried;  /* to get the object */
    uint32_t id; /* of this mapping, never used again: what merges neighbours in [jit] frames */
};

struct kiln_process {
    uint32_t pid;
    uint64_t start_ns; /* CLOCK_BOOTTIME; 0 until a sample or /proc told */
    uint64_t era;      /* of the last sample */
    uint64_t version;  /* of the mappings; grows with every change */
    bool gone;
    struct kiln_map *maps; /* sorted by start, not overlapping */
    uint32_t n_maps;
    struct kiln_identity *identity; /* NULL until kiln_process_identity() */
    /* What it publishes of itself, as kiln_process_identity() last read it; NULL: nothing. */
    struct kiln_process_context *context;
    /* of host/tables.c: */
    uint64_t installed_version; /* of the mappings that are in the tables; 0: none */
    /* of host/contexts.c: */
    struct kiln_context_watch {
        uint64_t published_ns; /* of the context by which it was looked for; 0: never */
        uint64_t version;      /* of the mappings in which */
        uint64_t looked_ns;    /* when */
        uint64_t wait_ns;      /* before it is looked for the next time */
        uint64_t era;          /* for which the kernel was told */
        bool is_placed;        /* the kernel knows */
    } spans;
};

struct kiln_processes_opts {
    const char *const *env_names; /* allowed; NULL: the usual ones (host/identity_env.c) */
    uint32_t n_env_names;
    const struct kiln_identity_rules *rules; /* borrowed; may be NULL */
    uint32_t processes_max; /* known at once; 0: 65,536; beyond, those longest not sampled go */
    uint32_t objects_max;   /* with open files; 0: 2,048, or half of what may be open */
    uint64_t memory_bytes;  /* of mappings, paths, headers and tables of files; 0: 32 MiB */
    const char *proc;       /* NULL: "/proc"; tests have their own */
    struct kiln_metrics *metrics;
};

struct kiln_processes;
KILN_CHECK int kiln_processes_new(const struct kiln_processes_opts *opts,
                                  struct kiln_processes **ret_processes);
void kiln_processes_free(struct kiln_processes *processes);

/* Reads which processes there are, without their mappings.  After the side-band was opened. */
KILN_CHECK int kiln_processes_scan(struct kiln_processes *processes);

void kiln_processes_apply(struct kiln_processes *processes, const struct kiln_event *event);

/*
 * The process that a sample is of, made if it was not known; its mappings are there, from events or
 * read now.  One that is gone without a trace has none, and is called by the name of its thread.
 * All kernel threads are one process, with pid 0.  NULL: the sample is of a program that the
 * process ran before, and what was known of that is gone; or there is no memory.
 *
 * The process is good until the next call that may forget processes: of, apply, sweep.
 */
struct kiln_process *kiln_processes_of(struct kiln_processes *processes,
                                       const struct kiln_record *record);
/* Forgets processes that were gone at the sweep before: called every few seconds. */
void kiln_processes_sweep(struct kiln_processes *processes);
/*
 * Calls back for each process that is forgotten, runs another program, or maps something else where
 * something was mapped: its tables are void.
 */
void kiln_processes_on_void(struct kiln_processes *processes,
                            void (*on_void)(void *context, struct kiln_process *process),
                            void *context);
/* Calls back before an object's last use is over: its tables are void. */
void kiln_processes_on_object(struct kiln_processes *processes,
                              void (*on_gone)(void *context, struct kiln_object *object),
                              void *context);

/* Memory of mappings, paths and files. */
uint64_t kiln_processes_bytes(const struct kiln_processes *processes);

/*
 * The mapping that holds the address; NULL: none.  Opens its file when first asked for it.  Where
 * none holds it, /proc is asked again now and then: not every change of mappings is told.
 */
struct kiln_map *kiln_process_map(struct kiln_processes *processes, struct kiln_process *process,
                                  uint64_t address);
/* The same without opening anything. */
struct kiln_map *kiln_process_map_known(struct kiln_process *process, uint64_t address);

/*
 * Who it is; reads /proc when first asked, and again where the process publishes something else of
 * itself: that is looked for with the first samples, then less and less often; once it is found,
 * every five seconds.  Never NULL but without memory.
 */
struct kiln_identity *kiln_process_identity(struct kiln_processes *processes,
                                            struct kiln_process *process);
/* Whether one that publishes nothing is to be asked again before a second has passed. */
bool kiln_process_may_publish_soon(const struct kiln_process *process);

/* The root of a process, or what it was likely to be where that is gone; and that of the host. */
KILN_CHECK int kiln_process_open_root(const struct kiln_identity *identity, int *ret_root);
KILN_CHECK int kiln_process_open_host_root(int *ret_root);
/* /tmp/perf-PID.map of a process, opened safely beneath its root (names.h says what safely is). */
KILN_CHECK int kiln_process_open_perf_map(const struct kiln_identity *identity, int *ret_fd);

/*
 * The file in which a process tells of code that it makes (jit-PID.dump), borrowed; NULL: none.  A
 * process maps it as if it had code, so that it is known by its mapping, wherever it is.
 */
struct kiln_object *kiln_process_jitdump(struct kiln_processes *processes,
                                         struct kiln_process *process);

#endif /* KILN_HOST_PROCESS_H */
