/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - one recording of `kiln record`: what it was, and what it says of itself.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_RECORD_H
#define KILN_CLI_RECORD_H

#include "base/json.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "core/batch.h"
#include "host/host.h"

enum kiln_record_end {
    KILN_RECORD_TIME,    /* of --duration is over */
    KILN_RECORD_COMMAND, /* ended */
    KILN_RECORD_GONE,    /* every process that was asked for is */
    KILN_RECORD_SIGNAL,  /* somebody wants it to end */
};

struct kiln_recording {
    char name[48]; /* what is recorded: "xz", "host" */
    uint64_t began_ns, ended_ns;
    uint32_t hz;
    uint32_t end;              /* enum kiln_record_end */
    struct kiln_launch launch; /* pid 0: no command */
    struct kiln_host_status status;
    uint32_t processes; /* with samples, in all of it */
    uint32_t batches_lost;
    const char *path;   /* where it is written to */
    const char *select; /* what to look at first of it: "-t delay"; NULL: all of it */
};

/* How many processes a batch has samples of. */
KILN_CHECK int kiln_record_processes(const struct kiln_batch *batch, uint32_t *ret_n);

/* The line that is written over and over while it runs, on standard error; `now_ns` 0 wipes it. */
void kiln_record_progress(const struct kiln_recording *rec, uint64_t now_ns);

/* What there is to say at the end: for people, and as one line of JSON for programs. */
void kiln_record_summary(const struct kiln_recording *rec, struct kiln_buf *out);
void kiln_record_summary_json(const struct kiln_recording *rec, struct kiln_buf *out);

/* What both end with: the command, the file, and what to do with it. */
void kiln_record_put_end(const struct kiln_recording *rec, struct kiln_buf *out);
void kiln_record_put_end_json(const struct kiln_recording *rec, struct kiln_json_out *w);

#endif /* KILN_CLI_RECORD_H */
