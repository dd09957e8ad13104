/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of Pyroscope's API: the first byte chooses the message, the rest is JSON where it begins
 * with a brace, protobuf else.  JSON becomes protobuf, which must be read; what was read as
 * protobuf is also written as JSON by the tables of answers, which must be JSON.
 */
#include <string.h>

#include "api/pyroscope_messages.h"
#include "base/json.h"
#include "fuzz.h"

static const struct kiln_message *const requests[] = {
    &kiln_pyro_types_request,   &kiln_pyro_names_request,    &kiln_pyro_values_request,
    &kiln_pyro_series_request,  &kiln_pyro_stacks_request,   &kiln_pyro_span_request,
    &kiln_pyro_profile_request, &kiln_pyro_timeline_request, &kiln_pyro_heatmap_request,
    &kiln_pyro_diff_request,    &kiln_pyro_analyze_request,  &kiln_pyro_set_request,
    &kiln_pyro_upload_request,  &kiln_pyro_adhoc_request,    &kiln_pyro_adhoc_diff_request,
};
static const struct kiln_message *const answers[] = {
    &kiln_pyro_types_answer,   &kiln_pyro_series_answer,  &kiln_pyro_stacks_answer,
    &kiln_pyro_profile_answer, &kiln_pyro_heatmap_answer, &kiln_pyro_settings_answer,
};

static int read_request(const struct kiln_message *message, struct kiln_str bytes)
{
    struct kiln_budget budget = {.limit = 16u << 20};
    struct kiln_pyro_request request;
    struct kiln_err err = {0};
    struct kiln_arena arena;
    int r;

    memset(&request, 0, sizeof(request));
    kiln_arena_init(&arena, &budget);
    r = kiln_message_read(message, bytes, &arena, &request, &err);
    FUZZ_CHECK(r == 0 || err.code != 0);
    kiln_arena_done(&arena);
    return r;
}

static void write_answer(const struct kiln_message *message, struct kiln_str bytes)
{
    struct kiln_json r;
    struct kiln_buf json;

    kiln_buf_init(&json, 64u << 20);
    if (kiln_protojson_write(message, bytes, &json) == 0) {
        kiln_json_init(&r, kiln_buf_str(&json), NULL);
        FUZZ_CHECK(kiln_json_skip(&r) == 0 || json.len > 1000);
        kiln_json_done(&r);
    }
    kiln_buf_done(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data + 1, size ? size - 1 : 0};
    const struct kiln_message *message;
    struct kiln_err err = {0};
    struct kiln_buf bytes;
    int r;

    if (size < 2)
        return 0;
    message = requests[data[0] % KILN_ARRAY_LEN(requests)];
    if (data[1] != '{') {
        (void)!read_request(message, text);
        write_answer(answers[data[0] % KILN_ARRAY_LEN(answers)], text);
        return 0;
    }
    kiln_buf_init(&bytes, 16u << 20);
    r = kiln_protojson_read(message, text, &bytes, &err);
    FUZZ_CHECK(r == 0 || err.code != 0);
    if (r == 0) {
        r = read_request(message, kiln_buf_str(&bytes));
        FUZZ_CHECK(r == 0 || r == KILN_E_LIMIT);
    }
    kiln_buf_done(&bytes);
    return 0;
}
