/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a symbol file, little-endian:
 *
 *    0  8 bytes  "KILNSYM\n"
 *    8  u32      version, 1 or 2
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
 *   version 2:
 *     number of functions, then each: name, system name, file (numbers of texts), first line
 *       (zigzag)
 *     number of nodes, then each: distance to the node it is inlined into (0: into none), function,
 *       line (zigzag)                                (node 0 is none and not in the list)
 *     for each symbol, by address: distance from the symbol before (the first: address), size, node
 *   version 1:
 *     for each symbol: distance, size, name, file (numbers of texts), line (zigzag)
 */
#include "store/symbols.h"

#include <errno.h>

#include "base/compress.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "codec/pb.h"
#include "store/symbols_int.h"

enum { ROW_BYTES_MIN = 3, ROW_BYTES_MIN_1 = 5, FUNCTION_BYTES_MIN = 4, NODE_BYTES_MIN = 3 };
#define BODY_MAX (UINT64_C(1) << 30) /* of any version */

const char kiln_symbols_magic[8] = {'K', 'I', 'L', 'N', 'S', 'Y', 'M', '\n'};

/* A file being read. */
struct reading {
    struct kiln_symbols *s;
    struct kiln_pb in;
    size_t memory_bytes;
    uint32_t version;
};

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

static int read_index(struct kiln_pb *r, uint32_t limit, uint32_t *ret)
{
    uint64_t v;
    int code = read_number(r, limit, &v);

    if (code == 0)
        *ret = (uint32_t)v;
    return code;
}

static int read_signed(struct kiln_pb *r, int64_t *ret)
{
    uint64_t v;

    if (kiln_pb_varint(r, &v) != 1)
        return KILN_E_CORRUPT;
    *ret = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
    return 0;
}

/* Zeroed room for `n` entries, which were promised bytes of the body. */
static int make_room(struct reading *rd, uint64_t n, size_t size, size_t bytes_min, void **ret)
{
    if (n > (uint64_t)(rd->in.end - rd->in.at) / bytes_min || n >= UINT32_MAX)
        return KILN_E_CORRUPT;
    if ((n + 1) * size > rd->memory_bytes - rd->s->cached.bytes)
        return KILN_E_LIMIT;
    *ret = kiln_calloc(n + 1, size);
    if (!*ret)
        return -ENOMEM;
    rd->s->cached.bytes += (n + 1) * size;
    return 0;
}

static int read_texts(struct reading *rd)
{
    struct kiln_symbols *s = rd->s;
    uint64_t n;
    int r;

    if (kiln_pb_bytes(&rd->in, &s->build_id) != 1 || read_number(&rd->in, UINT32_MAX, &n) < 0)
        return KILN_E_CORRUPT;
    r = make_room(rd, n, sizeof(*s->texts), 1, (void **)&s->texts);
    if (r < 0)
        return r;
    s->n_texts = (uint32_t)n + 1;
    for (uint64_t i = 1; i <= n; i++) {
        if (kiln_pb_bytes(&rd->in, &s->texts[i]) != 1)
            return KILN_E_CORRUPT;
    }
    return 0;
}

static int read_functions(struct reading *rd)
{
    struct kiln_symbols *s = rd->s;
    uint64_t n;
    int r = read_number(&rd->in, UINT32_MAX, &n);

    if (r == 0)
        r = make_room(rd, n, sizeof(*s->functions), FUNCTION_BYTES_MIN, (void **)&s->functions);
    if (r < 0)
        return r;
    s->n_functions = (uint32_t)n;
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_symbol_function *f = &s->functions[i];

        if (read_index(&rd->in, s->n_texts, &f->name) < 0 ||
            read_index(&rd->in, s->n_texts, &f->system_name) < 0 ||
            read_index(&rd->in, s->n_texts, &f->file) < 0 ||
            read_signed(&rd->in, &f->start_line) < 0)
            return KILN_E_CORRUPT;
        if (!(s->texts[f->name].len || s->texts[f->system_name].len || s->texts[f->file].len))
            return KILN_E_CORRUPT;
    }
    return 0;
}

static int read_nodes(struct reading *rd)
{
    struct kiln_symbols *s = rd->s;
    uint64_t n;
    int r = read_number(&rd->in, UINT32_MAX, &n);

    if (r == 0)
        r = make_room(rd, n, sizeof(*s->nodes), NODE_BYTES_MIN, (void **)&s->nodes);
    if (r < 0)
        return r;
    s->n_nodes = (uint32_t)n + 1;
    for (uint32_t i = 1; i <= n; i++) {
        struct kiln_symbol_node *node = &s->nodes[i];
        uint32_t distance;

        if (read_index(&rd->in, i, &distance) < 0 ||
            read_index(&rd->in, s->n_functions, &node->function) < 0 ||
            read_signed(&rd->in, &node->line) < 0)
            return KILN_E_CORRUPT;
        node->parent = distance ? i - distance : 0;
        node->depth = s->nodes[node->parent].depth + 1;
        if (node->depth > KILN_SYMBOL_FRAMES_MAX)
            return KILN_E_CORRUPT;
    }
    return 0;
}

/* Of version 1: a symbol is a function of its own, with one node. */
static int make_tables_1(struct reading *rd)
{
    struct kiln_symbols *s = rd->s;
    int r = make_room(rd, s->n, sizeof(*s->functions), ROW_BYTES_MIN_1, (void **)&s->functions);

    if (r == 0)
        r = make_room(rd, s->n, sizeof(*s->nodes), ROW_BYTES_MIN_1, (void **)&s->nodes);
    return r;
}

static int read_frame_1(struct reading *rd, struct kiln_symbol_row *row)
{
    struct kiln_symbols *s = rd->s;
    struct kiln_symbol_function *f = &s->functions[s->n_functions];
    struct kiln_symbol_node *node = &s->nodes[s->n_functions + 1];

    if (read_index(&rd->in, s->n_texts, &f->name) < 0 ||
        read_index(&rd->in, s->n_texts, &f->file) < 0 || read_signed(&rd->in, &node->line) < 0)
        return KILN_E_CORRUPT;
    node->function = s->n_functions++;
    node->depth = 1;
    s->n_nodes = s->n_functions + 1;
    row->node = s->texts[f->name].len || s->texts[f->file].len ? s->n_functions : 0;
    return 0;
}

static int read_row(struct reading *rd, uint32_t i)
{
    struct kiln_symbols *s = rd->s;
    struct kiln_symbol_row *row = &s->rows[i];
    uint64_t last = i ? row[-1].address : 0, distance;

    if (kiln_pb_varint(&rd->in, &distance) != 1 || distance > UINT64_MAX - last ||
        (i && distance == 0) || kiln_pb_varint(&rd->in, &row->size) != 1)
        return KILN_E_CORRUPT;
    row->address = last + distance;
    row->range = row->size != 1 ? i + 1 : i ? row[-1].range : 0;
    return rd->version == 1 ? read_frame_1(rd, row) : read_index(&rd->in, s->n_nodes, &row->node);
}

static int read_rows(struct reading *rd)
{
    struct kiln_symbols *s = rd->s;
    int r = make_room(rd, s->n, sizeof(*s->rows),
                      rd->version == 1 ? ROW_BYTES_MIN_1 : ROW_BYTES_MIN, (void **)&s->rows);

    for (uint32_t i = 0; r == 0 && i < s->n; i++)
        r = read_row(rd, i);
    return r == 0 && rd->in.at != rd->in.end ? KILN_E_CORRUPT : r;
}

static int read_all(struct reading *rd)
{
    int r = read_texts(rd);

    if (r == 0)
        r = rd->version == 1 ? make_tables_1(rd) : read_functions(rd);
    if (r == 0 && rd->version > 1)
        r = read_nodes(rd);
    return r < 0 ? r : read_rows(rd);
}

static int check_head(struct kiln_str data, struct kiln_err *err)
{
    const char *head = data.ptr;

    if (data.len < KILN_SYMBOLS_HEAD)
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL, "the symbol file is cut off");
    if (memcmp(head, kiln_symbols_magic, sizeof(kiln_symbols_magic)) != 0)
        return damaged(err, "it does not begin like one");
    if (get_u32(head + 36) != kiln_crc32c(0, head, KILN_SYMBOLS_SUMMED))
        return damaged(err, "the sum of its head is wrong");
    if (get_u32(head + 8) == 0 || get_u32(head + 8) > KILN_SYMBOLS_VERSION)
        return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL,
                            "the symbol file has format %u, this Kiln reads up to %d",
                            get_u32(head + 8), KILN_SYMBOLS_VERSION);
    if (get_u64(head + 24) != data.len - KILN_SYMBOLS_HEAD)
        return damaged(err, "its length is wrong");
    if (get_u32(head + 32) !=
        kiln_crc32c(0, head + KILN_SYMBOLS_HEAD, data.len - KILN_SYMBOLS_HEAD))
        return damaged(err, "the sum of its body is wrong");
    return 0;
}

/* The uncompressed body, owned by the symbols. */
static int read_body(struct reading *rd, struct kiln_str data, struct kiln_err *err)
{
    struct kiln_str stored = {data.ptr + KILN_SYMBOLS_HEAD, data.len - KILN_SYMBOLS_HEAD};
    uint64_t size = get_u64(data.ptr + 16);
    struct kiln_symbols *s = rd->s;
    struct kiln_buf body;
    size_t len;
    int r;

    if (size > BODY_MAX || s->cached.bytes > rd->memory_bytes ||
        size > rd->memory_bytes - s->cached.bytes)
        return KILN_E_LIMIT;
    kiln_buf_init(&body, size ? size : 1);
    r = kiln_decompress(KILN_ZSTD, stored, &body, err);
    if (r == 0 && body.len != size)
        r = damaged(err, "its body has another length");
    if (r == 0) {
        s->cached.bytes += size;
        kiln_buf_take(&body, &s->body, &len);
        rd->in = kiln_pb_of((struct kiln_str){s->body, len});
    }
    kiln_buf_done(&body);
    return r;
}

static void free_symbols(struct kiln_cached *cached)
{
    struct kiln_symbols *s = (struct kiln_symbols *)cached;

    kiln_free(s->rows);
    kiln_free(s->nodes);
    kiln_free(s->functions);
    kiln_free(s->texts);
    kiln_free(s->body);
    kiln_free(s);
}

int kiln_symbols_decode(struct kiln_str data, size_t memory_bytes,
                        struct kiln_symbols **ret_symbols, struct kiln_err *err)
{
    struct reading rd = {.memory_bytes = memory_bytes};
    struct kiln_symbols *s;
    int r = check_head(data, err);

    if (r < 0)
        return r;
    s = kiln_calloc(1, sizeof(*s));
    if (!s)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    s->cached = (struct kiln_cached){.bytes = sizeof(*s), .free = free_symbols};
    atomic_init(&s->cached.refs, 1);
    s->n = get_u32(data.ptr + 12);
    rd.s = s;
    rd.version = get_u32(data.ptr + 8);
    r = read_body(&rd, data, err);
    if (r == 0)
        r = read_all(&rd);
    if (r < 0) {
        kiln_symbols_unref(s);
        return kiln_err_set(err, r, NULL, "the symbol file is damaged: %s", kiln_err_text(r));
    }
    *ret_symbols = s;
    return 0;
}

/* ---- asking ---- */

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
    return symbols->cached.bytes;
}

static struct kiln_symbol_frame frame_of(const struct kiln_symbols *s,
                                         const struct kiln_symbol_node *node)
{
    const struct kiln_symbol_function *f = &s->functions[node->function];
    bool has_file = s->texts[f->file].len > 0;

    return (struct kiln_symbol_frame){.name = s->texts[f->name],
                                      .system_name = s->texts[f->system_name],
                                      .file = s->texts[f->file],
                                      .line = has_file ? node->line : 0,
                                      .start_line = has_file ? f->start_line : 0};
}

void kiln_symbols_get(const struct kiln_symbols *s, uint32_t i, struct kiln_symbol_found *ret)
{
    const struct kiln_symbol_row *row = &s->rows[i];

    ret->address = row->address;
    ret->size = row->size;
    ret->n = 0;
    for (uint32_t node = row->node; node; node = s->nodes[node].parent)
        ret->frames[ret->n++] = frame_of(s, &s->nodes[node]);
}

/* 1 + the row of an address; 0: none. */
static uint32_t find_row(const struct kiln_symbols *s, uint64_t address)
{
    uint32_t low = 0, high = s->n, range;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (s->rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || s->rows[low - 1].address == address)
        return low;
    range = s->rows[low - 1].range;
    if (range && s->rows[range - 1].size &&
        address - s->rows[range - 1].address >= s->rows[range - 1].size)
        return 0;
    return range;
}

bool kiln_symbols_find(const struct kiln_symbols *symbols, uint64_t address,
                       struct kiln_symbol_found *ret_found)
{
    uint32_t row = find_row(symbols, address);

    if (row)
        kiln_symbols_get(symbols, row - 1, ret_found);
    return row > 0;
}

bool kiln_symbols_has(const struct kiln_symbols *symbols, uint64_t address)
{
    return find_row(symbols, address) > 0;
}
