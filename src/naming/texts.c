/* SPDX-License-Identifier: Apache-2.0 */
#include "naming/texts.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "symbol/resolver.h"

enum { REST_MS = 10000 };
#define CACHE_BYTES ((size_t)1 << 20) /* names are never asked for */

struct kiln_texts {
    struct kiln_depot *depot;
    pthread_mutex_t lock; /* of the resolver, which has one owner at a time */
    struct kiln_resolver *resolver;
};

int kiln_texts_new(const struct kiln_texts_opts *opts, struct kiln_texts **ret_texts,
                   struct kiln_err *err)
{
    const struct kiln_resolver_opts resolver = {.program = opts->program,
                                                .cache_bytes = CACHE_BYTES,
                                                .rest_ms = REST_MS,
                                                .patient = true,
                                                .log = opts->log};
    struct kiln_texts *texts = kiln_calloc(1, sizeof(*texts));
    int r;

    if (!texts)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    texts->depot = opts->depot;
    r = kiln_resolver_new(&resolver, &texts->resolver, err);
    if (r < 0) {
        kiln_free(texts);
        return r;
    }
    pthread_mutex_init(&texts->lock, NULL);
    *ret_texts = texts;
    return 0;
}

void kiln_texts_free(struct kiln_texts *texts)
{
    if (!texts)
        return;
    kiln_resolver_free(texts->resolver);
    pthread_mutex_destroy(&texts->lock);
    kiln_free(texts);
}

/* Takes the file. */
static int read_file(struct kiln_texts *texts, int fd, struct kiln_str build_id,
                     struct kiln_str file, struct kiln_buf *out)
{
    const struct kiln_source source = {.kind = KILN_SOURCE_ELF, .fd = fd, .key = build_id};
    size_t before = out->len;
    int r;

    pthread_mutex_lock(&texts->lock);
    r = kiln_resolver_text(texts->resolver, &source, file, out);
    pthread_mutex_unlock(&texts->lock);
    close(fd);
    if (r == 0 && out->len > before && memchr(out->ptr + before, '\0', out->len - before)) {
        out->len = before;
        r = -ENOENT;
    }
    return r;
}

int kiln_texts_read(struct kiln_texts *texts, const char *tenant, struct kiln_str build_id,
                    struct kiln_str file, struct kiln_buf *out)
{
    static const enum kiln_debug_kind kinds[] = {KILN_DEBUG_INFO, KILN_DEBUG_EXECUTABLE};
    const char *const owners[] = {tenant, KILN_DEPOT_SHARED};
    int r = -ENOENT, fd;

    for (uint32_t i = 0; r == -ENOENT && i < KILN_ARRAY_LEN(owners) * KILN_ARRAY_LEN(kinds); i++) {
        if (kiln_depot_get(texts->depot, owners[i / 2], build_id, kinds[i % 2], &fd) == 0)
            r = read_file(texts, fd, build_id, file, out);
    }
    return r;
}
