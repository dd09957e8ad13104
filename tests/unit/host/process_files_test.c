/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes, real files: children that map this and that, asked for through /proc. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "elf_maker.h"
#include "fake_proc.h"
#include "frame_maker.h"
#include "host/process_int.h"
#include "symbol/cfi.h"
#include "test.h"

static struct kiln_processes *processes;
static uint32_t files;
static int64_t blocks;
static char dir[64];

static void begin_with(struct kiln_processes_opts opts)
{
    snprintf(dir, sizeof(dir), "/tmp/kiln-files-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    files = open_files();
    blocks = kiln_mem_live();
    CHECK_OK(kiln_processes_new(&opts, &processes));
}

static void begin(void)
{
    begin_with((struct kiln_processes_opts){0});
}

static void end(void)
{
    kiln_processes_free(processes);
    CHECK_EQ(open_files(), files);
    CHECK_EQ(kiln_mem_live(), blocks);
    rmdir(dir);
}

static const char *inside(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

/* When a process began, as samples tell it, to the tick. */
static uint64_t start_of(pid_t pid)
{
    struct kiln_procfs_stat stat;

    CHECK_OK(kiln_proc_stat(processes, (uint32_t)pid, &stat));
    return stat.start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static struct kiln_process *sample(pid_t pid)
{
    return drawn_sample(processes, (uint32_t)pid, start_of(pid), 1);
}

static const char *libc_path(void)
{
    Dl_info info;

    CHECK(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0);
    return info.dli_fname;
}

/* A copy of the C library: an ELF file with a build id. */
static void copy_library(const char *to)
{
    struct kiln_buf data;

    kiln_buf_init(&data, 64 << 20);
    CHECK_OK(kiln_file_read(libc_path(), &data, NULL));
    CHECK_OK(kiln_file_write(to, kiln_buf_str(&data), NULL));
    kiln_buf_done(&data);
}

static void *map_code(int fd)
{
    void *at = mmap(NULL, 0x4000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0x30000);

    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* ---- children ---- */

struct child {
    pid_t pid;
    uint64_t at; /* what it mapped */
    int go;      /* closed when we end: then it ends */
};

/* A child that does `work`, tells its result, and waits for its end. */
static struct child start(void *(*work)(const char *path), const char *path)
{
    int up[2], down[2];
    struct child child;
    void *at;
    char c;

    CHECK_OK(pipe2(up, O_CLOEXEC));
    CHECK_OK(pipe2(down, O_CLOEXEC));
    child.pid = fork();
    if (child.pid == 0) {
        close(up[0]);
        close(down[1]);
        at = work(path);
        if (write(up[1], &at, sizeof(at)) == sizeof(at) && read(down[0], &c, 1) == 0)
            _exit(0);
        _exit(1);
    }
    close(up[1]);
    close(down[0]);
    CHECK_EQ(read(up[0], &at, sizeof(at)), sizeof(at));
    close(up[0]);
    child.at = (uint64_t)(uintptr_t)at;
    child.go = down[1];
    return child;
}

static void stop(struct child *child)
{
    close(child->go);
    kill(child->pid, SIGKILL); /* children of later have its pipe too */
    CHECK_EQ(waitpid(child->pid, NULL, 0), child->pid);
}

static void *map_path(const char *path)
{
    return map_code(open(path, O_RDONLY | O_CLOEXEC));
}

static void *map_and_unlink(const char *path)
{
    void *at = map_path(path);

    unlink(path);
    return at;
}

static void *map_memfd(const char *path)
{
    int fd = memfd_create("plugin", MFD_CLOEXEC), from = open(path, O_RDONLY | O_CLOEXEC);
    char buf[4096];
    ssize_t n;

    while ((n = read(from, buf, sizeof(buf))) > 0)
        if (write(fd, buf, (size_t)n) != n)
            return NULL;
    close(from);
    return map_code(fd);
}

static void *map_memfd_code(const char *path)
{
    int fd = memfd_create("jit", MFD_CLOEXEC);

    (void)path;
    return ftruncate(fd, 0x40000) < 0 ? NULL : map_code(fd);
}

/* Whether files of mappings can be opened without their path. */
static bool privileged(void)
{
    return geteuid() == 0;
}

/* ---- itself ---- */

TEST(process_files, the_mapping_of_a_function_has_its_file_and_the_bias_of_the_loader)
{
    uint64_t address = (uint64_t)(uintptr_t)gnu_get_libc_version;
    struct kiln_process *p;
    struct kiln_map *map;
    Dl_info info;

    begin();
    p = sample(getpid());
    map = kiln_process_map(processes, p, address);
    assert_non_null(map);
    assert_non_null(map->object);
    CHECK(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0);
    CHECK_EQ(map->bias, (uint64_t)(uintptr_t)info.dli_fbase);
    CHECK_EQ(map->object->kind, KILN_OBJECT_ELF);
    CHECK(map->object->build_id_len == 20 && map->object->elf && map->object->fd >= 0);
    CHECK(kiln_process_map_known(p, address) == map);
    CHECK(!kiln_process_map(processes, p, 0x10));
    end();
}

TEST(process_files, the_vdso_is_an_object_with_a_file_of_its_own)
{
    uint64_t base = getauxval(AT_SYSINFO_EHDR);
    struct kiln_process *p;
    struct kiln_map *map;
    int fd;

    if (!base)
        SKIP("there is no vDSO");
    begin();
    p = sample(getpid());
    map = kiln_process_map(processes, p, base + 0x400);
    assert_non_null(map);
    CHECK_EQ(map->kind, KILN_MAP_VDSO);
    CHECK_EQ(map->object->kind, KILN_OBJECT_VDSO);
    CHECK_EQ(map->bias, base);
    CHECK_OK(kiln_object_dup(map->object, &fd));
    close(fd);
    end();
}

TEST(process_files, the_executable_is_known_by_its_object)
{
    struct kiln_identity *identity;
    char exe[512];

    begin();
    CHECK(kiln_procfs_link(AT_FDCWD, "/proc/self/exe", exe, sizeof(exe)) > 0);
    identity = kiln_process_identity(processes, sample(getpid()));
    CHECK_TEXT(identity->path, exe);
    CHECK_TEXT(identity->name, strrchr(exe, '/') + 1);
    assert_non_null(identity->executable);
    CHECK_TEXT(identity->executable->path, exe);
    CHECK_EQ(identity->uid, geteuid());
    CHECK_EQ(identity->ns_pid, getpid());
    CHECK_EQ(identity->parent_pid, getppid());
    CHECK(identity->start_unix_ns > 1500000000000000000u);
    end();
}

/* ---- children ---- */

static struct kiln_map *mapping_of(const struct child *child)
{
    CHECK(child->at != 0);
    return kiln_process_map(processes, sample(child->pid), child->at + 0x100);
}

TEST(process_files, a_deleted_file_is_opened_through_its_mapping)
{
    struct child child;
    struct kiln_map *map;

    if (!privileged())
        SKIP("opening a mapped file needs root");
    begin();
    copy_library(inside("lib.so"));
    child = start(map_and_unlink, inside("lib.so"));
    map = mapping_of(&child);
    assert_non_null(map->object);
    CHECK_TEXT(map->object->path, inside("lib.so"));
    CHECK_EQ(map->object->kind, KILN_OBJECT_ELF);
    stop(&child);
    end();
}

TEST(process_files, a_replaced_file_is_not_taken_for_the_one_that_is_mapped)
{
    struct stat mapped, now;
    struct child child;
    struct kiln_map *map;

    begin();
    copy_library(inside("lib.so"));
    CHECK_OK(stat(inside("lib.so"), &mapped));
    child = start(map_path, inside("lib.so"));
    copy_library(inside("lib.so"));
    CHECK_OK(stat(inside("lib.so"), &now));
    CHECK_NE(mapped.st_ino, now.st_ino);
    map = mapping_of(&child);
    if (privileged())
        CHECK_EQ(map->object->inode, mapped.st_ino);
    else
        CHECK(!map->object && map->tried);
    stop(&child);
    unlink(inside("lib.so"));
    end();
}

TEST(process_files, a_file_in_memory_is_an_object_if_it_is_a_library)
{
    struct child child, jit;
    struct kiln_map *map;

    if (!privileged())
        SKIP("opening a mapped file needs root");
    begin();
    child = start(map_memfd, libc_path());
    jit = start(map_memfd_code, "");
    map = mapping_of(&child);
    assert_non_null(map->object);
    CHECK_EQ(map->object->kind, KILN_OBJECT_ELF);
    CHECK_TEXT(map->object->path, "/memfd:plugin");
    map = mapping_of(&jit);
    CHECK(map->tried && !map->object);
    CHECK_EQ(map->kind, KILN_MAP_ANONYMOUS);
    stop(&child);
    stop(&jit);
    end();
}

TEST(process_files, what_two_processes_map_is_one_object)
{
    struct child a, b;
    struct kiln_object *object;

    begin();
    copy_library(inside("lib.so"));
    a = start(map_path, inside("lib.so"));
    b = start(map_path, inside("lib.so"));
    object = mapping_of(&a)->object;
    assert_non_null(object);
    CHECK(mapping_of(&b)->object == object);
    stop(&a);
    stop(&b);
    unlink(inside("lib.so"));
    end();
}

TEST(process_files, only_so_many_files_are_open_and_they_are_opened_again)
{
    struct kiln_processes_opts opts = {.objects_max = 2};
    struct kiln_object *objects[3];
    struct child children[3];
    char paths[3][128];
    int fd;

    begin_with(opts);
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "lib%d.so", i);
        snprintf(paths[i], sizeof(paths[i]), "%s", inside(name));
        copy_library(paths[i]);
        children[i] = start(map_path, paths[i]);
        objects[i] = mapping_of(&children[i])->object;
        assert_non_null(objects[i]);
    }
    CHECK(objects[0]->fd < 0 && !objects[0]->elf);
    CHECK_EQ(kiln_object_dup(objects[0], &fd), -ENOENT);
    CHECK(objects[1]->fd >= 0 && objects[2]->fd >= 0);
    CHECK(mapping_of(&children[0])->object == objects[0]);
    CHECK(objects[0]->fd >= 0 && objects[0]->elf && objects[1]->fd < 0);
    for (int i = 0; i < 3; i++) {
        stop(&children[i]);
        unlink(paths[i]);
    }
    end();
}

TEST(process_files, a_process_that_is_gone_has_the_object_that_is_known_by_path_and_build_id)
{
    struct kiln_process *p;
    struct kiln_object *object;
    struct kiln_event event = {.kind = KILN_EVENT_MAP, .pid = 999999, .tid = 999999};
    uint64_t address = (uint64_t)(uintptr_t)gnu_get_libc_version;

    begin();
    object = kiln_process_map(processes, sample(getpid()), address)->object;
    drawn_exec(processes, 999999, "gone");
    event.start = 0x10000;
    event.length = 0x400000;
    event.name = object->path;
    event.build_id_len = object->build_id_len;
    memcpy(event.build_id, object->build_id, object->build_id_len);
    kiln_processes_apply(processes, &event);
    p = drawn_sample(processes, 999999, 5, 1);
    CHECK(kiln_process_map(processes, p, 0x11000)->object == object);
    event.start = 0x1000000;
    event.build_id[3] ^= 1;
    kiln_processes_apply(processes, &event);
    p = drawn_sample(processes, 999999, 5, 1);
    CHECK(!kiln_process_map(processes, p, 0x1001000)->object);
    end();
}

TEST(process_files, a_process_that_is_dead_and_not_yet_waited_for_has_its_files_too)
{
    struct kiln_event event = {.kind = KILN_EVENT_MAP};
    struct kiln_object *object;
    siginfo_t info;
    pid_t pid;

    begin();
    object =
        kiln_process_map(processes, sample(getpid()), (uint64_t)(uintptr_t)gnu_get_libc_version)
            ->object;
    event.name = libc_path();
    event.start = 0x10000;
    event.length = 0x400000;
    event.build_id_len = object->build_id_len;
    memcpy(event.build_id, object->build_id, object->build_id_len);
    kiln_processes_free(processes);
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){0}, &processes));
    pid = fork();
    if (pid == 0)
        _exit(0);
    CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    drawn_fork(processes, (uint32_t)getpid(), (uint32_t)pid);
    drawn_exec(processes, (uint32_t)pid, "burn");
    event.pid = event.tid = (uint32_t)pid;
    kiln_processes_apply(processes, &event);
    assert_non_null(kiln_process_map(processes, sample(pid), 0x11000)->object);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    end();
}

TEST(process_files, a_process_that_was_gone_at_once_has_its_files_from_where_its_parent_lives)
{
    struct kiln_event event = {.kind = KILN_EVENT_MAP, .pid = 999999, .tid = 999999};
    struct kiln_object *object;
    struct kiln_process *p;

    begin();
    object =
        kiln_process_map(processes, sample(getpid()), (uint64_t)(uintptr_t)gnu_get_libc_version)
            ->object;
    event.name = libc_path();
    event.start = 0x10000;
    event.length = 0x400000;
    event.build_id_len = object->build_id_len;
    memcpy(event.build_id, object->build_id, object->build_id_len);
    kiln_processes_free(processes);
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){0}, &processes));
    drawn_fork(processes, (uint32_t)getpid(), 999999);
    drawn_exec(processes, 999999, "burn");
    kiln_processes_apply(processes, &event);
    drawn_exit(processes, 999999, 999999);
    p = drawn_sample(processes, 999999, 0, 1);
    CHECK(p->gone);
    assert_non_null(kiln_process_map(processes, p, 0x11000)->object);
    CHECK_TEXT(kiln_process_identity(processes, p)->path, libc_path());
    end();
}

/* ---- threads ---- */

static void *wait_on(void *context)
{
    uint32_t tid = (uint32_t)gettid();

    if (write(*(int *)context, &tid, sizeof(tid)) == sizeof(tid))
        pause();
    return NULL;
}

TEST(process_files, a_process_whose_first_thread_has_ended_is_read_through_another)
{
    struct kiln_record record = {.size = sizeof(record), .era = 1, .comm = "second"};
    struct kiln_procfs_stat stat = {0};
    struct kiln_process *p;
    pthread_t thread;
    int up[2];

    begin();
    CHECK_OK(pipe2(up, O_CLOEXEC));
    record.pid = (uint32_t)fork();
    if (record.pid == 0) {
        if (pthread_create(&thread, NULL, wait_on, &up[1]) == 0)
            syscall(SYS_exit, 0); /* of this thread alone */
        _exit(1);
    }
    CHECK_EQ(read(up[0], &record.tid, sizeof(record.tid)), sizeof(record.tid));
    while (stat.state != 'Z') /* it ends right behind making the thread */
        CHECK_OK(kiln_proc_stat(processes, record.pid, &stat));
    p = kiln_processes_of(processes, &record);
    CHECK(p->n_maps > 0);
    CHECK(kiln_process_map(processes, p, (uint64_t)(uintptr_t)gnu_get_libc_version)->object);
    CHECK_TEXT(kiln_process_identity(processes, p)->name, "unit_host_process_files");
    CHECK_EQ(p->identity->ns_pid, record.pid);
    kill((pid_t)record.pid, SIGKILL);
    CHECK_EQ(waitpid((pid_t)record.pid, NULL, 0), record.pid);
    close(up[0]);
    close(up[1]);
    end();
}

/* ---- namespaces ---- */

static void *map_in_namespace(const char *path)
{
    static char inner[160];

    snprintf(inner, sizeof(inner), "%s/lib.so", path);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", path, "tmpfs", 0, NULL) < 0)
        return NULL;
    copy_library(inner);
    return map_path(inner);
}

TEST(process_files, a_file_of_another_mount_namespace_is_opened_there)
{
    struct child child;
    struct kiln_map *map;

    if (!privileged())
        SKIP("a namespace needs root");
    begin();
    child = start(map_in_namespace, dir);
    if (!child.at) {
        stop(&child);
        end();
        SKIP("namespaces cannot be made here");
    }
    CHECK_EQ(access(inside("lib.so"), F_OK), -1);
    map = mapping_of(&child);
    assert_non_null(map->object);
    CHECK_TEXT(map->object->path, inside("lib.so"));
    CHECK_TEXT(kiln_process_identity(processes, sample(child.pid))->owner, "0");
    stop(&child);
    end();
}

/* ---- hostile files, beneath a root of our own ---- */

static struct fake_proc fake;

static void begin_fake(const char *path)
{
    char line[256];

    fake_proc_init(&fake);
    fake_proc_add(&fake, 7, 1, 0);
    snprintf(line, sizeof(line), "10000-20000 r-xp 00000000 08:01 5 %s\n", path);
    fake_proc_text(&fake, 7, "maps", line);
    begin_with((struct kiln_processes_opts){.proc = fake.dir});
}

static struct kiln_map *fake_mapping(void)
{
    return kiln_process_map(processes, drawn_sample(processes, 7, 0, 1), 0x10000);
}

static void end_fake(void)
{
    end();
    fake_proc_done(&fake);
}

TEST(process_files, a_pipe_in_the_place_of_the_file_does_not_make_us_wait)
{
    begin_fake("/tmp/lib.so");
    CHECK_OK(mkfifo(fake_proc_path(&fake, 7, "root/tmp/lib.so"), 0666));
    CHECK(!fake_mapping()->object);
    end_fake();
}

TEST(process_files, links_do_not_lead_out_of_the_root)
{
    begin_fake("/tmp/lib.so");
    fake_proc_link(&fake, 7, "root/tmp/lib.so", libc_path());
    CHECK(!fake_mapping()->object);
    CHECK(fake_mapping()->tried);
    end_fake();
}

TEST(process_files, a_file_with_another_inode_is_not_taken)
{
    begin_fake("/tmp/lib.so");
    copy_library(fake_proc_path(&fake, 7, "root/tmp/lib.so"));
    CHECK(!fake_mapping()->object);
    end_fake();
}

TEST(process_files, a_mapping_whose_file_system_has_two_numbers_is_known_by_its_link)
{
    char line[256];

    begin_fake("/tmp/lib.so");
    copy_library(inside("real"));
    fake_proc_link(&fake, 7, "map_files/10000-20000", inside("real"));
    CHECK(!fake_mapping()->object);
    snprintf(line, sizeof(line), "10000-20000 r-xp 00000000 08:01 5 %s\n", inside("real"));
    fake_proc_text(&fake, 7, "maps", line);
    drawn_exec(processes, 7, "again");
    kiln_proc_of(drawn_sample(processes, 7, 0, 1))->unread = true;
    assert_non_null(fake_mapping()->object);
    unlink(inside("real"));
    end_fake();
}

/* The object that a new process maps, a library of this build id; its paths begin at `root`. */
static struct kiln_object *mapped_beneath(uint32_t pid, uint64_t root, const struct kiln_object *id)
{
    const struct kiln_who who = {.ns_pid = pid, .root = root};
    struct kiln_event event = {.kind = KILN_EVENT_MAP,
                               .pid = pid,
                               .start = 0x10000,
                               .length = 0x10000,
                               .name = "/tmp/lib.so",
                               .build_id_len = id->build_id_len};

    memcpy(event.build_id, id->build_id, id->build_id_len);
    fake_proc_add(&fake, pid, 1, 0);
    copy_library(fake_proc_path(&fake, pid, "root/tmp/lib.so"));
    drawn_exec(processes, pid, "a");
    kiln_processes_apply(processes, &event);
    return kiln_process_map(processes, drawn_telling(processes, pid, 0, &who), 0x10000)->object;
}

TEST(process_files, a_path_and_build_id_are_looked_for_once_beneath_a_root)
{
    struct kiln_object *library, *first, *other;
    struct kiln_object another;

    begin_fake("/tmp/other.so");
    CHECK_OK(kiln_objects_take(processes->objects, open(libc_path(), O_RDONLY | O_CLOEXEC), "/",
                               &library));
    another = *library;
    another.build_id[0]++;
    first = mapped_beneath(8, 77, library);
    assert_non_null(first);
    CHECK(mapped_beneath(9, 77, library) == first);
    other = mapped_beneath(10, 78, library);
    CHECK(other && other != first);
    CHECK(mapped_beneath(11, 77, library) == first);
    CHECK(!mapped_beneath(12, 77, &another));
    other = mapped_beneath(13, 0, library);
    CHECK(other && other != first);
    kiln_object_unref(library);
    end_fake();
}

/* A new process that runs the library, and who it is. */
static struct kiln_process *runs(uint32_t pid, const struct kiln_object *library)
{
    struct kiln_process *process;

    fake_proc_link(&fake, pid, "exe", "/tmp/lib.so");
    mapped_beneath(pid, 77, library);
    process = &kiln_proc_find(processes, pid)->pub;
    CHECK(kiln_process_identity(processes, process)->executable != NULL);
    return process;
}

TEST(process_files, nobody_waits_for_what_brief_processes_might_publish)
{
    struct kiln_object *library;
    struct kiln_process *process;

    begin_fake("/tmp/other.so");
    CHECK_OK(kiln_objects_take(processes->objects, open(libc_path(), O_RDONLY | O_CLOEXEC), "/",
                               &library));
    for (uint32_t pid = 10; pid < 14; pid++) {
        process = runs(pid, library);
        CHECK(kiln_process_may_publish_soon(process));
        drawn_exit(processes, pid, pid);
        CHECK(!kiln_process_may_publish_soon(process));
    }
    process = runs(14, library);
    CHECK(!kiln_process_may_publish_soon(process));
    kiln_proc_of(process)->context_due_ns = 1; /* it lives on */
    kiln_process_identity(processes, process);
    CHECK(kiln_process_may_publish_soon(process));
    kiln_object_unref(library);
    end_fake();
}

TEST(process_files, a_file_that_is_no_elf_is_an_object_of_another_kind)
{
    struct stat st;
    char line[256];

    begin_fake("/tmp/app.jsa");
    fake_proc_text(&fake, 7, "root/tmp/app.jsa", "not an ELF file");
    CHECK_OK(stat(fake_proc_path(&fake, 7, "root/tmp/app.jsa"), &st));
    snprintf(line, sizeof(line), "10000-20000 r-xp 00003000 08:01 %lu /tmp/app.jsa\n",
             (unsigned long)st.st_ino);
    fake_proc_text(&fake, 7, "maps", line);
    assert_non_null(fake_mapping()->object);
    CHECK_EQ(fake_mapping()->object->kind, KILN_OBJECT_OTHER);
    CHECK_EQ(fake_mapping()->bias, 0x10000 - 0x3000);
    end_fake();
}

/* A library whose tables have no index: one is made of their 250 entries when they are asked. */
static struct elf_maker *library_of_many_functions(void)
{
    struct frame_maker *frames = calloc(1, sizeof(*frames));
    struct elf_maker *maker = calloc(1, sizeof(*maker));
    static const uint8_t code[0x1000];
    size_t cie;

    assert_non_null(frames);
    assert_non_null(maker);
    frames->address = 0x5000;
    cie = frame_maker_cie(frames, &(struct frame_cie){.letters = "zR", .encoding = 0x1b});
    for (uint64_t i = 0; i < 250; i++)
        frame_maker_fde(frames, cie, 0x1000 + 4 * i, 4, FRAME_PROGRAM("\x0e\x10"));
    maker->type = ET_DYN;
    elf_maker_add(maker, (struct elf_part){.name = ".text",
                                           .flags = SHF_ALLOC | SHF_EXECINSTR,
                                           .address = 0x1000,
                                           .data = code,
                                           .n = sizeof(code)});
    elf_maker_add(maker, (struct elf_part){.name = ".eh_frame",
                                           .flags = SHF_ALLOC,
                                           .address = 0x5000,
                                           .data = frames->data,
                                           .n = frames->n});
    (void)elf_maker_bytes(maker);
    free(frames);
    return maker;
}

/* The object of such a library that process 7 has mapped, where files may weigh so much. */
static struct kiln_object *begin_many_functions(uint64_t memory_bytes)
{
    struct elf_maker *maker = library_of_many_functions();
    struct stat st;
    char line[256];

    fake_proc_init(&fake);
    fake_proc_add(&fake, 7, 1, 0);
    fake_proc_write(&fake, 7, "root/tmp/lib.so", (const char *)maker->data, maker->n);
    CHECK_OK(stat(fake_proc_path(&fake, 7, "root/tmp/lib.so"), &st));
    snprintf(line, sizeof(line), "10000-20000 r-xp 00000000 08:01 %lu /tmp/lib.so\n",
             (unsigned long)st.st_ino);
    fake_proc_text(&fake, 7, "maps", line);
    free(maker);
    begin_with((struct kiln_processes_opts){.proc = fake.dir, .memory_bytes = memory_bytes});
    return fake_mapping()->object;
}

static void read_tables(struct kiln_object *object)
{
    struct kiln_cfi_row rows[8];

    object->cfi_tried = true;
    CHECK_OK(kiln_cfi_open(object->elf, &object->cfi));
    CHECK(kiln_cfi_rows(object->cfi, 0x1000, 0x1010, rows, 8) > 0);
}

TEST(process_files, tables_that_weigh_too_much_are_done_without)
{
    struct kiln_object *object = begin_many_functions(1 << 20);

    assert_non_null(object);
    read_tables(object);
    CHECK(fake_mapping()->object == object && object->cfi); /* it is light enough */
    end_fake();
    object = begin_many_functions(24 << 10);
    assert_non_null(object);
    read_tables(object);
    CHECK(fake_mapping()->object == object && !object->cfi && object->cfi_tried && object->elf);
    end_fake();
}

TEST(process_files, headers_that_weigh_too_much_are_done_without)
{
    struct kiln_object *object = begin_many_functions(2 << 10);

    assert_non_null(object);
    CHECK(!object->elf && object->fd >= 0);
    end_fake();
}

/* ---- unknown addresses ---- */

TEST(process_files, an_unknown_address_makes_us_look_again_but_not_each_time)
{
    struct kiln_process *p;

    begin_fake("/tmp/a");
    p = drawn_sample(processes, 7, 0, 1);
    fake_proc_text(&fake, 7, "maps", "30000-40000 r-xp 00000000 08:01 5 /tmp/b\n");
    CHECK(!kiln_process_map(processes, p, 0x30000));
    kiln_proc_of(p)->read_ns = 0;
    CHECK(kiln_process_map(processes, p, 0x30000));
    CHECK(!kiln_process_map(processes, p, 0x10000));
    end_fake();
}
