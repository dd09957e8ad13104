/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send - gives what waits in a queue to the receiver, and knows when the next try is due.
 *
 * Threads: one owner at a time, but for the end of a deadline.
 */
#ifndef KILN_INPROC_OUT_SEND_H
#define KILN_INPROC_OUT_SEND_H

#include "inproc/out/call.h"
#include "inproc/out/out.h"
#include "inproc/out/queue.h"

struct kiln_in_sender {
    struct kiln_otlp_target target;
    struct kiln_in_caller caller;
    struct kiln_in_queue queue;
    const _Atomic uint64_t *end_ns; /* when all has to be over; 0: not soon */
    uint64_t next_ns;               /* no try before; 0: at once */
    uint64_t told_ns;               /* nor before this, whoever asks: the receiver has said so */
    uint64_t wait_ns;               /* between the last try and the next */
    bool away;                      /* the last try had no answer, or was put off */
    bool said_refused, said_partial;
    int last_error; /* of the last try: 0 or why it was not taken */
    uint64_t noise;
    struct kiln_in_out_counts counts;
};

/* By the settings; `address` is what they say, or a socket.  `sender` stays where it is; done also
 * after a failure. */
KILN_CHECK int kiln_in_sender_init(struct kiln_in_sender *sender, const char *address,
                                   const _Atomic uint64_t *end_ns, struct kiln_err *err);
void kiln_in_sender_done(struct kiln_in_sender *sender);

/* Sends what is due; `now`: somebody waits for it, or it is the last time. */
void kiln_in_sender_run(struct kiln_in_sender *sender, bool now);

#endif /* KILN_INPROC_OUT_SEND_H */
