/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/htpasswd.h"

#include <crypt.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/bytetext.h"
#include "base/mem.h"
#include "collector/secret.h"

enum { SHA1_BYTES = 20, MD5_BYTES = 16, HASH_MAX = 256 };

#define SHA  KILN_STR("{SHA}")
#define SSHA KILN_STR("{SSHA}")
#define APR1 KILN_STR("$apr1$")

/* ---- {SHA} and {SSHA}: the digest in base64, with the salt behind it ---- */

static bool fits_sha1(struct kiln_str password, struct kiln_str code, bool salted)
{
    uint8_t said[HASH_MAX], made[EVP_MAX_MD_SIZE];
    struct kiln_buf both;
    size_t len;
    bool same;

    if (kiln_base64_room(code.len) > sizeof(said) || kiln_base64_decode(code, said, &len) < 0 ||
        len < SHA1_BYTES || (len > SHA1_BYTES && !salted))
        return false;
    kiln_buf_init(&both, 1 << 16);
    kiln_buf_add_str(&both, password);
    kiln_buf_add(&both, said + SHA1_BYTES, len - SHA1_BYTES);
    same = !both.error && EVP_Digest(both.ptr, both.len, made, NULL, EVP_sha1(), NULL) &&
           kiln_secret_same((struct kiln_str){(char *)made, SHA1_BYTES},
                            (struct kiln_str){(char *)said, SHA1_BYTES});
    kiln_buf_done(&both);
    return same;
}

/* ---- $apr1$: Apache's own way to make MD5 slow ---- */

struct md5 {
    EVP_MD_CTX *context;
    bool failed; /* there is none where only approved digests are */
};

static void begin(struct md5 *md5)
{
    md5->failed |= !EVP_DigestInit_ex(md5->context, EVP_md5(), NULL);
}

static void add(struct md5 *md5, struct kiln_str text)
{
    md5->failed |= text.len && !EVP_DigestUpdate(md5->context, text.ptr, text.len);
}

static struct kiln_str end(struct md5 *md5, uint8_t digest[MD5_BYTES])
{
    md5->failed |= !EVP_DigestFinal_ex(md5->context, digest, NULL);
    return (struct kiln_str){(char *)digest, MD5_BYTES};
}

/* The digest that the rounds start with. */
static void mix(struct md5 *md5, struct kiln_str password, struct kiln_str salt,
                uint8_t digest[MD5_BYTES])
{
    struct kiln_str inner;

    begin(md5);
    add(md5, password);
    add(md5, salt);
    add(md5, password);
    inner = end(md5, digest);
    begin(md5);
    add(md5, password);
    add(md5, APR1);
    add(md5, salt);
    for (size_t left = password.len; left; left -= left < MD5_BYTES ? left : MD5_BYTES)
        add(md5, (struct kiln_str){inner.ptr, left < MD5_BYTES ? left : MD5_BYTES});
    for (size_t i = password.len; i; i >>= 1)
        add(md5, (struct kiln_str){i & 1 ? "" : password.ptr, 1});
    end(md5, digest);
}

static void stir(struct md5 *md5, struct kiln_str password, struct kiln_str salt,
                 uint8_t digest[MD5_BYTES])
{
    struct kiln_str last = {(char *)digest, MD5_BYTES};

    for (unsigned i = 0; i < 1000; i++) {
        begin(md5);
        add(md5, i & 1 ? password : last);
        if (i % 3)
            add(md5, salt);
        if (i % 7)
            add(md5, password);
        add(md5, i & 1 ? last : password);
        end(md5, digest);
    }
}

/* Six bits a letter, the lowest first, in the order that crypt(3) has for MD5. */
static void put_letters(const uint8_t digest[MD5_BYTES], struct kiln_buf *out)
{
    static const char letters[] =
        "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    for (unsigned i = 0; i < 5; i++) {
        uint32_t bits =
            (uint32_t)digest[i] << 16 | (uint32_t)digest[i + 6] << 8 | digest[i == 4 ? 5 : i + 12];

        for (unsigned j = 0; j < 4; j++, bits >>= 6)
            kiln_buf_putc(out, letters[bits & 63]);
    }
    kiln_buf_putc(out, letters[digest[11] & 63]);
    kiln_buf_putc(out, letters[digest[11] >> 6]);
}

static bool fits_apr1(struct kiln_str password, struct kiln_str hash)
{
    struct md5 md5 = {.context = EVP_MD_CTX_new()};
    struct kiln_str salt, rest = {hash.ptr + APR1.len, hash.len - APR1.len};
    uint8_t digest[MD5_BYTES];
    struct kiln_buf made;
    bool same;

    if (!md5.context)
        return false;
    salt = kiln_str_cut(&rest, '$');
    salt.len = salt.len > 8 ? 8 : salt.len;
    mix(&md5, password, salt, digest);
    stir(&md5, password, salt, digest);
    kiln_buf_init(&made, HASH_MAX);
    put_letters(digest, &made);
    same = !md5.failed && !made.error && kiln_secret_same(kiln_buf_str(&made), rest);
    kiln_buf_done(&made);
    EVP_MD_CTX_free(md5.context);
    return same;
}

/* ---- crypt(3) ---- */

static bool fits_crypt(const char *password, struct kiln_str hash)
{
    struct crypt_data *data = kiln_calloc(1, sizeof(*data));
    char setting[HASH_MAX];
    const char *made;
    bool same;

    if (!data)
        return false;
    snprintf(setting, sizeof(setting), "%.*s", KILN_STR_ARG(hash));
    made = crypt_r(password, setting, data);
    same = made && made[0] != '*' && kiln_secret_same(kiln_str_of(made), hash);
    kiln_free(data);
    return same;
}

/* ---- any ---- */

static struct kiln_str behind(struct kiln_str text, struct kiln_str start)
{
    return (struct kiln_str){text.ptr + start.len, text.len - start.len};
}

bool kiln_htpasswd_is_slow(struct kiln_str hash)
{
    return hash.len && hash.ptr[0] == '$';
}

bool kiln_htpasswd_fits(const char *password, struct kiln_str hash)
{
    struct kiln_str said = kiln_str_of(password);

    if (kiln_str_starts(hash, SHA))
        return fits_sha1(said, behind(hash, SHA), false);
    if (kiln_str_starts(hash, SSHA))
        return fits_sha1(said, behind(hash, SSHA), true);
    if (kiln_str_starts(hash, APR1))
        return fits_apr1(said, hash);
    if (hash.len && hash.ptr[0] == '$')
        return fits_crypt(password, hash);
    /* A hash that is not known is no password. */
    return hash.len && hash.ptr[0] != '{' && kiln_secret_same(said, hash);
}

int kiln_htpasswd_check(struct kiln_str lines, struct kiln_err *err)
{
    for (uint32_t n = 1; lines.ptr; n++) {
        struct kiln_str hash = kiln_str_trim(kiln_str_cut(&lines, '\n'));

        kiln_str_cut(&hash, ':');
        if (hash.len && hash.ptr[0] == '{' && !kiln_str_starts(hash, SHA) &&
            !kiln_str_starts(hash, SSHA))
            return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL,
                                "line %u: passwords may be plain, or hashed as htpasswd does by "
                                "bcrypt (-B), apr1 or {SHA}",
                                n);
    }
    return 0;
}
