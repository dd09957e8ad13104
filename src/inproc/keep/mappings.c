/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of /proc/thread-self/maps (that of a process is empty when its main thread has ended) whose
 * code comes from a file, or is the kernel's own page of functions:
 *
 *   7f0000001000-7f0000002000 r-xp 00001000 08:01 1234     /usr/lib/libc.so.6
 *
 * A file is opened once for each new mapping, for its segments and its build id; whether it is
 * still the one that is mapped is told by its inode.  What is not mapped any more stays, behind
 * what is.
 */
#include "inproc/keep/mappings.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "core/frame.h"

enum { MAPS_MAX = 8 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kiln_in_mapping *all; /* in the order they were seen */
static uint32_t n_all, cap_all;
static struct kiln_budget budget = {.limit = KILN_IN_MAPPINGS_MAX * sizeof(struct kiln_in_mapping)};

void kiln_in_mappings_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kiln_in_mappings_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- files ---- */

/* The segment that a piece of the file belongs to: where the file itself wants it. */
static void place(struct kiln_in_mapping *m, const struct kiln_elf *elf)
{
    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];
        uint64_t page = s->offset & ~(uint64_t)4095;

        if (s->type != PT_LOAD || !(s->flags & PF_X) || m->map_offset < page ||
            m->map_offset >= s->offset + s->file_size)
            continue;
        m->code_address = s->address;
        m->code_offset = s->offset;
        m->code_size = s->memory_size;
        m->shift = s->address - s->offset + m->map_offset - m->start;
        return;
    }
    m->shift = m->map_offset - m->start;
}

static void identify(struct kiln_in_mapping *m, const struct kiln_bytes *bytes)
{
    struct kiln_elf *elf;

    if (kiln_elf_open(bytes, &elf) < 0) {
        m->shift = m->map_offset - m->start;
        return;
    }
    place(m, elf);
    if (kiln_elf_build_id(elf, m->build_id, &m->build_id_len) < 0 &&
        kiln_elf_hash(bytes, m->file_hash) < 0)
        m->file_hash[0] = '\0';
    kiln_elf_close(elf);
}

static void identify_file(struct kiln_in_mapping *m)
{
    int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct kiln_bytes bytes;
    struct stat status;

    m->shift = m->map_offset - m->start;
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == m->inode &&
        kiln_bytes_file(fd, &bytes) == 0)
        identify(m, &bytes);
    close(fd);
}

/* The kernel's page is never unmapped: it can be read where it is. */
static void identify_kernel(struct kiln_in_mapping *m)
{
    struct kiln_bytes bytes =
        kiln_bytes_memory((const void *)(uintptr_t)m->start, (size_t)(m->end - m->start));

    identify(m, &bytes);
}

/* ---- lines ---- */

/* Most lines are not of code, and need not be read any further. */
static bool is_code(const char *line)
{
    const char *flags = strchr(line, ' ');

    return flags && strnlen(flags, 4) == 4 && flags[3] == 'x';
}

static const char *field_after(const char *at)
{
    at = strchr(at, ' ');
    return at ? at + strspn(at, " ") : NULL;
}

/* By hand: sscanf() takes ten times as long, once a second. */
static bool parse(const char *line, struct kiln_in_mapping *m)
{
    const char *flags = field_after(line), *offset = flags ? field_after(flags) : NULL;
    const char *device = offset ? field_after(offset) : NULL;
    const char *inode = device ? field_after(device) : NULL,
               *path = inode ? field_after(inode) : NULL;
    char *end;

    if (!path || (path[0] != '/' && strcmp(path, "[vdso]") != 0))
        return false;
    m->start = strtoull(line, &end, 16);
    if (*end != '-')
        return false;
    m->end = strtoull(end + 1, NULL, 16);
    m->map_offset = strtoull(offset, NULL, 16);
    m->inode = strtoull(inode, NULL, 10);
    snprintf(m->path, sizeof(m->path), "%s", path);
    return true;
}

static bool is_known(const struct kiln_in_mapping *m)
{
    for (uint32_t i = n_all; i-- > 0;) {
        if (all[i].start == m->start && all[i].end == m->end && all[i].inode == m->inode &&
            all[i].map_offset == m->map_offset && strcmp(all[i].path, m->path) == 0) {
            all[i].current = true;
            return true;
        }
    }
    return false;
}

static void see(const char *line)
{
    struct kiln_in_mapping m = {0};

    if (!parse(line, &m) || is_known(&m))
        return;
    if (kiln_grow(&budget, (void **)&all, &cap_all, (uint64_t)n_all + 1, sizeof(*all),
                  KILN_IN_MAPPINGS_MAX) < 0)
        return;
    if (m.path[0] == '/')
        identify_file(&m);
    else
        identify_kernel(&m);
    m.ours = kiln_str_starts(kiln_frame_base(kiln_str_of(m.path)), KILN_STR("libkiln.so"));
    m.current = true;
    all[n_all++] = m;
}

static void look(void)
{
    struct kiln_buf text;

    kiln_buf_init(&text, MAPS_MAX);
    if (kiln_file_read("/proc/thread-self/maps", &text, NULL) == 0) {
        char *rest;

        kiln_buf_putc(&text, '\0');
        rest = text.error ? NULL : text.ptr;
        for (uint32_t i = 0; i < n_all; i++)
            all[i].current = false;
        for (char *line; rest && (line = strsep(&rest, "\n"));) {
            if (is_code(line))
                see(line);
        }
    }
    kiln_buf_done(&text);
}

void kiln_in_mappings_look(void)
{
    pthread_mutex_lock(&lock);
    look();
    pthread_mutex_unlock(&lock);
}

/* ---- addresses ---- */

static struct kiln_in_mapping *find(uint64_t address, bool current)
{
    for (uint32_t i = n_all; i-- > 0;) {
        if (all[i].current == current && address >= all[i].start && address < all[i].end)
            return &all[i];
    }
    return NULL;
}

struct kiln_in_mapping *kiln_in_mappings_find(uint64_t address)
{
    struct kiln_in_mapping *found = find(address, true);

    return found ? found : find(address, false);
}

struct kiln_in_mapping *kiln_in_mappings_of(struct kiln_str path, uint64_t address)
{
    struct kiln_in_mapping *found = NULL;

    for (uint32_t i = n_all; i-- > 0 && !(found && found->current);) {
        if (all[i].code_address == address && kiln_str_eq(kiln_str_of(all[i].path), path) &&
            (!found || all[i].current))
            found = &all[i];
    }
    return found;
}

void kiln_in_mappings_unmake(void)
{
    for (uint32_t i = 0; i < n_all; i++)
        all[i].made = 0;
}

void kiln_in_mappings_forked(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    lock = fresh;
    all = NULL;
    n_all = cap_all = 0;
    budget.used = 0;
}
