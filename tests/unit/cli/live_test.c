/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that are drawn, and the page that `kiln live` makes of them, as text.
 */
#include "cli/live_page.h"

#include "base/clock.h"
#include "cli/keyboard.h"
#include "drawn.h"
#include "test.h"

#define SECOND KILN_NS_PER_S
#define MS     1000000

static struct kiln_live_window window;
static struct kiln_live_page page;

static const struct kiln_drawn host[] = {
    {.stacks = "main;parse;read 30\n"
               "main;parse 10\n"
               "main;write;sys_write 20",
     .period_type = "cpu",
     .period_unit = "nanoseconds",
     .period = 10 * MS,
     .resource = "process.pid=100,process.executable.name=shop,service.name=shop"},
    {.stacks = "start;hash 40",
     .period_type = "cpu",
     .period_unit = "nanoseconds",
     .period = 10 * MS,
     .resource = "process.pid=200,process.executable.name=worker,service.name=jobs"},
    {.stacks = "main;wait;futex 900000000 thread.state=blocked,wait.reason=futex\n"
               "main;wait;futex 100000000 thread.state=runnable",
     .type = "off_cpu",
     .unit = "nanoseconds"},
};

static void add(const struct kiln_drawn *drawn, uint32_t n, uint64_t at_ns)
{
    struct kiln_batch *batch = kiln_test_batch(drawn, n);

    CHECK_OK(kiln_live_window_add(&window, batch, at_ns));
    kiln_batch_unref(batch);
}

/* One second of the host above. */
static void begin(void)
{
    kiln_term_of(-1, 0); /* sets the locale that widths are told by */
    kiln_live_window_init(&window, 64 << 20, 0);
    kiln_live_page_init(&page, &window);
    add(host, KILN_ARRAY_LEN(host), SECOND);
    CHECK_OK(kiln_live_page_ask(&page, SECOND));
}

static void end(void)
{
    kiln_live_page_done(&page);
    kiln_live_window_done(&window);
}

static void press(const char *keys)
{
    for (; *keys; keys++) {
        kiln_live_page_key(&page, (unsigned char)*keys);
        CHECK_OK(kiln_live_page_ask(&page, page.now_ns));
    }
}

/* The rows of the list without spaces at the ends of lines. */
static const char *shown(uint32_t columns, uint32_t rows)
{
    static const struct kiln_term term = {.is_terminal = true};
    static char text[8192];
    struct kiln_buf out;
    struct kiln_str rest;
    size_t n = 0;

    kiln_buf_init(&out, sizeof(text));
    kiln_live_page_draw(&page, &term, columns, rows, &out);
    CHECK_EQ(out.error, 0);
    rest = kiln_buf_str(&out);
    text[0] = '\0';
    while (rest.ptr) {
        struct kiln_str line = kiln_str_cut(&rest, '\n');

        while (line.len && line.ptr[line.len - 1] == ' ')
            line.len--;
        CHECK(kiln_term_columns(line) <= columns);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s\n", KILN_STR_ARG(line));
    }
    kiln_buf_done(&out);
    return text;
}

static const char *line(uint32_t columns, uint32_t rows, uint32_t wanted)
{
    static char text[1024];
    struct kiln_str rest = kiln_str_of(shown(columns, rows)), found = {0};

    for (uint32_t i = 0; i <= wanted && rest.ptr; i++)
        found = kiln_str_cut(&rest, '\n');
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(found));
    return text;
}

TEST(live, functions_are_listed_by_what_they_spend_themselves)
{
    begin();
    CHECK_EQ(page.rows->n, 7);
    CHECK_EQ(page.rows->total.ns[KILN_LIVE_CPU], SECOND);
    CHECK_EQ(page.rows->span_ns, SECOND);
    CHECK_TEXT(line(50, 24, 4), "▸  40.0%  40.0% hash");
    CHECK_TEXT(line(50, 24, 5), "   30.0%  30.0% read");
    CHECK_TEXT(line(50, 24, 8), "       .  60.0% main");
    end();
}

TEST(live, keys_switch_between_cpu_wall_and_waiting)
{
    begin();
    press("o");
    CHECK_EQ(kiln_live_amount(&page.rows->total, page.mode), SECOND);
    CHECK_TEXT(line(80, 24, 4), "▸ 100.0% 100.0% ██████████ futex                         futex");
    press("w");
    CHECK_EQ(kiln_live_amount(&page.rows->total, page.mode), 2 * SECOND);
    press("c");
    CHECK_EQ(page.rows->n, 7);
    end();
}

TEST(live, a_process_that_is_entered_is_alone)
{
    begin();
    press("2\r");
    CHECK_EQ(page.pane, KILN_LIVE_FUNCTIONS);
    CHECK_EQ(page.rows->total.ns[KILN_LIVE_CPU], 600 * MS);
    CHECK_TEXT(line(50, 24, 2), " last 10 s   only shop (100)");
    press("\033");
    CHECK_EQ(page.pane, KILN_LIVE_PROCESSES);
    CHECK_EQ(page.rows->total.ns[KILN_LIVE_CPU], SECOND);
    end();
}
