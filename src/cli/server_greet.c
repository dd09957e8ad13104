/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The banner of a server that was started by hand: what runs, what is missing and how to get it,
 * and what to type next.  Printed on a terminal only.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/serve.h"
#include "host/grants.h"
#include "host/survey.h"

enum {
    BANNER_MAX = 1 << 16,
    WIDTH_MAX = 100,  /* longer lines are hard to read */
    TEXT_COLUMN = 12, /* of what stands beside a label */
    NOTE_COLUMN = 40, /* of what a command does, */
    NOTE_INDENT = 6,  /* or on a line of its own */
};

#define DEBUGINFOD "https://debuginfod.elfutils.org"
#define EXAMPLE    "examples/checkout.pb.gz" /* in the sources */

struct banner {
    const struct kiln_serve *serve;
    struct kiln_buf out;
    uint32_t width;
    char page[300]; /* "http://127.0.0.1:4040"; "": that listener is off */
};

/* "0.0.0.0:4040" and ":4040" stand for every address of the machine; loopback is one of them. */
static void find_page(struct banner *b)
{
    const struct kiln_settings *set = &b->serve->config->set;
    const char *address = set->listen, *colon = strrchr(address, ':');
    int host = colon ? (int)(colon - address) : 0;
    bool any = host == 0 || strncmp(address, "0.0.0.0", 7) == 0 || strncmp(address, "[::]", 4) == 0;

    if (b->serve->ports.http)
        snprintf(b->page, sizeof(b->page), "%s://%.*s:%u", set->tls_cert ? "https" : "http",
                 any ? 9 : host, any ? "127.0.0.1" : address, b->serve->ports.http);
}

static void put_styled(struct banner *b, enum kiln_style style, const char *text)
{
    kiln_term_put(b->serve->term, &b->out, style, kiln_str_of(text));
}

static void put_label(struct banner *b, const char *label)
{
    char cell[TEXT_COLUMN + 1];

    snprintf(cell, sizeof(cell), "  %-*s", TEXT_COLUMN - 2, label);
    put_styled(b, KILN_STYLE_FAINT, cell);
}

/* A sentence beside a label, from column `at` on, over as many lines as it takes. */
static void put_text(struct banner *b, uint32_t at, const char *format, ...) KILN_PRINTF(3, 4);

static void put_text(struct banner *b, uint32_t at, const char *format, ...)
{
    char text[PATH_MAX + 256];
    struct kiln_buf safe;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    kiln_buf_init(&safe, BANNER_MAX);
    kiln_cli_put_safe(&safe, kiln_str_of(text));
    kiln_term_wrap_to(&b->out, kiln_buf_str(&safe), at, TEXT_COLUMN, b->width);
    kiln_buf_done(&safe);
}

/* ---- what runs ---- */

static bool lacks_needed_grant(void)
{
    uint64_t set = kiln_capabilities();

    for (int i = 0; i < KILN_GRANTS; i++)
        if (kiln_grants[i].needed && !kiln_grant_held(&kiln_grants[i], set))
            return true;
    return false;
}

static void put_why_off(struct banner *b)
{
    char grant[640];

    /* Its own process says itself what it lacks; this one has given up what it had. */
    if (kiln_profiler_is_apart(b->serve->profiler) || !lacks_needed_grant()) {
        put_text(b, TEXT_COLUMN + 5, "%s", b->serve->no_host);
        return;
    }
    kiln_survey_grant_all(grant, sizeof(grant));
    put_text(b, TEXT_COLUMN + 5, "needs more privileges: %s", grant);
}

static void put_profiler(struct banner *b)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    bool on = b->serve->host_runs;

    put_label(b, "profiler");
    put_styled(b, on ? KILN_STYLE_BETTER : KILN_STYLE_WARM, on ? "on:" : "off:");
    kiln_buf_putc(&b->out, ' ');
    if (on)
        put_text(b, TEXT_COLUMN + 4, "every process on this host, at %u Hz on %ld CPU%s",
                 b->serve->plan.opts.hz, n, n == 1 ? "" : "s");
    else if (b->serve->no_host[0])
        put_why_off(b);
    else
        put_text(b, TEXT_COLUMN + 5, "this server only receives profiles");
}

/* "OTLP on ports 4317 (gRPC) and 4318 (HTTP)" */
static void format_otlp(const struct kiln_ports *ports, char *to, size_t size)
{
    if (ports->otlp_grpc && ports->otlp_http)
        snprintf(to, size, "OTLP on ports %u (gRPC) and %u (HTTP)", ports->otlp_grpc,
                 ports->otlp_http);
    else if (ports->otlp_grpc || ports->otlp_http)
        snprintf(to, size, "OTLP on port %u (%s)",
                 ports->otlp_grpc ? ports->otlp_grpc : ports->otlp_http,
                 ports->otlp_grpc ? "gRPC" : "HTTP");
}

static void put_receivers(struct banner *b)
{
    const struct kiln_ports *ports = &b->serve->ports;
    char otlp[64] = "", http[64] = "";

    format_otlp(ports, otlp, sizeof(otlp));
    if (ports->http)
        snprintf(http, sizeof(http), "OTLP, Pyroscope and pprof on port %u", ports->http);
    put_label(b, "receives");
    if (otlp[0] || http[0])
        put_text(b, TEXT_COLUMN, "%s%s%s", otlp, otlp[0] && http[0] ? "; " : "", http);
    else
        put_text(b, TEXT_COLUMN, "profiles on %s", b->serve->config->set.socket);
}

static void put_data(struct banner *b)
{
    uint64_t hours = b->serve->config->set.retention_ns / (3600 * KILN_NS_PER_S);
    bool days = hours >= 48;
    uint64_t n = days ? hours / 24 : hours;

    put_label(b, "data");
    put_text(b, TEXT_COLUMN, "%s, deleted after %llu %s%s", b->serve->config->set.data_dir,
             (unsigned long long)n, days ? "day" : "hour", n == 1 ? "" : "s");
}

/* Only of what this host's programs lack: profiles that are sent may be complete. */
static void put_missing(struct banner *b)
{
    if (b->serve->config->debuginfod.n || !b->serve->host_runs)
        return;
    put_label(b, "missing");
    put_text(b, TEXT_COLUMN,
             "function names of stripped programs; --debuginfod " DEBUGINFOD " downloads them");
}

/* ---- what to type next ---- */

/* `words` may end in --server. */
static void put_command(struct banner *b, const char *words, const char *note)
{
    size_t start = b->out.len;
    uint32_t at;

    kiln_buf_puts(&b->out, "  ");
    kiln_cli_put_program(&b->out);
    kiln_buf_printf(&b->out, " %s", words);
    if (kiln_str_ends(kiln_str_of(words), KILN_STR("--server")))
        kiln_buf_printf(&b->out, " %s", b->page);
    at = (uint32_t)(b->out.len - start);
    if (at + 2 > NOTE_COLUMN || NOTE_COLUMN + strlen(note) > b->width)
        kiln_buf_printf(&b->out, "\n%*s", NOTE_INDENT, ""); /* commands are not wrapped */
    else
        kiln_buf_printf(&b->out, "%*s", (int)(NOTE_COLUMN - at), "");
    kiln_term_wrap_to(&b->out, kiln_str_of(note), NOTE_INDENT, NOTE_INDENT, b->width);
}

static void put_commands(struct banner *b)
{
    bool usual = strcmp(b->page, "http://127.0.0.1:4040") == 0;

    kiln_buf_puts(&b->out, "\nNext, in another terminal:\n");
    if (b->page[0] && b->serve->host_runs) {
        put_command(b, usual ? "query cpu" : "query cpu --server", "functions by CPU time");
        put_command(b, "live --server", "the same for the last minute, as it changes");
    } else if (b->page[0] && access(EXAMPLE, R_OK) == 0) {
        put_command(b, usual ? "push --time now " EXAMPLE : "push --time now " EXAMPLE " --server",
                    "store a profile, to look at it");
    } else {
        put_command(b, "help push", "how to send a profile");
    }
    put_command(b, "doctor", "what the profiler lacks here, and how to get it");
}

void kiln_serve_greet(const struct kiln_serve *serve)
{
    struct banner b = {.serve = serve, .width = serve->term->width};

    if (!serve->term->is_terminal)
        return;
    if (b.width == 0 || b.width > WIDTH_MAX)
        b.width = WIDTH_MAX;
    kiln_buf_init(&b.out, BANNER_MAX);
    find_page(&b);
    put_styled(&b, KILN_STYLE_STRONG, "Kiln " KILN_VERSION " is running");
    if (b.page[0]) {
        kiln_buf_puts(&b.out, ": open ");
        put_styled(&b, KILN_STYLE_STRONG, b.page);
    }
    kiln_buf_puts(&b.out, "\n\n");
    put_profiler(&b);
    put_receivers(&b);
    put_data(&b);
    put_missing(&b);
    put_commands(&b);
    kiln_buf_puts(&b.out, "\nCtrl-C stops Kiln.\n\n");
    if (kiln_fd_write(STDOUT_FILENO, kiln_buf_str(&b.out)) < 0)
        errno = 0; /* the terminal is gone */
    kiln_buf_done(&b.out);
}

/* Over the ^C that the terminal has printed. */
void kiln_serve_part(const struct kiln_serve *serve)
{
    struct kiln_buf text;

    if (!serve->term->is_terminal)
        return;
    kiln_buf_init(&text, BANNER_MAX);
    kiln_buf_puts(&text, "\rStopping: writing profiles to ");
    kiln_cli_put_safe(&text, kiln_str_of(serve->config->set.data_dir));
    kiln_buf_puts(&text, ". Ctrl-C again stops at once.\n");
    if (kiln_fd_write(STDOUT_FILENO, kiln_buf_str(&text)) < 0)
        errno = 0;
    kiln_buf_done(&text);
}
