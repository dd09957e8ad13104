/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zlib stream (RFC 1950, 1951): two bytes of header, blocks, the Adler-32 of it all, big-endian.
 * A block: 1 bit whether it is the last, 2 bits of kind:
 *
 *   0 stored   to the next byte; 2 bytes of length, the same inverted; so many bytes
 *   1 fixed    codes that the RFC has
 *   2 dynamic  5 bits, 5 bits, 4 bits: how many literal, distance and length codes (less 257, 1
 *              and 4); the lengths of length codes, 3 bits each; with these, the lengths of the
 *              literal and distance codes
 *
 * then symbols until 256: below, a byte; above, a length and bits that are added to it, then a
 * distance and bits that are added: so many bytes from so far back are repeated.
 *
 * Codes are looked up in tables by the next 11 bits (8 for distances); those of longer codes lead
 * to a table for the bits behind.  An entry has all that a symbol needs:
 *
 *   0-7 bits to take, with those added   8-11 bits of the code among them   12-27 literal, or what
 *   the bits are added to, or where the next table is   28-31 what it is
 *
 * Input is a buffer that is filled up before it runs short, with zeros behind its end, so that 8
 * bytes can be read anywhere; a stream that goes on there is cut off.  Output goes to a buffer
 * behind the last 32 KiB of what came before, with room behind for one more match than fits: no
 * symbol is ever left half-done.
 */
#include "symbol/inflate.h"

#include <errno.h>
#include <string.h>

#include <libdeflate.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/cursor.h"

enum {
    WINDOW = 32 << 10,
    PIECE = 256 << 10,
    MATCH_MAX = 258,
    IN = 64 << 10,
    PAD = 64,    /* zeros behind the input */
    SHORT = 256, /* less input than this is filled up */
    CODE_MAX = 15,
    SYMBOLS = 288,
    DISTANCES = 32,
    LITERAL_BITS = 11,
    DISTANCE_BITS = 8,
    LENGTH_BITS = 7,
};

#define IS_LITERAL UINT32_C(0x80000000)
#define IS_TABLE   UINT32_C(0x40000000)
#define IS_END     UINT32_C(0x20000000)
#define IS_BAD     UINT32_C(0x10000000)
#define VALUE(e)   ((e) >> 12 & 0xffff)

enum state { HEADER, BLOCK, STORED, CODED, TRAILER, DONE };

struct kiln_inflate {
    const struct kiln_bytes *bytes; /* borrowed */
    uint64_t at, left;
    enum state state;
    bool is_last;
    uint32_t stored; /* bytes left of a stored block */
    uint32_t adler, claimed;
    int error;
    uint64_t bits;
    unsigned n_bits;
    size_t in_at, n_in;
    size_t begin, n_out; /* what of `out` was not given yet */
    uint32_t literals[(1 << LITERAL_BITS) + SYMBOLS * (1 << (CODE_MAX - LITERAL_BITS))];
    uint32_t distances[(1 << DISTANCE_BITS) + DISTANCES * (1 << (CODE_MAX - DISTANCE_BITS))];
    uint8_t in[IN + PAD];
    uint8_t out[WINDOW + PIECE + MATCH_MAX + PAD];
};

/* ---- input ---- */

static int fill(struct kiln_inflate *s)
{
    size_t rest = s->n_in - s->in_at, n;
    int r;

    memmove(s->in, s->in + s->in_at, rest);
    n = s->left < IN - rest ? (size_t)s->left : IN - rest;
    r = s->bytes->read(s->bytes, s->at, s->in + rest, n);
    if (r < 0)
        return r;
    s->at += n;
    s->left -= n;
    s->in_at = 0;
    s->n_in = rest + n;
    memset(s->in + s->n_in, 0, PAD);
    return 0;
}

/*
 * Fills the input up.  Where there is no more bits are zeros, and it is an error to have taken any
 * of them; who asks before every few bytes never comes to the end of the zeros.
 */
static int supply(struct kiln_inflate *s)
{
    if (s->in_at > s->n_in + s->n_bits / 8)
        return KILN_E_TRUNCATED;
    return s->left > 0 && s->n_in - s->in_at < SHORT ? fill(s) : 0;
}

/* 56 bits at least.  Bits above those that count are there already: they are what follows. */
static void refill(struct kiln_inflate *s)
{
    s->bits |= kiln_get_64(s->in + s->in_at) << s->n_bits;
    s->in_at += (63 - s->n_bits) >> 3;
    s->n_bits |= 56;
}

static inline uint32_t take(struct kiln_inflate *s, unsigned n)
{
    uint32_t value = (uint32_t)(s->bits & ((UINT64_C(1) << n) - 1));

    s->bits >>= n;
    s->n_bits -= n;
    return value;
}

/* Gives whole bytes back, so that what follows is read as bytes. */
static void align(struct kiln_inflate *s)
{
    s->in_at -= s->n_bits / 8;
    s->bits = 0;
    s->n_bits = 0;
}

/* ---- tables ---- */

struct code {
    uint32_t *table;
    unsigned bits; /* of the first table */
    const uint8_t *lengths;
    unsigned n;
    uint32_t (*entry)(unsigned symbol); /* without the bits of the code */
};

static uint32_t with_code(uint32_t entry, unsigned bits)
{
    return entry + (bits << 8 | bits);
}

static uint32_t literal_entry(unsigned symbol)
{
    static const uint16_t base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                    2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

    if (symbol < 256)
        return IS_LITERAL | symbol << 12;
    if (symbol == 256)
        return IS_END;
    if (symbol > 285)
        return IS_BAD;
    return (uint32_t)base[symbol - 257] << 12 | extra[symbol - 257];
}

static uint32_t distance_entry(unsigned symbol)
{
    static const uint16_t base[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                    33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                    1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};

    if (symbol > 29)
        return IS_BAD;
    return (uint32_t)base[symbol] << 12 | (symbol < 4 ? 0 : symbol / 2 - 1);
}

static uint32_t length_entry(unsigned symbol)
{
    return symbol << 12;
}

static unsigned reversed(unsigned code, unsigned n)
{
    unsigned made = 0;

    for (; n > 0; n--, code >>= 1)
        made = made << 1 | (code & 1);
    return made;
}

static void fill_table(uint32_t *table, unsigned n, uint32_t entry)
{
    for (unsigned i = 0; i < n; i++)
        table[i] = entry;
}

/* A code that is longer than the first table: its bits are those of a place in it, and more. */
static void put_long(const struct code *code, unsigned bits, unsigned n, uint32_t entry,
                     unsigned *next)
{
    const unsigned more = CODE_MAX - code->bits;
    uint32_t *link = &code->table[bits & ((1u << code->bits) - 1)];
    uint32_t *table;

    if (!(*link & IS_TABLE)) {
        *link = IS_TABLE | *next << 12 | code->bits;
        fill_table(code->table + *next, 1u << more, IS_BAD);
        *next += 1u << more;
    }
    table = code->table + VALUE(*link);
    n -= code->bits;
    for (unsigned i = bits >> code->bits; i < 1u << more; i += 1u << n)
        table[i] = with_code(entry, n);
}

/* More codes than bits allow are refused; places that no code has are bad ones. */
static int build(const struct code *code)
{
    unsigned count[CODE_MAX + 1] = {0}, first[CODE_MAX + 2] = {0}, next = 1u << code->bits;

    for (unsigned i = 0; i < code->n; i++)
        count[code->lengths[i]]++;
    count[0] = 0;
    for (unsigned n = 1; n <= CODE_MAX; n++) {
        first[n + 1] = (first[n] + count[n]) << 1;
        if (first[n] + count[n] > 1u << n)
            return KILN_E_CORRUPT;
    }
    fill_table(code->table, 1u << code->bits, IS_BAD);
    for (unsigned symbol = 0; symbol < code->n; symbol++) {
        unsigned n = code->lengths[symbol], bits;
        uint32_t entry = code->entry(symbol);

        if (n == 0)
            continue;
        bits = reversed(first[n]++, n);
        if (n > code->bits) {
            put_long(code, bits, n, entry, &next);
            continue;
        }
        for (; bits < 1u << code->bits; bits += 1u << n)
            code->table[bits] = with_code(entry, n);
    }
    return 0;
}

static int build_both(struct kiln_inflate *s, const uint8_t *lengths, unsigned n_literals,
                      unsigned n_distances)
{
    struct code literals = {s->literals, LITERAL_BITS, lengths, n_literals, literal_entry};
    struct code distances = {s->distances, DISTANCE_BITS, lengths + n_literals, n_distances,
                             distance_entry};
    int r = build(&literals);

    return r < 0 ? r : build(&distances);
}

static int begin_fixed(struct kiln_inflate *s)
{
    uint8_t lengths[SYMBOLS + DISTANCES];

    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    memset(lengths + SYMBOLS, 5, DISTANCES);
    return build_both(s, lengths, SYMBOLS, DISTANCES);
}

/* Lengths are coded themselves: 16 repeats the one before, 17 and 18 are zeros. */
static int read_lengths(struct kiln_inflate *s, const uint32_t *table, uint8_t *lengths, unsigned n)
{
    unsigned i = 0;

    while (i < n) {
        unsigned symbol, times = 1;
        uint32_t entry;
        uint8_t length = 0;
        int r = supply(s);

        if (r < 0)
            return r;
        refill(s);
        entry = table[s->bits & ((1u << LENGTH_BITS) - 1)];
        if (entry & IS_BAD)
            return KILN_E_CORRUPT;
        take(s, entry & 0xff);
        symbol = VALUE(entry);
        if (symbol < 16)
            length = (uint8_t)symbol;
        else if (symbol == 16)
            times = 3 + take(s, 2);
        else
            times = symbol == 17 ? 3 + take(s, 3) : 11 + take(s, 7);
        if (symbol == 16 && i > 0)
            length = lengths[i - 1];
        if ((symbol == 16 && i == 0) || times > n - i)
            return KILN_E_CORRUPT;
        memset(lengths + i, length, times);
        i += times;
    }
    return 0;
}

static int begin_dynamic(struct kiln_inflate *s)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[SYMBOLS + DISTANCES + 32] = {0};
    uint32_t table[1 << LENGTH_BITS];
    unsigned n_literals = 257 + take(s, 5), n_distances = 1 + take(s, 5), n = 4 + take(s, 4);
    struct code code = {table, LENGTH_BITS, lengths, 19, length_entry};
    int r;

    if (n_literals > 286 || n_distances > 30)
        return KILN_E_CORRUPT;
    for (unsigned i = 0; i < n; i++) {
        refill(s);
        lengths[order[i]] = (uint8_t)take(s, 3);
    }
    r = build(&code);
    if (r == 0)
        r = read_lengths(s, table, lengths, n_literals + n_distances);
    return r < 0 ? r : build_both(s, lengths, n_literals, n_distances);
}

/* ---- blocks ---- */

static int read_header(struct kiln_inflate *s)
{
    uint32_t first = take(s, 8), second = take(s, 8);

    if ((first & 15) != 8 || first >> 4 > 7 || (first << 8 | second) % 31 != 0 || second & 0x20)
        return KILN_E_CORRUPT;
    s->state = BLOCK;
    return 0;
}

static int begin_stored(struct kiln_inflate *s)
{
    uint32_t n;

    take(s, s->n_bits & 7);
    refill(s);
    n = take(s, 16);
    if ((n ^ 0xffff) != take(s, 16))
        return KILN_E_CORRUPT;
    align(s);
    s->stored = n;
    s->state = STORED;
    return 0;
}

static int begin_block(struct kiln_inflate *s)
{
    if (s->is_last) {
        s->state = TRAILER;
        return 0;
    }
    s->is_last = take(s, 1);
    switch (take(s, 2)) {
    case 0:
        return begin_stored(s);
    case 1:
        s->state = CODED;
        return begin_fixed(s);
    case 2:
        s->state = CODED;
        return begin_dynamic(s);
    default:
        return KILN_E_CORRUPT;
    }
}

static int run_stored(struct kiln_inflate *s)
{
    size_t n = s->stored, there = s->n_in > s->in_at ? s->n_in - s->in_at : 0;

    if (n > there)
        n = there;
    if (n > WINDOW + PIECE - s->n_out)
        n = WINDOW + PIECE - s->n_out;
    if (n == 0 && s->stored > 0)
        return KILN_E_TRUNCATED;
    memcpy(s->out + s->n_out, s->in + s->in_at, n);
    s->in_at += n;
    s->n_out += n;
    s->stored -= (uint32_t)n;
    if (s->stored == 0)
        s->state = BLOCK;
    return 0;
}

/* Writes up to 16 bytes more than asked for, where there is room. */
static inline void repeat(uint8_t *to, uint32_t distance, uint32_t n)
{
    const uint8_t *from = to - distance;
    uint8_t *end = to + n;

    if (distance >= 8) {
        do {
            memcpy(to, from, 8);
            memcpy(to + 8, from + 8, 8);
            to += 16;
            from += 16;
        } while (to < end);
    } else if (distance == 1) {
        memset(to, *from, n);
    } else {
        while (to < end)
            *to++ = *from++;
    }
}

/*
 * What symbols are read with.  It is apart from the stream so that it can be in registers: bytes
 * that are written could be anything's, as far as a compiler knows.
 */
struct reader {
    uint64_t bits;
    unsigned n_bits;
    const uint8_t *at;
};

static inline void read_more(struct reader *in)
{
    in->bits |= kiln_get_64(in->at) << in->n_bits;
    in->at += (63 - in->n_bits) >> 3;
    in->n_bits |= 56;
}

static inline void drop(struct reader *in, unsigned n)
{
    in->bits >>= n;
    in->n_bits -= n;
}

static inline uint32_t look_up(const struct reader *in, const uint32_t *table, unsigned bits)
{
    return table[in->bits & ((1u << bits) - 1)];
}

static inline uint32_t look_further(struct reader *in, const uint32_t *table, uint32_t entry,
                                    unsigned bits)
{
    drop(in, bits);
    return table[VALUE(entry) + (in->bits & ((1u << (CODE_MAX - bits)) - 1))];
}

/* The number of an entry, with the bits that are added. */
static inline uint32_t take_value(struct reader *in, uint32_t entry)
{
    unsigned all = entry & 0xff, code = entry >> 8 & 15;
    uint64_t bits = in->bits & ((UINT64_C(1) << all) - 1);

    drop(in, all);
    return VALUE(entry) + (uint32_t)(bits >> code);
}

/* The distance of a match; 0: bad. */
static inline uint32_t take_distance(struct reader *in, const uint32_t *table)
{
    uint32_t entry = look_up(in, table, DISTANCE_BITS);

    if (entry & IS_TABLE)
        entry = look_further(in, table, entry, DISTANCE_BITS);
    return entry & IS_BAD ? 0 : take_value(in, entry);
}

/*
 * Symbols until the block ends, the piece is full, or the input is at `end`, behind which 24 bytes
 * can be read.  56 bits are enough for three literals of the first table, which have 11 at
 * most, and a length.
 */
static int run_symbols(struct kiln_inflate *s, struct reader *reader, const uint8_t *end)
{
    const uint32_t *literals = s->literals, *distances = s->distances;
    struct reader in = *reader;
    uint8_t *out = s->out + s->n_out, *full = s->out + WINDOW + PIECE;
    int r = 0;

    while (out < full && in.at < end) {
        uint32_t entry, n, distance;

        read_more(&in);
        entry = look_up(&in, literals, LITERAL_BITS);
        for (int i = 0; i < 3 && entry & IS_LITERAL; i++) {
            *out++ = (uint8_t)VALUE(entry);
            drop(&in, entry & 0xff);
            entry = look_up(&in, literals, LITERAL_BITS);
        }
        if (entry & IS_LITERAL)
            continue;
        if (entry & IS_TABLE) {
            entry = look_further(&in, literals, entry, LITERAL_BITS);
            if (entry & IS_LITERAL) {
                *out++ = (uint8_t)VALUE(entry);
                drop(&in, entry & 0xff);
                continue;
            }
        }
        if (entry & (IS_BAD | IS_END)) {
            r = entry & IS_BAD ? KILN_E_CORRUPT : 0;
            drop(&in, entry & 0xff);
            s->state = BLOCK;
            break;
        }
        n = take_value(&in, entry);
        read_more(&in);
        distance = take_distance(&in, distances);
        if (distance == 0 || distance > (size_t)(out - s->out)) {
            r = KILN_E_CORRUPT;
            break;
        }
        repeat(out, distance, n);
        out += n;
    }
    *reader = in;
    s->n_out = (size_t)(out - s->out);
    return r;
}

/* Of the last input all is read, and zeros behind it: then it is cut off. */
static int run_coded(struct kiln_inflate *s)
{
    struct reader in = {s->bits, s->n_bits, s->in + s->in_at};
    const uint8_t *end = s->in + s->n_in;
    int r = run_symbols(s, &in, s->left > 0 ? end - PAD : end + 8);

    s->bits = in.bits;
    s->n_bits = in.n_bits;
    s->in_at = (size_t)(in.at - s->in);
    return r;
}

static int read_trailer(struct kiln_inflate *s)
{
    take(s, s->n_bits & 7);
    refill(s);
    s->claimed = 0;
    for (int i = 0; i < 4; i++)
        s->claimed = s->claimed << 8 | take(s, 8);
    s->state = DONE;
    return supply(s);
}

static int run(struct kiln_inflate *s)
{
    int r = supply(s);

    if (r < 0)
        return r;
    if (s->state != STORED)
        refill(s);
    switch (s->state) {
    case HEADER:
        return read_header(s);
    case BLOCK:
        return begin_block(s);
    case STORED:
        return run_stored(s);
    case CODED:
        return run_coded(s);
    default:
        return read_trailer(s);
    }
}

/* ---- pieces ---- */

int kiln_inflate_open(const struct kiln_bytes *bytes, uint64_t at, uint64_t n,
                      struct kiln_inflate **ret_inflate)
{
    struct kiln_inflate *s = kiln_malloc(sizeof(*s));

    if (!s)
        return -ENOMEM;
    memset(s, 0, offsetof(struct kiln_inflate, literals));
    s->bytes = bytes;
    s->at = at;
    s->left = n;
    s->adler = 1;
    memset(s->in, 0, PAD);
    *ret_inflate = s;
    return 0;
}

void kiln_inflate_close(struct kiln_inflate *s)
{
    kiln_free(s);
}

size_t kiln_inflate_bytes(void)
{
    return sizeof(struct kiln_inflate);
}

int kiln_inflate_next(struct kiln_inflate *s, const uint8_t **ret_data, size_t *ret_n)
{
    if (s->n_out > WINDOW) {
        memmove(s->out, s->out + s->n_out - WINDOW, WINDOW);
        s->n_out = WINDOW;
    }
    s->begin = s->n_out;
    while (s->error == 0 && s->state != DONE && s->n_out < WINDOW + PIECE)
        s->error = run(s);
    if (s->error < 0)
        return s->error;
    s->adler = libdeflate_adler32(s->adler, s->out + s->begin, s->n_out - s->begin);
    if (s->state == DONE && s->adler != s->claimed)
        s->error = KILN_E_CORRUPT;
    *ret_data = s->out + s->begin;
    *ret_n = s->n_out - s->begin;
    return s->error;
}
