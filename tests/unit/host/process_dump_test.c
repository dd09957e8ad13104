/* SPDX-License-Identifier: Apache-2.0 */
/* This very process maps this and that, and is asked for through /proc. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "fake_proc.h"
#include "folder.h"
#include "host/process_int.h"
#include "test.h"

enum { SIZE = 4096 };

static struct kiln_processes *processes;
static char folder[FOLDER_NAME];
static void *mapped;

/* The object that tells of code made at run time, while a file of this name is mapped as code. */
static struct kiln_object *dump_of(const char *name, struct kiln_str content)
{
    const struct kiln_processes_opts opts = {0};
    struct kiln_procfs_stat stat;
    struct kiln_process *process;
    char path[128];
    int fd;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    CHECK_OK(kiln_file_write(path, content, NULL));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    mapped = mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    CHECK(mapped != MAP_FAILED);
    CHECK_OK(kiln_processes_new(&opts, &processes));
    CHECK_OK(kiln_proc_stat(processes, (uint32_t)getpid(), &stat));
    process = drawn_sample(processes, (uint32_t)getpid(),
                           stat.start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)), 1);
    assert_non_null(kiln_process_map(processes, process, (uintptr_t)mapped));
    return kiln_process_jitdump(processes, process);
}

static void end(void)
{
    kiln_processes_free(processes);
    munmap(mapped, SIZE);
    folder_remove(folder);
}

TEST(process_dump, a_dump_is_found_by_its_mapping)
{
    struct kiln_object *object = dump_of("jit-1234.dump", KILN_STR("DTiJ, or anything"));
    char content[8] = "";
    int fd;

    assert_non_null(object);
    CHECK(kiln_str_ends(kiln_str_of(object->path), KILN_STR("/jit-1234.dump")));
    CHECK_OK(kiln_object_dup(object, &fd));
    CHECK_EQ(pread(fd, content, 4, 0), 4);
    CHECK_STR(kiln_str_of(content), "DTiJ");
    close(fd);
    end();
}

TEST(process_dump, other_files_are_no_dumps)
{
    CHECK(!dump_of("jit-1234.dump.old", KILN_STR("DTiJ, or anything")));
    end();
    CHECK(!dump_of("my-jit-1234.dump", KILN_STR("DTiJ, or anything")));
    end();
}

TEST(process_dump, a_library_of_that_name_is_none)
{
    struct kiln_buf library;

    kiln_buf_init(&library, 256 << 20);
    CHECK_OK(kiln_file_read("/proc/self/exe", &library, NULL));
    CHECK(!dump_of("jit-1234.dump", kiln_buf_str(&library)));
    kiln_buf_done(&library);
    end();
}
