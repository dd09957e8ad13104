/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes with rates of their own are a hash table by pid, as large as the kernel's.  Whenever
 * orders change it is emptied, and filled again as samples come: one that was paused is sampled
 * once more, which the reader does not count.
 */
#include "host/steer.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "host/bpf/settings.h"

enum { SLOTS = 2 * KILN_RATES_MAX, ID_PREFIX_MIN = 12 };

#define CLOCKS_DIFFER_NS KILN_NS_PER_S /* ticks, and how long an order was under way */

struct followed {
    struct kiln_order order;
    uint64_t ends_ns;  /* monotonic */
    bool met;          /* a process that it is for was seen */
    uint64_t start_ns; /* of the one process that it is for; 0: not met yet */
};

struct slot {
    uint32_t pid; /* 0: free */
    uint32_t hz;  /* as ordered; 0: paused */
};

struct kiln_steer {
    struct kiln_steer_opts opts;
    struct followed *orders;
    uint32_t n_orders;
    uint32_t base_hz, lowered; /* as told last */
    uint32_t n_slots, n_paused;
    struct slot slots[SLOTS];
};

uint32_t kiln_rate_lower(uint32_t hz, uint32_t times)
{
    static const uint16_t primes[] = {2,  3,  5,  7,  11, 13,  17,  19,  23,  29, 31,
                                      37, 47, 59, 73, 97, 149, 199, 251, 349, 499};

    while (times-- > 0 && hz > 1) {
        uint32_t half = hz / 2;

        hz = half > 1 ? half : 1;
        for (uint32_t i = KILN_ARRAY_LEN(primes); i-- > 0;) {
            if (primes[i] <= half) {
                hz = primes[i];
                break;
            }
        }
    }
    return hz;
}

int kiln_steer_new(const struct kiln_steer_opts *opts, struct kiln_steer **ret_steer)
{
    struct kiln_steer *steer = kiln_calloc(1, sizeof(*steer));

    if (!steer)
        return -ENOMEM;
    steer->opts = *opts;
    *ret_steer = steer;
    return 0;
}

void kiln_steer_free(struct kiln_steer *steer)
{
    if (!steer)
        return;
    kiln_free(steer->orders);
    kiln_free(steer);
}

/* ---- the table ---- */

static uint32_t slot_of(uint32_t pid)
{
    return pid * UINT32_C(2654435761) % SLOTS;
}

/* Where the process is, or the free slot where it would be: the table is never more than half full.
 */
static struct slot *find(struct kiln_steer *steer, uint32_t pid)
{
    uint32_t i = slot_of(pid);

    while (steer->slots[i].pid && steer->slots[i].pid != pid)
        i = (i + 1) % SLOTS;
    return &steer->slots[i];
}

/* What stands behind a slot that becomes free may have been meant for it. */
static void close_gap(struct kiln_steer *steer, uint32_t gap)
{
    for (uint32_t i = (gap + 1) % SLOTS; steer->slots[i].pid; i = (i + 1) % SLOTS) {
        uint32_t home = slot_of(steer->slots[i].pid);

        if ((i + SLOTS - home) % SLOTS < (i + SLOTS - gap) % SLOTS)
            continue;
        steer->slots[gap] = steer->slots[i];
        gap = i;
    }
    steer->slots[gap] = (struct slot){0};
}

static void take_out(struct kiln_steer *steer, struct slot *slot)
{
    steer->opts.drop(steer->opts.context, slot->pid);
    steer->n_paused -= slot->hz == 0;
    steer->n_slots--;
    close_gap(steer, (uint32_t)(slot - steer->slots));
}

void kiln_steer_forget_all(struct kiln_steer *steer)
{
    for (uint32_t i = 0; steer->n_slots && i < SLOTS; i++) {
        if (!steer->slots[i].pid)
            continue;
        steer->opts.drop(steer->opts.context, steer->slots[i].pid);
        steer->slots[i] = (struct slot){0};
        steer->n_slots--;
    }
    steer->n_paused = 0;
}

/* What a process is sampled at that an order wants at `hz`. */
static uint32_t effective(const struct kiln_steer *steer, uint32_t hz)
{
    if (!hz)
        return 0;
    return kiln_rate_lower(hz > steer->base_hz ? hz : steer->base_hz, steer->lowered);
}

static bool put(struct kiln_steer *steer, struct slot *slot, uint32_t pid, uint32_t hz)
{
    if (!slot->pid && steer->n_slots == KILN_RATES_MAX)
        return false;
    if (steer->opts.put(steer->opts.context, pid, effective(steer, hz)) < 0)
        return false;
    if (slot->pid)
        steer->n_paused -= slot->hz == 0;
    else
        steer->n_slots++;
    steer->n_paused += hz == 0;
    *slot = (struct slot){pid, hz};
    return true;
}

/* ---- orders ---- */

int kiln_steer_follow(struct kiln_steer *steer, const struct kiln_order *orders, uint32_t n)
{
    uint64_t now_unix_ns = kiln_clock_unix_ns(), now_ns = kiln_clock_mono_ns();
    struct followed *list = n ? kiln_calloc(n, sizeof(*list)) : NULL;
    uint32_t kept = 0;

    if (n && !list)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        if (orders[i].expires_ns <= now_unix_ns ||
            !kiln_order_for_host(&orders[i], steer->opts.host_id, steer->opts.host_name))
            continue;
        list[kept].order = orders[i];
        list[kept++].ends_ns = now_ns + (orders[i].expires_ns - now_unix_ns);
    }
    kiln_free(steer->orders);
    steer->orders = list;
    steer->n_orders = kept;
    kiln_steer_forget_all(steer);
    return 0;
}

void kiln_steer_tick(struct kiln_steer *steer, uint64_t mono_ns)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < steer->n_orders; i++) {
        if (steer->orders[i].ends_ns > mono_ns)
            steer->orders[kept++] = steer->orders[i];
    }
    if (kept == steer->n_orders)
        return;
    steer->n_orders = kept;
    kiln_steer_forget_all(steer);
}

uint64_t kiln_steer_turns_ns(const struct kiln_steer *steer)
{
    uint64_t turns_ns = UINT64_MAX;

    for (uint32_t i = 0; i < steer->n_orders; i++) {
        if (steer->orders[i].ends_ns < turns_ns)
            turns_ns = steer->orders[i].ends_ns;
    }
    return turns_ns;
}

static bool is_for_all(const struct kiln_order *order)
{
    return order->target == KILN_TARGET_ALL || order->target == KILN_TARGET_HOST;
}

static bool is_paused(const struct kiln_steer *steer)
{
    for (uint32_t i = 0; i < steer->n_orders; i++) {
        if (is_for_all(&steer->orders[i].order) && steer->orders[i].order.kind == KILN_ORDER_PAUSE)
            return true;
    }
    return false;
}

/* Everybody's rate is another: so are those that are written down. */
static void retune(struct kiln_steer *steer, uint32_t base_hz, uint32_t lowered)
{
    if (base_hz == steer->base_hz && lowered == steer->lowered)
        return;
    steer->base_hz = base_hz;
    steer->lowered = lowered;
    for (uint32_t i = 0; steer->n_slots && i < SLOTS; i++) {
        struct slot *slot = &steer->slots[i];

        if (slot->pid && slot->hz)
            (void)put(steer, slot, slot->pid, slot->hz);
    }
}

struct kiln_steer_rates kiln_steer_rates(struct kiln_steer *steer, uint32_t hz, uint32_t lowered)
{
    uint32_t base_hz = hz, clock_hz;

    if (is_paused(steer))
        return (struct kiln_steer_rates){0, 0};
    for (uint32_t i = 0; i < steer->n_orders; i++) {
        const struct kiln_order *order = &steer->orders[i].order;

        if (is_for_all(order) && order->hz > base_hz)
            base_hz = order->hz;
    }
    retune(steer, base_hz, lowered);
    clock_hz = base_hz;
    for (uint32_t i = 0; i < steer->n_orders; i++) {
        const struct followed *f = &steer->orders[i];

        if (f->met && f->order.kind == KILN_ORDER_BOOST && f->order.hz > clock_hz)
            clock_hz = f->order.hz;
    }
    return (struct kiln_steer_rates){kiln_rate_lower(base_hz, lowered),
                                     kiln_rate_lower(clock_hz, lowered)};
}

/* ---- processes ---- */

static bool is_container(const struct kiln_steered *process, struct kiln_str name)
{
    return kiln_str_eq(process->container_name, name) || kiln_str_eq(process->container_id, name) ||
           (name.len >= ID_PREFIX_MIN && kiln_str_starts(process->container_id, name));
}

/*
 * A number that is given again is somebody else's; also where the order is older than this agent,
 * or than the start of the machine: whoever it was for was there when it was given.
 */
static bool is_that_process(struct followed *f, const struct kiln_steered *process)
{
    if (f->order.pid != process->pid ||
        process->start_unix_ns > f->order.created_ns + CLOCKS_DIFFER_NS)
        return false;
    if (!f->start_ns)
        f->start_ns = process->start_ns;
    return f->start_ns == process->start_ns;
}

static bool matches(struct followed *f, const struct kiln_steered *process)
{
    const struct kiln_order *order = &f->order;
    struct kiln_str name = kiln_str_of(order->name);

    switch (order->target) {
    case KILN_TARGET_SERVICE:
        return kiln_str_eq(process->service, name);
    case KILN_TARGET_CONTAINER:
        return name.len && is_container(process, name);
    case KILN_TARGET_PROCESS:
        return is_that_process(f, process);
    case KILN_TARGET_ALL:
    case KILN_TARGET_HOST:
        break;
    }
    return false;
}

/* Whether any order is for it, and at which rate. */
static bool match(struct kiln_steer *steer, const struct kiln_steered *process, uint32_t *ret_hz)
{
    bool paused = false;
    uint32_t hz = 0;

    for (uint32_t i = 0; i < steer->n_orders; i++) {
        struct followed *f = &steer->orders[i];

        if (!matches(f, process))
            continue;
        f->met = true;
        paused |= f->order.kind == KILN_ORDER_PAUSE;
        if (f->order.kind == KILN_ORDER_BOOST && f->order.hz > hz)
            hz = f->order.hz;
    }
    *ret_hz = paused ? 0 : hz;
    return paused || hz;
}

bool kiln_steer_process(struct kiln_steer *steer, const struct kiln_steered *process)
{
    struct slot *slot;
    uint32_t hz;

    if (!steer->n_orders || !process->pid)
        return true;
    slot = find(steer, process->pid);
    if (!match(steer, process, &hz)) {
        if (slot->pid)
            take_out(steer, slot);
        return true;
    }
    if (!slot->pid || slot->hz != hz)
        (void)put(steer, slot, process->pid, hz);
    return hz != 0;
}

void kiln_steer_forget(struct kiln_steer *steer, uint32_t pid)
{
    struct slot *slot;

    if (!steer->n_slots || !pid)
        return;
    slot = find(steer, pid);
    if (slot->pid)
        take_out(steer, slot);
}

void kiln_steer_stats(const struct kiln_steer *steer, struct kiln_steer_stats *ret_stats)
{
    *ret_stats = (struct kiln_steer_stats){.orders = steer->n_orders,
                                           .boosted = steer->n_slots - steer->n_paused,
                                           .paused = steer->n_paused,
                                           .all_paused = is_paused(steer)};
}
