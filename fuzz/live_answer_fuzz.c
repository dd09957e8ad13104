/* SPDX-License-Identifier: Apache-2.0 */
/* What a server answers to `kiln live`: read, put into a window, and shown on a small page. */
#include "cli/live_source.h"
#include "fuzz.h"

static void show(const struct kiln_batch *batch)
{
    static struct kiln_live_window window;
    struct kiln_live_page page;
    struct kiln_term term = {.color = true};
    struct kiln_buf out;

    kiln_live_window_init(&window, 8 << 20, 0);
    kiln_live_page_init(&page, &window);
    kiln_buf_init(&out, 1 << 20);
    for (int pane = 0; pane < KILN_LIVE_PANES; pane++) {
        page.pane = (enum kiln_live_pane)pane;
        page.mode = KILN_LIVE_BY_WALL;
        if (kiln_live_window_add(&window, batch, 1) == 0 && kiln_live_page_ask(&page, 2) == 0)
            kiln_live_page_draw(&page, &term, 80, 12, &out);
    }
    kiln_buf_done(&out);
    kiln_live_page_done(&page);
    kiln_live_window_done(&window);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};

    if (kiln_live_answer_read((struct kiln_str){(const char *)data, size}, size & 1, &batch,
                              &err) == 0)
        show(batch);
    kiln_batch_unref(batch);
    return 0;
}
