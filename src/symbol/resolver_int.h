/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_int - the parts of a resolver:
 *
 *   resolver.c          what is asked: from what is kept, else from the child; who is set aside
 *   resolver_process.c  the child as a process: started, asked, watched, ended
 *   resolver_cache.c    answers that are kept
 *   resolver_disk.c     the same on disk (symbol/shelf.h)
 *   resolver_aside.c    files that a child had trouble with
 *   resolver_child.c    what runs in the child
 *   resolver_text.c     the same for embedded sources
 *   names_wire.h        what the two say to each other
 *   confine.h           what the child gives up
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_RESOLVER_INT_H
#define KILN_SYMBOL_RESOLVER_INT_H

#include <sys/types.h>

#include "base/arena.h"
#include "symbol/names_wire.h"
#include "symbol/shelf.h"

/* ---- answers that are kept ---- */

struct kiln_kept_key {
    uint64_t id, version, address;
};

struct kiln_kept_half;

/*
 * Two halves: what is asked for goes to the new one, and when that is full the old one goes away.
 * So what was not asked for during one half's life is forgotten.
 */
struct kiln_name_cache {
    size_t half_bytes;
    struct kiln_kept_half *now, *before;
    struct kiln_kept_half *gone; /* until kiln_name_cache_turn() */
};

void kiln_name_cache_init(struct kiln_name_cache *cache, size_t bytes);
void kiln_name_cache_done(struct kiln_name_cache *cache);
/* From now on texts that were given out need not live any more. */
void kiln_name_cache_turn(struct kiln_name_cache *cache);
size_t kiln_name_cache_bytes(const struct kiln_name_cache *cache);
/* 1: it is kept (also that there is no name); 0: it is not; -ENOMEM. */
KILN_CHECK int kiln_name_cache_get(struct kiln_name_cache *cache, const struct kiln_kept_key *key,
                                   struct kiln_name *ret_name);
/* `ret_kept` has the texts that are kept. */
KILN_CHECK int kiln_name_cache_put(struct kiln_name_cache *cache, const struct kiln_kept_key *key,
                                   const struct kiln_name *name, struct kiln_name *ret_kept);

/* ---- answers on disk ---- */

struct kiln_disk {
    struct kiln_shelf *shelf; /* NULL: there is none */
    /* Of the ask at hand: */
    bool has;   /* such a source can be there */
    bool begun; /* the key is known */
    struct kiln_shelf_key key;
    char id[2 * KILN_BUILD_ID_MAX + 16];
    struct kiln_metric *found;
};

/* Without a place for it there is none, which is logged. */
void kiln_disk_open(const struct kiln_resolver_opts *opts, struct kiln_disk *ret_disk);
void kiln_disk_close(struct kiln_disk *disk);
/* An ask begins; writes what is due. */
void kiln_disk_begin(struct kiln_disk *disk, const struct kiln_source *source);
/* True: it is known.  All of it lives until the next call. */
bool kiln_disk_get(struct kiln_disk *disk, const struct kiln_source *source, uint64_t address,
                   struct kiln_name *ret_name);
void kiln_disk_put(struct kiln_disk *disk, const struct kiln_source *source, uint64_t address,
                   const struct kiln_name *name);

/* ---- files that a child had trouble with ---- */

enum { KILN_ASIDE_STRIKES = 2, KILN_ASIDE_MAX = 1024 };

/* By a hash of what they are; those longest known are forgotten first, and all after an hour. */
struct kiln_aside {
    struct kiln_suspect {
        uint64_t key; /* 0: nobody */
        uint64_t until_ns;
        uint32_t strikes;
    } suspects[KILN_ASIDE_MAX];
    uint32_t next;
};

/* After so many strikes it is set aside. */
bool kiln_aside_has(const struct kiln_aside *aside, uint64_t key);
/* True: that was one too many. */
bool kiln_aside_strike(struct kiln_aside *aside, uint64_t key, uint32_t strikes);

/* ---- the child ---- */

struct kiln_child {
    const char *program;
    const char *scratch_directory; /* NULL: /var/tmp */
    struct kiln_names_greeting greeting;
    uint32_t cpu_ms, wall_ms; /* for one ask */
    pid_t pid;                /* 0: there is none */
    int fd;
    uint32_t working;  /* the ask whose file's debug information it reads; 0: none */
    bool rested;       /* the last one ended because nobody asked */
    uint64_t spent_ns; /* CPU time of those before it */
    pid_t ended[16];   /* not reaped yet: a process may hang in the kernel after it was killed */
    uint32_t n_ended;
};

/* An ask, and who gets what comes of it. */
struct kiln_child_ask {
    struct kiln_names_ask head;
    const uint64_t *addresses;
    int fd; /* of the file; -1: it has it */
    /* Name `i`; it and its texts are only lent. */
    int (*take)(void *context, uint32_t i, const struct kiln_name *name);
    /* The next piece of an embedded text; only lent. */
    int (*take_text)(void *context, struct kiln_str text);
    /* A file that is wanted; see struct kiln_source. */
    int (*open)(void *context, const struct kiln_wanted *wanted, int *ret_fd);
    void *context;
    /* What is said of the file as a whole. */
    int status;
    bool gave_up;
    uint32_t cpu_ms; /* that it took */
};

KILN_CHECK int kiln_child_start(struct kiln_child *child);
void kiln_child_end(struct kiln_child *child);
/* CPU time of all children so far, and the memory of the one that there is. */
uint64_t kiln_child_cpu_ns(const struct kiln_child *child);
uint64_t kiln_child_bytes(const struct kiln_child *child);
/* False: there is none, or it ended while nobody asked: child->working tells on whose account. */
bool kiln_child_is_well(struct kiln_child *child);
/*
 * Asks, and waits for all of the answer.  -EPIPE: it died; -ESHUTDOWN: it had ended by itself;
 * -ETIME: it took too long; -EBADMSG: it said what it must not: then it is ended.  Any other is
 * that of take().
 */
KILN_CHECK int kiln_child_ask(struct kiln_child *child, struct kiln_child_ask *ask);

/* ---- in the child ---- */

enum { KILN_TEXT_MAX = 4 << 20 }; /* of one embedded source */

/*
 * Answers an ask for the text of a source file that is embedded in the ELF file `fd`, by `send`.
 * Negative: the end.
 */
KILN_CHECK int kiln_child_answer_text(const struct kiln_names_ask *ask, struct kiln_str name,
                                      int fd, int (*send)(const void *data, size_t n, int flags));

#endif /* KILN_SYMBOL_RESOLVER_INT_H */
