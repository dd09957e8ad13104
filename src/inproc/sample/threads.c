/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/threads.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/clock.h"
#include "inproc/sample/cpu.h"
#include "inproc/sample/draw.h"
#include "inproc/sample/rate.h"
#include "inproc/start.h"
#include "inproc/thread/ring.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

enum { SAMPLES_A_SECOND = 500 };

static _Atomic int32_t own[KILN_IN_OWN_MAX];
/* Each is a sample, but where there are very many. */
static struct kiln_in_rate creations;

void kiln_in_thread_began(void *(*run)(void *))
{
    struct kiln_in_thread *thread = kiln_in_enter();

    if (!thread)
        return;
    thread->began_at = (uint64_t)(uintptr_t)run;
    kiln_in_leave(thread);
    kiln_in_cpu_thread_begins();
}

void kiln_in_thread_created(void)
{
    struct kiln_in_thread *thread;
    struct kiln_in_record record;
    struct kiln_in_drawn drawn;

    if (!kiln_in_wants(KILN_PROFILE_THREADS))
        return;
    thread = kiln_in_enter();
    if (!thread)
        return;
    kiln_in_record_begin(&record, KILN_IN_CREATE);
    if (kiln_in_draw(thread, &creations, 1, record.at_ns, &drawn)) {
        record.stack = kiln_in_stack_here(thread);
        record.count = drawn.count;
        record.value = drawn.value;
        (void)kiln_in_ring_put(thread, &record);
    }
    kiln_in_leave(thread);
}

void kiln_in_thread_is_ours(bool is)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);

    for (unsigned i = 0; i < KILN_IN_OWN_MAX; i++) {
        int32_t before = is ? 0 : tid;

        if (atomic_compare_exchange_strong(&own[i], &before, is ? tid : 0))
            return;
    }
}

bool kiln_in_thread_id_is_ours(int32_t tid)
{
    for (unsigned i = 0; i < KILN_IN_OWN_MAX; i++) {
        if (atomic_load(&own[i]) == tid)
            return true;
    }
    return false;
}

unsigned kiln_in_threads_of_ours(int32_t ret_ids[KILN_IN_OWN_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < KILN_IN_OWN_MAX; i++) {
        ret_ids[n] = atomic_load(&own[i]);
        n += ret_ids[n] != 0;
    }
    return n;
}

/* ---- the part ---- */

int kiln_in_threads_start(void)
{
    kiln_in_rate_init(&creations, 1, SAMPLES_A_SECOND, kiln_in_now_ns());
    return 0;
}

void kiln_in_threads_stop(void)
{
}

void kiln_in_threads_forked(void)
{
    for (unsigned i = 0; i < KILN_IN_OWN_MAX; i++)
        atomic_store(&own[i], 0);
}
