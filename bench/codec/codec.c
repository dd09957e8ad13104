/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast are the codecs?  Our side of it; bench/codec/run compares with the peers.
 *
 *   otlp-decode    decode, validate, intern            otlp-encode    the same batches as bytes
 *   otlp-merge     all files into one batch            pprof-parse    raw
 *   pprof-parse-gz with decompression                  pprof-merge    all files into one batch
 *   pprof-write    the batches as pprof, uncompressed
 *   memory         prints bytes, batch and peak of the decode of each file instead of times
 */
#include <string.h>

#include "../bench.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/otlp.h"
#include "codec/pprof.h"
#include "core/merge.h"

struct ctx {
    struct kiln_batch **batches; /* of each file */
    struct kiln_buf out;
};

static void must(int r, const struct kiln_err *err)
{
    if (r < 0)
        bench_die(err->where, err->text);
}

static struct kiln_str content(const struct bench_file *file)
{
    return (struct kiln_str){(const char *)file->data, file->len};
}

/* Borrows from the file, as a receiver that owns the request does. */
static struct kiln_batch *decode(const struct bench_file *file, bool is_pprof)
{
    struct kiln_err err = {0};
    struct kiln_builder *b;
    struct kiln_batch *batch;

    must(kiln_builder_new(NULL, &b), &err);
    if (is_pprof)
        must(kiln_pprof_decode(content(file), b, &err), &err);
    else
        must(kiln_otlp_decode(content(file), NULL, b, NULL, &err), &err);
    must(kiln_builder_finish(b, &batch, &err), &err);
    return batch;
}

/* From whatever lies in the file, compressed or not. */
static struct kiln_batch *load(const struct bench_file *file)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch;

    must(kiln_decode(content(file), &(struct kiln_decode_opts){0}, &batch, NULL, &err), &err);
    return batch;
}

static void pass_otlp_decode(const struct bench *b, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < b->n_files; i++)
        kiln_batch_unref(decode(&b->files[i], false));
}

static void pass_pprof_parse(const struct bench *b, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < b->n_files; i++)
        kiln_batch_unref(decode(&b->files[i], true));
}

static void pass_pprof_parse_gz(const struct bench *b, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < b->n_files; i++)
        kiln_batch_unref(load(&b->files[i]));
}

static void pass_otlp_encode(const struct bench *b, void *ctx)
{
    struct ctx *c = ctx;
    struct kiln_err err = {0};

    for (int i = 0; i < b->n_files; i++) {
        kiln_buf_clear(&c->out);
        must(kiln_otlp_encode(c->batches[i], NULL, &c->out, &err), &err);
    }
}

static void pass_pprof_write(const struct bench *b, void *ctx)
{
    struct ctx *c = ctx;
    struct kiln_err err = {0};

    for (int i = 0; i < b->n_files; i++) {
        kiln_buf_clear(&c->out);
        must(kiln_pprof_encode(c->batches[i], NULL, &c->out, &err), &err);
    }
}

static void pass_merge(const struct bench *b, void *ctx)
{
    struct ctx *c = ctx;
    struct kiln_err err = {0};
    struct kiln_batch *merged;

    must(kiln_merge(c->batches, (uint32_t)b->n_files,
                    &(struct kiln_merge_opts){.combine_times = true}, &merged, &err),
         &err);
    kiln_batch_unref(merged);
}

static void print_memory(const struct bench *b)
{
    for (int i = 0; i < b->n_files; i++) {
        struct kiln_decode_info info;
        struct kiln_err err = {0};
        struct kiln_batch *batch;

        must(kiln_decode(content(&b->files[i]), &(struct kiln_decode_opts){0}, &batch, &info, &err),
             &err);
        printf("%zu %zu %zu\n", info.raw_bytes, kiln_batch_bytes(batch),
               kiln_batch_peak_bytes(batch));
        kiln_batch_unref(batch);
    }
}

static const struct {
    const char *name;
    void (*pass)(const struct bench *b, void *ctx);
    bool of_batches;
} questions[] = {
    {"otlp-decode", pass_otlp_decode, false},
    {"otlp-encode", pass_otlp_encode, true},
    {"otlp-merge", pass_merge, true},
    {"pprof-parse", pass_pprof_parse, false},
    {"pprof-parse-gz", pass_pprof_parse_gz, false},
    {"pprof-merge", pass_merge, true},
    {"pprof-write", pass_pprof_write, true},
};

static void ask(const struct bench *b, size_t question)
{
    struct ctx c = {.batches = calloc((size_t)b->n_files, sizeof(struct kiln_batch *))};

    kiln_buf_init(&c.out, 1u << 30);
    for (int i = 0; questions[question].of_batches && i < b->n_files; i++)
        c.batches[i] = load(&b->files[i]);
    bench_run(b, questions[question].pass, &c);
    for (int i = 0; i < b->n_files; i++)
        kiln_batch_unref(c.batches[i]);
    kiln_buf_done(&c.out);
    free(c.batches);
}

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv);

    if (strcmp(b.what, "memory") == 0) {
        print_memory(&b);
        return 0;
    }
    for (size_t i = 0; i < KILN_ARRAY_LEN(questions); i++) {
        if (strcmp(b.what, questions[i].name) == 0) {
            ask(&b, i);
            return 0;
        }
    }
    bench_die(b.what, "no such question");
}
