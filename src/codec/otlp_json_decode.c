/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One document is
 *
 *   {"resourceProfiles": [{"resource": {}, "scopeProfiles": [{"scope": {}, "profiles": [...]}]}],
 *    "dictionary": {"stringTable": ["", ...], "stackTable": [{}, ...], ...}}
 *
 * and its parts may stand in any order, while profiles need the dictionary and its tables need each
 * other.  So a first pass checks the syntax of the whole document and notes where the parts start;
 * the second reads them in the order they are needed.
 */
#include "codec/otlp_json.h"
#include "codec/otlp_json_int.h"

/* Where the parts start; 0 where there is none (nothing can start at the very beginning). */
struct parts {
    size_t profiles;
    size_t dictionary;
    size_t tables[OJ_TABLES];
};

static int note(struct oj_decoder *d, const char *name, size_t *position)
{
    if (*position)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED, "a second %s", name);
    *position = kiln_json_tell(&d->r);
    return 0;
}

/* For each table of the dictionary, where it starts. */
static int note_table(struct oj_decoder *d, void *record, enum oj_table table)
{
    int r = note(d, oj_table_names[table], &((struct parts *)record)->tables[table]);

    return r < 0 ? r : kiln_json_skip(&d->r);
}

#define NOTE_TABLE(table)                                                                          \
    static int note_##table(struct oj_decoder *d, void *record)                                    \
    {                                                                                              \
        return note_table(d, record, table);                                                       \
    }

NOTE_TABLE(OJ_MAPPINGS)
NOTE_TABLE(OJ_LOCATIONS)
NOTE_TABLE(OJ_FUNCTIONS)
NOTE_TABLE(OJ_LINKS)
NOTE_TABLE(OJ_STRINGS)
NOTE_TABLE(OJ_ATTRS)
NOTE_TABLE(OJ_STACKS)

static int note_dictionary(struct oj_decoder *d, void *record)
{
    static const struct oj_field fields[] = {
        OJ_CALL("mappingTable", OJ_READ, note_OJ_MAPPINGS),
        OJ_CALL("locationTable", OJ_READ, note_OJ_LOCATIONS),
        OJ_CALL("functionTable", OJ_READ, note_OJ_FUNCTIONS),
        OJ_CALL("linkTable", OJ_READ, note_OJ_LINKS),
        OJ_CALL("stringTable", OJ_READ, note_OJ_STRINGS),
        OJ_CALL("attributeTable", OJ_READ, note_OJ_ATTRS),
        OJ_CALL("stackTable", OJ_READ, note_OJ_STACKS),
        OJ_END,
    };
    int r = note(d, "dictionary", &((struct parts *)record)->dictionary);

    return r < 0 ? r : oj_object(d, fields, record);
}

static int note_profiles(struct oj_decoder *d, void *record)
{
    int r = note(d, "resourceProfiles", &((struct parts *)record)->profiles);

    return r < 0 ? r : kiln_json_skip(&d->r);
}

static int read_profiles(struct oj_decoder *d, size_t position)
{
    uint32_t i = 0;
    int r;

    kiln_json_seek(&d->r, position);
    r = kiln_json_array(&d->r);
    while (r == 0 && (r = kiln_json_element(&d->r)) > 0) {
        r = oj_resource_profiles(d, NULL);
        if (r < 0) {
            kiln_err_within(d->err, "resourceProfiles[%u]", i);
            return r;
        }
        i++;
    }
    if (r < 0)
        kiln_err_within(d->err, "resourceProfiles");
    return r;
}

static int read_document(struct oj_decoder *d)
{
    static const struct oj_field fields[] = {
        OJ_CALL("resourceProfiles", OJ_READ, note_profiles),
        OJ_CALL("dictionary", OJ_READ, note_dictionary),
        OJ_END,
    };
    struct parts parts = {0};
    size_t end;
    int r = oj_object(d, fields, &parts);

    if (r < 0)
        return r;
    end = kiln_json_tell(&d->r);
    r = oj_tables(d, parts.tables);
    if (r == 0 && parts.profiles)
        r = read_profiles(d, parts.profiles);
    kiln_json_seek(&d->r, end);
    return r;
}

static void free_lists(struct oj_decoder *d)
{
#define FREE(list) kiln_array_free(&d->budget, (void **)&d->list, &d->cap_##list, sizeof(*d->list))
    FREE(nest);
    FREE(ids);
    FREE(keys);
    FREE(lines);
    FREE(values);
    FREE(times);
#undef FREE
    for (enum oj_table t = 0; t < OJ_TABLES; t++)
        kiln_array_free(&d->budget, (void **)&d->maps[t].to, &d->maps[t].cap, sizeof(uint32_t));
}

int kiln_otlp_json_decode(struct kiln_str text, struct kiln_builder *b, struct kiln_err *err)
{
    struct oj_decoder d = {
        .b = b,
        .err = err,
        .budget.limit = kiln_builder_limits(b)->memory_bytes,
    };
    uint32_t documents = 0;
    int r, more;

    kiln_json_init(&d.r, text, err);
    do {
        r = read_document(&d);
        if (r < 0 && documents > 0)
            kiln_err_within(err, "document %u", documents + 1);
        documents++;
        more = r == 0 ? kiln_json_more(&d.r) : 0;
    } while (more > 0);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    free_lists(&d);
    kiln_json_done(&d.r);
    return r;
}

/* True if the object at hand, a dictionary of OTLP, has a table. */
static bool has_table(struct kiln_json *r)
{
    struct kiln_str name;

    if (kiln_json_peek(r) != KILN_JSON_OBJECT || kiln_json_object(r) < 0)
        return false;
    while (kiln_json_member(r, &name) > 0) {
        if (kiln_str_ends(name, KILN_STR("Table")) || kiln_str_ends(name, KILN_STR("_table")))
            return true;
        if (kiln_json_skip(r) < 0)
            return false;
    }
    return false;
}

bool kiln_otlp_json_detect(struct kiln_str text)
{
    struct kiln_str name;
    struct kiln_json r;
    bool found = false;

    kiln_json_init(&r, text, NULL);
    if (kiln_json_peek(&r) == KILN_JSON_OBJECT && kiln_json_object(&r) == 0) {
        while (!found && kiln_json_member(&r, &name) > 0) {
            if (kiln_str_eq(name, KILN_STR("resourceProfiles")) ||
                kiln_str_eq(name, KILN_STR("resource_profiles")))
                found = true;
            else if (kiln_str_eq(name, KILN_STR("dictionary")))
                found = has_table(&r);
            else if (kiln_json_skip(&r) < 0)
                break;
        }
    }
    kiln_json_done(&r);
    return found;
}
