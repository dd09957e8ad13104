/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks.h"
#include "base/buf.h"
#include "base/mem.h"
#include "test.h"

static uint32_t frame(struct kiln_builder *b, struct kiln_str name)
{
    struct kiln_function f = {.name = kiln_builder_string(b, name)};
    struct kiln_line line = {.function = kiln_builder_function(b, &f)};

    return kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
}

static uint32_t stack(struct kiln_builder *b, struct kiln_str names)
{
    uint32_t root_first[64], frames[64], n = 0;

    while (names.ptr) {
        assert_true(n < 64);
        root_first[n++] = frame(b, kiln_str_cut(&names, ';'));
    }
    for (uint32_t i = 0; i < n; i++)
        frames[i] = root_first[n - 1 - i];
    return kiln_builder_stack(b, frames, n);
}

void draw_stacks(struct kiln_builder *b, uint32_t profile, const char *drawing)
{
    struct kiln_str rest = kiln_str_of(drawing);

    while (rest.len) {
        struct kiln_str value = kiln_str_cut(&rest, '\n');
        struct kiln_str names = kiln_str_cut(&value, ' ');
        int64_t number;

        CHECK_OK(kiln_str_parse_i64(value, &number));
        kiln_builder_add_value(b, profile, stack(b, names), 0, number);
    }
}

struct kiln_batch *batch_of_stacks_at(uint64_t time_ns, const char *drawing)
{
    struct kiln_profile p = {.time_ns = time_ns, .duration_ns = 10000000000u};
    struct kiln_batch *batch;
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    p.sample_type.type = kiln_builder_string(b, KILN_STR("cpu"));
    p.sample_type.unit = kiln_builder_string(b, KILN_STR("nanoseconds"));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    draw_stacks(b, kiln_builder_add_profile(b, &p), drawing);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

struct kiln_batch *batch_of_stacks(const char *drawing)
{
    return batch_of_stacks_at(1000, drawing);
}

static void put_names(struct kiln_buf *out, const struct kiln_batch *batch, uint32_t index)
{
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range range = d->stacks[index];

    for (uint32_t i = range.n; i-- > 0;) {
        const struct kiln_location *l = &d->locations[d->frames[range.first + i]];

        for (uint32_t k = l->n; k-- > 0;) {
            const struct kiln_function *f = &d->functions[d->lines[l->first + k].function];

            kiln_buf_add_str(out, kiln_batch_str(batch, f->name));
            kiln_buf_putc(out, i || k ? ';' : ' ');
        }
    }
}

char *stacks_of_batch(const struct kiln_batch *batch)
{
    struct kiln_buf out;
    char *text;
    size_t len;

    kiln_buf_init(&out, 1 << 20);
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        put_names(&out, batch, batch->samples[i].stack);
        kiln_buf_add_i64(&out, kiln_sample_total(batch, &batch->samples[i]));
        kiln_buf_putc(&out, '\n');
    }
    kiln_buf_putc(&out, '\0');
    assert_int_equal(out.error, 0);
    kiln_buf_take(&out, &text, &len);
    return text;
}

void check_stacks(const struct kiln_batch *batch, const char *drawing)
{
    char *text = stacks_of_batch(batch);

    CHECK_TEXT(text, drawing);
    kiln_free(text);
}
