/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/processors/masking.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <strings.h>

#include "base/bytetext.h"
#include "collector/settings.h"

static const struct function {
    const char *name;
    const EVP_MD *(*digest)(void);
    size_t key_min; /* bytes; 0: it has none */
} functions[] = {
    {"sha1", EVP_sha1, 0},           {"md5", EVP_md5, 0},
    {"sha3", EVP_sha3_256, 0},       {"hmac-sha256", EVP_sha256, 32},
    {"hmac-sha512", EVP_sha512, 64},
};

static const struct function *find(const char *name)
{
    for (size_t i = 0; name && i < KILN_ARRAY_LEN(functions); i++) {
        if (strcasecmp(name, functions[i].name) == 0)
            return &functions[i];
    }
    return NULL;
}

static bool is_named(const struct kiln_masking *masking)
{
    return masking->function && *masking->function;
}

int kiln_masking_check(const struct kiln_node *node, const struct kiln_masking *masking,
                       struct kiln_err *err)
{
    const struct function *function = find(masking->function);
    size_t len = masking->key ? strlen(masking->key) : 0;

    if (!is_named(masking))
        return 0;
    if (!function)
        return kiln_node_fail(kiln_node_get(node, "hash_function"), KILN_E_MALFORMED, err,
                              "hash_function is sha1, sha3, md5, hmac-sha256 or hmac-sha512");
    if (len < function->key_min || len > INT_MAX)
        return kiln_node_fail(kiln_node_get(node, masking->key ? "hmac_key" : "hash_function"),
                              KILN_E_MALFORMED, err,
                              "hmac_key must be at least %zu bytes long for \"%s\", got %zu bytes",
                              function->key_min, function->name, len);
    return 0;
}

static int put_hash(const void *context, struct kiln_str match, struct kiln_buf *out)
{
    const struct kiln_masking *masking = context;
    const struct function *function = find(masking->function);
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    bool made;

    if (function->key_min)
        made = HMAC(function->digest(), masking->key, (int)strlen(masking->key),
                    (const uint8_t *)match.ptr, match.len, digest, &len) != NULL;
    else
        made = EVP_Digest(match.ptr, match.len, digest, &len, function->digest(), NULL) == 1;
    if (!made)
        return KILN_E_LIMIT;
    kiln_buf_add_hex(out, digest, len);
    return 0;
}

void kiln_masking_apply(const struct kiln_masking *masking, struct kiln_redact_spec *spec)
{
    if (!is_named(masking))
        return;
    spec->mask = put_hash;
    spec->context = masking;
}
