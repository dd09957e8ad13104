/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recipe is a protobuf message, in the order of its fields, without those that say nothing:
 *
 *   Recipe   1 what the body is: 1, a pprof
 *            2 labels (repeated)   3 service   4 family
 *            5 from, 6 until (fixed64, ns since 1970)   7 moves (bool)   8 id (16 bytes)
 *            9 finds the family (bool)   10 repairs types (bool)
 *           11 names were given (bool)   12 names (repeated)
 *   Label    1 name   2 value
 *   Name     1 type   2 display
 *
 * A field that is not known would make another batch: it is refused.  A new one needs a new version
 * of the log, so that an older Kiln says so before it opens the store.
 */
#include "pipeline/receivers/recipe.h"

#include "codec/pb.h"
#include "codec/pprof.h"

#define HINT_BYTES 512u

enum { PPROF = 1 };

/* ---- following ---- */

/* dotnetspy writes "alloc-size" where everybody else writes "alloc_size". */
static void repair_types(struct kiln_builder *b)
{
    char text[64];

    for (uint32_t i = 0; i < kiln_builder_peek(b)->n_profiles; i++) {
        struct kiln_profile *profile = kiln_builder_profile(b, i);
        struct kiln_str type = kiln_batch_str(kiln_builder_peek(b), profile->sample_type.type);

        if (type.len == 0 || type.len > sizeof(text) || !memchr(type.ptr, '-', type.len))
            continue;
        for (size_t k = 0; k < type.len; k++)
            text[k] = type.ptr[k] == '-' ? '_' : type.ptr[k];
        profile->sample_type.type = kiln_builder_string(b, (struct kiln_str){text, type.len});
    }
}

int kiln_recipe_decode(const struct kiln_recipe *recipe, struct kiln_str content,
                       struct kiln_builder *b, struct kiln_err *err)
{
    struct kiln_tags *tags = recipe->tags;
    struct kiln_str family = tags->family;
    int r;

    kiln_tags_prepare(tags, b);
    r = kiln_pprof_decode(content, b, err);
    if (r == 0)
        r = kiln_builder_error(b);
    if (r < 0)
        return r;
    if (recipe->repairs_types)
        repair_types(b);
    if (recipe->names && !family.len)
        tags->family = kiln_pprof_family(b, recipe->names);
    r = kiln_tags_apply(tags, b);
    tags->family = family; /* it may be called again */
    return r;
}

/* ---- writing ---- */

static void put_pair(struct kiln_pb_out *w, uint32_t field, struct kiln_str a, struct kiln_str b)
{
    size_t mark = kiln_pb_mark(w);

    kiln_pb_put_bytes(w, 2, b);
    kiln_pb_put_bytes(w, 1, a);
    kiln_pb_put_message(w, field, mark);
}

static void put_names(struct kiln_pb_out *w, const struct kiln_type_config *names)
{
    for (uint32_t i = names->n; i-- > 0;)
        put_pair(w, 12, kiln_str_of(names->list[i].type), kiln_str_of(names->list[i].display));
    kiln_pb_put_number(w, 11, names->given);
}

static void put_tags(struct kiln_pb_out *w, const struct kiln_tags *tags)
{
    static const uint8_t no_id[16] = {0};

    if (memcmp(tags->id, no_id, sizeof(no_id)) != 0)
        kiln_pb_put_bytes(w, 8, (struct kiln_str){(const char *)tags->id, sizeof(tags->id)});
    kiln_pb_put_number(w, 7, tags->moves);
    kiln_pb_put_fixed64(w, 6, tags->until_ns);
    kiln_pb_put_fixed64(w, 5, tags->from_ns);
    kiln_pb_put_bytes(w, 4, tags->family);
    kiln_pb_put_bytes(w, 3, tags->service);
    for (uint32_t i = tags->n; i-- > 0;)
        put_pair(w, 2, tags->list[i].name, tags->list[i].value);
}

int kiln_recipe_encode(const struct kiln_recipe *recipe, struct kiln_buf *out)
{
    struct kiln_pb_out w;
    int r;

    kiln_pb_out_init(&w, HINT_BYTES, KILN_RECIPE_MAX);
    if (recipe->names)
        put_names(&w, recipe->names);
    kiln_pb_put_number(&w, 10, recipe->repairs_types);
    kiln_pb_put_number(&w, 9, recipe->names != NULL);
    put_tags(&w, recipe->tags);
    kiln_pb_put_number(&w, 1, PPROF);
    r = kiln_pb_out_flush(&w, out);
    kiln_pb_out_done(&w);
    return r;
}

/* ---- reading ---- */

struct reading {
    struct kiln_tags tags;
    struct kiln_type_config names;
    uint64_t body;
    bool finds_family, repairs_types;
};

static int bad(struct kiln_err *err, const char *text)
{
    return kiln_err_set(err, KILN_E_MALFORMED, "recipe", "%s", text);
}

static int get_pair(struct kiln_str bytes, struct kiln_str *ret_a, struct kiln_str *ret_b,
                    struct kiln_err *err)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    *ret_a = *ret_b = KILN_STR_NONE;
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            *ret_a = f.bytes;
        else if (f.tag == KILN_PB_BYTES(2u))
            *ret_b = f.bytes;
        else
            return bad(err, "a pair has a field that is not known");
    }
    return n < 0 ? bad(err, kiln_err_text(n)) : 0;
}

static int get_label(struct reading *in, struct kiln_str bytes, struct kiln_err *err)
{
    struct kiln_str name, value;
    int r = get_pair(bytes, &name, &value, err);

    return r < 0 ? r : kiln_tags_add(&in->tags, name, value, err);
}

static int get_name(struct reading *in, struct kiln_str bytes, struct kiln_err *err)
{
    struct kiln_str type, display;
    int r = get_pair(bytes, &type, &display, err);

    return r < 0 ? r : kiln_type_config_add(&in->names, type, display, err);
}

static int get_text(struct kiln_str text, struct kiln_str *ret, struct kiln_err *err)
{
    if (text.len > KILN_TAG_VALUE_MAX || !kiln_utf8_valid(text))
        return bad(err, "a text is too long, or not UTF-8");
    *ret = text;
    return 0;
}

static int get_id(struct kiln_str bytes, uint8_t id[16], struct kiln_err *err)
{
    if (bytes.len != 16)
        return bad(err, "an id has 16 bytes");
    memcpy(id, bytes.ptr, 16);
    return 0;
}

static int get_field(struct reading *in, const struct kiln_pb_field *f, struct kiln_err *err)
{
    switch (f->tag) {
    case KILN_PB_VARINT(1u):
        in->body = f->number;
        return 0;
    case KILN_PB_BYTES(2u):
        return get_label(in, f->bytes, err);
    case KILN_PB_BYTES(3u):
        return get_text(f->bytes, &in->tags.service, err);
    case KILN_PB_BYTES(4u):
        return get_text(f->bytes, &in->tags.family, err);
    case KILN_PB_FIXED64(5u):
        in->tags.from_ns = f->number;
        return 0;
    case KILN_PB_FIXED64(6u):
        in->tags.until_ns = f->number;
        return 0;
    case KILN_PB_VARINT(7u):
        in->tags.moves = f->number != 0;
        return 0;
    case KILN_PB_BYTES(8u):
        return get_id(f->bytes, in->tags.id, err);
    case KILN_PB_VARINT(9u):
        in->finds_family = f->number != 0;
        return 0;
    case KILN_PB_VARINT(10u):
        in->repairs_types = f->number != 0;
        return 0;
    case KILN_PB_VARINT(11u):
        in->names.given = f->number != 0;
        return 0;
    case KILN_PB_BYTES(12u):
        return get_name(in, f->bytes, err);
    default:
        return bad(err, "it has a field that is not known");
    }
}

static int get_recipe(struct kiln_str recipe, struct reading *in, struct kiln_err *err)
{
    struct kiln_pb r = kiln_pb_of(recipe);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        n = get_field(in, &f, err);
        if (n < 0)
            return n;
    }
    return n < 0 ? bad(err, kiln_err_text(n)) : 0;
}

int kiln_recipe_follow(struct kiln_str recipe, struct kiln_str content, struct kiln_builder *b,
                       struct kiln_err *err)
{
    struct reading in;
    int r;

    memset(&in, 0, sizeof(in));
    r = get_recipe(recipe, &in, err);
    if (r < 0)
        return r;
    if (in.body != PPROF)
        return bad(err, "it is for a body that is not known");
    return kiln_recipe_decode(&(struct kiln_recipe){.tags = &in.tags,
                                                    .names = in.finds_family ? &in.names : NULL,
                                                    .repairs_types = in.repairs_types},
                              content, b, err);
}
