/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/attr.h"
#include "host/percpu.h"

TEST(percpu, lists_of_processors_are_read)
{
    static bool online[KILN_CPUS_MAX];
    CHECK_EQ(kiln_cpus_parse("0-2,5\n", online), 6);
    CHECK(online[0] && online[2] && !online[3] && online[5]);
    CHECK_EQ(kiln_cpus_parse("0", online), 1);
    const char *bad[] = {"", "x", "3-1", "0-8192", "1 2", "-1", "0-", ",1", "99999999999999999999"};
    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++)
        CHECK_EQ(kiln_cpus_parse(bad[i], online), KILN_E_MALFORMED);
}

static int attach(void *context, uint32_t cpu, int fd)
{
    (void)cpu, (void)fd;
    ++*(uint32_t *)context;
    return 0;
}

static void look_after_a_while(struct kiln_percpu *events)
{
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    events->rescan_ns = 0;
    CHECK_OK(kiln_percpu_rescan(events));
}

/* As after a sleep of the machine: the descriptor is there, and its event stands still. */
TEST(percpu, an_event_that_stands_still_while_others_go_on_is_opened_anew)
{
    uint32_t n_attached = 0, n;
    struct kiln_percpu events = {
        .attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .exclude_kernel = 1},
        .attach = attach,
        .context = &n_attached};
    int r = kiln_percpu_open(&events);

    if (r == -EPERM || r == -EACCES)
        SKIP("events of processors need a privilege");
    CHECK_OK(r);
    n = kiln_percpu_count(&events);
    look_after_a_while(&events);
    look_after_a_while(&events);
    CHECK_EQ(n_attached, n);
    CHECK_EQ(ioctl(events.fds[0], PERF_EVENT_IOC_DISABLE, 0), 0);
    look_after_a_while(&events); /* it may have gone on for a moment */
    look_after_a_while(&events);
    CHECK_EQ(events.opened_again, n > 1);
    CHECK_EQ(n_attached, n + (n > 1));
    for (uint32_t cpu = 0; cpu < events.n; cpu++)
        CHECK_EQ(ioctl(events.fds[cpu], PERF_EVENT_IOC_DISABLE, 0), 0);
    look_after_a_while(&events);
    look_after_a_while(&events);
    CHECK_EQ(events.opened_again, n > 1); /* all stand: nobody is to blame */
    kiln_percpu_close(&events);
}
