/* SPDX-License-Identifier: Apache-2.0 */
#include "base/meminfo.h"

#include <sys/stat.h>

#include "folder.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)

/* A copy of /proc/self/cgroup and of the files below /sys/fs/cgroup, in a folder. */
struct host {
    char folder[FOLDER_NAME], proc[FOLDER_NAME + 8], sys[FOLDER_NAME + 8];
};

static void write_file(const struct host *host, const char *path, const char *text)
{
    char full[256];
    FILE *file;

    snprintf(full, sizeof(full), "%s%s", host->folder, path);
    for (char *slash = full + strlen(host->folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    file = fopen(full, "w");
    CHECK(file);
    fputs(text, file);
    CHECK_OK(fclose(file));
}

static void begin(struct host *host, const char *groups)
{
    folder_make(host->folder);
    snprintf(host->proc, sizeof(host->proc), "%s/proc", host->folder);
    snprintf(host->sys, sizeof(host->sys), "%s/sys", host->folder);
    if (groups)
        write_file(host, "/proc/self/cgroup", groups);
}

/* Compares and deletes the folder. */
static void end_with(const struct host *host, uint64_t limit)
{
    uint64_t found = kiln_meminfo_group_limit(host->proc, host->sys);

    folder_remove(host->folder);
    if (found != limit)
        fail_msg("the limit is %llu, not %llu", (unsigned long long)found,
                 (unsigned long long)limit);
}

TEST(meminfo, a_group_of_v2_is_limited)
{
    struct host host;

    begin(&host, "0::/system.slice/kiln.service\n");
    write_file(&host, "/sys/system.slice/kiln.service/memory.max", "134217728\n");
    write_file(&host, "/sys/system.slice/kiln.service/memory.high", "max\n");
    write_file(&host, "/sys/system.slice/memory.max", "max\n");
    end_with(&host, 128 * MIB);
}

TEST(meminfo, a_group_of_v2_is_throttled_above_memory_high)
{
    struct host host;

    begin(&host, "0::/kiln\n");
    write_file(&host, "/sys/kiln/memory.max", "134217728\n");
    write_file(&host, "/sys/kiln/memory.high", "67108864\n");
    end_with(&host, 64 * MIB);
}

TEST(meminfo, an_ancestor_limits_a_group)
{
    struct host host;

    begin(&host, "0::/a/b/c\n");
    write_file(&host, "/sys/a/b/c/memory.max", "536870912\n");
    write_file(&host, "/sys/a/b/memory.max", "max\n");
    write_file(&host, "/sys/a/memory.max", "268435456\n");
    end_with(&host, 256 * MIB);
}

TEST(meminfo, a_group_of_v1_is_limited_on_any_line)
{
    struct host host;

    begin(&host, "11:pids:/x\n5:cpu,memory:/jobs/kiln\n1:name=systemd:/x\n");
    write_file(&host, "/sys/memory/jobs/kiln/memory.limit_in_bytes", "134217728\n");
    write_file(&host, "/sys/memory/memory.limit_in_bytes", "9223372036854771712\n");
    end_with(&host, 128 * MIB);
}

TEST(meminfo, an_ancestor_limits_a_group_of_v1)
{
    struct host host;

    begin(&host, "5:memory:/jobs/kiln\n");
    write_file(&host, "/sys/memory/jobs/kiln/memory.limit_in_bytes", "9223372036854771712\n");
    write_file(&host, "/sys/memory/jobs/memory.limit_in_bytes", "134217728\n");
    end_with(&host, 128 * MIB);
}

TEST(meminfo, the_hybrid_layout_has_limits_of_both)
{
    struct host host;

    begin(&host, "4:memory:/jobs\n0::/unit\n");
    write_file(&host, "/sys/memory/jobs/memory.limit_in_bytes", "268435456\n");
    write_file(&host, "/sys/unified/unit/memory.max", "134217728\n");
    end_with(&host, 128 * MIB);

    begin(&host, "4:memory:/jobs\n0::/\n");
    write_file(&host, "/sys/memory/jobs/memory.limit_in_bytes", "134217728\n");
    end_with(&host, 128 * MIB);
}

/* The mount shows the container's group, /proc the path that the group has on the host. */
TEST(meminfo, a_container_sees_its_limit_at_the_mount)
{
    struct host host;

    begin(&host, "4:memory:/docker/0123456789ab\n");
    write_file(&host, "/sys/memory/memory.limit_in_bytes", "134217728\n");
    end_with(&host, 128 * MIB);

    begin(&host, "0::/\n");
    write_file(&host, "/sys/memory.max", "134217728\n");
    end_with(&host, 128 * MIB);

    begin(&host, NULL);
    write_file(&host, "/sys/memory.max", "134217728\n");
    end_with(&host, 128 * MIB);
}

TEST(meminfo, files_that_make_no_sense_are_no_limit)
{
    struct host host;

    begin(&host,
          "\n:\n::\n0:\n0::\n0::x\n5:memory\n5:memory:\n5:memory:y\n:::::\n5:memory:/../..\n");
    write_file(&host, "/sys/memory/memory.limit_in_bytes", "\n");
    write_file(&host, "/sys/memory.max", "much\n");
    end_with(&host, UINT64_MAX);
}

TEST(meminfo, the_machine_has_a_limit)
{
    CHECK(kiln_meminfo_total() > MIB);
    CHECK(kiln_meminfo_used() > 0);
}
