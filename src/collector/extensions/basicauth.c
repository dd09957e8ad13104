/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and passwords: of servers, lines of htpasswd ("name:password" as it is, or hashed in a way
 * that crypt(3) knows, as bcrypt is); of clients, one of each.
 *
 * Hashes are made to be slow, and requests are many: the last password of a user that was found
 * good is remembered by its digest.
 */
#include <crypt.h>
#include <errno.h>
#include <stdio.h>

#include "base/bytetext.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "collector/auth.h"
#include "collector/registry.h"
#include "collector/secret.h"
#include "collector/settings.h"

enum { SAID_MAX = 1024, REMEMBERED = 64 };
#define LINES_MAX (1u << 20)

struct basic_settings {
    const struct kiln_node *htpasswd, *client_auth;
    const char *file, *inline_text;
    const char *username, *password, *username_file, *password_file;
};

struct basic {
    struct kiln_auth auth; /* first */
    const struct basic_settings *settings;
    struct kiln_secret lines, username, password;
    pthread_mutex_t lock; /* of: */
    uint8_t good[REMEMBERED][KILN_SHA256_BYTES];
    uint32_t n_good;
};

/* ---- servers ---- */

static void digest_of(struct kiln_str said, struct kiln_str line, uint8_t out[KILN_SHA256_BYTES])
{
    struct kiln_sha256_run run;

    kiln_sha256_begin(&run);
    kiln_sha256_add(&run, said);
    kiln_sha256_add(&run, KILN_STR("\n"));
    kiln_sha256_add(&run, line);
    kiln_sha256_end(&run, out);
}

static bool is_remembered(struct basic *basic, const uint8_t *digest, bool remember)
{
    bool found = false;

    pthread_mutex_lock(&basic->lock);
    for (uint32_t i = 0; !found && i < basic->n_good && i < REMEMBERED; i++)
        found = memcmp(basic->good[i], digest, KILN_SHA256_BYTES) == 0;
    if (!found && remember)
        memcpy(basic->good[basic->n_good++ % REMEMBERED], digest, KILN_SHA256_BYTES);
    pthread_mutex_unlock(&basic->lock);
    return found;
}

static bool fits_hash(const char *password, struct kiln_str hash)
{
    struct crypt_data *data = kiln_calloc(1, sizeof(*data));
    char setting[256];
    const char *made;
    bool same;

    if (!data)
        return false;
    snprintf(setting, sizeof(setting), "%.*s", (int)hash.len, hash.ptr);
    made = crypt_r(password, setting, data);
    same = made && made[0] != '*' && kiln_secret_same(kiln_str_of(made), hash);
    kiln_free(data);
    return same;
}

/* `said` is "name:password", and so is the line; the names are the same. */
static bool fits_line(struct basic *basic, struct kiln_str said, struct kiln_str line, size_t name)
{
    struct kiln_str hash = {line.ptr + name + 1, line.len - name - 1};
    uint8_t digest[KILN_SHA256_BYTES];
    bool good;

    if (!hash.len || hash.ptr[0] != '$')
        return kiln_secret_same(said, line);
    digest_of(said, line, digest);
    if (is_remembered(basic, digest, false))
        return true;
    good = fits_hash(said.ptr + name + 1, hash);
    if (good)
        is_remembered(basic, digest, true);
    return good;
}

static bool fits_any(struct basic *basic, struct kiln_str lines, struct kiln_str said)
{
    const char *colon = memchr(said.ptr, ':', said.len);
    size_t name = colon ? (size_t)(colon - said.ptr) : 0;

    while (colon && lines.ptr) {
        struct kiln_str line = kiln_str_trim(kiln_str_cut(&lines, '\n'));

        if (line.len > name && line.ptr[name] == ':' && memcmp(line.ptr, said.ptr, name) == 0)
            return fits_line(basic, said, line, name);
    }
    return false;
}

/* What stands behind "Basic ", decoded and ended by NUL. */
static bool read_said(const struct kiln_request *request, char *out, struct kiln_str *ret)
{
    struct kiln_str header = kiln_request_header(request, "authorization"), code;
    size_t len = 0;

    if (header.len < 6 || strncasecmp(header.ptr, "Basic ", 6) != 0)
        return false;
    code = kiln_str_trim((struct kiln_str){header.ptr + 6, header.len - 6});
    if (kiln_base64_room(code.len) >= SAID_MAX || kiln_base64_decode(code, out, &len) < 0)
        return false;
    out[len] = '\0';
    *ret = (struct kiln_str){out, len};
    return true;
}

static bool check(struct kiln_auth *auth, const struct kiln_request *request, const char **ret_why)
{
    struct basic *basic = (struct basic *)auth;
    struct kiln_buf lines;
    struct kiln_str said;
    char room[SAID_MAX];
    bool good;

    if (!read_said(request, room, &said)) {
        *ret_why = "no basic auth provided: this receiver wants a name and a password\n";
        return false;
    }
    kiln_buf_init(&lines, LINES_MAX);
    good =
        kiln_secret_add(&basic->lines, &lines) == 0 && fits_any(basic, kiln_buf_str(&lines), said);
    kiln_buf_done(&lines);
    *ret_why = "invalid credentials: this name and password are not known here\n";
    return good;
}

/* ---- clients ---- */

static int header(struct kiln_auth *auth, struct kiln_buf *name, struct kiln_buf *value,
                  struct kiln_err *err)
{
    struct basic *basic = (struct basic *)auth;
    struct kiln_buf both;
    int r;

    kiln_buf_init(&both, LINES_MAX);
    r = kiln_secret_add(&basic->username, &both);
    kiln_buf_putc(&both, ':');
    if (r == 0)
        r = kiln_secret_add(&basic->password, &both);
    kiln_buf_puts(name, "Authorization");
    kiln_buf_puts(value, "Basic ");
    kiln_buf_add_base64(value, both.ptr, both.len);
    kiln_buf_done(&both);
    r = r < 0 ? r : name->error ? name->error : value->error;
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

/* ---- both ---- */

static void destroy(struct kiln_component *component)
{
    struct basic *basic = (struct basic *)component;

    kiln_secret_done(&basic->lines);
    kiln_secret_done(&basic->username);
    kiln_secret_done(&basic->password);
    pthread_mutex_destroy(&basic->lock);
    kiln_free(basic);
}

static int set_up(struct basic *basic, struct kiln_err *err)
{
    const struct basic_settings *s = basic->settings;
    int r, failed;

    pthread_mutex_init(&basic->lock, NULL);
    r = kiln_secret_init(&basic->lines, s->file, s->inline_text, err);
    failed = kiln_secret_init(&basic->username, s->username_file, s->username, err);
    r = r < 0 ? r : failed;
    failed = kiln_secret_init(&basic->password, s->password_file, s->password, err);
    return r < 0 ? r : failed;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = destroy};
    static const struct kiln_auth_ops server = {.check = check,
                                                .challenge = "Basic realm=\"kiln\""};
    static const struct kiln_auth_ops client = {.header = header};
    const struct basic_settings *s = settings;
    struct basic *basic = kiln_calloc(1, sizeof(*basic));
    int r;

    (void)env;
    if (!basic)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    basic->auth =
        (struct kiln_auth){.component.ops = &ops, .ops = s->client_auth ? &client : &server};
    basic->settings = s;
    r = set_up(basic, err);
    if (r < 0) {
        destroy(&basic->auth.component);
        return r;
    }
    *ret_component = &basic->auth.component;
    return 0;
}

static int check_lines(const struct kiln_node *node, const char *text, struct kiln_err *err)
{
    struct kiln_str rest = kiln_str_of(text), line;

    while (text && rest.ptr) {
        line = kiln_str_trim(kiln_str_cut(&rest, '\n'));
        kiln_str_cut(&line, ':');
        if (line.len && (line.ptr[0] == '{' || kiln_str_starts(line, KILN_STR("$apr1$"))))
            return kiln_node_fail(node, KILN_E_UNSUPPORTED, err,
                                  "htpasswd: passwords may be plain or hashed by bcrypt "
                                  "(htpasswd -B)");
    }
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct basic_settings, member)                            \
    }
    static const struct kiln_field fields[] = {FIELD("htpasswd", MAP, htpasswd),
                                               FIELD("client_auth", MAP, client_auth)};
    static const struct kiln_field htpasswd[] = {FIELD("file", TEXT, file),
                                                 FIELD("inline", TEXT, inline_text)};
    static const struct kiln_field client[] = {
        FIELD("username", TEXT, username), FIELD("password", TEXT, password),
        FIELD("username_file", TEXT, username_file), FIELD("password_file", TEXT, password_file)};
#undef FIELD
    struct basic_settings *s = settings;
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);

    if (r == 0)
        r = kiln_node_read(s->htpasswd, htpasswd, KILN_ARRAY_LEN(htpasswd), s, err);
    if (r == 0)
        r = kiln_node_read(s->client_auth, client, KILN_ARRAY_LEN(client), s, err);
    if (r == 0)
        r = check_lines(s->htpasswd, s->inline_text, err);
    if (r < 0)
        return r;
    if (!s->htpasswd == !s->client_auth)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "say htpasswd (of a receiver) or client_auth (of an exporter), one "
                            "of them");
    if (s->htpasswd && !s->file == !s->inline_text)
        return kiln_node_fail(s->htpasswd, KILN_E_MALFORMED, err,
                              "htpasswd needs a file, or the lines inline, one of them");
    return 0;
}

const struct kiln_component_type kiln_basicauth_extension_type = {
    .name = "basicauth",
    .aliases = "basic_auth",
    .kind = KILN_EXTENSION,
    .signals = KILN_TAKES_ALL,
    .stability = "beta",
    .settings_size = sizeof(struct basic_settings),
    .read = read,
    .make = make,
};
