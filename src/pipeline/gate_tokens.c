/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only hashes of tokens are kept.  What a client sends is hashed and compared with all of them, in
 * a time that says nothing about where it differs.
 */
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "base/bytetext.h"
#include "base/config.h"
#include "base/mem.h"
#include "pipeline/gate_int.h"

#define TOKENS_MAX 10000u
#define TOKEN_MIN  8u /* bytes: anything shorter is guessed */

struct entry {
    const char *name, *token, *sha256, *tenant;
    const struct kiln_node *access;
};

/* ---- reading ---- */

static int read_access(const struct kiln_node *node, unsigned *access, struct kiln_err *err)
{
    static const struct {
        const char *name;
        unsigned bits;
    } words[] = {{"read", 1u << KILN_ACCESS_READ},
                 {"write", 1u << KILN_ACCESS_WRITE},
                 {"control", 1u << KILN_ACCESS_CONTROL},
                 {"admin", KILN_ACCESS_EVERYTHING}};
    const char *text;
    int r = kiln_node_text(node, &text, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < KILN_ARRAY_LEN(words); i++) {
        if (strcmp(text, words[i].name) == 0) {
            *access |= words[i].bits;
            return 0;
        }
    }
    return kiln_node_fail(node, KILN_E_MALFORMED, err, "access is read, write, control or admin");
}

static int read_accesses(const struct kiln_node *node, unsigned *access, struct kiln_err *err)
{
    int r = 0;

    if (node->kind != KILN_NODE_LIST)
        return read_access(node, access, err);
    for (const struct kiln_node *n = node->first; r == 0 && n; n = n->next)
        r = read_access(n, access, err);
    return r;
}

static int read_secret(const struct kiln_node *node, const struct entry *e,
                       struct kiln_token *token, struct kiln_err *err)
{
    if (!e->token == !e->sha256)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "an entry has either a token or its sha256");
    if (e->token && strlen(e->token) < TOKEN_MIN)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "a token has at least %u bytes",
                              TOKEN_MIN);
    if (e->token)
        kiln_sha256(kiln_str_of(e->token), token->digest);
    else if (kiln_hex_decode(kiln_str_of(e->sha256), token->digest, sizeof(token->digest)) < 0)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "sha256 has 64 hexadecimal digits");
    return 0;
}

static int read_token(const struct kiln_node *node, struct kiln_token *token, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"name", KILN_FIELD_TEXT, offsetof(struct entry, name)},
        {"token", KILN_FIELD_TEXT, offsetof(struct entry, token)},
        {"sha256", KILN_FIELD_TEXT, offsetof(struct entry, sha256)},
        {"tenant", KILN_FIELD_TEXT, offsetof(struct entry, tenant)},
        {"access", KILN_FIELD_NODE, offsetof(struct entry, access)},
    };
    struct entry e = {0};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &e, err);

    if (r == 0)
        r = read_secret(node, &e, token, err);
    if (r == 0)
        r = e.access ? read_accesses(e.access, &token->access, err)
                     : kiln_node_fail(node, KILN_E_MALFORMED, err,
                                      "an entry says its access: read, write or admin");
    if (r < 0)
        return r;
    snprintf(token->name, sizeof(token->name), "%s", e.name ? e.name : "");
    if (!e.tenant || strcmp(e.tenant, "*") == 0)
        return 0;
    if (!kiln_tenant_valid(kiln_str_of(e.tenant)))
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "this cannot be the name of a tenant");
    snprintf(token->tenant, sizeof(token->tenant), "%s", e.tenant);
    return 0;
}

static int read_list(const struct kiln_node *root, struct kiln_tokens *tokens, struct kiln_err *err)
{
    const struct kiln_node *list = root;
    int r = 0;

    if (root && root->kind == KILN_NODE_MAP)
        list = kiln_node_get(root, "tokens");
    if (!list)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "there are no tokens in it");
    if (list->kind != KILN_NODE_LIST)
        return kiln_node_fail(list, KILN_E_MALFORMED, err, "a list of tokens belongs here");
    if (list->n > TOKENS_MAX)
        return kiln_node_fail(list, KILN_E_LIMIT, err, "more than %u tokens", TOKENS_MAX);
    tokens->list = kiln_calloc(list->n + 1, sizeof(*tokens->list));
    if (!tokens->list)
        return -ENOMEM;
    for (const struct kiln_node *n = list->first; r == 0 && n; n = n->next)
        r = read_token(n, &tokens->list[tokens->n++], err);
    return r;
}

int kiln_tokens_load(const char *path, struct kiln_tokens *ret_tokens, struct kiln_err *err)
{
    struct kiln_tokens tokens = {0};
    struct kiln_config *config;
    int r = kiln_config_load(path, &config, err);

    if (r < 0)
        return kiln_err_in_file(err, r, path);
    r = read_list(kiln_config_root(config), &tokens, err);
    kiln_config_free(config);
    if (r < 0) {
        kiln_tokens_done(&tokens);
        return kiln_err_in_file(err, r, path);
    }
    *ret_tokens = tokens;
    return 0;
}

void kiln_tokens_done(struct kiln_tokens *tokens)
{
    kiln_free(tokens->list);
    *tokens = (struct kiln_tokens){0};
}

/* ---- asking ---- */

bool kiln_token_same_digest(const uint8_t *a, const uint8_t *b)
{
    uint8_t differ = 0;

    for (size_t i = 0; i < KILN_SHA256_BYTES; i++)
        differ |= (uint8_t)(a[i] ^ b[i]);
    return differ == 0;
}

const struct kiln_token *kiln_tokens_by_digest(const struct kiln_tokens *tokens,
                                               const uint8_t digest[KILN_SHA256_BYTES])
{
    const struct kiln_token *found = NULL;

    for (uint32_t i = 0; i < tokens->n; i++) {
        if (kiln_token_same_digest(tokens->list[i].digest, digest))
            found = &tokens->list[i];
    }
    return found;
}

static bool cut_word(struct kiln_str *s, const char *word)
{
    size_t n = strlen(word);

    if (s->len <= n || strncasecmp(s->ptr, word, n) != 0 || s->ptr[n] != ' ')
        return false;
    *s = kiln_str_trim((struct kiln_str){s->ptr + n, s->len - n});
    return true;
}

struct kiln_str kiln_token_secret(struct kiln_str header, char *room, size_t size)
{
    size_t len;

    header = kiln_str_trim(header);
    if (cut_word(&header, "bearer"))
        return header;
    if (!cut_word(&header, "basic") || kiln_base64_room(header.len) > size ||
        kiln_base64_decode(header, room, &len) < 0)
        return KILN_STR_NONE;
    header = (struct kiln_str){room, len};
    kiln_str_cut(&header, ':');
    return header;
}
