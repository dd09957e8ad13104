/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of a pprof sample as a set of attributes.
 *
 *   Label  1 key  2 str  3 num  4 num_unit
 *
 * A label with a str is a text, else a number.  Keys may repeat: the values of one key, in their
 * order, make an array.  The same bytes come again and again (the same label on sample after
 * sample), so a small cache knows the set for the label bytes it saw last.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "codec/pprof_int.h"

#define CACHE_SIZE  1024u /* a power of two */
#define SORT_SIMPLE 24u   /* labels up to which insertion is as good as anything */

struct label_cache {
    struct {
        struct kiln_str bytes; /* len 0: free */
        uint32_t set;
    } entries[CACHE_SIZE];
};

struct label {
    uint32_t key, str, unit; /* strings of the batch */
    uint32_t position;       /* in the sample */
    int64_t num;
    bool is_text; /* a str may be given and empty */
};

static int read_label(struct kiln_pprof_in *in, struct kiln_str message, struct label *label)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    int n, bad = 0;

    while (bad == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_VARINT(LABEL_KEY):
            bad = kiln_pprof_string(in, f.number, "key", &label->key);
            break;
        case KILN_PB_VARINT(LABEL_STR):
            bad = kiln_pprof_string(in, f.number, "str", &label->str);
            label->is_text = f.number != 0;
            break;
        case KILN_PB_VARINT(LABEL_NUM):
            label->num = (int64_t)f.number;
            break;
        case KILN_PB_VARINT(LABEL_NUM_UNIT):
            bad = kiln_pprof_string(in, f.number, "num_unit", &label->unit);
            break;
        default:
            break;
        }
    }
    if (bad == 0 && n < 0)
        bad = kiln_pprof_bad_wire(in, n);
    return bad;
}

/* A clear place for label number `n`. */
static struct label *new_label(struct kiln_pprof_in *in, uint32_t n)
{
    if (n == in->label_cap) {
        uint32_t cap = n ? n * 2 : 16;
        struct label *more = kiln_builder_scratch(in->b, cap * sizeof(*more));

        if (!more)
            return NULL;
        if (n)
            memcpy(more, in->label_list, n * sizeof(*more));
        in->label_list = more;
        in->label_cap = cap;
    }
    in->label_list[n] = (struct label){.position = n};
    return &in->label_list[n];
}

static int read_labels(struct kiln_pprof_in *in, struct kiln_str region, uint32_t *ret_n)
{
    struct kiln_pb r = kiln_pb_of(region);
    struct kiln_pb_field f;
    uint32_t n = 0;

    while (kiln_pb_next(&r, &f) > 0) {
        struct label *label;
        int bad;

        if (f.tag != KILN_PB_BYTES(SAMPLE_LABEL))
            continue;
        label = new_label(in, n);
        if (!label)
            return kiln_pprof_builder_failure(in);
        bad = read_label(in, f.bytes, label);
        if (bad < 0) {
            kiln_err_within(in->err, "label[%u]", n);
            return bad;
        }
        n++;
    }
    *ret_n = n;
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

/* Brings the values of each key together, in their order. */
static void sort_labels(struct label *list, uint32_t n)
{
    if (n > SORT_SIMPLE) {
        qsort(list, n, sizeof(*list), by_key);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        struct label moving = list[i];
        uint32_t k = i;

        for (; k > 0 && list[k - 1].key > moving.key; k--)
            list[k] = list[k - 1];
        list[k] = moving;
    }
}

/* The unit that all numbers of a key share; false if they differ. */
static bool common_unit(const struct label *list, uint32_t n, uint32_t *ret_unit)
{
    bool known = false;

    *ret_unit = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].is_text)
            continue;
        if (known && list[i].unit != *ret_unit)
            return false;
        *ret_unit = list[i].unit;
        known = true;
    }
    return true;
}

static struct kiln_value label_value(const struct label *label)
{
    return label->is_text ? kiln_value_string(label->str) : kiln_value_int(label->num);
}

/* A number together with its own unit. */
static struct kiln_value value_with_unit(struct kiln_pprof_in *in, const struct label *label)
{
    struct kiln_attr pair[] = {
        {.key = kiln_builder_string(in->b, KEY_VALUE), .value = kiln_value_int(label->num)},
        {.key = kiln_builder_string(in->b, KEY_UNIT), .value = kiln_value_string(label->unit)},
    };

    return kiln_builder_map(in->b, pair, 2);
}

/* The attribute for the `n` labels of one key; 0 on failure, which sticks in the builder. */
static uint32_t attr_of(struct kiln_pprof_in *in, const struct label *list, uint32_t n)
{
    struct kiln_value *items;
    uint32_t unit;
    bool common = common_unit(list, n, &unit);

    if (n == 1)
        return kiln_builder_attr(in->b, list->key, label_value(list), unit);
    items = kiln_builder_scratch(in->b, n * sizeof(*items));
    if (!items)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        items[i] = common || list[i].is_text || !list[i].unit ? label_value(&list[i])
                                                              : value_with_unit(in, &list[i]);
    return kiln_builder_attr(in->b, list->key, kiln_builder_array(in->b, items, n),
                             common ? unit : 0);
}

static int make_set(struct kiln_pprof_in *in, struct kiln_str region, uint32_t *ret_set)
{
    uint32_t n = 0, n_attrs = 0, small[SORT_SIMPLE];
    uint32_t *attrs = small;
    int r = read_labels(in, region, &n);

    if (r < 0)
        return r;
    if (n > SORT_SIMPLE)
        attrs = kiln_builder_scratch(in->b, n * sizeof(*attrs));
    if (!attrs)
        return kiln_pprof_builder_failure(in);
    sort_labels(in->label_list, n);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && in->label_list[end].key == in->label_list[i].key;)
            end++;
        attrs[n_attrs++] = attr_of(in, &in->label_list[i], end - i);
    }
    *ret_set = kiln_builder_set(in->b, attrs, n_attrs, NULL);
    return kiln_pprof_builder_failure(in);
}

int kiln_pprof_labels(struct kiln_pprof_in *in, struct kiln_str region, uint32_t *ret_set)
{
    uint64_t at = kiln_hash(region.ptr, region.len) & (CACHE_SIZE - 1);
    int r;

    if (!in->labels) {
        in->labels = kiln_builder_scratch(in->b, sizeof(*in->labels));
        if (!in->labels)
            return kiln_pprof_builder_failure(in);
        memset(in->labels, 0, sizeof(*in->labels));
    }
    if (kiln_str_eq(in->labels->entries[at].bytes, region)) {
        *ret_set = in->labels->entries[at].set;
        return 0;
    }
    r = make_set(in, region, ret_set);
    if (r == 0) {
        in->labels->entries[at].bytes = region;
        in->labels->entries[at].set = *ret_set;
    }
    return r;
}
