/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of the checker: findings, indexes, attributes, and the order of things.  The dictionary
 * comes first, because everything else refers to it; orphans come last.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "codec/otlp_check_int.h"

#define MEMORY_MAX ((size_t)2 << 30)

void check_found(struct checker *c, enum kiln_finding_level level, const char *rule,
                 const char *where, const char *fmt, ...)
{
    struct kiln_check *check = c->check;
    struct kiln_finding *finding;
    va_list args;

    if (c->opts->strict)
        level = KILN_FINDING_ERROR;
    if (level == KILN_FINDING_ERROR)
        check->n_errors++;
    else
        check->n_warnings++;
    if (check->n_findings == KILN_FINDINGS_MAX)
        return;
    finding = &check->findings[check->n_findings++];
    finding->level = level;
    finding->rule = rule;
    snprintf(finding->where, sizeof(finding->where), "%s", where);
    va_start(args, fmt);
    vsnprintf(finding->text, sizeof(finding->text), fmt, args);
    va_end(args);
}

bool check_index(struct checker *c, enum otlp_table table, uint64_t index, const char *where,
                 const char *field)
{
    char path[PATH_MAX_LEN * 2];

    if (index < c->tables[table].n) {
        c->tables[table].used[index] = 1;
        return true;
    }
    snprintf(path, sizeof(path), "%s.%s", where, field);
    check_error(c, "index", path, "%lld is outside the table of %u", (long long)index,
                c->tables[table].n);
    return false;
}

void check_indexes(struct checker *c, enum otlp_table table, const struct kiln_pb_field *f,
                   const char *where, const char *field)
{
    struct kiln_pb r;
    uint64_t index;
    int n;

    if ((f->tag & 7) == 0) {
        check_index(c, table, f->number, where, field);
        return;
    }
    if ((f->tag & 7) != 2)
        return;
    r = kiln_pb_of(f->bytes);
    while ((n = kiln_pb_varint(&r, &index)) > 0)
        check_index(c, table, index, where, field);
    check_wire(c, n, where);
}

void check_attrs_begin(struct checker *c)
{
    c->owner++;
    c->has_build_id = false;
}

static void check_attr(struct checker *c, uint64_t index, const char *where)
{
    struct kiln_str text;
    uint32_t key;

    if (!check_index(c, OTLP_ATTRS, index, where, "attribute_indices"))
        return;
    if (c->tables[OTLP_STRINGS].n == 0)
        return;
    key = c->attr_key[index];
    text = c->tables[OTLP_STRINGS].entries[key];
    c->has_build_id |= kiln_str_starts(text, KILN_STR("process.executable.build_id."));
    if (c->seen_key[key] == c->owner)
        check_error(c, "unique-keys", where, "two attributes have the key \"%.*s\"",
                    KILN_STR_ARG(text));
    c->seen_key[key] = c->owner;
}

void check_attrs(struct checker *c, const struct kiln_pb_field *f, const char *where)
{
    struct kiln_pb r;
    uint64_t index;
    int n;

    if ((f->tag & 7) == 0) {
        check_attr(c, f->number, where);
        return;
    }
    if ((f->tag & 7) != 2)
        return;
    r = kiln_pb_of(f->bytes);
    while ((n = kiln_pb_varint(&r, &index)) > 0)
        check_attr(c, index, where);
    check_wire(c, n, where);
}

void check_wire(struct checker *c, int n, const char *where)
{
    if (n < 0)
        check_error(c, "wire", where, "%s", kiln_err_text(n));
}

void check_utf8(struct checker *c, struct kiln_str text, const char *where)
{
    if (!kiln_utf8_valid(text))
        check_error(c, "utf-8", where, "the text is not valid UTF-8");
}

/* ---- pairs and values ---- */

static void add_key(struct checker *c, struct check_keys *keys, struct kiln_str key,
                    const char *where)
{
    int r;

    for (uint32_t i = 0; i < keys->n && i < 1024; i++) { /* a hostile message stays linear */
        if (kiln_str_eq(keys->keys[i], key)) {
            check_error(c, "unique-keys", where, "the key \"%.*s\" comes twice", KILN_STR_ARG(key));
            return;
        }
    }
    r = kiln_grow(&c->budget, (void **)&keys->keys, &keys->cap, (uint64_t)keys->n + 1,
                  sizeof(*keys->keys), UINT32_MAX);
    if (r < 0)
        c->error = r;
    else
        keys->keys[keys->n++] = key;
}

void check_key_value(struct checker *c, struct kiln_str bytes, struct check_keys *keys,
                     const char *where, uint32_t depth)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_str key = KILN_STR("");
    struct kiln_pb_field f;
    bool has_text = false, has_ref = false;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u)) {
            key = f.bytes;
            has_text = f.bytes.len > 0;
            check_utf8(c, f.bytes, where);
        } else if (f.tag == KILN_PB_BYTES(2u)) {
            check_value(c, f.bytes, where, depth);
        } else if (f.tag == KILN_PB_VARINT(3u) && f.number) {
            has_ref = check_index(c, OTLP_STRINGS, f.number, where, "key_strindex");
            if (has_ref && !has_text)
                key = c->tables[OTLP_STRINGS].entries[f.number];
        }
    }
    check_wire(c, n, where);
    if (has_text && has_ref)
        check_error(c, "one-key", where, "key and key_strindex are both set");
    add_key(c, keys, key, where);
}

/* An ArrayValue, or a KeyValueList whose keys must be unique. */
static void check_nested(struct checker *c, struct kiln_str bytes, bool keyed, const char *where,
                         uint32_t depth)
{
    struct check_keys keys = {0};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag != KILN_PB_BYTES(1u))
            continue;
        if (keyed)
            check_key_value(c, f.bytes, &keys, where, depth);
        else
            check_value(c, f.bytes, where, depth);
    }
    check_wire(c, n, where);
    kiln_array_free(&c->budget, (void **)&keys.keys, &keys.cap, sizeof(*keys.keys));
}

void check_value(struct checker *c, struct kiln_str bytes, const char *where, uint32_t depth)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    if (depth == 0) {
        check_error(c, "depth", where, "values are nested deeper than %u",
                    kiln_limits_default.value_depth);
        return;
    }
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            check_utf8(c, f.bytes, where);
        else if (f.tag == KILN_PB_BYTES(5u) || f.tag == KILN_PB_BYTES(6u))
            check_nested(c, f.bytes, f.tag == KILN_PB_BYTES(6u), where, depth - 1);
        else if (f.tag == KILN_PB_VARINT(8u))
            check_index(c, OTLP_STRINGS, f.number, where, "string_value_strindex");
    }
    check_wire(c, n, where);
}

/* ---- the whole ---- */

void kiln_check_free(struct kiln_check *check)
{
    if (!check)
        return;
    kiln_free(check->findings);
    kiln_free(check);
}

static struct kiln_check *new_check(void)
{
    struct kiln_check *check = kiln_calloc(1, sizeof(*check));

    if (!check)
        return NULL;
    check->findings = kiln_calloc(KILN_FINDINGS_MAX, sizeof(*check->findings));
    if (!check->findings) {
        kiln_free(check);
        return NULL;
    }
    return check;
}

static int check_message(struct checker *c, struct kiln_str message)
{
    check_dictionary(c, message);
    if (c->error == 0)
        check_resources(c, message);
    if (c->error == 0 && c->opts->orphans)
        check_orphans(c);
    return c->error;
}

/* The message as the newest revision would write it, to be checked in place of an old one. */
static int translate(struct kiln_str message, struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    r = kiln_otlp_decode(message, NULL, b, NULL, err);
    if (r < 0) {
        kiln_builder_free(b);
        return r;
    }
    r = kiln_builder_finish(b, &batch, err);
    if (r < 0)
        return r;
    r = kiln_otlp_encode(batch, NULL, out, err);
    kiln_batch_unref(batch);
    return r;
}

static int check_any(struct checker *c, struct kiln_str message)
{
    struct kiln_err err = {0};
    struct kiln_buf current;
    int r;

    c->check->revision = otlp_revision_of(message);
    if (c->check->revision == KILN_OTLP_1_10)
        return check_message(c, message);
    check_error(c, "revision", "message",
                "written in revision %s; what follows is about its translation to %s",
                kiln_otlp_revision_name(c->check->revision),
                kiln_otlp_revision_name(KILN_OTLP_1_10));
    kiln_buf_init(&current, MEMORY_MAX);
    r = translate(message, &current, &err);
    if (r == 0) {
        r = check_message(c, kiln_buf_str(&current));
    } else if (r != -ENOMEM) {
        check_error(c, "unreadable", err.where, "%s", err.text);
        r = 0;
    }
    kiln_buf_done(&current);
    return r;
}

int kiln_otlp_check(struct kiln_str message, const struct kiln_check_opts *opts,
                    struct kiln_check **ret_check, struct kiln_err *err)
{
    struct checker c = {.opts = opts, .budget = {.limit = MEMORY_MAX}, .check = new_check()};
    int r;

    if (!c.check)
        return -ENOMEM;
    kiln_arena_init(&c.arena, &c.budget);
    r = check_any(&c, message);
    kiln_arena_done(&c.arena);
    if (r < 0) {
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
        kiln_check_free(c.check);
        return r;
    }
    *ret_check = c.check;
    return 0;
}
