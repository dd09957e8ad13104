/* SPDX-License-Identifier: Apache-2.0 */
#include "nameless.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "core/builder.h"
#include "test.h"

#define MAPPED 0x400000u

struct drawing {
    struct kiln_builder *b;
    uint32_t mapping, kernel; /* the latter is a set */
};

static struct kiln_line line_of(struct kiln_builder *b, struct kiln_str name, bool made_up)
{
    struct kiln_function function = {.name = kiln_builder_string(b, name)};
    struct kiln_line line = {0};

    if (!made_up)
        function.system_name = function.name;
    line.function = kiln_builder_function(b, &function);
    return line;
}

static uint64_t parse_hex(struct kiln_str text)
{
    char copy[32];

    snprintf(copy, sizeof(copy), "%.*s", KILN_STR_ARG(text));
    return strtoull(copy, NULL, 16);
}

static uint32_t draw_frame(struct drawing *d, struct kiln_str text)
{
    struct kiln_location location = {.mapping = d->mapping};
    size_t mark = strcspn(text.ptr, "@!?+;0123456789");
    struct kiln_line line;
    char name[64];

    if (mark >= text.len) {
        line = line_of(d->b, text, false);
        return kiln_builder_location(d->b, &(struct kiln_location){0}, &line, 1);
    }
    if (mark == 0 && text.ptr[0] != '+') {
        location.address = MAPPED + parse_hex(text);
        return kiln_builder_location(d->b, &location, NULL, 0);
    }
    location.address =
        MAPPED + parse_hex((struct kiln_str){text.ptr + mark + 1, text.len - mark - 1});
    snprintf(name, sizeof(name), "%.*s", (int)mark, text.ptr);
    if (text.ptr[mark] == '+')
        snprintf(name, sizeof(name), "app+0x%.*s", (int)text.len - 1, text.ptr + 1);
    line = line_of(d->b, kiln_str_of(name), text.ptr[mark] == '+');
    if (text.ptr[mark] == '!')
        line.line = 3;
    if (text.ptr[mark] == '?')
        location.attrs = d->kernel;
    return kiln_builder_location(d->b, &location, &line, 1);
}

static void draw_stack(struct drawing *d, struct kiln_str line, const struct kiln_nameless *drawn,
                       uint32_t profile)
{
    struct kiln_str stack = kiln_str_cut(&line, ' ');
    uint32_t frames[64], n = 0, kept;
    int64_t value = (int64_t)strtoull(line.ptr, NULL, 10);

    while (stack.len && n < KILN_ARRAY_LEN(frames))
        frames[KILN_ARRAY_LEN(frames) - 1 - n++] = draw_frame(d, kiln_str_cut(&stack, ';'));
    kept = kiln_builder_stack(d->b, frames + KILN_ARRAY_LEN(frames) - n, n);
    if (drawn->timed)
        kiln_builder_add_sample(d->b, profile, kept, 0, 0, &value, &drawn->time_ns, 1);
    else
        kiln_builder_add_value(d->b, profile, kept, 0, value);
}

static void open_drawing(struct drawing *d, const struct kiln_nameless *drawn)
{
    struct kiln_mapping mapping = {.start = MAPPED, .limit = 2 * MAPPED};
    struct kiln_resource resource = {0};
    uint32_t attr;

    attr = kiln_builder_text_attr(d->b, KILN_STR("process.executable.build_id.gnu"),
                                  kiln_str_of(drawn->build_id));
    mapping.attrs = kiln_builder_set(d->b, &attr, 1, NULL);
    mapping.filename = kiln_builder_string(d->b, KILN_STR("/bin/app"));
    d->mapping = kiln_builder_mapping(d->b, &mapping);
    attr = kiln_builder_text_attr(d->b, KILN_STR("profile.frame.type"), KILN_STR("kernel"));
    d->kernel = kiln_builder_set(d->b, &attr, 1, NULL);
    if (drawn->service) {
        attr = kiln_builder_text_attr(d->b, KILN_STR("service.name"), kiln_str_of(drawn->service));
        resource.attrs = kiln_builder_set(d->b, &attr, 1, NULL);
    }
    kiln_builder_add_resource(d->b, &resource);
    kiln_builder_add_scope(d->b, &(struct kiln_scope){0});
}

struct kiln_batch *kiln_test_nameless(const struct kiln_nameless *drawn)
{
    struct kiln_profile profile = {.time_ns = drawn->time_ns, .duration_ns = 1};
    struct kiln_str lines = kiln_str_of(drawn->stacks);
    struct kiln_batch *batch = NULL;
    struct drawing d = {0};
    uint32_t number;

    CHECK_OK(kiln_builder_new(NULL, &d.b));
    open_drawing(&d, drawn);
    profile.sample_type.type = kiln_builder_string(d.b, KILN_STR("cpu"));
    profile.sample_type.unit = kiln_builder_string(d.b, KILN_STR("nanoseconds"));
    number = kiln_builder_add_profile(d.b, &profile);
    while (lines.len)
        draw_stack(&d, kiln_str_cut(&lines, '\n'), drawn, number);
    CHECK_OK(kiln_builder_finish(d.b, &batch, NULL));
    return batch;
}

/* ---- names ---- */

static void put_line(struct kiln_engine *engine, struct kiln_str build_id, struct kiln_str line)
{
    struct kiln_str where = kiln_str_cut(&line, ' '), from = kiln_str_cut(&where, '-');
    struct kiln_symbol_frame frames[16] = {0};
    struct kiln_symbol symbol = {.address = parse_hex(from), .size = 1, .frames = frames};
    char files[16][32];

    if (where.len)
        symbol.size = parse_hex(where) - symbol.address;
    for (; line.len && symbol.n < KILN_ARRAY_LEN(frames); symbol.n++) {
        struct kiln_symbol_frame *f = &frames[symbol.n];

        f->name = kiln_str_cut(&line, ';');
        if (f->name.ptr[0] == '.') {
            f->name = (struct kiln_str){f->name.ptr + 1, f->name.len - 1};
            continue;
        }
        snprintf(files[symbol.n], sizeof(files[0]), "%.*s.c", KILN_STR_ARG(f->name));
        f->file = kiln_str_of(files[symbol.n]);
        f->line = 7;
    }
    CHECK_OK(engine->ops->put_symbols(engine, KILN_STR("anonymous"), build_id, &symbol, 1, NULL));
}

void kiln_test_put_names(struct kiln_engine *engine, const char *build_id, const char *lines)
{
    struct kiln_str left = kiln_str_of(lines);

    while (left.len)
        put_line(engine, kiln_str_of(build_id), kiln_str_cut(&left, '\n'));
}

static int tell(void *context, const struct kiln_unnamed *u)
{
    struct kiln_buf *out = context;

    kiln_buf_printf(out, "%.*s %.*s", KILN_STR_ARG(u->build_id), KILN_STR_ARG(u->file));
    for (uint32_t i = 0; i < u->n; i++)
        kiln_buf_printf(out, " %llx", (unsigned long long)u->addresses[i]);
    kiln_buf_puts(out, u->more ? " more\n" : "\n");
    return 0;
}

const char *kiln_test_unnamed(struct kiln_engine *engine)
{
    static char text[4096];
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text) - 1);
    CHECK_OK(engine->ops->unnamed(engine, KILN_STR("anonymous"), tell, &out, NULL));
    snprintf(text, sizeof(text), "%.*s", (int)out.len, out.len ? out.ptr : "");
    kiln_buf_done(&out);
    return text;
}
