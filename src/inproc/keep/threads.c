/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads as they are now, by stack and name: threads/count.  They are copied under the keeper's
 * lock and become samples without it.
 */
#include <stdlib.h>
#include <string.h>

#include "inproc/clock.h"
#include "inproc/keep/keep_int.h"
#include "inproc/keep/making.h"
#include "inproc/keep/threads_now.h"
#include "inproc/thread/thread.h"

struct list {
    struct kiln_in_thread_now *threads;
    uint32_t n, cap;
    struct kiln_budget budget;
};

static void see(const struct kiln_in_thread_now *thread, void *arg)
{
    struct list *list = arg;

    if (kiln_grow(&list->budget, (void **)&list->threads, &list->cap, (uint64_t)list->n + 1,
                  sizeof(*thread), 1 << 16) < 0)
        kiln_in_lost_anywhere(KILN_IN_LOST_THREADS, 1);
    else
        list->threads[list->n++] = *thread;
}

static int by_identity(const void *a, const void *b)
{
    const struct kiln_in_thread_now *x = a, *y = b;

    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->labels != y->labels)
        return x->labels < y->labels ? -1 : 1;
    if (x->seen != y->seen)
        return x->seen < y->seen ? -1 : 1;
    if (x->sleeps != y->sleeps)
        return x->sleeps ? -1 : 1;
    return strncmp(x->name, y->name, sizeof(x->name));
}

static void add(struct kiln_in_making *m, uint32_t profile, const struct kiln_in_thread_now *thread,
                int64_t count)
{
    char name[KILN_IN_THREAD_NAME_MAX + 1] = "";
    struct kiln_in_label more[] = {{"thread.name", name},
                                   {"thread.state", thread->sleeps ? "blocked" : NULL},
                                   {"kiln.thread.seen", kiln_in_seen_word(thread->seen)}};
    uint32_t stack = kiln_in_making_stack(m, thread->stack);

    memcpy(name, thread->name, KILN_IN_THREAD_NAME_MAX);
    kiln_builder_add_sample(m->b, profile, stack, kiln_in_making_attrs(m, thread->labels, more, 3),
                            0, &count, NULL, 1);
}

void kiln_in_threads_copy(struct kiln_in_thread_list *ret_list)
{
    struct list list = {.budget = {.limit = (size_t)8 << 20}};

    kiln_in_keep_hold();
    if (kiln_in_threads_now(see, &list) < 0)
        list.n = 0;
    kiln_in_keep_release();
    *ret_list = (struct kiln_in_thread_list){list.threads, list.n};
}

void kiln_in_threads_add(struct kiln_in_making *m, const struct kiln_in_thread_list *list)
{
    struct kiln_in_type type = {"threads", "count", "threads", "count", 1};
    uint32_t profile;

    kiln_in_making_scope(m, NULL);
    profile = kiln_in_making_profile(m, &type);
    if (list->n)
        qsort(list->threads, list->n, sizeof(*list->threads), by_identity);
    for (uint32_t i = 0, next; i < list->n; i = next) {
        for (next = i + 1; next < list->n; next++) {
            if (by_identity(&list->threads[i], &list->threads[next]) != 0)
                break;
        }
        add(m, profile, &list->threads[i], next - i);
    }
}

int kiln_in_keep_threads(struct kiln_batch **ret_batch, struct kiln_err *err)
{
    uint64_t now_ns = kiln_in_clock_ns(CLOCK_REALTIME);
    struct kiln_in_thread_list list;
    struct kiln_in_making m;
    int r;

    kiln_in_threads_copy(&list);
    r = kiln_in_making_init(&m, now_ns, now_ns);
    if (r == 0) {
        kiln_in_threads_add(&m, &list);
        r = kiln_in_making_done(&m, ret_batch, err);
    }
    kiln_free(list.threads);
    return r;
}
