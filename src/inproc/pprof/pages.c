/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path is looked up in a table; what Go's handlers say to a wrong parameter is said here in the
 * same words' meaning, with the same status.  A counting profile is one reading, or with `seconds`
 * a mark and later a reading; `profile`, `wall` and fgprof are always the latter.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/compress.h"
#include "base/mem.h"
#include "codec/pprof.h"
#include "inproc/out/prepare.h"
#include "inproc/pprof/args.h"
#include "inproc/pprof/pages.h"
#include "inproc/pprof/text.h"

#define CMDLINE_MAX (1u << 20)
#define ROOT        "/debug/pprof/"

enum page_kind { PAGE_INDEX, PAGE_CMDLINE, PAGE_SYMBOL, PAGE_TRACE, PAGE_COUNTS, PAGE_WINDOW };

struct page {
    const char *path;
    enum page_kind kind;
    enum kiln_in_profile which;
    const char *file;
};

static const struct page pages_by_path[] = {
    {ROOT, PAGE_INDEX, 0, NULL},
    {ROOT "allocs", PAGE_COUNTS, KILN_IN_PROFILE_ALLOCS, "allocs"},
    {ROOT "block", PAGE_COUNTS, KILN_IN_PROFILE_BLOCK, "block"},
    {ROOT "cmdline", PAGE_CMDLINE, 0, NULL},
    {ROOT "event_loop", PAGE_COUNTS, KILN_IN_PROFILE_LOOP, "event_loop"},
    {ROOT "goroutine", PAGE_COUNTS, KILN_IN_PROFILE_THREADS, "goroutine"},
    {ROOT "heap", PAGE_COUNTS, KILN_IN_PROFILE_HEAP, "heap"},
    {ROOT "mutex", PAGE_COUNTS, KILN_IN_PROFILE_MUTEX, "mutex"},
    {ROOT "mutex_holders", PAGE_COUNTS, KILN_IN_PROFILE_HOLDERS, "mutex_holders"},
    {ROOT "profile", PAGE_WINDOW, KILN_IN_PROFILE_CPU, "profile"},
    {ROOT "symbol", PAGE_SYMBOL, 0, NULL},
    {ROOT "threadcreate", PAGE_COUNTS, KILN_IN_PROFILE_CREATE, "threadcreate"},
    {ROOT "trace", PAGE_TRACE, 0, NULL},
    {ROOT "wall", PAGE_WINDOW, KILN_IN_PROFILE_WALL, "wall"},
    {"/debug/fgprof", PAGE_WINDOW, KILN_IN_PROFILE_FGPROF, "fgprof"},
    /* `go tool pprof` asks here for names of addresses in fgprof; that of Go 1.19 the second. */
    {"/debug/symbolz", PAGE_SYMBOL, 0, NULL},
    {"/symbolz", PAGE_SYMBOL, 0, NULL},
    {"/pprof/cmdline", PAGE_CMDLINE, 0, NULL},
    {"/pprof/contention", PAGE_COUNTS, KILN_IN_PROFILE_MUTEX, "mutex"},
    {"/pprof/growth", PAGE_COUNTS, KILN_IN_PROFILE_HEAP, "heap"},
    {"/pprof/heap", PAGE_COUNTS, KILN_IN_PROFILE_HEAP, "heap"},
    {"/pprof/pmuprofile", PAGE_WINDOW, KILN_IN_PROFILE_CPU, "profile"},
    {"/pprof/profile", PAGE_WINDOW, KILN_IN_PROFILE_CPU, "profile"},
    {"/pprof/symbol", PAGE_SYMBOL, 0, NULL},
};

static const struct page *find_page(struct kiln_str path)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(pages_by_path); i++)
        if (kiln_str_eq(path, kiln_str_of(pages_by_path[i].path)))
            return &pages_by_path[i];
    return NULL;
}

/* ---- who may ask, and how ---- */

/* As long for a wrong token as for the right one. */
static bool same_secret(struct kiln_str given, const char *token)
{
    size_t len = strlen(token);
    unsigned differs = given.len != len;

    for (size_t i = 0; i < given.len; i++)
        differs |= (unsigned char)given.ptr[i] ^ (unsigned char)token[len ? i % len : 0];
    return !differs;
}

/* `go tool pprof http://:TOKEN@host/...` sends it as a password. */
static bool is_password(struct kiln_str given, const char *token)
{
    char plain[512];
    struct kiln_str rest = {plain, 0};

    if (kiln_base64_room(given.len) > sizeof(plain) ||
        kiln_base64_decode(given, plain, &rest.len) < 0)
        return false;
    kiln_str_cut(&rest, ':');
    return rest.ptr && same_secret(rest, token);
}

static bool is_allowed(const struct kiln_in_pages *pages, struct kiln_str authorization)
{
    struct kiln_str scheme = kiln_str_cut(&authorization, ' ');

    if (!pages->token)
        return true;
    authorization = kiln_str_trim(authorization);
    if (scheme.len == 6 && strncasecmp(scheme.ptr, "bearer", 6) == 0)
        return same_secret(authorization, pages->token);
    return scheme.len == 5 && strncasecmp(scheme.ptr, "basic", 5) == 0 &&
           is_password(authorization, pages->token);
}

static int refuse(struct kiln_in_reply *reply, int status, const char *why)
{
    kiln_in_reply_fail(reply, status, "%s", why);
    return status;
}

/* Paths that have no page but lead to one. */
static int refuse_path(struct kiln_str path, struct kiln_in_reply *reply)
{
    if (kiln_str_eq(path, KILN_STR("/")) || kiln_str_eq(path, KILN_STR("/debug/pprof")) ||
        kiln_str_eq(path, KILN_STR("/debug")) || kiln_str_eq(path, KILN_STR("/debug/"))) {
        reply->location = ROOT;
        reply->status = 301;
        return 301;
    }
    return refuse(reply, 404,
                  kiln_str_starts(path, KILN_STR(ROOT)) ? "Unknown profile" : "404 page not found");
}

int kiln_in_pages_admit(const struct kiln_in_pages *pages, const struct kiln_in_request *request,
                        struct kiln_in_reply *reply)
{
    const struct page *page = find_page(request->path);
    bool posts = kiln_str_eq(request->method, KILN_STR("POST"));

    if (!is_allowed(pages, request->authorization))
        return refuse(reply, 401, "a token is asked for here");
    if (!page)
        return refuse_path(request->path, reply);
    if (!kiln_str_eq(request->method, KILN_STR("GET")) &&
        !kiln_str_eq(request->method, KILN_STR("HEAD")) && !(posts && page->kind == PAGE_SYMBOL)) {
        reply->allow = page->kind == PAGE_SYMBOL ? "GET, HEAD, POST" : "GET, HEAD";
        return refuse(reply, 405, "Method Not Allowed");
    }
    if (request->has_body && !posts)
        return refuse(reply, 413, "no body is expected here");
    return 0;
}

/* ---- small pages ---- */

/* Words as the kernel has them, each with a NUL behind it. */
static int read_cmdline(struct kiln_buf *out)
{
    int fd = open("/proc/thread-self/cmdline", O_RDONLY | O_CLOEXEC);
    char *room = kiln_buf_reserve(out, 4096);
    ssize_t n = 0;

    while (fd >= 0 && room && out->len < CMDLINE_MAX && (n = read(fd, room, 4096)) > 0) {
        out->len += (size_t)n;
        room = kiln_buf_reserve(out, 4096);
    }
    if (fd >= 0)
        close(fd);
    while (out->len && out->ptr[out->len - 1] == 0)
        out->len--;
    return fd < 0 || n < 0 || out->error ? -EIO : 0;
}

static void answer_cmdline(struct kiln_in_reply *reply)
{
    struct kiln_str rest;
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, CMDLINE_MAX + 8192);
    r = read_cmdline(&text);
    rest = kiln_buf_str(&text);
    while (r == 0 && rest.ptr) {
        r = kiln_in_prepare_word(kiln_str_cut(&rest, '\0'), &reply->body);
        if (r == 0 && rest.ptr)
            kiln_buf_putc(&reply->body, '\0');
    }
    kiln_buf_done(&text);
    if (r < 0 || reply->body.error)
        kiln_in_reply_fail(reply, 500, "the command line cannot be read");
}

/* Addresses are joined by "+", hexadecimal. */
static int parse_addresses(struct kiln_str words, uint64_t **ret, size_t *ret_n)
{
    size_t room = 1, n = 0;
    uint64_t *addresses;

    for (size_t i = 0; i < words.len; i++)
        room += words.ptr[i] == '+';
    addresses = kiln_calloc(room, sizeof(*addresses));
    if (!addresses)
        return -ENOMEM;
    while (words.ptr) {
        struct kiln_str word = kiln_str_trim(kiln_str_cut(&words, '+'));

        if (kiln_str_parse_hex(word, &addresses[n]) == 0 && addresses[n])
            n++;
    }
    *ret = addresses;
    *ret_n = n;
    return 0;
}

static void answer_symbol(const struct kiln_in_pages *pages, const struct kiln_in_request *request,
                          struct kiln_in_reply *reply)
{
    uint64_t *addresses = NULL;
    size_t n = 0;
    int r = parse_addresses(request->has_body ? request->body : request->query, &addresses, &n);

    kiln_buf_puts(&reply->body, "num_symbols: 1\n");
    if (r == 0 && n)
        r = pages->source->name(addresses, n, &reply->body);
    kiln_free(addresses);
    if (r < 0 || reply->body.error)
        kiln_in_reply_fail(reply, 500, "no names: %s",
                           kiln_err_text(r < 0 ? r : reply->body.error));
}

/* ---- profiles ---- */

static int encode(const struct kiln_batch *batch, struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_buf plain;
    int r;

    kiln_buf_init(&plain, KILN_IN_REPLY_BYTES);
    r = kiln_pprof_encode(batch, NULL, &plain, err);
    if (r == 0)
        r = kiln_compress(KILN_GZIP, 0, kiln_buf_str(&plain), out);
    kiln_buf_done(&plain);
    return r < 0 ? r : out->error;
}

static void answer_profile(const struct kiln_in_pages *pages, enum kiln_in_profile which,
                           const struct kiln_in_mark *from, int64_t debug,
                           struct kiln_in_reply *reply)
{
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};
    int r = pages->source->read(which, from, &batch, &err);

    if (r == 0 && debug)
        r = kiln_in_text(which, batch, debug, &reply->body);
    else if (r == 0)
        r = encode(batch, &reply->body, &err);
    if (r == 0 && !debug)
        reply->type = "application/octet-stream";
    if (r < 0)
        kiln_in_reply_fail(reply, 500, "the profile could not be made: %s",
                           err.text[0] ? err.text : kiln_err_text(r));
    kiln_batch_unref(batch);
}

static int begin_window(const struct kiln_in_pages *pages, const struct page *page, int64_t seconds,
                        struct kiln_in_reply *reply, struct kiln_in_job *ret_job)
{
    struct kiln_in_job job = {.which = page->which};
    struct kiln_err err = {0};
    int r;

    if (seconds > KILN_IN_SECONDS_MAX) {
        kiln_in_reply_fail(reply, 400, "\"seconds\" may be %d at most", KILN_IN_SECONDS_MAX);
        return 0;
    }
    r = pages->source->mark(page->which, &job.from, &err);
    if (r < 0) {
        kiln_in_reply_fail(reply, 500, "Could not enable profiling: %s",
                           err.text[0] ? err.text : kiln_err_text(r));
        return 0;
    }
    snprintf(job.file, sizeof(job.file), "%s%s", page->file,
             page->kind == PAGE_WINDOW ? "" : "-delta");
    job.due_ns = kiln_clock_mono_ns() + (uint64_t)seconds * KILN_NS_PER_S;
    *ret_job = job;
    return 1;
}

static int begin_counts(const struct kiln_in_pages *pages, const struct page *page,
                        const struct kiln_in_args *args, struct kiln_in_reply *reply,
                        struct kiln_in_job *ret_job)
{
    if (args->has_seconds && args->seconds == 0)
        kiln_in_reply_fail(reply, 400,
                           "invalid value for \"seconds\" - must be a positive integer");
    else if (args->has_seconds && args->debug)
        kiln_in_reply_fail(reply, 400, "\"seconds\" and \"debug\" do not go together");
    else if (args->has_seconds)
        return begin_window(pages, page, args->seconds, reply, ret_job);
    else {
        if (!args->debug)
            snprintf(reply->file, sizeof(reply->file), "%s", page->file);
        answer_profile(pages, page->which, NULL, args->debug, reply);
    }
    return 0;
}

int kiln_in_pages_begin(const struct kiln_in_pages *pages, const struct kiln_in_request *request,
                        struct kiln_in_reply *reply, struct kiln_in_job *ret_job)
{
    const struct page *page = find_page(request->path);
    struct kiln_in_args args;

    kiln_in_args_parse(request->query, &args);
    switch (page->kind) {
    case PAGE_INDEX:
        kiln_in_pages_index(reply);
        return 0;
    case PAGE_CMDLINE:
        answer_cmdline(reply);
        return 0;
    case PAGE_SYMBOL:
        answer_symbol(pages, request, reply);
        return 0;
    case PAGE_TRACE:
        kiln_in_reply_fail(reply, 404,
                           "there is no execution trace of a native program; /debug/pprof/wall has "
                           "its time on and off processors");
        return 0;
    case PAGE_COUNTS:
        return begin_counts(pages, page, &args, reply, ret_job);
    case PAGE_WINDOW:
    default:
        return begin_window(pages, page, args.seconds ? args.seconds : KILN_IN_SECONDS, reply,
                            ret_job);
    }
}

void kiln_in_job_finish(const struct kiln_in_pages *pages, struct kiln_in_job *job,
                        struct kiln_in_reply *reply)
{
    snprintf(reply->file, sizeof(reply->file), "%s", job->file);
    answer_profile(pages, job->which, job->from, 0, reply);
    kiln_in_job_drop(pages, job);
}

void kiln_in_job_drop(const struct kiln_in_pages *pages, struct kiln_in_job *job)
{
    pages->source->drop(job->from);
    *job = (struct kiln_in_job){0};
}
