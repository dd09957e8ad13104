/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thin coat over PCRE2: its allocations go through base/mem.h, matches are limited, and the JIT
 * is used where the machine has one (where not, the interpreter gives the same answers).
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>

#include "base/mem.h"
#include "base/regex.h"

#define MATCH_STEPS_MAX  1000000u
#define MATCH_DEPTH_MAX  100000u
#define MATCH_MEMORY_KIB 16384u
#define PATTERN_LEN_MAX  65536u

struct kiln_regex {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_match_data *match;
    pcre2_code *code;
};

static void *allocate(size_t size, __attribute__((unused)) void *data)
{
    return kiln_malloc(size);
}

static void release(void *ptr, __attribute__((unused)) void *data)
{
    kiln_free(ptr);
}

void kiln_regex_free(struct kiln_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    pcre2_match_data_free(regex->match);
    pcre2_match_context_free(regex->limits);
    pcre2_general_context_free(regex->memory);
    kiln_free(regex);
}

static int compile(struct kiln_regex *regex, struct kiln_str pattern, unsigned flags,
                   struct kiln_err *err)
{
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    pcre2_compile_context *context = pcre2_compile_context_create(regex->memory);
    char reason[128];
    size_t at = 0;
    int code = 0;

    if (!context)
        return -ENOMEM;
    if (flags & KILN_REGEX_WHOLE)
        options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
    pcre2_set_max_pattern_length(context, PATTERN_LEN_MAX);
    regex->code = pcre2_compile((PCRE2_SPTR)(pattern.ptr ? pattern.ptr : ""), pattern.len, options,
                                &code, &at, context);
    pcre2_compile_context_free(context);
    if (regex->code)
        return 0;
    if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED)
        return -ENOMEM;
    pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof(reason));
    return kiln_err_set(err, KILN_E_PATTERN, NULL, "bad pattern \"%.*s\" at offset %zu: %s",
                        (int)(pattern.len < 80 ? pattern.len : 80), pattern.ptr, at, reason);
}

static int prepare_match(struct kiln_regex *regex)
{
    regex->limits = pcre2_match_context_create(regex->memory);
    regex->match = pcre2_match_data_create(1, regex->memory);
    if (!regex->limits || !regex->match)
        return -ENOMEM;
    pcre2_set_match_limit(regex->limits, MATCH_STEPS_MAX);
    pcre2_set_depth_limit(regex->limits, MATCH_DEPTH_MAX);
    pcre2_set_heap_limit(regex->limits, MATCH_MEMORY_KIB);
    /* Where there is no JIT, or it may not map executable pages, matching interprets. */
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    return 0;
}

int kiln_regex_new(struct kiln_str pattern, unsigned flags, struct kiln_regex **ret_regex,
                   struct kiln_err *err)
{
    struct kiln_regex *regex = kiln_calloc(1, sizeof(*regex));
    int r = -ENOMEM;

    if (regex)
        regex->memory = pcre2_general_context_create(allocate, release, NULL);
    if (regex && regex->memory)
        r = compile(regex, pattern, flags, err);
    if (r == 0)
        r = prepare_match(regex);
    if (r < 0) {
        kiln_regex_free(regex);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_regex = regex;
    return 0;
}

int kiln_regex_matches(struct kiln_regex *regex, struct kiln_str text)
{
    int r = pcre2_match(regex->code, (PCRE2_SPTR)(text.ptr ? text.ptr : ""), text.len, 0, 0,
                        regex->match, regex->limits);

    if (r >= 0)
        return 1;
    if (r == PCRE2_ERROR_NOMATCH)
        return 0;
    return r == PCRE2_ERROR_NOMEMORY ? -ENOMEM : KILN_E_LIMIT;
}
