/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler_int - what the server and its profiler's process say to each other.
 *
 * A message is one memory file (memfd), passed over a SOCK_SEQPACKET pair: a head, then the data.
 * So messages are whole or not there, however large they are, and whoever dies amid one leaves no
 * half of it.
 */
#ifndef KILN_CLI_PROFILER_INT_H
#define KILN_CLI_PROFILER_INT_H

#include "base/buf.h"
#include "base/log.h"
#include "fleet/status.h"
#include "host/host.h"

enum kiln_profiler_kind {
    /* to the profiler */
    KILN_PROFILER_START,  /* orders as JSON; the first message */
    KILN_PROFILER_ORDERS, /* orders as JSON */
    KILN_PROFILER_ACK,    /* of the batch `number`; `code` as that of an outcome */
    KILN_PROFILER_STOP,
    /* from it */
    KILN_PROFILER_STARTED,
    KILN_PROFILER_FAILED,  /* the sentence why it cannot start; it is not started again */
    KILN_PROFILER_BATCH,   /* OTLP; `number` is its own, `value` the samples taken for it */
    KILN_PROFILER_STATUS,  /* struct kiln_agent_status; `value` is the processor time in ns */
    KILN_PROFILER_METRICS, /* Prometheus' text */
    KILN_PROFILER_ENDED,   /* from the starter: `code` is what waitpid() says */
};

struct kiln_profiler_head {
    uint32_t kind;
    int32_t code;
    uint64_t number, value;
};

#define KILN_PROFILER_BYTES_MAX        ((size_t)64 << 20)
#define KILN_PROFILER_ORDERS_BYTES_MAX ((size_t)1 << 20)

KILN_CHECK int kiln_profiler_send(int fd, const struct kiln_profiler_head *head,
                                  struct kiln_str data);
/* `data` is cleared first; its max is the limit.  -EPIPE: the other end is gone. */
KILN_CHECK int kiln_profiler_receive(int fd, struct kiln_profiler_head *ret_head,
                                     struct kiln_buf *data);

/* What the starter does until the server is gone, or the profiler cannot run; then it exits. */
_Noreturn void kiln_profiler_process(int fd, const struct kiln_host_opts *opts);

#endif /* KILN_CLI_PROFILER_INT_H */
