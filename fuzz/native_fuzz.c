/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request to our own API: the query of its address up to the first line break, then its body.
 * There is no store behind it: parameters, bodies and errors are what is looked at.
 */
#include "api/native_body.h"
#include "fuzz.h"

static int read_member(struct kiln_native_body *body, struct kiln_str name, void *context)
{
    struct kiln_str text;
    uint64_t ns;

    (void)context;
    if (kiln_str_eq(name, KILN_STR("t")))
        return kiln_native_body_time(body, "t", &ns);
    if (kiln_str_eq(name, KILN_STR("s")))
        return kiln_native_body_text(body, 100, &text);
    if (kiln_str_eq(name, KILN_STR("x")))
        return kiln_json_skip(&body->json);
    return kiln_native_body_unknown(body, name, "t, s, x");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str rest = {(const char *)data, size};
    struct kiln_request request = {0};
    struct kiln_native_call call = {.request = &request, .now_ns = UINT64_C(1772366400000000000)};

    request.query = kiln_str_cut(&rest, '\n');
    request.body = rest;
    call.budget.limit = 1 << 20;
    kiln_arena_init(&call.arena, &call.budget);
    if (kiln_native_args_read(&call, UINT64_MAX) == 0)
        FUZZ_CHECK(call.args.from_ns < call.args.until_ns);
    call.err = (struct kiln_err){0};
    if (kiln_native_body_read(&call, read_member, NULL) < 0)
        FUZZ_CHECK(call.err.text[0] != '\0'); /* every refusal has a sentence */
    kiln_native_args_done(&call);
    kiln_arena_done(&call.arena);
    return 0;
}
