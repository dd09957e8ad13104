/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "test.h"

struct identity make_identity(const char *name, const struct identity *issuer)
{
    static long serial = 1;
    struct identity me = {X509_new(), EVP_EC_gen("P-256")};
    X509_NAME *subject = X509_get_subject_name(me.cert);

    X509_set_version(me.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(me.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(me.cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(me.cert), 3600);
    X509_set_pubkey(me.cert, me.key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(me.cert, issuer ? X509_get_subject_name(issuer->cert) : subject);
    if (!issuer) {
        X509_EXTENSION *ca = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "CA:TRUE");

        X509_add_ext(me.cert, ca, -1);
        X509_EXTENSION_free(ca);
    }
    CHECK(X509_sign(me.cert, issuer ? issuer->key : me.key, EVP_sha256()) > 0);
    return me;
}

void free_identity(struct identity *identity)
{
    X509_free(identity->cert);
    EVP_PKEY_free(identity->key);
}

void save_identity(const struct identity *identity, const char *cert, const char *key)
{
    FILE *file = fopen(cert, "w");

    CHECK(file && PEM_write_X509(file, identity->cert));
    fclose(file);
    if (!key)
        return;
    file = fopen(key, "w");
    CHECK(file && PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL));
    fclose(file);
}
