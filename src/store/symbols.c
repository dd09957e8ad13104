/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbol file, little-endian:
 *
 *    0  8 bytes  "KILNSYM\n"
 *    8  u32      version, 1
 *   12  u32      symbols
 *   16  u64      bytes of the body, uncompressed
 *   24  u64      bytes of the body, as it follows
 *   32  u32      CRC-32C of the body as it follows
 *   36  u32      CRC-32C of the 36 bytes above
 *   40           body, one zstd frame
 *
 * and the body, all numbers varints:
 *
 *   build id: length, bytes
 *   number of texts, then each: length, bytes        (text 0 is empty and not in the list)
 *   for each symbol, by address: distance from the symbol before (the first: address), size,
 *     name, file (numbers of texts), line (zigzag)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/compress.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "codec/pb.h"
#include "store/symbols.h"

enum { HEAD_BYTES = 40, SUMMED_BYTES = 36, ROW_BYTES_MIN = 5 };
#define BODY_MAX (UINT64_C(1) << 30)

static const char magic[8] = {'K', 'I', 'L', 'N', 'S', 'Y', 'M', '\n'};

struct row {
    uint64_t address, size;
    int64_t line;
    uint32_t name, file;
};

struct kiln_symbols {
    struct row *rows;
    struct kiln_str *texts;
    char *body; /* owned: texts point here */
    struct kiln_str build_id;
    uint32_t n, n_texts;
    size_t bytes;
};

/* ---- writing ---- */

static void put_varint(struct kiln_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        kiln_buf_putc(out, (char)(v | 0x80));
    kiln_buf_putc(out, (char)v);
}

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static int by_address(const void *a, const void *b, void *context)
{
    const struct kiln_symbol *symbols = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

    if (symbols[i].address != symbols[j].address)
        return symbols[i].address < symbols[j].address ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* The numbers of the symbols that count, in the order of addresses; returns how many. */
static uint32_t sort(const struct kiln_symbol *symbols, uint32_t *order, uint32_t n)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), by_address, (void *)symbols);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || symbols[order[kept - 1]].address != symbols[order[i]].address)
            order[kept++] = order[i];
    }
    return kept;
}

static void put_texts(struct kiln_buf *out, const struct kiln_dict *d)
{
    put_varint(out, d->n_strings - 1);
    for (uint32_t i = 1; i < d->n_strings; i++) {
        put_varint(out, d->strings[i].len);
        kiln_buf_add_str(out, d->strings[i]);
    }
}

/* Rows and texts of the body; a builder finds texts that occur again. */
static void put_body(struct kiln_buf *out, struct kiln_str build_id, struct kiln_builder *b,
                     const struct kiln_symbol *symbols, const uint32_t *order, uint32_t n)
{
    struct kiln_buf rows;
    uint64_t last = 0;

    kiln_buf_init(&rows, BODY_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_symbol *s = &symbols[order[i]];

        put_varint(&rows, s->address - last);
        put_varint(&rows, s->size);
        put_varint(&rows, kiln_builder_string(b, s->name));
        put_varint(&rows, kiln_builder_string(b, s->file));
        put_varint(&rows, zigzag(s->line));
        last = s->address;
    }
    put_varint(out, build_id.len);
    kiln_buf_add_str(out, build_id);
    put_texts(out, &kiln_builder_peek(b)->dict);
    kiln_buf_add_str(out, kiln_buf_str(&rows));
    if (rows.error && !out->error)
        out->error = rows.error;
    kiln_buf_done(&rows);
}

static void set_u32(char *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v)); /* little-endian hosts only, as the rest of Kiln */
}

static void set_u64(char *at, uint64_t v)
{
    memcpy(at, &v, sizeof(v));
}

static uint32_t get_u32(const char *at)
{
    uint32_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}

static uint64_t get_u64(const char *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}

static int put_file(struct kiln_buf *out, struct kiln_str body, uint32_t n)
{
    size_t start = out->len;
    char *head = kiln_buf_reserve(out, HEAD_BYTES);
    size_t stored;
    int r;

    if (!head)
        return out->error;
    out->len += HEAD_BYTES;
    r = kiln_compress(KILN_ZSTD, 0, body, out);
    if (r < 0)
        return r;
    head = out->ptr + start;
    stored = out->len - start - HEAD_BYTES;
    memcpy(head, magic, sizeof(magic));
    set_u32(head + 8, KILN_SYMBOLS_VERSION);
    set_u32(head + 12, n);
    set_u64(head + 16, body.len);
    set_u64(head + 24, stored);
    set_u32(head + 32, kiln_crc32c(0, head + HEAD_BYTES, stored));
    set_u32(head + 36, kiln_crc32c(0, head, SUMMED_BYTES));
    return 0;
}

int kiln_symbols_encode(struct kiln_str build_id, const struct kiln_symbol *symbols, uint32_t n,
                        struct kiln_buf *out, struct kiln_err *err)
{
    uint32_t *order = kiln_malloc(((size_t)n + 1) * sizeof(*order));
    struct kiln_builder *b = NULL;
    struct kiln_buf body;
    uint32_t kept;
    int r = order ? kiln_builder_new(NULL, &b) : -ENOMEM;

    kiln_buf_init(&body, BODY_MAX);
    if (r == 0) {
        kept = sort(symbols, order, n);
        put_body(&body, build_id, b, symbols, order, kept);
        r = kiln_builder_error(b);
        if (r == 0)
            r = body.error;
        if (r == 0)
            r = put_file(out, kiln_buf_str(&body), kept);
    }
    kiln_buf_done(&body);
    kiln_builder_free(b);
    kiln_free(order);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

/* ---- reading ---- */

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "the symbol file is damaged: %s", what);
}

/* A number below `limit`. */
static int read_number(struct kiln_pb *r, uint64_t limit, uint64_t *ret)
{
    uint64_t v;

    if (kiln_pb_varint(r, &v) != 1 || v >= limit)
        return KILN_E_CORRUPT;
    *ret = v;
    return 0;
}

static int read_texts(struct kiln_symbols *s, struct kiln_pb *r, size_t memory_bytes)
{
    uint64_t n;

    if (kiln_pb_bytes(r, &s->build_id) != 1 ||
        read_number(r, (uint64_t)(r->end - r->at) + 1, &n) < 0)
        return KILN_E_CORRUPT;
    s->bytes += (n + 1) * sizeof(*s->texts);
    if (s->bytes > memory_bytes || n >= UINT32_MAX)
        return KILN_E_LIMIT;
    s->texts = kiln_calloc(n + 1, sizeof(*s->texts));
    if (!s->texts)
        return -ENOMEM;
    s->n_texts = (uint32_t)n + 1;
    for (uint64_t i = 1; i <= n; i++) {
        if (kiln_pb_bytes(r, &s->texts[i]) != 1)
            return KILN_E_CORRUPT;
    }
    return 0;
}

static int read_row(const struct kiln_symbols *s, struct kiln_pb *r, uint64_t last, struct row *row)
{
    uint64_t distance, name, file, line;

    if (read_number(r, UINT64_MAX, &distance) < 0 || distance > UINT64_MAX - last ||
        read_number(r, UINT64_MAX, &row->size) < 0 || read_number(r, s->n_texts, &name) < 0 ||
        read_number(r, s->n_texts, &file) < 0 || kiln_pb_varint(r, &line) != 1)
        return KILN_E_CORRUPT;
    row->address = last + distance;
    row->name = (uint32_t)name;
    row->file = (uint32_t)file;
    row->line = (int64_t)(line >> 1) ^ -(int64_t)(line & 1);
    return 0;
}

static int read_rows(struct kiln_symbols *s, struct kiln_pb *r, size_t memory_bytes)
{
    uint64_t last = 0;

    if (s->n > (uint64_t)(r->end - r->at) / ROW_BYTES_MIN)
        return KILN_E_CORRUPT;
    s->bytes += (size_t)s->n * sizeof(*s->rows);
    if (s->bytes > memory_bytes)
        return KILN_E_LIMIT;
    s->rows = kiln_malloc(((size_t)s->n + 1) * sizeof(*s->rows));
    if (!s->rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n; i++) {
        if (read_row(s, r, last, &s->rows[i]) < 0 || (i > 0 && s->rows[i].address == last))
            return KILN_E_CORRUPT;
        last = s->rows[i].address;
    }
    return r->at == r->end ? 0 : KILN_E_CORRUPT;
}

static int check_head(struct kiln_str data, struct kiln_err *err)
{
    if (data.len < HEAD_BYTES)
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL, "the symbol file is cut off");
    if (memcmp(data.ptr, magic, sizeof(magic)) != 0)
        return damaged(err, "it does not begin like one");
    if (get_u32(data.ptr + 36) != kiln_crc32c(0, data.ptr, SUMMED_BYTES))
        return damaged(err, "the sum of its head is wrong");
    if (get_u32(data.ptr + 8) != KILN_SYMBOLS_VERSION)
        return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL,
                            "the symbol file has format %u, this Kiln reads up to %d",
                            get_u32(data.ptr + 8), KILN_SYMBOLS_VERSION);
    if (get_u64(data.ptr + 24) != data.len - HEAD_BYTES)
        return damaged(err, "its length is wrong");
    if (get_u32(data.ptr + 32) != kiln_crc32c(0, data.ptr + HEAD_BYTES, data.len - HEAD_BYTES))
        return damaged(err, "the sum of its body is wrong");
    return 0;
}

/* The uncompressed body, owned by `s`. */
static int read_body(struct kiln_symbols *s, struct kiln_str data, size_t memory_bytes,
                     struct kiln_pb *ret, struct kiln_err *err)
{
    struct kiln_str stored = {data.ptr + HEAD_BYTES, data.len - HEAD_BYTES};
    uint64_t size = get_u64(data.ptr + 16);
    struct kiln_buf body;
    size_t len;
    int r;

    if (size > BODY_MAX || s->bytes + size > memory_bytes)
        return KILN_E_LIMIT;
    kiln_buf_init(&body, size ? size : 1);
    r = kiln_decompress(KILN_ZSTD, stored, &body, err);
    if (r == 0 && body.len != size)
        r = damaged(err, "its body has another length");
    if (r == 0) {
        s->bytes += size;
        kiln_buf_take(&body, &s->body, &len);
        *ret = kiln_pb_of((struct kiln_str){s->body, len});
    }
    kiln_buf_done(&body);
    return r;
}

int kiln_symbols_decode(struct kiln_str data, size_t memory_bytes,
                        struct kiln_symbols **ret_symbols, struct kiln_err *err)
{
    struct kiln_symbols *s;
    struct kiln_pb r;
    int code = check_head(data, err);

    if (code < 0)
        return code;
    s = kiln_calloc(1, sizeof(*s));
    if (!s)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    s->bytes = sizeof(*s);
    s->n = get_u32(data.ptr + 12);
    code = read_body(s, data, memory_bytes, &r, err);
    if (code == 0)
        code = read_texts(s, &r, memory_bytes);
    if (code == 0)
        code = read_rows(s, &r, memory_bytes);
    if (code < 0) {
        kiln_symbols_free(s);
        return kiln_err_set(err, code, NULL, "the symbol file is damaged: %s", kiln_err_text(code));
    }
    *ret_symbols = s;
    return 0;
}

void kiln_symbols_free(struct kiln_symbols *symbols)
{
    if (!symbols)
        return;
    kiln_free(symbols->rows);
    kiln_free(symbols->texts);
    kiln_free(symbols->body);
    kiln_free(symbols);
}

struct kiln_str kiln_symbols_build_id(const struct kiln_symbols *symbols)
{
    return symbols->build_id;
}

uint32_t kiln_symbols_count(const struct kiln_symbols *symbols)
{
    return symbols->n;
}

size_t kiln_symbols_bytes(const struct kiln_symbols *symbols)
{
    return symbols->bytes;
}

struct kiln_symbol kiln_symbols_get(const struct kiln_symbols *symbols, uint32_t i)
{
    const struct row *row = &symbols->rows[i];

    return (struct kiln_symbol){.address = row->address,
                                .size = row->size,
                                .name = symbols->texts[row->name],
                                .file = symbols->texts[row->file],
                                .line = row->line};
}

bool kiln_symbols_find(const struct kiln_symbols *symbols, uint64_t address,
                       struct kiln_symbol *ret_symbol)
{
    uint32_t low = 0, high = symbols->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (symbols->rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    if (symbols->rows[low - 1].size &&
        address - symbols->rows[low - 1].address >= symbols->rows[low - 1].size)
        return false;
    *ret_symbol = kiln_symbols_get(symbols, low - 1);
    return true;
}
