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
    CHECK_TEXT(line(50, 24, 2), " last 10 s   only shop (100)               1 of 5");
    press("\033");
    CHECK_EQ(page.pane, KILN_LIVE_PROCESSES);
    CHECK_EQ(page.rows->total.ns[KILN_LIVE_CPU], SECOND);
    end();
}

TEST(live, a_function_shows_its_callers_and_callees)
{
    begin();
    press("s\r"); /* by total: main */
    CHECK_EQ(page.open, KILN_LIVE_FUNCTION);
    CHECK_TEXT(line(50, 24, 3), "  main");
    CHECK_TEXT(line(50, 24, 4), "  self nothing, total 60.0% (600ms)");
    CHECK_TEXT(line(50, 24, 5), "  called by nobody: a stack begins here");
    CHECK_TEXT(line(50, 24, 8), "▸  66.7%  parse");
    CHECK_TEXT(line(50, 24, 9), "   33.3%  write");
    press("\r");
    CHECK_TEXT(line(50, 24, 3), "  parse");
    CHECK_TEXT(line(50, 24, 4), "  self 10.0% (100ms), total 40.0% (400ms)");
    press("\033");
    CHECK_TEXT(line(50, 24, 3), "  main");
    press("\033");
    CHECK_EQ(page.open, KILN_LIVE_LIST);
    end();
}

TEST(live, recursion_counts_once)
{
    const struct kiln_drawn drawn[] = {{.stacks = "main;walk;walk;walk 4",
                                        .period_type = "cpu",
                                        .period_unit = "nanoseconds",
                                        .period = MS}};

    begin();
    kiln_live_window_forget(&window);
    add(drawn, 1, SECOND);
    press("s");
    CHECK_TEXT(line(50, 24, 4), "▸ 100.0% 100.0% walk");
    CHECK_TEXT(line(50, 24, 5), "       . 100.0% main");
    press("\r");
    CHECK_EQ(kiln_live_amount(&page.around.total, page.mode), 4 * MS);
    CHECK_TEXT(line(50, 24, 6), "▸ 100.0%  walk");
    end();
}

TEST(live, a_stack_is_opened_as_it_was)
{
    begin();
    press("4\r");
    CHECK_EQ(page.open, KILN_LIVE_STACK);
    CHECK_TEXT(line(60, 24, 4), "▸    2   hash");
    CHECK_TEXT(line(60, 24, 5), "     1   start");
    kiln_live_window_forget(&window);
    press("j");
    CHECK_TEXT(line(60, 24, 5), "▸    1   start");
    end();
}

TEST(live, a_chosen_row_stays_chosen_when_others_overtake_it)
{
    const struct kiln_drawn drawn[] = {{.stacks = "start;late 500",
                                        .period_type = "cpu",
                                        .period_unit = "nanoseconds",
                                        .period = 10 * MS}};

    begin();
    press("j");
    CHECK_TEXT(line(50, 24, 5), "▸  30.0%  30.0% read");
    add(drawn, 1, SECOND);
    CHECK_OK(kiln_live_page_ask(&page, SECOND));
    CHECK_TEXT(line(50, 24, 4), "   83.3%  83.3% late");
    CHECK_TEXT(line(50, 24, 6), "▸   5.0%   5.0% read");
    press("g");
    CHECK_TEXT(line(50, 24, 4), "▸  83.3%  83.3% late");
    end();
}

TEST(live, a_filter_that_makes_no_sense_yet_changes_nothing)
{
    begin();
    press("/re");
    CHECK_EQ(page.rows->n, 1);
    press("(");
    CHECK(page.filter_is_bad);
    CHECK_EQ(page.rows->n, 1);
    press("\177\177\177RITE"); /* "RITE": capitals are meant */
    CHECK_EQ(page.rows->n, 0);
    press("\025rite\r");
    CHECK_EQ(page.rows->n, 2);
    CHECK_EQ(page.rows->total.ns[KILN_LIVE_CPU], SECOND);
    press("\033");
    CHECK_EQ(page.rows->n, 7);
    end();
}

TEST(live, frames_of_the_kernel_belong_to_who_called_it)
{
    struct kiln_live_frame user = {.name = KILN_STR("work")};
    struct kiln_live_frame kernel = {.name = KILN_STR("schedule"), .kernel = true};
    uint32_t numbers[2];

    begin();
    kiln_live_window_forget(&window);
    CHECK_OK(kiln_live_book_frame(&window.book, &user, &numbers[0]));
    CHECK_OK(kiln_live_book_frame(&window.book, &kernel, &numbers[1]));
    window.slices[0] = (struct kiln_live_slice){.at_ns = SECOND};
    CHECK_OK(kiln_grow(&window.budget, (void **)&window.slices[0].samples,
                       &window.slices[0].samples_cap, 2, sizeof(struct kiln_live_sample), 2));
    CHECK_OK(kiln_grow(&window.budget, (void **)&window.slices[0].path, &window.slices[0].path_cap,
                       2, sizeof(uint32_t), 2));
    memcpy(window.slices[0].path, numbers, sizeof(numbers));
    window.slices[0].samples[0] = (struct kiln_live_sample){
        .ns = SECOND, .process = KILN_LIVE_NONE, .n = 2, .reason = KILN_LIVE_NONE};
    window.slices[0].samples[1] = (struct kiln_live_sample){
        .ns = SECOND, .process = KILN_LIVE_NONE, .first = 1, .n = 1, .reason = KILN_LIVE_NONE};
    window.slices[0].n_samples = window.slices[0].n_path = 2;
    window.first = 0;
    window.n = 1;
    press("1");
    CHECK_TEXT(line(50, 24, 4), "▸ 100.0% 100.0% schedule");
    press("K");
    CHECK_TEXT(line(50, 24, 4), "▸  50.0%  50.0% schedule");
    CHECK_TEXT(line(50, 24, 5), "   50.0%  50.0% work");
    end();
}

TEST(live, what_is_older_than_the_span_does_not_count)
{
    begin();
    add(host, 1, 9 * SECOND);
    CHECK_OK(kiln_live_page_ask(&page, 10 * SECOND));
    CHECK_EQ(page.rows->total.ns[KILN_LIVE_CPU], 1600 * MS);
    CHECK_EQ(page.rows->span_ns, 10 * SECOND);
    press("-");
    CHECK_EQ(page.rows->total.ns[KILN_LIVE_CPU], 600 * MS);
    CHECK_EQ(page.rows->span_ns, 5 * SECOND);
    end();
}

TEST(live, memory_has_a_limit_and_the_newest_stays)
{
    char stacks[4096];
    struct kiln_drawn drawn = {
        .stacks = stacks, .period_type = "cpu", .period_unit = "nanoseconds", .period = MS};

    kiln_term_of(-1, 0);
    kiln_live_window_init(&window, 1 << 18, 0);
    kiln_live_page_init(&page, &window);
    for (uint32_t i = 1; i <= 2000; i++) {
        snprintf(stacks, sizeof(stacks), "main;function_%u;leaf_of_the_function_%u 1", i, i);
        add(&drawn, 1, i);
        CHECK(window.budget.used <= window.budget.limit);
        CHECK(window.book.budget.used <= window.book.budget.limit);
    }
    CHECK(window.forgotten > 0);
    CHECK_OK(kiln_live_page_ask(&page, 2000));
    press("/leaf_of_the_function_2000$\r");
    CHECK_EQ(page.rows->n, 1);
    end();
}

TEST(live, running_out_of_memory_is_an_error_and_nothing_leaks)
{
    int64_t before = kiln_mem_live();
    struct kiln_batch *batch = kiln_test_batch(host, KILN_ARRAY_LEN(host));
    bool failed = true;

    for (uint64_t n = 1; failed; n++) {
        int r;

        kiln_live_window_init(&window, 64 << 20, 0);
        kiln_live_page_init(&page, &window);
        kiln_mem_fail_at(n);
        r = kiln_live_window_add(&window, batch, 1);
        if (r == 0)
            r = kiln_live_page_ask(&page, SECOND);
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK(r == 0 || failed);
        shown(80, 24);
        end();
    }
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), before);
}

TEST(live, every_size_and_pane_and_key_fits)
{
    static const char keys[] = "1234cwosrK+-\rt\033/a\r\033?x4\rj\r\r\033\033\033";

    begin();
    for (const char *key = keys; *key; key++) {
        char one[2] = {*key};

        press(one);
        for (uint32_t columns = 1; columns < 140; columns += 13)
            for (uint32_t rows = 1; rows < 30; rows += 4)
                shown(columns, rows);
    }
    end();
}

TEST(live, of_a_wait_that_began_long_ago_the_end_counts)
{
    const struct kiln_drawn drawn[] = {{.stacks = "main;wait 60000000000 thread.state=blocked",
                                        .type = "off_cpu",
                                        .unit = "nanoseconds",
                                        .time_ns = 1,
                                        .duration_ns = 60 * SECOND,
                                        .resource = "service.name=old"}};

    begin();
    kiln_live_window_forget(&window);
    add(drawn, 1, 100 * SECOND);
    CHECK_OK(kiln_live_page_ask(&page, 100 * SECOND));
    press("o");
    CHECK_EQ(kiln_live_amount(&page.rows->total, page.mode), 10 * SECOND);
    press("+++");
    CHECK_EQ(kiln_live_amount(&page.rows->total, page.mode), 60 * SECOND);
    end();
}

TEST(live, who_could_run_waits_for_a_processor)
{
    const struct kiln_drawn drawn[] = {{.stacks = "main;work 500000000 thread.state=runnable",
                                        .type = "off_cpu",
                                        .unit = "nanoseconds",
                                        .resource = "service.name=busy"}};

    begin();
    kiln_live_window_forget(&window);
    add(drawn, 1, SECOND);
    press("o");
    CHECK_EQ(page.rows->total.ns[KILN_LIVE_RUNNABLE], 500 * MS);
    CHECK_STR(window.book.texts[page.rows->rows[0].reason], "processor");
    end();
}
