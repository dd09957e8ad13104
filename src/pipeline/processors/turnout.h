/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turnout - how many deliveries are here at a time, at most, of late.
 *
 * Senders wait for their answer before they send again.  So once as many wait as ever were here
 * within the last one to two seconds, all are here that can be expected.  Where nobody came in the
 * second before, nobody knows.
 *
 * Threads: its owner's.
 */
#ifndef KILN_PIPELINE_PROCESSORS_TURNOUT_H
#define KILN_PIPELINE_PROCESSORS_TURNOUT_H

#include <stdbool.h>
#include <stdint.h>

struct kiln_turnout {
    uint32_t here;              /* came, and have not ended */
    uint32_t most, most_before; /* of them, in this second and in the one before it */
    uint64_t began_ns;          /* this second */
};

void kiln_turnout_come(struct kiln_turnout *turnout, uint64_t now_ns);
/* Before they are told: they may be back at once. */
void kiln_turnout_go(struct kiln_turnout *turnout, uint32_t n);
bool kiln_turnout_is_all(const struct kiln_turnout *turnout, uint32_t waiting);

#endif /* KILN_PIPELINE_PROCESSORS_TURNOUT_H */
