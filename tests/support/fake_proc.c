/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_proc.h"

#include <dirent.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void fake_proc_init(struct fake_proc *fake)
{
    snprintf(fake->dir, sizeof(fake->dir), "/tmp/kiln-proc-test-XXXXXX");
    assert_non_null(mkdtemp(fake->dir));
}

void fake_proc_done(struct fake_proc *fake)
{
    remove_tree(fake->dir);
}

const char *fake_proc_path(const struct fake_proc *fake, uint32_t pid, const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%u/%s", fake->dir, pid, name);
    return path;
}

static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
}

void fake_proc_write(struct fake_proc *fake, uint32_t pid, const char *name, const char *text,
                     size_t len)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s", fake_proc_path(fake, pid, name));
    make_folders(path);
    file = fopen(path, "w");
    assert_non_null(file);
    CHECK_EQ(fwrite(text, 1, len, file), len);
    CHECK_EQ(fclose(file), 0);
}

void fake_proc_text(struct fake_proc *fake, uint32_t pid, const char *name, const char *text)
{
    fake_proc_write(fake, pid, name, text, strlen(text));
}

void fake_proc_link(struct fake_proc *fake, uint32_t pid, const char *name, const char *target)
{
    char path[512];

    snprintf(path, sizeof(path), "%s", fake_proc_path(fake, pid, name));
    make_folders(path);
    unlink(path);
    CHECK_EQ(symlink(target, path), 0);
}

void fake_proc_add(struct fake_proc *fake, uint32_t pid, uint32_t parent_pid, uint64_t start_ns)
{
    uint64_t ticks = start_ns / (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
    char text[256];

    snprintf(text, sizeof(text),
             "%u (a) b) S %u 1 1 0 -1 4194304 102 0 0 0 0 0 0 0 20 0 1 0 %" PRIu64 " 31 376\n", pid,
             parent_pid, ticks);
    fake_proc_text(fake, pid, "stat", text);
    fake_proc_text(fake, pid, "maps", "");
    fake_proc_text(fake, pid, "root/tmp/.keep", "");
}

void fake_proc_remove(struct fake_proc *fake, uint32_t pid)
{
    remove_tree(fake_proc_path(fake, pid, ""));
}

/* ---- events ---- */

static uint64_t now_ns(void)
{
    static uint64_t at = 1000000;

    return at += 1000;
}

static void apply(struct kiln_processes *processes, struct kiln_event event)
{
    event.time_ns = now_ns();
    kiln_processes_apply(processes, &event);
}

void drawn_fork(struct kiln_processes *processes, uint32_t ppid, uint32_t pid)
{
    apply(processes,
          (struct kiln_event){
              .kind = KILN_EVENT_FORK, .pid = pid, .tid = pid, .ppid = ppid, .ptid = ppid});
}

void drawn_thread(struct kiln_processes *processes, uint32_t pid, uint32_t tid)
{
    apply(processes,
          (struct kiln_event){
              .kind = KILN_EVENT_FORK, .pid = pid, .tid = tid, .ppid = pid, .ptid = pid});
}

void drawn_exec(struct kiln_processes *processes, uint32_t pid, const char *comm)
{
    apply(processes,
          (struct kiln_event){
              .kind = KILN_EVENT_COMM, .pid = pid, .tid = pid, .exec = true, .name = comm});
}

void drawn_comm(struct kiln_processes *processes, uint32_t pid, const char *comm)
{
    apply(processes,
          (struct kiln_event){.kind = KILN_EVENT_COMM, .pid = pid, .tid = pid, .name = comm});
}

void drawn_exit(struct kiln_processes *processes, uint32_t pid, uint32_t tid)
{
    apply(processes, (struct kiln_event){.kind = KILN_EVENT_EXIT, .pid = pid, .tid = tid});
}

void drawn_lost(struct kiln_processes *processes)
{
    apply(processes, (struct kiln_event){.kind = KILN_EVENT_LOST, .n = 1});
}

void drawn_map(struct kiln_processes *processes, uint32_t pid, uint64_t start, uint64_t end,
               uint64_t offset, const char *name)
{
    apply(processes, (struct kiln_event){.kind = KILN_EVENT_MAP,
                                         .pid = pid,
                                         .tid = pid,
                                         .start = start,
                                         .length = end - start,
                                         .offset = offset,
                                         .name = name,
                                         .inode = name[0] == '/' && name[1] != '/'});
}

void drawn_map_id(struct kiln_processes *processes, uint32_t pid, uint64_t start, uint64_t end,
                  const char *name, const char *build_id)
{
    struct kiln_event event = {.kind = KILN_EVENT_MAP,
                               .pid = pid,
                               .tid = pid,
                               .start = start,
                               .length = end - start,
                               .name = name,
                               .build_id_len = (uint8_t)strlen(build_id)};

    memcpy(event.build_id, build_id, event.build_id_len);
    apply(processes, event);
}

static struct kiln_record draw_record(uint32_t pid, uint64_t start_ns, uint64_t era)
{
    return (struct kiln_record){.size = sizeof(struct kiln_record),
                                .pid = pid,
                                .tid = pid,
                                .start_ns = start_ns,
                                .era = era,
                                .cgroup = 1, /* the root */
                                .time_ns = now_ns(),
                                .comm = "thread"};
}

struct kiln_process *drawn_sample(struct kiln_processes *processes, uint32_t pid, uint64_t start_ns,
                                  uint64_t era)
{
    struct kiln_record record = draw_record(pid, start_ns, era);

    return kiln_processes_of(processes, &record);
}

struct kiln_process *drawn_telling(struct kiln_processes *processes, uint32_t pid,
                                   uint64_t start_ns, const struct kiln_who *who)
{
    struct kiln_record record = draw_record(pid, start_ns, 1);

    record.who = *who;
    return kiln_processes_of(processes, &record);
}

const char *drawn_maps(const struct kiln_process *process)
{
    static char text[4096];
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < process->n_maps && n < sizeof(text) - 256; i++) {
        const struct kiln_map *map = &process->maps[i];

        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%" PRIx64 "-%" PRIx64 " %.128s",
                              i ? ", " : "", map->start, map->end,
                              map->kind == KILN_MAP_ANONYMOUS ? "//anon" : map->path);
        if (map->offset && map->kind == KILN_MAP_FILE)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "+%" PRIx64, map->offset);
    }
    return text;
}

uint32_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint32_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}
