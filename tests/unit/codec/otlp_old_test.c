/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "codec/otlp.h"
#include "codec/pb.h"
#include "test.h"

/*
 * The same little profile in the three old layouts.  Strings: "", samples, count, cpu, nanoseconds,
 * work, app.c, size, By.  One function, one mapping with has_functions, two locations, the second
 * folded; one attribute size=5 whose unit By stands in the units table; a link at index 0.
 * Two samples of two types: (work 3x, with a link and 3 timestamps), (work;work 7).
 */
enum { STRINGS = 9, TYPES = 2 };

static const char *const strings[STRINGS] = {"",     "samples", "count", "cpu", "nanoseconds",
                                             "work", "app.c",   "size",  "By"};

static void put_number(struct kiln_pb_out *w, uint32_t field, uint64_t v)
{
    kiln_pb_raw_varint(w, v);
    kiln_pb_raw_varint(w, KILN_PB_VARINT(field));
}

static void put_packed(struct kiln_pb_out *w, uint32_t field, const uint64_t *values, uint32_t n)
{
    size_t mark = kiln_pb_mark(w);

    while (n-- > 0)
        kiln_pb_raw_varint(w, values[n]);
    kiln_pb_put_message(w, field, mark);
}

struct fields {
    uint32_t mappings, locations, functions, links, strings, attrs, units;
};

static void put_attr_and_unit(struct kiln_pb_out *w, const struct fields *f)
{
    size_t mark = kiln_pb_mark(w), value;

    put_number(w, 2, 8);
    put_number(w, 1, 7);
    kiln_pb_put_message(w, f->units, mark);
    mark = value = kiln_pb_mark(w);
    put_number(w, 3, 5);
    kiln_pb_put_message(w, 2, value);
    kiln_pb_put_bytes(w, 1, KILN_STR("size"));
    kiln_pb_put_message(w, f->attrs, mark);
}

static void put_tables(struct kiln_pb_out *w, const struct fields *f)
{
    size_t mark, line;

    put_attr_and_unit(w, f);
    for (uint32_t i = STRINGS; i-- > 0;)
        kiln_pb_put_element(w, f->strings, kiln_str_of(strings[i]));
    mark = kiln_pb_mark(w);
    kiln_pb_put_bytes(w, 2, KILN_STR("span-id."));
    kiln_pb_put_bytes(w, 1, KILN_STR("trace-id-of-16.."));
    kiln_pb_put_message(w, f->links, mark);
    mark = kiln_pb_mark(w);
    put_number(w, 3, 6);
    put_number(w, 1, 5);
    kiln_pb_put_message(w, f->functions, mark);
    for (uint32_t i = 2; i-- > 0;) {
        mark = kiln_pb_mark(w);
        if (i == 1)
            put_number(w, 4, 1);
        line = kiln_pb_mark(w);
        put_number(w, 2, 10 + i); /* of function 0, whose index is not written */
        kiln_pb_put_message(w, 3, line);
        put_number(w, 2, 0x1000 + i);
        put_number(w, 1, 0);
        kiln_pb_put_message(w, f->locations, mark);
    }
    mark = kiln_pb_mark(w);
    put_number(w, 6, 1);
    put_number(w, 1, 0x1000);
    kiln_pb_put_message(w, f->mappings, mark);
}

static void put_samples(struct kiln_pb_out *w)
{
    size_t mark = kiln_pb_mark(w);

    put_packed(w, 3, (uint64_t[]){7, 700}, 2);
    put_number(w, 2, 2);
    put_number(w, 1, 0);
    kiln_pb_put_message(w, 2, mark);
    mark = kiln_pb_mark(w);
    put_packed(w, 6, (uint64_t[]){100, 200, 300}, 3);
    put_number(w, 5, 0);
    put_packed(w, 4, (uint64_t[]){0}, 1);
    put_packed(w, 3, (uint64_t[]){3, 300}, 2);
    put_number(w, 2, 1);
    put_number(w, 1, 1);
    kiln_pb_put_message(w, 2, mark);
}

static void put_types(struct kiln_pb_out *w)
{
    for (uint32_t i = TYPES; i-- > 0;) {
        size_t mark = kiln_pb_mark(w);

        put_number(w, 3, 1);
        put_number(w, 2, 2 + 2 * i);
        put_number(w, 1, 1 + 2 * i);
        kiln_pb_put_message(w, 1, mark);
    }
}

/* Wraps the profile written since `mark` into scope and resource. */
static void put_envelope(struct kiln_pb_out *w, size_t mark)
{
    kiln_pb_put_message(w, 2, mark);
    kiln_pb_put_message(w, 2, mark);
    kiln_pb_put_message(w, 1, mark);
}

static void write_1_4(struct kiln_pb_out *w)
{
    size_t mark = kiln_pb_mark(w);

    put_number(w, 16, 3); /* the default type is cpu */
    put_number(w, 11, 1000);
    put_tables(w, &(struct fields){3, 4, 6, 9, 10, 7, 8});
    put_packed(w, 5, (uint64_t[]){0, 1}, 2);
    put_samples(w);
    put_types(w);
    put_envelope(w, mark);
}

static void write_1_6_profile(struct kiln_pb_out *w, size_t mark)
{
    put_number(w, 9, 1); /* the default type is the second */
    put_number(w, 4, 1000);
    put_packed(w, 3, (uint64_t[]){0, 1}, 2);
    put_samples(w);
    put_types(w);
    put_envelope(w, mark);
}

static void write_1_6(struct kiln_pb_out *w)
{
    put_tables(w, &(struct fields){2, 3, 4, 5, 6, 7, 8});
    write_1_6_profile(w, kiln_pb_mark(w));
}

static void write_1_7(struct kiln_pb_out *w)
{
    size_t mark = kiln_pb_mark(w);

    put_tables(w, &(struct fields){1, 2, 3, 4, 5, 6, 7});
    kiln_pb_put_message(w, 2, mark);
    write_1_6_profile(w, kiln_pb_mark(w));
}

static void check_dictionary(const struct kiln_batch *batch)
{
    const struct kiln_sample *sample = &batch->samples[0];
    const struct kiln_attr *attr = kiln_set_find(batch, sample->attrs, KILN_STR("size"));
    struct kiln_range stack = batch->dict.stacks[sample->stack];
    const struct kiln_location *leaf = &batch->dict.locations[batch->dict.frames[stack.first]];
    const struct kiln_line *line = &batch->dict.lines[leaf->first];

    CHECK(attr != NULL);
    CHECK_EQ(attr->value.i, 5);
    CHECK_STR(kiln_batch_str(batch, attr->unit), "By");
    CHECK_EQ(stack.n, 1);
    CHECK_EQ(leaf->address, 0x1001);
    CHECK_EQ(line->line, 11);
    CHECK_STR(kiln_batch_str(batch, batch->dict.functions[line->function].name), "work");
    CHECK(kiln_set_find(batch, leaf->attrs, KILN_STR("pprof.location.is_folded")) != NULL);
    CHECK(kiln_set_find(batch, batch->dict.mappings[leaf->mapping].attrs,
                        KILN_STR("pprof.mapping.has_functions")) != NULL);
    CHECK(memcmp(batch->dict.links[sample->link].span_id, "span-id.", 8) == 0);
}

static void check_layout(void (*write)(struct kiln_pb_out *w), enum kiln_otlp_revision revision)
{
    struct kiln_pb_out w;
    struct kiln_buf out;
    struct kiln_otlp_info info;
    struct kiln_err err = {0};
    struct kiln_builder *b;
    struct kiln_batch *batch;

    kiln_pb_out_init(&w, 0, 1 << 20);
    kiln_buf_init(&out, 1 << 20);
    write(&w);
    CHECK_OK(kiln_pb_out_flush(&w, &out));
    CHECK(kiln_otlp_detect(kiln_buf_str(&out)));
    CHECK_OK(kiln_builder_new(NULL, &b));
    if (kiln_otlp_decode(kiln_buf_str(&out), NULL, b, &info, &err) < 0) {
        print_error("%s: %s\n", err.where, err.text);
        fail();
    }
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    CHECK_TEXT(kiln_otlp_revision_name(info.revision), kiln_otlp_revision_name(revision));
    CHECK_EQ(batch->n_profiles, 2);
    CHECK_EQ(batch->profiles[0].time_ns, 1000);
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.type), "cpu");
    CHECK_STR(kiln_batch_str(batch, batch->profiles[1].sample_type.type), "samples");
    CHECK_EQ(batch->n_samples, 4);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 300);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[1]), 700);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[2]), 3);
    CHECK_EQ(kiln_sample_times(batch, &batch->samples[2])[2], 300);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[3]), 7);
    CHECK_EQ(batch->samples[3].link, 0);
    check_dictionary(batch);
    kiln_batch_unref(batch);
    kiln_buf_done(&out);
    kiln_pb_out_done(&w);
}

TEST(otlp_old, tables_inside_each_profile_are_1_4)
{
    check_layout(write_1_4, KILN_OTLP_1_4);
}

TEST(otlp_old, tables_beside_the_resources_are_1_6)
{
    check_layout(write_1_6, KILN_OTLP_1_6);
}

TEST(otlp_old, a_dictionary_with_attributes_as_pairs_is_1_7)
{
    check_layout(write_1_7, KILN_OTLP_1_7);
}
