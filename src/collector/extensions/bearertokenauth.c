/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens: of servers, any of them is good; clients send the first. */
#include <ctype.h>
#include <errno.h>

#include "base/mem.h"
#include "collector/auth.h"
#include "collector/registry.h"
#include "collector/secret.h"
#include "collector/settings.h"

#define VALUE_MAX (1u << 20)

struct bearer_settings {
    const char *scheme, *header, *token, *filename;
    const struct kiln_node *tokens;
};

struct bearer {
    struct kiln_auth auth; /* first */
    const struct bearer_settings *settings;
    char *header;              /* in lower case */
    struct kiln_secret tokens; /* a line each */
};

/* The token of a line: of a file its first word, behind which people write whose it is. */
static struct kiln_str token_of(const struct bearer *bearer, struct kiln_str line)
{
    line = kiln_str_trim(line);
    for (size_t i = 0; bearer->settings->filename && i < line.len; i++)
        if (isspace((unsigned char)line.ptr[i]))
            line.len = i;
    return line;
}

/* The next token of some lines; empty at their end. */
static struct kiln_str next_token(const struct bearer *bearer, struct kiln_str *lines)
{
    struct kiln_str token = KILN_STR_NONE;

    while (!token.len && lines->ptr) {
        token = token_of(bearer, kiln_str_cut(lines, '\n'));
        if (bearer->settings->filename && token.len && token.ptr[0] == '#')
            token.len = 0;
    }
    return token;
}

static bool is_good(const struct bearer *bearer, struct kiln_str tokens, struct kiln_str said)
{
    struct kiln_str scheme = kiln_str_of(bearer->settings->scheme), token;
    bool good = false;

    if (scheme.len) {
        if (said.len <= scheme.len || strncasecmp(said.ptr, scheme.ptr, scheme.len) != 0 ||
            said.ptr[scheme.len] != ' ')
            return false;
        said = kiln_str_trim((struct kiln_str){said.ptr + scheme.len, said.len - scheme.len});
    }
    while ((token = next_token(bearer, &tokens)).len)
        good |= kiln_secret_same(token, said);
    return good;
}

static enum kiln_verdict check(struct kiln_auth *auth, const struct kiln_request *request,
                               bool patient, const char **ret_why)
{
    struct bearer *bearer = (struct bearer *)auth;
    struct kiln_str said = kiln_request_header(request, bearer->header);
    struct kiln_buf tokens;
    bool good;

    (void)patient;
    if (!said.len) {
        *ret_why = "missing or empty authorization header: this receiver wants a token\n";
        return KILN_AUTH_NO;
    }
    kiln_buf_init(&tokens, VALUE_MAX);
    good = kiln_secret_add(&bearer->tokens, &tokens) == 0 &&
           is_good(bearer, kiln_buf_str(&tokens), said);
    kiln_buf_done(&tokens);
    *ret_why = "this token is not known here\n";
    return good ? KILN_AUTH_YES : KILN_AUTH_NO;
}

static int header(struct kiln_auth *auth, struct kiln_buf *name, struct kiln_buf *value,
                  struct kiln_err *err)
{
    struct bearer *bearer = (struct bearer *)auth;
    struct kiln_buf tokens;
    struct kiln_str text;
    int r;

    kiln_buf_init(&tokens, VALUE_MAX);
    r = kiln_secret_add(&bearer->tokens, &tokens);
    text = kiln_buf_str(&tokens);
    kiln_buf_puts(name, bearer->settings->header);
    if (*bearer->settings->scheme)
        kiln_buf_printf(value, "%s ", bearer->settings->scheme);
    kiln_buf_add_str(value, next_token(bearer, &text));
    kiln_buf_done(&tokens);
    r = r < 0 ? r : name->error ? name->error : value->error;
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

static void destroy(struct kiln_component *component)
{
    struct bearer *bearer = (struct bearer *)component;

    kiln_secret_done(&bearer->tokens);
    kiln_free(bearer->header);
    kiln_free(bearer);
}

/* All tokens, a line each; the first is the one that clients send. */
static int gather(struct bearer *bearer, struct kiln_err *err)
{
    const struct bearer_settings *s = bearer->settings;
    struct kiln_buf lines;
    struct kiln_str one;
    int r;

    kiln_buf_init(&lines, VALUE_MAX);
    if (s->token)
        kiln_buf_printf(&lines, "%s\n", s->token);
    for (struct kiln_texts at = {.node = s->tokens}; kiln_texts_next(&at, &one);)
        kiln_buf_printf(&lines, "%.*s\n", (int)one.len, one.ptr);
    kiln_buf_putc(&lines, '\0');
    r = lines.error ? kiln_err_set(err, lines.error, NULL, "%s", kiln_err_text(lines.error))
                    : kiln_secret_init(&bearer->tokens, s->filename, lines.ptr, err);
    kiln_buf_done(&lines);
    return r;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = destroy};
    static const struct kiln_auth_ops auth_ops = {
        .check = check, .header = header, .challenge = "Bearer"};
    const struct bearer_settings *s = settings;
    struct bearer *bearer = kiln_calloc(1, sizeof(*bearer));
    int r;

    (void)env;
    if (bearer)
        bearer->header = kiln_malloc(strlen(s->header) + 1);
    if (!bearer || !bearer->header) {
        kiln_free(bearer);
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    }
    for (size_t i = 0; i <= strlen(s->header); i++)
        bearer->header[i] = (char)tolower((unsigned char)s->header[i]);
    bearer->auth = (struct kiln_auth){.component.ops = &ops, .ops = &auth_ops};
    bearer->settings = s;
    r = gather(bearer, err);
    if (r < 0) {
        destroy(&bearer->auth.component);
        return r;
    }
    *ret_component = &bearer->auth.component;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"scheme", KILN_FIELD_TEXT, offsetof(struct bearer_settings, scheme)},
        {"header", KILN_FIELD_TEXT, offsetof(struct bearer_settings, header)},
        {"token", KILN_FIELD_TEXT, offsetof(struct bearer_settings, token)},
        {"filename", KILN_FIELD_TEXT, offsetof(struct bearer_settings, filename)},
        {"tokens", KILN_FIELD_NODE, offsetof(struct bearer_settings, tokens)},
    };
    struct bearer_settings *s = settings;
    int r;

    *s = (struct bearer_settings){.scheme = "Bearer", .header = "Authorization"};
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (r == 0)
        r = kiln_settings_texts(s->tokens, err);
    if (r == 0 && !s->token && !s->filename && !s->tokens)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "no bearer token provided: say token, tokens or filename");
    return r;
}

const struct kiln_component_type kiln_bearertokenauth_extension_type = {
    .name = "bearertokenauth",
    .aliases = "bearer_token_auth",
    .kind = KILN_EXTENSION,
    .signals = KILN_TAKES_ALL,
    .stability = "beta",
    .settings_size = sizeof(struct bearer_settings),
    .read = read,
    .make = make,
};
