/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mapping whose name begins with "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]" or "/memfd:OTEL_CTX"
 * starts with
 *
 *    0  char[8]  "OTEL_CTX"
 *    8  u32      version: 2
 *   12  u32      bytes of the payload
 *   16  u64      when it was published, CLOCK_BOOTTIME in nanoseconds; 0: it is being changed
 *   24  u64      address of the payload in the process
 *
 * in the byte order of the host.  The payload is a protobuf message:
 *
 *   ProcessContext  1 Resource resource    2 KeyValue attributes, repeated
 *   Resource        1 KeyValue, repeated
 *   KeyValue        1 string key    2 AnyValue
 *   AnyValue        1 string  2 bool  3 int64  4 double  5 ArrayValue  (6 map, 7 bytes: left out)
 *   ArrayValue      1 AnyValue, repeated
 *
 * Memory is read by host/peek.h.
 */
#include "host/process_context.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/pb.h"
#include "host/peek.h"
#include "host/procfs.h"

enum {
    PAYLOAD_MAX = 64 << 10,
    ATTRS_MAX = 256,
    LIST_MAX = 256,
    TEXT_MAX = 4096,
    BUDGET = 256 << 10,
    MAPS_TEXT_MAX = 16 << 20,
    VERSION = 2,
    ATTEMPTS = 3,
};

struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    uint64_t published_ns;
    uint64_t payload;
};
_Static_assert(sizeof(struct header) == 32, "as the format has it");

struct context {
    struct kiln_process_context pub;
    _Atomic uint32_t refs;
    struct kiln_budget budget;
    struct kiln_arena arena;
};

static struct context *whole(struct kiln_process_context *context)
{
    return (struct context *)context;
}

struct kiln_process_context *kiln_process_context_ref(struct kiln_process_context *context)
{
    atomic_fetch_add_explicit(&whole(context)->refs, 1, memory_order_relaxed);
    return context;
}

void kiln_process_context_unref(struct kiln_process_context *context)
{
    if (!context || atomic_fetch_sub_explicit(&whole(context)->refs, 1, memory_order_acq_rel) != 1)
        return;
    kiln_arena_done(&whole(context)->arena);
    kiln_free(context);
}

/* ---- decoding ---- */

/* Attributes while they are read, and where what they say is kept. */
struct attrs {
    struct context *context;
    struct kiln_context_attr items[ATTRS_MAX];
    uint32_t n;
};

/* Of a text only what is before a NUL.  Empty where it is too long. */
static int copy_text(struct context *context, struct kiln_str text, const char **ret)
{
    struct kiln_buf utf8;
    struct kiln_str copy;

    kiln_buf_init(&utf8, (size_t)3 * TEXT_MAX + 1);
    if (text.len <= TEXT_MAX)
        kiln_buf_add_utf8(&utf8, text);
    kiln_buf_putc(&utf8, '\0');
    copy = utf8.error ? KILN_STR_NONE : kiln_arena_copy(&context->arena, kiln_buf_str(&utf8));
    kiln_buf_done(&utf8);
    if (!copy.ptr)
        return -ENOMEM;
    *ret = copy.ptr;
    return 0;
}

static int copy_double(struct context *context, uint64_t bits, const char **ret)
{
    char text[32];
    double value;

    memcpy(&value, &bits, sizeof(value));
    snprintf(text, sizeof(text), "%.17g", value);
    return copy_text(context, kiln_str_of(text), ret);
}

static int copy_int(struct context *context, int64_t value, const char **ret)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    return copy_text(context, kiln_str_of(text), ret);
}

/* A scalar as text; *ret is NULL where it is none.  `ret_list` is the array, where it is one. */
static int read_value(struct context *context, struct kiln_str bytes, const char **ret,
                      struct kiln_str *ret_list)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n, status = 0;

    *ret = NULL;
    *ret_list = KILN_STR_NONE;
    while (status == 0 && (n = kiln_pb_next(&r, &f)) != 0) {
        if (n < 0)
            return n;
        switch (f.tag) {
        case KILN_PB_BYTES(1):
            status = copy_text(context, f.bytes, ret);
            break;
        case KILN_PB_VARINT(2):
            status = copy_text(context, kiln_str_of(f.number ? "true" : "false"), ret);
            break;
        case KILN_PB_VARINT(3):
            status = copy_int(context, (int64_t)f.number, ret);
            break;
        case KILN_PB_FIXED64(4):
            status = copy_double(context, f.number, ret);
            break;
        case KILN_PB_BYTES(5):
            *ret_list = f.bytes.ptr ? f.bytes : KILN_STR("");
            break;
        default:
            break;
        }
    }
    return status;
}

/* A position is the meaning of an element: what is no text there is "". */
static int read_list(struct context *context, struct kiln_str bytes, struct kiln_context_attr *attr)
{
    const char *items[LIST_MAX], **list;
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    struct kiln_str inner;
    int n, status = 0;

    while (status == 0 && (n = kiln_pb_next(&r, &f)) != 0) {
        if (n < 0)
            return n;
        if (f.tag != KILN_PB_BYTES(1))
            continue;
        if (attr->n_list == LIST_MAX)
            return KILN_E_LIMIT;
        status = read_value(context, f.bytes, &items[attr->n_list], &inner);
        if (!items[attr->n_list])
            items[attr->n_list] = "";
        attr->n_list++;
    }
    list =
        status == 0 ? kiln_arena_alloc(&context->arena, (attr->n_list + 1) * sizeof(*list)) : NULL;
    if (!list)
        return status < 0 ? status : -ENOMEM;
    memcpy(list, items, attr->n_list * sizeof(*list));
    attr->list = list;
    return 0;
}

static int read_pair(struct attrs *attrs, struct kiln_str bytes)
{
    struct kiln_context_attr attr = {0};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_str key = KILN_STR_NONE, value = KILN_STR_NONE, list;
    struct kiln_pb_field f;
    int n, status;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1))
            key = f.bytes;
        else if (f.tag == KILN_PB_BYTES(2))
            value = f.bytes;
    }
    if (n < 0 || !key.len)
        return n;
    if (attrs->n == ATTRS_MAX)
        return KILN_E_LIMIT;
    status = copy_text(attrs->context, key, &attr.key);
    if (status == 0)
        status = read_value(attrs->context, value, &attr.text, &list);
    if (status == 0 && !attr.text && list.ptr)
        status = read_list(attrs->context, list, &attr);
    if (status == 0 && attr.key[0] && (attr.text || attr.list))
        attrs->items[attrs->n++] = attr;
    return status;
}

/* Each KeyValue that is field `field` of a message. */
static int read_pairs(struct attrs *attrs, struct kiln_str bytes, uint32_t field)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        int status = f.tag == KILN_PB_BYTES(field) ? read_pair(attrs, f.bytes) : 0;

        if (status < 0)
            return status;
    }
    return n;
}

static int read_resources(struct attrs *attrs, struct kiln_str payload)
{
    struct kiln_pb r = kiln_pb_of(payload);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        int status = f.tag == KILN_PB_BYTES(1) ? read_pairs(attrs, f.bytes, 1) : 0;

        if (status < 0)
            return status;
    }
    return n;
}

static int keep(struct attrs *attrs, const struct kiln_context_attr **ret, uint32_t *ret_n)
{
    struct kiln_context_attr *kept =
        kiln_arena_alloc(&attrs->context->arena, (attrs->n + 1) * sizeof(*kept));

    if (!kept)
        return -ENOMEM;
    memcpy(kept, attrs->items, attrs->n * sizeof(*kept));
    *ret = kept;
    *ret_n = attrs->n;
    attrs->n = 0;
    return 0;
}

static int decode(struct context *context, struct kiln_str payload)
{
    struct attrs *attrs = kiln_malloc(sizeof(*attrs));
    int r;

    if (!attrs)
        return -ENOMEM;
    attrs->context = context;
    attrs->n = 0;
    r = read_resources(attrs, payload);
    if (r == 0)
        r = keep(attrs, &context->pub.resource, &context->pub.n_resource);
    if (r == 0)
        r = read_pairs(attrs, payload, 2);
    if (r == 0)
        r = keep(attrs, &context->pub.attributes, &context->pub.n_attributes);
    kiln_free(attrs);
    return r;
}

int kiln_process_context_decode(struct kiln_str payload, struct kiln_process_context **ret_context)
{
    struct context *context = kiln_calloc(1, sizeof(*context));
    int r;

    if (!context)
        return -ENOMEM;
    atomic_init(&context->refs, 1);
    context->budget.limit = BUDGET;
    kiln_arena_init(&context->arena, &context->budget);
    r = decode(context, payload);
    if (r < 0) {
        kiln_process_context_unref(&context->pub);
        return r;
    }
    *ret_context = &context->pub;
    return 0;
}

static const struct kiln_context_attr *get(const struct kiln_context_attr *attrs, uint32_t n,
                                           const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(attrs[i].key, key) == 0)
            return &attrs[i];
    return NULL;
}

const struct kiln_context_attr *
kiln_process_context_resource(const struct kiln_process_context *context, const char *key)
{
    return get(context->resource, context->n_resource, key);
}

const struct kiln_context_attr *
kiln_process_context_attribute(const struct kiln_process_context *context, const char *key)
{
    return get(context->attributes, context->n_attributes, key);
}

/* ---- finding ---- */

bool kiln_process_context_is(struct kiln_str name)
{
    return kiln_str_starts(name, KILN_STR("[anon_shmem:OTEL_CTX]")) ||
           kiln_str_starts(name, KILN_STR("[anon:OTEL_CTX]")) ||
           kiln_str_starts(name, KILN_STR("/memfd:OTEL_CTX"));
}

static bool look(void *context, struct kiln_str line)
{
    uint64_t *address = context;
    struct kiln_procfs_map map;

    if (kiln_procfs_parse_map(line, &map) < 0 || !kiln_process_context_is(map.path))
        return true;
    *address = map.start;
    return false;
}

int kiln_process_context_find(int dir, uint64_t *ret_address)
{
    uint64_t address = 0;
    int r = kiln_procfs_lines(dir, "maps", MAPS_TEXT_MAX, look, &address);

    if (!address)
        return r < 0 && r != KILN_E_LIMIT ? r : -ENOENT;
    *ret_address = address;
    return 0;
}

/* ---- reading ---- */

static int read_header(const struct kiln_peek *memory, uint64_t address, struct header *ret_header)
{
    int r = kiln_peek(memory, address, ret_header, sizeof(*ret_header));

    if (r < 0)
        return r;
    if (memcmp(ret_header->signature, "OTEL_CTX", 8) != 0 || ret_header->version != VERSION)
        return -ENOENT;
    return ret_header->published_ns ? 0 : -EAGAIN;
}

static int read_payload(const struct kiln_peek *memory, uint64_t address,
                        const struct header *header, struct kiln_process_context **ret_context)
{
    size_t size = header->payload_size;
    char *payload = size <= PAYLOAD_MAX ? kiln_malloc(size + 1) : NULL;
    struct header after;
    int r;

    if (!payload)
        return size <= PAYLOAD_MAX ? -ENOMEM : KILN_E_LIMIT;
    r = size ? kiln_peek(memory, header->payload, payload, size) : 0;
    if (r == 0 || r == -EFAULT) {
        /* what is freed meanwhile is no fault of the one that has taken its place */
        int again = read_header(memory, address, &after);

        if (again < 0 || after.published_ns != header->published_ns)
            r = again < 0 ? again : -EAGAIN;
    }
    if (r == 0)
        r = kiln_process_context_decode((struct kiln_str){payload, size}, ret_context);
    kiln_free(payload);
    if (r == 0)
        (*ret_context)->published_ns = header->published_ns;
    return r;
}

static int attempt(const struct kiln_peek *memory, uint64_t address, uint64_t known_ns,
                   struct kiln_process_context **ret_context)
{
    struct header header;
    int r = read_header(memory, address, &header);

    if (r < 0 || header.published_ns == known_ns)
        return r;
    r = read_payload(memory, address, &header, ret_context);
    return r < 0 ? r : 1;
}

int kiln_process_context_read(int dir, uint64_t address, uint64_t known_ns,
                              struct kiln_process_context **ret_context)
{
    struct kiln_peek memory;
    int r = kiln_peek_open(dir, &memory);

    if (r < 0)
        return r;
    r = -EAGAIN;
    for (int i = 0; i < ATTEMPTS && r == -EAGAIN; i++)
        r = attempt(&memory, address, known_ns, ret_context);
    kiln_peek_close(&memory);
    return r;
}
