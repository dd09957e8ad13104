/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_maker.h"

#include <assert.h>
#include <string.h>

static uint8_t encoding_of_last; /* of addresses in the entries that follow */
static bool has_data;

static void put(struct frame_maker *maker, const void *data, size_t n)
{
    assert(maker->n + n <= FRAME_MADE_MAX);
    memcpy(maker->data + maker->n, data, n);
    maker->n += n;
}

static void put_byte(struct frame_maker *maker, uint8_t byte)
{
    put(maker, &byte, 1);
}

static void put_number(struct frame_maker *maker, uint64_t value, size_t n)
{
    put(maker, &value, n);
}

/* Room for the length; returns where the entry's content begins. */
static size_t begin_entry(struct frame_maker *maker)
{
    if (maker->is_long)
        put_number(maker, UINT32_MAX, 4);
    put_number(maker, 0, maker->is_long ? 8 : 4);
    return maker->n;
}

static void end_entry(struct frame_maker *maker, size_t content)
{
    uint64_t length;

    while ((maker->n - content) % 8 != 4)
        put_byte(maker, 0);
    length = maker->n - content;
    if (maker->is_long)
        memcpy(maker->data + content - 8, &length, 8);
    else
        memcpy(maker->data + content - 4, &length, 4);
}

size_t frame_maker_cie(struct frame_maker *maker, const struct frame_cie *cie)
{
    static const char usual[] = "\x0c\x07\x08\x90\x01";
    const char *letters = cie->letters ? cie->letters : maker->is_debug ? "" : "zR";
    uint8_t version = cie->version ? cie->version : 1;
    size_t at = maker->n, content = begin_entry(maker);

    put_number(maker, maker->is_debug ? UINT64_MAX : 0, maker->is_debug && maker->is_long ? 8 : 4);
    put_byte(maker, version);
    put(maker, letters, strlen(letters) + 1);
    if (version == 4)
        put(maker, "\x08\x00", 2);
    put(maker, "\x01\x78\x10", 3);
    has_data = letters[0] == 'z';
    encoding_of_last = strchr(letters, 'R') ? cie->encoding : 0;
    if (has_data) {
        put_byte(maker, (uint8_t)((strchr(letters, 'R') ? 1 : 0) + (strchr(letters, 'P') ? 5 : 0) +
                                  (strchr(letters, 'L') ? 1 : 0)));
        for (; *letters; letters++) {
            if (*letters == 'R')
                put_byte(maker, cie->encoding);
            else if (*letters == 'P')
                put(maker, "\x9b\x01\x02\x03\x04", 5);
            else if (*letters == 'L')
                put_byte(maker, 0x1b);
        }
    }
    put(maker, cie->program ? cie->program : usual,
        cie->program ? cie->n_program : sizeof(usual) - 1);
    end_entry(maker, content);
    return at;
}

static size_t size_of(uint8_t encoding)
{
    static const uint8_t sizes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8, 0, 0, 0};

    assert(sizes[encoding & 15]);
    return sizes[encoding & 15];
}

void frame_maker_fde(struct frame_maker *maker, size_t cie, uint64_t begin, uint64_t size,
                     const char *program, size_t n_program)
{
    size_t at = maker->n, content = begin_entry(maker), n = size_of(encoding_of_last);

    put_number(maker, maker->is_debug ? cie : content - cie,
               maker->is_debug && maker->is_long ? 8 : 4);
    put_number(maker,
               (encoding_of_last & 0x70) == 0x10 ? begin - (maker->address + maker->n) : begin, n);
    put_number(maker, size, n);
    if (has_data)
        put_byte(maker, 0);
    put(maker, program, n_program);
    end_entry(maker, content);
    assert(maker->n_pairs < FRAME_PAIRS_MAX);
    maker->pairs[maker->n_pairs].begin = begin;
    maker->pairs[maker->n_pairs++].at = maker->address + at;
}

size_t frame_maker_header(const struct frame_maker *maker, uint64_t address, uint8_t to[4096])
{
    int32_t frames = (int32_t)(maker->address - (address + 4));
    uint32_t n = maker->n_pairs;

    memcpy(to, "\x01\x1b\x03\x3b", 4);
    memcpy(to + 4, &frames, 4);
    memcpy(to + 8, &n, 4);
    for (uint32_t i = 0; i < n; i++) {
        int32_t pair[2] = {(int32_t)(maker->pairs[i].begin - address),
                           (int32_t)(maker->pairs[i].at - address)};

        memcpy(to + 12 + (size_t)8 * i, pair, 8);
    }
    return 12 + (size_t)8 * n;
}
