/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of /proc, of which processes write parts themselves, and the names in events.  The first
 * byte says which; "m" is maps, read from a file like /proc/PID/maps, "e" are events: a byte of
 * kind, two of pid and of start, one of length, then a name up to a newline.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz.h"
#include "host/process_int.h"

static void check_maps(const struct kiln_map *maps, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        FUZZ_CHECK(maps[i].start < maps[i].end && maps[i].path);
        FUZZ_CHECK(!i || maps[i - 1].end <= maps[i].start);
        FUZZ_CHECK(strlen(maps[i].path) <= KILN_PROCFS_PATH_MAX);
    }
}

/* Of a folder with that one file. */
static void maps(struct kiln_str text)
{
    struct kiln_map_shelf shelf = {.budget.limit = 16 << 20};
    struct kiln_map_set *set;
    char dir[] = "/tmp/kiln-procfs-fuzz-XXXXXX", path[64];
    int fd, folder;

    if (!mkdtemp(dir))
        return;
    snprintf(path, sizeof(path), "%s/maps", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && write(fd, text.ptr, text.len) == (ssize_t)text.len &&
        kiln_map_set_read(&shelf, folder, &set) == 0) {
        FUZZ_CHECK(!set->n_pending);
        check_maps(set->maps, set->n);
        kiln_map_set_unref(&shelf, set);
        FUZZ_CHECK(shelf.budget.used == 0 && shelf.paths.n == 0);
    }
    kiln_paths_forget(&shelf.paths);
    close(fd);
    close(folder);
    unlink(path);
    rmdir(dir);
}

static void events(struct kiln_str text)
{
    struct kiln_processes_opts opts = {.proc = "/sys", .processes_max = 8, .objects_max = 4};
    struct kiln_processes *processes;

    if (kiln_processes_new(&opts, &processes) < 0)
        return;
    while (text.len > 6) {
        const uint8_t *in = (const uint8_t *)text.ptr;
        struct kiln_event event = {.kind = in[0] % 5, .exec = in[0] & 8};
        struct kiln_process *process;
        struct kiln_record record = {.pid = in[1] % 16, .tid = in[1] % 16, .era = in[2] % 2};
        char name[512];
        struct kiln_str line;

        event.pid = in[1] % 16;
        event.tid = in[2] % 16;
        event.ppid = in[2] / 16;
        event.start = ((uint64_t)in[3] << 8 | in[4]) << 12;
        event.length = (uint64_t)in[5] << 12;
        event.inode = in[5] & 3;
        text.ptr += 6;
        text.len -= 6;
        line = kiln_str_cut(&text, '\n');
        snprintf(name, sizeof(name), "%.*s", KILN_STR_ARG(line));
        event.name = name;
        kiln_processes_apply(processes, &event);
        if (event.inode)
            continue;
        process = kiln_processes_of(processes, &record);
        if (process)
            check_maps(process->maps, process->n_maps);
        if (process && in[5] & 4)
            FUZZ_CHECK(kiln_process_identity(processes, process));
        if (in[5] & 8)
            kiln_processes_sweep(processes);
    }
    kiln_processes_free(processes);
}

static void texts(struct kiln_str text)
{
    static const char *const names[] = {"A", "OTEL_SERVICE_NAME"};
    struct kiln_procfs_status status;
    struct kiln_procfs_mount mount;
    struct kiln_procfs_stat stat;
    struct kiln_str found;

    if (kiln_procfs_parse_mount(text, &mount) == 0)
        FUZZ_CHECK(mount.point.len && mount.type.len && mount.type.ptr > mount.point.ptr);
    if (kiln_procfs_parse_stat(text, &stat) == 0)
        FUZZ_CHECK(stat.state != ' ');
    kiln_procfs_parse_status(text, &status);
    found = kiln_procfs_parse_cgroup(text);
    FUZZ_CHECK(found.len <= text.len);
    while ((found = kiln_procfs_next_env(&text, names, 2)).ptr)
        FUZZ_CHECK(*found.ptr == 'A' || *found.ptr == 'O');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data + 1, size - 1};

    if (!size)
        return 0;
    if (data[0] == 'm')
        maps(text);
    else if (data[0] == 'e')
        events(text);
    else
        texts(text);
    return 0;
}
