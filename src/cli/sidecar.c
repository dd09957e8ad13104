/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sidecar.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compress.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/when.h"
#include "codec/codec.h"

#define SIDECAR_BYTES_MAX (1u << 20)
#define PATH_BYTES_MAX    4096u

/* What a profile's name may end with; what is before it is the name of its metadata. */
static const char *const endings[] = {
    ".pb.gz", ".pb.zst", ".pb",  ".pprof.gz", ".pprof", ".prof", ".otlp.gz",         ".otlp.zst",
    ".otlp",  ".jfr.gz", ".jfr", ".folded",   ".perf",  ".gz",   ".speedscope.json",
};

void kiln_sidecar_init(struct kiln_sidecar *sidecar)
{
    *sidecar = (struct kiln_sidecar){.budget = {.limit = 2 * SIDECAR_BYTES_MAX}};
    kiln_arena_init(&sidecar->arena, &sidecar->budget);
}

void kiln_sidecar_done(struct kiln_sidecar *sidecar)
{
    kiln_arena_done(&sidecar->arena);
}

/* ---- labels ---- */

static int keep(struct kiln_sidecar *sidecar, struct kiln_str text, struct kiln_str *ret)
{
    struct kiln_str copy = kiln_arena_copy(&sidecar->arena, text);

    if (!copy.ptr)
        return -ENOMEM;
    *ret = copy;
    return 0;
}

int kiln_sidecar_label(struct kiln_sidecar *sidecar, struct kiln_str key, struct kiln_str value)
{
    struct kiln_label label;
    uint32_t i = 0;
    int r;

    if (kiln_str_eq(key, KILN_STR("service.name")) || kiln_str_eq(key, KILN_STR("service_name")))
        return keep(sidecar, value, &sidecar->service);
    while (i < sidecar->n_labels && !kiln_str_eq(sidecar->labels[i].key, key))
        i++;
    if (i == KILN_SIDECAR_LABELS_MAX)
        return KILN_E_LIMIT;
    r = keep(sidecar, key, &label.key);
    if (r == 0)
        r = keep(sidecar, value, &label.value);
    if (r < 0)
        return r;
    sidecar->labels[i] = label;
    sidecar->n_labels += i == sidecar->n_labels;
    return 0;
}

/* ---- JSON ---- */

/* The text of a string, a number or a boolean in *ret; 1, or 0 for anything else, passed over. */
static int scalar(struct kiln_json *r, struct kiln_str *ret)
{
    bool flag;
    int n;

    switch (kiln_json_peek(r)) {
    case KILN_JSON_STRING:
        n = kiln_json_string(r, ret);
        return n < 0 ? n : 1;
    case KILN_JSON_NUMBER:
        n = kiln_json_number(r, ret);
        return n < 0 ? n : 1;
    case KILN_JSON_BOOL:
        n = kiln_json_bool(r, &flag);
        *ret = n == 0 && flag ? KILN_STR("true") : KILN_STR("false");
        return n < 0 ? n : 1;
    default:
        return kiln_json_skip(r);
    }
}

/* Reads a value as the label `key`, which is borrowed from the reader: copied before the value. */
static int read_label(struct kiln_sidecar *sidecar, struct kiln_json *r, struct kiln_str key)
{
    struct kiln_str name, value;
    int n = keep(sidecar, key, &name);

    if (n == 0)
        n = scalar(r, &value);
    if (n > 0)
        n = kiln_sidecar_label(sidecar, name, value);
    if (n == KILN_E_LIMIT)
        return kiln_json_fail(r, n, "more than %d labels", KILN_SIDECAR_LABELS_MAX);
    return n;
}

static int read_labels(struct kiln_sidecar *sidecar, struct kiln_json *r)
{
    struct kiln_str name;
    int n;

    if (kiln_json_peek(r) != KILN_JSON_OBJECT)
        return kiln_json_skip(r);
    n = kiln_json_object(r);
    while (n == 0 && (n = kiln_json_member(r, &name)) > 0)
        n = read_label(sidecar, r, name);
    return n;
}

static int read_time(struct kiln_json *r, uint64_t *ret_ns)
{
    struct kiln_str text;
    int n = scalar(r, &text);

    if (n <= 0)
        return n;
    if (kiln_when_parse(text, kiln_clock_unix_ns(), ret_ns) == 0)
        return 0;
    return kiln_json_fail(r, KILN_E_MALFORMED,
                          "this is no time (say \"2026-03-01T12:00:00Z\", or Unix time)");
}

/* "10s", or a number of units of `unit_ns`. */
static int read_duration(struct kiln_json *r, uint64_t unit_ns, uint64_t *ret_ns)
{
    struct kiln_str text;
    double number;
    int n = scalar(r, &text);

    if (n <= 0)
        return n;
    if (kiln_json_parse_double(text, &number) == 0) {
        if (number >= 0 && number * (double)unit_ns < 1e18) {
            *ret_ns = (uint64_t)(number * (double)unit_ns);
            return 0;
        }
    } else if (kiln_duration_parse(text, ret_ns) == 0) {
        return 0;
    }
    return kiln_json_fail(r, KILN_E_MALFORMED, "this is no duration (say \"10s\", or seconds)");
}

static int read_text(struct kiln_sidecar *sidecar, struct kiln_json *r, struct kiln_str *ret)
{
    struct kiln_str text;
    int n = scalar(r, &text);

    return n > 0 ? keep(sidecar, text, ret) : n;
}

enum member { SERVICE, LABELS, START, END, SECONDS, MILLISECONDS, NANOSECONDS, TYPE, LABEL };

static const struct {
    const char *name;
    enum member member;
    const char *label; /* of LABEL: what it is called as an attribute */
} members[] = {
    {"service", SERVICE, NULL},
    {"service_name", SERVICE, NULL},
    {"service.name", SERVICE, NULL},
    {"labels", LABELS, NULL},
    {"attributes", LABELS, NULL},
    {"tags", LABELS, NULL},
    {"time", START, NULL},
    {"timestamp", START, NULL},
    {"start", START, NULL},
    {"window_start", START, NULL},
    {"end", END, NULL},
    {"window_end", END, NULL},
    {"duration", SECONDS, NULL},
    {"duration_ms", MILLISECONDS, NULL},
    {"duration_ns", NANOSECONDS, NULL},
    {"type", TYPE, NULL},
    {"version", LABEL, "service.version"},
    {"env", LABEL, "deployment.environment"},
    {"environment", LABEL, "deployment.environment"},
    {"commit", LABEL, "git.commit"},
};

static int read_member(struct kiln_sidecar *sidecar, struct kiln_json *r, struct kiln_str name)
{
    enum member member = LABEL;

    for (size_t i = 0; i < KILN_ARRAY_LEN(members); i++)
        if (kiln_str_eq(name, kiln_str_of(members[i].name))) {
            member = members[i].member;
            name = members[i].label ? kiln_str_of(members[i].label) : name;
        }
    switch (member) {
    case SERVICE:
        return read_text(sidecar, r, &sidecar->service);
    case LABELS:
        return read_labels(sidecar, r);
    case START:
        return read_time(r, &sidecar->time_ns);
    case END:
        return read_time(r, &sidecar->end_ns);
    case SECONDS:
        return read_duration(r, KILN_NS_PER_S, &sidecar->duration_ns);
    case MILLISECONDS:
        return read_duration(r, KILN_NS_PER_MS, &sidecar->duration_ns);
    case NANOSECONDS:
        return read_duration(r, 1, &sidecar->duration_ns);
    case TYPE:
        return read_text(sidecar, r, &sidecar->type);
    case LABEL:
        break;
    }
    return read_label(sidecar, r, name);
}

static int parse(struct kiln_sidecar *sidecar, struct kiln_str json, struct kiln_err *err)
{
    struct kiln_str name;
    struct kiln_json r;
    int n;

    kiln_json_init(&r, json, err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0)
        n = read_member(sidecar, &r, name);
    if (n == 0 && kiln_json_more(&r) > 0)
        n = kiln_json_fail(&r, KILN_E_MALFORMED, "metadata is one JSON object");
    kiln_json_done(&r);
    if (n < 0)
        return kiln_err_set(err, n, NULL, "%s", kiln_err_text(n));
    if (!sidecar->duration_ns && sidecar->time_ns && sidecar->end_ns > sidecar->time_ns)
        sidecar->duration_ns = sidecar->end_ns - sidecar->time_ns;
    return 0;
}

/* ---- files ---- */

/* `stem` and an ending make a path in `ret`; true if there is such a file. */
static bool exists(struct kiln_str stem, const char *ending, char ret[PATH_BYTES_MAX])
{
    size_t len = strlen(ending);

    if (stem.len + len >= PATH_BYTES_MAX)
        return false;
    memcpy(ret, stem.ptr, stem.len);
    memcpy(ret + stem.len, ending, len + 1);
    return access(ret, F_OK) == 0;
}

/* A profile whose name would do for metadata, as c.json beside c.otlp; or nothing to be read. */
static bool is_profile(const char *path)
{
    struct kiln_buf text;
    enum kiln_format format;
    bool is;

    kiln_buf_init(&text, SIDECAR_BYTES_MAX);
    is = kiln_file_read(path, &text, NULL) < 0 ||
         kiln_compression_of(kiln_buf_str(&text)) != KILN_PLAIN;
    format = kiln_format_detect(kiln_buf_str(&text));
    kiln_buf_done(&text);
    return is || format == KILN_FORMAT_OTLP_JSON || format == KILN_FORMAT_SPEEDSCOPE;
}

static bool find(const char *path, char ret[PATH_BYTES_MAX])
{
    struct kiln_str whole = kiln_str_of(path);

    if (exists(whole, ".json", ret) && !is_profile(ret))
        return true;
    for (size_t i = 0; i < KILN_ARRAY_LEN(endings); i++)
        if (kiln_str_ends(whole, kiln_str_of(endings[i]))) {
            struct kiln_str stem = {whole.ptr, whole.len - strlen(endings[i])};

            return exists(stem, ".json", ret) && !is_profile(ret);
        }
    return false;
}

bool kiln_sidecar_is(const char *path)
{
    struct kiln_str stem = kiln_str_of(path);
    char other[PATH_BYTES_MAX];

    if (!kiln_str_ends(stem, KILN_STR(".json")) || is_profile(path))
        return false;
    stem.len -= strlen(".json");
    if (exists(stem, "", other))
        return true;
    for (size_t i = 0; i < KILN_ARRAY_LEN(endings); i++)
        if (exists(stem, endings[i], other))
            return true;
    return false;
}

int kiln_sidecar_read(struct kiln_sidecar *sidecar, const char *path, struct kiln_err *err)
{
    char beside[PATH_BYTES_MAX];
    struct kiln_buf text;
    int r;

    if (!find(path, beside))
        return 0;
    kiln_buf_init(&text, SIDECAR_BYTES_MAX);
    r = kiln_file_read(beside, &text, err);
    if (r == 0)
        r = parse(sidecar, kiln_buf_str(&text), err);
    kiln_buf_done(&text);
    return r < 0 ? kiln_err_in_file(err, r, beside) : 1;
}
