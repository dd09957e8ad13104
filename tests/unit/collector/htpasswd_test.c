/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/htpasswd.h"

#include "base/mem.h"
#include "test.h"

/* Of "secret", as htpasswd and openssl passwd write it. */
static const char *const of_secret[] = {
    "secret",
    "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
    "{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0", /* "salt" */
    "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/",
    "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1",
    "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
};

TEST(htpasswd, every_kind_of_hash)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(of_secret); i++) {
        struct kiln_str hash = kiln_str_of(of_secret[i]);

        CHECK(kiln_htpasswd_fits("secret", hash));
        CHECK(!kiln_htpasswd_fits("Secret", hash));
        CHECK(!kiln_htpasswd_fits("", hash));
        CHECK_EQ(kiln_htpasswd_fits(of_secret[i], hash), i == 0); /* a hash is no password */
        CHECK_EQ(kiln_htpasswd_is_slow(hash), of_secret[i][0] == '$');
    }
    CHECK(kiln_htpasswd_fits("a password of more than sixteen letters",
                             KILN_STR("$apr1$xy$5fACeRpke.ZRvc4pSejwR/")));
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(htpasswd, what_is_no_hash_fits_nothing)
{
    static const char *const bad[] = {"",       "{SHA}",           "{SHA}5en6", "{MD5}secret", "$",
                                      "$apr1$", "$apr1$abcdefgh$", "{SHA}????", "$99$x"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        CHECK(!kiln_htpasswd_fits("secret", kiln_str_of(bad[i])));
        CHECK(!kiln_htpasswd_fits("", kiln_str_of(bad[i])));
        CHECK(!kiln_htpasswd_fits(bad[i], kiln_str_of(bad[i])));
    }
}

TEST(htpasswd, unknown_kinds_are_told)
{
    struct kiln_err err = {0};

    CHECK_OK(kiln_htpasswd_check(KILN_STR("a:b\n\nb:{SHA}x\nc:$apr1$x\n"), &err));
    CHECK_EQ(kiln_htpasswd_check(KILN_STR("a:b\nb:{MD5}x\n"), &err), KILN_E_UNSUPPORTED);
    CHECK(strstr(err.text, "line 2: passwords may be plain, or hashed"));
}
