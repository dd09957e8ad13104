/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_int - what the files of process share.
 *
 *   process.c         the table, and what a sample asks of it
 *   process_events.c  how events change it
 *   process_read.c    what is read in /proc
 *   process_maps.c    sets of mappings
 *   process_paths.c   paths, each once
 *   process_files.c   the files that are mapped, opened
 *   process_dump.c    the file among them that tells of code made at run time
 *   process_context.c what a process publishes of itself; process_published.c: when it is read
 *   identity*.c       who a process is (identity_int.h); place.c, containers.c: where it runs
 *
 * Threads: as in process.h.
 */
#ifndef KILN_HOST_PROCESS_INT_H
#define KILN_HOST_PROCESS_INT_H

#include "base/mem.h"
#include "base/metric.h"
#include "host/link.h"
#include "host/object_int.h"
#include "host/process.h"
#include "host/procfs.h"

/* ---- paths, each once ---- */

struct kiln_path;
struct kiln_paths {
    struct kiln_path **buckets;
    uint32_t n, n_buckets;
    size_t bytes, bytes_max; /* of their texts; 0: as many as it takes */
};
/*
 * The one copy of a path, held; "" instead of one for which there is no room: what it is the path
 * of can still be known by its build id.  NULL: no memory, or it is too long.
 */
const char *kiln_paths_get(struct kiln_paths *paths, struct kiln_str path);
const char *kiln_path_ref(const char *path);
void kiln_paths_unref(struct kiln_paths *paths, const char *path); /* may be NULL */
void kiln_paths_forget(struct kiln_paths *paths);

/* ---- sets of mappings ---- */

enum { KILN_MAPS_MAX = 65536, KILN_ENVIRON_MAX = 256 << 10 };

/* What sets are made from and paid by. */
struct kiln_map_shelf {
    struct kiln_budget budget;
    struct kiln_paths paths;
    uint64_t versions; /* given out so far */
    uint32_t ids;
};

/*
 * Mappings of a process; a child shares its parent's until one of them changes.  Those told of by
 * events are put behind the sorted ones and settled when somebody asks, so that a burst costs
 * little wherever its addresses lie.
 */
struct kiln_map_set {
    uint32_t refs;
    uint32_t n;         /* sorted, not overlapping */
    uint32_t n_pending; /* behind them, in the order in which they came */
    uint32_t cap;
    uint64_t version;
    uint64_t context; /* where the process context is; 0: not there when the mappings were read */
    struct kiln_map *maps;
};

struct kiln_map_set *kiln_map_set_new(struct kiln_map_shelf *shelf);
void kiln_map_set_unref(struct kiln_map_shelf *shelf, struct kiln_map_set *set); /* may be NULL */
/* Makes *set the caller's alone, copying it if it is not. */
KILN_CHECK int kiln_map_set_own(struct kiln_map_shelf *shelf, struct kiln_map_set **set);
/*
 * Adds a mapping over whatever is there, to a set of the caller's own (made here where there is
 * none, or it is shared).  Takes its path, also on failure.  KILN_E_LIMIT: too many mappings, or no
 * budget for more.
 */
KILN_CHECK int kiln_map_set_add(struct kiln_map_shelf *shelf, struct kiln_map_set **set,
                                struct kiln_map *map);
/* Sorts in what was added. */
KILN_CHECK int kiln_map_set_settle(struct kiln_map_shelf *shelf, struct kiln_map_set *set);
/* Whether the mapping would lie over another one that has other code. */
bool kiln_map_set_clashes(const struct kiln_map_set *set, const struct kiln_map *map);
struct kiln_map *kiln_map_set_find(const struct kiln_map_set *set, uint64_t address);
/*
 * Takes over from `old` what is known of mappings that both have.  True: they are the same, but for
 * that.  Both are settled.
 */
bool kiln_map_set_inherit(struct kiln_map_set *fresh, const struct kiln_map_set *old);
/* What kind a mapping of this name is. */
enum kiln_map_kind kiln_map_kind_of(struct kiln_str name);
/* Reads /proc/PID/maps, of which `dir` is the folder.  -ENOENT, -ESRCH: it is gone. */
KILN_CHECK int kiln_map_set_read(struct kiln_map_shelf *shelf, int dir,
                                 struct kiln_map_set **ret_set);

/* ---- processes ---- */

struct kiln_aside;
struct kiln_containers;
struct kiln_mounts;
struct kiln_places;
KILN_CHECK int kiln_places_new(struct kiln_places **ret_places);
void kiln_places_free(struct kiln_places *places); /* may be NULL */

struct kiln_proc {
    struct kiln_process pub;
    struct kiln_proc *next; /* of the same bucket; the newest of a pid first */
    struct kiln_link use;   /* of `alive` or `gone` */
    struct kiln_map_set *set;
    const char *exe; /* a path; NULL: not known */
    char comm[KILN_COMM_LEN];
    uint32_t parent_pid;
    uint32_t threads;      /* that are thought to live */
    uint32_t tid;          /* of the last sample */
    uint64_t image;        /* changes with exec, the same after a fork */
    uint64_t cgroup;       /* of the last sample */
    struct kiln_who who;   /* of the last sample that told, since it runs this program */
    uint64_t who_cgroup;   /* the control group of that sample */
    uint64_t sample_ns;    /* when the last sample was */
    uint64_t counted;      /* times events had been lost, plus 1, when threads were counted from */
    uint64_t lost;         /* how often events had been lost when its mappings were read */
    uint64_t read_ns;      /* when /proc was last read for its mappings */
    uint64_t patience_ns;  /* before it is read again because of an unknown address */
    bool exec_told;        /* an event told of an exec; samples of another era are to come */
    bool unread;           /* the mappings are not known, or not all of them */
    bool wants_exe;        /* the next file that is mapped is the executable */
    bool leader_gone;      /* the first thread ended */
    bool no_files;         /* nothing of it can be opened any more */
    bool swept;            /* it was gone when all of them were looked at the last time */
    uint64_t dump_version; /* of the mappings in which its jitdump was looked for */
    uint64_t dump_start;   /* where that is mapped; 0: nowhere */
    uint64_t context_at;   /* where its context is; 0: not found yet */
    uint64_t context_due_ns, context_wait_ns; /* when it is looked for again; 0: not yet at all */
};

struct kiln_processes {
    struct kiln_map_shelf shelf;
    struct kiln_objects *objects;
    struct kiln_mounts *mounts; /* which files may not answer */
    struct kiln_aside *aside;   /* and who asks them */
    struct kiln_proc **buckets;
    uint32_t n, n_buckets, max;
    struct kiln_link alive, gone; /* those used last are first */
    struct kiln_proc *kernel;     /* all kernel threads */
    struct kiln_identity *kernel_identity;
    int proc;                       /* the folder */
    uint32_t own_users, own_mounts; /* our namespaces; 0: not told */
    char *environ_text;             /* where an environment is read; wiped each time */
    struct kiln_proc *opened; /* whose folder is kept open while a sample of it is looked at */
    int folder;
    uint64_t images;
    uint64_t lost;     /* times that events were lost */
    uint32_t unproven; /* processes to look after: their exit may be among what was lost */
    char **env_names;
    uint32_t n_env_names;                    /* those that rules name are behind the others, */
    uint32_t n_env_shown;                    /* which alone may be shown */
    const struct kiln_identity_rules *rules; /* may be NULL */
    struct kiln_containers *containers;
    struct kiln_places *places;
    uint64_t identity_bytes, identity_bytes_max; /* of those that processes have */
    void (*on_void)(void *context, struct kiln_process *process);
    void *void_context;
    struct kiln_metric *metric_known, *metric_reads, *metric_forgotten, *metric_unopened;
};

static inline struct kiln_proc *kiln_proc_of(struct kiln_process *process)
{
    return (struct kiln_proc *)process;
}

/* The process that has this pid now; NULL: not known. */
struct kiln_proc *kiln_proc_find(struct kiln_processes *all, uint32_t pid);
/* Makes one; whoever had the pid before is gone. */
struct kiln_proc *kiln_proc_new(struct kiln_processes *all, uint32_t pid);
void kiln_proc_gone(struct kiln_processes *all, struct kiln_proc *p);
void kiln_proc_back(struct kiln_processes *all, struct kiln_proc *p);
/* Another program runs in it: nothing that was known holds. */
void kiln_proc_renew(struct kiln_processes *all, struct kiln_proc *p);
void kiln_proc_void(struct kiln_processes *all, struct kiln_proc *p);
/* Forgets its mappings: they are read when somebody asks. */
void kiln_proc_forget_maps(struct kiln_processes *all, struct kiln_proc *p);
/* Shows in `pub` what the set has. */
void kiln_proc_sync(struct kiln_proc *p);
/* Drops mappings of processes longest not used, to make room for those of `but`. */
void kiln_proc_make_room(struct kiln_processes *all, const struct kiln_proc *but);

/*
 * Its folder in /proc, if it is still this process that is there.  It is kept, and closed by
 * kiln_proc_shut(), with the next sample at the latest.  -ESRCH.
 */
KILN_CHECK int kiln_proc_open(struct kiln_processes *all, struct kiln_proc *p, int *ret_dir);
void kiln_proc_shut(struct kiln_processes *all);
KILN_CHECK int kiln_proc_stat(struct kiln_processes *all, uint32_t pid,
                              struct kiln_procfs_stat *ret_stat);
/* Reads its mappings, or takes those of the process that it was forked from. */
void kiln_proc_read_maps(struct kiln_processes *all, struct kiln_proc *p);
/* Which program it runs, from the process that it was forked from, where nobody told. */
void kiln_proc_learn_exe(struct kiln_processes *all, struct kiln_proc *p);
/* The nearest ancestor that runs the same program and lives; NULL. */
struct kiln_proc *kiln_proc_twin(struct kiln_processes *all, const struct kiln_proc *p);
/* Gets the object of a mapping; sets map->object, bias, kind, tried. */
void kiln_proc_open_map(struct kiln_processes *all, struct kiln_proc *p, struct kiln_map *map);

/* ---- what it publishes of itself ---- */

/* Looks whether it is time to look.  True: pub.context is another one. */
bool kiln_proc_look_for_context(struct kiln_processes *all, struct kiln_proc *p);
void kiln_proc_forget_context(struct kiln_proc *p);
/* It ended. */
void kiln_proc_note_end(const struct kiln_proc *p);

/* ---- identities ---- */

KILN_CHECK int kiln_identity_kernel(struct kiln_identity **ret_identity);
/* Forgets who a process is; it is read again with the next sample. */
void kiln_proc_forget_identity(struct kiln_processes *all, struct kiln_proc *p);
KILN_CHECK int kiln_identity_read(struct kiln_processes *all, struct kiln_proc *p,
                                  struct kiln_identity **ret_identity);
/* The number of a namespace, by the link "ns/NAME" of a folder of /proc; 0: not to be had. */
uint32_t kiln_space_of(int dir, const char *name);
/* The name of a user in /etc/passwd, else his number.  `to` has room for 33 bytes. */
void kiln_owner_name(uint32_t uid, char *to, size_t size);

#endif /* KILN_HOST_PROCESS_INT_H */
