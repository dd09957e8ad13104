/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frame is for an address.  Linkers write a table for that, sorted, which is searched where
 * it lies:
 *
 *   .eh_frame_hdr:  1 version, 1   1 encoding of the address   1 of the number   1 of the table
 *                   address of .eh_frame   number of entries
 *                   entries: 4 address of code, 4 of its FDE, both counted from the beginning of
 *                   this header (encoding 3b)
 *
 * A table in another encoding, or one that is not sorted, is not used: then the section is read
 * once, entry by entry, into an index of our own.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/cfi_int.h"

enum {
    PAIR = 8,
    PAIR_ENCODING = 0x3b,
    TABLE_MAX =
        4 << 20, /* more than the largest programs have; a file with holes claims any number */
    INDEX_MAX = 512 << 10,
    STEPS_MAX = 1 << 20
};

static const uint8_t *see_pairs(struct cfi_frames *frames, uint32_t number, uint32_t want,
                                uint32_t *ret_n)
{
    size_t n;
    const uint8_t *seen =
        kiln_window_see(&frames->window, frames->table_offset + (uint64_t)number * PAIR, PAIR,
                        want < KILN_WINDOW_MAX / PAIR ? want * PAIR : KILN_WINDOW_MAX, &n);

    *ret_n = (uint32_t)(n / PAIR);
    return seen;
}

static uint64_t begin_of(const struct cfi_frames *frames, const uint8_t *pair)
{
    return frames->table_base + (uint64_t)(int64_t)(int32_t)kiln_get_32(pair);
}

static bool is_sorted(struct cfi_frames *frames, uint32_t n_table)
{
    int64_t last = INT64_MIN;
    uint32_t n;

    for (uint32_t i = 0; i < n_table; i += n) {
        const uint8_t *seen = see_pairs(frames, i, n_table - i, &n);

        if (!seen || n == 0)
            return false;
        for (uint32_t j = 0; j < n; j++) {
            int64_t begin = (int32_t)kiln_get_32(seen + (size_t)j * PAIR);

            if (begin < last)
                return false;
            last = begin;
        }
    }
    return true;
}

void cfi_index_open_table(struct cfi_frames *frames, uint64_t hdr_address, uint64_t hdr_offset)
{
    struct cfi_bases bases = {.address = hdr_address + 4, .data = hdr_address};
    uint64_t unused, count;
    struct kiln_cursor c;
    size_t n;
    const uint8_t *seen = kiln_window_see(&frames->window, hdr_offset, 8, 24, &n);

    if (!seen || seen[0] != 1 || seen[3] != PAIR_ENCODING)
        return;
    c = (struct kiln_cursor){seen + 4, seen + n, false};
    if (!cfi_pointer(&c, seen[1], &bases, &unused))
        return;
    bases.address += (uint64_t)(c.at - (seen + 4));
    if (!cfi_pointer(&c, seen[2], &bases, &count) || count == 0 || count > TABLE_MAX)
        return;
    frames->table_base = hdr_address;
    frames->table_offset = hdr_offset + (uint64_t)(c.at - seen);
    if (is_sorted(frames, (uint32_t)count))
        frames->n_table = (uint32_t)count;
}

uint32_t cfi_index_count(const struct cfi_frames *frames)
{
    return frames->is_indexed ? frames->n_index : frames->n_table;
}

bool cfi_index_get(struct cfi_frames *frames, uint32_t number, uint64_t *ret_begin,
                   uint64_t *ret_at)
{
    const uint8_t *pair;
    uint64_t address;
    uint32_t n;

    if (frames->is_indexed) {
        *ret_begin = frames->index[number].begin;
        *ret_at = frames->index[number].at;
        return true;
    }
    pair = see_pairs(frames, number, 1, &n);
    if (!pair)
        return false;
    address = frames->table_base + (uint64_t)(int64_t)(int32_t)kiln_get_32(pair + 4);
    *ret_begin = begin_of(frames, pair);
    *ret_at = address - frames->address;
    return true;
}

uint32_t cfi_index_find(struct cfi_frames *frames, uint64_t address)
{
    uint32_t low = 0, high = cfi_index_count(frames);
    uint64_t begin, at;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (cfi_index_get(frames, middle, &begin, &at) && begin <= address)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool is_before(const struct cfi_index_entry *x, const struct cfi_index_entry *y)
{
    return x->begin != y->begin ? x->begin < y->begin : x->at < y->at;
}

/* Lets an entry sink in a heap whose top is the last of all. */
static void sink(struct cfi_index_entry *heap, uint32_t n, uint32_t at)
{
    struct cfi_index_entry sinking = heap[at];

    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(&heap[child], &heap[child + 1]))
            child++;
        if (!is_before(&sinking, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = sinking;
}

/*
 * Sorts in place.  The C library's qsort() may want as much memory again, and asks the kernel how
 * much there is: that kills whoever is confined.
 */
static void sort(struct cfi_index_entry *entries, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sink(entries, n, i);
    while (n > 1) {
        struct cfi_index_entry last = entries[0];

        entries[0] = entries[--n];
        entries[n] = last;
        sink(entries, n, 0);
    }
}

static int add(struct cfi_frames *frames, uint64_t begin, uint64_t at)
{
    int r = kiln_grow(&frames->budget, (void **)&frames->index, &frames->cap_index,
                      (uint64_t)frames->n_index + 1, sizeof(*frames->index), INDEX_MAX);

    if (r == 0)
        frames->index[frames->n_index++] = (struct cfi_index_entry){begin, at};
    return r;
}

int cfi_index_make(struct cfi_frames *frames)
{
    struct kiln_cfi_head head;
    struct cfi_fde fde;
    uint64_t at = 0;
    int r = 0;

    frames->is_indexed = true;
    for (uint32_t i = 0; i < STEPS_MAX && r == 0 && cfi_head_read(frames, at, &head) == 0; i++) {
        if (head.end && !head.is_cie && cfi_fde_read(frames, at, &fde) == 0) {
            if (fde.end > fde.begin)
                r = add(frames, fde.begin, at);
            cfi_fde_done(&fde);
        }
        at = head.end ? head.end : at + 4;
    }
    sort(frames->index, frames->n_index);
    return r;
}

int cfi_index_cover(struct cfi_frames *frames, uint64_t address, uint64_t *ret_begin,
                    uint64_t *ret_end)
{
    uint32_t i = cfi_index_find(frames, address);
    uint64_t begin, at, end, next, next_at;
    struct cfi_fde fde;
    int r = -ENOENT;

    if (i >= cfi_index_count(frames) || !cfi_index_get(frames, i, &begin, &at) || begin > address)
        return -ENOENT;
    if (cfi_fde_read(frames, at, &fde) < 0)
        return frames->is_indexed ? -ENOENT : KILN_E_MALFORMED;
    end = fde.end;
    if (i + 1 < cfi_index_count(frames) && cfi_index_get(frames, i + 1, &next, &next_at) &&
        next < end)
        end = next;
    if (fde.begin != begin) {
        r = frames->is_indexed ? -ENOENT : KILN_E_MALFORMED;
    } else if (address < end) {
        *ret_begin = begin;
        *ret_end = end;
        r = 0;
    }
    cfi_fde_done(&fde);
    return r;
}
