/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An account of samples: time pays in, samples take out, and it holds a burst at most.  It is
 * looked at every 32 samples or four times a second.  Overdrawn, the mean grows by as much as
 * samples came too fast; half full again, it shrinks by as much as they came too slowly.  Whoever
 * moves the time of the last look has the time since then for itself: nothing is locked.
 */
#include "inproc/sample/rate.h"

enum {
    LOOK_EACH = 32,            /* samples */
    LOOK_EACH_NS = 250000000,  /* or so much later */
    FACTOR_MAX = 16,           /* that the mean changes by in one look */
    ROOM_ABOVE_BASE = 1 << 20, /* how often the base it may become */
};

void kiln_in_rate_init(struct kiln_in_rate *rate, uint64_t base, double per_s, uint64_t now_ns)
{
    rate->base = base ? base : 1;
    rate->per_s = per_s;
    atomic_store(&rate->credit, KILN_IN_RATE_BURST);
    atomic_store(&rate->mean, rate->base);
    atomic_store(&rate->taken, 0);
    atomic_store(&rate->looked_ns, now_ns);
}

static double within(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* `speed` is how many times faster than allowed samples came. */
static void adjust(struct kiln_in_rate *rate, double credit, double speed)
{
    double mean = (double)kiln_in_rate_mean(rate);
    double base = (double)rate->base;

    if (credit < 0 && speed > 1)
        mean *= within(speed, 1, FACTOR_MAX);
    else if (credit > KILN_IN_RATE_BURST / 2.0 && speed < 1)
        mean *= within(speed, 1.0 / FACTOR_MAX, 1);
    mean = within(mean, base, base * ROOM_ABOVE_BASE);
    atomic_store_explicit(&rate->mean, (uint64_t)mean, memory_order_relaxed);
}

static void look(struct kiln_in_rate *rate, uint64_t last_ns, uint64_t now_ns)
{
    double allowed = now_ns > last_ns ? (double)(now_ns - last_ns) * 1e-9 * rate->per_s : 0;
    double taken = atomic_exchange_explicit(&rate->taken, 0, memory_order_relaxed);
    double credit = atomic_load_explicit(&rate->credit, memory_order_relaxed) + allowed - taken;

    credit = within(credit, -KILN_IN_RATE_BURST, KILN_IN_RATE_BURST);
    atomic_store_explicit(&rate->credit, credit, memory_order_relaxed);
    adjust(rate, credit, allowed > 0 ? taken / allowed : FACTOR_MAX);
}

void kiln_in_rate_note(struct kiln_in_rate *rate, bool taken, uint64_t now_ns)
{
    uint64_t last_ns = atomic_load_explicit(&rate->looked_ns, memory_order_relaxed);
    uint32_t n = 0;

    if (rate->per_s <= 0)
        return;
    if (taken)
        n = atomic_fetch_add_explicit(&rate->taken, 1, memory_order_relaxed) + 1;
    if (n < LOOK_EACH && now_ns < last_ns + LOOK_EACH_NS)
        return;
    if (atomic_compare_exchange_strong(&rate->looked_ns, &last_ns, now_ns))
        look(rate, last_ns, now_ns);
}
