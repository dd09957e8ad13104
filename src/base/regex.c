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
#define JIT_CODE_MAX     16384u /* larger ones, of strangers, would take a megabyte each */

struct kiln_regex {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_match_data *match;
    pcre2_code *code;
    bool gives_up, gave_up;
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
    if (flags & KILN_REGEX_RE2)
        options |= PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY;
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
    size_t size = 0;

    pcre2_pattern_info(regex->code, PCRE2_INFO_SIZE, &size);
    regex->limits = pcre2_match_context_create(regex->memory);
    regex->match = pcre2_match_data_create_from_pattern(regex->code, regex->memory);
    if (!regex->limits || !regex->match)
        return -ENOMEM;
    pcre2_set_match_limit(regex->limits, MATCH_STEPS_MAX);
    pcre2_set_depth_limit(regex->limits, MATCH_DEPTH_MAX);
    pcre2_set_heap_limit(regex->limits, MATCH_MEMORY_KIB);
    /* Where there is no JIT, or it may not map executable pages, matching interprets. */
    if (!regex->gives_up || size <= JIT_CODE_MAX)
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
    if (regex)
        regex->gives_up = flags & KILN_REGEX_GIVES_UP;
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

/* Searches from offset `at` on. */
static int search(struct kiln_regex *regex, struct kiln_str text, size_t at)
{
    int r = pcre2_match(regex->code, (PCRE2_SPTR)(text.ptr ? text.ptr : ""), text.len, at, 0,
                        regex->match, regex->limits);

    if (r >= 0)
        return 1;
    if (r == PCRE2_ERROR_NOMATCH)
        return 0;
    return r == PCRE2_ERROR_NOMEMORY ? -ENOMEM : KILN_E_LIMIT;
}

int kiln_regex_matches(struct kiln_regex *regex, struct kiln_str text)
{
    int r;

    if (regex->gave_up)
        return KILN_E_LIMIT;
    r = search(regex, text, 0);
    regex->gave_up = regex->gives_up && r == KILN_E_LIMIT;
    return r;
}

bool kiln_regex_gave_up(const struct kiln_regex *regex)
{
    return regex->gave_up;
}

/* The table of names: two bytes of the number of a group, and its name, ended by a zero. */
int kiln_regex_named(const struct kiln_regex *regex, uint32_t i, struct kiln_str text,
                     struct kiln_str *ret_name, struct kiln_str *ret_text)
{
    const size_t *ends = pcre2_get_ovector_pointer(regex->match);
    uint32_t n = 0, size = 0, group;
    PCRE2_SPTR table = NULL;

    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &n);
    if (i >= n)
        return 0;
    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &table);
    table += (size_t)i * size;
    group = (uint32_t)table[0] << 8 | table[1];
    *ret_name = kiln_str_of((const char *)table + 2);
    *ret_text = KILN_STR_NONE;
    if (ends[2 * group] != PCRE2_UNSET)
        *ret_text =
            (struct kiln_str){text.ptr + ends[2 * group], ends[2 * group + 1] - ends[2 * group]};
    return 1;
}

/* ---- replacing ---- */

/* The group that "{name}" at the start of a text is, and how long that is; -2: none. */
static int named_group(const struct kiln_regex *regex, struct kiln_str text, size_t *ret_len)
{
    const char *end = memchr(text.ptr, '}', text.len);
    char name[33]; /* PCRE2's names have 32 at most */
    size_t n = end ? (size_t)(end - text.ptr) - 1 : 0;
    int group;

    if (n == 0 || n >= sizeof(name))
        return -2;
    memcpy(name, text.ptr + 1, n);
    name[n] = '\0';
    group = pcre2_substring_number_from_name(regex->code, (PCRE2_SPTR)name);
    *ret_len = n + 2;
    return group > 0 ? group : -2;
}

/*
 * Takes the next piece off a replacement: a run of text, or a group, whose number goes to
 * *ret_group (else -1).  Returns false at the end, and with *ret_group -2 at a $ that means
 * nothing.
 */
static bool next_piece(const struct kiln_regex *regex, struct kiln_str *with,
                       struct kiln_str *ret_text, int *ret_group)
{
    size_t i = 0;
    bool braces;

    *ret_group = -1;
    if (with->len == 0)
        return false;
    while (i < with->len && with->ptr[i] != '$')
        i++;
    if (i == 0 && with->len > 1 && with->ptr[1] == '$')
        i = 2;
    if (i > 0) {
        *ret_text = (struct kiln_str){with->ptr, with->ptr[0] == '$' ? 1 : i};
        *with = (struct kiln_str){with->ptr + i, with->len - i};
        return true;
    }
    braces = with->len > 1 && with->ptr[1] == '{';
    i = braces ? 2 : 1;
    *ret_group = -2;
    for (int digits = 0; digits < 2 && i < with->len && with->ptr[i] >= '0' && with->ptr[i] <= '9';
         digits++, i++)
        *ret_group = (*ret_group < 0 ? 0 : *ret_group) * 10 + (with->ptr[i] - '0');
    if (braces && (i == with->len || with->ptr[i++] != '}')) {
        size_t len = 0;

        *ret_group = named_group(regex, (struct kiln_str){with->ptr + 1, with->len - 1}, &len);
        i = 1 + len;
    }
    *with = (struct kiln_str){with->ptr + i, with->len - i};
    return *ret_group >= 0;
}

int kiln_regex_check_replacement(const struct kiln_regex *regex, struct kiln_str with,
                                 struct kiln_err *err)
{
    struct kiln_str rest = with, text;
    uint32_t groups = 0;
    int group;

    pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    while (next_piece(regex, &rest, &text, &group)) {
        if (group > (int)groups)
            return kiln_err_set(err, KILN_E_PATTERN, NULL,
                                "the replacement asks for group %d of %u", group, groups);
    }
    if (group == -2)
        return kiln_err_set(err, KILN_E_PATTERN, NULL,
                            "a $ in the replacement is followed by neither a number, a {name} of a "
                            "group, nor a $");
    return 0;
}

/* Appends the replacement for the match that was just found. */
static void expand(struct kiln_regex *regex, struct kiln_str subject, struct kiln_str with,
                   struct kiln_buf *out)
{
    const size_t *ends = pcre2_get_ovector_pointer(regex->match);
    uint32_t n = pcre2_get_ovector_count(regex->match);
    struct kiln_str text;
    int group;

    while (next_piece(regex, &with, &text, &group)) {
        if (group < 0)
            kiln_buf_add_str(out, text);
        else if ((uint32_t)group < n && ends[2 * group] != PCRE2_UNSET)
            kiln_buf_add(out, subject.ptr + ends[2 * group], ends[2 * group + 1] - ends[2 * group]);
    }
}

/* How long the character at the start of a text is; any byte that makes no sense is one. */
static size_t char_len(struct kiln_str text)
{
    size_t n = 1;

    while (n < text.len && ((unsigned char)text.ptr[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* What is written in the place of a match: by a function, or else by `with`. */
struct instead {
    struct kiln_str with;
    int (*put)(const void *context, struct kiln_str match, struct kiln_buf *out);
    const void *context;
};

static int put_instead(struct kiln_regex *regex, struct kiln_str text,
                       const struct instead *instead, struct kiln_buf *out)
{
    const size_t *ends = pcre2_get_ovector_pointer(regex->match);
    struct kiln_str match = {text.ptr + ends[0], ends[1] - ends[0]};

    if (instead->put)
        return instead->put(instead->context, match, out);
    expand(regex, text, instead->with, out);
    return 0;
}

static int replace(struct kiln_regex *regex, struct kiln_str text, const struct instead *instead,
                   struct kiln_buf *out)
{
    const size_t *ends = pcre2_get_ovector_pointer(regex->match);
    size_t at = 0;
    int count = 0, r = 0;

    while (at <= text.len && (r = search(regex, text, at)) > 0 && !out->error) {
        if (ends[0] < at || ends[1] < ends[0]) /* \K can do this; there is no sense in it */
            return KILN_E_LIMIT;
        kiln_buf_add(out, text.ptr + at, ends[0] - at);
        r = put_instead(regex, text, instead, out);
        if (r < 0)
            return r;
        count++;
        at = ends[1];
        if (ends[0] == ends[1]) { /* an empty match: past the next character, or for ever */
            size_t step =
                at < text.len ? char_len((struct kiln_str){text.ptr + at, text.len - at}) : 1;

            if (at < text.len)
                kiln_buf_add(out, text.ptr + at, step);
            at += step;
        }
    }
    if (at < text.len)
        kiln_buf_add(out, text.ptr + at, text.len - at);
    if (r < 0)
        return r;
    return out->error ? out->error : count;
}

int kiln_regex_replace(struct kiln_regex *regex, struct kiln_str text, struct kiln_str with,
                       struct kiln_buf *out)
{
    return replace(regex, text, &(struct instead){.with = with}, out);
}

int kiln_regex_replace_by(struct kiln_regex *regex, struct kiln_str text,
                          int (*put)(const void *context, struct kiln_str match,
                                     struct kiln_buf *out),
                          const void *context, struct kiln_buf *out)
{
    return replace(regex, text, &(struct instead){.put = put, .context = context}, out);
}
