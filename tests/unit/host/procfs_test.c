/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "host/procfs.h"
#include "test.h"

TEST(procfs, a_line_of_maps_with_a_file)
{
    struct kiln_procfs_map map;

    CHECK_OK(kiln_procfs_parse_map(
        KILN_STR("7f1c2a000000-7f1c2a021000 r-xp 0001f000 fe:00 247026          /usr/a b"), &map));
    CHECK_EQ(map.start, 0x7f1c2a000000);
    CHECK_EQ(map.end, 0x7f1c2a021000);
    CHECK_EQ(map.offset, 0x1f000);
    CHECK_EQ(map.major, 0xfe);
    CHECK_EQ(map.minor, 0);
    CHECK_EQ(map.inode, 247026);
    CHECK(map.executable);
    CHECK_STR(map.path, "/usr/a b");
}

TEST(procfs, a_line_of_maps_without_a_file)
{
    struct kiln_procfs_map map;

    CHECK_OK(kiln_procfs_parse_map(KILN_STR("1000-2000 rw-p 00000000 00:00 0 "), &map));
    CHECK(!map.executable);
    CHECK_STR(map.path, "");
}

TEST(procfs, lines_that_are_none_of_maps)
{
    static const char *const lines[] = {
        "",
        "1000",
        "1000-2000",
        "2000-1000 r-xp 0 0:0 0",
        "1000-1000 r-xp 0 0:0 0",
        "x-2000 r-xp 0 0:0 0",
        "1000-2000 r- 0 0:0 0",
        "1000-2000 r-xp 0 00 0",
        "1000-2000 r-xp 0 0:0 -1",
        "11111111111111111-2 r-xp 0 0:0 0",
        "1000-2000 r-xp 0 0:0 99999999999999999999",
    };
    struct kiln_procfs_map map;

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        CHECK_EQ(kiln_procfs_parse_map(kiln_str_of(lines[i]), &map), KILN_E_MALFORMED);
}

TEST(procfs, a_path_is_as_the_file_system_has_it)
{
    char path[8];

    CHECK(kiln_procfs_unescape(KILN_STR("/a\\012b"), path, sizeof(path)));
    CHECK_TEXT(path, "/a\nb");
    CHECK(kiln_procfs_unescape(KILN_STR("/a\\01"), path, sizeof(path)));
    CHECK_TEXT(path, "/a\\01");
    CHECK(kiln_procfs_unescape(KILN_STR("1234567"), path, sizeof(path)));
    CHECK(!kiln_procfs_unescape(KILN_STR("12345678"), path, sizeof(path)));
    CHECK(!kiln_procfs_unescape(KILN_STR("a\0b"), path, sizeof(path)));
    CHECK_STR(kiln_procfs_undelete(KILN_STR("/a (deleted)")), "/a");
    CHECK_STR(kiln_procfs_undelete(KILN_STR("/a (deleted) ")), "/a (deleted) ");
    CHECK_STR(kiln_procfs_undelete(KILN_STR(" (deleted)")), " (deleted)");
}

TEST(procfs, a_name_with_brackets_does_not_confuse_stat)
{
    struct kiln_procfs_stat stat;

    CHECK_OK(kiln_procfs_parse_stat(
        KILN_STR("7 (a) R 9 (b) S 3 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 12 0 3339932 31 3"),
        &stat));
    CHECK_EQ(stat.state, 'S');
    CHECK_EQ(stat.parent_pid, 3);
    CHECK_EQ(stat.threads, 12);
    CHECK_EQ(stat.start_ticks, 3339932);
    CHECK_EQ(kiln_procfs_parse_stat(KILN_STR("7 (a) S 3 7"), &stat), KILN_E_MALFORMED);
    CHECK_EQ(kiln_procfs_parse_stat(KILN_STR(""), &stat), KILN_E_MALFORMED);
}

TEST(procfs, a_process_began_when_its_ticks_say_give_or_take_one)
{
    uint64_t tick_ns = KILN_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    struct kiln_procfs_stat stat = {.start_ticks = 500};

    CHECK(kiln_procfs_began(&stat, 500 * tick_ns));
    CHECK(kiln_procfs_began(&stat, 501 * tick_ns));
    CHECK(kiln_procfs_began(&stat, 499 * tick_ns));
    CHECK(!kiln_procfs_began(&stat, 502 * tick_ns));
    CHECK(!kiln_procfs_began(&stat, 498 * tick_ns));
    CHECK(kiln_procfs_began(&stat, 0));
}

TEST(procfs, a_number_is_found_by_its_key)
{
    char path[] = "/tmp/kiln-procfs-XXXXXX";
    uint64_t value = 7;
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_OK(
        kiln_fd_write(fd, KILN_STR("flags:\t02\nCapEff:\t00ff\nmemlock:\t4096 kB\nlast: x\n")));
    close(fd);
    CHECK_OK(kiln_procfs_number(path, "CapEff", 16, &value));
    CHECK_EQ(value, 0xff);
    CHECK_OK(kiln_procfs_number(path, "memlock", 10, &value));
    CHECK_EQ(value, 4096);
    CHECK_EQ(kiln_procfs_number(path, "lock", 10, &value), -ENOENT);
    CHECK_EQ(kiln_procfs_number(path, "last", 10, &value), KILN_E_MALFORMED);
    CHECK_EQ(value, 4096);
    unlink(path);
    CHECK_EQ(kiln_procfs_number(path, "memlock", 10, &value), -ENOENT);
}

TEST(procfs, the_lines_of_status_that_count)
{
    struct kiln_procfs_status status;

    kiln_procfs_parse_status(KILN_STR("Name:\tPPid: 9\nPPid:\t5\nUid:\t1\t1000\t3\t4\n"
                                      "NStgid:\t700\t41\t1\nNSpid:\t8\n"),
                             &status);
    CHECK_EQ(status.parent_pid, 5);
    CHECK_EQ(status.uid, 1000);
    CHECK_EQ(status.ns_pid, 1);
    kiln_procfs_parse_status(KILN_STR("Uid:\nNStgid:\n"), &status);
    CHECK_EQ(status.uid, UINT32_MAX);
    CHECK_EQ(status.ns_pid, 0);
}

TEST(procfs, the_unified_control_group_unless_that_is_the_root)
{
    CHECK_STR(kiln_procfs_parse_cgroup(KILN_STR("0::/system.slice/a.service\n")),
              "/system.slice/a.service");
    CHECK_STR(kiln_procfs_parse_cgroup(KILN_STR("9:pids:/\n4:memory:/docker/ab:c\n0::/\n")),
              "/docker/ab:c");
    CHECK_STR(kiln_procfs_parse_cgroup(KILN_STR("4:memory:/docker/abc\n0::/a\n")), "/a");
    CHECK_STR(kiln_procfs_parse_cgroup(KILN_STR("0::/\n")), "/");
    CHECK_STR(kiln_procfs_parse_cgroup(KILN_STR("")), "");
}

TEST(procfs, of_the_environment_only_what_is_allowed)
{
    static const char *const names[] = {"A", "CD"};
    struct kiln_str rest = KILN_STR("SECRET=A=1\0A=1\0AB=2\0CD\0CD=\0A=x=y");

    CHECK_STR(kiln_procfs_next_env(&rest, names, 2), "A=1");
    CHECK_STR(kiln_procfs_next_env(&rest, names, 2), "CD=");
    CHECK_STR(kiln_procfs_next_env(&rest, names, 2), "A=x=y");
    CHECK(!kiln_procfs_next_env(&rest, names, 2).ptr);
}

/* ---- lines of a file ---- */

struct seen {
    uint32_t n, longest;
};

static bool see(void *context, struct kiln_str line)
{
    struct seen *seen = context;

    seen->n++;
    if (line.len > seen->longest)
        seen->longest = (uint32_t)line.len;
    return line.len != 3;
}

static struct seen lines_of(const char *text, size_t len, uint64_t max, int *ret)
{
    char path[] = "/tmp/kiln-procfs-test-XXXXXX";
    struct seen seen = {0};
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_OK(kiln_fd_write(fd, (struct kiln_str){text, len}));
    close(fd);
    *ret = kiln_procfs_lines(AT_FDCWD, path, max, see, &seen);
    unlink(path);
    return seen;
}

TEST(procfs, lines_that_are_too_long_are_left_out)
{
    size_t size = 300 << 10;
    char *text = kiln_malloc(size);
    int r;

    memset(text, 'a', size);
    memcpy(text, "ab\n", 3);
    text[100 << 10] = '\n';
    text[(100 << 10) + 20] = '\n';
    text[size - 1] = '\n';
    CHECK_EQ(lines_of(text, size, 1 << 20, &r).n, 2);
    CHECK_OK(r);
    CHECK_EQ(lines_of(text, size, 1 << 20, &r).longest, 19);
    CHECK_EQ(lines_of(text, size, 64 << 10, &r).n, 1);
    CHECK_EQ(r, KILN_E_LIMIT);
    kiln_free(text);
}

TEST(procfs, lines_end_where_nobody_wants_more)
{
    int r;

    CHECK_EQ(lines_of("a\nabc\nb\n", 8, 1 << 20, &r).n, 2);
    CHECK_OK(r);
}
