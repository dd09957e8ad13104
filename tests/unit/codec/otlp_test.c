/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/codec.h"
#include "codec/otlp.h"
#include "codec/pb.h"
#include "test.h"

/* ---- messages, written field by field in the order of a backward writer ---- */

struct message {
    struct kiln_pb_out w;
    struct kiln_buf out;
};

static struct message *message(void)
{
    struct message *m = calloc(1, sizeof(*m));

    kiln_pb_out_init(&m->w, 0, 1 << 20);
    kiln_buf_init(&m->out, 1 << 20);
    return m;
}

static struct kiln_str bytes_of(struct message *m)
{
    kiln_buf_clear(&m->out);
    CHECK_OK(kiln_pb_out_flush(&m->w, &m->out));
    return kiln_buf_str(&m->out);
}

static void message_free(struct message *m)
{
    kiln_pb_out_done(&m->w);
    kiln_buf_done(&m->out);
    free(m);
}

/* A dictionary of "", "cpu", "nanoseconds" and two attributes a=1, b=2 (strings 3 and 4). */
static void put_dictionary(struct message *m)
{
    static const char *const strings[] = {"", "cpu", "nanoseconds", "a", "b"};
    size_t mark = kiln_pb_mark(&m->w), entry, value;

    kiln_pb_put_element(&m->w, 7, KILN_STR_NONE);
    for (uint32_t i = 2; i-- > 0;) {
        entry = kiln_pb_mark(&m->w);
        value = entry;
        kiln_pb_put_number(&m->w, 3, i + 1);
        kiln_pb_put_message(&m->w, 2, value);
        kiln_pb_put_number(&m->w, 1, 3 + i);
        kiln_pb_put_message(&m->w, 6, entry);
    }
    kiln_pb_put_element(&m->w, 6, KILN_STR_NONE);
    for (uint32_t i = 5; i-- > 0;)
        kiln_pb_put_element(&m->w, 5, kiln_str_of(strings[i]));
    for (uint32_t table = 4; table >= 1; table--)
        kiln_pb_put_element(&m->w, table, KILN_STR_NONE);
    kiln_pb_put_message(&m->w, 2, mark);
}

static void put_packed(struct message *m, uint32_t field, const uint64_t *values, uint32_t n)
{
    size_t mark = kiln_pb_mark(&m->w);

    while (n-- > 0)
        kiln_pb_raw_varint(&m->w, values[n]);
    kiln_pb_put_message(&m->w, field, mark);
}

/*
 * One profile with one sample whose fields 2, 3 and 4 are given as numbers, and whose id stands in
 * `id_field`: enough to be each of 1.8, 1.9 and 1.10.
 */
struct shape {
    uint32_t id_field;
    uint64_t packed_2[2], packed_3[2], packed_4[2];
    uint32_t n_2, n_3, n_4;
    uint64_t number_3, number_4;
};

static struct message *message_of(const struct shape *s)
{
    struct message *m = message();
    size_t resource, scope, profile, sample;

    put_dictionary(m);
    resource = scope = profile = kiln_pb_mark(&m->w);
    if (s->id_field)
        kiln_pb_put_bytes(&m->w, s->id_field, KILN_STR("0123456789abcdef"));
    sample = kiln_pb_mark(&m->w);
    if (s->n_4)
        put_packed(m, 4, s->packed_4, s->n_4);
    kiln_pb_put_number(&m->w, 4, s->number_4);
    if (s->n_3)
        put_packed(m, 3, s->packed_3, s->n_3);
    kiln_pb_put_number(&m->w, 3, s->number_3);
    if (s->n_2)
        put_packed(m, 2, s->packed_2, s->n_2);
    kiln_pb_put_message(&m->w, 2, sample);
    kiln_pb_put_message(&m->w, 2, profile);
    kiln_pb_put_message(&m->w, 2, scope);
    kiln_pb_put_message(&m->w, 1, resource);
    return m;
}

static struct kiln_batch *decode(struct kiln_str bytes, struct kiln_otlp_info *info)
{
    struct kiln_err err = {0};
    struct kiln_builder *b;
    struct kiln_batch *batch = NULL;

    CHECK_OK(kiln_builder_new(NULL, &b));
    if (kiln_otlp_decode(bytes, NULL, b, info, &err) < 0) {
        print_error("%s: %s\n", err.where, err.text);
        fail();
    }
    CHECK_OK(kiln_builder_finish(b, &batch, &err));
    return batch;
}

static void check_fails(struct kiln_str bytes, int code, const char *where)
{
    struct kiln_err err = {0};
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_EQ(kiln_otlp_decode(bytes, NULL, b, NULL, &err), code);
    CHECK_EQ(err.code, code);
    CHECK_TEXT(err.where, where);
    CHECK(err.text[0] != '\0');
    kiln_builder_free(b);
}

static struct kiln_str encode(const struct kiln_batch *batch, struct kiln_buf *out,
                              const struct kiln_otlp_encode_opts *opts)
{
    kiln_buf_init(out, 64 << 20);
    CHECK_OK(kiln_otlp_encode(batch, opts, out, NULL));
    return kiln_buf_str(out);
}

/* ---- revisions ---- */

static void check_revision(const struct shape *shape, enum kiln_otlp_revision revision,
                           int64_t total, uint32_t n_attrs)
{
    struct message *m = message_of(shape);
    struct kiln_otlp_info info;
    struct kiln_batch *batch = decode(bytes_of(m), &info);

    CHECK_TEXT(kiln_otlp_revision_name(info.revision), kiln_otlp_revision_name(revision));
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), total);
    CHECK_EQ(batch->dict.sets[batch->samples[0].attrs].n, n_attrs);
    kiln_batch_unref(batch);
    message_free(m);
}

TEST(otlp, samples_of_1_10_have_attributes_then_link_then_values)
{
    check_revision(
        &(struct shape){.id_field = 7, .packed_2 = {1, 2}, .n_2 = 2, .packed_4 = {42}, .n_4 = 1},
        KILN_OTLP_1_10, 42, 2);
}

TEST(otlp, samples_of_1_9_have_values_then_attributes)
{
    check_revision(
        &(struct shape){.id_field = 7, .packed_2 = {42}, .n_2 = 1, .packed_3 = {1, 2}, .n_3 = 2},
        KILN_OTLP_1_9, 42, 2);
    check_revision(&(struct shape){.packed_2 = {42}, .n_2 = 1}, KILN_OTLP_1_9, 42, 0);
}

TEST(otlp, a_profile_of_1_8_has_its_id_in_field_8)
{
    check_revision(
        &(struct shape){.id_field = 8, .packed_2 = {42}, .n_2 = 1, .packed_3 = {1, 2}, .n_3 = 2},
        KILN_OTLP_1_8, 42, 2);
}

TEST(otlp, revision_names_go_both_ways)
{
    CHECK_EQ(kiln_otlp_revision_named(KILN_STR("1.11")), KILN_OTLP_1_10);
    CHECK_EQ(kiln_otlp_revision_named(KILN_STR("1.5")), KILN_OTLP_1_4);
    CHECK_EQ(kiln_otlp_revision_named(KILN_STR("2.0")), KILN_OTLP_AUTO);
    CHECK_TEXT(kiln_otlp_revision_name(KILN_OTLP_1_7), "1.7");
}

/* ---- errors name the place ---- */

#define SAMPLE_0 "resource_profiles[0].scope_profiles[0].profiles[0].samples[0]"

TEST(otlp, an_index_outside_its_table_names_the_path)
{
    struct message *m =
        message_of(&(struct shape){.packed_2 = {1, 9}, .n_2 = 2, .packed_4 = {1}, .n_4 = 1});

    check_fails(bytes_of(m), KILN_E_RANGE, SAMPLE_0 ".attribute_indices[1]");
    message_free(m);
}

TEST(otlp, a_negative_index_is_outside)
{
    struct message *m = message_of(
        &(struct shape){.packed_2 = {1}, .n_2 = 1, .packed_4 = {1}, .n_4 = 1, .number_3 = -1ull});

    check_fails(bytes_of(m), KILN_E_RANGE, SAMPLE_0 ".link_index");
    message_free(m);
}

TEST(otlp, every_truncation_of_a_message_is_an_error_or_a_shorter_message)
{
    struct message *m =
        message_of(&(struct shape){.packed_2 = {1, 2}, .n_2 = 2, .packed_4 = {42}, .n_4 = 1});
    struct kiln_str whole = bytes_of(m);
    size_t fine = 0;

    for (size_t len = 0; len < whole.len; len++) {
        struct kiln_builder *b;
        char *cut = malloc(len + 1); /* so that a read past the end is seen by the sanitizer */

        memcpy(cut, whole.ptr, len);
        CHECK_OK(kiln_builder_new(NULL, &b));
        fine += kiln_otlp_decode((struct kiln_str){cut, len}, NULL, b, NULL, NULL) == 0;
        kiln_builder_free(b);
        free(cut);
    }
    CHECK(fine <= 2); /* only what ends between the two fields of the message is one */
    message_free(m);
}

TEST(otlp, a_bad_profile_can_be_dropped_alone)
{
    struct message *m =
        message_of(&(struct shape){.packed_2 = {9}, .n_2 = 1, .packed_4 = {1}, .n_4 = 1});
    struct kiln_otlp_opts opts = {.drop_bad_profiles = true};
    struct kiln_otlp_info info;
    struct kiln_builder *b;
    struct kiln_batch *batch;

    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_otlp_decode(bytes_of(m), &opts, b, &info, NULL));
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    CHECK_EQ(info.dropped_profiles, 1);
    CHECK_TEXT(info.first_dropped.where, "profiles[0].samples[0].attribute_indices[0]");
    CHECK_EQ(batch->n_profiles, 0);
    CHECK_EQ(batch->n_samples, 0);
    kiln_batch_unref(batch);
    message_free(m);
}

TEST(otlp, invalid_utf8_is_refused)
{
    struct message *m = message();
    size_t mark = kiln_pb_mark(&m->w);

    kiln_pb_put_element(&m->w, 5, KILN_STR("\xc3\x28"));
    kiln_pb_put_element(&m->w, 5, KILN_STR_NONE);
    kiln_pb_put_message(&m->w, 2, mark);
    check_fails(bytes_of(m), KILN_E_UTF8, "dictionary.string_table[1]");
    message_free(m);
}

TEST(otlp, values_nested_without_end_hit_the_limit)
{
    struct message *m = message();
    size_t mark = kiln_pb_mark(&m->w);
    struct kiln_err err = {0};
    struct kiln_builder *b;

    for (int i = 0; i < 2000; i++) {
        kiln_pb_put_message(&m->w, 1, mark);
        kiln_pb_put_message(&m->w, 5, mark);
    }
    kiln_pb_put_message(&m->w, 2, mark);
    kiln_pb_put_message(&m->w, 6, mark);
    kiln_pb_put_message(&m->w, 2, mark);
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_EQ(kiln_otlp_decode(bytes_of(m), NULL, b, NULL, &err), KILN_E_LIMIT);
    CHECK(kiln_str_starts(kiln_str_of(err.where), KILN_STR("dictionary.attribute_table[0]")));
    kiln_builder_free(b);
    message_free(m);
}

/* ---- round trips ---- */

/* The dictionary of everything(): two locations of one stack, attributes of every kind. */
static uint32_t add_stack(struct kiln_builder *b, uint32_t attrs)
{
    struct kiln_function f = {0};
    struct kiln_line lines[2] = {{.line = 3}, {.line = 9, .column = 2}};
    struct kiln_mapping mapping = {.start = 0x1000, .limit = 0x2000, .offset = 7, .attrs = attrs};
    struct kiln_location leaf = {.address = 0x1234, .attrs = attrs};
    uint32_t location[2];

    f.name = kiln_builder_string(b, KILN_STR("parse"));
    f.filename = kiln_builder_string(b, KILN_STR("json.c"));
    lines[0].function = lines[1].function = kiln_builder_function(b, &f);
    mapping.filename = kiln_builder_string(b, KILN_STR("/bin/app"));
    leaf.mapping = kiln_builder_mapping(b, &mapping);
    location[0] = kiln_builder_location(b, &leaf, lines, 2);
    location[1] = kiln_builder_location(b, &(struct kiln_location){.address = 1}, lines, 1);
    return kiln_builder_stack(b, location, 2);
}

static uint32_t add_attrs(struct kiln_builder *b)
{
    struct kiln_value list[] = {kiln_value_double(0.5), kiln_value_bool(false)};
    struct kiln_attr entry = {.key = kiln_builder_string(b, KILN_STR("inner")),
                              .value = kiln_value_bytes(kiln_builder_string(b, KILN_STR("\xff")))};
    uint32_t attr[5];

    attr[0] = kiln_builder_text_attr(b, KILN_STR("z"), KILN_STR("text"));
    attr[1] = kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("n")), kiln_value_int(-5),
                                kiln_builder_string(b, KILN_STR("By")));
    attr[2] = kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("list")),
                                kiln_builder_array(b, list, 2), 0);
    attr[3] = kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("nothing")),
                                (struct kiln_value){0}, 0);
    attr[4] = kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("map")),
                                kiln_builder_map(b, &entry, 1), 0);
    return kiln_builder_set(b, attr, 5, NULL);
}

/* A batch with a little of everything OTLP can say. */
static struct kiln_batch *everything(void)
{
    struct kiln_resource resource = {.dropped_attrs = 3};
    struct kiln_scope scope = {0};
    struct kiln_profile profile = {.time_ns = 1000, .duration_ns = 50, .period = 19, .id = {1, 2}};
    struct kiln_builder *b;
    struct kiln_batch *batch;
    uint32_t set, stack, key;

    CHECK_OK(kiln_builder_new(NULL, &b));
    set = add_attrs(b);
    stack = add_stack(b, set);
    key = kiln_builder_text_attr(b, KILN_STR("service.name"), KILN_STR("shop"));
    resource.attrs = kiln_builder_set(b, &key, 1, NULL);
    resource.schema_url = kiln_builder_string(b, KILN_STR("https://schema"));
    kiln_builder_add_resource(b, &resource);
    key = kiln_builder_string(b, KILN_STR("service.name"));
    kiln_builder_add_entity(b, resource.schema_url, key, &key, 1, &key, 1);
    scope.name = kiln_builder_string(b, KILN_STR("kiln"));
    scope.version = kiln_builder_string(b, KILN_STR("1"));
    kiln_builder_add_scope(b, &scope);
    profile.attrs = set;
    profile.sample_type.type = kiln_builder_string(b, KILN_STR("cpu"));
    profile.sample_type.unit = kiln_builder_string(b, KILN_STR("nanoseconds"));
    profile.period_type = profile.sample_type;
    profile.payload_format = kiln_builder_string(b, KILN_STR("jfr"));
    profile.payload = KILN_STR("FLR\0");
    kiln_builder_add_profile(b, &profile);
    kiln_builder_add_sample(b, 0, stack, set,
                            kiln_builder_link(b, &(struct kiln_link){{1, 2, 3}, {4}}),
                            (int64_t[]){-1, 1 << 30}, (uint64_t[]){1000, 1001}, 2);
    kiln_builder_add_sample(b, 0, 0, 0, 0, NULL, (uint64_t[]){1002}, 1);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

static void check_round_trip(const struct kiln_batch *batch,
                             const struct kiln_otlp_encode_opts *opts)
{
    struct kiln_buf first, second;
    struct kiln_batch *again = decode(encode(batch, &first, opts), NULL);

    encode(again, &second, opts);
    CHECK(kiln_str_eq(kiln_buf_str(&first), kiln_buf_str(&second)));
    CHECK_EQ(again->n_samples, batch->n_samples);
    CHECK_EQ(again->n_observations, batch->n_observations);
    CHECK(memcmp(again->observations, batch->observations,
                 batch->n_observations * sizeof(*batch->observations)) == 0);
    kiln_batch_unref(again);
    kiln_buf_done(&first);
    kiln_buf_done(&second);
}

TEST(otlp, everything_survives_a_round_trip_byte_for_byte)
{
    struct kiln_batch *batch = everything();

    check_round_trip(batch, NULL);
    check_round_trip(batch, &(struct kiln_otlp_encode_opts){.string_refs = true});
    kiln_batch_unref(batch);
}

TEST(otlp, length_prefixed_records_are_read_one_after_the_other)
{
    struct message *m =
        message_of(&(struct shape){.packed_2 = {1, 2}, .n_2 = 2, .packed_4 = {42}, .n_4 = 1});
    struct kiln_str one = bytes_of(m);
    struct kiln_buf file;
    struct kiln_batch *batch;

    kiln_buf_init(&file, 1 << 20);
    for (int i = 0; i < 3; i++) {
        kiln_buf_add(&file, (char[]){0, 0, 0, (char)one.len}, 4);
        kiln_buf_add_str(&file, one);
    }
    CHECK(one.len < 128);
    CHECK(kiln_otlp_detect(kiln_buf_str(&file)));
    batch = decode(kiln_buf_str(&file), NULL);
    CHECK_EQ(batch->n_profiles, 3);
    CHECK_EQ(batch->dict.n_strings, 5);
    kiln_batch_unref(batch);
    kiln_buf_done(&file);
    message_free(m);
}

TEST(otlp, other_bytes_are_not_taken_for_otlp)
{
    CHECK(!kiln_otlp_detect(KILN_STR("")));
    CHECK(!kiln_otlp_detect(KILN_STR("main;parse 3\n")));
    CHECK(!kiln_otlp_detect(KILN_STR("{\"resourceProfiles\":[]}")));
    CHECK(!kiln_otlp_detect(KILN_STR("\x0a\x04\x08\x01\x10\x02\x12\x00")));
}

TEST(otlp, running_out_of_memory_leaks_nothing)
{
    struct kiln_batch *batch = everything();
    struct kiln_buf bytes;
    struct kiln_str wire = encode(batch, &bytes, NULL);
    int64_t live = kiln_mem_live();
    uint64_t n = 0;
    int r;

    do {
        struct kiln_batch *again = NULL;

        kiln_mem_fail_at(++n);
        r = kiln_decode(wire, NULL, &again, NULL, NULL);
        kiln_mem_fail_at(0);
        if (r == 0)
            kiln_batch_unref(again);
        CHECK_EQ(kiln_mem_live(), live);
    } while (r < 0);
    CHECK(n > 4);
    kiln_batch_unref(batch);
    kiln_buf_done(&bytes);
}

/* ---- real captures ---- */

static void check_capture(const char *name, const char *revision, uint32_t samples,
                          uint32_t observations)
{
    struct kiln_decode_info info;
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    size_t len = 0;
    char *data = kiln_test_read(kiln_test_data(name), &len);

    if (!data)
        SKIP("the captures are not beside this checkout");
    CHECK_OK(kiln_decode((struct kiln_str){data, len}, NULL, &batch, &info, &err));
    free(data);
    CHECK_EQ(info.format, KILN_FORMAT_OTLP);
    CHECK_TEXT(info.revision, revision);
    CHECK_EQ(batch->n_samples, samples);
    CHECK_EQ(batch->n_observations, observations);
    check_round_trip(batch, NULL);
    kiln_batch_unref(batch);
}

CAPTURE_TEST(otlp, a_capture_of_1_8_is_read_right_and_named)
{
    check_capture("otlp/ebpf-host.1.8.otlp", "1.8", 49, 189);
}

CAPTURE_TEST(otlp, a_capture_of_the_current_revision_is_read_right)
{
    check_capture("otlp/host-mix.1.11/00003.otlp", "1.10", 176, 187);
}

/* ---- senders that repeat themselves ---- */

TEST(otlp, a_sender_that_repeats_stacks_gets_them_interned)
{
    struct message *m = message();
    size_t dictionary = kiln_pb_mark(&m->w), resource, sample;
    struct kiln_batch *batch;

    for (uint32_t i = 3; i-- > 0;) { /* "", and the same stack twice */
        size_t mark = kiln_pb_mark(&m->w);

        if (i > 0)
            put_packed(m, 1, (uint64_t[]){i}, 1);
        kiln_pb_put_message(&m->w, 7, mark);
    }
    for (uint32_t i = 3; i-- > 0;) { /* "", and the same location twice */
        size_t mark = kiln_pb_mark(&m->w);

        kiln_pb_put_number(&m->w, 2, i ? 0x1000 : 0);
        kiln_pb_put_message(&m->w, 2, mark);
    }
    kiln_pb_put_message(&m->w, 2, dictionary);
    resource = kiln_pb_mark(&m->w);
    for (uint32_t i = 3; i-- > 1;) {
        sample = kiln_pb_mark(&m->w);
        put_packed(m, 4, (uint64_t[]){7}, 1);
        kiln_pb_put_number(&m->w, 1, i);
        kiln_pb_put_message(&m->w, 2, sample);
    }
    kiln_pb_put_message(&m->w, 2, resource);
    kiln_pb_put_message(&m->w, 2, resource);
    kiln_pb_put_message(&m->w, 1, resource);
    batch = decode(bytes_of(m), NULL);
    CHECK_EQ(batch->dict.n_locations, 2);
    CHECK_EQ(batch->dict.n_stacks, 2);
    CHECK_EQ(batch->samples[0].stack, 1);
    CHECK_EQ(batch->samples[1].stack, 1);
    kiln_batch_unref(batch);
    message_free(m);
}
