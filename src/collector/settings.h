/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings - blocks of a configuration that several components have, read by table.
 *
 * A component reads its own keys with kiln_node_read() and takes these blocks as maps; what is
 * here makes values of them:
 *
 *   struct my_settings { const struct kiln_node *tls_node; struct kiln_tls_client_settings tls; };
 *   static const struct kiln_field fields[] = {
 *       {"tls", KILN_FIELD_MAP, offsetof(struct my_settings, tls_node)},
 *   };
 *   r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
 *   if (r == 0)
 *       r = kiln_settings_tls_client(s->tls_node, &s->tls, err);
 *
 * A block that is absent (NULL) leaves the settings as they were, so that defaults are set before.
 * Texts live as long as the configuration.  Durations ("10s", "1m30s", "200ms") and sizes are
 * KILN_FIELD_DURATION and KILN_FIELD_SIZE of base/config.h.
 *
 * Threads: no state.
 */
#ifndef KILN_COLLECTOR_SETTINGS_H
#define KILN_COLLECTOR_SETTINGS_H

#include "base/config.h"
#include "net/server.h"
#include "pipeline/metadata.h"

/* ---- tls ---- */

struct kiln_tls_settings {
    bool present; /* the block stands there, perhaps empty */
    const char *ca_file, *cert_file, *key_file;
    const char *client_ca_file;       /* of a server */
    const char *server_name_override; /* of a client */
    bool insecure;                    /* of a client: no TLS at all, unless the scheme says so */
    bool insecure_skip_verify;        /* of a client */
    bool include_system_ca_certs_pool;
    enum kiln_tls_version min_version, max_version;
    uint64_t reload_interval_ns; /* 0: not said */
};

/* A server's block needs cert_file and key_file; keys of the other side are errors. */
KILN_CHECK int kiln_settings_tls_server(const struct kiln_node *node, struct kiln_tls_settings *ret,
                                        struct kiln_err *err);
KILN_CHECK int kiln_settings_tls_client(const struct kiln_node *node, struct kiln_tls_settings *ret,
                                        struct kiln_err *err);
/* What a listener is given. */
struct kiln_tls_opts kiln_settings_tls_opts(const struct kiln_tls_settings *tls);

/* ---- auth: {authenticator: id} ---- */

/* *ret is the id of an extension (collector/auth.h), NULL where there is no block. */
KILN_CHECK int kiln_settings_auth(const struct kiln_node *node, const char **ret,
                                  struct kiln_err *err);

/* ---- headers: {name: value}, or [{name: ..., value: ...}] ---- */

struct kiln_header_setting {
    const char *name, *value;
};

/* Fails where the block is neither.  For read(); afterwards there is kiln_settings_header(). */
KILN_CHECK int kiln_settings_headers(const struct kiln_node *node, struct kiln_err *err);
/* The next one; begins with *at == node (NULL: there are none) and ends with false. */
bool kiln_settings_header(const struct kiln_node *node, const struct kiln_node **at,
                          struct kiln_header_setting *ret);

/* ---- who calls others: tls, headers and auth together ---- */

struct kiln_client_settings {
    const struct kiln_node *tls_node, *headers, *auth; /* as they stand there */
    struct kiln_tls_settings tls;
    const char *authenticator;
};

#define KILN_CLIENT_FIELDS(type, member)                                                           \
    {"tls", KILN_FIELD_MAP, offsetof(type, member.tls_node)},                                      \
        {"headers", KILN_FIELD_NODE, offsetof(type, member.headers)},                              \
    {                                                                                              \
        "auth", KILN_FIELD_MAP, offsetof(type, member.auth)                                        \
    }
/* Behind the table that has these fields. */
KILN_CHECK int kiln_settings_client(struct kiln_client_settings *settings, struct kiln_err *err);

/* ---- lists of texts: [a, b], or "a,b" ---- */

KILN_CHECK int kiln_settings_texts(const struct kiln_node *node, struct kiln_err *err);
/*
 * Goes through them.  Begin with {.node = node}:
 *   for (struct kiln_texts at = {.node = node}; kiln_texts_next(&at, &text);)
 */
struct kiln_texts {
    const struct kiln_node *node; /* the list, or the text; NULL: none */
    const struct kiln_node *item; /* of a list: the one before */
    struct kiln_str rest;         /* of a text */
    bool begun;
};
bool kiln_texts_next(struct kiln_texts *at, struct kiln_str *ret);

/* ---- directory_permissions: "0755" ---- */

/* Only beside create_directory: true (`creates`). */
KILN_CHECK int kiln_settings_folder_mode(const struct kiln_node *node, bool creates, uint32_t *ret,
                                         struct kiln_err *err);

/* ---- metadata_keys: [x-tenant, x-team] ---- */

KILN_CHECK int kiln_settings_metadata_keys(const struct kiln_node *node,
                                           struct kiln_metadata_keys *ret, struct kiln_err *err);

/* ---- keys ---- */

/* A key that Kiln knows and will not do: an error at its place that says why. */
struct kiln_refused_key {
    const char *key, *why;
};
/* To be called before kiln_node_read(), which would call them unknown. */
KILN_CHECK int kiln_settings_refuse(const struct kiln_node *map,
                                    const struct kiln_refused_key *keys, uint32_t n,
                                    struct kiln_err *err);
/*
 * Whether a map has this key, even with nothing behind it ("grpc:"), which is how protocols are
 * switched on.
 */
bool kiln_settings_has(const struct kiln_node *map, const char *key);

#endif /* KILN_COLLECTOR_SETTINGS_H */
