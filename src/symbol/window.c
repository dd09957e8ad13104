/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece begins at a multiple of KILN_WINDOW_MAX and is twice as long, so that whatever begins in
 * its first half is seen whole, up to KILN_WINDOW_MAX.  The piece that was not looked at for
 * longest is the next to go.  A source in memory needs no pieces.
 */
#include "symbol/window.h"

#include <string.h>

#include "base/mem.h"

enum { PIECE = 2 * KILN_WINDOW_MAX };

void kiln_window_init(struct kiln_window *window, const struct kiln_bytes *bytes)
{
    *window = (struct kiln_window){.bytes = bytes};
}

void kiln_window_drop(struct kiln_window *window)
{
    kiln_free(window->memory);
    window->memory = NULL;
    memset(window->pieces, 0, sizeof(window->pieces));
}

static uint8_t *memory_of(struct kiln_window *window, const struct kiln_window_piece *piece)
{
    return window->memory + (size_t)(piece - window->pieces) * PIECE;
}

static struct kiln_window_piece *fill(struct kiln_window *window, struct kiln_window_piece *piece,
                                      uint64_t offset)
{
    uint64_t left = window->bytes->size - offset;
    uint32_t n = left < PIECE ? (uint32_t)left : PIECE;

    piece->n = 0;
    if (!window->memory)
        window->memory = kiln_malloc((size_t)KILN_WINDOW_PIECES * PIECE);
    if (!window->memory ||
        window->bytes->read(window->bytes, offset, memory_of(window, piece), n) < 0)
        return NULL;
    piece->offset = offset;
    piece->n = n;
    return piece;
}

/* The piece that begins at an offset, read if it is not held. */
static struct kiln_window_piece *piece_at(struct kiln_window *window, uint64_t offset)
{
    struct kiln_window_piece *oldest = &window->pieces[0];

    for (uint32_t i = 0; i < KILN_WINDOW_PIECES; i++) {
        struct kiln_window_piece *piece = &window->pieces[i];

        if (piece->n && piece->offset == offset)
            return piece;
        if (piece->used < oldest->used)
            oldest = piece;
    }
    return fill(window, oldest, offset);
}

const uint8_t *kiln_window_see(struct kiln_window *window, uint64_t offset, size_t need,
                               size_t want, size_t *ret_n)
{
    uint64_t size = window->bytes->size;
    struct kiln_window_piece *piece;
    size_t into;

    if (need > KILN_WINDOW_MAX || need > size || offset > size - need || offset == size)
        return NULL;
    if (want > size - offset)
        want = (size_t)(size - offset);
    if (want > KILN_WINDOW_MAX)
        want = KILN_WINDOW_MAX;
    *ret_n = want;
    if (window->bytes->data)
        return (const uint8_t *)window->bytes->data + offset;
    into = offset % KILN_WINDOW_MAX;
    piece = piece_at(window, offset - into);
    if (!piece)
        return NULL;
    piece->used = ++window->clock;
    return memory_of(window, piece) + into;
}
