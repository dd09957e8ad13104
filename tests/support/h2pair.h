/* SPDX-License-Identifier: Apache-2.0 */
/* h2pair - a server and a client that speaks HTTP/2 from the first byte. */
#ifndef KILN_TESTS_SUPPORT_H2PAIR_H
#define KILN_TESTS_SUPPORT_H2PAIR_H

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "h2client.h"
#include "net.h"
#include "test.h"

struct pair {
    struct net_fixture f;
    struct h2_client c;
};

/* What of it must be said before it is opened is said in between. */
static inline struct pair *pair_new(void)
{
    return calloc(1, sizeof(struct pair));
}

static inline struct pair *pair_open(struct pair *p, const struct kiln_server_opts *opts)
{
    net_start(&p->f, opts);
    h2_open(&p->c, net_connect(p->f.port), NULL);
    return p;
}

static inline void teardown(struct pair *p)
{
    h2_done(&p->c);
    close(p->c.fd);
    net_stop(&p->f);
    free(p);
    CHECK_EQ(kiln_mem_live(), 0);
}

#endif /* KILN_TESTS_SUPPORT_H2PAIR_H */
