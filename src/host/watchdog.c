/* SPDX-License-Identifier: Apache-2.0 */
#include "host/watchdog.h"

#include <math.h>

#include "base/clock.h"

#define SAVE_NS     (60 * (double)KILN_NS_PER_S)  /* of wall time: the most that is saved up */
#define START_NS    (300 * (double)KILN_NS_PER_S) /* the same of a start, which is paid once */
#define STEP_NS     (5 * KILN_NS_PER_S)           /* between two steps down */
#define REST_NS     (30 * KILN_NS_PER_S)          /* before a step up */
#define RETRY_NS    (300 * KILN_NS_PER_S)         /* before one that may prove too much */
#define MEMORY_ROOM 0.9 /* of the limit: above, caches go; below, it is well again */

/* How much of what is used of late is the last look's. */
static const double fresh = 0.2;

void kiln_watchdog_init(struct kiln_watchdog *dog, double cpu_share, uint64_t memory_bytes,
                        uint64_t now_ns)
{
    *dog = (struct kiln_watchdog){.cpu_share = cpu_share,
                                  .memory_bytes = memory_bytes,
                                  .saved_ns = cpu_share * START_NS,
                                  .looked_ns = now_ns};
}

static void step_down(struct kiln_watch_ladder *ladder, const struct kiln_watch_use *use)
{
    if (ladder->changed_ns && use->now_ns - ladder->changed_ns < STEP_NS)
        return;
    ladder->changed_ns = use->now_ns;
    if (use->hz > 1)
        ladder->lowered++;
    else
        ladder->stopped = true;
}

static void step_up(struct kiln_watch_ladder *ladder, uint64_t now_ns, uint64_t rest_ns)
{
    if ((!ladder->lowered && !ladder->stopped) || now_ns - ladder->changed_ns < rest_ns)
        return;
    ladder->changed_ns = now_ns;
    if (ladder->stopped)
        ladder->stopped = false;
    else
        ladder->lowered--;
}

/* Saved up and spent since the last look. */
static void count(struct kiln_watchdog *dog, const struct kiln_watch_use *use)
{
    double passed_ns = (double)(use->now_ns - dog->looked_ns);
    double used_ns = use->cpu_ns > dog->cpu_ns ? (double)(use->cpu_ns - dog->cpu_ns) : 0;
    double most_ns = fmax(dog->cpu_share * SAVE_NS, dog->saved_ns);

    if (passed_ns > 0 && dog->cpu_ns) /* the start is no share of anything */
        dog->used += (used_ns / passed_ns - dog->used) * fresh;
    dog->saved_ns = fmin(dog->saved_ns + dog->cpu_share * passed_ns - used_ns, most_ns);
    dog->looked_ns = use->now_ns;
    dog->cpu_ns = use->cpu_ns;
}

static void look_at_cpu(struct kiln_watchdog *dog, const struct kiln_watch_use *use)
{
    struct kiln_watch_ladder *ladder = &dog->cpu;
    bool rich = dog->saved_ns > dog->cpu_share * SAVE_NS / 2;

    if (dog->saved_ns < 0 && dog->used > dog->cpu_share && !ladder->stopped)
        step_down(ladder, use);
    else if (rich && ladder->stopped)
        step_up(ladder, use->now_ns, 0);
    else if (rich && dog->used * 2 < dog->cpu_share)
        step_up(ladder, use->now_ns, REST_NS);
    else if (rich && dog->used < dog->cpu_share)
        step_up(ladder, use->now_ns, RETRY_NS);
}

static bool look_at_memory(struct kiln_watchdog *dog, const struct kiln_watch_use *use)
{
    struct kiln_watch_ladder *ladder = &dog->memory;
    bool near = (double)use->memory_bytes > (double)dog->memory_bytes * MEMORY_ROOM;
    bool trims = near && !dog->trimmed;

    if (trims)
        ladder->changed_ns = use->now_ns;
    else if (use->memory_bytes > dog->memory_bytes && !ladder->stopped)
        step_down(ladder, use);
    else if (!near)
        step_up(ladder, use->now_ns, REST_NS);
    dog->trimmed = near || ladder->lowered || ladder->stopped;
    return trims;
}

bool kiln_watchdog_look(struct kiln_watchdog *dog, const struct kiln_watch_use *use)
{
    count(dog, use);
    if (dog->cpu_share > 0)
        look_at_cpu(dog, use);
    return dog->memory_bytes && look_at_memory(dog, use);
}

uint32_t kiln_watchdog_lowered(const struct kiln_watchdog *dog)
{
    return dog->cpu.lowered > dog->memory.lowered ? dog->cpu.lowered : dog->memory.lowered;
}

bool kiln_watchdog_stopped(const struct kiln_watchdog *dog)
{
    return dog->cpu.stopped || dog->memory.stopped;
}

enum kiln_watch_why kiln_watchdog_why(const struct kiln_watchdog *dog)
{
    if (dog->memory.stopped || dog->memory.lowered > dog->cpu.lowered)
        return KILN_WATCH_MEMORY;
    return dog->cpu.stopped || dog->cpu.lowered ? KILN_WATCH_CPU : KILN_WATCH_WELL;
}

const char *kiln_watch_word(enum kiln_watch_why why)
{
    static const char *const words[] = {"", "cpu", "memory"};

    return words[why];
}
