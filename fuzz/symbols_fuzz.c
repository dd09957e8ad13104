/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbol file.  Sums would keep nearly every input out, so the input is the body, and the head
 * is made to fit; what is accepted is written again and must say the same.
 */
#include "base/compress.h"
#include "base/crc32c.h"
#include "fuzz.h"
#include "store/symbols.h"

enum { HEAD = 40 };

/* The first four bytes of the input are the number of symbols, the rest the uncompressed body. */
static void put_file(struct kiln_buf *out, uint32_t version, const uint8_t *data, size_t size)
{
    uint64_t raw = size - 4, stored;
    uint32_t crc;
    char head[HEAD] = "KILNSYM\n";
    struct kiln_str body = {(const char *)data + 4, size - 4};

    kiln_buf_add(out, head, HEAD);
    if (kiln_compress(KILN_ZSTD, 1, body, out) < 0 || out->error)
        return;
    stored = out->len - HEAD;
    memcpy(out->ptr + 8, &version, 4);
    memcpy(out->ptr + 12, data, 4);
    memcpy(out->ptr + 16, &raw, 8);
    memcpy(out->ptr + 24, &stored, 8);
    crc = kiln_crc32c(0, out->ptr + HEAD, stored);
    memcpy(out->ptr + 32, &crc, 4);
    crc = kiln_crc32c(0, out->ptr, 36);
    memcpy(out->ptr + 36, &crc, 4);
}

static bool is_same(const struct kiln_symbol_frame *a, const struct kiln_symbol_frame *b)
{
    return kiln_str_eq(a->name, b->name) && kiln_str_eq(a->system_name, b->system_name) &&
           kiln_str_eq(a->file, b->file) && a->line == b->line && a->start_line == b->start_line;
}

/* Whether `again` has what is in `symbols`: all of it, or, where `only_one`, the symbol in the
 * middle. */
static void compare(const struct kiln_symbols *symbols, const struct kiln_symbols *again,
                    bool only_one, struct kiln_symbol_found found[2])
{
    uint32_t n = kiln_symbols_count(symbols);

    FUZZ_CHECK(kiln_symbols_count(again) == (only_one ? n > 0 : n));
    for (uint32_t i = 0; i < kiln_symbols_count(again); i++) {
        const struct kiln_symbol_found *a = &found[0], *b = &found[1];

        kiln_symbols_get(symbols, only_one ? n / 2 : i, &found[0]);
        kiln_symbols_get(again, i, &found[1]);
        FUZZ_CHECK(a->address == b->address && a->size == b->size && a->n == b->n);
        for (uint32_t k = 0; k < a->n; k++)
            FUZZ_CHECK(is_same(&a->frames[k], &b->frames[k]));
        FUZZ_CHECK(kiln_symbols_find(again, a->address, &found[1]) && b->address == a->address);
    }
}

/* Writes the symbol in the middle onto `onto`, which is nothing or all of them, and reads the file.
 */
static void write_again(const struct kiln_symbols *symbols, const struct kiln_symbols *onto,
                        struct kiln_symbol_found found[2])
{
    uint32_t n = kiln_symbols_count(symbols);
    struct kiln_symbols *again = NULL;
    struct kiln_symbol one = {0};
    struct kiln_buf out;
    int r;

    if (n) {
        kiln_symbols_get(symbols, n / 2, found);
        one = (struct kiln_symbol){
            .address = found->address, .size = found->size, .frames = found->frames, .n = found->n};
    }
    kiln_buf_init(&out, 1 << 26);
    r = kiln_symbols_encode(kiln_symbols_build_id(symbols), onto, &one, n ? 1 : 0, &out, NULL);
    if (r == 0)
        r = kiln_symbols_decode(kiln_buf_str(&out), 1 << 28, &again, NULL);
    FUZZ_CHECK(r == 0);
    if (r == 0)
        compare(symbols, again, !onto, found);
    kiln_symbols_unref(again);
    kiln_buf_done(&out);
}

static void try_version(uint32_t version, const uint8_t *data, size_t size)
{
    struct kiln_symbols *symbols = NULL;
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 26);
    put_file(&out, version, data, size);
    if (kiln_symbols_decode(kiln_buf_str(&out), 1 << 26, &symbols, NULL) == 0) {
        struct kiln_symbol_found *found = kiln_malloc(2 * sizeof(*found));

        FUZZ_CHECK(found);
        (void)kiln_symbols_has(symbols, size);
        if (found) {
            write_again(symbols, NULL, found);
            write_again(symbols, symbols, found);
        }
        kiln_free(found);
        kiln_symbols_unref(symbols);
    }
    kiln_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_symbols *symbols = NULL;

    if (kiln_symbols_decode((struct kiln_str){(const char *)data, size}, 1 << 26, &symbols, NULL) ==
        0)
        kiln_symbols_unref(symbols);
    for (uint32_t version = 1; size >= 4 && version <= KILN_SYMBOLS_VERSION; version++)
        try_version(version, data, size);
    return 0;
}
