/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity - certificates for tests, made on the spot.
 */
#ifndef KILN_TESTS_SUPPORT_IDENTITY_H
#define KILN_TESTS_SUPPORT_IDENTITY_H

#include <openssl/x509.h>

/* A certificate and its key, signed by `issuer` or by itself. */
struct identity {
    X509 *cert;
    EVP_PKEY *key;
};

struct identity make_identity(const char *name, const struct identity *issuer);
void free_identity(struct identity *identity);
/* As PEM; `key` may be NULL. */
void save_identity(const struct identity *identity, const char *cert, const char *key);

#endif /* KILN_TESTS_SUPPORT_IDENTITY_H */
