/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/settings.h"

#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"

/* ---- keys ---- */

int kiln_settings_refuse(const struct kiln_node *map, const struct kiln_refused_key *keys,
                         uint32_t n, struct kiln_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_node *node = kiln_node_get(map, keys[i].key);

        if (node)
            return kiln_node_fail(node, KILN_E_UNSUPPORTED, err, "%s: %s", keys[i].key,
                                  keys[i].why);
    }
    return 0;
}

bool kiln_settings_has(const struct kiln_node *map, const char *key)
{
    for (const struct kiln_node *m = map ? map->first : NULL; m; m = m->next)
        if (m->key && strcmp(m->key, key) == 0)
            return true;
    return false;
}

/* ---- tls ---- */

#define IN_A_FILE "write it to a file and name that"

static const struct kiln_refused_key tls_refused[] = {
    {"ca_pem", IN_A_FILE " in ca_file"},
    {"cert_pem", IN_A_FILE " in cert_file"},
    {"key_pem", IN_A_FILE " in key_file"},
    {"cipher_suites", "ciphers are those that OpenSSL holds good; leave this out"},
    {"curve_preferences", "curves are those that OpenSSL holds good; leave this out"},
    {"tpm", "keys in a TPM cannot be used"},
};

struct tls_block {
    struct kiln_tls_settings tls;
    const char *min_version, *max_version;
};

#define TLS(key, kind, member)                                                                     \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct tls_block, member)                                 \
    }
#define TLS_BOTH                                                                                   \
    TLS("ca_file", TEXT, tls.ca_file), TLS("cert_file", TEXT, tls.cert_file),                      \
        TLS("key_file", TEXT, tls.key_file), TLS("min_version", TEXT, min_version),                \
        TLS("max_version", TEXT, max_version),                                                     \
        TLS("reload_interval", DURATION, tls.reload_interval_ns),                                  \
        TLS("include_system_ca_certs_pool", BOOL, tls.include_system_ca_certs_pool)

static const struct kiln_field server_fields[] = {
    TLS_BOTH,
    TLS("client_ca_file", TEXT, tls.client_ca_file),
};

static const struct kiln_field client_fields[] = {
    TLS_BOTH,
    TLS("insecure", BOOL, tls.insecure),
    TLS("insecure_skip_verify", BOOL, tls.insecure_skip_verify),
    TLS("server_name_override", TEXT, tls.server_name_override),
};

static int read_version(const struct kiln_node *map, const char *key, const char *text,
                        enum kiln_tls_version *ret, struct kiln_err *err)
{
    if (!text || !*text)
        return 0;
    if (strcmp(text, "1.2") == 0)
        *ret = KILN_TLS_1_2;
    else if (strcmp(text, "1.3") == 0)
        *ret = KILN_TLS_1_3;
    else
        return kiln_node_fail(kiln_node_get(map, key), KILN_E_UNSUPPORTED, err,
                              "%s: \"%.20s\" is not a version of TLS that is safe; 1.2 and 1.3 are",
                              key, text);
    return 0;
}

static int read_tls(const struct kiln_node *node, const struct kiln_field *fields, uint32_t n,
                    struct kiln_tls_settings *ret, struct kiln_err *err)
{
    struct tls_block block = {.tls = *ret};
    int r = kiln_settings_refuse(node, tls_refused, KILN_ARRAY_LEN(tls_refused), err);

    if (r == 0)
        r = kiln_node_read(node, fields, n, &block, err);
    if (r == 0)
        r = read_version(node, "min_version", block.min_version, &block.tls.min_version, err);
    if (r == 0)
        r = read_version(node, "max_version", block.max_version, &block.tls.max_version, err);
    if (r < 0)
        return r;
    if (block.tls.max_version && block.tls.min_version > block.tls.max_version)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "min_version is above max_version");
    if (!block.tls.cert_file != !block.tls.key_file)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "cert_file and key_file belong together: one of them is missing");
    block.tls.present = true;
    *ret = block.tls;
    return 0;
}

int kiln_settings_tls_server(const struct kiln_node *node, struct kiln_tls_settings *ret,
                             struct kiln_err *err)
{
    int r;

    if (!node)
        return 0;
    r = read_tls(node, server_fields, KILN_ARRAY_LEN(server_fields), ret, err);
    if (r < 0)
        return r;
    if (!ret->cert_file)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "a server with tls needs cert_file and key_file");
    return 0;
}

int kiln_settings_tls_client(const struct kiln_node *node, struct kiln_tls_settings *ret,
                             struct kiln_err *err)
{
    if (!node)
        return 0;
    return read_tls(node, client_fields, KILN_ARRAY_LEN(client_fields), ret, err);
}

struct kiln_tls_opts kiln_settings_tls_opts(const struct kiln_tls_settings *tls)
{
    uint64_t ms = tls->reload_interval_ns / KILN_NS_PER_MS;

    return (struct kiln_tls_opts){
        .cert_file = tls->cert_file,
        .key_file = tls->key_file,
        .client_ca_file = tls->client_ca_file,
        .min_version = tls->min_version,
        .max_version = tls->max_version,
        .reload_interval_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX,
    };
}

/* ---- auth ---- */

int kiln_settings_auth(const struct kiln_node *node, const char **ret, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {{"authenticator", KILN_FIELD_TEXT, 0}};
    int r;

    if (!node)
        return 0;
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), ret, err);
    if (r == 0 && (!*ret || !**ret))
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "auth needs an authenticator, which names an extension");
    return r;
}

/* ---- headers ---- */

static int read_header(const struct kiln_node *item, struct kiln_header_setting *ret,
                       struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"name", KILN_FIELD_TEXT, offsetof(struct kiln_header_setting, name)},
        {"value", KILN_FIELD_TEXT, offsetof(struct kiln_header_setting, value)},
    };

    *ret = (struct kiln_header_setting){.value = ""};
    if (item->key) {
        ret->name = item->key;
        return kiln_node_text(item, &ret->value, err);
    }
    return kiln_node_read(item, fields, KILN_ARRAY_LEN(fields), ret, err);
}

static bool is_name(const char *name)
{
    return *name && strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(name);
}

static int check_header(const struct kiln_node *item, struct kiln_err *err)
{
    struct kiln_header_setting header;
    int r = read_header(item, &header, err);

    if (r < 0)
        return r;
    if (!header.name || !is_name(header.name))
        return kiln_node_fail(item, KILN_E_MALFORMED, err, "\"%.60s\" is no name of a header",
                              header.name ? header.name : "");
    if (strpbrk(header.value, "\r\n"))
        return kiln_node_fail(item, KILN_E_MALFORMED, err, "the value of %.60s has a line's end",
                              header.name);
    return 0;
}

int kiln_settings_headers(const struct kiln_node *node, struct kiln_err *err)
{
    int r = 0;

    if (!node)
        return 0;
    if (node->kind == KILN_NODE_TEXT)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "headers are a map of names and values");
    for (const struct kiln_node *item = node->first; r == 0 && item; item = item->next)
        r = check_header(item, err);
    return r;
}

bool kiln_settings_header(const struct kiln_node *node, const struct kiln_node **at,
                          struct kiln_header_setting *ret)
{
    struct kiln_err ignored = {0};

    if (!*at)
        return false;
    *at = *at == node ? node->first : (*at)->next;
    return *at && read_header(*at, ret, &ignored) == 0;
}

/* ---- who calls others ---- */

int kiln_settings_client(struct kiln_client_settings *s, struct kiln_err *err)
{
    int r = kiln_settings_tls_client(s->tls_node, &s->tls, err);

    if (r == 0)
        r = kiln_settings_headers(s->headers, err);
    return r < 0 ? r : kiln_settings_auth(s->auth, &s->authenticator, err);
}

/* ---- lists of texts ---- */

int kiln_settings_texts(const struct kiln_node *node, struct kiln_err *err)
{
    const char *text;
    int r = 0;

    if (node && node->kind == KILN_NODE_MAP)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "%.60s is a map, not a list of texts",
                              node->key ? node->key : "this");
    for (const struct kiln_node *item = node ? node->first : NULL; r == 0 && item;
         item = item->next)
        r = kiln_node_text(item, &text, err);
    return r;
}

/* ---- metadata ---- */

static bool is_among(struct kiln_str name, const struct kiln_metadata_keys *keys)
{
    for (uint32_t i = 0; i < keys->n; i++)
        if (keys->names[i].len == name.len &&
            strncasecmp(keys->names[i].ptr, name.ptr, name.len) == 0)
            return true;
    return false;
}

int kiln_settings_metadata_keys(const struct kiln_node *node, struct kiln_metadata_keys *ret,
                                struct kiln_err *err)
{
    struct kiln_str name;
    int r = kiln_settings_texts(node, err);

    if (r < 0)
        return r;
    *ret = (struct kiln_metadata_keys){0};
    for (struct kiln_texts at = {.node = node}; kiln_texts_next(&at, &name);) {
        if (is_among(name, ret))
            return kiln_node_fail(node, KILN_E_MALFORMED, err,
                                  "duplicate entry in metadata_keys: \"%.*s\" (case-insensitive)",
                                  KILN_STR_ARG(name));
        if (ret->n == KILN_METADATA_KEYS_MAX)
            return kiln_node_fail(node, KILN_E_LIMIT, err, "metadata_keys: at most %d",
                                  KILN_METADATA_KEYS_MAX);
        ret->names[ret->n++] = name;
    }
    return 0;
}

static bool next_of_text(struct kiln_texts *at, struct kiln_str *ret)
{
    do {
        if (!at->rest.ptr)
            return false;
        *ret = kiln_str_trim(kiln_str_cut(&at->rest, ','));
    } while (!ret->len);
    return true;
}

/* As it was written: a token of 0x1F is not 31.  kiln_settings_texts() has checked it. */
static struct kiln_str written(const struct kiln_node *node)
{
    struct kiln_err ignored = {0};
    const char *text = "";

    return kiln_node_text(node, &text, &ignored) == 0 ? kiln_str_of(text) : KILN_STR_NONE;
}

bool kiln_texts_next(struct kiln_texts *at, struct kiln_str *ret)
{
    bool first = !at->begun;

    if (!at->node)
        return false;
    at->begun = true;
    if (at->node->kind == KILN_NODE_TEXT) {
        if (first)
            at->rest = written(at->node);
        return next_of_text(at, ret);
    }
    at->item = first ? at->node->first : at->item ? at->item->next : NULL;
    if (at->item)
        *ret = written(at->item);
    return at->item;
}

/* ---- directory_permissions ---- */

int kiln_settings_folder_mode(const struct kiln_node *node, bool creates, uint32_t *ret,
                              struct kiln_err *err)
{
    const char *text = "";
    unsigned long mode;
    char *end;
    int r = node ? kiln_node_text(node, &text, err) : 0;

    if (r < 0 || !node)
        return r;
    mode = strtoul(text, &end, 8);
    if (text[0] < '0' || text[0] > '7' || *end || mode > 0777)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "directory_permissions is an octal number such as \"0755\"");
    if (!creates)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "directory_permissions needs create_directory: true");
    *ret = (uint32_t)mode;
    return 0;
}
