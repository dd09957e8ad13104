/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/self/maps says what there is, /proc/self/pagemap which pages of it are memory.  Those are
 * written to the scratch file, and that is mapped over the whole range, privately:
 *
 *   7f12a4000000-7f12a4400000 rw-p 00000000 00:00 0                    memory
 *   55d0c8a51000-55d0c8e00000 rw-p 00000000 00:00 0      [heap]        likewise
 *   7f12a5000000-7f12a5100000 rw-p f0000000 08:01 4711   (deleted)     moved before
 *
 * Of a range that moved before, only pages that were written since are memory; those that were
 * read are let go of by mapping it anew.
 *
 * Between the writing and the mapping of one range nothing may change in it: there is one thread,
 * and it does nothing else.  Memory that realloc() lets grow in place (mremap) reaches into what
 * the file has behind it, so the file is always larger than what was written.
 */
#include "symbol/spill.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"

enum { RANGES_MAX = 256, TEXT = 4096, PAGES = 512 };

#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

struct range {
    unsigned long begin, end, offset, inode;
};

/* Whether a line is about memory that can move. */
static bool parse_line(const struct kiln_spill *spill, const char *line, struct range *ret_range)
{
    struct range range;
    char rights[5] = "";
    int name = 0;

    if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %lu %n", &range.begin, &range.end, rights,
               &range.offset, &range.inode, &name) != 5 ||
        strcmp(rights, "rw-p") != 0)
        return false;
    if (range.inode != 0 ? range.inode != spill->inode
                         : line[name] != '\0' && strcmp(line + name, "[heap]") != 0)
        return false;
    *ret_range = range;
    return range.end - range.begin >= KILN_SPILL_LEAST;
}

static uint32_t parse_lines(const struct kiln_spill *spill, char *text, struct range *ranges,
                            uint32_t n)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line && n < RANGES_MAX;
         line = strtok_r(NULL, "\n", &rest))
        n += parse_line(spill, line, ranges + n);
    return n;
}

static uint32_t list_ranges(const struct kiln_spill *spill, struct range *ranges)
{
    char text[TEXT + 1];
    uint32_t n = 0;
    off_t at = 0;
    ssize_t got;

    while ((got = pread(spill->maps, text, TEXT, at)) > 0) {
        char *last;

        text[got] = '\0';
        last = strrchr(text, '\n');
        if (!last)
            break;
        *last = '\0';
        at += last + 1 - text;
        n = parse_lines(spill, text, ranges, n);
    }
    return n;
}

static bool write_all(int fd, const char *from, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t done = pwrite(fd, from, n, (off_t)at);

        if (done <= 0)
            return false;
        from += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}

/* Pages of memory among `n` from `at` on, to the file.  Negative: they could not be written. */
static ssize_t write_memory(const struct kiln_spill *spill, unsigned long at, size_t n,
                            uint64_t offset)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t pages[PAGES];
    size_t got = n / page < PAGES ? n / page : PAGES, first = 0;
    ssize_t written = 0;

    if (pread(spill->pagemap, pages, got * 8, (off_t)(at / page * 8)) != (ssize_t)(got * 8))
        return -1;
    for (size_t i = 0; i <= got; i++) {
        bool is_memory =
            i < got && (pages[i] & (PAGE_PRESENT | PAGE_SWAPPED)) && !(pages[i] & PAGE_OF_FILE);

        if (is_memory)
            continue;
        if (!write_all(spill->scratch, (const char *)(uintptr_t)at + first * page,
                       (i - first) * page, offset + first * page))
            return -1;
        written += (ssize_t)((i - first) * page);
        first = i + 1;
    }
    return written;
}

static size_t move(struct kiln_spill *spill, const struct range *range)
{
    const size_t step = PAGES * (size_t)sysconf(_SC_PAGESIZE);
    uint64_t offset = range->inode ? range->offset : spill->next;
    size_t n = range->end - range->begin, moved = 0;

    if (!range->inode && n > spill->end - spill->next)
        return 0;
    for (size_t at = 0; at < n; at += step) {
        size_t rest = n - at;
        ssize_t written =
            write_memory(spill, range->begin + at, rest < step ? rest : step, offset + at);

        if (written < 0)
            return 0;
        moved += (size_t)written;
    }
    if (mmap((void *)(uintptr_t)range->begin, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
             spill->scratch, (off_t)offset) == MAP_FAILED)
        return 0;
    if (!range->inode)
        spill->next += n;
    return moved;
}

int kiln_spill_open(struct kiln_spill *spill)
{
    struct stat of;

    if (KILN_SANITIZED || fstat(spill->scratch, &of) != 0 ||
        ftruncate(spill->scratch, (off_t)spill->cut) != 0)
        return -1;
    spill->inode = of.st_ino;
    return 0;
}

size_t kiln_spill(struct kiln_spill *spill)
{
    struct range ranges[RANGES_MAX];
    size_t moved = 0;
    uint32_t n = list_ranges(spill, ranges);

    for (uint32_t i = 0; i < n; i++)
        moved += move(spill, ranges + i);
    return moved;
}
