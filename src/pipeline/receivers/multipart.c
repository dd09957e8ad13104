/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   preamble CRLF
 *   --boundary CRLF
 *   Content-Disposition: form-data; name="profile"; filename="profile.pprof" CRLF
 *   CRLF
 *   content CRLF
 *   --boundary CRLF      (the next part)
 *   --boundary--         (the end)
 *
 * White space may follow a boundary; the preamble is usually empty, and then the CR LF before the
 * first boundary is missing too.
 */
#include <stdio.h>
#include <strings.h>

#include "pipeline/receivers/multipart.h"

#define PARTS_MAX    64u
#define HEADERS_MAX  (16u << 10)
#define BOUNDARY_MAX 70u

static int malformed(struct kiln_err *err, const char *text)
{
    return kiln_err_set(err, KILN_E_MALFORMED, "multipart", "%s", text);
}

static int truncated(struct kiln_err *err)
{
    return kiln_err_set(err, KILN_E_TRUNCATED, "multipart", "the body ends inside a part");
}

/* ---- header parameters: type; name=value; name="value" ---- */

static bool same_word(struct kiln_str a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.ptr, b, a.len) == 0;
}

/* Cuts one parameter off; a quoted value keeps its backslashes, which no field name of ours has. */
static bool next_param(struct kiln_str *rest, struct kiln_str *ret_name, struct kiln_str *ret_value)
{
    struct kiln_str s = *rest;
    const char *quote;

    if (!s.ptr)
        return false;
    *ret_name = kiln_str_trim(kiln_str_cut(&s, '='));
    if (!s.ptr)
        return false;
    if (s.len && s.ptr[0] == '"') {
        s.ptr++;
        s.len--;
        quote = s.len ? memchr(s.ptr, '"', s.len) : NULL;
        if (!quote)
            return false;
        *ret_value = kiln_str_cut(&s, '"');
        kiln_str_cut(&s, ';');
    } else {
        *ret_value = kiln_str_trim(kiln_str_cut(&s, ';'));
    }
    *rest = s;
    return true;
}

/* The value of a parameter of a header; KILN_STR_NONE without it. */
static struct kiln_str param(struct kiln_str header, const char *wanted)
{
    struct kiln_str name, value;

    kiln_str_cut(&header, ';');
    while (next_param(&header, &name, &value)) {
        if (same_word(name, wanted))
            return value;
    }
    return KILN_STR_NONE;
}

/* ---- parts ---- */

/* Passes over the rest of a boundary's line.  Returns 1, or 0 where it was the last boundary. */
static int end_of_boundary(struct kiln_multipart *m, struct kiln_err *err)
{
    struct kiln_str s = m->rest;

    if (kiln_str_starts(s, KILN_STR("--"))) {
        m->rest = KILN_STR_NONE;
        return 0;
    }
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    if (!kiln_str_starts(s, KILN_STR("\r\n")))
        return s.len < 2 ? truncated(err) : malformed(err, "something stands behind a boundary");
    /* The CR LF stays: a part without headers and content begins with the next delimiter's. */
    m->rest = s;
    return 1;
}

/* What stands before the next delimiter, which is passed over. */
static int cut_delimiter(struct kiln_multipart *m, struct kiln_str *ret, struct kiln_err *err)
{
    const char *at =
        m->rest.len ? memmem(m->rest.ptr, m->rest.len, m->delimiter, m->delimiter_len) : NULL;
    size_t before;

    if (!at)
        return truncated(err);
    before = (size_t)(at - m->rest.ptr);
    *ret = (struct kiln_str){m->rest.ptr, before};
    m->rest.ptr += before + m->delimiter_len;
    m->rest.len -= before + m->delimiter_len;
    return 0;
}

int kiln_multipart_init(struct kiln_multipart *m, struct kiln_str content_type,
                        struct kiln_str body, struct kiln_err *err)
{
    struct kiln_str boundary = param(content_type, "boundary"), preamble;

    if (boundary.len == 0 || boundary.len > BOUNDARY_MAX)
        return malformed(err, "the Content-Type has no boundary of 1 to 70 bytes");
    *m = (struct kiln_multipart){.rest = body, .delimiter_len = boundary.len + 4};
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.ptr, boundary.len);
    if (kiln_str_starts(body, (struct kiln_str){m->delimiter + 2, m->delimiter_len - 2})) {
        m->rest.ptr += m->delimiter_len - 2;
        m->rest.len -= m->delimiter_len - 2;
        return 0;
    }
    return cut_delimiter(m, &preamble, err);
}

static void read_header(struct kiln_str line, struct kiln_part *part)
{
    struct kiln_str name = kiln_str_trim(kiln_str_cut(&line, ':'));

    if (!line.ptr || !same_word(name, "content-disposition"))
        return;
    part->name = param(line, "name");
    part->filename = param(line, "filename");
}

/* Reads the headers at the start of *s and passes over them and the empty line. */
static int read_headers(struct kiln_str *s, struct kiln_part *part, struct kiln_err *err)
{
    const char *end = memmem(s->ptr, s->len < HEADERS_MAX ? s->len : HEADERS_MAX, "\r\n\r\n", 4);
    struct kiln_str headers;

    if (!end)
        return s->len < HEADERS_MAX ? malformed(err, "a part has no empty line behind its headers")
                                    : kiln_err_set(err, KILN_E_LIMIT, "multipart",
                                                   "the headers of a part are longer "
                                                   "than %u bytes",
                                                   HEADERS_MAX);
    headers = (struct kiln_str){s->ptr, (size_t)(end - s->ptr)};
    s->len -= headers.len + 4;
    s->ptr += headers.len + 4;
    while (headers.ptr)
        read_header(kiln_str_trim(kiln_str_cut(&headers, '\n')), part);
    return 0;
}

int kiln_multipart_next(struct kiln_multipart *m, struct kiln_part *ret_part, struct kiln_err *err)
{
    struct kiln_part part = {0};
    struct kiln_str all;
    int r;

    if (!m->rest.ptr)
        return 0;
    r = end_of_boundary(m, err);
    if (r <= 0)
        return r;
    if (++m->n > PARTS_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, "multipart", "there are more than %u parts",
                            PARTS_MAX);
    r = cut_delimiter(m, &all, err);
    if (r == 0)
        r = read_headers(&all, &part, err);
    if (r < 0)
        return r;
    part.content = all;
    *ret_part = part;
    return 1;
}
