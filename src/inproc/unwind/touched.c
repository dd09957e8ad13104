/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of each object the lowest and the highest entry are known that were read: whole pages between
 * them are of .eh_frame and nothing else.  /proc/self/pagemap has eight bytes for each page: bits
 * 63 and 62 are set where it is in memory or swapped out, bit 61 where it is the file's.  One that
 * was written to is no file's any more and stays, so that a program which changes its own tables
 * keeps what it wrote; and only segments that are not for writing are looked at, so that none is
 * written to meanwhile.  Whoever reads a page that was let go has it from the file, as at first.
 * Pages that are locked in memory stay: the kernel refuses.
 */
#include "inproc/unwind/touched.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "inproc/unwind/peek.h"

enum {
    ENOUGH = 256, /* entries: those of a large program are a MiB or two, with what lies around */
    CHUNK = 256   /* pages that are asked for at once */
};

#define IS_THERE     (UINT64_C(1) << 63)
#define IS_SWAPPED   (UINT64_C(1) << 62)
#define IS_OF_A_FILE (UINT64_C(1) << 61)

static struct touched {
    _Atomic uint64_t index, index_end;        /* .eh_frame_hdr; 0: nothing was read yet */
    _Atomic uint64_t first_entry, last_entry; /* that were read */
} touched[KILN_IN_STAYING_MAX];
static _Atomic uint32_t n_seen; /* since the last time */

/* ---- what is read ---- */

static void widen(struct touched *t, uint64_t entry)
{
    uint64_t first = atomic_load_explicit(&t->first_entry, memory_order_relaxed);
    uint64_t last = atomic_load_explicit(&t->last_entry, memory_order_relaxed);

    /* Two threads at once may lose one of them: then its pages stay a little longer. */
    if (!first || entry < first)
        atomic_store_explicit(&t->first_entry, entry, memory_order_relaxed);
    if (entry > last)
        atomic_store_explicit(&t->last_entry, entry, memory_order_relaxed);
}

void kiln_in_touched_see(const struct kiln_in_object *object, uint64_t index_bytes, uint64_t entry)
{
    struct touched *t = &touched[object->number];
    uint64_t room = object->high - object->header;

    widen(t, entry);
    atomic_store_explicit(&t->index_end, object->header + (index_bytes < room ? index_bytes : room),
                          memory_order_relaxed);
    atomic_store_explicit(&t->index, object->header, memory_order_release);
    atomic_fetch_add_explicit(&n_seen, 1, memory_order_relaxed);
}

/* ---- letting go ---- */

static bool is_written(uint64_t flags)
{
    return (flags & (IS_THERE | IS_SWAPPED)) && !(flags & IS_OF_A_FILE);
}

/* Pages from the first to the last that is there: `to` is 0 until one was. */
struct run {
    uint64_t from, to;
};

/* Each call may interrupt every processor that the program runs on. */
static void let_go(struct run *run)
{
    if (run->to)
        madvise((void *)(uintptr_t)run->from, run->to - run->from, /* NOLINT(performance-*) */
                MADV_DONTNEED);
    run->to = 0;
}

static void take(struct run *run, uint64_t at, uint64_t page)
{
    if (!run->to)
        run->from = at;
    run->to = at + page;
}

/* All pages of [from, to) that are the file's, in runs between those that are not. */
static void let_go_of_files(int pagemap, uint64_t from, uint64_t to, uint64_t page)
{
    uint64_t flags[CHUNK];
    struct run run = {0};

    while (from < to) {
        uint64_t n = (to - from) / page < CHUNK ? (to - from) / page : CHUNK;

        if (pread(pagemap, flags, n * sizeof(*flags), (off_t)(from / page * sizeof(*flags))) !=
            (ssize_t)(n * sizeof(*flags)))
            break;
        for (uint64_t i = 0; i < n; i++, from += page) {
            if (is_written(flags[i]))
                let_go(&run);
            else if (flags[i] & IS_THERE)
                take(&run, from, page);
        }
    }
    let_go(&run);
}

static void let_go_within(int pagemap, uint64_t from, uint64_t to)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    let_go_of_files(pagemap, (from + page - 1) & ~(page - 1), to & ~(page - 1), page);
}

static void let_go_of(int pagemap, struct touched *t)
{
    uint64_t index = atomic_exchange_explicit(&t->index, 0, memory_order_acquire);

    if (!index)
        return;
    let_go_within(pagemap, index, atomic_load_explicit(&t->index_end, memory_order_relaxed));
    let_go_within(pagemap, atomic_load_explicit(&t->first_entry, memory_order_relaxed),
                  atomic_load_explicit(&t->last_entry, memory_order_relaxed));
}

void kiln_in_touched_let_go(void)
{
    int pagemap;

    if (atomic_load_explicit(&n_seen, memory_order_relaxed) < ENOUGH || kiln_in_peek_is_cautious())
        return;
    pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0)
        return;
    atomic_store_explicit(&n_seen, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < KILN_IN_STAYING_MAX; i++)
        let_go_of(pagemap, &touched[i]);
    close(pagemap);
}
