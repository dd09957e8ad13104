/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_run - sends a load over several connections, at a rate or as fast as it goes, and keeps the
 * account.
 *
 * Threads: one run has one owner; its senders are its own.
 */
#ifndef KILN_CLI_LOAD_RUN_H
#define KILN_CLI_LOAD_RUN_H

#include "cli/cli.h"
#include "cli/load_wire.h"

/* Latencies in buckets that are 1/64 apart. */
enum { KILN_LOAD_BUCKETS = 64 * 48 };

struct kiln_load_account {
    uint64_t sent;         /* requests made, whatever became of them */
    uint64_t acknowledged; /* requests */
    uint64_t refused, failed;
    uint64_t again;                       /* tries after the first */
    uint64_t profiles, samples, rejected; /* acknowledged; rejected: of acknowledged requests */
    uint64_t bytes_raw, bytes_sent;       /* of requests that were made */
    uint64_t make_cpu_ns;                 /* the generator's */
    uint64_t longest_ns;
    uint64_t elapsed_ns; /* from the first call to the last answer */
    uint64_t latencies[KILN_LOAD_BUCKETS];
    struct kiln_err err; /* the first thing that went wrong */
};

struct kiln_load_plan {
    struct kiln_load *load;
    struct kiln_load_wire wire;
    uint64_t requests;    /* 0: until the time is over */
    uint64_t duration_ns; /* 0: until all are sent */
    uint32_t rate;        /* requests a second; 0: as fast as it goes */
    uint32_t connections;
    uint64_t retry_ns;
    bool prepare;    /* make all requests before the clock starts */
    bool quiet;      /* no progress */
    const char *out; /* a directory: write files instead; NULL: send */
    int journal;     /* a descriptor, or -1 */
};

/* Returns 0, or negative where nothing could be done at all. */
KILN_CHECK int kiln_load_run(const struct kiln_cli *cli, const struct kiln_load_plan *plan,
                             struct kiln_load_account *ret_account, struct kiln_err *err);

/* The latency that this share (0 to 1) of acknowledged requests stays below, in nanoseconds. */
uint64_t kiln_load_percentile(const struct kiln_load_account *account, double share);

#endif /* KILN_CLI_LOAD_RUN_H */
