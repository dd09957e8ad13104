/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the context of a process is looked for.  Reading its mappings for the first time tells where
 * it is at no cost.  Where it was not there then, or where mappings are known from events, which do
 * not tell of it, /proc is asked: 0.2 s after the first sample, for one that is known has most
 * often not begun to publish, then after four times as long each time, up to five minutes: for a
 * short process this is most of what knowing it costs.  For the same reason those of an executable
 * of which none has published anything so far are given three seconds at once.  Once it is found
 * only its header is read, every five seconds.  It is not worth waking up for where the last few
 * processes of the executable said nothing or ended before.
 *
 * Time is that of samples: nothing is asked of a process that does not run.
 */
#include <errno.h>

#include "base/clock.h"
#include "host/process_int.h"

#define FIRST_NS  (200 * KILN_NS_PER_MS)
#define MOST_NS   (300 * KILN_NS_PER_S)
#define AGAIN_NS  (5 * KILN_NS_PER_S)
#define SILENT_NS (16 * FIRST_NS)
enum { LONGER = 4, SILENT = 4, BRIEF = 4 };

void kiln_proc_forget_context(struct kiln_proc *p)
{
    kiln_process_context_unref(p->pub.context);
    p->pub.context = NULL;
    p->context_at = p->context_due_ns = p->context_wait_ns = 0;
}

/* The next time, where there was none. */
static void put_off(struct kiln_proc *p)
{
    p->context_wait_ns = p->context_wait_ns ? p->context_wait_ns * LONGER : FIRST_NS;
    if (p->context_wait_ns > MOST_NS)
        p->context_wait_ns = MOST_NS;
    p->context_due_ns = p->sample_ns + p->context_wait_ns;
    p->context_at = 0;
}

static struct kiln_object *executable_of(const struct kiln_proc *p)
{
    return p->pub.identity ? (struct kiln_object *)p->pub.identity->executable : NULL;
}

/* Whether it is given more time: others of the same executable said nothing. */
static bool may_wait(struct kiln_proc *p)
{
    const struct kiln_object *executable = executable_of(p);

    if (!executable || executable->silent < SILENT || p->context_wait_ns >= SILENT_NS)
        return false;
    p->context_wait_ns = SILENT_NS / LONGER;
    put_off(p);
    return true;
}

static void note(const struct kiln_proc *p, bool published)
{
    struct kiln_object *executable = executable_of(p);

    if (executable && published)
        executable->silent = 0;
    else if (executable && executable->silent < SILENT && p->context_wait_ns == FIRST_NS)
        executable->silent++;
}

bool kiln_process_may_publish_soon(const struct kiln_process *process)
{
    const struct kiln_object *executable = process->identity ? process->identity->executable : NULL;

    if (process->gone)
        return false;
    return !executable || (executable->brief < BRIEF && executable->silent < SILENT);
}

void kiln_proc_note_end(const struct kiln_proc *p)
{
    struct kiln_object *executable = executable_of(p);

    if (executable && executable->brief < BRIEF && p->context_wait_ns == FIRST_NS &&
        !p->pub.context)
        executable->brief++;
}

/* Reads what is at the place that is known.  True: it is another one, or there is none any more. */
static bool read_there(struct kiln_proc *p, int dir)
{
    struct kiln_process_context *had = p->pub.context, *fresh = NULL;
    int r = kiln_process_context_read(dir, p->context_at, had ? had->published_ns : 0, &fresh);

    if (r == -ENOENT || (r < 0 && !had)) {
        put_off(p);
        p->pub.context = NULL;
    } else {
        p->context_due_ns = p->sample_ns + AGAIN_NS;
        p->context_wait_ns = 0;
    }
    if (r > 0) {
        p->pub.context = fresh;
        note(p, true);
    }
    if (had == p->pub.context)
        return false;
    kiln_process_context_unref(had);
    return true;
}

bool kiln_proc_look_for_context(struct kiln_processes *all, struct kiln_proc *p)
{
    bool first = !p->context_due_ns;
    int dir;

    if (p == all->kernel || p->pub.gone || p->sample_ns < p->context_due_ns)
        return false;
    if (first && p->set)
        p->context_at = p->set->context;
    if (first && !p->context_at) {
        put_off(p);
        return false;
    }
    if (executable_of(p))
        executable_of(p)->brief = 0;
    if (!p->context_at && may_wait(p))
        return false;
    if (kiln_proc_open(all, p, &dir) < 0 ||
        (!p->context_at && kiln_process_context_find(dir, &p->context_at) < 0)) {
        note(p, false);
        put_off(p);
        return false;
    }
    return read_there(p, dir);
}
