/* SPDX-License-Identifier: Apache-2.0 */
/* Entries stand in the order of (tenant, id), so that finding one of thousands is quick. */
#include "fleet/roster.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"

#define SILENT_NS (60 * KILN_NS_PER_S)
#define FORGOT_NS (86400 * KILN_NS_PER_S)

struct kiln_roster {
    pthread_mutex_t lock; /* of the rest */
    struct kiln_agent_status **agents;
    uint32_t n, cap;
    struct kiln_budget budget;
};

int kiln_roster_new(struct kiln_roster **ret_roster)
{
    struct kiln_roster *roster = kiln_calloc(1, sizeof(*roster));

    if (!roster)
        return -ENOMEM;
    roster->budget.limit = SIZE_MAX;
    pthread_mutex_init(&roster->lock, NULL);
    *ret_roster = roster;
    return 0;
}

void kiln_roster_free(struct kiln_roster *roster)
{
    if (!roster)
        return;
    for (uint32_t i = 0; i < roster->n; i++)
        kiln_free(roster->agents[i]);
    kiln_array_free(&roster->budget, (void **)&roster->agents, &roster->cap,
                    sizeof(*roster->agents));
    pthread_mutex_destroy(&roster->lock);
    kiln_free(roster);
}

static int compare(const struct kiln_agent_status *agent, const char *tenant, const char *id)
{
    int r = strcmp(agent->tenant, tenant);

    return r ? r : strcmp(agent->id, id);
}

/* Where it is, or would be. */
static uint32_t find(const struct kiln_roster *roster, const char *tenant, const char *id,
                     bool *ret_found)
{
    uint32_t low = 0, high = roster->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (compare(roster->agents[middle], tenant, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = low < roster->n && compare(roster->agents[low], tenant, id) == 0;
    return low;
}

static void drop(struct kiln_roster *roster, uint32_t at)
{
    kiln_free(roster->agents[at]);
    roster->n--;
    memmove(&roster->agents[at], &roster->agents[at + 1],
            (roster->n - at) * sizeof(*roster->agents));
}

static uint64_t silence(const struct kiln_agent_status *agent, uint64_t now_ns)
{
    return now_ns > agent->last_seen_ns ? now_ns - agent->last_seen_ns : 0;
}

struct run { /* of one tenant's agents, which stand together */
    uint32_t at, n;
};

static struct run run_at(const struct kiln_roster *roster, uint32_t at)
{
    struct run run = {.at = at};

    while (at + run.n < roster->n &&
           strcmp(roster->agents[at + run.n]->tenant, roster->agents[at]->tenant) == 0)
        run.n++;
    return run;
}

/* Who is silent for longest. */
static uint32_t oldest_of(const struct kiln_roster *roster, struct run run)
{
    uint32_t oldest = run.at;

    for (uint32_t i = run.at; i < run.at + run.n; i++)
        if (roster->agents[i]->last_seen_ns < roster->agents[oldest]->last_seen_ns)
            oldest = i;
    return oldest;
}

/* A tenant with more agents than another makes room for it: nobody can lock the others out. */
static int make_room(struct kiln_roster *roster, const char *tenant, uint64_t now_ns)
{
    struct run most = {0}, run, own = {0};
    uint32_t oldest;

    if (roster->n < KILN_ROSTER_MAX)
        return kiln_grow(&roster->budget, (void **)&roster->agents, &roster->cap,
                         roster->n + UINT64_C(1), sizeof(*roster->agents), KILN_ROSTER_MAX);
    for (uint32_t i = 0; i < roster->n; i += run.n) {
        run = run_at(roster, i);
        most = run.n > most.n ? run : most;
        own = strcmp(roster->agents[i]->tenant, tenant) == 0 ? run : own;
    }
    oldest = oldest_of(roster, (struct run){0, roster->n});
    if (silence(roster->agents[oldest], now_ns) < SILENT_NS) {
        if (most.n <= own.n + 1)
            return KILN_E_LIMIT;
        oldest = oldest_of(roster, most);
    }
    drop(roster, oldest);
    return 0;
}

static int add(struct kiln_roster *roster, const char *tenant, const char *id, uint64_t now_ns,
               struct kiln_agent_status **ret_agent)
{
    struct kiln_agent_status *agent;
    bool found;
    uint32_t at;
    int r = make_room(roster, tenant, now_ns);

    if (r < 0)
        return r;
    agent = kiln_malloc(sizeof(*agent));
    if (!agent)
        return -ENOMEM;
    at = find(roster, tenant, id, &found);
    memmove(&roster->agents[at + 1], &roster->agents[at],
            (roster->n - at) * sizeof(*roster->agents));
    roster->agents[at] = agent;
    roster->n++;
    *ret_agent = agent;
    return 0;
}

int kiln_roster_report(struct kiln_roster *roster, const char *tenant,
                       const struct kiln_agent_status *status, uint64_t now_ns)
{
    struct kiln_agent_status *agent = NULL;
    bool found;
    uint32_t at;
    int r = 0;

    pthread_mutex_lock(&roster->lock);
    at = find(roster, tenant, status->id, &found);
    if (found)
        agent = roster->agents[at];
    else
        r = add(roster, tenant, status->id, now_ns, &agent);
    if (r == 0) {
        *agent = *status;
        snprintf(agent->tenant, sizeof(agent->tenant), "%s", tenant);
        agent->last_seen_ns = now_ns;
        agent->local = false;
    }
    pthread_mutex_unlock(&roster->lock);
    return r;
}

int kiln_roster_touch(struct kiln_roster *roster, const char *tenant, const char *id,
                      uint64_t now_ns, char ret_host[256])
{
    bool found;
    uint32_t at;

    pthread_mutex_lock(&roster->lock);
    at = find(roster, tenant, id, &found);
    if (found) {
        roster->agents[at]->last_seen_ns = now_ns;
        memcpy(ret_host, roster->agents[at]->host, sizeof(roster->agents[at]->host));
    }
    pthread_mutex_unlock(&roster->lock);
    return found ? 0 : -ENOENT;
}

/* The lock is not held while somebody writes an answer. */
static bool copy_next(struct kiln_roster *roster, bool begin, struct kiln_agent_status *agent)
{
    bool found = false;
    uint32_t at = 0;

    pthread_mutex_lock(&roster->lock);
    if (!begin)
        at = find(roster, agent->tenant, agent->id, &found) + found;
    found = at < roster->n;
    if (found)
        *agent = *roster->agents[at];
    pthread_mutex_unlock(&roster->lock);
    return found;
}

void kiln_roster_each(struct kiln_roster *roster,
                      void (*each)(void *context, const struct kiln_agent_status *status),
                      void *context)
{
    struct kiln_agent_status agent;

    for (bool begin = true; copy_next(roster, begin, &agent); begin = false)
        each(context, &agent);
}

uint32_t kiln_roster_sweep(struct kiln_roster *roster, uint64_t now_ns)
{
    uint32_t kept = 0;

    pthread_mutex_lock(&roster->lock);
    for (uint32_t i = 0; i < roster->n; i++) {
        if (silence(roster->agents[i], now_ns) > FORGOT_NS)
            kiln_free(roster->agents[i]);
        else
            roster->agents[kept++] = roster->agents[i];
    }
    roster->n = kept;
    pthread_mutex_unlock(&roster->lock);
    return kept;
}
