/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers are read by tables of members: a name, what kind of value it has, and where it goes.  The
 * same name may stand for a text here and for a number there; the first row of the table that the
 * value fits counts.  Members that are not in the table are passed over.
 */
#include <errno.h>
#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/when.h"
#include "cli/query.h"

#define MEMORY_BYTES ((size_t)1 << 30)
#define ITEMS_MAX    (64u << 20)

enum kind { TEXT, NUMBER, FLAG, TIME, LABELS, COUNT, OBJECT, OBJECTS, NUMBERS, TEXTS };

struct member {
    const char *name;
    enum kind kind;
    size_t offset;
    const struct member *members; /* of OBJECT, and of each of OBJECTS; ends without a name */
    size_t size;                  /* of one of OBJECTS */
};

struct reading {
    struct kiln_json json;
    struct kiln_said *said;
};

static int read_object(struct reading *r, const struct member *members, void *to);

static enum kiln_json_kind json_kind(enum kind kind)
{
    switch (kind) {
    case TEXT:
    case TIME:
        return KILN_JSON_STRING;
    case NUMBER:
        return KILN_JSON_NUMBER;
    case FLAG:
        return KILN_JSON_BOOL;
    case LABELS:
    case OBJECT:
        return KILN_JSON_OBJECT;
    default:
        return KILN_JSON_ARRAY;
    }
}

static int read_text(struct reading *r, struct kiln_str *to)
{
    struct kiln_str text;
    int n = kiln_json_string(&r->json, &text);

    if (n < 0)
        return n;
    *to = kiln_arena_copy(&r->said->arena, text);
    return to->ptr ? 0 : kiln_json_fail(&r->json, -ENOMEM, "the answer is too large");
}

static int read_time(struct reading *r, uint64_t *to)
{
    struct kiln_str text;
    int n = kiln_json_string(&r->json, &text);

    if (n == 0 && kiln_when_parse(text, 0, to) < 0)
        n = kiln_json_fail(&r->json, KILN_E_MALFORMED, "this is no time");
    return n;
}

/* {"a": "b"} as a="b", for people. */
static int read_labels(struct reading *r, struct kiln_str *to)
{
    struct kiln_str name, value;
    struct kiln_buf text;
    int n = kiln_json_object(&r->json);

    kiln_buf_init(&text, 1 << 20);
    while (n == 0 && (n = kiln_json_member(&r->json, &name)) > 0) {
        kiln_buf_puts(&text, text.len ? ", " : "");
        kiln_buf_add_str(&text, name);
        n = kiln_json_string(&r->json, &value);
        if (n == 0) {
            kiln_buf_puts(&text, "=\"");
            kiln_buf_add_str(&text, value);
            kiln_buf_putc(&text, '"');
        }
    }
    if (n == 0) {
        *to = kiln_arena_copy(&r->said->arena, kiln_buf_str(&text));
        n = to->ptr ? 0 : -ENOMEM;
    }
    kiln_buf_done(&text);
    return n;
}

/* ---- arrays ---- */

/* Room for one more; it is cleared. */
static void *add_item(struct reading *r, struct kiln_said_array *array, size_t size)
{
    char *item;

    if (kiln_grow(&r->said->budget, &array->items, &array->cap, (uint64_t)array->n + 1, size,
                  ITEMS_MAX) < 0) {
        kiln_json_fail(&r->json, KILN_E_LIMIT, "the answer is too large");
        return NULL;
    }
    item = (char *)array->items + (size_t)array->n++ * size;
    memset(item, 0, size);
    return item;
}

static int read_item(struct reading *r, const struct member *m, struct kiln_said_array *array)
{
    size_t size = m->kind == OBJECTS ? m->size
                  : m->kind == TEXTS ? sizeof(struct kiln_str)
                                     : sizeof(double);
    void *item = add_item(r, array, size);

    if (!item)
        return KILN_E_LIMIT;
    if (m->kind == OBJECTS)
        return read_object(r, m->members, item);
    return m->kind == TEXTS ? read_text(r, item) : kiln_json_double(&r->json, item);
}

static int read_array(struct reading *r, const struct member *m, void *to)
{
    uint32_t *count = to;
    int n = kiln_json_array(&r->json);

    while (n == 0 && (n = kiln_json_element(&r->json)) > 0) {
        if (m->kind == COUNT) {
            ++*count;
            n = kiln_json_skip(&r->json);
        } else {
            n = read_item(r, m, to);
        }
    }
    return n;
}

/* ---- objects ---- */

static int read_value(struct reading *r, const struct member *m, void *to)
{
    switch (m->kind) {
    case TEXT:
        return read_text(r, to);
    case NUMBER:
        return kiln_json_double(&r->json, to);
    case FLAG:
        return kiln_json_bool(&r->json, to);
    case TIME:
        return read_time(r, to);
    case LABELS:
        return read_labels(r, to);
    case OBJECT:
        return read_object(r, m->members, to);
    default:
        return read_array(r, m, to);
    }
}

static int read_object(struct reading *r, const struct member *members, void *to)
{
    struct kiln_str name;
    int n = kiln_json_object(&r->json);

    while (n == 0 && (n = kiln_json_member(&r->json, &name)) > 0) {
        enum kiln_json_kind kind = kiln_json_peek(&r->json);
        const struct member *m = members;

        while (m->name && (json_kind(m->kind) != kind || !kiln_str_eq(name, kiln_str_of(m->name))))
            m++;
        n = m->name ? read_value(r, m, (char *)to + m->offset) : kiln_json_skip(&r->json);
    }
    return n;
}

/* ---- what answers have ---- */

#define IN(type, name, kind, field)                                                                \
    {                                                                                              \
        (name), (kind), offsetof(struct type, field), NULL, 0                                      \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, TEXT, 0, NULL, 0                                                                     \
    }

static const struct member type_members[] = {
    IN(kiln_type, "name", TEXT, name),
    IN(kiln_type, "type", TEXT, type),
    IN(kiln_type, "unit", TEXT, unit),
    IN(kiln_type, "period_type", TEXT, period_type),
    IN(kiln_type, "period_unit", TEXT, period_unit),
    END,
};

static const struct member basis_members[] = {
    IN(kiln_said_basis, "profiles", NUMBER, profiles),
    IN(kiln_said_basis, "count", NUMBER, count),
    IN(kiln_said_basis, "rate_seconds", NUMBER, rate_seconds),
    IN(kiln_said_basis, "damaged", NUMBER, damaged),
    IN(kiln_said_basis, "first", TIME, first_ns),
    IN(kiln_said_basis, "last", TIME, last_ns),
    END,
};

static const struct member note_members[] = {
    IN(kiln_said_note, "code", TEXT, code),
    IN(kiln_said_note, "text", TEXT, text),
    END,
};

static const struct member function_members[] = {
    IN(kiln_said_function, "name", TEXT, name),
    IN(kiln_said_function, "file", TEXT, file),
    IN(kiln_said_function, "module", TEXT, module),
    IN(kiln_said_function, "kind", TEXT, kind),
    IN(kiln_said_function, "self", NUMBER, self),
    IN(kiln_said_function, "total", NUMBER, total),
    IN(kiln_said_function, "self_share", NUMBER, self_share),
    IN(kiln_said_function, "self_error", NUMBER, self_error),
    IN(kiln_said_function, "total_share", NUMBER, total_share),
    IN(kiln_said_function, "total_error", NUMBER, total_error),
    END,
};

static const struct member change_members[] = {
    IN(kiln_said_change, "name", TEXT, name),
    IN(kiln_said_change, "file", TEXT, file),
    IN(kiln_said_change, "module", TEXT, module),
    IN(kiln_said_change, "kind", TEXT, kind),
    IN(kiln_said_change, "left_self", NUMBER, left_self),
    IN(kiln_said_change, "right_self", NUMBER, right_self),
    IN(kiln_said_change, "left_total", NUMBER, left_total),
    IN(kiln_said_change, "right_total", NUMBER, right_total),
    IN(kiln_said_change, "self_change", NUMBER, self_change),
    IN(kiln_said_change, "self_noise", NUMBER, self_noise),
    IN(kiln_said_change, "self_is_noise", FLAG, self_is_noise),
    IN(kiln_said_change, "total_change", NUMBER, total_change),
    IN(kiln_said_change, "total_noise", NUMBER, total_noise),
    IN(kiln_said_change, "total_is_noise", FLAG, total_is_noise),
    END,
};

static const struct member amount_members[] = {
    IN(kiln_said_amounts, "wall", NUMBER, wall),
    IN(kiln_said_amounts, "cpu", NUMBER, cpu),
    IN(kiln_said_amounts, "blocked", NUMBER, blocked),
    IN(kiln_said_amounts, "runnable", NUMBER, runnable),
    IN(kiln_said_amounts, "gap", NUMBER, gap),
    END,
};

static const struct member gap_members[] = {
    IN(kiln_said_gap, "name", TEXT, name),
    IN(kiln_said_gap, "file", TEXT, file),
    IN(kiln_said_gap, "module", TEXT, module),
    IN(kiln_said_gap, "kind", TEXT, kind),
    {"self", OBJECT, offsetof(struct kiln_said_gap, self), amount_members, 0},
    {"total", OBJECT, offsetof(struct kiln_said_gap, total), amount_members, 0},
    IN(kiln_said_gap, "reasons", NUMBERS, reasons),
    END,
};

static const struct member reason_members[] = {
    IN(kiln_said_reason, "reason", TEXT, reason),
    IN(kiln_said_reason, "value", NUMBER, value),
    END,
};

/* Rows of a diff and of a plain table have other members: each finds its own array. */
static const struct member top_members[] = {
    IN(kiln_said, "functions", NUMBER, functions),
    {"rows", OBJECTS, offsetof(struct kiln_said, top), function_members,
     sizeof(struct kiln_said_function)},
    END,
};

static const struct member diff_top_members[] = {
    IN(kiln_said, "functions", NUMBER, functions),
    {"rows", OBJECTS, offsetof(struct kiln_said, changes), change_members,
     sizeof(struct kiln_said_change)},
    END,
};

static const struct member graph_members[] = {
    IN(kiln_said, "names", TEXTS, names),     IN(kiln_said, "files", TEXTS, files),
    IN(kiln_said, "modules", TEXTS, modules), IN(kiln_said, "kinds", TEXTS, kinds),
    IN(kiln_said, "name", NUMBERS, name),     IN(kiln_said, "depth", NUMBERS, depth),
    IN(kiln_said, "self", NUMBERS, self),     IN(kiln_said, "total", NUMBERS, node_total),
    IN(kiln_said, "other", NUMBER, other),    END,
};

static const struct member one_series_members[] = {
    IN(kiln_said_series, "labels", LABELS, labels),
    IN(kiln_said_series, "sum", NUMBER, sum),
    IN(kiln_said_series, "bucket", NUMBERS, bucket),
    IN(kiln_said_series, "value", NUMBERS, value),
    END,
};

static const struct member series_members[] = {
    IN(kiln_said, "start", TIME, start_ns),
    IN(kiln_said, "step_seconds", NUMBER, step_seconds),
    IN(kiln_said, "buckets", NUMBER, buckets),
    IN(kiln_said, "all", NUMBER, all),
    {"series", OBJECTS, offsetof(struct kiln_said, series), one_series_members,
     sizeof(struct kiln_said_series)},
    END,
};

static const struct member side_members[] = {
    IN(kiln_said_side, "query", TEXT, query),
    IN(kiln_said_side, "deployment", TEXT, deployment),
    IN(kiln_said_side, "from", TIME, from_ns),
    IN(kiln_said_side, "until", TIME, until_ns),
    IN(kiln_said_side, "total", NUMBER, total),
    {"basis", OBJECT, offsetof(struct kiln_said_side, basis), basis_members, 0},
    END,
};

static const struct member row_members[] = {
    IN(kiln_said_row, "id", TEXT, id),
    IN(kiln_said_row, "name", TEXT, name),
    IN(kiln_said_row, "value", TEXT, value),
    IN(kiln_said_row, "value", NUMBER, amount),
    IN(kiln_said_row, "service", TEXT, service),
    IN(kiln_said_row, "type", TEXT, type),
    IN(kiln_said_row, "types", COUNT, n_types),
    IN(kiln_said_row, "labels", LABELS, labels),
    IN(kiln_said_row, "version", TEXT, version),
    IN(kiln_said_row, "label", TEXT, label),
    IN(kiln_said_row, "source", TEXT, source),
    IN(kiln_said_row, "text", TEXT, text),
    IN(kiln_said_row, "trace_id", TEXT, trace_id),
    IN(kiln_said_row, "span_id", TEXT, span_id),
    IN(kiln_said_row, "build_id", TEXT, build_id),
    IN(kiln_said_row, "kind", TEXT, kind),
    IN(kiln_said_row, "has", TEXT, has),
    IN(kiln_said_row, "time", TIME, time_ns),
    IN(kiln_said_row, "first", TIME, first_ns),
    IN(kiln_said_row, "last", TIME, last_ns),
    IN(kiln_said_row, "oldest", TIME, oldest_ns),
    IN(kiln_said_row, "newest", TIME, newest_ns),
    IN(kiln_said_row, "at", TIME, at_ns),
    IN(kiln_said_row, "until", TIME, until_ns),
    IN(kiln_said_row, "duration_seconds", NUMBER, duration_seconds),
    IN(kiln_said_row, "count", NUMBER, count),
    IN(kiln_said_row, "samples", NUMBER, samples),
    IN(kiln_said_row, "profiles", NUMBER, profiles),
    IN(kiln_said_row, "bytes", NUMBER, bytes),
    IN(kiln_said_row, "addresses", NUMBER, addresses),
    IN(kiln_said_row, "profiles_per_second", NUMBER, profiles_per_second),
    IN(kiln_said_row, "bytes_per_second", NUMBER, bytes_per_second),
    END,
};

#define ROWS(name)                                                                                 \
    {                                                                                              \
        (name), OBJECTS, offsetof(struct kiln_said, rows), row_members,                            \
            sizeof(struct kiln_said_row)                                                           \
    }

/* Of everything that can be asked; `changes` says whether it is a diff. */
#define COMMON_MEMBERS                                                                             \
    {"type", OBJECT, offsetof(struct kiln_said, type), type_members, 0},                           \
        {"basis", OBJECT, offsetof(struct kiln_said, basis), basis_members, 0},                    \
        {"left", OBJECT, offsetof(struct kiln_said, left), side_members, 0},                       \
        {"right", OBJECT, offsetof(struct kiln_said, right), side_members, 0},                     \
        {"flamegraph", OBJECT, 0, graph_members, 0}, {"series", OBJECT, 0, series_members, 0},     \
        {"notes", OBJECTS, offsetof(struct kiln_said, notes), note_members,                        \
         sizeof(struct kiln_said_note)},                                                           \
        IN(kiln_said, "from", TIME, from_ns), IN(kiln_said, "until", TIME, until_ns),              \
        IN(kiln_said, "total", NUMBER, total), IN(kiln_said, "all", NUMBER, all),                  \
        IN(kiln_said, "truncated", FLAG, truncated)

static const struct member line_members[] = {
    IN(kiln_said_line, "line", NUMBER, line),
    IN(kiln_said_line, "self", NUMBER, self),
    IN(kiln_said_line, "total", NUMBER, total),
    END,
};

static const struct member text_members[] = {
    IN(kiln_said, "first", NUMBER, text_first),
    IN(kiln_said, "lines", TEXTS, text_lines),
    END,
};

static const struct member all_members[] = {
    COMMON_MEMBERS,
    IN(kiln_said, "file", TEXT, file),
    IN(kiln_said, "text_problem", TEXT, text_problem),
    IN(kiln_said, "other_files", TEXTS, other_files),
    {"lines", OBJECTS, offsetof(struct kiln_said, lines), line_members,
     sizeof(struct kiln_said_line)},
    {"text", OBJECT, 0, text_members, 0},
    {"top", OBJECT, 0, top_members, 0},
    IN(kiln_said, "functions", NUMBER, functions),
    {"overall", OBJECT, offsetof(struct kiln_said, overall), amount_members, 0},
    {"reasons", OBJECTS, offsetof(struct kiln_said, reasons), reason_members,
     sizeof(struct kiln_said_reason)},
    {"rows", OBJECTS, offsetof(struct kiln_said, gaps), gap_members, sizeof(struct kiln_said_gap)},
    IN(kiln_said, "labels", TEXTS, strings),
    ROWS("values"),
    ROWS("types"),
    ROWS("services"),
    ROWS("profiles"),
    ROWS("spans"),
    ROWS("deployments"),
    ROWS("files"),
    ROWS("missing"),
    END,
};

static const struct member diff_members[] = {
    COMMON_MEMBERS,
    {"top", OBJECT, 0, diff_top_members, 0},
    IN(kiln_said, "normalized", TEXT, normalized),
    IN(kiln_said, "scale", NUMBER, scale),
    IN(kiln_said, "change", NUMBER, change),
    IN(kiln_said, "noise", NUMBER, noise),
    IN(kiln_said, "is_noise", FLAG, is_noise),
    END,
};

int kiln_said_read(struct kiln_said *said, struct kiln_str json, bool diff)
{
    struct kiln_err err = {0};
    struct reading r = {.said = said};
    int n;

    *said = (struct kiln_said){.other = -1, .budget = {.limit = MEMORY_BYTES}};
    kiln_arena_init(&said->arena, &said->budget);
    kiln_json_init(&r.json, json, &err);
    n = read_object(&r, diff ? diff_members : all_members, said);
    kiln_json_done(&r.json);
    said->type.scale = 1;
    said->type.level = kiln_type_is_level(&said->type);
    if (n == 0)
        return KILN_EXIT_WELL;
    kiln_err_set(&err, KILN_E_MALFORMED, NULL, "the answer is not what was asked for");
    return kiln_cli_fail("the server's answer", &err);
}

void kiln_said_done(struct kiln_said *said)
{
    struct kiln_said_array *arrays[] = {
        &said->notes,      &said->top,         &said->changes,    &said->rows,    &said->strings,
        &said->names,      &said->files,       &said->modules,    &said->kinds,   &said->name,
        &said->depth,      &said->self,        &said->node_total, &said->series,  &said->lines,
        &said->text_lines, &said->other_files, &said->gaps,       &said->reasons,
    };
    struct kiln_said_series *series = said->series.items;
    struct kiln_said_gap *gaps = said->gaps.items;

    for (uint32_t i = 0; i < said->series.n; i++) {
        kiln_free(series[i].bucket.items);
        kiln_free(series[i].value.items);
    }
    for (uint32_t i = 0; i < said->gaps.n; i++)
        kiln_free(gaps[i].reasons.items);
    for (size_t i = 0; i < KILN_ARRAY_LEN(arrays); i++)
        kiln_free(arrays[i]->items);
    if (said->arena.budget)
        kiln_arena_done(&said->arena);
}
