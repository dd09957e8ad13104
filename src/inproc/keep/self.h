/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self - asks whoever profiles this host what he samples of this process already
 * (GET /v1/self on the local socket; the answer is in src/cli/host_sampled.h).
 *
 * Threads: no state.
 */
#ifndef KILN_INPROC_KEEP_SELF_H
#define KILN_INPROC_KEEP_SELF_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/str.h"

struct kiln_in_self {
    bool cpu, off_cpu;
    bool names; /* he names addresses of this process' files himself */
};

/* Half a second at most.  0, or negative: nobody answers there, *ret_self is all false. */
KILN_CHECK int kiln_in_self_ask(const char *socket, struct kiln_in_self *ret_self);
/* An answer as it comes, head and body. */
KILN_CHECK int kiln_in_self_parse(struct kiln_str answer, struct kiln_in_self *ret_self);

#endif /* KILN_INPROC_KEEP_SELF_H */
