/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and passwords: of servers, lines of htpasswd (collector/htpasswd.h); of clients, one of
 * each.
 *
 * Hashes are made to be slow, and requests are many: the passwords that were found good last are
 * remembered by their digests, and those that were found wrong for a few seconds.  What must be
 * hashed waits for a patient thread.
 */
#include <errno.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "collector/auth.h"
#include "collector/htpasswd.h"
#include "collector/registry.h"
#include "collector/secret.h"
#include "collector/settings.h"

enum { SAID_MAX = 1024, REMEMBERED = 64 };
#define LINES_MAX  (1u << 20)
#define BAD_FOR_NS (10 * KILN_NS_PER_S)

struct basic_settings {
    const struct kiln_node *htpasswd, *client_auth;
    const char *file, *inline_text;
    const char *username, *password, *username_file, *password_file;
};

/* Digests of the last names and passwords that were hashed, and how long they hold. */
struct memory {
    uint8_t digests[REMEMBERED][KILN_SHA256_BYTES];
    uint64_t until_ns[REMEMBERED];
    uint32_t n;
};

struct basic {
    struct kiln_auth auth; /* first */
    const struct basic_settings *settings;
    struct kiln_secret lines, username, password;
    pthread_mutex_t lock; /* of: */
    struct memory good, bad;
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

/* Whether a digest is among those of a memory, and not too long ago. */
static bool is_known(struct basic *basic, const struct memory *memory, const uint8_t *digest)
{
    uint64_t now = kiln_clock_mono_ns();
    bool found = false;

    pthread_mutex_lock(&basic->lock);
    for (uint32_t i = 0; !found && i < memory->n && i < REMEMBERED; i++)
        found =
            memory->until_ns[i] > now && memcmp(memory->digests[i], digest, KILN_SHA256_BYTES) == 0;
    pthread_mutex_unlock(&basic->lock);
    return found;
}

static void remember(struct basic *basic, bool good, const uint8_t *digest)
{
    struct memory *memory = good ? &basic->good : &basic->bad;
    uint32_t at;

    pthread_mutex_lock(&basic->lock);
    at = memory->n++ % REMEMBERED;
    memcpy(memory->digests[at], digest, KILN_SHA256_BYTES);
    memory->until_ns[at] = good ? UINT64_MAX : kiln_clock_mono_ns() + BAD_FOR_NS;
    pthread_mutex_unlock(&basic->lock);
}

/* `said` is "name:password", and so is the line; the names are the same. */
static enum kiln_verdict fits_line(struct basic *basic, struct kiln_str said, struct kiln_str line,
                                   size_t name, bool patient)
{
    struct kiln_str hash = {line.ptr + name + 1, line.len - name - 1};
    const char *password = said.ptr + name + 1;
    uint8_t digest[KILN_SHA256_BYTES];
    bool good;

    if (!kiln_htpasswd_is_slow(hash))
        return kiln_htpasswd_fits(password, hash) ? KILN_AUTH_YES : KILN_AUTH_NO;
    digest_of(said, line, digest);
    if (is_known(basic, &basic->good, digest))
        return KILN_AUTH_YES;
    if (is_known(basic, &basic->bad, digest))
        return KILN_AUTH_NO;
    if (!patient)
        return KILN_AUTH_UNSURE;
    good = kiln_htpasswd_fits(password, hash);
    remember(basic, good, digest);
    return good ? KILN_AUTH_YES : KILN_AUTH_NO;
}

static enum kiln_verdict fits_any(struct basic *basic, struct kiln_str lines, struct kiln_str said,
                                  bool patient)
{
    const char *colon = memchr(said.ptr, ':', said.len);
    size_t name = colon ? (size_t)(colon - said.ptr) : 0;

    while (colon && lines.ptr) {
        struct kiln_str line = kiln_str_trim(kiln_str_cut(&lines, '\n'));

        if (line.len > name && line.ptr[name] == ':' && memcmp(line.ptr, said.ptr, name) == 0)
            return fits_line(basic, said, line, name, patient);
    }
    return KILN_AUTH_NO;
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

/* Those of the file come behind those that stand inline, and the first of a name counts. */
static int add_lines(struct basic *basic, struct kiln_buf *lines)
{
    if (basic->settings->file && basic->settings->inline_text) {
        kiln_buf_puts(lines, basic->settings->inline_text);
        kiln_buf_putc(lines, '\n');
    }
    return kiln_secret_add(&basic->lines, lines);
}

static enum kiln_verdict check(struct kiln_auth *auth, const struct kiln_request *request,
                               bool patient, const char **ret_why)
{
    struct basic *basic = (struct basic *)auth;
    enum kiln_verdict verdict = KILN_AUTH_NO;
    struct kiln_buf lines;
    struct kiln_str said;
    char room[SAID_MAX];

    if (!read_said(request, room, &said)) {
        *ret_why = "no basic auth provided: this receiver wants a name and a password\n";
        return KILN_AUTH_NO;
    }
    kiln_buf_init(&lines, LINES_MAX);
    if (add_lines(basic, &lines) == 0)
        verdict = fits_any(basic, kiln_buf_str(&lines), said, patient);
    kiln_buf_done(&lines);
    *ret_why = "invalid credentials: this name and password are not known here\n";
    return verdict;
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

static int check_file(struct basic *basic, struct kiln_err *err)
{
    struct kiln_buf lines;
    int r;

    kiln_buf_init(&lines, LINES_MAX);
    r = kiln_secret_add(&basic->lines, &lines);
    r = r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r))
              : kiln_htpasswd_check(kiln_buf_str(&lines), err);
    kiln_buf_done(&lines);
    if (r < 0)
        kiln_err_within(err, "%s", basic->settings->file);
    return r;
}

static int set_up(struct basic *basic, struct kiln_err *err)
{
    const struct basic_settings *s = basic->settings;
    int r, failed;

    pthread_mutex_init(&basic->lock, NULL);
    r = kiln_secret_init(&basic->lines, s->file, s->inline_text, err);
    if (r == 0 && s->file)
        r = check_file(basic, err);
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

static int check_inline(const struct kiln_node *node, const char *text, struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r = text ? kiln_htpasswd_check(kiln_str_of(text), &why) : 0;

    return r < 0 ? kiln_node_fail(node, r, err, "htpasswd: %s", why.text) : 0;
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
        r = check_inline(s->htpasswd, s->inline_text, err);
    if (r < 0)
        return r;
    if (!s->htpasswd == !s->client_auth)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "say htpasswd (of a receiver) or client_auth (of an exporter), one "
                            "of them");
    if (s->htpasswd && !s->file && !s->inline_text)
        return kiln_node_fail(s->htpasswd, KILN_E_MALFORMED, err,
                              "htpasswd needs a file, or the lines inline");
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
