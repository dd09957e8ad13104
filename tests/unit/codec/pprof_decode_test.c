/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/compress.h"
#include "base/mem.h"
#include "pprof_make.h"
#include "starved.h"

/* strings: 1 cpu 2 nanoseconds 3 main 4 read 5 a.c 6 app 7 abc/def 8 thread 9 ms 10 samples 11
 * count */
#define WORDS "cpu nanoseconds main read a.c app abc/def thread ms samples count"

/* A sample of packed locations and values, and labels as ready bytes. */
static void put_sample(struct making *m, const uint64_t *ids, size_t n_ids, const int64_t *values,
                       size_t n_values, struct kiln_str labels)
{
    struct making sample = make(), packed = make();

    for (size_t i = 0; i < n_ids; i++)
        put_varint(&packed, ids[i]);
    put_bytes(&sample, 1, kiln_buf_str(&packed.buf));
    kiln_buf_clear(&packed.buf);
    for (size_t i = 0; i < n_values; i++)
        put_varint(&packed, (uint64_t)values[i]);
    put_bytes(&sample, 2, kiln_buf_str(&packed.buf));
    kiln_buf_add_str(&sample.buf, labels);
    put_bytes(m, 2, kiln_buf_str(&sample.buf));
    kiln_buf_done(&sample.buf);
    kiln_buf_done(&packed.buf);
}

/* A location with one line for each function. */
static void put_location(struct making *m, int id, int mapping, int address,
                         const unsigned *functions, size_t n)
{
    struct making location = make();

    put_number(&location, 1, (uint64_t)id);
    put_number(&location, 2, (uint64_t)mapping);
    put_number(&location, 3, (uint64_t)address);
    for (size_t i = 0; i < n; i++)
        put_fields(&location, 4, 1, functions[i], 2, 10 + (int)i, 0);
    put_bytes(m, 4, kiln_buf_str(&location.buf));
    kiln_buf_done(&location.buf);
}

/* samples/count and cpu/nanoseconds; "main;read 3" with read inlined into main. */
static struct making small_profile(struct kiln_str labels)
{
    struct making m = make();

    put_fields(&m, 1, 1, 10, 2, 11, 0);
    put_fields(&m, 1, 1, 1, 2, 2, 0);
    put_sample(&m, (uint64_t[]){7, 8}, 2, (int64_t[]){3, 30}, 2, labels);
    put_fields(&m, 3, 1, 1, 2, 4096, 3, 8192, 5, 6, 6, 7, 7, 1, 0);
    put_location(&m, 7, 1, 0x1100, (unsigned[]){2, 1}, 2);
    put_location(&m, 8, 1, 0x1200, (unsigned[]){1}, 1);
    put_fields(&m, 5, 1, 1, 2, 3, 4, 5, 0);
    put_fields(&m, 5, 1, 2, 2, 4, 4, 5, 5, 3, 0);
    put_strings(&m, WORDS);
    put_number(&m, 9, 1000);
    put_number(&m, 10, 2000);
    put_fields(&m, 11, 1, 1, 2, 2, 0);
    put_number(&m, 12, 10);
    return m;
}

static struct kiln_batch *decode(struct making *m)
{
    struct kiln_err err;
    struct kiln_batch *batch = decode_bytes(kiln_buf_str(&m->buf), &err);

    if (!batch)
        print_error("%s: %s\n", err.where, err.text);
    CHECK(batch != NULL);
    return batch;
}

/* Decodes what must fail, and checks the place and the code. */
static void check_fails(struct making *m, int code, const char *where)
{
    struct kiln_err err;

    CHECK(decode_bytes(kiln_buf_str(&m->buf), &err) == NULL);
    CHECK_TEXT(err.where, where);
    CHECK_EQ(err.code, code);
    CHECK(err.text[0] != '\0');
    kiln_buf_done(&m->buf);
}

TEST(pprof_decode, each_sample_type_becomes_a_profile_and_the_default_comes_first)
{
    struct making m = small_profile(KILN_STR(""));
    struct kiln_batch *batch = decode(&m);
    const struct kiln_profile *cpu = &batch->profiles[0], *samples = &batch->profiles[1];

    CHECK_EQ(batch->n_resources, 1);
    CHECK_EQ(batch->n_scopes, 1);
    CHECK_EQ(batch->n_profiles, 2);
    CHECK_STR(kiln_batch_str(batch, cpu->sample_type.type), "cpu");
    CHECK_STR(kiln_batch_str(batch, samples->sample_type.type), "samples");
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[cpu->first_sample]), 30);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[samples->first_sample]), 3);
    CHECK_EQ(cpu->time_ns, 1000);
    CHECK_EQ(cpu->duration_ns, 2000);
    CHECK_EQ(samples->period, 10);
    CHECK_STR(kiln_batch_str(batch, samples->period_type.unit), "nanoseconds");
    CHECK_EQ(kiln_set_find(batch, batch->scopes[0].attrs, KILN_STR("pprof.scope.sample_type_order"))
                 ->value.n,
             2);
    kiln_batch_unref(batch);
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, stacks_are_leaf_first_and_inlined_lines_keep_their_order)
{
    struct making m = small_profile(KILN_STR(""));
    struct kiln_batch *batch = decode(&m);
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range stack = d->stacks[batch->samples[0].stack];
    const struct kiln_location *leaf = &d->locations[d->frames[stack.first]];
    const struct kiln_line *lines = &d->lines[leaf->first];

    CHECK_EQ(stack.n, 2);
    CHECK_EQ(leaf->address, 0x1100);
    CHECK_EQ(leaf->n, 2);
    CHECK_STR(d->strings[d->functions[lines[0].function].name], "read");
    CHECK_STR(d->strings[d->functions[lines[1].function].name], "main");
    CHECK_EQ(d->functions[lines[0].function].start_line, 3);
    CHECK_EQ(lines[1].line, 11);
    kiln_batch_unref(batch);
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, a_mapping_keeps_its_build_id_and_flags_as_attributes)
{
    struct making m = small_profile(KILN_STR(""));
    struct kiln_batch *batch = decode(&m);
    const struct kiln_mapping *mapping = &batch->dict.mappings[1];

    CHECK_STR(kiln_batch_str(batch, mapping->filename), "app");
    CHECK_STR(kiln_set_text(batch, mapping->attrs, KILN_STR("process.executable.build_id.go")),
              "abc/def");
    CHECK(kiln_set_find(batch, mapping->attrs, KILN_STR("pprof.mapping.has_functions")) != NULL);
    CHECK(kiln_set_find(batch, mapping->attrs, KILN_STR("pprof.mapping.has_filenames")) == NULL);
    kiln_batch_unref(batch);
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, labels_become_attributes_with_units)
{
    struct making labels = make(), m;
    const struct kiln_attr *attr;
    struct kiln_batch *batch;

    put_fields(&labels, 3, 1, 8, 3, 42, 4, 9, 0);
    put_fields(&labels, 3, 1, 5, 2, 6, 0);
    m = small_profile(kiln_buf_str(&labels.buf));
    batch = decode(&m);
    attr = kiln_set_find(batch, batch->samples[0].attrs, KILN_STR("thread"));
    CHECK_EQ(attr->value.kind, KILN_VALUE_INT);
    CHECK_EQ(attr->value.i, 42);
    CHECK_STR(kiln_batch_str(batch, attr->unit), "ms");
    CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("a.c")), "app");
    CHECK_EQ(batch->samples[0].attrs, batch->samples[1].attrs);
    kiln_batch_unref(batch);
    kiln_buf_done(&labels.buf);
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, several_values_of_one_label_become_an_array)
{
    struct making labels = make(), m;
    const struct kiln_attr *attr, *children;
    struct kiln_batch *batch;

    put_fields(&labels, 3, 1, 8, 3, 1, 4, 9, 0);
    put_fields(&labels, 3, 1, 8, 2, 6, 0);
    put_fields(&labels, 3, 1, 8, 3, 2, 4, 2, 0);
    m = small_profile(kiln_buf_str(&labels.buf));
    batch = decode(&m);
    attr = kiln_set_find(batch, batch->samples[0].attrs, KILN_STR("thread"));
    CHECK_EQ(attr->value.kind, KILN_VALUE_ARRAY);
    CHECK_EQ(attr->value.n, 3);
    children = &batch->dict.nested[attr->value.first];
    CHECK_EQ(children[0].value.kind, KILN_VALUE_MAP);
    CHECK_EQ(children[1].value.kind, KILN_VALUE_STRING);
    CHECK_EQ(children[2].value.kind, KILN_VALUE_MAP);
    kiln_batch_unref(batch);
    kiln_buf_done(&labels.buf);
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, ids_may_be_any_number)
{
    struct making m = make();
    struct kiln_batch *batch;
    uint64_t huge = UINT64_MAX - 1;
    struct making location = make();

    put_fields(&m, 1, 1, 1, 2, 2, 0);
    put_number(&location, 1, huge);
    put_number(&location, 3, 77);
    put_bytes(&m, 4, kiln_buf_str(&location.buf));
    put_sample(&m, &huge, 1, (int64_t[]){5}, 1, KILN_STR(""));
    put_strings(&m, WORDS);
    batch = decode(&m);
    CHECK_EQ(batch->dict.locations[batch->dict.frames[0]].address, 77);
    kiln_batch_unref(batch);
    kiln_buf_done(&location.buf);
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, numbers_need_not_be_packed)
{
    struct making m = make();
    struct kiln_batch *batch;

    put_fields(&m, 1, 1, 1, 2, 2, 0);
    put_fields(&m, 4, 1, 1, 3, 77, 0);
    put_fields(&m, 4, 1, 2, 3, 78, 0);
    put_fields(&m, 2, 1, 1, 1, 2, 2, 9, 0);
    put_strings(&m, WORDS);
    batch = decode(&m);
    CHECK_EQ(batch->dict.stacks[batch->samples[0].stack].n, 2);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 9);
    kiln_batch_unref(batch);
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, bad_bytes_in_texts_are_replaced)
{
    struct making m = make();
    struct kiln_batch *batch;

    put_fields(&m, 1, 1, 1, 2, 2, 0);
    put_strings(&m, "a\xff\xc3\xa9 b");
    batch = decode(&m);
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.type), "a\xef\xbf\xbd\xc3\xa9");
    kiln_batch_unref(batch);
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, an_error_names_its_place)
{
    struct making m = small_profile(KILN_STR(""));

    put_sample(&m, (uint64_t[]){7, 8, 9}, 3, (int64_t[]){3, 30}, 2, KILN_STR(""));
    check_fails(&m, KILN_E_RANGE, "sample[1].location_id[2]");
    m = small_profile(KILN_STR(""));
    put_sample(&m, (uint64_t[]){7}, 1, (int64_t[]){3}, 1, KILN_STR(""));
    check_fails(&m, KILN_E_MALFORMED, "sample[1].value");
    m = small_profile(KILN_STR(""));
    put_fields(&m, 5, 1, 3, 2, 400, 0);
    check_fails(&m, KILN_E_RANGE, "function[2].name");
    m = small_profile(KILN_STR(""));
    put_fields(&m, 5, 1, 2, 0);
    check_fails(&m, KILN_E_MALFORMED, "function[2].id");
    m = small_profile(KILN_STR(""));
    put_location(&m, 9, 2, 0, NULL, 0);
    check_fails(&m, KILN_E_RANGE, "location[2].mapping_id");
    m = small_profile(KILN_STR(""));
    put_location(&m, 9, 1, 0, (unsigned[]){1, 3}, 2);
    check_fails(&m, KILN_E_RANGE, "location[2].line[1].function_id");
    m = small_profile(KILN_STR("\x1a\x02\x08\x7f"));
    check_fails(&m, KILN_E_RANGE, "sample[0].label[0].key");
    m = small_profile(KILN_STR(""));
    put_number(&m, 9, 1001);
    check_fails(&m, KILN_E_MALFORMED, "time_nanos");
    m = small_profile(KILN_STR(""));
    put_number(&m, 13, 99);
    check_fails(&m, KILN_E_RANGE, "comment[0]");
}

TEST(pprof_decode, many_types_in_few_bytes_ask_for_no_memory)
{
    struct making m = make();

    for (int i = 0; i < 5000; i++) {
        put_fields(&m, 1, 1, 1, 2, 2, 0);
        put_bytes(&m, 2, KILN_STR(""));
    }
    put_strings(&m, WORDS);
    check_fails(&m, KILN_E_MALFORMED, "sample");
}

TEST(pprof_decode, every_cut_of_a_profile_is_an_error_or_a_smaller_profile)
{
    struct making m = small_profile(KILN_STR("\x1a\x04\x08\x01\x10\x02"));
    struct kiln_str all = kiln_buf_str(&m.buf);
    struct kiln_err err;

    for (size_t len = 0; len < all.len; len++) {
        char *copy = malloc(len ? len : 1); /* so that a sanitizer sees a read past the end */
        struct kiln_batch *batch;

        memcpy(copy, all.ptr, len);
        batch = decode_bytes((struct kiln_str){copy, len}, &err);
        CHECK(batch || err.code < 0);
        kiln_batch_unref(batch);
        free(copy);
    }
    kiln_buf_done(&m.buf);
}

TEST(pprof_decode, old_text_formats_are_refused_by_name)
{
    struct kiln_str text = KILN_STR("heap profile: 1: 2 [3: 4] @ heapprofile\n");
    struct kiln_err err;

    CHECK(kiln_pprof_detect(text));
    CHECK(decode_bytes(text, &err) == NULL);
    CHECK_EQ(err.code, KILN_E_UNSUPPORTED);
    CHECK(strstr(err.text, "heap") != NULL);
}

TEST(pprof_decode, running_out_of_memory_anywhere_leaks_nothing)
{
    struct making m = small_profile(KILN_STR("\x1a\x04\x08\x01\x10\x02\x1a\x04\x08\x01\x10\x03"));
    struct kiln_starved s = {0};
    struct kiln_batch *batch = NULL;

    while (kiln_test_starve(&s)) {
        struct kiln_err err = {0};
        struct kiln_builder *b;

        s.r = kiln_builder_new(NULL, &b);
        if (s.r < 0)
            continue;
        s.r = kiln_pprof_decode(kiln_buf_str(&m.buf), b, &err);
        if (s.r < 0)
            kiln_builder_free(b);
        else
            s.r = kiln_builder_finish(b, &batch, &err);
    }
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), s.live);
    kiln_buf_done(&m.buf);
}

TEST(pprof_detect, knows_a_pprof_and_nothing_else)
{
    struct making m = small_profile(KILN_STR("")), otlp = make(), resource = make();
    struct kiln_str all = kiln_buf_str(&m.buf);

    CHECK(kiln_pprof_detect(all));
    CHECK(kiln_pprof_detect((struct kiln_str){all.ptr, all.len / 2}));
    CHECK(!kiln_pprof_detect(KILN_STR("")));
    CHECK(!kiln_pprof_detect(KILN_STR("main;read 3\n")));
    CHECK(!kiln_pprof_detect(KILN_STR("{\"resourceProfiles\":[]}")));
    CHECK(!kiln_pprof_detect(KILN_STR("\0\0\0\0\3\0\0\0\0\0\0\0")));
    put_bytes(&resource, 1, KILN_STR(""));
    put_bytes(&resource, 2, KILN_STR("\x12\x00"));
    put_bytes(&otlp, 1, kiln_buf_str(&resource.buf));
    put_bytes(&otlp, 2, KILN_STR("\x2a\x00"));
    CHECK(!kiln_pprof_detect(kiln_buf_str(&otlp.buf)));
    kiln_buf_done(&resource.buf);
    kiln_buf_done(&otlp.buf);
    kiln_buf_done(&m.buf);
}

/* Decodes a real capture and checks the memory that took against the bytes it has uncompressed. */
static void check_memory(const char *name, uint32_t n_samples)
{
    const char *path = kiln_test_data(name);
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    struct kiln_buf raw;
    size_t len = 0;
    char *data = kiln_test_read(path, &len);

    if (!data)
        SKIP("no real captures here");
    kiln_buf_init(&raw, 1u << 28);
    CHECK_OK(kiln_decompress(KILN_GZIP, (struct kiln_str){data, len}, &raw, &err));
    CHECK(kiln_pprof_detect(kiln_buf_str(&raw)));
    batch = decode_bytes(kiln_buf_str(&raw), &err);
    CHECK(batch != NULL);
    CHECK_EQ(batch->n_samples, n_samples);
    CHECK(kiln_batch_peak_bytes(batch) <= 3 * raw.len);
    kiln_batch_unref(batch);
    kiln_buf_done(&raw);
    free(data);
}

CAPTURE_TEST(pprof_decode, a_large_cpu_profile_takes_three_times_its_bytes_at_most)
{
    check_memory("pprof/large.cpu.pb.gz", 2 * 20430);
}

CAPTURE_TEST(pprof_decode, a_heap_profile_takes_three_times_its_bytes_at_most)
{
    check_memory("pprof/go-heap.pb.gz", 4 * 11951);
}
