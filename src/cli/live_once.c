/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kiln live --once`: the page as a table, or every pane as JSON.
 */
#include "base/clock.h"
#include "base/json.h"
#include "cli/live_source.h"
#include "cli/report.h"

static int ask(struct kiln_live_page *page, enum kiln_live_pane pane)
{
    page->pane = pane;
    return kiln_live_page_ask(page, page->now_ns);
}

/* ---- for people ---- */

/* Without the spaces that a screen needs. */
static void end_line(struct kiln_buf *out)
{
    while (out->len && out->ptr[out->len - 1] == ' ')
        out->len--;
    kiln_buf_putc(out, '\n');
}

static void put_table(struct kiln_cli *cli, struct kiln_live_page *page)
{
    uint32_t width = cli->term.width ? cli->term.width : 120;
    uint32_t n = kiln_live_page_count(page);
    uint32_t shown = cli->args.limit && cli->args.limit < n ? cli->args.limit : n;
    struct kiln_live_pen pen = {.term = &cli->term, .out = &cli->out, .left = width};

    page->selected = KILN_LIVE_NONE;
    kiln_buf_printf(&cli->out, "%s: ", kiln_live_mode_name(page->mode));
    kiln_report_number(&cli->out, (double)kiln_live_amount(&page->rows->total, page->mode),
                       KILN_STR("nanoseconds"));
    kiln_buf_puts(&cli->out, " in ");
    kiln_report_duration(&cli->out, page->rows->span_ns);
    kiln_buf_putc(&cli->out, '\n');
    kiln_live_draw_titles(page, &pen);
    end_line(&cli->out);
    for (uint32_t i = 0; i < shown; i++) {
        pen.left = width;
        kiln_live_draw_row(page, i, &pen);
        end_line(&cli->out);
    }
    if (shown < n)
        kiln_buf_printf(&cli->out, "... %u more (-n 0 shows all)\n", n - shown);
}

/* ---- for programs ---- */

static void put_seconds(struct kiln_json_out *w, const char *name, uint64_t ns)
{
    kiln_json_put_name(w, name);
    kiln_json_put_double(w, (double)ns / (double)KILN_NS_PER_S);
}

static void put_amount(struct kiln_json_out *w, const char *name,
                       const struct kiln_live_amount *amount)
{
    kiln_json_put_name(w, name);
    kiln_json_put_object(w);
    put_seconds(w, "cpu_seconds", amount->ns[KILN_LIVE_CPU]);
    put_seconds(w, "blocked_seconds", amount->ns[KILN_LIVE_BLOCKED]);
    put_seconds(w, "runnable_seconds", amount->ns[KILN_LIVE_RUNNABLE]);
    kiln_json_end_object(w);
}

static void put_text(struct kiln_json_out *w, const char *name, struct kiln_str text)
{
    if (!text.len)
        return;
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, text);
}

static void put_stack(struct kiln_json_out *w, const struct kiln_live_book *book,
                      const struct kiln_live_row *row)
{
    kiln_json_put_name(w, "frames");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < row->n; i++)
        kiln_json_put_str(w, book->frames[row->path[i]].name);
    kiln_json_end_array(w);
}

static void put_who(struct kiln_json_out *w, const struct kiln_live_page *page,
                    const struct kiln_live_row *row)
{
    const struct kiln_live_book *book = &page->window->book;

    switch (page->pane) {
    case KILN_LIVE_PROCESSES:
        put_text(w, "name", book->processes[row->id].name);
        kiln_json_put_name(w, "pid");
        kiln_json_put_u64(w, book->processes[row->id].pid);
        put_text(w, "service", book->texts[book->processes[row->id].service]);
        put_text(w, "host", book->processes[row->id].host);
        break;
    case KILN_LIVE_SERVICES:
        put_text(w, "name", book->texts[row->id]);
        kiln_json_put_name(w, "processes");
        kiln_json_put_u64(w, row->n);
        break;
    case KILN_LIVE_STACKS:
        put_stack(w, book, row);
        break;
    default:
        put_text(w, "name", book->frames[row->id].name);
        put_text(w, "module", book->frames[row->id].module);
        if (book->frames[row->id].kernel)
            put_text(w, "kind", KILN_STR("kernel"));
    }
}

static void put_row(struct kiln_json_out *w, const struct kiln_live_page *page,
                    const struct kiln_live_row *row)
{
    const struct kiln_live_book *book = &page->window->book;

    kiln_json_put_object(w);
    put_who(w, page, row);
    if (page->pane == KILN_LIVE_FUNCTIONS)
        put_amount(w, "self", &row->self);
    put_amount(w, "total", &row->total);
    if (row->hottest != KILN_LIVE_NONE)
        put_text(w, "hottest", book->frames[row->hottest].name);
    if (row->reason != KILN_LIVE_NONE)
        put_text(w, "waits_for", book->texts[row->reason]);
    kiln_json_end_object(w);
}

static int put_pane(struct kiln_cli *cli, struct kiln_live_page *page, enum kiln_live_pane pane,
                    struct kiln_json_out *w)
{
    static const char *const names[] = {"functions", "processes", "services", "stacks"};
    int r = ask(page, pane);

    if (r < 0)
        return r;
    kiln_json_put_name(w, names[pane]);
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < page->rows->n && (cli->args.limit == 0 || i < cli->args.limit); i++)
        put_row(w, page, &page->rows->rows[i]);
    kiln_json_end_array(w);
    return 0;
}

static int put_json(struct kiln_cli *cli, struct kiln_live_page *page)
{
    struct kiln_json_out w;
    int r = 0;

    kiln_json_out_init(&w, &cli->out, 2);
    kiln_json_put_object(&w);
    put_text(&w, "host", kiln_str_of(page->facts.host));
    put_seconds(&w, "seconds", page->rows->span_ns);
    put_text(&w, "sorted_by", kiln_str_of(kiln_live_mode_name(page->mode)));
    kiln_json_put_name(&w, "processors");
    kiln_json_put_u64(&w, page->facts.processors);
    kiln_json_put_name(&w, "samples");
    kiln_json_put_u64(&w, page->facts.samples);
    kiln_json_put_name(&w, "lost");
    kiln_json_put_u64(&w, page->facts.lost);
    put_amount(&w, "total", &page->rows->total);
    for (int pane = 0; r == 0 && pane < KILN_LIVE_PANES; pane++)
        r = put_pane(cli, page, (enum kiln_live_pane)pane, &w);
    kiln_json_end_object(&w);
    kiln_buf_putc(&cli->out, '\n');
    return r;
}

int kiln_live_once(struct kiln_cli *cli, struct kiln_live_page *page)
{
    int r = ask(page, page->pane);

    if (r < 0)
        return r;
    if (cli->args.json)
        return put_json(cli, page);
    put_table(cli, page);
    return 0;
}
