/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_source - where the batches of `kiln live` come from: the profiler of this host, in this very
 * process, or a server that is asked now and then.
 *
 * Threads: a source has threads of its own, which put batches into the inbox; all else is for the
 * main thread.
 */
#ifndef KILN_CLI_LIVE_SOURCE_H
#define KILN_CLI_LIVE_SOURCE_H

#include <pthread.h>

#include "cli/cli.h"
#include "cli/live_page.h"
#include "pipeline/pipeline.h"

enum { KILN_LIVE_INBOX_MAX = 32 };

/* Batches on their way; `fd` is readable when there are some.  What does not fit is lost. */
struct kiln_live_inbox {
    struct kiln_consumer consumer;
    pthread_mutex_t lock;
    struct kiln_batch *batches[KILN_LIVE_INBOX_MAX];
    uint32_t n;
    uint64_t lost;
    int fd;
};
KILN_CHECK int kiln_live_inbox_init(struct kiln_live_inbox *inbox);
void kiln_live_inbox_done(struct kiln_live_inbox *inbox);
/* Adds a reference. */
void kiln_live_inbox_put(struct kiln_live_inbox *inbox, struct kiln_batch *batch);
/* The next one, the caller's; NULL: there is none. */
struct kiln_batch *kiln_live_inbox_take(struct kiln_live_inbox *inbox);

struct kiln_live_source;

/* What a source can do; each but `free` may be called at any time. */
struct kiln_live_source_ops {
    bool remote; /* each batch is an answer about all of the time looked at */
    /* Samples no more, or again. */
    void (*pause)(struct kiln_live_source *source, bool paused);
    /* Another time to look at, or something else in focus. */
    void (*look)(struct kiln_live_source *source, const struct kiln_live_page *page);
    void (*facts)(struct kiln_live_source *source, struct kiln_live_facts *facts);
    /* Publishes what there is: for --once. */
    void (*finish)(struct kiln_live_source *source);
    void (*free)(struct kiln_live_source *source);
};

struct kiln_live_source {
    const struct kiln_live_source_ops *ops;
};

/* Each puts what it has into the inbox, which must outlive it.  `log` may be NULL. */
KILN_CHECK int kiln_live_host_open(struct kiln_cli *cli, struct kiln_live_inbox *inbox,
                                   struct kiln_log *log, struct kiln_live_source **ret_source,
                                   struct kiln_err *err);
/* Asks the server of --server. */
KILN_CHECK int kiln_live_server_open(struct kiln_cli *cli, struct kiln_live_inbox *inbox,
                                     struct kiln_live_source **ret_source, struct kiln_err *err);

/*
 * What a server answers to `format=series` by labels of processes, as a batch: a resource a
 * process, with one sample that has no stack.  `waits`: of time spent waiting, else on processors.
 */
KILN_CHECK int kiln_live_answer_read(struct kiln_str json, bool waits,
                                     struct kiln_batch **ret_batch, struct kiln_err *err);
/* Labels that it must be asked by. */
extern const char *const kiln_live_answer_labels[]; /* ends with NULL */

/* Rows once, as a table or as JSON, into cli->out. */
KILN_CHECK int kiln_live_once(struct kiln_cli *cli, struct kiln_live_page *page);

#endif /* KILN_CLI_LIVE_SOURCE_H */
