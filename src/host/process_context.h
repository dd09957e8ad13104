/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_context - what a process publishes of itself for profilers: OpenTelemetry's process
 * context (OTEP 4719), attributes of its resource and, for readers of thread contexts, of the
 * process.
 *
 * It is found by the name of a mapping and read from the process' memory.  The process may change
 * it at any time: it is taken only if it has the same time of publication before and after.  What
 * is read is any process' to choose: at most 64 KiB, 256 attributes, 256 texts of a list.  Pages
 * that are not in memory are not waited for, since a process may choose who brings them.
 *
 * Texts are NUL-terminated UTF-8; numbers and booleans are texts here, maps and bytes are left out.
 *
 * Threads: no state; a context is constant and counted.
 */
#ifndef KILN_HOST_PROCESS_CONTEXT_H
#define KILN_HOST_PROCESS_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"

struct kiln_context_attr {
    const char *key;
    const char *text;        /* NULL: it is a list */
    const char *const *list; /* of texts; what is no text there is "" */
    uint32_t n_list;
};

struct kiln_process_context {
    uint64_t published_ns;                    /* CLOCK_BOOTTIME: another one is another context */
    const struct kiln_context_attr *resource; /* service.name ... */
    uint32_t n_resource;
    const struct kiln_context_attr *attributes; /* threadlocal.schema_version ... */
    uint32_t n_attributes;
};

/* What was decoded of a payload.  KILN_E_MALFORMED, KILN_E_TRUNCATED, KILN_E_LIMIT, -ENOMEM. */
KILN_CHECK int kiln_process_context_decode(struct kiln_str payload,
                                           struct kiln_process_context **ret_context);
struct kiln_process_context *kiln_process_context_ref(struct kiln_process_context *context);
void kiln_process_context_unref(struct kiln_process_context *context); /* may be NULL */

/* Whether a mapping of this name (as /proc/PID/maps has it) is one. */
bool kiln_process_context_is(struct kiln_str name);

/* Where the process has its context; `dir` is its folder in /proc.  -ENOENT: nowhere. */
KILN_CHECK int kiln_process_context_find(int dir, uint64_t *ret_address);

/*
 * Reads it there.  1: *ret_context is new, the caller's; 0: it is still the one published at
 * `known_ns` (0: none is known).  -EAGAIN: it is just being changed; -ENOENT: there is none any
 * more; -EFAULT: it is not in memory; or as decode.
 */
KILN_CHECK int kiln_process_context_read(int dir, uint64_t address, uint64_t known_ns,
                                         struct kiln_process_context **ret_context);

/* An attribute of the resource, or of the process; NULL: it has none of this name. */
const struct kiln_context_attr *
kiln_process_context_resource(const struct kiln_process_context *context, const char *key);
const struct kiln_context_attr *
kiln_process_context_attribute(const struct kiln_process_context *context, const char *key);

#endif /* KILN_HOST_PROCESS_CONTEXT_H */
