/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roster - the agents that report to this server, by tenant and id: what each said last, and when
 * it was heard of.  In memory alone: after a restart agents are there again within seconds.
 *
 * An agent that is silent for a day is forgotten.  Where there are too many, the one that is silent
 * for longest makes room, if it is so for a minute; else one of the tenant that has most, if that
 * has more than who asks; else a new one is refused.
 *
 * Threads: everything from anywhere.
 */
#ifndef KILN_FLEET_ROSTER_H
#define KILN_FLEET_ROSTER_H

#include "fleet/status.h"

enum { KILN_ROSTER_MAX = 4096 };

struct kiln_roster;

KILN_CHECK int kiln_roster_new(struct kiln_roster **ret_roster);
void kiln_roster_free(struct kiln_roster *roster);

/* Notes what an agent says, at `now_ns` (Unix time).  KILN_E_LIMIT, -ENOMEM. */
KILN_CHECK int kiln_roster_report(struct kiln_roster *roster, const char *tenant,
                                  const struct kiln_agent_status *status, uint64_t now_ns);
/*
 * Notes that an agent is there, which says nothing new; *ret_host is its name.  -ENOENT: nothing is
 * known of it.
 */
KILN_CHECK int kiln_roster_touch(struct kiln_roster *roster, const char *tenant, const char *id,
                                 uint64_t now_ns, char ret_host[256]);

/* Calls `each` for every agent, by tenant and id; what it is given is a copy. */
void kiln_roster_each(struct kiln_roster *roster,
                      void (*each)(void *context, const struct kiln_agent_status *status),
                      void *context);
/* Forgets who is silent for a day; how many are left. */
uint32_t kiln_roster_sweep(struct kiln_roster *roster, uint64_t now_ns);

#endif /* KILN_FLEET_ROSTER_H */
