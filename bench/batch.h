/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch - what the measuring programs share that use Kiln's library.
 *
 * Threads: one.
 */
#ifndef KILN_BENCH_BATCH_H
#define KILN_BENCH_BATCH_H

#include "base/file.h"
#include "bench.h"
#include "codec/codec.h"

static inline void bench_must(int r, const char *what, const struct kiln_err *err)
{
    if (r >= 0)
        return;
    fprintf(stderr, "%s: %s%s%s\n", what, err->where, err->where[0] ? ": " : "",
            err->text[0] ? err->text : kiln_err_text(r));
    exit(1);
}

static inline struct kiln_batch *bench_load(const char *path)
{
    struct kiln_buf file;
    struct kiln_err err = {0};
    struct kiln_batch *batch;

    kiln_buf_init(&file, 1u << 30);
    bench_must(kiln_file_read(path, &file, &err), path, &err);
    bench_must(kiln_decode(kiln_buf_str(&file), &(struct kiln_decode_opts){0}, &batch, NULL, &err),
               path, &err);
    kiln_buf_done(&file);
    return batch;
}

#endif /* KILN_BENCH_BATCH_H */
