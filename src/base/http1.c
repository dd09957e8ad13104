/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head is searched for its end first, each byte looked at once however it arrives, and then
 * parsed in one go:
 *
 *   POST /ingest?name=a HTTP/1.1 CR LF      method SP target SP version
 *   Host: example CR LF                     token ":" blanks value blanks
 *   CR LF
 *
 * A body has a length, or comes in chunks, whose extensions and trailers are read and dropped:
 *
 *   1f;name=value CR LF  31 bytes CR LF  ...  0 CR LF  Trailer: value CR LF  CR LF
 */
#include "base/http1.h"
#include "base/bytetext.h"
#include "base/err.h"

#define OVERHEAD_MAX (16u << 10)
#define DIGITS_MAX   15u /* 2^60 bytes: the limit of bodies is reached long before */

int64_t kiln_http1_find_end(struct kiln_http1_scan *scan, struct kiln_str data)
{
    while (scan->at < data.len) {
        const char *lf = memchr(data.ptr + scan->at, '\n', data.len - scan->at);
        size_t end = lf ? (size_t)(lf - data.ptr) : data.len;

        scan->at = end;
        if (!lf)
            return 0;
        if (end == scan->line || data.ptr[end - 1] != '\r')
            return KILN_E_MALFORMED;
        scan->at = end + 1;
        if (end - scan->line == 1)
            return (int64_t)(end + 1);
        scan->line = end + 1;
    }
    return 0;
}

/* RFC 9110's tchar. */
static bool is_token(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != 0 && strchr("!#$%&'*+-.^_`|~", c);
}

static bool all_token(struct kiln_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_token((unsigned char)s.ptr[i]))
            return false;
    return s.len > 0;
}

static bool is_value(unsigned char c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7f);
}

static bool same_word(struct kiln_str s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.ptr, word, s.len) == 0;
}

/* The next line of a head whose lines are known to end in CR LF, without them. */
static struct kiln_str next_line(struct kiln_str *rest)
{
    const char *lf = memchr(rest->ptr, '\n', rest->len);
    struct kiln_str line = {rest->ptr, (size_t)(lf - rest->ptr) - 1};

    rest->len -= line.len + 2;
    rest->ptr = lf + 1;
    return line;
}

static int parse_request_line(struct kiln_str line, struct kiln_http_head *head)
{
    head->method = kiln_str_cut(&line, ' ');
    head->target = kiln_str_cut(&line, ' ');
    if (!all_token(head->method) || head->target.len == 0 || line.len != 8)
        return 400;
    for (size_t i = 0; i < head->target.len; i++)
        if (head->target.ptr[i] <= 0x20 || head->target.ptr[i] == 0x7f)
            return 400;
    if (memcmp(line.ptr, "HTTP/", 5) != 0 || line.ptr[6] != '.')
        return 400;
    if (line.ptr[5] != '1' || line.ptr[7] < '0' || line.ptr[7] > '9')
        return 505;
    head->minor = line.ptr[7] == '0' ? 0 : 1;
    return 0;
}

static int parse_field(struct kiln_str line, struct kiln_http_head *head)
{
    struct kiln_header *field = &head->headers[head->n_headers];
    char *name = (char *)line.ptr;
    size_t n = 0;

    if (head->n_headers == KILN_HTTP_HEADERS_MAX)
        return 431;
    for (; n < line.len && is_token((unsigned char)name[n]); n++)
        if (name[n] >= 'A' && name[n] <= 'Z')
            name[n] = (char)(name[n] | 0x20);
    if (n == 0 || n == line.len || name[n] != ':')
        return 400;
    for (size_t i = n + 1; i < line.len; i++)
        if (!is_value((unsigned char)line.ptr[i]))
            return 400;
    field->name = (struct kiln_str){name, n};
    field->value = kiln_str_trim((struct kiln_str){line.ptr + n + 1, line.len - n - 1});
    head->n_headers++;
    return 0;
}

static int read_length(struct kiln_str value, struct kiln_http_head *head)
{
    if (head->has_length || value.len == 0 || value.len > 18)
        return 400;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9')
            return 400;
        head->length = head->length * 10 + (uint64_t)(value.ptr[i] - '0');
    }
    head->has_length = true;
    return 0;
}

static int read_coding(struct kiln_str value, struct kiln_http_head *head)
{
    if (head->chunked || head->minor == 0)
        return 400;
    if (!same_word(value, "chunked"))
        return 501;
    head->chunked = true;
    return 0;
}

static void read_connection(struct kiln_str value, struct kiln_http_head *head)
{
    while (value.ptr) {
        struct kiln_str word = kiln_str_trim(kiln_str_cut(&value, ','));

        if (same_word(word, "close"))
            head->keep_alive = false;
        else if (same_word(word, "keep-alive") && head->minor == 0)
            head->keep_alive = true;
    }
}

/* What a field says about the connection and the body. */
static int read_field(const struct kiln_header *field, struct kiln_http_head *head,
                      uint32_t *n_hosts)
{
    if (kiln_str_eq(field->name, KILN_STR("content-length")))
        return read_length(field->value, head);
    if (kiln_str_eq(field->name, KILN_STR("transfer-encoding")))
        return read_coding(field->value, head);
    if (kiln_str_eq(field->name, KILN_STR("host")))
        ++*n_hosts;
    else if (kiln_str_eq(field->name, KILN_STR("connection")))
        read_connection(field->value, head);
    else if (kiln_str_eq(field->name, KILN_STR("expect"))) {
        head->expect = same_word(field->value, "100-continue") && head->minor > 0;
        return head->expect || head->minor == 0 ? 0 : 417;
    }
    return 0;
}

static void clear_head(struct kiln_http_head *head)
{
    memset(head, 0, offsetof(struct kiln_http_head, headers));
    memset(&head->n_headers, 0, sizeof(*head) - offsetof(struct kiln_http_head, n_headers));
}

/* All fields, behind the first line. */
static int parse_fields(struct kiln_str rest, struct kiln_http_head *head, uint32_t *n_hosts)
{
    struct kiln_str line;
    int status = 0;

    head->keep_alive = head->minor > 0;
    while (!status && (line = next_line(&rest)).len) {
        status = parse_field(line, head);
        if (!status)
            status = read_field(&head->headers[head->n_headers - 1], head, n_hosts);
    }
    return status;
}

int kiln_http1_parse_head(char *data, size_t len, struct kiln_http_head *ret_head)
{
    struct kiln_str rest = {data, len};
    struct kiln_http_head *head = ret_head;
    uint32_t n_hosts = 0;
    int status;

    clear_head(head);
    status = parse_request_line(next_line(&rest), head);
    if (!status)
        status = parse_fields(rest, head, &n_hosts);
    if (status)
        return status;
    if (n_hosts > 1 || (n_hosts == 0 && head->minor > 0) || (head->chunked && head->has_length))
        return 400;
    return 0;
}

/* "HTTP/1.1 200 OK"; the words at its end may be any, or none. */
static int parse_status_line(struct kiln_str line, struct kiln_http_head *head)
{
    struct kiln_str version = kiln_str_cut(&line, ' ');
    struct kiln_str digits = kiln_str_cut(&line, ' ');

    if (version.len != 8 || memcmp(version.ptr, "HTTP/1.", 7) != 0 || version.ptr[7] < '0' ||
        version.ptr[7] > '9' || digits.len != 3)
        return KILN_E_MALFORMED;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            return KILN_E_MALFORMED;
        head->status = head->status * 10 + digits.ptr[i] - '0';
    }
    head->minor = version.ptr[7] == '0' ? 0 : 1;
    return head->status >= 100 ? 0 : KILN_E_MALFORMED;
}

int kiln_http1_parse_answer(char *data, size_t len, struct kiln_http_head *ret_head)
{
    struct kiln_str rest = {data, len};
    uint32_t n_hosts = 0;

    clear_head(ret_head);
    if (parse_status_line(next_line(&rest), ret_head) < 0 ||
        parse_fields(rest, ret_head, &n_hosts) != 0 || (ret_head->chunked && ret_head->has_length))
        return KILN_E_MALFORMED;
    return 0;
}

/* ---- bodies ---- */

void kiln_http1_body_init(struct kiln_http1_body *body, const struct kiln_http_head *head)
{
    *body = (struct kiln_http1_body){.state = head->chunked ? KILN_BODY_SIZE : KILN_BODY_LENGTH,
                                     .left = head->length};
    if (!head->chunked && head->length == 0)
        body->state = KILN_BODY_DONE;
}

/* The content at the front of *in, at most what is left of the body or of the chunk. */
static struct kiln_str take_content(struct kiln_http1_body *body, struct kiln_str *in)
{
    size_t n = in->len < body->left ? in->len : (size_t)body->left;
    struct kiln_str piece = {in->ptr, n};

    in->ptr += n;
    in->len -= n;
    body->left -= n;
    if (body->left == 0)
        body->state = body->state == KILN_BODY_DATA ? KILN_BODY_DATA_CR : KILN_BODY_DONE;
    return piece;
}

static int size_byte(struct kiln_http1_body *body, unsigned char c)
{
    int digit = kiln_hex_digit((char)c);

    if (digit >= 0 && body->digits < DIGITS_MAX) {
        body->digits++;
        body->left = body->left << 4 | (uint64_t)digit;
        return 0;
    }
    if (digit >= 0 || body->digits == 0 || (c != '\r' && c != ';'))
        return KILN_E_MALFORMED;
    body->state = c == ';' ? KILN_BODY_EXTENSION : KILN_BODY_SIZE_LF;
    return 0;
}

static int expect_byte(struct kiln_http1_body *body, unsigned char c, unsigned char want,
                       enum kiln_http1_body_state next)
{
    body->state = next;
    return c == want ? 0 : KILN_E_MALFORMED;
}

/* A byte of an extension's or a trailer's text, which CR ends. */
static int text_byte(struct kiln_http1_body *body, unsigned char c,
                     enum kiln_http1_body_state at_cr)
{
    if (c == '\r')
        body->state = at_cr;
    else if (!is_value(c))
        return KILN_E_MALFORMED;
    return ++body->overhead > OVERHEAD_MAX ? KILN_E_LIMIT : 0;
}

static int name_byte(struct kiln_http1_body *body, unsigned char c)
{
    if (c == ':' && body->state == KILN_BODY_TRAILER_NAME)
        body->state = KILN_BODY_TRAILER_VALUE;
    else if (!is_token(c))
        return KILN_E_MALFORMED;
    else
        body->state = KILN_BODY_TRAILER_NAME;
    return ++body->overhead > OVERHEAD_MAX ? KILN_E_LIMIT : 0;
}

static int frame_byte(struct kiln_http1_body *body, unsigned char c)
{
    switch (body->state) {
    case KILN_BODY_SIZE:
        return size_byte(body, c);
    case KILN_BODY_EXTENSION:
        return text_byte(body, c, KILN_BODY_SIZE_LF);
    case KILN_BODY_SIZE_LF:
        body->digits = 0;
        return expect_byte(body, c, '\n', body->left ? KILN_BODY_DATA : KILN_BODY_TRAILER);
    case KILN_BODY_DATA_CR:
        return expect_byte(body, c, '\r', KILN_BODY_DATA_LF);
    case KILN_BODY_DATA_LF:
        return expect_byte(body, c, '\n', KILN_BODY_SIZE);
    case KILN_BODY_TRAILER:
        if (c == '\r') {
            body->state = KILN_BODY_LAST_LF;
            return 0;
        }
        return name_byte(body, c);
    case KILN_BODY_TRAILER_NAME:
        return name_byte(body, c);
    case KILN_BODY_TRAILER_VALUE:
        return text_byte(body, c, KILN_BODY_TRAILER_LF);
    case KILN_BODY_TRAILER_LF:
        return expect_byte(body, c, '\n', KILN_BODY_TRAILER);
    default:
        return expect_byte(body, c, '\n', KILN_BODY_DONE);
    }
}

int kiln_http1_body_next(struct kiln_http1_body *body, struct kiln_str *in,
                         struct kiln_str *ret_piece)
{
    struct kiln_str piece = KILN_STR_NONE;

    while (in->len && piece.len == 0 && body->state != KILN_BODY_DONE) {
        int r;

        if (body->state == KILN_BODY_LENGTH || body->state == KILN_BODY_DATA) {
            piece = take_content(body, in);
            continue;
        }
        r = frame_byte(body, (unsigned char)*in->ptr);
        if (r < 0)
            return r;
        in->ptr++;
        in->len--;
    }
    *ret_piece = piece;
    return body->state != KILN_BODY_DONE;
}
