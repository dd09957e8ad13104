/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "inproc/pprof/pages.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<title>/debug/pprof/</title>\n<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; max-width: 44em; margin: 2em auto; padding: 0 "
    "1em; }\n"
    "td { padding: 0.2em 1em 0.2em 0; vertical-align: top; } td:first-child { white-space: nowrap; "
    "}\n"
    "code { font-size: 0.95em; }\n</style>\n</head>\n<body>\n<h1>/debug/pprof/</h1>\n";

static const struct {
    const char *name, *link, *says;
} rows[] = {
    {"allocs", "allocs?debug=1", "All allocations since the start, sampled by size."},
    {"block", "block?debug=1",
     "Where threads waited for conditions, semaphores and the end of other threads."},
    {"cmdline", "cmdline", "The words of the command line."},
    {"event_loop", "event_loop?debug=1", "What kept event loops from polling."},
    {"goroutine", "goroutine?debug=1",
     "Threads by their stacks; <a href=\"goroutine?debug=2\">as a full dump</a>."},
    {"heap", "heap?debug=1", "Memory in use now, and all that was allocated."},
    {"mutex", "mutex?debug=1", "Where threads waited for locks."},
    {"mutex_holders", "mutex_holders?debug=1", "Who let go of locks that others waited for."},
    {"profile", "profile?seconds=30", "Time on processors in a window of <code>seconds</code>."},
    {"symbol", "symbol", "Names of addresses."},
    {"threadcreate", "threadcreate?debug=1", "Where threads were made."},
    {"wall", "wall?seconds=30", "Time on and off processors in a window."},
};

void kiln_in_pages_index(struct kiln_in_reply *reply)
{
    struct kiln_buf *out = &reply->body;

    reply->type = "text/html; charset=utf-8";
    kiln_buf_puts(out, head);
    kiln_buf_printf(out, "<p>Profiles of process %d, by libkiln.</p>\n<table>\n", (int)getpid());
    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++)
        kiln_buf_printf(out, "<tr><td><a href=\"%s\">%s</a></td><td>%s</td></tr>\n", rows[i].link,
                        rows[i].name, rows[i].says);
    kiln_buf_puts(out, "</table>\n<p>Each of them is a profile for <code>go tool pprof</code> and "
                       "<code>kiln</code> without <code>debug</code>, "
                       "and with <code>?seconds=N</code> only what happens in the next N "
                       "seconds.</p>\n</body>\n</html>\n");
}
