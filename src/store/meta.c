/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.json: {"version":1,"seed":"0123456789abcdef"}
 *
 * The version is that of the whole folder: what makes older programs misread it raises it.  The
 * seed is that of content hashes (store/content.h); they reach no file, so that a new seed is as
 * good as the old one where the file is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/json.h"
#include "store/store_int.h"

#define META_NAME "store.json"
#define META_MAX  ((size_t)64 << 10)

static int parse(struct kiln_str text, uint64_t *version, uint64_t *seed, struct kiln_err *err)
{
    struct kiln_str name, value = KILN_STR_NONE;
    struct kiln_json json;
    int r;

    kiln_json_init(&json, text, err);
    r = kiln_json_object(&json);
    while (r == 0 && (r = kiln_json_member(&json, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("version"))) {
            r = kiln_json_u64(&json, version);
        } else if (kiln_str_eq(name, KILN_STR("seed"))) {
            r = kiln_json_string(&json, &value);
            if (r == 0)
                r = kiln_str_parse_hex(value, seed);
        } else {
            r = kiln_json_skip(&json);
        }
    }
    kiln_json_done(&json);
    if (r == 0 && (*version == 0 || !value.ptr))
        r = KILN_E_MALFORMED;
    return r < 0 ? kiln_err_set(err, r, META_NAME, "%s", kiln_err_text(r)) : 0;
}

static int make(struct kiln_store *store, struct kiln_err *err)
{
    char text[96];
    int n, r = 0;

    if (getrandom(&store->seed, sizeof(store->seed), 0) != sizeof(store->seed))
        return kiln_err_set(err, -EIO, NULL, "the system gives no random numbers");
    n = snprintf(text, sizeof(text), "{\"version\":%d,\"seed\":\"%016llx\"}\n", KILN_STORE_VERSION,
                 (unsigned long long)store->seed);
    if (!store->opts.read_only)
        r = kiln_io_put(store->io, META_NAME, text, (size_t)n);
    return r < 0 ? kiln_err_set(err, r, META_NAME, "%s", kiln_err_text(r)) : 0;
}

int kiln_store_read_meta(struct kiln_store *store, struct kiln_err *err)
{
    struct kiln_err why = {0};
    uint64_t version = 0;
    void *data;
    size_t n;
    int r;

    r = kiln_io_get(store->io, META_NAME, META_MAX, &data, &n);
    if (r == -ENOENT)
        return make(store, err);
    if (r < 0)
        return kiln_err_set(err, r, META_NAME, "%s", kiln_err_text(r));
    r = parse((struct kiln_str){data, n}, &version, &store->seed, &why);
    kiln_free(data);
    if (version > KILN_STORE_VERSION)
        return kiln_err_set(err, KILN_E_UNSUPPORTED, META_NAME,
                            "the store has format %llu, written by a newer Kiln; this one reads up "
                            "to %d",
                            (unsigned long long)version, KILN_STORE_VERSION);
    if (r == 0)
        return 0;
    kiln_store_set_aside(store, META_NAME, &why);
    return make(store, err);
}
