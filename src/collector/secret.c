/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/secret.h"

#include <openssl/crypto.h>

#include "base/file.h"

#define SECRET_MAX (1u << 20)

static int read_file(struct kiln_secret *secret, struct kiln_err *err)
{
    struct kiln_buf text;
    struct stat st;
    int r;

    if (stat(secret->path, &st) == 0 && secret->changed.tv_sec == st.st_mtim.tv_sec &&
        secret->changed.tv_nsec == st.st_mtim.tv_nsec && secret->size == st.st_size)
        return 0;
    kiln_buf_init(&text, SECRET_MAX);
    r = kiln_file_read(secret->path, &text, err);
    if (r < 0) {
        kiln_buf_done(&text);
        return r;
    }
    kiln_buf_done(&secret->text);
    secret->text = text;
    secret->changed = st.st_mtim;
    secret->size = st.st_size;
    return 0;
}

int kiln_secret_init(struct kiln_secret *secret, const char *path, const char *text,
                     struct kiln_err *err)
{
    int r;

    *secret = (struct kiln_secret){.path = path};
    pthread_mutex_init(&secret->lock, NULL);
    kiln_buf_init(&secret->text, SECRET_MAX);
    if (path)
        return read_file(secret, err);
    kiln_buf_puts(&secret->text, text ? text : "");
    r = secret->text.error;
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

void kiln_secret_done(struct kiln_secret *secret)
{
    kiln_buf_done(&secret->text);
    pthread_mutex_destroy(&secret->lock);
}

int kiln_secret_add(struct kiln_secret *secret, struct kiln_buf *out)
{
    struct kiln_err ignored = {0};

    pthread_mutex_lock(&secret->lock);
    if (secret->path)
        (void)!read_file(secret, &ignored);
    kiln_buf_add_str(out, kiln_str_trim(kiln_buf_str(&secret->text)));
    pthread_mutex_unlock(&secret->lock);
    return out->error;
}

bool kiln_secret_same(struct kiln_str a, struct kiln_str b)
{
    return a.len == b.len && (!a.len || CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0);
}
