/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One meaning, two spellings: messages are written as senders write them, and then with an unknown
 * field, or in another order, in every entry, which the fast way leaves to the ordinary one.
 */
#include <stdlib.h>

#include "codec/otlp.h"
#include "codec/pb.h"
#include "test.h"

#define FUNCTIONS 40u
#define LOCATIONS 300u
#define STACKS    60u
#define SAMPLES   50u

enum spelling { USUAL, DESCENDING, UNKNOWN_FIELDS, LONG_NUMBERS };

/* What is wrong with the message, mostly at the entry before the last of its table. */
enum fault { NONE, BAD_FUNCTION, BAD_LINE, BAD_MAPPING, BAD_FRAME, BAD_STACK, BAD_SET, BAD_PAIRS };

struct writer {
    struct kiln_pb_out w;
    enum spelling spelling;
    enum fault fault;
};

/* Up to five number fields of an entry, by number; written backwards. */
static void put_numbers(struct writer *m, const uint64_t *numbers, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t field = m->spelling == DESCENDING ? i : n + 1 - i;

        if (m->spelling == LONG_NUMBERS && numbers[field]) { /* a tag of two bytes */
            kiln_pb_raw_varint(&m->w, numbers[field]);
            kiln_pb_raw_varint(&m->w, 0);
            m->w.at[0] = 0;
            kiln_pb_raw_varint(&m->w, KILN_PB_VARINT(field));
            m->w.at[0] |= 0x80;
        } else {
            kiln_pb_put_number(&m->w, field, numbers[field]);
        }
    }
}

static void end_entry(struct writer *m, uint32_t table, size_t mark)
{
    if (m->spelling == UNKNOWN_FIELDS)
        kiln_pb_put_number(&m->w, 15, 1);
    kiln_pb_put_message(&m->w, table, mark);
}

static void put_packed(struct writer *m, uint32_t field, const uint64_t *values, uint32_t n)
{
    size_t mark = kiln_pb_mark(&m->w);

    while (n-- > 0)
        kiln_pb_raw_varint(&m->w, values[n]);
    kiln_pb_put_message(&m->w, field, mark);
}

static void put_functions(struct writer *m)
{
    for (uint32_t i = FUNCTIONS; i-- > 1;) {
        size_t mark = kiln_pb_mark(&m->w);
        bool bad = m->fault == BAD_FUNCTION && i == FUNCTIONS - 2;

        put_numbers(m, (uint64_t[]){0, bad ? 999 : i % 7, i % 5, i % 3, i * 100}, 4);
        end_entry(m, 3, mark);
    }
    kiln_pb_put_element(&m->w, 3, KILN_STR_NONE);
}

static void put_lines(struct writer *m, uint32_t location)
{
    for (uint32_t i = location % 3; i-- > 0;) {
        size_t mark = kiln_pb_mark(&m->w);
        bool bad = m->fault == BAD_LINE && location == LOCATIONS - 2;

        put_numbers(m, (uint64_t[]){0, bad ? 999 : (location + i) % FUNCTIONS, i * 1000, i}, 3);
        end_entry(m, 3, mark);
    }
}

/* Addresses of all lengths, kernel ones included; every third location has lines, or two. */
static void put_locations(struct writer *m)
{
    for (uint32_t i = LOCATIONS; i-- > 1;) {
        size_t mark = kiln_pb_mark(&m->w);
        bool bad = m->fault == BAD_MAPPING && i == LOCATIONS - 3;
        uint64_t address = (i % 4 ? (uint64_t)i << (i % 5) * 11 : 0xffffffff80000000u + i);

        if (m->spelling != DESCENDING)
            put_packed(m, 4, (uint64_t[]){1 + i % 2}, 1);
        put_lines(m, i);
        put_numbers(m, (uint64_t[]){0, bad ? 9 : 0, address}, 2);
        if (m->spelling == DESCENDING)
            put_packed(m, 4, (uint64_t[]){1 + i % 2}, 1);
        end_entry(m, 2, mark);
    }
    kiln_pb_put_element(&m->w, 2, KILN_STR_NONE);
}

static void put_stacks(struct writer *m)
{
    for (uint32_t i = STACKS; i-- > 1;) {
        size_t mark = kiln_pb_mark(&m->w);
        uint64_t frames[STACKS * 2];

        for (uint32_t k = 0; k < i * 2; k++)
            frames[k] = 1 + (i * 37 + k * 101) % (LOCATIONS - 1);
        if (m->fault == BAD_FRAME && i == STACKS - 2)
            frames[5] = LOCATIONS;
        put_packed(m, 1, frames, i * 2);
        end_entry(m, 7, mark);
    }
    kiln_pb_put_element(&m->w, 7, KILN_STR_NONE);
}

static void put_dictionary(struct writer *m)
{
    static const char *const strings[] = {"", "main", "parse", "read", "a", "b", "c"};
    size_t mark = kiln_pb_mark(&m->w);

    put_stacks(m);
    for (uint32_t i = 4; i-- > 1;) {
        size_t entry = kiln_pb_mark(&m->w);

        kiln_pb_put_number(&m->w, 1, 3 + i);
        kiln_pb_put_message(&m->w, 6, entry);
    }
    kiln_pb_put_element(&m->w, 6, KILN_STR_NONE);
    for (uint32_t i = KILN_ARRAY_LEN(strings); i-- > 0;)
        kiln_pb_put_element(&m->w, 5, kiln_str_of(strings[i]));
    kiln_pb_put_element(&m->w, 4, KILN_STR_NONE);
    put_functions(m);
    put_locations(m);
    kiln_pb_put_element(&m->w, 1, KILN_STR_NONE);
    kiln_pb_put_message(&m->w, 2, mark);
}

static void put_sample(struct writer *m, uint32_t i)
{
    size_t mark = kiln_pb_mark(&m->w), times;
    bool last = i == SAMPLES - 2;

    times = kiln_pb_mark(&m->w);
    for (uint32_t k = 0; k < i % 3; k++)
        kiln_pb_raw_fixed64(&m->w, 1000 + k);
    if (i % 3)
        kiln_pb_put_message(&m->w, 5, times);
    put_packed(m, 4, (uint64_t[]){i, i * 1000000}, m->fault != BAD_PAIRS && i % 3 == 2 ? 2 : 1);
    put_packed(m, 2, (uint64_t[]){1 + i % 2, m->fault == BAD_SET && last ? 9 : 3}, 2);
    put_numbers(m, (uint64_t[]){0, m->fault == BAD_STACK && last ? STACKS : i % STACKS}, 1);
    end_entry(m, 2, mark);
}

static struct kiln_str write_message(enum spelling spelling, enum fault fault, struct kiln_buf *out)
{
    struct writer m = {.spelling = spelling, .fault = fault};
    size_t mark;

    kiln_pb_out_init(&m.w, 0, 1 << 20);
    put_dictionary(&m);
    mark = kiln_pb_mark(&m.w);
    kiln_pb_put_fixed64(&m.w, 3, 1700000000);
    for (uint32_t i = SAMPLES; i-- > 0;)
        put_sample(&m, i);
    kiln_pb_put_message(&m.w, 2, mark);
    kiln_pb_put_message(&m.w, 2, mark);
    kiln_pb_put_message(&m.w, 1, mark);
    kiln_buf_init(out, 1 << 20);
    CHECK_OK(kiln_pb_out_flush(&m.w, out));
    kiln_pb_out_done(&m.w);
    return kiln_buf_str(out);
}

/* Decodes and writes again. */
static struct kiln_str rewritten(enum spelling spelling, struct kiln_buf *out)
{
    struct kiln_buf in;
    struct kiln_str bytes = write_message(spelling, NONE, &in);
    struct kiln_err err = {0};
    struct kiln_builder *b;
    struct kiln_batch *batch = NULL;

    CHECK_OK(kiln_builder_new(NULL, &b));
    if (kiln_otlp_decode(bytes, NULL, b, NULL, &err) < 0)
        print_error("%s: %s\n", err.where, err.text);
    CHECK_OK(err.code);
    CHECK_OK(kiln_builder_finish(b, &batch, &err));
    CHECK_EQ(batch->dict.n_locations, LOCATIONS);
    CHECK_EQ(batch->dict.n_functions, FUNCTIONS);
    CHECK_EQ(batch->dict.n_stacks, STACKS);
    CHECK_EQ(batch->dict.n_frames, STACKS * (STACKS - 1));
    CHECK_EQ(batch->n_samples, SAMPLES);
    CHECK_EQ(batch->dict.locations[4].address, 0xffffffff80000004u);
    kiln_buf_init(out, 1 << 20);
    CHECK_OK(kiln_otlp_encode(batch, NULL, out, NULL));
    kiln_batch_unref(batch);
    kiln_buf_done(&in);
    return kiln_buf_str(out);
}

TEST(otlp_usual, every_spelling_of_a_message_means_the_same)
{
    struct kiln_buf usual, other;
    struct kiln_str expected = rewritten(USUAL, &usual);

    for (enum spelling s = DESCENDING; s <= LONG_NUMBERS; s++) {
        struct kiln_str got = rewritten(s, &other);

        CHECK(kiln_str_eq(got, expected));
        kiln_buf_done(&other);
    }
    kiln_buf_done(&usual);
}

/* The same error at the same place, whichever way found it. */
static void check_fault(enum fault fault, int code, const char *where)
{
    for (enum spelling s = USUAL; s <= LONG_NUMBERS; s++) {
        struct kiln_buf buf;
        struct kiln_str bytes = write_message(s, fault, &buf);
        struct kiln_err err = {0};
        struct kiln_builder *b;

        CHECK_OK(kiln_builder_new(NULL, &b));
        CHECK_EQ(kiln_otlp_decode(bytes, NULL, b, NULL, &err), code);
        CHECK_TEXT(err.where, where);
        kiln_builder_free(b);
        kiln_buf_done(&buf);
    }
}

#define SAMPLE_2  "resource_profiles[0].scope_profiles[0].profiles[0].samples[2]"
#define SAMPLE_48 "resource_profiles[0].scope_profiles[0].profiles[0].samples[48]"

TEST(otlp_usual, what_is_wrong_is_named_as_ever)
{
    check_fault(BAD_FUNCTION, KILN_E_RANGE, "dictionary.function_table[38].name_strindex");
    check_fault(BAD_LINE, KILN_E_RANGE, "dictionary.location_table[298].lines[0].function_index");
    check_fault(BAD_MAPPING, KILN_E_RANGE, "dictionary.location_table[297].mapping_index");
    check_fault(BAD_FRAME, KILN_E_RANGE, "dictionary.stack_table[58].location_indices[5]");
    check_fault(BAD_STACK, KILN_E_RANGE, SAMPLE_48 ".stack_index");
    check_fault(BAD_SET, KILN_E_RANGE, SAMPLE_48 ".attribute_indices[1]");
    check_fault(BAD_PAIRS, KILN_E_MALFORMED, SAMPLE_2);
}

TEST(otlp_usual, a_message_with_any_byte_changed_or_cut_off_never_reads_outside)
{
    struct kiln_buf buf;
    struct kiln_str whole = write_message(USUAL, NONE, &buf);

    for (size_t at = 0; at < whole.len; at += 3) {
        size_t len = at % 2 ? whole.len : at;
        char *copy =
            malloc(len ? len : 1); /* so that a read past the end is seen by the sanitizer */
        struct kiln_builder *b;

        memcpy(copy, whole.ptr, len);
        if (len > at)
            copy[at] = (char)(copy[at] ^ (at % 7 ? 0x80 : 0x7f));
        CHECK_OK(kiln_builder_new(NULL, &b));
        (void)!kiln_otlp_decode((struct kiln_str){copy, len}, NULL, b, NULL, NULL);
        kiln_builder_free(b);
        free(copy);
    }
    kiln_buf_done(&buf);
}
