/* SPDX-License-Identifier: Apache-2.0 */
/* This program itself has no names in the profile, and gets them from its file. */
#include "naming/here.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/builder.h"
#include "naming/debug_file.h"
#include "test.h"

#define PATIENCE (60 * KILN_NS_PER_S)

__attribute__((noinline, used)) static void kiln_test_function_with_a_name(void)
{
    __asm__ volatile("");
}

/* Where the kernel has the code of a function of this program. */
static struct kiln_mapping mapping_of(uintptr_t address)
{
    struct kiln_mapping mapping = {0};
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 200];

    CHECK(maps);
    while (fgets(line, sizeof(line), maps)) {
        uint64_t start, end, offset;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) == 3 &&
            start <= address && address < end)
            mapping = (struct kiln_mapping){.start = start, .limit = end, .offset = offset};
    }
    fclose(maps);
    CHECK(mapping.limit);
    return mapping;
}

static bool build_id(const char *path, char *hex, size_t size)
{
    struct kiln_debug_facts facts;
    struct kiln_bytes bytes;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool has;

    CHECK(fd >= 0);
    CHECK_OK(kiln_bytes_file(fd, &bytes));
    CHECK_OK(kiln_debug_inspect(&bytes, &facts, NULL));
    close(fd);
    has = facts.gnu[0] != '\0';
    snprintf(hex, size, "%s", facts.gnu);
    return has;
}

static struct kiln_batch *nameless(const char *path, const char *id)
{
    uintptr_t address = (uintptr_t)kiln_test_function_with_a_name;
    struct kiln_mapping mapping = mapping_of(address);
    struct kiln_location location = {.address = address};
    struct kiln_batch *batch;
    struct kiln_builder *b;
    uint32_t attr, stack;

    CHECK_OK(kiln_builder_new(NULL, &b));
    mapping.filename = kiln_builder_string(b, kiln_str_of(path));
    attr = kiln_builder_text_attr(b, KILN_STR("process.executable.build_id.gnu"), kiln_str_of(id));
    mapping.attrs = kiln_builder_set(b, &attr, 1, NULL);
    location.mapping = kiln_builder_mapping(b, &mapping);
    stack = kiln_builder_location(b, &location, NULL, 0);
    stack = kiln_builder_stack(b, &stack, 1);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, 0, stack, 0, 7);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(here, a_program_of_this_host_gets_its_names_and_a_stranger_keeps_none)
{
    const struct kiln_resolver_opts opts = {.program = "", .patient = true};
    char path[PATH_MAX], id[256];
    struct kiln_batch *batch;
    struct kiln_here *here;

    CHECK(realpath("/proc/self/exe", path));
    if (!build_id(path, id, sizeof(id)))
        SKIP("this program was linked without a build id");
    CHECK_OK(kiln_here_new(&opts, &here, NULL));
    for (int i = 0; i < 2; i++) {
        batch = nameless(path, id);
        CHECK_EQ(kiln_here_name(here, &batch, PATIENCE, NULL), 1);
        CHECK_EQ(batch->n_samples, 1);
        CHECK_STR(batch->dict.strings[batch->dict.functions[1].name],
                  "kiln_test_function_with_a_name");
        kiln_batch_unref(batch);
    }
    batch = nameless(path, "00112233445566778899aabbccddeeff00112233");
    CHECK_EQ(kiln_here_name(here, &batch, PATIENCE, NULL), 0);
    kiln_batch_unref(batch);
    kiln_here_free(here);
}
