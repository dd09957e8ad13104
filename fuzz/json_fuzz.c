/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON reader.  What it accepts is read a second time value by value, written, and what was
 * written must be accepted and written the same again.
 */
#include "base/json.h"
#include "fuzz.h"

static int copy(struct kiln_json *r, struct kiln_json_out *w);

static int copy_members(struct kiln_json *r, struct kiln_json_out *w)
{
    struct kiln_str name;
    int n = kiln_json_object(r);

    kiln_json_put_object(w);
    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        kiln_json_put_name_str(w, name);
        n = copy(r, w);
    }
    kiln_json_end_object(w);
    return n;
}

static int copy_elements(struct kiln_json *r, struct kiln_json_out *w)
{
    int n = kiln_json_array(r);

    kiln_json_put_array(w);
    while (n == 0 && (n = kiln_json_element(r)) > 0)
        n = copy(r, w);
    kiln_json_end_array(w);
    return n;
}

static int copy_number(struct kiln_json *r, struct kiln_json_out *w)
{
    struct kiln_str text;
    double d;
    int n = kiln_json_number(r, &text);

    if (n == 0 && kiln_json_parse_double(text, &d) == 0)
        kiln_json_put_double(w, d);
    else
        kiln_json_put_null(w);
    return n;
}

static int copy(struct kiln_json *r, struct kiln_json_out *w)
{
    struct kiln_str s;
    bool flag = false;
    int n;

    switch (kiln_json_peek(r)) {
    case KILN_JSON_OBJECT:
        return copy_members(r, w);
    case KILN_JSON_ARRAY:
        return copy_elements(r, w);
    case KILN_JSON_NUMBER:
        return copy_number(r, w);
    case KILN_JSON_STRING:
        n = kiln_json_string(r, &s);
        if (n == 0)
            kiln_json_put_str(w, s);
        return n;
    case KILN_JSON_BOOL:
        n = kiln_json_bool(r, &flag);
        kiln_json_put_bool(w, flag);
        return n;
    default:
        n = kiln_json_null(r);
        kiln_json_put_null(w);
        return n < 0 ? n : n == 1 ? 0 : kiln_json_fail(r, KILN_E_MALFORMED, "no value");
    }
}

/* Reads `text` and writes it again; false if it is not JSON. */
static bool rewrite(struct kiln_str text, struct kiln_buf *out)
{
    struct kiln_err err = {0};
    struct kiln_json_out w;
    struct kiln_json r;
    int n, skipped;

    kiln_json_init(&r, text, &err);
    skipped = kiln_json_skip(&r);
    kiln_json_done(&r);
    err = (struct kiln_err){0};
    kiln_json_init(&r, text, &err);
    kiln_json_out_init(&w, out, 1);
    n = copy(&r, &w);
    kiln_json_done(&r);
    FUZZ_CHECK((n < 0) == (skipped < 0) && (n < 0) == (err.code < 0));
    return n == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_buf once, twice;

    kiln_buf_init(&once, SIZE_MAX / 2);
    kiln_buf_init(&twice, SIZE_MAX / 2);
    if (rewrite((struct kiln_str){(const char *)data, size}, &once)) {
        FUZZ_CHECK(rewrite(kiln_buf_str(&once), &twice) &&
                   kiln_str_eq(kiln_buf_str(&once), kiln_buf_str(&twice)));
    }
    kiln_buf_done(&once);
    kiln_buf_done(&twice);
    return 0;
}
