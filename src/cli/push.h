/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push - one file on its way to a server: read, named, timed, sent.
 *
 * Every file goes as OTLP over HTTP, whatever its format: a damaged file is found here, before
 * anything is sent; service, labels and times are said in one way; and the server may be any that
 * takes OTLP profiles.
 *
 * Threads: a pusher has one owner at a time; make one for each thread.
 */
#ifndef KILN_CLI_PUSH_H
#define KILN_CLI_PUSH_H

#include "cli/remote.h"
#include "cli/sidecar.h"

/* enum suffix, name in JSON, what it says */
#define KILN_PUSH_OUTCOME_MAP(X)                                                                   \
    X(WAITING, "not_sent", "not sent")                                                             \
    X(TAKEN, "acknowledged", "acknowledged")                                                       \
    X(SKIPPED, "skipped", "no profile")                                                            \
    X(BAD, "unreadable", "unreadable")                                                             \
    X(REFUSED, "refused", "refused")                                                               \
    X(FAILED, "failed", "failed")

enum kiln_push_outcome {
#define X(suffix, name, text) KILN_PUSH_##suffix,
    KILN_PUSH_OUTCOME_MAP(X)
#undef X
        KILN_PUSH_OUTCOMES
};

/* enum suffix, name in JSON, what it says */
#define KILN_PUSH_TIME_MAP(X)                                                                      \
    X(OPTION, "option", "of --time")                                                               \
    X(SIDECAR, "metadata", "of the metadata beside it")                                            \
    X(PROFILE, "profile", "its own")                                                               \
    X(NAME, "name", "of the file's name")                                                          \
    X(FILE, "file", "when the file was changed")                                                   \
    X(NOW, "now", "now")

enum kiln_push_time {
#define X(suffix, name, text) KILN_PUSH_BY_##suffix,
    KILN_PUSH_TIME_MAP(X)
#undef X
};

struct kiln_push_result {
    enum kiln_push_outcome outcome;
    int exit_code;
    bool final; /* the next file would meet the same failure */
    uint32_t profiles;
    uint64_t rejected; /* of them, though the rest was acknowledged */
    uint64_t bytes;    /* as sent */
    uint32_t again;    /* tries after the first */
    uint64_t time_ns;
    enum kiln_push_time time_by;
    char service[128];
    char message[512]; /* what went wrong */
};

struct kiln_pusher {
    const struct kiln_cli *cli;
    struct kiln_client *client; /* NULL: only look (--dry-run) */
    struct kiln_answer answer;
    bool has_sent;
};

KILN_CHECK int kiln_pusher_init(struct kiln_pusher *pusher, const struct kiln_cli *cli,
                                struct kiln_err *err);
void kiln_pusher_done(struct kiln_pusher *pusher);

/* `found`: by walking a directory, where files that are no profiles are nothing special. */
void kiln_push_file(struct kiln_pusher *pusher, const char *path, bool found,
                    struct kiln_push_result *ret_result);

#endif /* KILN_CLI_PUSH_H */
