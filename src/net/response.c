/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer is made where it is given (a worker's thread, as a rule), because compressing is the
 * dearest part of it, and only sent on the loop.  It is one block: fields, their bytes, the body;
 * a compressed body stands beside.
 */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/server_int.h"

#define COMPRESS_MIN 1400u        /* one packet: below, compressing saves nothing */
#define VITAL_MAX    (256u << 10) /* bytes of an answer that has to go out: the page of metrics */
#define TRAILERS_MAX (64u << 10)  /* bytes, with the chunks around a body */
#define FIELDS_MAX   (2 * KILN_REPLY_HEADERS + 9)

const char *kiln_http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {201, "Created"},
                   {202, "Accepted"},
                   {204, "No Content"},
                   {206, "Partial Content"},
                   {301, "Moved Permanently"},
                   {302, "Found"},
                   {303, "See Other"},
                   {304, "Not Modified"},
                   {307, "Temporary Redirect"},
                   {308, "Permanent Redirect"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {406, "Not Acceptable"},
                   {408, "Request Timeout"},
                   {409, "Conflict"},
                   {411, "Length Required"},
                   {413, "Content Too Large"},
                   {415, "Unsupported Media Type"},
                   {417, "Expectation Failed"},
                   {421, "Misdirected Request"},
                   {422, "Unprocessable Content"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {500, "Internal Server Error"},
                   {501, "Not Implemented"},
                   {503, "Service Unavailable"},
                   {504, "Gateway Timeout"},
                   {505, "HTTP Version Not Supported"},
                   {507, "Insufficient Storage"}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Status";
}

/* ---- what the client takes ---- */

static bool compressible(const char *type)
{
    struct kiln_str s = kiln_str_of(type);
    static const char *const types[] = {
        "application/json",  "application/javascript", "application/x-protobuf",
        "application/proto", "application/protobuf",   "application/x-ndjson",
        "application/xml",   "image/svg+xml",          "application/octet-stream",
        "application/yaml",  "application/wasm",
    };

    s = kiln_str_trim(kiln_str_cut(&s, ';'));
    if (kiln_str_starts(s, KILN_STR("text/")) || kiln_str_ends(s, KILN_STR("+json")))
        return true;
    for (size_t i = 0; i < KILN_ARRAY_LEN(types); i++)
        if (kiln_str_eq(s, kiln_str_of(types[i])))
            return true;
    return false;
}

/* The weight of "gzip;q=0.5", in thousandths. */
static int quality(struct kiln_str params)
{
    int q = 0, scale = 1000;

    params = kiln_str_trim(params);
    if (params.len < 3 || (params.ptr[0] | 0x20) != 'q' || params.ptr[1] != '=')
        return 1000;
    for (size_t i = 2; i < params.len && scale; i++) {
        if (params.ptr[i] == '.')
            continue;
        if (params.ptr[i] < '0' || params.ptr[i] > '9')
            return 0;
        q += (params.ptr[i] - '0') * scale;
        scale /= 10;
    }
    return q > 1000 ? 1000 : q;
}

static bool names(struct kiln_str coding, const char *word)
{
    return coding.len == strlen(word) && strncasecmp(coding.ptr, word, coding.len) == 0;
}

/* The best of what Accept-Encoding allows; zstd where it is as welcome as gzip. */
static enum kiln_compression best_coding(struct kiln_str accept)
{
    int gzip = -1, zstd = -1, any = 0;

    while (accept.ptr) {
        struct kiln_str item = kiln_str_cut(&accept, ',');
        struct kiln_str coding = kiln_str_trim(kiln_str_cut(&item, ';'));
        int q = item.ptr ? quality(item) : 1000;

        if (names(coding, "gzip") || names(coding, "x-gzip"))
            gzip = q;
        else if (names(coding, "zstd"))
            zstd = q;
        else if (names(coding, "*"))
            any = q;
    }
    gzip = gzip < 0 ? any : gzip;
    zstd = zstd < 0 ? any : zstd;
    if (gzip <= 0 && zstd <= 0)
        return KILN_PLAIN;
    return zstd >= gzip ? KILN_ZSTD : KILN_GZIP;
}

/* ---- making one ---- */

/* An answer that is being put together. */
struct draft {
    struct kiln_header fields[FIELDS_MAX];
    uint32_t n_headers, n_trailers;
    struct kiln_str body;
    struct kiln_buf packed;
    char date[40], length[24];
    bool failed; /* no memory */
};

static void add(struct draft *draft, struct kiln_str name, struct kiln_str value)
{
    draft->fields[draft->n_headers++] = (struct kiln_header){name, value};
}

static struct kiln_str format_date(char *out, size_t size)
{
    time_t now = (time_t)(kiln_clock_unix_ns() / KILN_NS_PER_S);
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm;
    int n;

    gmtime_r(&now, &tm);
    n = snprintf(out, size, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday,
                 tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                 tm.tm_sec);
    return (struct kiln_str){out, (size_t)n};
}

static void shrink(struct kiln_buf *buf)
{
    char *small = kiln_realloc(buf->ptr, buf->len);

    if (small) {
        buf->ptr = small;
        buf->cap = buf->len;
    }
}

static void pack(struct draft *draft, const struct kiln_exchange *x, const struct kiln_reply *reply)
{
    enum kiln_compression coding;

    if (!x || reply->as_is || !reply->content_type || reply->body.len < COMPRESS_MIN ||
        !compressible(reply->content_type))
        return;
    add(draft, KILN_STR("vary"), KILN_STR("accept-encoding"));
    coding = best_coding(kiln_request_header(&x->request, "accept-encoding"));
    if (coding == KILN_PLAIN)
        return;
    kiln_buf_init(&draft->packed, 2 * reply->body.len); /* the worst case is asked for first */
    if (kiln_compress(coding, 0, reply->body, &draft->packed) < 0 ||
        draft->packed.len >= reply->body.len) {
        kiln_buf_done(&draft->packed);
        return;
    }
    shrink(&draft->packed);
    draft->body = kiln_buf_str(&draft->packed);
    add(draft, KILN_STR("content-encoding"), kiln_str_of(kiln_compression_name(coding)));
}

/* Line breaks would begin a field of somebody's choice. */
static void put_clean(struct kiln_buf *out, struct kiln_str s)
{
    for (size_t i = 0; i < s.len; i++)
        kiln_buf_putc(out, (unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f ? ' ' : s.ptr[i]);
}

/* HTTP/1.1 has trailers only after chunks: the body becomes one, and they follow it. */
static void chunk(struct draft *draft, const struct kiln_reply *reply)
{
    struct kiln_buf out;

    kiln_buf_init(&out, draft->body.len + TRAILERS_MAX);
    if (draft->body.len) {
        kiln_buf_printf(&out, "%zx\r\n", draft->body.len);
        kiln_buf_add_str(&out, draft->body);
        kiln_buf_puts(&out, "\r\n");
    }
    kiln_buf_puts(&out, "0\r\n");
    for (uint32_t i = 0; i < reply->n_trailers && i < KILN_REPLY_HEADERS; i++) {
        put_clean(&out, reply->trailers[i].name);
        kiln_buf_puts(&out, ": ");
        put_clean(&out, reply->trailers[i].value);
        kiln_buf_puts(&out, "\r\n");
    }
    kiln_buf_puts(&out, "\r\n");
    kiln_buf_done(&draft->packed);
    draft->packed = out;
    draft->failed = out.error < 0;
    draft->body = kiln_buf_str(&draft->packed);
    add(draft, KILN_STR("transfer-encoding"), KILN_STR("chunked"));
}

static void fill(struct draft *draft, const struct kiln_exchange *x, const struct kiln_reply *reply)
{
    bool bodyless = reply->status == 204 || reply->status == 304 || reply->status < 200;
    bool trailers = x && reply->n_trailers > 0;
    int n;

    draft->n_headers = draft->n_trailers = 0;
    draft->packed = (struct kiln_buf){0};
    draft->failed = false;
    draft->body = bodyless || !reply->content_type ? KILN_STR_NONE : reply->body;
    add(draft, KILN_STR("date"), format_date(draft->date, sizeof(draft->date)));
    /* Pages of other origins may not embed any answer, to learn from its size or success. */
    add(draft, KILN_STR("cross-origin-resource-policy"), KILN_STR("same-origin"));
    if (reply->content_type)
        add(draft, KILN_STR("content-type"), kiln_str_of(reply->content_type));
    if (x && x->request.note)
        add(draft, KILN_STR("kiln-note"), kiln_str_of(x->request.note));
    if (draft->body.len)
        pack(draft, x, reply);
    if (!bodyless && !trailers) {
        n = snprintf(draft->length, sizeof(draft->length), "%zu", draft->body.len);
        add(draft, KILN_STR("content-length"), (struct kiln_str){draft->length, (size_t)n});
    }
    for (uint32_t i = 0; i < reply->n_headers && i < KILN_REPLY_HEADERS; i++)
        draft->fields[draft->n_headers++] = reply->headers[i];
    if (trailers && !bodyless && x->request.http_version < 2) {
        chunk(draft, reply);
        return;
    }
    for (uint32_t i = 0; trailers && i < reply->n_trailers && i < KILN_REPLY_HEADERS; i++)
        draft->fields[draft->n_headers + draft->n_trailers++] = reply->trailers[i];
}

static struct kiln_str copy_name(char **at, struct kiln_str s)
{
    struct kiln_str mine = {*at, s.len};

    for (size_t i = 0; i < s.len; i++)
        *(*at)++ = (char)(s.ptr[i] >= 'A' && s.ptr[i] <= 'Z' ? s.ptr[i] | 0x20 : s.ptr[i]);
    return mine;
}

/* A line break in a value would start a header of somebody's choice: it becomes a space. */
static struct kiln_str copy_value(char **at, struct kiln_str s)
{
    struct kiln_str mine = {*at, s.len};

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        *(*at)++ = (char)(c < 0x20 || c == 0x7f ? ' ' : c);
    }
    return mine;
}

/* Whose memory the answer is; NULL: the server's own. */
static struct kiln_pool *pool_of(const struct kiln_server *server, const struct kiln_exchange *x)
{
    return x && x->route && x->route->lane == KILN_LANE_LONG ? server->opts.long_pool : NULL;
}

static int take(struct kiln_server *server, struct kiln_pool **pool, size_t bytes)
{
    if (*pool && kiln_pool_take(*pool, bytes) == 0)
        return 0;
    *pool = NULL;
    return kiln_net_take(server, bytes, bytes <= VITAL_MAX);
}

static void give(struct kiln_server *server, struct kiln_pool *pool, size_t bytes)
{
    if (pool)
        kiln_pool_give(pool, bytes);
    else
        kiln_net_give(server, bytes);
}

/* Moves a draft into one block, which is of `pool`, or where that is empty of the server's. */
static struct kiln_response *settle(struct kiln_server *server, struct kiln_pool *pool,
                                    const struct draft *draft, const struct kiln_reply *reply)
{
    uint32_t n_fields = draft->n_headers + draft->n_trailers;
    size_t size = sizeof(struct kiln_response) + n_fields * sizeof(struct kiln_header);
    size_t beside = draft->packed.ptr ? draft->packed.cap : 0;
    struct kiln_response *answer;
    size_t charge;
    char *at;

    for (uint32_t i = 0; i < n_fields; i++)
        size += draft->fields[i].name.len + draft->fields[i].value.len;
    size += beside ? 0 : draft->body.len;
    charge = size + beside;
    if (take(server, &pool, charge) < 0)
        return NULL;
    answer = kiln_malloc(size);
    if (!answer) {
        give(server, pool, charge);
        return NULL;
    }
    *answer = (struct kiln_response){.status = reply->status,
                                     .close = reply->close,
                                     .n_headers = draft->n_headers,
                                     .n_trailers = draft->n_trailers,
                                     .packed = draft->packed.ptr,
                                     .pool = pool,
                                     .charged = charge};
    at = (char *)(answer->fields + n_fields);
    for (uint32_t i = 0; i < n_fields; i++) {
        answer->fields[i].name = copy_name(&at, draft->fields[i].name);
        answer->fields[i].value = copy_value(&at, draft->fields[i].value);
    }
    answer->body = draft->body;
    if (!beside && draft->body.len)
        answer->body.ptr = memcpy(at, draft->body.ptr, draft->body.len);
    return answer;
}

static struct kiln_response *make(struct kiln_server *server, const struct kiln_exchange *x,
                                  const struct kiln_reply *reply)
{
    struct kiln_response *answer;
    struct draft draft;

    fill(&draft, x, reply);
    answer = draft.failed ? NULL : settle(server, pool_of(server, x), &draft, reply);
    if (!answer)
        kiln_buf_done(&draft.packed);
    return answer;
}

struct kiln_response *kiln_response_new(struct kiln_server *server, const struct kiln_exchange *x,
                                        const struct kiln_reply *reply)
{
    static const struct kiln_reply busy = {
        .status = 503,
        .content_type = "text/plain; charset=utf-8",
        .body = {"no memory for the answer now, try again\n", 40},
        .headers = {{{"retry-after", 11}, {"1", 1}}},
        .n_headers = 1,
    };
    struct kiln_response *answer;
    struct kiln_reply dressed;

    if (x && x->router->dress) {
        dressed = *reply;
        reply = &dressed;
        x->router->dress(x->router->dress_context, &x->request, &dressed);
    }
    answer = make(server, x, reply);
    if (!answer) {
        kiln_server_refused(server, "memory");
        answer = make(server, x, &busy);
    }
    return answer;
}

void kiln_response_free(struct kiln_server *server, struct kiln_response *answer)
{
    if (!answer)
        return;
    give(server, answer->pool, answer->charged);
    kiln_free(answer->packed);
    kiln_free(answer);
}

/* ---- from anywhere ---- */

void kiln_request_reply(struct kiln_request *request, const struct kiln_reply *reply)
{
    struct kiln_exchange *x = (struct kiln_exchange *)request;

    x->answer = kiln_response_new(x->server, x, reply);
    kiln_loop_post_answer(x->loop, x);
}

void kiln_request_reply_text(struct kiln_request *request, int status, const char *fmt, ...)
{
    struct kiln_reply reply = {.status = status, .content_type = "text/plain; charset=utf-8"};
    va_list args;
    char line[1024];
    int n;

    va_start(args, fmt);
    n = vsnprintf(line, sizeof(line) - 1, fmt, args);
    va_end(args);
    if (n >= (int)sizeof(line) - 1)
        n = (int)sizeof(line) - 2;
    if (n > 0 && line[n - 1] != '\n')
        line[n++] = '\n';
    reply.body = (struct kiln_str){line, n > 0 ? (size_t)n : 0};
    kiln_request_reply(request, &reply);
}
