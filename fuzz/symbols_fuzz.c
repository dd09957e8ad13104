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
static void put_file(struct kiln_buf *out, const uint8_t *data, size_t size)
{
    uint64_t raw = size - 4, stored;
    uint32_t version = KILN_SYMBOLS_VERSION, crc;
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

static void write_again(const struct kiln_symbols *symbols)
{
    uint32_t n = kiln_symbols_count(symbols);
    struct kiln_symbol *list = kiln_calloc((size_t)n + 1, sizeof(*list));
    struct kiln_symbols *again = NULL;
    struct kiln_buf out;
    int r = -1;

    kiln_buf_init(&out, 1 << 26);
    for (uint32_t i = 0; list && i < n; i++)
        list[i] = kiln_symbols_get(symbols, i);
    if (list)
        r = kiln_symbols_encode(kiln_symbols_build_id(symbols), list, n, &out, NULL);
    FUZZ_CHECK(r == 0);
    if (r == 0)
        r = kiln_symbols_decode(kiln_buf_str(&out), 1 << 28, &again, NULL);
    FUZZ_CHECK(r == 0);
    FUZZ_CHECK(!again || kiln_symbols_count(again) == n);
    for (uint32_t i = 0; again && i < n; i++) {
        struct kiln_symbol s = kiln_symbols_get(again, i);

        FUZZ_CHECK(s.address == list[i].address && s.size == list[i].size &&
                   s.line == list[i].line && kiln_str_eq(s.name, list[i].name) &&
                   kiln_str_eq(s.file, list[i].file));
    }
    kiln_symbols_free(again);
    kiln_buf_done(&out);
    kiln_free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_symbols *symbols = NULL;
    struct kiln_symbol found;
    struct kiln_buf out;

    if (kiln_symbols_decode((struct kiln_str){(const char *)data, size}, 1 << 26, &symbols, NULL) ==
        0)
        kiln_symbols_free(symbols);
    if (size < 4)
        return 0;
    symbols = NULL;
    kiln_buf_init(&out, 1 << 26);
    put_file(&out, data, size);
    if (kiln_symbols_decode(kiln_buf_str(&out), 1 << 26, &symbols, NULL) == 0) {
        (void)kiln_symbols_find(symbols, size, &found);
        write_again(symbols);
        kiln_symbols_free(symbols);
    }
    kiln_buf_done(&out);
    return 0;
}
