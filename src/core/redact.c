/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redaction is an edit of a remap (core/remap.h): each text and each attribute is asked about once,
 * whatever the number of samples that refer to it, and what is not brought over is gone.
 *
 * A text goes from rule to rule through two buffers.  Whatever fails stops everything: a rule that
 * cannot be applied must not let a text through.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/sha256.h"
#include "core/redact_int.h"
#include "core/remap.h"

#define REDACTED        KILN_STR("[redacted]")
#define HASH_BYTES      8u
#define TEXT_BYTES_MAX  (16u << 20) /* of a text after a replacement */
#define NUMBER_TEXT_MAX 32u

struct run {
    const struct kiln_redact *rules;
    struct kiln_buf work[2];
    struct kiln_redact_info info;
    int error;
    uint32_t error_line; /* of the rule that failed */
};

enum outcome { UNCHANGED, CHANGED, DROPPED, KEPT, FAILED };

/* ---- texts ---- */

static void put_hash(struct kiln_str text, struct kiln_buf *out)
{
    uint8_t digest[KILN_SHA256_BYTES];

    kiln_sha256(text, digest);
    kiln_buf_add_hex(out, digest, HASH_BYTES);
}

/* Applies one rule to *text, which may move into `out`. */
static enum outcome apply_rule(struct run *run, const struct kiln_redact_rule *rule,
                               struct kiln_str *text, struct kiln_buf *out)
{
    int r = rule->regex ? kiln_regex_matches(rule->regex, *text) : 1;

    if (r == 0)
        return UNCHANGED;
    if (r > 0 && rule->action == KILN_REDACT_DROP)
        return DROPPED;
    if (r > 0 && rule->action == KILN_REDACT_KEEP)
        return KEPT;
    kiln_buf_clear(out);
    if (r > 0 && rule->action == KILN_REDACT_HASH)
        put_hash(*text, out);
    else if (r > 0 && rule->regex && rule->mask)
        r = kiln_regex_replace_by(rule->regex, *text, rule->mask, rule->context, out);
    else if (r > 0 && rule->mask)
        r = rule->mask(rule->context, *text, out);
    else if (r > 0 && rule->regex)
        r = kiln_regex_replace(rule->regex, *text, rule->replacement, out);
    else if (r > 0)
        kiln_buf_add_str(out, rule->replacement);
    if (r < 0 || out->error) {
        run->error = r < 0 ? r : out->error;
        run->error_line = rule->line;
        return FAILED;
    }
    *text = kiln_buf_str(out);
    return CHANGED;
}

/* Which rules to apply, and to what. */
struct subject {
    enum kiln_redact_match match;        /* rules of this kind */
    const struct kiln_attr_place *place; /* of an attribute, or NULL */
    bool number;                         /* what was a number or a truth */
};

static bool applies(struct run *run, const struct kiln_redact_rule *rule,
                    const struct subject *subject);

/* Applies all rules for a subject to *text, which may move into a buffer of the run. */
static enum outcome apply_rules(struct run *run, const struct subject *subject,
                                struct kiln_str *text)
{
    enum outcome outcome = UNCHANGED;

    for (uint32_t i = 0; i < run->rules->n; i++) {
        const struct kiln_redact_rule *rule = &run->rules->rules[i];
        struct kiln_buf *out = &run->work[text->ptr == run->work[0].ptr];
        enum outcome now;

        if (!applies(run, rule, subject))
            continue;
        now = apply_rule(run, rule, text, out);
        if (now == DROPPED || now == FAILED)
            return now;
        if (now == KEPT)
            break;
        if (now == CHANGED)
            outcome = CHANGED;
    }
    return run->error ? FAILED : outcome;
}

static uint32_t edit_text(void *context, struct kiln_builder *b, enum kiln_text_role role,
                          struct kiln_str text)
{
    struct run *run = context;
    struct subject subject = {role == KILN_TEXT_NAME ? KILN_REDACT_NAME : KILN_REDACT_PATH, NULL,
                              false};
    enum outcome outcome = apply_rules(run, &subject, &text);

    if (outcome == FAILED) {
        kiln_builder_fail(b, run->error);
        return 0;
    }
    if (outcome != UNCHANGED)
        run->info.texts++;
    return kiln_builder_string(b, outcome == DROPPED ? REDACTED : text);
}

/* ---- attributes ---- */

/* Attributes that hold paths or command lines, beside all that end in ".path". */
static bool is_path_key(struct kiln_str key)
{
    static const char *const keys[] = {"process.command", "process.command_line",
                                       "process.command_args", "process.working_directory",
                                       "code.filepath"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(keys); i++) {
        if (kiln_str_eq(key, kiln_str_of(keys[i])))
            return true;
    }
    return kiln_str_ends(key, KILN_STR(".path"));
}

/* Whether the key of a place, or one around it, is what the rule is for. */
static bool key_matches(struct run *run, const struct kiln_redact_rule *rule,
                        const struct kiln_attr_place *place)
{
    for (; place; place = place->outer) {
        int r;

        if (rule->outermost && place->outer)
            continue;
        if (rule->match == KILN_REDACT_PATH)
            r = is_path_key(place->key);
        else
            r = rule->key ? kiln_regex_matches(rule->key, place->key) : 1;
        if (r < 0) {
            run->error = r;
            run->error_line = rule->line;
        }
        if (r != 0)
            return true;
    }
    return false;
}

static bool applies(struct run *run, const struct kiln_redact_rule *rule,
                    const struct subject *subject)
{
    if (!subject->place)
        return rule->match == subject->match;
    if (rule->texts_only && subject->number)
        return false;
    return rule->match != KILN_REDACT_NAME && key_matches(run, rule, subject->place);
}

/* A value that is not an array or a map, as text; numbers are written into `number`. */
static struct kiln_str text_of(const struct kiln_batch *from, struct kiln_value value,
                               char number[NUMBER_TEXT_MAX])
{
    switch (value.kind) {
    case KILN_VALUE_STRING:
    case KILN_VALUE_BYTES:
        return from->dict.strings[value.str];
    case KILN_VALUE_BOOL:
        return value.flag ? KILN_STR("true") : KILN_STR("false");
    case KILN_VALUE_INT:
        snprintf(number, NUMBER_TEXT_MAX, "%" PRId64, value.i);
        return kiln_str_of(number);
    case KILN_VALUE_DOUBLE:
        snprintf(number, NUMBER_TEXT_MAX, "%.17g", value.d);
        return kiln_str_of(number);
    default:
        return KILN_STR_NONE;
    }
}

/* An array or map goes, or stays, as a whole where a rule says so whatever is inside. */
static enum outcome apply_to_container(struct run *run, const struct subject *subject)
{
    for (uint32_t i = 0; i < run->rules->n; i++) {
        const struct kiln_redact_rule *rule = &run->rules->rules[i];

        bool all = rule->action == KILN_REDACT_DROP || rule->action == KILN_REDACT_KEEP;

        if (all && !rule->regex && applies(run, rule, subject))
            return run->error ? FAILED : rule->action == KILN_REDACT_DROP ? DROPPED : UNCHANGED;
    }
    return run->error ? FAILED : UNCHANGED;
}

static enum kiln_attr_edit edit_attr(void *context, struct kiln_builder *b,
                                     const struct kiln_batch *from,
                                     const struct kiln_attr_place *place, struct kiln_value *value)
{
    bool container = value->kind == KILN_VALUE_ARRAY || value->kind == KILN_VALUE_MAP;
    struct run *run = context;
    bool is_text = value->kind == KILN_VALUE_STRING || value->kind == KILN_VALUE_BYTES;
    struct subject subject = {KILN_REDACT_ATTRIBUTE, place, !container && !is_text};
    char number[NUMBER_TEXT_MAX];
    struct kiln_str text = container ? KILN_STR_NONE : text_of(from, *value, number);
    enum outcome outcome =
        container ? apply_to_container(run, &subject) : apply_rules(run, &subject, &text);

    switch (outcome) {
    case UNCHANGED:
        return KILN_ATTR_KEEP;
    case CHANGED:
        run->info.attributes_changed++;
        *value = kiln_value_string(kiln_builder_string(b, text));
        return KILN_ATTR_SET;
    case FAILED:
        kiln_builder_fail(b, run->error);
        return KILN_ATTR_DROP;
    default:
        run->info.attributes_dropped++;
        return KILN_ATTR_DROP;
    }
}

/* ---- batches ---- */

static void add_info(struct kiln_redact_info *to, const struct run *run,
                     const struct kiln_batch *batch)
{
    to->texts += run->info.texts;
    to->attributes_changed += run->info.attributes_changed;
    to->attributes_dropped += run->info.attributes_dropped;
    for (uint32_t i = 0; i < batch->n_profiles; i++)
        to->payloads += run->rules->n && batch->profiles[i].payload.len;
}

int kiln_redact(struct kiln_redact *rules, const struct kiln_batch *batch,
                struct kiln_batch **ret_batch, struct kiln_redact_info *info, struct kiln_err *err)
{
    struct run run = {.rules = rules};
    struct kiln_remap_edit edit = {
        .context = &run, .text = edit_text, .attr = edit_attr, .drop_payloads = rules->n > 0};
    struct kiln_err other = {0};
    int r;

    kiln_buf_init(&run.work[0], TEXT_BYTES_MAX);
    kiln_buf_init(&run.work[1], TEXT_BYTES_MAX);
    r = kiln_remap_batch(batch, &edit, NULL, ret_batch, &other);
    kiln_buf_done(&run.work[0]);
    kiln_buf_done(&run.work[1]);
    if (r < 0 && run.error)
        return kiln_err_set(err, r, NULL, "the redaction rule in line %u cannot be applied: %s",
                            run.error_line, kiln_err_text(run.error));
    if (r < 0)
        return kiln_err_set(err, r, other.where, "%s", other.text);
    if (info)
        add_info(info, &run, batch);
    return 0;
}
