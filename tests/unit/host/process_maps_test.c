/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "fake_proc.h"
#include "host/process_int.h"
#include "test.h"

static struct kiln_processes *processes;
static uint32_t voided;
static int64_t blocks;

static void on_void(void *context, struct kiln_process *process)
{
    (void)context;
    process->installed_version = 0;
    voided++;
}

/* A process 7 without mappings, in a /proc that knows nobody. */
static void begin(void)
{
    struct kiln_processes_opts opts = {.proc = "/tmp"};

    blocks = kiln_mem_live();
    CHECK_OK(kiln_processes_new(&opts, &processes));
    kiln_processes_on_void(processes, on_void, NULL);
    drawn_exec(processes, 7, "a");
    voided = 0;
}

static void end(void)
{
    kiln_processes_free(processes);
    CHECK_EQ(kiln_mem_live(), blocks);
}

static struct kiln_process *sample(void)
{
    return drawn_sample(processes, 7, 1000, 1);
}

static void map(uint64_t start, uint64_t end_, const char *name)
{
    drawn_map(processes, 7, start, end_, 0, name);
}

TEST(process_maps, a_mapping_over_the_middle_of_another_cuts_it_in_two)
{
    begin();
    drawn_map(processes, 7, 0x1000, 0x9000, 0x100, "/a");
    map(0x3000, 0x4000, "/b");
    CHECK_TEXT(drawn_maps(sample()), "1000-3000 /a+100, 3000-4000 /b, 4000-9000 /a+3100");
    end();
}

TEST(process_maps, a_mapping_over_several_leaves_what_it_does_not_cover)
{
    begin();
    map(0x1000, 0x2000, "/a");
    map(0x2000, 0x3000, "/b");
    map(0x3000, 0x4000, "/c");
    map(0x1800, 0x3800, "/d");
    CHECK_TEXT(drawn_maps(sample()), "1000-1800 /a, 1800-3800 /d, 3800-4000 /c+800");
    map(0x0, 0x10000, "/e");
    CHECK_TEXT(drawn_maps(sample()), "0-10000 /e");
    end();
}

TEST(process_maps, the_latest_of_several_that_came_at_once_is_on_top)
{
    begin();
    map(0x5000, 0x6000, "/a");
    map(0x1000, 0x9000, "/b");
    map(0x2000, 0x4000, "/c");
    map(0x3000, 0x7000, "/d");
    map(0x0, 0x1800, "/e");
    CHECK_TEXT(drawn_maps(sample()),
               "0-1800 /e, 1800-2000 /b+800, 2000-3000 /c, 3000-7000 /d, 7000-9000 /b+6000");
    end();
}

TEST(process_maps, pages_that_a_jit_compiler_makes_executable_become_one_mapping)
{
    struct kiln_process *p;
    uint32_t id;

    begin();
    map(0x10000, 0x20000, "//anon");
    id = sample()->maps[0].id;
    map(0x14000, 0x15000, "//anon");
    map(0x20000, 0x21000, "//anon");
    map(0x40000, 0x50000, "//anon");
    p = sample();
    CHECK_TEXT(drawn_maps(p), "10000-21000 //anon, 40000-50000 //anon");
    CHECK_EQ(p->maps[0].id, id);
    CHECK_NE(p->maps[1].id, id);
    end();
}

TEST(process_maps, what_is_told_twice_changes_nothing)
{
    uint64_t version;

    begin();
    map(0x1000, 0x9000, "/a");
    version = sample()->version;
    map(0x1000, 0x9000, "/a");
    drawn_map(processes, 7, 0x3000, 0x4000, 0x2000, "/a");
    CHECK_EQ(sample()->version, version);
    map(0x1000, 0x9000, "/b");
    CHECK_NE(sample()->version, version);
    end();
}

TEST(process_maps, another_file_of_the_same_name_is_another_file)
{
    begin();
    drawn_map_id(processes, 7, 0x1000, 0x2000, "/a", "one");
    sample()->installed_version = 1;
    drawn_map_id(processes, 7, 0x1000, 0x2000, "/a", "one");
    CHECK_EQ(voided, 0);
    drawn_map_id(processes, 7, 0x1000, 0x2000, "/a", "two");
    CHECK_EQ(voided, 1);
    CHECK(memcmp(sample()->maps[0].build_id, "two", 3) == 0);
    end();
}

TEST(process_maps, tables_are_void_where_something_else_is_mapped_over_what_they_know)
{
    begin();
    map(0x1000, 0x2000, "/a");
    sample()->installed_version = 1;
    map(0x2000, 0x3000, "/b");
    CHECK_EQ(voided, 0);
    map(0x1800, 0x2000, "/c");
    CHECK_EQ(voided, 1);
    end();
}

/* ---- against a picture painted page by page ---- */

enum { PAGES = 200 };

static uint32_t at_random(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % n;
}

TEST(process_maps, any_order_of_mappings_gives_the_picture_that_painting_gives)
{
    for (uint64_t round = 1; round <= 200; round++) {
        uint8_t painted[PAGES] = {0};
        uint64_t seed = round;

        begin();
        for (int i = 0; i < 150; i++) {
            uint32_t from = at_random(&seed, PAGES), n = 1 + at_random(&seed, 20);
            uint32_t file = 1 + at_random(&seed, 5);
            char name[8];

            n = from + n > PAGES ? PAGES - from : n;
            snprintf(name, sizeof(name), file == 5 ? "//anon" : "/%u", file);
            /* A file's pages are at the same place in it, but for those of "/4". */
            drawn_map(processes, 7, from * 0x1000ul, (from + n) * 0x1000ul,
                      file == 4 ? 0 : from * 0x1000ul, name);
            memset(painted + from, (int)file, n);
            if (at_random(&seed, 4) == 0)
                sample();
        }
        sample();
        for (uint32_t page = 0; page < PAGES; page++) {
            const struct kiln_map *m =
                kiln_process_map_known(sample(), page * 0x1000ul + at_random(&seed, 0x1000));

            CHECK_EQ(m != NULL, painted[page] != 0);
            if (m && painted[page] == 5)
                CHECK_EQ(m->kind, KILN_MAP_ANONYMOUS);
            else if (m)
                CHECK_EQ(m->path[1], '0' + painted[page]);
            if (m && painted[page] < 4)
                CHECK_EQ(m->offset, m->start);
        }
        end();
    }
}

/* ---- many ---- */

/* Events of n mappings, the i-th at place(i); none of them is quadratic. */
static void many(uint32_t n, uint64_t (*place)(uint32_t i, uint32_t n))
{
    struct kiln_process *p;

    begin();
    for (uint32_t i = 0; i < n; i++) {
        uint64_t start = 0x100000 + place(i, n) * 0x2000;

        map(start, start + 0x1000, "/lib/plugin.so");
    }
    p = sample();
    CHECK_EQ(p->n_maps, n);
    for (uint32_t i = 1; i < n; i++)
        CHECK(p->maps[i - 1].end <= p->maps[i].start);
    end();
}

static uint64_t rising(uint32_t i, uint32_t n)
{
    (void)n;
    return i;
}

static uint64_t falling(uint32_t i, uint32_t n)
{
    return n - i;
}

static uint64_t scattered(uint32_t i, uint32_t n)
{
    return (uint64_t)i * 48271 % n;
}

TEST(process_maps, sixty_thousand_at_rising_falling_and_scattered_addresses)
{
    many(60000, rising);
    many(60000, falling);
    many(60000, scattered);
}

TEST(process_maps, more_than_there_may_be_are_read_from_proc_when_somebody_asks)
{
    begin();
    for (uint32_t i = 0; i < KILN_MAPS_MAX + 10; i++)
        map(0x100000 + i * 0x2000ul, 0x101000 + i * 0x2000ul, "/a");
    CHECK(sample()->n_maps < 100);
    end();
}

TEST(process_maps, children_by_the_thousand_share_ten_thousand_mappings)
{
    int64_t live;

    begin();
    for (uint32_t i = 0; i < 10000; i++)
        map(0x100000 + i * 0x2000ul, 0x101000 + i * 0x2000ul, "/a");
    sample();
    live = kiln_mem_live();
    for (uint32_t pid = 100; pid < 3100; pid++)
        drawn_fork(processes, 7, pid);
    CHECK_EQ(drawn_sample(processes, 3099, 5, 1)->n_maps, 10000);
    CHECK(kiln_mem_live() - live <= 3000 + 4);
    for (uint32_t pid = 100; pid < 3100; pid++)
        drawn_exit(processes, pid, pid);
    kiln_processes_sweep(processes);
    kiln_processes_sweep(processes);
    CHECK_EQ(kiln_mem_live(), live);
    end();
}

TEST(process_maps, paths_have_room_for_so_many_and_the_rest_goes_without)
{
    struct kiln_processes_opts opts = {.proc = "/tmp", .memory_bytes = 1 << 20};
    static char path[2048];
    uint32_t with = 0;

    blocks = kiln_mem_live();
    CHECK_OK(kiln_processes_new(&opts, &processes));
    drawn_exec(processes, 7, "a");
    memset(path, 'x', sizeof(path) - 1);
    for (uint64_t i = 0; i < 200; i++) {
        snprintf(path, 8, "/%05llu", (unsigned long long)i);
        path[6] = 'x';
        drawn_map(processes, 7, 0x1000 * (i + 1), 0x1000 * (i + 2), 0, path);
    }
    CHECK_EQ(sample()->n_maps, 200);
    for (uint32_t i = 0; i < 200; i++)
        with += sample()->maps[i].path[0] == '/';
    CHECK(with > 20 && with < 32); /* 64 KiB of 2 KiB each */
    CHECK(processes->shelf.paths.bytes <= processes->shelf.paths.bytes_max);
    end();
}

TEST(process_maps, every_allocation_may_fail)
{
    for (uint64_t n = 1; n < 200; n++) {
        struct kiln_processes_opts opts = {.proc = "/tmp"};

        blocks = kiln_mem_live();
        processes = NULL;
        kiln_mem_fail_at(n);
        if (kiln_processes_new(&opts, &processes) == 0) {
            drawn_exec(processes, 7, "a");
            for (uint32_t i = 0; i < 300; i++)
                map(0x100000 + scattered(i, 300) * 0x1800, 0x102000 + i * 0x2000, "/a");
            drawn_fork(processes, 7, 8);
            drawn_map(processes, 8, 0x1000, 0x2000, 0, "/b");
            drawn_sample(processes, 8, 9, 1);
            drawn_sample(processes, 7, 9, 1);
        }
        kiln_processes_free(processes);
        kiln_mem_fail_at(0);
        CHECK_EQ(kiln_mem_live(), blocks);
    }
}
