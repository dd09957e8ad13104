/* SPDX-License-Identifier: Apache-2.0 */
/*
 * google.rpc.Status, as protobuf and as JSON.
 *
 *   Status      1 code (varint), 2 message (string), 3 details (repeated Any)
 *   Any         1 type_url (string), 2 value (bytes)
 *   RetryInfo   1 retry_delay (Duration: 1 seconds, 2 nanos, both varints)
 *   BadRequest  1 field_violations (repeated: 1 field, 2 description, both strings)
 *
 * These messages are small: an inner one is made in a buffer of its own, then put into the outer.
 * The codec's reader and writer (codec/pb.h) are a room above this one.
 */
#include "base/json.h"
#include "net/grpc.h"

#define TYPE_PREFIX "type.googleapis.com/"
#define RETRY_INFO  "google.rpc.RetryInfo"
#define BAD_REQUEST "google.rpc.BadRequest"
#define DETAIL_MAX  8192u

/* ---- protobuf ---- */

static void put_varint(struct kiln_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        kiln_buf_putc(out, (char)(v | 0x80));
    kiln_buf_putc(out, (char)v);
}

static void put_number(struct kiln_buf *out, uint32_t field, uint64_t v)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, v);
}

static void put_bytes(struct kiln_buf *out, uint32_t field, struct kiln_str bytes)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, bytes.len);
    kiln_buf_add_str(out, bytes);
}

/* Puts what `inner` holds as a field of `out`, and is done with it. */
static void put_message(struct kiln_buf *out, uint32_t field, struct kiln_buf *inner)
{
    if (inner->error && !out->error)
        out->error = inner->error;
    put_bytes(out, field, kiln_buf_str(inner));
    kiln_buf_done(inner);
}

static void put_retry_info(const struct kiln_rpc_status *status, struct kiln_buf *out)
{
    struct kiln_buf delay;

    kiln_buf_init(&delay, DETAIL_MAX);
    put_number(&delay, 1, status->retry_after_s);
    put_message(out, 1, &delay);
}

static void put_bad_request(const struct kiln_rpc_status *status, struct kiln_buf *out)
{
    struct kiln_buf violation;

    kiln_buf_init(&violation, DETAIL_MAX);
    put_bytes(&violation, 1, kiln_str_of(status->field));
    put_bytes(&violation, 2, kiln_str_of(status->message));
    put_message(out, 1, &violation);
}

struct detail {
    const char *type;
    void (*put)(const struct kiln_rpc_status *status, struct kiln_buf *out);
};

/* The details a status has; returns how many. */
static uint32_t details_of(const struct kiln_rpc_status *status, struct detail details[2])
{
    uint32_t n = 0;

    if (status->retry_after_s)
        details[n++] = (struct detail){RETRY_INFO, put_retry_info};
    if (status->field)
        details[n++] = (struct detail){BAD_REQUEST, put_bad_request};
    return n;
}

void kiln_status_encode(const struct kiln_rpc_status *status, struct kiln_buf *out)
{
    struct detail details[2];
    uint32_t n = details_of(status, details);

    put_number(out, 1, status->code);
    put_bytes(out, 2, kiln_str_of(status->message));
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_buf any, value;

        kiln_buf_init(&any, DETAIL_MAX);
        kiln_buf_init(&value, DETAIL_MAX);
        kiln_buf_puts(&value, TYPE_PREFIX);
        kiln_buf_puts(&value, details[i].type);
        put_bytes(&any, 1, kiln_buf_str(&value));
        kiln_buf_clear(&value);
        details[i].put(status, &value);
        put_message(&any, 2, &value);
        put_message(out, 3, &any);
    }
}

/* ---- JSON ---- */

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

static void format_retry_info(const struct kiln_rpc_status *status, struct kiln_json_out *w)
{
    kiln_json_put_object(w);
    put_text(w, "@type", TYPE_PREFIX RETRY_INFO);
    kiln_json_put_name(w, "retryDelay");
    kiln_json_put_raw_begin(w);
    kiln_buf_printf(w->buf, "%us", status->retry_after_s);
    kiln_json_put_raw_end(w);
    kiln_json_end_object(w);
}

static void format_bad_request(const struct kiln_rpc_status *status, struct kiln_json_out *w)
{
    kiln_json_put_object(w);
    put_text(w, "@type", TYPE_PREFIX BAD_REQUEST);
    kiln_json_put_name(w, "fieldViolations");
    kiln_json_put_array(w);
    kiln_json_put_object(w);
    put_text(w, "field", status->field);
    put_text(w, "description", status->message);
    kiln_json_end_object(w);
    kiln_json_end_array(w);
    kiln_json_end_object(w);
}

void kiln_status_format(const struct kiln_rpc_status *status, struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "code");
    kiln_json_put_u64(&w, status->code);
    put_text(&w, "message", status->message);
    if (status->retry_after_s || status->field) {
        kiln_json_put_name(&w, "details");
        kiln_json_put_array(&w);
        if (status->retry_after_s)
            format_retry_info(status, &w);
        if (status->field)
            format_bad_request(status, &w);
        kiln_json_end_array(&w);
    }
    kiln_json_end_object(&w);
}

static void format_connect_detail(const struct kiln_rpc_status *status, const struct detail *detail,
                                  struct kiln_json_out *w)
{
    struct kiln_buf value;

    kiln_buf_init(&value, DETAIL_MAX);
    detail->put(status, &value);
    kiln_json_put_object(w);
    put_text(w, "type", detail->type);
    kiln_json_put_name(w, "value");
    kiln_json_put_raw_begin(w);
    kiln_base64_bare_put(w->buf, kiln_buf_str(&value));
    kiln_json_put_raw_end(w);
    kiln_json_end_object(w);
    if (value.error && !w->buf->error)
        w->buf->error = value.error;
    kiln_buf_done(&value);
}

void kiln_status_format_connect(const struct kiln_rpc_status *status, struct kiln_buf *out)
{
    struct detail details[2];
    uint32_t n = details_of(status, details);
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    put_text(&w, "code", kiln_rpc_code_word(status->code));
    put_text(&w, "message", status->message);
    if (n) {
        kiln_json_put_name(&w, "details");
        kiln_json_put_array(&w);
        for (uint32_t i = 0; i < n; i++)
            format_connect_detail(status, &details[i], &w);
        kiln_json_end_array(&w);
    }
    kiln_json_end_object(&w);
}

/* ---- reading ---- */

struct field {
    uint64_t tag; /* number << 3 | wire type */
    uint64_t number;
    struct kiln_str bytes;
};

static int get_varint(struct kiln_str *in, uint64_t *ret)
{
    uint64_t v = 0;

    for (uint32_t shift = 0; shift < 64; shift += 7) {
        uint8_t c;

        if (in->len == 0)
            return KILN_E_TRUNCATED;
        c = (uint8_t)*in->ptr++;
        in->len--;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            *ret = v;
            return 0;
        }
    }
    return KILN_E_MALFORMED;
}

static int get_run(struct kiln_str *in, uint64_t len, struct kiln_str *ret)
{
    if (len > in->len)
        return KILN_E_TRUNCATED;
    *ret = (struct kiln_str){in->ptr, (size_t)len};
    in->ptr += len;
    in->len -= (size_t)len;
    return 0;
}

/* Returns 1, 0 at the end, or an error. */
static int get_field(struct kiln_str *in, struct field *f)
{
    int r;

    if (in->len == 0)
        return 0;
    r = get_varint(in, &f->tag);
    if (r < 0)
        return r;
    switch (f->tag & 7) {
    case 0:
        r = get_varint(in, &f->number);
        break;
    case 1:
        r = get_run(in, 8, &f->bytes);
        break;
    case 2:
        r = get_varint(in, &f->number);
        if (r == 0)
            r = get_run(in, f->number, &f->bytes);
        break;
    case 5:
        r = get_run(in, 4, &f->bytes);
        break;
    default:
        r = KILN_E_MALFORMED;
    }
    return r < 0 ? r : 1;
}

#define TAG_NUMBER(field) ((uint64_t)(field) << 3)
#define TAG_BYTES(field)  ((uint64_t)(field) << 3 | 2)

/* Milliseconds of a Duration, rounded up, within 32 bits; negative ones are 0. */
static int get_duration(struct kiln_str in, uint32_t *ret_ms)
{
    uint64_t seconds = 0, nanos = 0;
    struct field f;
    int n;

    while ((n = get_field(&in, &f)) > 0) {
        if (f.tag == TAG_NUMBER(1))
            seconds = f.number;
        if (f.tag == TAG_NUMBER(2))
            nanos = f.number;
    }
    if (n < 0)
        return n;
    if ((int64_t)seconds < 0 || (int64_t)nanos < 0)
        *ret_ms = 0;
    else if (seconds >= UINT32_MAX / 1000 || nanos > 999999999)
        *ret_ms = UINT32_MAX;
    else
        *ret_ms = (uint32_t)(seconds * 1000 + (nanos + 999999) / 1000000);
    return 0;
}

static int get_retry_info(struct kiln_str in, struct kiln_status_info *info)
{
    struct field f;
    int n;

    info->has_retry = true;
    while ((n = get_field(&in, &f)) > 0)
        if (f.tag == TAG_BYTES(1)) {
            int r = get_duration(f.bytes, &info->retry_after_ms);

            if (r < 0)
                return r;
        }
    return n;
}

static int get_any(struct kiln_str in, struct kiln_status_info *info)
{
    struct kiln_str type = KILN_STR_NONE, value = KILN_STR_NONE;
    struct field f;
    int n;

    while ((n = get_field(&in, &f)) > 0) {
        if (f.tag == TAG_BYTES(1))
            type = f.bytes;
        if (f.tag == TAG_BYTES(2))
            value = f.bytes;
    }
    if (n == 0 && kiln_str_ends(type, KILN_STR("/" RETRY_INFO)))
        return get_retry_info(value, info);
    return n;
}

int kiln_status_decode(struct kiln_str bytes, struct kiln_status_info *ret_info)
{
    struct kiln_status_info info = {0};
    struct field f;
    int n;

    while ((n = get_field(&bytes, &f)) > 0) {
        int r = 0;

        if (f.tag == TAG_NUMBER(1))
            info.code = f.number;
        else if (f.tag == TAG_BYTES(2))
            info.message = f.bytes;
        else if (f.tag == TAG_BYTES(3))
            r = get_any(f.bytes, &info);
        if (r < 0)
            return r;
    }
    if (n == 0)
        *ret_info = info;
    return n;
}
