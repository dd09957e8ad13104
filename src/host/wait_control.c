/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Half of the share is the hook's, half is for waits that are taken.  What the hook costs is a
 * constant, by bench/host/switch: what the kernel measures itself misses the way into the program.
 * What a wait costs is what any sample costs, as it was counted: walking and naming its stack, and
 * all that is read of processes that would not have been met without it.
 */
#include "host/wait_control.h"

#include <math.h>

#include "base/clock.h"

#define HOOK_NS       150.0   /* a switch, all in */
#define TAKE_NS       25000.0 /* a wait that is taken, at least: half of it in the kernel */
#define TAKE_NS_MAX   1e6
#define CYCLE_NS      (5 * KILN_NS_PER_S) /* there and away once: coming costs 0.3 ms */
#define ON_NS_MAX     KILN_NS_PER_S
#define ON_NS_MIN     (50 * KILN_NS_PER_MS)
#define OFF_NS_MAX    (60 * KILN_NS_PER_S)
#define PERIOD_NS_MAX (3600 * KILN_NS_PER_S)
#define SEEN_NS_MIN   (20 * KILN_NS_PER_MS) /* of the hook being there: to know the rate by */
#define ALWAYS        0.9                   /* of the time: not worth going away */
#define STEADY_FROM   0.8                   /* times what it was: no change */
#define STEADY_TO     1.25
#define STEP_UP_MAX   8.0 /* of the period, from one look to the next */
#define STEP_DOWN     1.5
#define SPARSE        0.5 /* of the waits that may be taken: time for a shorter period */
#define SMOOTH        0.5
#define SMOOTH_COST   0.1

/* ---- spans ---- */

/* In (0, 1]. */
static double draw(struct kiln_wait_control *control)
{
    uint64_t x = control->random;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    control->random = x;
    return (double)((x * UINT64_C(0x2545f4914f6cdd1d) >> 11) + 1) * 0x1p-53;
}

static uint64_t span(struct kiln_wait_control *control, uint64_t mean_ns)
{
    return (uint64_t)(-log(draw(control)) * (double)mean_ns) + 1;
}

/* What was seen before is weighed as it was seen. */
static void change_spans(struct kiln_wait_control *control, struct kiln_wait_spans spans,
                         uint64_t now_ns)
{
    control->before = control->spans;
    control->since_ns = now_ns;
    control->spans = spans;
}

static void always_there(struct kiln_wait_control *control, uint64_t now_ns)
{
    if (control->spans.there < 1)
        change_spans(control, (struct kiln_wait_spans){.there = 1}, now_ns);
    control->turn_ns = UINT64_MAX;
    control->on = true;
}

/* From the state that it is in: spans that have no memory may be drawn anew at any time. */
static void set_spans(struct kiln_wait_control *control, double there, uint64_t now_ns)
{
    double on = fmin(fmax((double)CYCLE_NS * there, (double)ON_NS_MIN), (double)ON_NS_MAX);

    struct kiln_wait_spans spans = {
        .there = there, .on_ns = (uint64_t)on, .off_ns = (uint64_t)(on * (1 - there) / there)};

    change_spans(control, spans, now_ns);
    control->turn_ns = now_ns + span(control, control->on ? spans.on_ns : spans.off_ns);
}

bool kiln_wait_control_turn(struct kiln_wait_control *control, uint64_t now_ns)
{
    while (now_ns >= control->turn_ns) {
        control->on = !control->on;
        control->turn_ns =
            now_ns + span(control, control->on ? control->spans.on_ns : control->spans.off_ns);
    }
    return control->on;
}

double kiln_wait_control_weight(const struct kiln_wait_control *control, uint64_t seen_ns,
                                uint64_t between_ns)
{
    const struct kiln_wait_spans *spans =
        seen_ns < control->since_ns ? &control->before : &control->spans;
    double f = spans->there, rate;

    if (f >= 1)
        return 1;
    rate = 1 / (double)spans->on_ns + 1 / (double)spans->off_ns;
    return 1 / (f * (f + (1 - f) * exp(-rate * (double)between_ns)));
}

/* ---- budget ---- */

void kiln_wait_control_init(struct kiln_wait_control *control, double share, uint64_t base_ns,
                            uint64_t seed)
{
    *control = (struct kiln_wait_control){
        .random = seed ? seed : 1, .looked_ns = UINT64_MAX, .take_ns = TAKE_NS};
    always_there(control, 0);
    kiln_wait_control_set(control, share, base_ns);
}

void kiln_wait_control_set(struct kiln_wait_control *control, double share, uint64_t base_ns)
{
    control->share = share;
    control->base_ns = base_ns;
    if (share <= 0 || control->period_ns < base_ns)
        control->period_ns = base_ns;
    if (share <= 0)
        always_there(control, control->looked_ns);
}

static void fit_cost(struct kiln_wait_control *control, const struct kiln_wait_tally *tally)
{
    double samples = (double)(tally->samples - control->last.samples);
    double cpu_ns = (double)(tally->cpu_ns - control->last.cpu_ns);
    double each = samples > 0 ? TAKE_NS / 2 + cpu_ns / samples : control->take_ns;

    each = fmin(fmax(each, TAKE_NS), TAKE_NS_MAX);
    control->take_ns += SMOOTH_COST * (each - control->take_ns);
}

static void fit_period(struct kiln_wait_control *control, double taken_per_s)
{
    double most = control->share / 2 * (double)KILN_NS_PER_S / control->take_ns;
    double period = (double)control->period_ns;

    if (taken_per_s > most)
        period *= fmin(taken_per_s / most, STEP_UP_MAX);
    else if (taken_per_s < most * SPARSE)
        period /= STEP_DOWN;
    period = fmin(period, (double)PERIOD_NS_MAX);
    control->period_ns = (uint64_t)fmax(period, (double)control->base_ns);
}

static void fit_spans(struct kiln_wait_control *control, uint64_t now_ns)
{
    double cost = control->switches_per_s * HOOK_NS / (double)KILN_NS_PER_S;
    double there = cost > 0 ? control->share / 2 / cost : 1;
    double least = (double)ON_NS_MIN / (double)(ON_NS_MIN + OFF_NS_MAX);

    there = fmax(there, least);
    if (there >= ALWAYS)
        always_there(control, now_ns);
    else if (there < control->spans.there * STEADY_FROM || there > control->spans.there * STEADY_TO)
        set_spans(control, there, now_ns);
}

void kiln_wait_control_look(struct kiln_wait_control *control, uint64_t now_ns,
                            const struct kiln_wait_tally *tally)
{
    uint64_t there_ns = tally->there_ns - control->last.there_ns;
    double seconds = (double)(now_ns - control->looked_ns) / (double)KILN_NS_PER_S;
    double taken = (double)(tally->taken - control->last.taken);
    double switches = (double)(tally->switches - control->last.switches);
    bool first = control->looked_ns == UINT64_MAX;

    if (!first && (now_ns <= control->looked_ns || (there_ns < SEEN_NS_MIN && control->on)))
        return;
    if (!first)
        fit_cost(control, tally);
    control->looked_ns = now_ns;
    control->last = *tally;
    if (first || control->share <= 0)
        return;
    fit_period(control, taken / seconds);
    if (there_ns < SEEN_NS_MIN)
        return;
    switches *= (double)KILN_NS_PER_S / (double)there_ns;
    control->switches_per_s =
        control->switches_per_s > 0
            ? control->switches_per_s + SMOOTH * (switches - control->switches_per_s)
            : switches;
    fit_spans(control, now_ns);
}

uint64_t kiln_wait_control_cost_ns(uint64_t switches)
{
    return (uint64_t)((double)switches * HOOK_NS);
}
