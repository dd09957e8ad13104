/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of a few samples, and any keys: whatever is pressed, every page fits its terminal.  A
 * byte above 0xc0 is a key without a character, or another size.
 */
#include "cli/keyboard.h"
#include "cli/live_page.h"
#include "core/builder.h"
#include "fuzz.h"

static uint32_t location(struct kiln_builder *b, const char *name)
{
    struct kiln_function function = {.name = kiln_builder_string(b, kiln_str_of(name))};
    struct kiln_line line = {.function = kiln_builder_function(b, &function)};

    return kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
}

static struct kiln_batch *make_batch(void)
{
    static const char *const names[] = {"main", "parse", "read", "\xff\x1b[2J\xe2\x82",
                                        "a name (of) [some] length"};
    struct kiln_builder *b;
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};
    uint32_t stack[5], attr, profile;
    struct kiln_profile head = {0};

    if (kiln_builder_new(NULL, &b) < 0)
        return NULL;
    attr = kiln_builder_text_attr(b, KILN_STR("service.name"), KILN_STR("shop"));
    kiln_builder_add_resource(
        b, &(struct kiln_resource){.attrs = kiln_builder_set(b, &attr, 1, NULL)});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    head.sample_type.type = kiln_builder_string(b, KILN_STR("cpu"));
    head.sample_type.unit = kiln_builder_string(b, KILN_STR("nanoseconds"));
    profile = kiln_builder_add_profile(b, &head);
    for (uint32_t n = 1; n <= 5; n++) {
        int64_t value = n * 1000;

        for (uint32_t i = 0; i < n; i++)
            stack[n - 1 - i] = location(b, names[i]);
        kiln_builder_add_sample(b, profile, kiln_builder_stack(b, stack, n), 0, 0, &value, NULL, 1);
    }
    return kiln_builder_finish(b, &batch, &err) == 0 ? batch : NULL;
}

static void draw(struct kiln_live_page *page, uint32_t columns, uint32_t rows)
{
    struct kiln_term term = {0};
    struct kiln_str rest;
    struct kiln_buf out;
    uint32_t n = 0;

    kiln_buf_init(&out, 1 << 20);
    kiln_live_page_draw(page, &term, columns, rows, &out);
    for (rest = kiln_buf_str(&out); rest.ptr; n++)
        FUZZ_CHECK(kiln_term_columns(kiln_str_cut(&rest, '\n')) <= columns);
    FUZZ_CHECK(n <= rows);
    kiln_buf_done(&out);
}

static void press(struct kiln_live_page *page, const uint8_t *keys, size_t n)
{
    uint32_t columns = 80, rows = 24;

    for (size_t i = 0; i < n && i < 256; i++) {
        if (keys[i] >= 0xe0) {
            columns = 1 + (keys[i] & 0x0f) * 9;
            rows = 1 + (keys[i] & 0x1f);
        } else {
            kiln_live_page_key(page, keys[i] >= 0xc0 ? KILN_KEY_UP + (keys[i] & 15) : keys[i]);
        }
        FUZZ_CHECK(kiln_live_page_ask(page, 2) == 0);
        draw(page, columns, rows);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kiln_live_window window;
    struct kiln_batch *batch = make_batch();
    struct kiln_live_page page;

    kiln_term_of(-1, 0);
    kiln_live_window_init(&window, 8 << 20, 0);
    kiln_live_page_init(&page, &window);
    if (batch && kiln_live_window_add(&window, batch, 1) == 0 && kiln_live_page_ask(&page, 2) == 0)
        press(&page, data, size);
    kiln_live_page_done(&page);
    kiln_live_window_done(&window);
    kiln_batch_unref(batch);
    return 0;
}
