/* SPDX-License-Identifier: Apache-2.0 */
#include "naming/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/builder.h"
#include "naming/debug_file.h"
#include "test.h"

static const char key[] = "process.executable.build_id.gnu";

/* The build id of this very program. */
static const char *own_id(void)
{
    static struct kiln_debug_facts facts;
    struct kiln_bytes bytes;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    CHECK_OK(kiln_bytes_file(fd, &bytes));
    CHECK_OK(kiln_debug_inspect(&bytes, &facts, NULL));
    close(fd);
    return facts.gnu;
}

/* A batch with one address of a file of this build id, named or not. */
static struct kiln_batch *drawn(const char *build_id, bool named)
{
    struct kiln_function function = {0};
    struct kiln_location location = {.address = 0x1000};
    struct kiln_mapping mapping = {.limit = 0x2000};
    struct kiln_line line;
    struct kiln_builder *b;
    struct kiln_batch *batch;
    uint32_t attr, at, profile;

    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, kiln_str_of(key), kiln_str_of(build_id));
    mapping.attrs = kiln_builder_set(b, &attr, 1, NULL);
    mapping.filename = kiln_builder_string(b, KILN_STR("/etc/shadow"));
    location.mapping = kiln_builder_mapping(b, &mapping);
    function.name = kiln_builder_string(b, KILN_STR("known"));
    line = (struct kiln_line){.function = kiln_builder_function(b, &function)};
    at = kiln_builder_location(b, &location, &line, named ? 1 : 0);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, profile, kiln_builder_stack(b, &at, 1), 0, 1);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

static int noted(struct kiln_local_files *files, const char *build_id, bool named, int *ret_fd)
{
    struct kiln_batch *batch = drawn(build_id, named);

    kiln_local_files_note(files, getpid(), batch);
    kiln_batch_unref(batch);
    return kiln_local_files_get(files, kiln_str_of(build_id), ret_fd);
}

TEST(local_files, what_a_process_has_mapped_is_kept_by_its_build_id)
{
    struct kiln_local_files *files;
    struct stat here, kept;
    int fd = -1;

    CHECK_OK(kiln_local_files_new(&files));
    CHECK(kiln_local_files_can(getpid()));
    CHECK_EQ(kiln_local_files_get(files, kiln_str_of(own_id()), &fd), -ENOENT);
    CHECK_OK(noted(files, own_id(), false, &fd));
    CHECK_EQ(fstat(fd, &kept), 0);
    CHECK_EQ(stat("/proc/self/exe", &here), 0);
    CHECK_EQ(kept.st_ino, here.st_ino);
    close(fd);
    CHECK_EQ(kiln_local_files_kept(files), 1);
    CHECK_OK(noted(files, own_id(), false, &fd));
    close(fd);
    CHECK_EQ(kiln_local_files_kept(files), 1);
    kiln_local_files_free(files);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(local_files, what_has_names_or_is_not_mapped_is_not_opened)
{
    struct kiln_local_files *files;
    int fd = -1;

    CHECK_OK(kiln_local_files_new(&files));
    CHECK_EQ(noted(files, own_id(), true, &fd), -ENOENT);
    CHECK_EQ(noted(files, "0123456789abcdef", false, &fd), -ENOENT);
    CHECK_EQ(kiln_local_files_kept(files), 0);
    CHECK(!kiln_local_files_can(0));
    kiln_local_files_free(files);
}
