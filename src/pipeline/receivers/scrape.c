/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few threads share the list of tasks: each takes the one that is due first, works on it, and
 * puts it back for the next interval.  A thread that fetches a CPU profile waits for as long as
 * that takes, so there are as many threads as tasks, up to a limit; they sleep nearly all the time.
 */
#include "pipeline/receivers/scrape.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "pipeline/receivers/scrape_int.h"

enum { THREADS_MAX = 64, STACK_BYTES = 256 << 10 };

#define MEMORY_MAX ((size_t)64 << 20) /* of jobs and tasks */

int kiln_scraper_new(const struct kiln_scraper_opts *opts, struct kiln_scraper **ret_scraper,
                     struct kiln_err *err)
{
    struct kiln_scraper *scraper = kiln_calloc(1, sizeof(*scraper));
    int r;

    if (!scraper)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    scraper->opts = *opts;
    scraper->budget.limit = MEMORY_MAX;
    kiln_arena_init(&scraper->arena, &scraper->budget);
    pthread_mutex_init(&scraper->lock, NULL);
    kiln_cond_init(&scraper->wake);
    r = kiln_scrape_read(scraper, err);
    if (r == 0)
        r = kiln_scrape_state_open(scraper, err);
    if (r < 0) {
        kiln_scraper_free(scraper);
        return r;
    }
    *ret_scraper = scraper;
    return 0;
}

void kiln_scraper_free(struct kiln_scraper *scraper)
{
    if (!scraper)
        return;
    kiln_array_free(&scraper->budget, (void **)&scraper->tasks, &scraper->cap_tasks,
                    sizeof(*scraper->tasks));
    kiln_arena_done(&scraper->arena);
    pthread_cond_destroy(&scraper->wake);
    pthread_mutex_destroy(&scraper->lock);
    kiln_free(scraper->threads);
    kiln_free(scraper);
}

int kiln_scrape_check(const struct kiln_node *jobs, struct kiln_err *err)
{
    struct kiln_scraper_opts opts = {.jobs = jobs};
    struct kiln_scraper *scraper;
    int r = kiln_scraper_new(&opts, &scraper, err);

    if (r == 0)
        kiln_scraper_free(scraper);
    return r;
}

void kiln_scraper_once(struct kiln_scraper *scraper)
{
    for (uint32_t i = 0; i < scraper->n_tasks; i++)
        kiln_scrape_run(scraper, &scraper->tasks[i]);
}

/* ---- the schedule ---- */

/* The task that is due first among those nobody works on; NULL: all are taken. */
static struct kiln_scrape_task *first_due(struct kiln_scraper *scraper)
{
    struct kiln_scrape_task *first = NULL;

    for (uint32_t i = 0; i < scraper->n_tasks; i++) {
        struct kiln_scrape_task *task = &scraper->tasks[i];

        if (!task->busy && (!first || task->next_ns < first->next_ns))
            first = task;
    }
    return first;
}

static void wait_until(struct kiln_scraper *scraper, uint64_t mono_ns)
{
    struct timespec until = {(time_t)(mono_ns / KILN_NS_PER_S), (long)(mono_ns % KILN_NS_PER_S)};

    pthread_cond_timedwait(&scraper->wake, &scraper->lock, &until);
}

/* Moves a task on by whole intervals, so that it keeps its place among the others. */
static void put_back(struct kiln_scrape_task *task, uint64_t now)
{
    uint64_t interval = task->job->interval_ns, missed;

    task->next_ns += interval;
    if (task->next_ns <= now) {
        missed = (now - task->next_ns) / interval + 1;
        kiln_metric_add(task->late, (int64_t)missed);
        task->next_ns += missed * interval;
    }
    task->busy = false;
}

static void *work(void *arg)
{
    struct kiln_scraper *scraper = arg;

    pthread_mutex_lock(&scraper->lock);
    while (!scraper->stop) {
        struct kiln_scrape_task *task = first_due(scraper);
        uint64_t now = kiln_clock_mono_ns();

        if (!task || task->next_ns > now) {
            wait_until(scraper, task ? task->next_ns : now + KILN_NS_PER_S);
            continue;
        }
        task->busy = true;
        pthread_mutex_unlock(&scraper->lock);
        kiln_scrape_run(scraper, task);
        pthread_mutex_lock(&scraper->lock);
        put_back(task, kiln_clock_mono_ns());
    }
    pthread_mutex_unlock(&scraper->lock);
    return NULL;
}

/* Each task has its own moment in the interval, the same for as long as there are no more tasks. */
static void spread(struct kiln_scraper *scraper)
{
    uint64_t now = kiln_clock_mono_ns();

    for (uint32_t i = 0; i < scraper->n_tasks; i++) {
        struct kiln_scrape_task *task = &scraper->tasks[i];

        task->next_ns = now + task->job->interval_ns / scraper->n_tasks * i;
    }
}

int kiln_scraper_start(struct kiln_scraper *scraper, struct kiln_err *err)
{
    uint32_t wanted = scraper->n_tasks < THREADS_MAX ? scraper->n_tasks : THREADS_MAX;
    pthread_attr_t attr;
    int r = 0;

    scraper->threads = kiln_calloc(wanted, sizeof(*scraper->threads));
    if (!scraper->threads)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    spread(scraper);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (uint32_t i = 0; i < wanted && r == 0; i++) {
        r = -pthread_create(&scraper->threads[i], &attr, work, scraper);
        scraper->n_threads += r == 0;
        if (r == 0)
            pthread_setname_np(scraper->threads[i], "kiln-scrape");
    }
    pthread_attr_destroy(&attr);
    return r < 0 ? kiln_err_set(err, r, NULL, "no thread for scraping: %s", kiln_err_text(r)) : 0;
}

void kiln_scraper_stop(struct kiln_scraper *scraper)
{
    pthread_mutex_lock(&scraper->lock);
    scraper->stop = true;
    pthread_cond_broadcast(&scraper->wake);
    pthread_mutex_unlock(&scraper->lock);
    for (uint32_t i = 0; i < scraper->n_threads; i++)
        pthread_join(scraper->threads[i], NULL);
    scraper->n_threads = 0;
}
