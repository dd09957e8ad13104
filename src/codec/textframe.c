/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlined frames wait in `lines` until the frame they belong to arrives and closes the location.  A
 * stack that ends while some wait gets a location of them alone.
 */
#include "codec/textframe.h"
#include "base/hash.h"
#include "base/mem.h"

void kiln_textstack_init(struct kiln_textstack *s, struct kiln_builder *b)
{
    size_t limit = kiln_builder_limits(b)->memory_bytes;

    *s = (struct kiln_textstack){.b = b, .budget.limit = limit};
    kiln_buf_init(&s->repaired, limit);
}

void kiln_textstack_done(struct kiln_textstack *s)
{
    kiln_buf_done(&s->repaired);
    kiln_array_free(&s->budget, (void **)&s->lines, &s->cap_lines, sizeof(*s->lines));
    kiln_array_free(&s->budget, (void **)&s->locations, &s->cap_locations, sizeof(*s->locations));
    kiln_array_free(&s->budget, (void **)&s->known, &s->cap_known, sizeof(*s->known));
    kiln_intern_done(&s->index, &s->budget);
}

uint32_t kiln_textstack_string(struct kiln_textstack *s, struct kiln_str text)
{
    if (KILN_LIKELY(text.len == 0 || kiln_utf8_valid(text)))
        return kiln_builder_string(s->b, text);
    kiln_buf_clear(&s->repaired);
    kiln_buf_add_utf8(&s->repaired, text);
    if (s->repaired.error) {
        kiln_builder_fail(s->b, s->repaired.error);
        return 0;
    }
    return kiln_builder_string(s->b, kiln_buf_str(&s->repaired));
}

static struct kiln_line line_of(struct kiln_textstack *s, const struct kiln_textframe *frame)
{
    struct kiln_function function = {
        .name = kiln_textstack_string(s, frame->name),
        .filename = kiln_textstack_string(s, frame->file),
    };

    return (struct kiln_line){
        .function = kiln_builder_function(s->b, &function),
        .line = frame->line,
        .column = frame->column,
    };
}

/* The location of `frame` with these lines. */
static uint32_t location_of(struct kiln_textstack *s, const struct kiln_textframe *frame,
                            const struct kiln_line *lines, uint32_t n)
{
    struct kiln_location location = {.address = frame->address};

    if (frame->module.len) {
        struct kiln_mapping mapping = {.filename = kiln_textstack_string(s, frame->module)};

        location.mapping = kiln_builder_mapping(s->b, &mapping);
    }
    if (frame->kind.len) {
        uint32_t attr = kiln_builder_text_attr(s->b, KILN_STR("profile.frame.type"), frame->kind);

        location.attrs = kiln_builder_set(s->b, &attr, 1, NULL);
    }
    return kiln_builder_location(s->b, &location, lines, n);
}

static bool has_line(const struct kiln_textframe *frame)
{
    return frame->name.len || frame->file.len;
}

uint32_t kiln_textstack_location(struct kiln_textstack *s, const struct kiln_textframe *frame)
{
    struct kiln_line line;

    if (!has_line(frame))
        return location_of(s, frame, NULL, 0);
    line = line_of(s, frame);
    return location_of(s, frame, &line, 1);
}

int kiln_textstack_add_location(struct kiln_textstack *s, uint32_t location)
{
    int r = kiln_grow(&s->budget, (void **)&s->locations, &s->cap_locations,
                      (uint64_t)s->n_locations + 1, sizeof(*s->locations),
                      kiln_builder_limits(s->b)->stack_depth);

    if (r < 0)
        return r;
    s->locations[s->n_locations++] = location;
    return 0;
}

int kiln_textstack_add(struct kiln_textstack *s, const struct kiln_textframe *frame)
{
    uint32_t location;
    int r;

    if (!frame->inlined && s->n_lines == 0)
        return kiln_textstack_add_location(s, kiln_textstack_location(s, frame));
    if (has_line(frame)) {
        r = kiln_grow(&s->budget, (void **)&s->lines, &s->cap_lines, (uint64_t)s->n_lines + 1,
                      sizeof(*s->lines), kiln_builder_limits(s->b)->stack_depth);
        if (r < 0)
            return r;
        s->lines[s->n_lines++] = line_of(s, frame);
    }
    if (frame->inlined)
        return 0;
    location = location_of(s, frame, s->lines, s->n_lines);
    s->n_lines = 0;
    return kiln_textstack_add_location(s, location);
}

bool kiln_textstack_add_known(struct kiln_textstack *s, struct kiln_str text)
{
    uint64_t hash = kiln_hash(text.ptr, text.len);

    if (s->n_lines)
        return false; /* inlined frames wait for this one */
    for (struct kiln_probe p = kiln_intern_probe(&s->index, hash);
         kiln_intern_next(&s->index, &p);) {
        if (kiln_str_eq(s->known[p.entry].text, text))
            return kiln_textstack_add_location(s, s->known[p.entry].location) == 0;
    }
    return false;
}

int kiln_textstack_remember(struct kiln_textstack *s, struct kiln_str text)
{
    int r = kiln_grow(&s->budget, (void **)&s->known, &s->cap_known, (uint64_t)s->n_known + 1,
                      sizeof(*s->known), UINT32_MAX);

    if (r == 0)
        r = kiln_intern_add(&s->index, &s->budget, kiln_hash(text.ptr, text.len), s->n_known);
    if (r == 0)
        s->known[s->n_known++] = (struct kiln_textknown){text, s->locations[s->n_locations - 1]};
    return r;
}

static void reverse(uint32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t moving = list[i];

        list[i] = list[n - 1 - i];
        list[n - 1 - i] = moving;
    }
}

uint32_t kiln_textstack_take(struct kiln_textstack *s, bool root_first)
{
    uint32_t stack;

    if (s->n_lines) {
        uint32_t location = location_of(s, &(struct kiln_textframe){0}, s->lines, s->n_lines);

        s->n_lines = 0;
        if (kiln_textstack_add_location(s, location) < 0)
            kiln_builder_fail(s->b, KILN_E_LIMIT);
    }
    if (root_first)
        reverse(s->locations, s->n_locations);
    stack = kiln_builder_stack(s->b, s->locations, s->n_locations);
    s->n_locations = 0;
    return stack;
}
