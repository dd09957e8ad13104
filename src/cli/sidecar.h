/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sidecar - what is known about a profile beside its bytes: the JSON file that lies next to it.
 *
 * cpu-17.pb.gz has its metadata in cpu-17.json or cpu-17.pb.gz.json, one object:
 *
 *   {"service": "shop", "version": "1.4", "env": "prod", "commit": "0af3",
 *    "labels": {"region": "eu"}, "time": "2026-03-01T12:00:00Z", "duration": "10s", "type": "cpu"}
 *
 * service, service_name, service.name   the service
 * labels, attributes, tags              objects whose members are labels
 * time, timestamp, start, window_start  when it began: a date, or Unix time in any unit
 * end, window_end                       when it ended
 * duration                              "10s", or a number of seconds; duration_ms, duration_ns
 * type                                  "block" or "mutex", which look the same in a pprof
 * version, env, environment, commit     service.version, deployment.environment, git.commit
 * anything else that is no object       a label of this name
 *
 * Labels become attributes of the resource.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CLI_SIDECAR_H
#define KILN_CLI_SIDECAR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum { KILN_SIDECAR_LABELS_MAX = 64 };

struct kiln_label {
    struct kiln_str key, value;
};

struct kiln_sidecar {
    struct kiln_str service; /* empty: not said */
    struct kiln_str type;
    struct kiln_label labels[KILN_SIDECAR_LABELS_MAX];
    uint32_t n_labels;
    uint64_t time_ns, end_ns, duration_ns; /* 0: not said */
    struct kiln_arena arena;
    struct kiln_budget budget;
};

void kiln_sidecar_init(struct kiln_sidecar *sidecar);
void kiln_sidecar_done(struct kiln_sidecar *sidecar);

/* Sets a label, in the place of one of this key.  Returns 0, KILN_E_LIMIT or -ENOMEM. */
KILN_CHECK int kiln_sidecar_label(struct kiln_sidecar *sidecar, struct kiln_str key,
                                  struct kiln_str value);

/*
 * Reads the file beside `path`, if there is one.  Returns 1, 0 without one, or an error, whose
 * place is that file.
 */
KILN_CHECK int kiln_sidecar_read(struct kiln_sidecar *sidecar, const char *path,
                                 struct kiln_err *err);

/* True if the file is the metadata of another one that is there, and not a profile itself. */
bool kiln_sidecar_is(const char *path);

#endif /* KILN_CLI_SIDECAR_H */
