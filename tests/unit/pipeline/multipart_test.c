/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/receivers/multipart.h"
#include "test.h"

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

#define TYPE "multipart/form-data; boundary=xx"

/* The parts as "name(filename)=content|...", or the error. */
static const char *parts(const char *type, struct kiln_str body)
{
    static char out[4096];
    struct kiln_multipart m;
    struct kiln_part part;
    struct kiln_err err = {0};
    size_t n = 0;
    int r = kiln_multipart_init(&m, kiln_str_of(type), body, &err);

    out[0] = '\0';
    while (r == 0 && (r = kiln_multipart_next(&m, &part, &err)) > 0) {
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%.*s(%.*s)=%.*s|", KILN_STR_ARG(part.name),
                              KILN_STR_ARG(part.filename), KILN_STR_ARG(part.content));
        r = 0;
    }
    if (r < 0)
        snprintf(out + n, sizeof(out) - n, "! %s", err.text);
    return out;
}

TEST(multipart, parts_have_names_and_contents)
{
    CHECK_TEXT(parts(TYPE, KILN_STR("--xx\r\n"
                                    "Content-Disposition: form-data; name=\"profile\"; "
                                    "filename=\"profile.pprof\"\r\n"
                                    "Content-Type: application/octet-stream\r\n"
                                    "\r\n"
                                    "a\r\nb--xx\r\n"
                                    "--xx\r\n"
                                    "content-disposition: form-data; name=config\r\n"
                                    "\r\n"
                                    "{}\r\n"
                                    "--xx--\r\n")),
               "profile(profile.pprof)=a\r\nb--xx|config()={}|");
}

TEST(multipart, the_boundary_may_be_quoted_and_a_preamble_come_first)
{
    CHECK_TEXT(parts("Multipart/Form-Data; charset=utf-8; BOUNDARY=\"a b\"",
                     KILN_STR("hello\r\n--a b  \r\nX: y\r\n\r\n1\r\n--a b--")),
               "()=1|");
}

TEST(multipart, parts_may_be_empty)
{
    CHECK_TEXT(parts(TYPE, KILN_STR("--xx--")), "");
    CHECK_TEXT(parts(TYPE, KILN_STR("--xx\r\n\r\n\r\n--xx--")), "()=|");
    CHECK_TEXT(parts(TYPE, KILN_STR("--xx\r\n\r\nbody\r\n--xx--")), "()=body|");
}

TEST(multipart, what_is_cut_off_or_no_form_is_refused)
{
    static const struct {
        const char *type;
        struct kiln_str body;
    } cases[] = {
        {"multipart/form-data", BYTES("--xx--")},
        {"multipart/form-data; boundary=", BYTES("--xx--")},
        {TYPE, BYTES("")},
        {TYPE, BYTES("hello")},
        {TYPE, BYTES("--xx")},
        {TYPE, BYTES("--xx\r")},
        {TYPE, BYTES("--xx\r\n")},
        {TYPE, BYTES("--xxy\r\n\r\n\r\n--xx--")},
        {TYPE, BYTES("--xx\r\nno empty line\r\n--xx--")},
        {TYPE, BYTES("--xx\r\n\r\nbody")},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++)
        CHECK(parts(cases[i].type, cases[i].body)[0] == '!');
}

TEST(multipart, parts_and_headers_have_limits)
{
    static char body[40000];
    size_t n = 0;

    for (int i = 0; i < 65; i++)
        n += (size_t)snprintf(body + n, sizeof(body) - n, "--xx\r\n\r\n\r\n");
    n += (size_t)snprintf(body + n, sizeof(body) - n, "--xx--");
    CHECK(strstr(parts(TYPE, (struct kiln_str){body, n}), "! there are more than 64 parts"));
    memset(body, 'h', sizeof(body));
    memcpy(body, "--xx\r\n", 6);
    memcpy(body + sizeof(body) - 20, "\r\n\r\n\r\n--xx--", 12);
    CHECK(strstr(parts(TYPE, (struct kiln_str){body, sizeof(body)}), "longer than 16384 bytes"));
}
