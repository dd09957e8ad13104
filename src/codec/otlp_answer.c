/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   ExportProfilesServiceResponse  1 partial_success
 *   ExportProfilesPartialSuccess   1 rejected_profiles (int64)  2 error_message
 */
#include "codec/otlp_answer.h"

#include <stdio.h>

#include "base/json.h"
#include "codec/pb.h"

static void keep_message(struct kiln_str text, struct kiln_export_result *result)
{
    snprintf(result->message, sizeof(result->message), "%.*s", text.len > 255 ? 255 : (int)text.len,
             text.ptr);
}

static void read_partial(struct kiln_str message, struct kiln_export_result *result)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;

    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_VARINT(1))
            result->rejected = f.number;
        if (f.tag == KILN_PB_BYTES(2))
            keep_message(f.bytes, result);
    }
}

void kiln_otlp_answer_decode(struct kiln_str response, struct kiln_export_result *ret_result)
{
    struct kiln_pb r = kiln_pb_of(response);
    struct kiln_pb_field f;

    *ret_result = (struct kiln_export_result){0};
    while (kiln_pb_next(&r, &f) > 0)
        if (f.tag == KILN_PB_BYTES(1))
            read_partial(f.bytes, ret_result);
}

/* A 64-bit number is a string, or a number. */
static int read_count(struct kiln_json *r, uint64_t *ret)
{
    struct kiln_str text;
    int e;

    if (kiln_json_peek(r) != KILN_JSON_STRING)
        return kiln_json_u64(r, ret);
    e = kiln_json_string(r, &text);
    return e < 0 ? e : kiln_str_parse_u64(text, ret);
}

static int read_partial_json(struct kiln_json *r, struct kiln_export_result *result)
{
    struct kiln_str name, text;
    int e = kiln_json_object(r);

    while (e == 0 && kiln_json_member(r, &name) > 0) {
        if (kiln_str_starts(name, KILN_STR("rejected"))) { /* Profiles, Spans, ... */
            e = read_count(r, &result->rejected);
        } else if (kiln_str_eq(name, KILN_STR("errorMessage"))) {
            e = kiln_json_string(r, &text);
            if (e == 0)
                keep_message(text, result);
        } else {
            e = kiln_json_skip(r);
        }
    }
    return e;
}

void kiln_otlp_answer_decode_json(struct kiln_str response, struct kiln_export_result *ret_result)
{
    struct kiln_str name;
    struct kiln_json r;
    int e;

    *ret_result = (struct kiln_export_result){0};
    kiln_json_init(&r, response, NULL);
    e = kiln_json_object(&r);
    while (e == 0 && kiln_json_member(&r, &name) > 0)
        e = kiln_str_eq(name, KILN_STR("partialSuccess")) ? read_partial_json(&r, ret_result)
                                                          : kiln_json_skip(&r);
    kiln_json_done(&r);
}
