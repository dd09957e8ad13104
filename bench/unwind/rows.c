/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: bench_rows FILE...
 *
 * What do unwind tables cost?  For all files together: every page of code, its rows and its memory;
 * then for each file of more than 16 MiB: opening it, and one page of it on demand.  CPU time; one
 * line a figure, words and numbers.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../bench.h"
#include "base/mem.h"
#include "host/bpf/record.h"
#include "symbol/cfi.h"

enum { PAGE = 1 << KILN_PAGE_BITS, LARGE = 16 << 20, DRAWS = 2000 };

struct sum {
    uint64_t files, without, pages, rows, slot_bytes, code_bytes;
};

struct opened {
    int fd;
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    struct kiln_cfi *cfi;
};

static struct kiln_cfi_row rows[KILN_ROWS_MAX];

static bool open_file(const char *path, struct opened *o)
{
    *o = (struct opened){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (o->fd < 0)
        return false;
    if (kiln_bytes_file(o->fd, &o->bytes) == 0 && kiln_elf_open(&o->bytes, &o->elf) == 0)
        return true;
    close(o->fd);
    return false;
}

static void close_file(struct opened *o)
{
    kiln_cfi_close(o->cfi);
    kiln_elf_close(o->elf);
    close(o->fd);
}

static uint64_t slot_bytes(int n)
{
    uint64_t bytes = 128;

    while (bytes < ((uint64_t)n + 1) * 8)
        bytes *= 2;
    return bytes;
}

static void add_pages(const struct opened *o, struct sum *sum)
{
    for (uint32_t i = 0; i < o->elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &o->elf->segments[i];

        if (s->type != PT_LOAD || !(s->flags & PF_X))
            continue;
        sum->code_bytes += s->file_size;
        for (uint64_t at = s->address & ~(uint64_t)(PAGE - 1); at < s->address + s->file_size;
             at += PAGE) {
            int n = kiln_cfi_rows(o->cfi, at, at + PAGE, rows, KILN_ROWS_MAX);

            sum->pages++;
            sum->rows += n > 0 ? (uint64_t)n : 0;
            sum->slot_bytes += slot_bytes(n > 0 ? n : 1);
        }
    }
}

static void measure_all(char **paths, int n)
{
    struct sum sum = {0};
    double begin = bench_cpu_s(), s;
    struct rusage usage;
    struct opened o;

    for (int i = 0; i < n; i++) {
        if (!open_file(paths[i], &o))
            continue;
        sum.files++;
        if (kiln_cfi_open(o.elf, &o.cfi) == 0)
            add_pages(&o, &sum);
        else
            sum.without++;
        close_file(&o);
    }
    s = bench_cpu_s() - begin;
    getrusage(RUSAGE_SELF, &usage);
    printf("files %" PRIu64 " without %" PRIu64 " code_mib %.1f pages %" PRIu64 " rows %" PRIu64
           " cpu_s %.3f rows_per_s %.0f us_per_page %.2f slot_mib %.1f peak_rss_mib %.1f\n",
           sum.files, sum.without, (double)sum.code_bytes / 1048576, sum.pages, sum.rows, s,
           (double)sum.rows / s, s * 1e6 / (double)sum.pages, (double)sum.slot_bytes / 1048576,
           (double)usage.ru_maxrss / 1024);
}

/* Random pages, as samples ask for them. */
static void measure_pages(const char *path)
{
    uint64_t seed = 88172645463325252u, n_rows = 0, first = 0, size = 0;
    double begin = bench_cpu_s(), opened, asked;
    struct opened o;

    if (!open_file(path, &o))
        return;
    for (uint32_t i = 0; i < o.elf->n_segments; i++) {
        if (o.elf->segments[i].type == PT_LOAD && (o.elf->segments[i].flags & PF_X) &&
            o.elf->segments[i].file_size > size) {
            first = o.elf->segments[i].address;
            size = o.elf->segments[i].file_size;
        }
    }
    if (o.bytes.size >= LARGE && size && kiln_cfi_open(o.elf, &o.cfi) == 0) {
        opened = bench_cpu_s();
        for (int i = 0; i < DRAWS; i++) {
            uint64_t at;
            int n;

            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            at = (first + seed % size) & ~(uint64_t)(PAGE - 1);
            n = kiln_cfi_rows(o.cfi, at, at + PAGE, rows, KILN_ROWS_MAX);
            n_rows += n > 0 ? (uint64_t)n : 0;
        }
        asked = bench_cpu_s();
        printf("file %s mib %.1f open_us %.0f page_us %.1f rows_per_page %.0f blocks %" PRId64 "\n",
               path, (double)o.bytes.size / 1048576, (opened - begin) * 1e6,
               (asked - opened) * 1e6 / DRAWS, (double)n_rows / DRAWS, kiln_mem_live());
    }
    close_file(&o);
}

int main(int argc, char **argv)
{
    measure_all(argv + 1, argc - 1);
    for (int i = 1; i < argc; i++)
        measure_pages(argv[i]);
    return 0;
}
