/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/source: which lines of a function cost what, with their text where a configured
 * directory has it (api/sources.h), or a debug file in which the compiler embedded it
 * (naming/texts.h).
 *
 * The question is that of a file: all stacks that have the function, with whole locations
 * (core/lines.h counts them).  The text is the region from the function's start, or its first line
 * that costs, to the last one, with some lines around.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/native_int.h"
#include "api/sources.h"
#include "core/frame.h"
#include "core/lines.h"
#include "core/tenant.h"
#include "naming/texts.h"

enum {
    AROUND = 20,
    TEXT_LINES_MAX = 2000,
    LINE_BYTES_MAX = 1000,
    LINES_MAX = 10000,
    FILES_MAX = 100,
    NAME_SHOWN = 200,
    MAPPINGS_MAX = 4,
};
#define TEXT_BYTES ((size_t)KILN_SOURCE_BYTES_MAX + 4096)

struct source {
    struct kiln_merged *merged;
    struct kiln_lines *lines; /* NULL: no stack has the function */
    bool elsewhere;           /* in other files than the one that was asked for */
    int64_t all;              /* of stacks with the function or without */
    double count;             /* observations of these */
    /* the text */
    struct kiln_buf text;
    char path[KILN_SOURCE_PATH_MAX];
    bool is_embedded;
    struct kiln_str shown; /* the region; ptr NULL: there is none */
    int64_t first;
    struct kiln_buf problem; /* empty: there is a text */
};

static const struct kiln_lines_file *file_of(const struct source *s)
{
    return s->lines && !s->elsewhere ? &s->lines->files[0] : NULL;
}

/* ---- the region ---- */

struct region {
    int64_t first, last;
};

/* Where there are too many lines, those around the dearest one. */
static struct region shortened(struct kiln_native_call *call, struct region region, int64_t dearest)
{
    if (region.last - region.first < TEXT_LINES_MAX)
        return region;
    kiln_native_note(call, "text_cut", "the text is cut to %d lines", TEXT_LINES_MAX);
    if (dearest - region.first >= TEXT_LINES_MAX)
        region.first = dearest - TEXT_LINES_MAX / 2;
    if (region.last - region.first >= TEXT_LINES_MAX) /* lines may be numbered up to the last */
        region.last = region.first + TEXT_LINES_MAX - 1;
    return region;
}

/* The lines that a reader wants. */
static struct region region_of(struct kiln_native_call *call, const struct kiln_lines *lines)
{
    struct region region = {lines->files[0].start_line, lines->files[0].start_line};
    int64_t dearest = 0, most = -1;

    for (uint32_t i = 0; i < lines->n_lines; i++) {
        const struct kiln_line_cost *cost = &lines->lines[i];

        if (cost->line == 0)
            continue;
        if (region.first == 0 || cost->line < region.first)
            region.first = cost->line;
        if (cost->line > region.last)
            region.last = cost->line;
        if (cost->total > most) {
            most = cost->total;
            dearest = cost->line;
        }
    }
    region.first = region.first > AROUND ? region.first - AROUND : 1;
    region.last = region.last < INT64_MAX - AROUND ? region.last + AROUND : INT64_MAX;
    return shortened(call, region, dearest);
}

static int64_t last_cost(const struct kiln_lines *lines)
{
    return lines->n_lines ? lines->lines[lines->n_lines - 1].line : 0;
}

/* Cuts the region out of the text; returns how many lines the text has. */
static int64_t cut_region(struct kiln_str text, struct region region, struct kiln_str *ret)
{
    const char *begin = NULL, *end = NULL;
    int64_t n = 0;

    while (text.ptr && text.len) {
        struct kiln_str line = kiln_str_cut(&text, '\n');

        n++;
        if (n == region.first)
            begin = line.ptr;
        if (n <= region.last)
            end = line.ptr + line.len;
    }
    *ret = begin ? (struct kiln_str){begin, (size_t)(end - begin)} : KILN_STR_NONE;
    return n;
}

/* ---- the text ---- */

static int name_shown(struct kiln_str file)
{
    return (int)(file.len < NAME_SHOWN ? file.len : NAME_SHOWN);
}

/* Shows the region of the text that was read; false: it is another version. */
static bool show(struct source *s, struct region region, struct kiln_str file)
{
    int64_t last = last_cost(s->lines), n = cut_region(kiln_buf_str(&s->text), region, &s->shown);

    if (n >= last && s->shown.ptr) {
        s->first = region.first;
        return true;
    }
    s->shown = KILN_STR_NONE;
    kiln_buf_clear(&s->problem);
    kiln_buf_printf(&s->problem,
                    "%.*s has %lld lines, and the profile speaks of line %lld: it is another "
                    "version than the one that ran",
                    name_shown(file), file.ptr, (long long)n, (long long)last);
    return false;
}

static bool read_configured(struct kiln_native_call *call, struct source *s, struct kiln_str file)
{
    struct kiln_err why = {0};

    if (!call->api->sources)
        return false;
    if (kiln_sources_read(call->api->sources, file, &s->text, s->path, &why) == 0)
        return true;
    kiln_buf_printf(&s->problem, "%.*s: %s", name_shown(file), file.ptr, why.text);
    return false;
}

static bool read_of(struct kiln_native_call *call, const struct kiln_ask *ask, struct source *s,
                    struct kiln_str build_id, struct kiln_str file)
{
    for (uint32_t i = 0; build_id.len && i < ask->question.n_tenants; i++) {
        struct kiln_str name = ask->question.tenants[i];
        char tenant[KILN_TENANT_MAX + 1] = "";

        if (name.len > KILN_TENANT_MAX)
            continue;
        memcpy(tenant, name.ptr, name.len);
        kiln_buf_clear(&s->text);
        if (kiln_texts_read(call->api->texts, tenant, build_id, file, &s->text) == 0)
            return true;
    }
    return false;
}

/* From debug files of code that was compiled from the file. */
static bool read_embedded(struct kiln_native_call *call, const struct kiln_ask *ask,
                          struct source *s, struct kiln_str file)
{
    const struct kiln_batch *batch = s->merged->profile;
    uint32_t mappings[MAPPINGS_MAX], n = 0;

    if (call->api->texts)
        n = kiln_lines_mappings(batch, file, mappings, MAPPINGS_MAX);
    for (uint32_t i = 0; i < n && !s->is_embedded; i++) {
        uint32_t attrs = batch->dict.mappings[mappings[i]].attrs;

        s->is_embedded = read_of(call, ask, s, kiln_frame_build_id(batch, attrs), file);
    }
    return s->is_embedded;
}

static void read_text(struct kiln_native_call *call, const struct kiln_ask *ask, struct source *s,
                      struct kiln_str file)
{
    struct region region = region_of(call, s->lines);

    if (read_configured(call, s, file) && show(s, region, file))
        return;
    if (read_embedded(call, ask, s, file) && show(s, region, file)) {
        kiln_buf_clear(&s->problem);
        return;
    }
    if (!s->problem.len)
        kiln_buf_puts(&s->problem,
                      "no directory of source text is configured (start the server with --source "
                      "DIR, or name it in server.source or KILN_SOURCE), and no debug file that "
                      "was uploaded has it embedded");
}

static void find_text(struct kiln_native_call *call, struct kiln_ask *ask, struct source *s)
{
    struct kiln_str file = s->lines ? s->lines->files[0].file : KILN_STR("");

    if (s->elsewhere)
        kiln_buf_puts(&s->problem, "no stack has the function of this file");
    else if (!s->lines)
        kiln_buf_puts(&s->problem, "no stack has the function");
    else if (!file.len)
        kiln_buf_puts(&s->problem, "the profiles do not say in which file the function is: its "
                                   "program has no debug information, or nobody read it");
    else if (last_cost(s->lines) == 0)
        kiln_buf_puts(&s->problem, "the profiles do not say which lines of the function ran: its "
                                   "program has no line numbers, or nobody read them");
    else if (!call->api->sources && !call->api->texts)
        kiln_buf_puts(&s->problem, "no directory of source text is configured: start the server "
                                   "with --source DIR, or name it in server.source or KILN_SOURCE");
    else if (kiln_native_room(call, ask, TEXT_BYTES) < 0)
        kiln_buf_puts(&s->problem, "there is no memory to read it now");
    else
        read_text(call, ask, s, file);
    call->err = (struct kiln_err){0};
}

/* ---- JSON ---- */

static void put_line_text(struct kiln_native_call *call, struct kiln_str line)
{
    char cut[LINE_BYTES_MAX + 4];

    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (line.len > LINE_BYTES_MAX) {
        for (line.len = LINE_BYTES_MAX; line.len && (line.ptr[line.len] & 0xc0) == 0x80;)
            line.len--;
        line = (struct kiln_str){
            cut, (size_t)snprintf(cut, sizeof(cut), "%.*s\xe2\x80\xa6", KILN_STR_ARG(line))};
        kiln_native_note(call, "text_cut", "lines longer than %d bytes are cut", LINE_BYTES_MAX);
    }
    kiln_json_put_str(&call->w, line);
}

static void put_text(struct kiln_native_call *call, const struct source *s)
{
    struct kiln_str rest = s->shown;

    kiln_json_put_name(&call->w, "text");
    if (!rest.ptr) {
        kiln_json_put_null(&call->w);
    } else {
        kiln_json_put_object(&call->w);
        kiln_native_put_text(call, "origin",
                             s->is_embedded ? KILN_STR("embedded") : KILN_STR("directory"));
        kiln_native_put_text(call, "path",
                             s->is_embedded ? file_of(s)->file : kiln_str_of(s->path));
        kiln_native_put_i64(call, "first", s->first);
        kiln_json_put_name(&call->w, "lines");
        kiln_json_put_array(&call->w);
        while (rest.ptr)
            put_line_text(call, kiln_str_cut(&rest, '\n'));
        kiln_json_end_array(&call->w);
        kiln_json_end_object(&call->w);
    }
    kiln_json_put_name(&call->w, "text_problem");
    if (s->problem.len)
        kiln_json_put_str(&call->w, kiln_buf_str(&s->problem));
    else
        kiln_json_put_null(&call->w);
}

static int compare_totals(const void *a, const void *b)
{
    const struct kiln_line_cost *x = a, *y = b;

    return (x->total < y->total) - (x->total > y->total);
}

static int compare_lines(const void *a, const void *b)
{
    const struct kiln_line_cost *x = a, *y = b;

    return (x->line > y->line) - (x->line < y->line);
}

/* No function has so many; what is made up to have them loses the cheapest. */
static void limit_lines(struct kiln_native_call *call, struct kiln_lines *lines)
{
    if (lines->n_lines <= LINES_MAX)
        return;
    kiln_native_note(call, "rows_cut", "only the %d dearest of %u lines are shown", LINES_MAX,
                     lines->n_lines);
    qsort(lines->lines, lines->n_lines, sizeof(*lines->lines), compare_totals);
    lines->n_lines = LINES_MAX;
    qsort(lines->lines, lines->n_lines, sizeof(*lines->lines), compare_lines);
}

static void put_lines(struct kiln_native_call *call, const struct source *s)
{
    const struct kiln_lines *lines = s->lines;
    double count = s->count;

    kiln_json_put_name(&call->w, "lines");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; file_of(s) && i < lines->n_lines; i++) {
        kiln_json_put_object(&call->w);
        kiln_native_put_i64(call, "line", lines->lines[i].line);
        kiln_native_put_i64(call, "self", lines->lines[i].self);
        kiln_native_put_i64(call, "total", lines->lines[i].total);
        kiln_native_put_part(call, "self", lines->lines[i].self, s->all, count);
        kiln_native_put_part(call, "total", lines->lines[i].total, s->all, count);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
}

static void put_others(struct kiln_native_call *call, const struct source *s)
{
    uint32_t first = file_of(s) ? 1 : 0, n = s->lines ? s->lines->n_files - first : 0;

    kiln_json_put_name(&call->w, "other_files");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < n && i < FILES_MAX; i++)
        kiln_json_put_str(&call->w, s->lines->files[first + i].file);
    kiln_json_end_array(&call->w);
    if (n > FILES_MAX)
        kiln_native_note(call, "rows_cut", "only %d of %u other files are named", FILES_MAX, n);
}

static void put_answer(struct kiln_native_call *call, const struct kiln_ask *ask,
                       const struct source *s)
{
    const struct kiln_lines_file *file = file_of(s);
    const struct kiln_window range = {call->args.from_ns, call->args.until_ns};

    kiln_native_begin_answer(call, &ask->type, range, &s->merged->basis);
    kiln_native_put_text(call, "function", call->args.functions.items[0]);
    kiln_native_put_text(call, "file", file ? file->file : call->args.file);
    kiln_native_put_text(call, "module", file ? file->module : KILN_STR(""));
    kiln_json_put_name(&call->w, "start_line");
    if (file && file->start_line)
        kiln_json_put_i64(&call->w, file->start_line);
    else
        kiln_json_put_null(&call->w);
    kiln_native_put_i64(call, "self", file ? file->self : 0);
    kiln_native_put_i64(call, "total", file ? file->total : 0);
    kiln_native_put_i64(call, "all", s->all);
    put_lines(call, s);
    put_others(call, s);
    put_text(call, s);
    kiln_native_end_answer(call);
}

/* ---- the question ---- */

static int count_lines(struct kiln_native_call *call, struct kiln_ask *ask, struct source *s)
{
    struct kiln_lines_opts opts = {
        .function = call->args.functions.items[0],
        .file = call->args.file,
        .memory_bytes = ask->question.leash->memory_max / 4,
    };
    int r = kiln_native_room(call, ask, 2 * kiln_batch_bytes(s->merged->profile));

    if (r == 0)
        r = kiln_lines_new(s->merged->profile, &opts, &s->lines, &call->err);
    if (r == KILN_E_NOMATCH && opts.file.len) { /* which files there are */
        opts.file = KILN_STR("");
        call->err = (struct kiln_err){0};
        r = kiln_lines_new(s->merged->profile, &opts, &s->lines, &call->err);
        s->elsewhere = r == 0;
    }
    if (r != KILN_E_NOMATCH)
        return r;
    call->err = (struct kiln_err){0};
    return 0;
}

static int answer(struct kiln_native_call *call, struct kiln_ask *ask, struct source *s)
{
    const struct kiln_merge_wants wants = {.profile = true, .exact = true};
    int r = kiln_ask_merge(ask, &wants, &s->merged, &call->err);

    if (r == 0)
        r = count_lines(call, ask, s);
    if (r < 0)
        return r;
    if (s->lines)
        limit_lines(call, s->lines);
    find_text(call, ask, s);
    put_answer(call, ask, s);
    return s->problem.error == -ENOMEM ? -ENOMEM : 0;
}

/* What shares are of. */
static int count_all(struct kiln_native_call *call, struct kiln_ask *ask, struct source *s)
{
    const struct kiln_merge_wants wants = {0};
    struct kiln_merged *merged;
    int r = kiln_ask_merge(ask, &wants, &merged, &call->err);

    if (r < 0)
        return r;
    s->all = merged->total;
    s->count = merged->basis.count;
    kiln_merged_free(merged);
    return 0;
}

static int answer_both(struct kiln_native_call *call, struct kiln_ask *ask, struct source *s)
{
    struct kiln_ask *whole;
    int r = kiln_native_ask(call, &(struct kiln_native_wish){.no_stacks = true}, &whole);

    if (r < 0)
        return r;
    kiln_native_share(ask, whole);
    r = count_all(call, whole, s);
    if (r == 0)
        r = answer(call, ask, s);
    kiln_native_close(call, whole);
    return r;
}

int kiln_native_run_source(struct kiln_native_call *call)
{
    const struct kiln_native_wish wish = {0};
    struct source s = {0};
    struct kiln_ask *ask;
    int r;

    if (call->args.functions.n != 1)
        return kiln_native_refuse(call, "function", "say one, by its whole name");
    r = kiln_native_ask(call, &wish, &ask);
    if (r < 0)
        return r;
    kiln_buf_init(&s.text, TEXT_BYTES);
    kiln_buf_init(&s.problem, 4096);
    r = answer_both(call, ask, &s);
    kiln_buf_done(&s.problem);
    kiln_buf_done(&s.text);
    kiln_lines_free(s.lines);
    kiln_merged_free(s.merged);
    kiln_native_close(call, ask);
    return r;
}
