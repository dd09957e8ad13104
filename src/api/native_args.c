/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters: one table of names, one function that knows what each may be.  Whatever is wrong with
 * one is said with its name before it.
 */
#include "api/native_int.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/when.h"
#include "fleet/order.h"

enum {
    NODES_MAX = 1 << 20,
    LIMIT_MAX = 1000000,
    LABELS_MAX = 16,
    FUNCTIONS_MAX = 256,
    IDS_MAX = 1000,
    PATTERN_MAX = 4096,
    TEXT_MAX = 65536,
    BUCKETS_WANTED = 250,
    QUOTED_MAX = 80, /* bytes of a parameter in an error */
};
#define HOUR_NS (3600 * KILN_NS_PER_S)

static const char *const names[] = {
#define X(suffix, name) name,
    KILN_NATIVE_PARAMS(X)
#undef X
};

static int quoted(struct kiln_str s)
{
    return (int)(s.len < QUOTED_MAX ? s.len : QUOTED_MAX);
}

int kiln_native_refuse(struct kiln_native_call *call, const char *param, const char *fmt, ...)
{
    char text[sizeof(call->err.text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return kiln_err_set(&call->err, -EINVAL, param, "%s", text);
}

/* ---- kinds of values ---- */

int kiln_native_time(struct kiln_native_call *call, const char *param, struct kiln_str text,
                     uint64_t *ret_ns)
{
    if (kiln_when_parse(text, call->now_ns, ret_ns) < 0)
        return kiln_native_refuse(call, param, "not a time: \"%.*s\"", quoted(text), text.ptr);
    return 0;
}

/* "15s", or seconds. */
static int parse_span(struct kiln_native_call *call, const char *param, struct kiln_str text,
                      uint64_t *ret_ns)
{
    double seconds;
    uint64_t ns = 0;

    if (kiln_json_parse_double(text, &seconds) == 0) {
        if (seconds > 0 && seconds < 1e9)
            ns = (uint64_t)(seconds * 1e9);
    } else if (kiln_duration_parse(text, &ns) < 0) {
        ns = 0;
    }
    if (ns == 0 || ns > INT64_MAX)
        return kiln_native_refuse(call, param, "not a time span: \"%.*s\" (15s, 1m, 250ms)",
                                  quoted(text), text.ptr);
    *ret_ns = ns;
    return 0;
}

static int parse_count(struct kiln_native_call *call, const char *param, struct kiln_str text,
                       uint32_t min, uint32_t max, uint32_t *ret)
{
    uint64_t n;

    if (kiln_str_parse_u64(text, &n) < 0 || n < min || n > max)
        return kiln_native_refuse(call, param, "not a number from %u to %u: \"%.*s\"", min, max,
                                  quoted(text), text.ptr);
    *ret = (uint32_t)n;
    return 0;
}

static int parse_bytes(struct kiln_native_call *call, const char *param, struct kiln_str text,
                       uint64_t *ret)
{
    if (kiln_str_parse_u64(text, ret) < 0)
        return kiln_native_refuse(call, param, "not a number of bytes: \"%.*s\"", quoted(text),
                                  text.ptr);
    return 0;
}

static int parse_flag(struct kiln_native_call *call, const char *param, struct kiln_str text,
                      bool *ret)
{
    static const char *const words[] = {"0", "1", "false", "true", NULL};
    int r = kiln_native_choose(call, param, text, words);

    if (r < 0)
        return r;
    *ret = r % 2 == 1;
    return 0;
}

int kiln_native_choose(struct kiln_native_call *call, const char *param, struct kiln_str word,
                       const char *const *words)
{
    size_t at = 0;

    for (int i = 0; words[i]; i++)
        if (kiln_str_eq(word, kiln_str_of(words[i])))
            return i;
    for (int i = 0; words[i] && at < sizeof(call->known); i++)
        at += (size_t)snprintf(call->known + at, sizeof(call->known) - at, "%s%s",
                               i ? ", " : "; one of ", words[i]);
    return kiln_native_refuse(call, param, "there is no \"%.*s\"", quoted(word), word.ptr);
}

int kiln_native_id(struct kiln_native_call *call, const char *param, struct kiln_str text,
                   uint8_t *ret_id, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        int value = kiln_hex_digit(text.ptr[i]);

        if (text.ptr[i] == '-')
            continue;
        if (value < 0 || n == 2 * size)
            n = SIZE_MAX;
        if (n == SIZE_MAX)
            break;
        ret_id[n / 2] = (uint8_t)(n % 2 ? ret_id[n / 2] | value : value << 4);
        n++;
    }
    if (n != 2 * size)
        return kiln_native_refuse(call, param, "not %zu hexadecimal digits: \"%.*s\"", 2 * size,
                                  quoted(text), text.ptr);
    return 0;
}

static int add_id(struct kiln_native_call *call, const char *param, struct kiln_str text,
                  struct kiln_native_ids *ids, size_t size)
{
    uint8_t id[16];
    int r = kiln_native_id(call, param, text, id, size);

    if (r < 0)
        return r;
    if (ids->n >= IDS_MAX)
        return kiln_native_refuse(call, param, "more than %d of them", IDS_MAX);
    r = kiln_grow(&call->budget, (void **)&ids->bytes, &ids->cap, ids->n + UINT64_C(1), size,
                  IDS_MAX);
    if (r < 0)
        return kiln_err_set(&call->err, r, param, "%s", kiln_err_text(r));
    memcpy(ids->bytes + ids->n++ * size, id, size);
    return 0;
}

static int keep_text(struct kiln_native_call *call, const char *param, struct kiln_str text,
                     struct kiln_str *ret)
{
    struct kiln_str copy;

    if (text.len > TEXT_MAX)
        return kiln_native_refuse(call, param, "longer than %d bytes", TEXT_MAX);
    if (!kiln_utf8_valid(text))
        return kiln_native_refuse(call, param, "not UTF-8");
    copy = kiln_arena_copy(&call->arena, text);
    if (!copy.ptr)
        return kiln_err_set(&call->err, KILN_E_LIMIT, param, "too many parameters");
    *ret = copy;
    return 0;
}

static int add_text(struct kiln_native_call *call, const char *param, struct kiln_str text,
                    struct kiln_native_texts *texts, uint32_t max)
{
    struct kiln_str copy;
    int r;

    if (text.len == 0)
        return kiln_native_refuse(call, param, "must not be empty");
    if (texts->n >= max)
        return kiln_native_refuse(call, param, "more than %u of them", max);
    r = keep_text(call, param, text, &copy);
    if (r < 0)
        return r;
    r = kiln_grow(&call->budget, (void **)&texts->items, &texts->cap, texts->n + UINT64_C(1),
                  sizeof(*texts->items), max);
    if (r < 0)
        return kiln_err_set(&call->err, r, param, "%s", kiln_err_text(r));
    texts->items[texts->n++] = copy;
    return 0;
}

static int parse_pattern(struct kiln_native_call *call, const char *param, struct kiln_str text,
                         struct kiln_regex **ret)
{
    int r;

    if (text.len > PATTERN_MAX)
        return kiln_native_refuse(call, param, "longer than %d bytes", PATTERN_MAX);
    r = kiln_regex_new(text, KILN_REGEX_GIVES_UP, ret, &call->err);
    call->param = r < 0 ? param : NULL;
    return r;
}

/* ---- the parameters ---- */

static int read_order(struct kiln_native_call *call, struct kiln_str value)
{
    static const char *const words[] = {"newest", "largest", NULL};
    int r = kiln_native_choose(call, "order", value, words);

    if (r >= 0)
        call->args.order = r == 0 ? KILN_FOUND_NEWEST : KILN_FOUND_LARGEST;
    return r < 0 ? r : 0;
}

static int read_timeout(struct kiln_native_call *call, struct kiln_str value)
{
    uint64_t ns;
    int r = parse_span(call, "timeout", value, &ns);

    if (r == 0)
        call->args.timeout_ms = ns < KILN_NS_PER_MS ? 1 : ns / KILN_NS_PER_MS;
    return r;
}

/* Texts that are taken as they are; NULL for parameters of another kind. */
static struct kiln_str *text_of(struct kiln_native_args *args, int param)
{
    switch (param) {
    case KILN_NATIVE_QUERY:
        return &args->query;
    case KILN_NATIVE_FORMAT:
        return &args->format;
    case KILN_NATIVE_SERVICE:
        return &args->service;
    case KILN_NATIVE_NAME:
        return &args->name;
    case KILN_NATIVE_TYPE:
        return &args->type;
    case KILN_NATIVE_FILE:
        return &args->file;
    case KILN_NATIVE_SHA256:
        return &args->sha256;
    case KILN_NATIVE_LABEL:
        return &args->label;
    case KILN_NATIVE_SORT:
        return &args->sort;
    case KILN_NATIVE_MATCH:
        return &args->match;
    case KILN_NATIVE_NORMALIZE:
        return &args->normalize;
    case KILN_NATIVE_LEFT_QUERY:
        return &args->left.query;
    case KILN_NATIVE_LEFT_VERSION:
        return &args->left.version;
    case KILN_NATIVE_LEFT_DEPLOYMENT:
        return &args->left.deployment;
    case KILN_NATIVE_RIGHT_QUERY:
        return &args->right.query;
    case KILN_NATIVE_RIGHT_VERSION:
        return &args->right.version;
    case KILN_NATIVE_RIGHT_DEPLOYMENT:
        return &args->right.deployment;
    default:
        return NULL;
    }
}

static uint64_t *time_of(struct kiln_native_args *args, int param)
{
    switch (param) {
    case KILN_NATIVE_FROM:
        return &args->from_ns;
    case KILN_NATIVE_UNTIL:
        return &args->until_ns;
    case KILN_NATIVE_LEFT_FROM:
        return &args->left.from_ns;
    case KILN_NATIVE_LEFT_UNTIL:
        return &args->left.until_ns;
    case KILN_NATIVE_RIGHT_FROM:
        return &args->right.from_ns;
    case KILN_NATIVE_RIGHT_UNTIL:
        return &args->right.until_ns;
    default:
        return NULL;
    }
}

static int read_one(struct kiln_native_call *call, int param, struct kiln_str value)
{
    struct kiln_native_args *args = &call->args;
    const char *name = names[param];

    if (text_of(args, param))
        return keep_text(call, name, value, text_of(args, param));
    if (time_of(args, param))
        return kiln_native_time(call, name, value, time_of(args, param));
    switch (param) {
    case KILN_NATIVE_NODES:
        return parse_count(call, name, value, 1, NODES_MAX, &args->nodes);
    case KILN_NATIVE_LIMIT:
        return parse_count(call, name, value, 0, LIMIT_MAX, &args->limit);
    case KILN_NATIVE_POINTS:
        return parse_count(call, name, value, 0, LIMIT_MAX, &args->points);
    case KILN_NATIVE_STEP:
        return parse_span(call, name, value, &args->step_ns);
    case KILN_NATIVE_HZ:
        return parse_count(call, name, value, 1, KILN_ORDER_HZ_MAX, &args->hz);
    case KILN_NATIVE_DURATION:
        return parse_span(call, name, value, &args->duration_ns);
    case KILN_NATIVE_TIMEOUT:
        return read_timeout(call, value);
    case KILN_NATIVE_BY:
        return add_text(call, name, value, &args->by, LABELS_MAX);
    case KILN_NATIVE_FUNCTION:
        return add_text(call, name, value, &args->functions, FUNCTIONS_MAX);
    case KILN_NATIVE_WITH:
        return parse_pattern(call, name, value, &call->with);
    case KILN_NATIVE_WITHOUT:
        return parse_pattern(call, name, value, &call->without);
    case KILN_NATIVE_TRACE_ID:
        return add_id(call, name, value, &args->trace_ids, 16);
    case KILN_NATIVE_SPAN_ID:
        return add_id(call, name, value, &args->span_ids, 8);
    case KILN_NATIVE_PROFILE_ID:
        return add_id(call, name, value, &args->profile_ids, 16);
    case KILN_NATIVE_EXACT:
        return parse_flag(call, name, value, &args->exact);
    case KILN_NATIVE_MISSING:
        return parse_flag(call, name, value, &args->missing);
    case KILN_NATIVE_OFFSET:
        return parse_bytes(call, name, value, &args->offset);
    case KILN_NATIVE_TOTAL:
        return parse_bytes(call, name, value, &args->total);
    default:
        return read_order(call, value);
    }
}

static int refuse_unknown(struct kiln_native_call *call, uint64_t known, struct kiln_str name)
{
    char where[QUOTED_MAX + 1];
    size_t at = 0;

    snprintf(where, sizeof(where), "%.*s", quoted(name), name.ptr);
    for (int i = 0; i < KILN_NATIVE_PARAMS_N && at < sizeof(call->known); i++)
        if (known & UINT64_C(1) << i)
            at += (size_t)snprintf(call->known + at, sizeof(call->known) - at, "%s%s",
                                   at ? ", " : "; known are ", names[i]);
    return kiln_err_set(&call->err, KILN_E_UNKNOWN, where, "no such parameter%s",
                        known ? "" : " (this takes none)");
}

/* May be said more than once. */
static bool is_list(int param)
{
    return param == KILN_NATIVE_BY || param == KILN_NATIVE_FUNCTION ||
           param == KILN_NATIVE_TRACE_ID || param == KILN_NATIVE_SPAN_ID ||
           param == KILN_NATIVE_PROFILE_ID;
}

static int read_named(struct kiln_native_call *call, uint64_t known, struct kiln_str name,
                      struct kiln_str value)
{
    uint64_t bit;
    int i = 0;

    while (i < KILN_NATIVE_PARAMS_N && !kiln_str_eq(name, kiln_str_of(names[i])))
        i++;
    bit = UINT64_C(1) << i;
    if (i == KILN_NATIVE_PARAMS_N || !(known & bit))
        return refuse_unknown(call, known, name);
    if (call->args.said & bit && !is_list(i))
        return kiln_native_refuse(call, names[i], "said more than once");
    call->args.said |= bit;
    return read_one(call, i, value);
}

/* The hour before `until`, unless something else was said. */
static int end_range(struct kiln_native_call *call)
{
    struct kiln_native_args *args = &call->args;

    if (!(args->said & KILN_NATIVE_BIT(UNTIL)))
        args->until_ns = call->now_ns;
    if (!(args->said & KILN_NATIVE_BIT(FROM)))
        args->from_ns = args->until_ns > HOUR_NS ? args->until_ns - HOUR_NS : 0;
    if (args->from_ns >= args->until_ns)
        return kiln_native_refuse(call, "from", "must be before until");
    return 0;
}

int kiln_native_args_read(struct kiln_native_call *call, uint64_t known)
{
    struct kiln_native_args *args = &call->args;
    struct kiln_params params;
    int r;

    args->nodes = KILN_NATIVE_NODES_DEFAULT;
    args->limit = KILN_NATIVE_ROWS_DEFAULT;
    kiln_params_init(&params, call->request->query);
    while ((r = kiln_params_next(&params)) > 0) {
        r = read_named(call, known, params.name, params.value);
        if (r < 0)
            break;
    }
    kiln_params_done(&params);
    if (r < 0 && call->err.code == 0)
        return r == -ENOMEM ? r
                            : kiln_err_set(&call->err, -EINVAL, NULL,
                                           "the query of the address is not well-formed");
    return r < 0 ? r : end_range(call);
}

void kiln_native_args_done(struct kiln_native_call *call)
{
    struct kiln_native_args *args = &call->args;
    struct kiln_budget *budget = &call->budget;

    kiln_array_free(budget, (void **)&args->by.items, &args->by.cap, sizeof(struct kiln_str));
    kiln_array_free(budget, (void **)&args->functions.items, &args->functions.cap,
                    sizeof(struct kiln_str));
    kiln_array_free(budget, (void **)&args->trace_ids.bytes, &args->trace_ids.cap, 16);
    kiln_array_free(budget, (void **)&args->span_ids.bytes, &args->span_ids.cap, 8);
    kiln_array_free(budget, (void **)&args->profile_ids.bytes, &args->profile_ids.cap, 16);
    kiln_regex_free(call->with);
    kiln_regex_free(call->without);
}

/* The first that gives few enough buckets. */
uint64_t kiln_native_step(const struct kiln_native_args *args)
{
    static const uint32_t seconds[] = {1,   2,   5,    10,   15,   30,    60,    120,
                                       300, 600, 1800, 3600, 7200, 21600, 43200, 86400};
    uint64_t range = args->until_ns - args->from_ns;

    if (args->step_ns)
        return args->step_ns;
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(seconds); i++)
        if (range / (seconds[i] * KILN_NS_PER_S) < BUCKETS_WANTED)
            return seconds[i] * KILN_NS_PER_S;
    return (range / BUCKETS_WANTED / (86400 * KILN_NS_PER_S) + 1) * 86400 * KILN_NS_PER_S;
}

uint32_t kiln_native_most(const struct kiln_native_call *call, uint32_t by_default)
{
    if (!(call->args.said & KILN_NATIVE_BIT(LIMIT)))
        return by_default;
    return call->args.limit ? call->args.limit : UINT32_MAX;
}

/* Upper and lower case of ASCII letters are the same. */
bool kiln_native_matches(const struct kiln_native_call *call, struct kiln_str text)
{
    struct kiln_str match = call->args.match;

    if (match.len == 0)
        return true;
    for (size_t at = 0; at + match.len <= text.len; at++)
        if (strncasecmp(text.ptr + at, match.ptr, match.len) == 0)
            return true;
    return false;
}
