/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of Push, protobuf and JSON.  The labels of a series are read before its samples,
 * wherever they stand.  JSON has lowerCamelCase or the names of the .proto file, bytes in base64;
 * names that are not known are passed over.
 */
#include <errno.h>

#include "base/bytetext.h"
#include "base/json.h"
#include "base/mem.h"
#include "codec/pb.h"
#include "pipeline/receivers/push.h"

#define TEXTS_MAX (1u << 20) /* the labels of one series in JSON, all together */

static int check_tags(const struct kiln_tags *tags, struct kiln_err *err)
{
    if (tags->family.len)
        return 0;
    return kiln_err_set(err, KILN_E_MALFORMED, "labels",
                        "a series needs the label __name__ (process_cpu, memory, ...)");
}

/* ---- protobuf ---- */

static int bad_wire(struct kiln_err *err, int code)
{
    return kiln_err_set(err, code, NULL, "this is no PushRequest: %s", kiln_err_text(code));
}

static int read_pair(struct kiln_str bytes, struct kiln_tags *tags, struct kiln_err *err)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_str name = KILN_STR_NONE, value = KILN_STR_NONE;
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            name = f.bytes;
        else if (f.tag == KILN_PB_BYTES(2u))
            value = f.bytes;
    }
    return n < 0 ? bad_wire(err, n) : kiln_tags_add(tags, name, value, err);
}

static int read_labels(struct kiln_str series, struct kiln_tags *tags, struct kiln_err *err)
{
    struct kiln_pb r = kiln_pb_of(series);
    struct kiln_pb_field f;
    int n, bad = 0;

    while (bad == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            bad = read_pair(f.bytes, tags, err);
    }
    if (bad < 0)
        return bad;
    return n < 0 ? bad_wire(err, n) : check_tags(tags, err);
}

static int read_sample(struct push *push, struct kiln_tags *tags, struct kiln_str bytes,
                       struct kiln_err *err)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_str raw = KILN_STR_NONE, id = KILN_STR_NONE;
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            raw = f.bytes;
        else if (f.tag == KILN_PB_BYTES(2u))
            id = f.bytes;
    }
    if (n < 0)
        return bad_wire(err, n);
    kiln_push_sample(push, tags, raw, id);
    return 0;
}

static int read_series(struct push *push, struct kiln_str series, struct kiln_err *err)
{
    struct kiln_tags tags;
    struct kiln_pb r = kiln_pb_of(series);
    struct kiln_pb_field f;
    int bad;

    memset(&tags, 0, sizeof(tags));
    bad = read_labels(series, &tags, err);
    while (bad == 0 && kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(2u))
            bad = read_sample(push, &tags, f.bytes, err);
    }
    return bad;
}

int kiln_push_protobuf(struct push *push, struct kiln_str message, struct kiln_err *err)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    uint32_t i = 0;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        struct kiln_err why = {0};
        int bad;

        if (f.tag != KILN_PB_BYTES(1u))
            continue;
        bad = read_series(push, f.bytes, &why);
        if (bad < 0) {
            kiln_err_within(&why, "series[%u]", i);
            kiln_push_bad_series(push, bad, &why);
        }
        i++;
    }
    return n < 0 ? bad_wire(err, n) : 0;
}

/* ---- JSON ---- */

struct json_series {
    struct kiln_tags tags;
    struct kiln_buf texts; /* names and values of labels; never moves */
    size_t samples;        /* where they stand; 0: there are none */
};

/* A copy of a text that the reader lends. */
static int keep(struct json_series *s, struct kiln_str text, struct kiln_str *ret)
{
    size_t at = s->texts.len;

    kiln_buf_add_str(&s->texts, text);
    if (s->texts.error)
        return s->texts.error;
    *ret = (struct kiln_str){s->texts.ptr + at, text.len};
    return 0;
}

static bool is_either(struct kiln_str name, const char *a, const char *b)
{
    return kiln_str_eq(name, kiln_str_of(a)) || kiln_str_eq(name, kiln_str_of(b));
}

static int json_label(struct kiln_json *r, struct json_series *s, struct kiln_err *err)
{
    struct kiln_str name, text, label = KILN_STR_NONE, value = KILN_STR_NONE;
    int n = kiln_json_object(r);

    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        bool is_name = kiln_str_eq(name, KILN_STR("name"));

        if (!is_name && !kiln_str_eq(name, KILN_STR("value"))) {
            n = kiln_json_skip(r);
            continue;
        }
        n = kiln_json_string(r, &text);
        if (n == 0)
            n = keep(s, text, is_name ? &label : &value);
    }
    return n < 0 ? n : kiln_tags_add(&s->tags, label, value, err);
}

static int json_labels(struct kiln_json *r, struct json_series *s, struct kiln_err *err)
{
    int n = kiln_json_array(r);

    while (n == 0 && (n = kiln_json_element(r)) > 0)
        n = json_label(r, s, err);
    return n;
}

static int json_raw(struct kiln_json *r, struct kiln_buf *out)
{
    struct kiln_str text;
    size_t len;
    char *room;
    int n = kiln_json_string(r, &text);

    if (n < 0)
        return n;
    kiln_buf_clear(out);
    room = kiln_buf_reserve(out, kiln_base64_room(text.len));
    if (!room)
        return out->error;
    if (kiln_base64_decode(text, room, &len) < 0)
        return kiln_json_fail(r, KILN_E_MALFORMED, "rawProfile is not base64");
    out->len += len;
    return 0;
}

static int json_sample(struct push *push, struct kiln_json *r, struct json_series *s,
                       struct kiln_buf *raw)
{
    struct kiln_str name, text, id = KILN_STR_NONE;
    int n = kiln_json_object(r);

    kiln_buf_clear(raw);
    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        if (is_either(name, "rawProfile", "raw_profile")) {
            n = json_raw(r, raw);
        } else if (is_either(name, "ID", "id")) {
            n = kiln_json_string(r, &text);
            if (n == 0)
                n = keep(s, text, &id);
        } else {
            n = kiln_json_skip(r);
        }
    }
    if (n == 0)
        kiln_push_sample(push, &s->tags, kiln_buf_str(raw), id);
    return n;
}

/* Goes back to where the samples stand, now that the labels are known. */
static int json_samples(struct push *push, struct kiln_str message, struct json_series *s,
                        struct kiln_err *err)
{
    struct kiln_json r;
    struct kiln_buf raw;
    int n;

    kiln_json_init(&r, message, err);
    kiln_buf_init(&raw, message.len);
    kiln_json_seek(&r, s->samples);
    n = kiln_json_array(&r);
    while (n == 0 && (n = kiln_json_element(&r)) > 0)
        n = json_sample(push, &r, s, &raw);
    kiln_buf_done(&raw);
    kiln_json_done(&r);
    return n;
}

/* Reads one series.  *ret_bad: the series is of no use, but the text goes on. */
static int json_series(struct push *push, struct kiln_json *r, struct kiln_str message,
                       struct json_series *s, struct kiln_err *why, int *ret_bad)
{
    struct kiln_str name;
    int n = kiln_json_object(r);

    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("labels"))) {
            n = json_labels(r, s, why);
        } else {
            if (kiln_str_eq(name, KILN_STR("samples")))
                s->samples = kiln_json_tell(r);
            n = kiln_json_skip(r);
        }
    }
    if (n < 0)
        return n;
    *ret_bad = check_tags(&s->tags, why);
    if (*ret_bad == 0 && s->samples)
        *ret_bad = json_samples(push, message, s, why);
    return 0;
}

static int json_next_series(struct push *push, struct kiln_json *r, struct kiln_str message,
                            uint32_t i)
{
    struct json_series *s = kiln_calloc(1, sizeof(*s));
    struct kiln_err why = {0};
    int n, bad = 0;

    if (!s)
        return -ENOMEM;
    kiln_buf_init(&s->texts, TEXTS_MAX);
    n = kiln_buf_reserve(&s->texts, message.len < TEXTS_MAX ? message.len : TEXTS_MAX) ? 0
                                                                                       : -ENOMEM;
    if (n == 0)
        n = json_series(push, r, message, s, &why, &bad);
    if (n < 0 && !r->error)
        n = kiln_json_fail(r, n, "%s", why.text[0] ? why.text : kiln_err_text(n));
    if (n == 0 && bad < 0) {
        kiln_err_within(&why, "series[%u]", i);
        kiln_push_bad_series(push, bad, &why);
    }
    kiln_buf_done(&s->texts);
    kiln_free(s);
    return n;
}

int kiln_push_json(struct push *push, struct kiln_str message, struct kiln_err *err)
{
    struct kiln_json r;
    struct kiln_str name;
    uint32_t i = 0;
    int n;

    kiln_json_init(&r, message, err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0) {
        if (!kiln_str_eq(name, KILN_STR("series"))) {
            n = kiln_json_skip(&r);
            continue;
        }
        n = kiln_json_array(&r);
        while (n == 0 && (n = kiln_json_element(&r)) > 0)
            n = json_next_series(push, &r, message, i++);
    }
    kiln_json_done(&r);
    return n;
}
