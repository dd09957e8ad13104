/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "codec/gperftools.h"
#include "test.h"

/* Writes words of a size and order of bytes, ended by UINT64_MAX. */
static void put_words(struct kiln_buf *buf, unsigned size, bool big_endian, const uint64_t *words)
{
    for (; *words != UINT64_MAX; words++) {
        for (unsigned i = 0; i < size; i++)
            kiln_buf_putc(buf, (char)(*words >> 8 * (big_endian ? size - 1 - i : i)));
    }
}

#define WORDS(...) ((const uint64_t[]){__VA_ARGS__, UINT64_MAX})
#define END        0, 1, 0

static struct kiln_buf file(const uint64_t *words, const char *text)
{
    struct kiln_buf buf;

    kiln_buf_init(&buf, 1u << 20);
    put_words(&buf, 8, false, words);
    kiln_buf_puts(&buf, text);
    return buf;
}

static struct kiln_batch *try_decode(struct kiln_str raw, struct kiln_err *err)
{
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;

    *err = (struct kiln_err){0};
    CHECK_OK(kiln_builder_new(NULL, &b));
    if (kiln_gperftools_decode(raw, b, err) < 0) {
        kiln_builder_free(b);
        return NULL;
    }
    CHECK_OK(kiln_builder_finish(b, &batch, err));
    return batch;
}

static struct kiln_batch *decode(const struct kiln_buf *buf)
{
    struct kiln_err err;
    struct kiln_batch *batch = try_decode(kiln_buf_str(buf), &err);

    if (!batch)
        print_error("%s: %s\n", err.where, err.text);
    CHECK(batch != NULL);
    return batch;
}

/* The addresses of a stack, leaf first: "10 1f". */
static const char *addresses(const struct kiln_batch *batch, uint32_t sample)
{
    static char text[200];
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range stack = d->stacks[batch->samples[sample].stack];
    size_t len = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < stack.n; i++)
        len +=
            (size_t)snprintf(text + len, sizeof(text) - len, "%s%llx", i ? " " : "",
                             (unsigned long long)d->locations[d->frames[stack.first + i]].address);
    return text;
}

TEST(gperftools, counts_become_samples_and_cpu_time)
{
    struct kiln_buf buf = file(WORDS(0, 3, 0, 10000, 0, 2, 2, 0x10, 0x20, 5, 1, 0x11, END), "");
    struct kiln_batch *batch = decode(&buf);

    CHECK(kiln_gperftools_detect(kiln_buf_str(&buf)));
    CHECK_EQ(batch->n_profiles, 2);
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.type), "cpu");
    CHECK_EQ(batch->profiles[0].period, 10000000);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 20000000);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[3]), 5);
    CHECK_TEXT(addresses(batch, 0), "10 1f");
    CHECK_TEXT(addresses(batch, 1), "11");
    kiln_batch_unref(batch);
    kiln_buf_done(&buf);
}

TEST(gperftools, words_of_any_size_and_order_are_read)
{
    for (unsigned way = 0; way < 4; way++) {
        struct kiln_buf buf;
        struct kiln_batch *batch;

        kiln_buf_init(&buf, 1u << 20);
        put_words(&buf, way & 1 ? 8 : 4, way & 2,
                  WORDS(0, 3, 0, 1000, 0, 1, 1, 0x12345678, 1, 1, 0x9abc, END));
        CHECK(kiln_gperftools_detect(kiln_buf_str(&buf)));
        batch = decode(&buf);
        CHECK_TEXT(addresses(batch, 0), "12345678");
        kiln_batch_unref(batch);
        kiln_buf_done(&buf);
    }
}

TEST(gperftools, the_frame_of_the_signal_handler_is_taken_away)
{
    struct kiln_buf buf = file(WORDS(0, 3, 0, 1, 0, 1, 3, 0x10, 0x99, 0x31, 1, 3, 0x11, 0x99, 0x41,
                                     1, 3, 0x12, 0x99, 0x51, END),
                               "");
    struct kiln_batch *batch = decode(&buf);

    CHECK_TEXT(addresses(batch, 0), "10 30");
    CHECK_TEXT(addresses(batch, 2), "12 50");
    kiln_batch_unref(batch);
    kiln_buf_done(&buf);
}

TEST(gperftools, a_leaf_that_comes_twice_is_one)
{
    struct kiln_buf buf =
        file(WORDS(0, 3, 0, 1, 0, 1, 3, 0x10, 0x10, 0x31, 1, 2, 0x20, 0x31, 1, 1, 7, END), "");
    struct kiln_batch *batch = decode(&buf);

    CHECK_TEXT(addresses(batch, 0), "10 30");
    CHECK_TEXT(addresses(batch, 1), "20 30");
    kiln_batch_unref(batch);
    kiln_buf_done(&buf);
}

TEST(gperftools, mappings_are_joined_and_the_program_comes_first)
{
    struct kiln_buf buf = file(WORDS(0, 3, 0, 1, 0, 1, 1, 0x7100, 1, 1, 0x1500, 1, 1, 0xf000, END),
                               "build=/usr/bin\n"
                               "7000-7800 r-xp 00000000 08:01 42 /lib/libc.so.6\n"
                               "00001000-00002000 r-xp 00000000 08:01 41 $build/app\n"
                               "00002000-00003000 r-xp 00001000 08:01 41 $build/app\n"
                               "00003000-00004000 rw-p 00002000 08:01 41 $build/app\n");
    struct kiln_batch *batch = decode(&buf);
    const struct kiln_dict *d = &batch->dict;

    CHECK_EQ(d->n_mappings, 4);
    CHECK_STR(d->strings[d->mappings[1].filename], "/usr/bin/app");
    CHECK_EQ(d->mappings[1].limit, 0x3000);
    CHECK_STR(d->strings[d->mappings[2].filename], "/lib/libc.so.6");
    CHECK_EQ(d->locations[1].mapping, 2);
    CHECK_EQ(d->locations[2].mapping, 1);
    CHECK_EQ(d->locations[3].mapping, 3); /* nowhere: a mapping that is everywhere */
    CHECK(d->mappings[3].limit == UINT64_MAX);
    kiln_batch_unref(batch);
    kiln_buf_done(&buf);
}

TEST(gperftools, java_says_names_instead_of_a_map)
{
    struct kiln_buf buf = file(WORDS(0, 3, 1, 1, 0, 4, 2, 3, 6, 1, 1, 9, END),
                               " 0x3 GC\n 0x6 com.example.run (Main.java:12)\n"
                               " 0x9 memcpy (/usr/lib/libc.so)\n 0x77 unused\n");
    struct kiln_batch *batch = decode(&buf);
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range stack = d->stacks[batch->samples[0].stack];
    const struct kiln_location *root = &d->locations[d->frames[stack.first + 1]];
    const struct kiln_line *line = &d->lines[root->first];

    CHECK_EQ(stack.n, 2);
    CHECK_EQ(root->address, 0);
    CHECK_STR(d->strings[d->functions[line->function].name], "com.example.run");
    CHECK_STR(d->strings[d->functions[line->function].filename], "Main.java");
    CHECK_EQ(line->line, 12);
    CHECK_STR(d->strings[d->functions[3].filename], "libc.so");
    kiln_batch_unref(batch);
    kiln_buf_done(&buf);
}

TEST(gperftools, an_error_names_its_place)
{
    struct kiln_buf buf = file(WORDS(0, 3, 0, 1, 0, 1, 1, 7, 1, 9, 7), "");
    struct kiln_err err;

    CHECK(try_decode(kiln_buf_str(&buf), &err) == NULL);
    CHECK_EQ(err.code, KILN_E_TRUNCATED);
    CHECK_TEXT(err.where, "stack[1]");
    CHECK(!kiln_gperftools_detect(KILN_STR("main;read 3\n")));
    CHECK(try_decode(KILN_STR("main;read 3\n"), &err) == NULL);
    CHECK_TEXT(err.where, "header");
    kiln_buf_done(&buf);
}

TEST(gperftools, every_cut_of_a_file_is_an_error_or_a_smaller_profile)
{
    struct kiln_buf buf = file(WORDS(0, 3, 0, 1, 0, 1, 2, 0x1100, 0x1200, 1, 1, 7, END),
                               "1000-2000 r-xp 0 8:1 4 /a\n");

    for (size_t len = 0; len <= buf.len; len++) {
        char *copy = malloc(len ? len : 1);
        struct kiln_err err;
        struct kiln_batch *batch;

        memcpy(copy, buf.ptr, len);
        batch = try_decode((struct kiln_str){copy, len}, &err);
        CHECK(batch || err.code < 0);
        kiln_batch_unref(batch);
        free(copy);
    }
    kiln_buf_done(&buf);
}
