/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a program serves: one that answers, and one that does not any more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "fake_proc.h"
#include "fuse_server.h"
#include "host/aside.h"
#include "host/mounts.h"
#include "host/process_int.h"
#include "test.h"

enum { NAMES = 6 };

static struct fuse_server server;
static struct kiln_processes *processes;
static struct kiln_buf program; /* this one: an ELF file with a build id */
static char dir[64];
static pid_t child;
static uint64_t *mapped; /* by the child: "a", "b", ... of the server, and our own */
static uint32_t files;
static int64_t blocks;

static void map_all(void)
{
    char path[80];

    for (int i = 0; i <= NAMES; i++) {
        int fd;
        void *at;

        snprintf(path, sizeof(path), i < NAMES ? "%s/%c" : "/proc/self/exe", dir, 'a' + i);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0x1000);
        mapped[i] = fd < 0 || at == MAP_FAILED ? 1 : (uint64_t)(uintptr_t)at;
        close(fd);
    }
}

static void start_child(void)
{
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        map_all();
        raise(SIGSTOP);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, NULL, WUNTRACED), child);
    for (int i = 0; i <= NAMES; i++)
        CHECK(mapped[i] > 1);
}

/* False: it cannot be tried here. */
static bool begin(void)
{
    int r;

    snprintf(dir, sizeof(dir), "/tmp/kiln-served-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    kiln_buf_init(&program, 256 << 20);
    CHECK_OK(kiln_file_read("/proc/self/exe", &program, NULL));
    r = unshare(CLONE_NEWNS) < 0 ? -errno : fuse_server_start(&server, dir, kiln_buf_str(&program));
    if (r < 0) {
        kiln_buf_done(&program);
        rmdir(dir);
        return false;
    }
    start_child();
    files = open_files();
    blocks = kiln_mem_live();
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){0}, &processes));
    kiln_aside_be_patient(processes->aside, 600 * KILN_NS_PER_S); /* other tests run beside */
    return true;
}

/* Threads that were stuck return when the server is gone, and leave nothing behind. */
static void end(void)
{
    kiln_processes_free(processes);
    kill(child, SIGKILL);
    fuse_server_stop(&server);
    waitpid(child, NULL, 0);
    while (open_files() != files || kiln_mem_live() != blocks)
        sched_yield();
    munmap(mapped, 4096);
    kiln_buf_done(&program);
    rmdir(dir);
}

static struct kiln_object *object_at(uint64_t address)
{
    struct kiln_procfs_stat stat;
    struct kiln_process *p;
    struct kiln_map *map;

    CHECK_OK(kiln_proc_stat(processes, (uint32_t)child, &stat));
    p = drawn_sample(processes, (uint32_t)child,
                     stat.start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)), 1);
    map = kiln_process_map(processes, p, address);
    assert_non_null(map);
    return map->object;
}

static void hang(void)
{
    fuse_server_hang(&server);
    kiln_aside_be_patient(processes->aside, 0);
}

#define NEEDS "needs root, /dev/fuse and a kernel that has FUSE"

TEST(served_files, one_that_answers_is_like_any_other)
{
    const struct kiln_object *served, *ours;

    if (!begin())
        SKIP(NEEDS);
    served = object_at(mapped[0]);
    ours = object_at(mapped[NAMES]);
    assert_non_null(served);
    assert_non_null(ours);
    CHECK(served->aside && !ours->aside && served != ours);
    CHECK_EQ(served->kind, KILN_OBJECT_ELF);
    CHECK(served->build_id_len && served->build_id_len == ours->build_id_len);
    CHECK(memcmp(served->build_id, ours->build_id, ours->build_id_len) == 0);
    CHECK_EQ(served->elf->n_segments, ours->elf->n_segments);
    for (int i = 0; i < 200; i++) { /* while others are being closed */
        struct stat st;
        int from = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int fd = kiln_aside_open(processes->aside, from, "z", 0, &st);

        CHECK(fd >= 0 && (size_t)st.st_size == program.len);
        kiln_aside_close(processes->aside, fd);
        close(from);
    }
    CHECK_EQ(kiln_aside_given_up(processes->aside), 0);
    end();
}

TEST(served_files, nobody_waits_for_one_that_does_not_answer)
{
    if (!begin())
        SKIP(NEEDS);
    hang();
    for (int i = 0; i < NAMES; i++)
        CHECK(!object_at(mapped[i]));
    CHECK(kiln_aside_given_up(processes->aside) >= NAMES);
    assert_non_null(object_at(mapped[NAMES]));
    end();
}

TEST(served_files, one_that_hangs_later_can_be_read_no_more_and_closed)
{
    const struct kiln_object *object;
    char bytes[64];

    if (!begin())
        SKIP(NEEDS);
    object = object_at(mapped[0]);
    assert_non_null(object);
    CHECK_OK(object->elf->bytes.read(&object->elf->bytes, 0, bytes, sizeof(bytes)));
    CHECK(memcmp(bytes, program.ptr, sizeof(bytes)) == 0);
    hang();
    for (uint64_t at = object->size / 2; at < object->size / 2 + NAMES * 65536; at += 65536)
        CHECK(object->elf->bytes.read(&object->elf->bytes, at, bytes, sizeof(bytes)) < 0);
    end();
}

/* Whether a thread of ours is in a read of it just now. */
static bool is_read(int file)
{
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;
    bool is = false;

    assert_non_null(threads);
    while ((entry = readdir(threads))) {
        char path[320];
        unsigned first;
        long number;
        FILE *call;

        snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", entry->d_name);
        call = fopen(path, "r");
        if (!call)
            continue;
        is |= fscanf(call, "%ld %x", &number, &first) == 2 && number == SYS_pread64 &&
              first == (unsigned)file;
        fclose(call);
    }
    closedir(threads);
    return is;
}

/* Else whoever comes to read it late would read what has its number then. */
TEST(served_files, one_that_hangs_keeps_its_number_until_nobody_reads_it)
{
    struct stat st;
    int from, file, ends[2];
    char bytes[64];
    int64_t r;

    if (!begin())
        SKIP(NEEDS);
    from = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    file = kiln_aside_open(processes->aside, from, "z", 0, &st);
    CHECK(file >= 0);
    hang();
    kiln_aside_be_patient(processes->aside, KILN_NS_PER_S / 2);
    do
        r = kiln_aside_read(processes->aside, file, 0, bytes, sizeof(bytes));
    while (r == -ETIMEDOUT && !is_read(file));
    CHECK_EQ(r, -ETIMEDOUT);
    CHECK_OK(pipe2(ends, O_CLOEXEC));
    kiln_aside_close(processes->aside, file);
    kiln_aside_close(processes->aside, ends[1]);
    CHECK_EQ(read(ends[0], bytes, 1), 0); /* closed, behind the other */
    CHECK(fcntl(file, F_GETFD) >= 0);
    close(ends[0]);
    close(from);
    end();
}

TEST(served_files, mounts_tell_which_paths_are_served)
{
    struct kiln_mounts *mounts;
    char below[128], beside[128];
    int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (!begin()) {
        close(self);
        SKIP(NEEDS);
    }
    snprintf(below, sizeof(below), "%s/x/y", dir);
    snprintf(beside, sizeof(beside), "%sx", dir);
    CHECK_OK(kiln_mounts_new(&mounts));
    for (uint64_t root = 0; root < 2; root++) {
        CHECK(kiln_mounts_served(mounts, self, root, dir));
        CHECK(kiln_mounts_served(mounts, self, root, below));
        CHECK(!kiln_mounts_served(mounts, self, root, beside));
        CHECK(!kiln_mounts_served(mounts, self, root, "/proc/self/exe"));
    }
    kiln_mounts_free(mounts);
    end();
    close(self);
}
