/* SPDX-License-Identifier: Apache-2.0 */
#include "store/whole.h"

#include <errno.h>

#include "base/hash.h"
#include "base/mem.h"

static void *copy(const void *from, size_t size)
{
    void *to = kiln_malloc(size + 1);

    if (to && size)
        memcpy(to, from, size);
    return to;
}

int kiln_whole_copy(const struct kiln_scan_source *source, struct kiln_whole *ret_whole)
{
    const struct kiln_scan_piece *piece = source->piece;
    struct kiln_whole whole = {
        .series = copy(source->whole, source->n_whole * sizeof(*source->whole)),
        .n_series = source->n_whole,
        .piece = *piece,
    };

    whole.piece.intervals = copy(piece->intervals, piece->n * sizeof(*piece->intervals));
    if (!whole.series || !whole.piece.intervals) {
        kiln_whole_done(&whole);
        return -ENOMEM;
    }
    *ret_whole = whole;
    return 0;
}

void kiln_whole_done(struct kiln_whole *whole)
{
    kiln_free(whole->series);
    kiln_free(whole->piece.intervals);
    *whole = (struct kiln_whole){0};
}

size_t kiln_whole_bytes(const struct kiln_whole *whole)
{
    return whole->n_series * sizeof(*whole->series) +
           whole->piece.n * sizeof(*whole->piece.intervals);
}

uint64_t kiln_whole_hash(const struct kiln_scan_source *source)
{
    return kiln_hash(source->whole, source->n_whole * sizeof(*source->whole));
}

bool kiln_whole_is_of(const struct kiln_whole *whole, const struct kiln_scan_source *source)
{
    return whole->n_series == source->n_whole &&
           memcmp(whole->series, source->whole, source->n_whole * sizeof(*whole->series)) == 0;
}
