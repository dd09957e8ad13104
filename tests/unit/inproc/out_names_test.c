/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/builder.h"
#include "inproc/out/names.h"
#include "test.h"

/* The mapping of this process that has an address; its path lives until the next call. */
static struct kiln_mapping mapping_of(uint64_t address, char path[512])
{
    FILE *maps = fopen("/proc/self/maps", "r");
    struct kiln_mapping found = {0};
    char line[1024];

    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long start, limit, offset;

        path[0] = '\0';
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %511[^\n]", &start, &limit, &offset, path) < 3 ||
            address < start || address >= limit)
            continue;
        found = (struct kiln_mapping){.start = start, .limit = limit, .offset = offset};
        break;
    }
    if (maps)
        fclose(maps);
    return found;
}

/* The name that an address of this process gets. */
static const char *name_of(uint64_t address, bool mapped)
{
    static char name[512];
    struct kiln_batch *batch, *named = NULL;
    struct kiln_location location = {.address = address};
    struct kiln_mapping mapping;
    struct kiln_builder *b;
    struct kiln_err err = {0};
    char path[512];
    uint32_t profile, at;

    CHECK_OK(kiln_builder_new(NULL, &b));
    mapping = mapping_of(address, path);
    mapping.filename = kiln_builder_string(b, kiln_str_of(path));
    if (mapped)
        location.mapping = kiln_builder_mapping(b, &mapping);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){0});
    at = kiln_builder_location(b, &location, NULL, 0);
    kiln_builder_add_value(b, profile, kiln_builder_stack(b, &at, 1), 0, 1);
    CHECK_OK(kiln_builder_finish(b, &batch, &err));
    CHECK_OK(kiln_in_names_fill(batch, &(struct kiln_in_names_how){0}, &named, &err));
    at = named->dict.frames[named->dict.stacks[named->samples[0].stack].first];
    name[0] = '\0';
    if (named->dict.locations[at].n) {
        uint32_t line = named->dict.locations[at].first;
        struct kiln_str text =
            kiln_batch_str(named, named->dict.functions[named->dict.lines[line].function].name);

        snprintf(name, sizeof(name), "%.*s", KILN_STR_ARG(text));
    }
    CHECK_EQ(named->dict.locations[at].address, address);
    kiln_batch_unref(named);
    kiln_batch_unref(batch);
    return name;
}

__attribute__((noinline)) static int a_function_of_this_file(int n)
{
    return n * 3;
}

TEST(out_names, a_static_function_of_the_program_has_its_name)
{
    for (int i = 0; i < 2; i++) /* the second time it is known */
        CHECK_TEXT(name_of((uint64_t)(uintptr_t)a_function_of_this_file + 1, true),
                   "a_function_of_this_file");
}

TEST(out_names, a_function_of_a_library_has_its_name)
{
    const char *name = name_of((uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "qsort") + 1, true);

    CHECK(strstr(name, "qsort"));
}

TEST(out_names, the_vdso_is_read_in_memory)
{
    char path[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start = 0;
    char line[512];
    bool any = false;

    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "[vdso]"))
            sscanf(line, "%lx-", &start);
    if (maps)
        fclose(maps);
    if (!start)
        SKIP("there is no vDSO here");
    (void)path;
    for (unsigned long at = 0; at < 0x1000 && !any; at += 0x10)
        any = strstr(name_of(start + at, true), "clock_gettime") != NULL;
    CHECK(any);
}

TEST(out_names, nothing_is_made_up)
{
    void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK_TEXT(name_of((uint64_t)(uintptr_t)memory, true), "");
    CHECK_TEXT(name_of(4096, false), "");
    munmap(memory, 4096);
}

TEST(out_names, code_that_was_made_at_run_time_is_named_by_the_map_as_it_grows)
{
    char path[64];
    FILE *map;

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    map = fopen(path, "w");
    CHECK(map != NULL);
    fprintf(map, "7000000000 100 JS:*spin /app/loop.js:3:14\n");
    fflush(map);
    CHECK_TEXT(name_of(0x7000000010, false), "JS:*spin /app/loop.js:3:14");
    CHECK_TEXT(name_of(0x7000000200, false), "");
    fprintf(map, "7000000180 100 JS:*other /app/loop.js:9:1\n");
    fprintf(map, "7000000300 100 Function:^spin /app/loop.js:3\n");
    fclose(map);
    CHECK_TEXT(name_of(0x7000000200, false), "JS:*other /app/loop.js:9:1");
    CHECK_TEXT(name_of(0x7000000010, false), "JS:*spin /app/loop.js:3:14");
    CHECK_TEXT(name_of(0x7000000300, false), "JS:^spin /app/loop.js:3");
    unlink(path);
    CHECK_TEXT(name_of(0x7000000010, false), "");
}
