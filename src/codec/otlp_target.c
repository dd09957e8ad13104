/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/otlp_target.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/params.h"

#define GENERAL       "OTEL_EXPORTER_OTLP_"
#define OWN           "OTEL_EXPORTER_OTLP_PROFILES_"
#define ENDPOINT      "http://127.0.0.1:4317"
#define HTTP_PATH     "/v1development/profiles"
#define GRPC_PATH     "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define TEXT_MAX      ((size_t)64 << 10)
#define TIMEOUT_MS    10000u
#define TIMEOUT_MOST  (60u * 60 * 1000)
#define HEADER_BYTES  8192u
#define ENDPOINT_MAX  4096u
#define NAME_MAX_LEN  127u
#define VARIABLE_SIZE 64

struct reading {
    const struct kiln_otlp_target_opts *opts;
    char *(*variable)(const char *name);
    struct kiln_otlp_target *target;
    struct kiln_err *err;
    char source[VARIABLE_SIZE]; /* of the value at hand: a variable, or "" */
    struct kiln_str user;       /* of the address, with the password; ptr NULL: none */
};

/* ---- values ---- */

static const char *look(struct reading *r, const char *front, const char *name)
{
    const char *value;

    snprintf(r->source, sizeof(r->source), "%s%s", front, name);
    value = r->variable(r->source);
    return value && *value ? value : NULL;
}

/* What an option says, else a variable; NULL: nobody. */
static const char *value_of(struct reading *r, const char *option, const char *name)
{
    const char *value = option && *option ? NULL : look(r, OWN, name);

    if (option && *option) {
        r->source[0] = '\0';
        return option;
    }
    return value ? value : look(r, GENERAL, name);
}

static int fail(const struct reading *r, const char *value, const char *what)
{
    return kiln_err_set(r->err, -EINVAL, r->source[0] ? r->source : NULL, "\"%.80s\" is %s", value,
                        what);
}

static int keep(struct reading *r, struct kiln_str text, const char **ret)
{
    char *copy = kiln_arena_alloc(&r->target->arena, text.len + 1);

    if (!copy)
        return kiln_err_set(r->err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *ret = copy;
    return 0;
}

static int read_file_name(struct reading *r, const char *option, const char *name, const char **ret)
{
    const char *value = value_of(r, option, name);

    return value ? keep(r, kiln_str_of(value), ret) : 0;
}

static int read_compression(struct reading *r)
{
    static const char *const names[] = {"none", "gzip", "zstd"};
    const char *value = value_of(r, r->opts->compression, "COMPRESSION");

    r->target->compression = KILN_GZIP;
    r->target->is_compression_said = value != NULL;
    if (!value)
        return 0;
    for (int i = KILN_PLAIN; i <= KILN_ZSTD; i++) {
        if (strcmp(value, names[i]) == 0) {
            r->target->compression = (enum kiln_compression)i;
            return 0;
        }
    }
    return fail(r, value, "no compression of OTLP (say gzip, zstd or none)");
}

static int read_timeout(struct reading *r)
{
    const char *value;
    uint64_t ms = r->opts->timeout_ns / KILN_NS_PER_MS;

    value = r->opts->timeout_ns ? NULL : value_of(r, NULL, "TIMEOUT");
    if (value && kiln_str_parse_u64(kiln_str_of(value), &ms) < 0)
        return fail(r, value, "no number of milliseconds");
    if (r->opts->timeout_ns && !ms)
        ms = 1;
    r->target->timeout_ms = ms == 0 ? TIMEOUT_MS : ms > TIMEOUT_MOST ? TIMEOUT_MOST : (uint32_t)ms;
    return 0;
}

/* ---- the address ---- */

static int read_protocol(struct reading *r, bool grpc_port)
{
    static const char *const names[] = {"grpc", "http/protobuf", "http/json"};
    const char *value = value_of(r, r->opts->protocol, "PROTOCOL");

    r->target->protocol = grpc_port ? KILN_OTLP_GRPC : KILN_OTLP_HTTP;
    if (!value)
        return 0;
    for (int i = KILN_OTLP_GRPC; i <= KILN_OTLP_HTTP_JSON; i++) {
        if (strcmp(value, names[i]) == 0) {
            r->target->protocol = (enum kiln_otlp_protocol)i;
            return 0;
        }
    }
    return fail(r, value, "no protocol of OTLP (say grpc, http/protobuf or http/json)");
}

struct address {
    struct kiln_str scheme; /* "http"; ptr NULL: none */
    struct kiln_str host;   /* with the port */
    struct kiln_str path;   /* with the slash it begins with, and the query; or empty */
    const char *shown;      /* in errors: without the user */
};

/* "user:password@" of an address, without the "@"; what is behind goes to `ret_shown`, for errors.
 */
static struct kiln_str user_of(const char *text, const char **ret_shown)
{
    const char *colon = strstr(text, "://"), *begin = colon ? colon + 3 : text;
    const char *at = memrchr(begin, '@', strcspn(begin, "/?#"));

    *ret_shown = at ? at + 1 : text;
    return at ? (struct kiln_str){begin, (size_t)(at - begin)} : KILN_STR_NONE;
}

/* Without one, and where colons belong to the address, there is nothing to say against it. */
static bool is_port_possible(struct kiln_str host)
{
    const char *colon = memrchr(host.ptr, ':', host.len);
    const char *bracket = memrchr(host.ptr, ']', host.len);
    uint64_t port = 0;

    if (!colon || bracket > colon ||
        (!bracket && memchr(host.ptr, ':', (size_t)(colon - host.ptr))))
        return true;
    colon++;
    return kiln_str_parse_u64((struct kiln_str){colon, (size_t)(host.ptr + host.len - colon)},
                              &port) == 0 &&
           port > 0 && port <= UINT16_MAX;
}

static int parse_address(struct reading *r, const char *text, struct address *ret)
{
    struct kiln_str rest = kiln_str_trim(kiln_str_of(text));
    const char *colon = strstr(text, "://");
    size_t host = 0;

    *ret = (struct address){0};
    r->user = user_of(text, &text);
    ret->shown = text;
    if (rest.len > ENDPOINT_MAX)
        return fail(r, text, "too long for an address");
    for (size_t i = 0; i < rest.len; i++)
        if ((unsigned char)rest.ptr[i] <= ' ' || rest.ptr[i] == 0x7f)
            return fail(r, text, "no address: there is a space or control character in it");
    if (colon) {
        ret->scheme = (struct kiln_str){rest.ptr, (size_t)(colon - rest.ptr)};
        rest.len -= ret->scheme.len + 3;
        rest.ptr = colon + 3;
        if (!kiln_str_eq(ret->scheme, KILN_STR("http")) &&
            !kiln_str_eq(ret->scheme, KILN_STR("https")))
            return fail(r, text, "no address for OTLP (say http://127.0.0.1:4317)");
    }
    if (r->user.ptr) {
        rest.len -= (size_t)(text - rest.ptr);
        rest.ptr = text;
    }
    rest = kiln_str_cut(&rest, '#');
    while (host < rest.len && !strchr("/?", rest.ptr[host]))
        host++;
    ret->host = (struct kiln_str){rest.ptr, host};
    ret->path = (struct kiln_str){rest.ptr + host, rest.len - host};
    if (!host)
        return fail(r, text, "no address for OTLP (say http://127.0.0.1:4317)");
    return is_port_possible(ret->host) ? 0 : fail(r, text, "no address: ports are 1 to 65535");
}

/* OTEL_EXPORTER_OTLP_INSECURE=false asks for TLS where the address does not say. */
static const char *scheme_of(struct reading *r, const struct address *address)
{
    const char *value = NULL;

    if (address->scheme.ptr)
        return address->scheme.len == 5 ? "https://" : "http://";
    if (r->target->protocol == KILN_OTLP_GRPC && !r->opts->insecure)
        value = value_of(r, NULL, "INSECURE");
    return value && strcasecmp(value, "false") == 0 ? "https://" : "http://";
}

/* Of HTTP: what is put behind a base, or the very path. */
static int put_path(struct reading *r, const struct address *address, bool exact)
{
    struct kiln_str path = address->path;
    struct kiln_buf text;
    int e;

    if (r->opts->path)
        return keep(r, kiln_str_of(r->opts->path), &r->target->path);
    if (r->target->protocol == KILN_OTLP_GRPC) {
        r->target->path = GRPC_PATH;
        return 0;
    }
    if (!exact)
        while (path.len && path.ptr[path.len - 1] == '/')
            path.len--;
    kiln_buf_init(&text, 2 * ENDPOINT_MAX);
    if (exact && (!path.len || path.ptr[0] != '/'))
        kiln_buf_putc(&text, '/');
    kiln_buf_add_str(&text, path);
    if (!exact)
        kiln_buf_puts(&text, HTTP_PATH);
    e = text.error ? text.error : keep(r, kiln_buf_str(&text), &r->target->path);
    kiln_buf_done(&text);
    return e;
}

static int put_server(struct reading *r, const struct address *address)
{
    struct kiln_buf text;
    int e;

    kiln_buf_init(&text, 2 * ENDPOINT_MAX);
    kiln_buf_puts(&text, scheme_of(r, address));
    kiln_buf_add_str(&text, address->host);
    e = text.error ? text.error : keep(r, kiln_buf_str(&text), &r->target->server);
    kiln_buf_done(&text);
    return e;
}

static int read_endpoint(struct reading *r)
{
    const char *value = value_of(r, r->opts->endpoint, "ENDPOINT");
    bool exact = value && strncmp(r->source, OWN, strlen(OWN)) == 0, local;
    struct address address = {0};
    int e;

    value = value ? value : ENDPOINT;
    local = strncmp(value, "unix:", 5) == 0;
    e = local ? 0 : parse_address(r, value, &address);
    if (e == 0 && !exact && kiln_str_contains(address.path, KILN_STR("?")))
        e = fail(r, address.shown, "no base of addresses: there is a question mark in it");
    if (e == 0)
        e = read_protocol(r, kiln_str_ends(address.host, KILN_STR(":4317")));
    if (e == 0)
        e = put_path(r, &address, exact && !local);
    if (e == 0)
        e = local ? keep(r, kiln_str_of(value), &r->target->server) : put_server(r, &address);
    return e;
}

/* ---- headers ---- */

static bool is_name(struct kiln_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.ptr[i]) && !strchr("!#$%&'*+-.^_`|~", name.ptr[i]))
            return false;
    return name.len && name.len <= NAME_MAX_LEN && !memchr(name.ptr, '\0', name.len);
}

static bool is_value(struct kiln_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7f)
            return false;
    return value.len <= HEADER_BYTES;
}

static int add_header(struct kiln_otlp_target *target, struct kiln_str name, struct kiln_str value)
{
    struct kiln_header *header = &target->headers[target->n_headers];
    char *lower;

    if (target->n_headers == KILN_OTLP_HEADERS_MAX || !is_name(name) || !is_value(value))
        return -EINVAL;
    lower = kiln_arena_alloc(&target->arena, name.len);
    header->value = kiln_arena_copy(&target->arena, value);
    if (!lower || !header->value.ptr)
        return -ENOMEM;
    for (size_t i = 0; i < name.len; i++)
        lower[i] = (char)tolower((unsigned char)name.ptr[i]);
    header->name = (struct kiln_str){lower, name.len};
    target->n_headers++;
    return 0;
}

static int add_encoded_header(struct kiln_otlp_target *target, struct kiln_str name,
                              struct kiln_str value)
{
    struct kiln_buf text;
    int e;

    kiln_buf_init(&text, HEADER_BYTES);
    e = kiln_percent_decode(value, false, &text) < 0
            ? -EINVAL
            : add_header(target, name, kiln_buf_str(&text));
    kiln_buf_done(&text);
    return e;
}

static int add_listed_headers(struct reading *r)
{
    for (uint32_t i = 0; i < r->opts->n_header_list; i++) {
        const struct kiln_header *header = &r->opts->header_list[i];
        int e = add_header(r->target, header->name, header->value);

        if (e == -EINVAL)
            return kiln_err_set(r->err, e, NULL,
                                "header \"%.*s\" is not as headers must be (at most %d of them)",
                                KILN_STR_ARG(header->name), KILN_OTLP_HEADERS_MAX);
        if (e < 0)
            return e;
    }
    return 0;
}

/* name=value,name=value: W3C's baggage without properties.  Errors do not show values. */
static int read_headers(struct reading *r)
{
    struct kiln_str rest = kiln_str_of(value_of(r, r->opts->headers, "HEADERS"));

    for (uint32_t i = 1; rest.ptr; i++) {
        struct kiln_str value = kiln_str_trim(kiln_str_cut(&rest, ','));
        struct kiln_str name = kiln_str_trim(kiln_str_cut(&value, '='));
        int e;

        if (!name.len && !value.ptr)
            continue;
        e = value.ptr ? add_encoded_header(r->target, name, kiln_str_trim(value)) : -EINVAL;
        if (e == -EINVAL)
            return kiln_err_set(r->err, e, r->source[0] ? r->source : NULL,
                                "header %u is not as headers must be (say name=value,name=value, "
                                "at most %d of them)",
                                i, KILN_OTLP_HEADERS_MAX);
        if (e < 0)
            return e;
    }
    return add_listed_headers(r);
}

static bool has_header(const struct kiln_otlp_target *target, struct kiln_str name)
{
    for (uint32_t i = 0; i < target->n_headers; i++)
        if (kiln_str_eq(target->headers[i].name, name))
            return true;
    return false;
}

/* Who is named in the address is so in a header, as everywhere on the web; addresses are shown. */
static int add_user(struct reading *r)
{
    const struct kiln_str name = KILN_STR("authorization");
    struct kiln_buf plain, text;
    int e = 0;

    if (!r->user.ptr || has_header(r->target, name))
        return 0;
    kiln_buf_init(&plain, HEADER_BYTES);
    kiln_buf_init(&text, HEADER_BYTES);
    e = kiln_percent_decode(r->user, false, &plain);
    kiln_buf_puts(&text, "Basic ");
    kiln_buf_add_base64(&text, plain.ptr, plain.len);
    if (e == 0)
        e = text.error ? text.error : add_header(r->target, name, kiln_buf_str(&text));
    kiln_buf_done(&plain);
    kiln_buf_done(&text);
    return e < 0 ? kiln_err_set(r->err, e, NULL, "the user in an address: %s", kiln_err_text(e))
                 : 0;
}

/* ---- all of it ---- */

int kiln_otlp_target_find(const struct kiln_otlp_target_opts *opts,
                          char *(*variable)(const char *name), struct kiln_otlp_target *target,
                          struct kiln_err *err)
{
    struct reading r = {.opts = opts, .variable = variable, .target = target, .err = err};
    int e;

    *target = (struct kiln_otlp_target){.insecure = opts->insecure,
                                        .checks_peer = opts->checks_peer,
                                        .budget = {.limit = 8 * TEXT_MAX}};
    kiln_arena_init(&target->arena, &target->budget);
    e = read_endpoint(&r);
    if (e == 0)
        e = read_compression(&r);
    if (e == 0)
        e = read_timeout(&r);
    if (e == 0)
        e = read_headers(&r);
    if (e == 0)
        e = add_user(&r);
    if (e == 0)
        e = read_file_name(&r, opts->ca_file, "CERTIFICATE", &target->ca_file);
    if (e == 0)
        e = read_file_name(&r, opts->cert_file, "CLIENT_CERTIFICATE", &target->cert_file);
    if (e == 0)
        e = read_file_name(&r, opts->key_file, "CLIENT_KEY", &target->key_file);
    return e < 0 ? kiln_err_set(err, e, NULL, "%s", kiln_err_text(e)) : 0;
}

void kiln_otlp_target_done(struct kiln_otlp_target *target)
{
    kiln_arena_done(&target->arena);
    *target = (struct kiln_otlp_target){0};
}
