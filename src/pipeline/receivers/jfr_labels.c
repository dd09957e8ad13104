/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   LabelsSnapshot  1 contexts: map<int64, Context>   2 strings: map<int64, string>
 *   Context         1 labels: map<int64, int64>       (name and value, as strings' numbers)
 *
 * Entries of a map are messages, 1 key and 2 value.  Both maps become arrays sorted by number.
 */
#include <stdlib.h>

#include "codec/pb.h"
#include "pipeline/receivers/jfr_labels.h"

#define LABELS_MAX 64u  /* of one context */
#define ATTRS_MAX  256u /* of one sample */

struct entry {
    uint64_t id;
    struct kiln_str bytes; /* a context, or a string */
};

struct map {
    struct entry *list;
    size_t n;
};

struct labels {
    struct map contexts, strings;
};

static int bad_wire(struct kiln_err *err, int code)
{
    return kiln_err_set(err, code, "labels", "this is no LabelsSnapshot: %s", kiln_err_text(code));
}

static int by_id(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static const struct entry *find(const struct map *map, uint64_t id)
{
    struct entry wanted = {.id = id};

    return map->n ? bsearch(&wanted, map->list, map->n, sizeof(*map->list), by_id) : NULL;
}

static int count(struct kiln_str message, uint32_t tag, size_t *ret_n)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    int n;

    *ret_n = 0;
    while ((n = kiln_pb_next(&r, &f)) > 0)
        *ret_n += f.tag == tag;
    return n;
}

/* Reads the entries of a map whose values are bytes. */
static int read_map(struct kiln_str message, uint32_t tag, struct kiln_builder *b, struct map *map)
{
    struct kiln_pb r = kiln_pb_of(message), in;
    struct kiln_pb_field f, part;
    size_t n_entries;
    int n = count(message, tag, &n_entries);

    if (n < 0 || n_entries == 0)
        return n;
    map->list = kiln_builder_scratch(b, n_entries * sizeof(*map->list));
    if (!map->list)
        return kiln_builder_error(b);
    while (n >= 0 && kiln_pb_next(&r, &f) > 0) {
        struct entry *entry = &map->list[map->n];

        if (f.tag != tag)
            continue;
        *entry = (struct entry){0};
        map->n++;
        in = kiln_pb_of(f.bytes);
        while ((n = kiln_pb_next(&in, &part)) > 0) {
            if (part.tag == KILN_PB_VARINT(1u))
                entry->id = part.number;
            else if (part.tag == KILN_PB_BYTES(2u))
                entry->bytes = part.bytes;
        }
    }
    qsort(map->list, map->n, sizeof(*map->list), by_id);
    return n;
}

/* The attribute of one label of a context; 0 where it names nothing. */
static uint32_t label_attr(const struct labels *labels, struct kiln_str bytes,
                           struct kiln_builder *b)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint64_t ids[2] = {0, 0};
    const struct entry *name, *value;

    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            ids[0] = f.number;
        else if (f.tag == KILN_PB_VARINT(2u))
            ids[1] = f.number;
    }
    name = find(&labels->strings, ids[0]);
    value = find(&labels->strings, ids[1]);
    if (!name || !value || !name->bytes.len || !kiln_utf8_valid(name->bytes) ||
        !kiln_utf8_valid(value->bytes))
        return 0;
    return kiln_builder_text_attr(b, name->bytes, value->bytes);
}

static uint32_t add_labels(const struct labels *labels, struct kiln_str context,
                           struct kiln_builder *b, uint32_t *attrs)
{
    struct kiln_pb r = kiln_pb_of(context);
    struct kiln_pb_field f;
    uint32_t n = 0;

    while (n < LABELS_MAX && kiln_pb_next(&r, &f) > 0) {
        uint32_t attr = f.tag == KILN_PB_BYTES(1u) ? label_attr(labels, f.bytes, b) : 0;

        if (attr)
            attrs[n++] = attr;
    }
    return n;
}

static struct kiln_sample_edit edit(void *context, struct kiln_builder *b, uint32_t set)
{
    const struct labels *labels = context;
    const struct kiln_batch *batch = kiln_builder_peek(b);
    const struct kiln_attr *number = kiln_set_find(batch, set, KILN_STR("jfr.context_id"));
    struct kiln_range range = batch->dict.sets[set];
    uint32_t attrs[ATTRS_MAX + LABELS_MAX], n = 0;
    const struct entry *found = NULL;

    if (number && number->value.kind == KILN_VALUE_INT && range.n <= ATTRS_MAX)
        found = find(&labels->contexts, (uint64_t)number->value.i);
    if (!found)
        return (struct kiln_sample_edit){.attrs = set};
    for (uint32_t i = 0; i < range.n; i++) {
        uint32_t attr = batch->dict.members[range.first + i];

        if (&batch->dict.attrs[attr] != number)
            attrs[n++] = attr;
    }
    n += add_labels(labels, found->bytes, b, attrs + n);
    return (struct kiln_sample_edit){.attrs = kiln_builder_set(b, attrs, n, NULL)};
}

int kiln_jfr_labels_apply(struct kiln_str snapshot, struct kiln_builder *b, struct kiln_err *err)
{
    struct labels labels = {0};
    int r = read_map(snapshot, KILN_PB_BYTES(1u), b, &labels.contexts);

    if (r == 0)
        r = read_map(snapshot, KILN_PB_BYTES(2u), b, &labels.strings);
    if (r == 0)
        kiln_builder_edit_samples(b, edit, &labels);
    if (kiln_builder_error(b))
        return kiln_builder_error(b);
    return r < 0 ? bad_wire(err, r) : 0;
}
