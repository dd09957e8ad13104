/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On every kernel perf_event_open() refuses events of a processor to a process without capabilities
 * with EACCES while kernel.perf_event_paranoid is above 0: the child must open them.
 */
#include "host/opener.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/capability.h"
#include "test.h"

#define NEEDED (KILN_CAP(CAP_SYS_ADMIN) | KILN_CAP(CAP_PERFMON))

static const struct perf_event_attr dummy = {.type = PERF_TYPE_SOFTWARE,
                                             .config = PERF_COUNT_SW_DUMMY,
                                             .size = sizeof(dummy),
                                             .disabled = 1};

/* What the child has in effect. */
static uint64_t child_capabilities(void)
{
    unsigned long long set = 0;
    char path[64], line[128];
    int pid = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    file = fopen(path, "r");
    if (!file || fscanf(file, "%d", &pid) != 1)
        fail_msg("there is no child");
    fclose(file);
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "CapEff: %llx", &set) != 1)
        ;
    if (file)
        fclose(file);
    return set;
}

TEST(opener, events_are_opened_for_a_process_without_capabilities)
{
    const uint64_t had = kiln_capabilities();
    struct perf_event_attr other = dummy;
    int fd;

    if ((had & NEEDED) != NEEDED)
        SKIP("no privilege to open events");
    CHECK_OK(kiln_opener_start());
    CHECK_OK(kiln_capabilities_effect(0));
    for (int round = 0; round < 3; round++) {
        fd = kiln_perf_open(&dummy, 0);
        if (fd < 0)
            fail_msg("%s", strerror(-fd));
        CHECK_OK(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
        close(fd);
    }
    CHECK_EQ(child_capabilities(), NEEDED);
    other.type = PERF_TYPE_HARDWARE; /* of which nothing is known here */
    fd = kiln_perf_open(&other, 0);
    CHECK(fd == -EINVAL ||
          fd == -ENOENT); /* the child's answer, or that of a kernel without a PMU */
    CHECK(kiln_perf_open(&dummy, 1 << 20) < 0);
    CHECK_OK(kiln_capabilities_effect(had));
    fd = kiln_perf_open(&dummy, 0);
    CHECK(fd >= 0);
    close(fd);
}

TEST(opener, trying_whether_it_is_needed_leaves_capabilities_as_they_are)
{
    const uint64_t had = kiln_capabilities();

    (void)kiln_opener_is_needed();
    CHECK_EQ(kiln_capabilities(), had);
    CHECK_OK(kiln_capabilities_effect(had & ~KILN_CAP(CAP_SYS_ADMIN)));
    CHECK(!kiln_opener_is_needed());
    CHECK_OK(kiln_capabilities_effect(had));
}
