/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of each object the lowest and the highest entry are known that were read: whole pages between
 * them are of .eh_frame and nothing else.  A page is let go only where /proc/self/pagemap says that
 * it is in memory and the file's: eight bytes for each page, bit 63 and bit 61.  One that was
 * written to is no file's any more, so that a program which changes its own tables keeps what it
 * wrote; and only of segments that are not for writing, so that none is written to while we look.
 * Whoever reads a page that was let go has it from the file, as at first.  Pages that are locked in
 * memory stay: the kernel refuses.
 */
#include "inproc/unwind/touched.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "inproc/unwind/peek.h"

enum {
    ENOUGH = 16, /* entries: the kernel maps 64 KiB at most for each, and as much of the index */
    CHUNK = 256  /* pages that are asked for at once */
};

#define IS_THERE     (UINT64_C(1) << 63)
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

static void let_go(uint64_t from, uint64_t to)
{
    if (from < to)
        madvise((void *)(uintptr_t)from, to - from, MADV_DONTNEED); /* NOLINT(performance-*) */
}

/* Runs of pages that are the file's, of [from, to). */
static void let_go_of_files(int pagemap, uint64_t from, uint64_t to, uint64_t page)
{
    uint64_t flags[CHUNK], run = from;

    while (from < to) {
        uint64_t n = (to - from) / page < CHUNK ? (to - from) / page : CHUNK;

        if (pread(pagemap, flags, n * sizeof(*flags), (off_t)(from / page * sizeof(*flags))) !=
            (ssize_t)(n * sizeof(*flags)))
            break;
        for (uint64_t i = 0; i < n; i++, from += page) {
            if ((flags[i] & IS_THERE) && (flags[i] & IS_OF_A_FILE))
                continue;
            let_go(run, from);
            run = from + page;
        }
    }
    let_go(run, from);
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
