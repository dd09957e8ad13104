/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/perf_event.h>
#include <stdlib.h>

#include "test.h"

#include "base/attr.h"
#include "host/sideband_int.h"

static uint8_t bytes[512];
static size_t size;

static void put(const void *data, size_t length)
{
    memcpy(bytes + size, data, length);
    size += length;
}

static void put_u32(uint32_t value)
{
    put(&value, sizeof(value));
}

static void put_u64(uint64_t value)
{
    put(&value, sizeof(value));
}

static void begin(uint32_t type, uint16_t misc)
{
    struct perf_event_header header = {.type = type, .misc = misc};
    size = 0;
    put(&header, sizeof(header));
}

static void put_name(const char *name)
{
    put(name, strlen(name) + 1);
    while (size % 8)
        put("", 1);
}

/* The trailer, and then what it says. */
static int parse(struct kiln_event *event)
{
    put_u32(7);
    put_u32(8);
    put_u64(1234567);
    put_u64(1);
    memcpy(bytes + 6, &(uint16_t){(uint16_t)size}, 2);
    return kiln_sideband_parse(bytes, size, event);
}

static void begin_map(uint16_t misc)
{
    begin(PERF_RECORD_MMAP2, misc);
    put_u32(7);
    put_u32(8);
    put_u64(0x400000);
    put_u64(0x1000);
    put_u64(0x2000);
}

TEST(sideband, a_mapping_has_its_device_and_inode)
{
    struct kiln_event event;
    begin_map(0);
    put_u32(8);
    put_u32(1);
    put_u64(99);
    put_u64(5);
    put_u32(5);
    put_u32(2);
    put_name("/usr/bin/a b");
    CHECK_EQ(parse(&event), 1);
    CHECK_EQ(event.kind, KILN_EVENT_MAP);
    CHECK_EQ(event.pid, 7);
    CHECK_EQ(event.tid, 8);
    CHECK_EQ(event.time_ns, 1234567);
    CHECK_EQ(event.start, 0x400000);
    CHECK_EQ(event.length, 0x1000);
    CHECK_EQ(event.offset, 0x2000);
    CHECK_EQ(event.major, 8);
    CHECK_EQ(event.inode, 99);
    CHECK_EQ(event.inode_generation, 5);
    CHECK_EQ(event.build_id_len, 0);
    CHECK_TEXT(event.name, "/usr/bin/a b");
}

static void put_build_id(uint8_t length)
{
    put(&length, 1);
    put("\0\0\0", 3);
    for (uint8_t i = 0; i < 20; i++)
        put(&i, 1);
    put_u64(0);
}

TEST(sideband, a_mapping_with_a_build_id_has_no_device)
{
    struct kiln_event event;
    begin_map(PERF_RECORD_MISC_MMAP_BUILD_ID);
    put_build_id(20);
    put_name("");
    CHECK_EQ(parse(&event), 1);
    CHECK_EQ(event.build_id_len, 20);
    CHECK_EQ(event.build_id[19], 19);
    CHECK_EQ(event.major, 0);
    CHECK_TEXT(event.name, "");
    begin_map(PERF_RECORD_MISC_MMAP_BUILD_ID);
    put_build_id(21);
    put_name("/x");
    CHECK_EQ(parse(&event), 0);
}

TEST(sideband, a_name_says_whether_it_came_by_exec)
{
    struct kiln_event event;
    begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
    put_u32(7);
    put_u32(8);
    put_name("sh");
    CHECK_EQ(parse(&event), 1);
    CHECK_EQ(event.kind, KILN_EVENT_COMM);
    CHECK(event.exec);
    CHECK_TEXT(event.name, "sh");
}

TEST(sideband, a_name_that_does_not_end_in_its_record_is_none)
{
    struct kiln_event event;
    begin(PERF_RECORD_COMM, 0);
    put_u32(7);
    put_u32(8);
    put("12345678", 8);
    CHECK_EQ(parse(&event), 0);
}

TEST(sideband, forks_and_exits_name_both_sides)
{
    struct kiln_event event;
    const uint32_t types[] = {PERF_RECORD_FORK, PERF_RECORD_EXIT};
    const uint32_t kinds[] = {KILN_EVENT_FORK, KILN_EVENT_EXIT};
    for (int i = 0; i < 2; i++) {
        begin(types[i], 0);
        put_u32(70);
        put_u32(60);
        put_u32(71);
        put_u32(61);
        put_u64(0);
        CHECK_EQ(parse(&event), 1);
        CHECK_EQ(event.kind, kinds[i]);
        CHECK_EQ(event.pid, 70);
        CHECK_EQ(event.ppid, 60);
        CHECK_EQ(event.tid, 71);
        CHECK_EQ(event.ptid, 61);
    }
}

TEST(sideband, lost_events_are_counted)
{
    struct kiln_event event;
    begin(PERF_RECORD_LOST, 0);
    put_u64(1);
    put_u64(42);
    CHECK_EQ(parse(&event), 1);
    CHECK_EQ(event.kind, KILN_EVENT_LOST);
    CHECK_EQ(event.n, 42);
}

TEST(sideband, processes_of_another_namespace_are_not_ours)
{
    struct kiln_event event;
    const uint32_t pids[] = {0, UINT32_MAX};
    for (int i = 0; i < 2; i++) {
        begin(PERF_RECORD_COMM, 0);
        put_u32(pids[i]);
        put_u32(pids[i]);
        put_name("sh");
        CHECK_EQ(parse(&event), 0);
    }
}

TEST(sideband, whatever_the_length_nothing_is_read_beyond_it)
{
    const uint32_t types[] = {PERF_RECORD_MMAP2, PERF_RECORD_COMM, PERF_RECORD_FORK,
                              PERF_RECORD_EXIT,  PERF_RECORD_LOST, 77};
    for (size_t i = 0; i < KILN_ARRAY_LEN(types); i++) {
        for (size_t length = 0; length < 128; length++) {
            struct kiln_event event;
            struct perf_event_header header = {.type = types[i], .size = (uint16_t)length};
            uint8_t *copy = malloc(length + 1); /* so that a sanitizer sees one byte too many */
            memset(copy, 1, length);
            memcpy(copy, &header, length < sizeof(header) ? length : sizeof(header));
            kiln_sideband_parse(copy, length, &event);
            free(copy);
        }
    }
}

TEST(sideband, a_record_that_goes_around_the_end_of_the_ring_comes_in_one_piece)
{
    const uint8_t ring[8] = {6, 7, 8, 1, 2, 3, 4, 5};
    uint8_t to[8];
    kiln_sideband_copy(ring, 8, 8 * 1000 + 3, to, 8);
    CHECK_EQ(memcmp(to, (const uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8}, 8), 0);
    kiln_sideband_copy(ring, 8, 3, to, 5);
    CHECK_EQ(memcmp(to, (const uint8_t[]){1, 2, 3, 4, 5}, 5), 0);
}
