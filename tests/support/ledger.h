/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger - what was given to a store, what it acknowledged, and whether all of that is there.
 *
 * Profile i carries the attribute test.id = i; its tenant, service, type, stacks and values follow
 * from i alone, so that any profile that comes back can be checked by itself.
 *
 * Threads: append from anywhere; the rest by one.  Out of memory is an answer of append.
 */
#ifndef KILN_TESTS_LEDGER_H
#define KILN_TESTS_LEDGER_H

#include <pthread.h>

#include "store/engine.h"

enum { LEDGER_MAX = 20000, LEDGER_TENANTS = 2, LEDGER_SERVICES = 3 };

enum ledger_state { LEDGER_NONE, LEDGER_FAILED, LEDGER_ACKNOWLEDGED, LEDGER_DELETED };

struct kiln_ledger {
    pthread_mutex_t lock;
    uint32_t n;
    uint8_t states[LEDGER_MAX];
    uint8_t times[LEDGER_MAX]; /* found by the last check */
    uint64_t time_ns;          /* of profile 0; others are a second older each */
    int last_code;             /* of an append that failed */
};

void kiln_ledger_init(struct kiln_ledger *ledger, uint64_t time_ns);
void kiln_ledger_done(struct kiln_ledger *ledger);

/* Appends `n` profiles as one batch and waits for the answer, which it returns. */
int kiln_ledger_append(struct kiln_ledger *ledger, struct kiln_engine *engine, uint32_t n);

/* Sends a profile that failed once more, alone, as a client does that never got an answer. */
int kiln_ledger_resend(struct kiln_ledger *ledger, struct kiln_engine *engine, uint32_t id);

/*
 * Deletes a service (0 .. LEDGER_SERVICES - 1) of a tenant, while nobody appends.  Where that fails
 * what it held may be there or not.
 */
int kiln_ledger_delete(struct kiln_ledger *ledger, struct kiln_engine *engine, uint32_t tenant,
                       uint32_t service);

/* What a check found. */
struct kiln_ledger_sum {
    uint32_t acknowledged;
    uint32_t lost;    /* acknowledged, and not there */
    uint32_t twice;   /* there more than once */
    uint32_t wrong;   /* not what was given */
    uint32_t undead;  /* deleted, and there */
    uint32_t present; /* there, acknowledged or not */
    uint32_t first_lost;
};

/* Reads everything back.  Returns 0 or what selecting said. */
KILN_CHECK int kiln_ledger_check(struct kiln_ledger *ledger, struct kiln_engine *engine,
                                 struct kiln_ledger_sum *ret_sum, struct kiln_err *err);

/* From now on only what is there now is expected: after damage that was reported. */
void kiln_ledger_forgive(struct kiln_ledger *ledger);

#endif /* KILN_TESTS_LEDGER_H */
