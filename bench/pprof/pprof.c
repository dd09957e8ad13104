/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long does Kiln take for a pprof?  bench_pprof FILE... prints one line a measurement:
 *
 *   name  file  uncompressed bytes  best milliseconds
 *
 * as bench/pprof/peer does for google/pprof; bench/pprof/run sets them side by side.  Freed memory
 * is kept for the next round, as in a program that runs for long, and as Go does by itself.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/compress.h"
#include "base/mem.h"
#include "codec/pprof.h"
#include "core/merge.h"

#define ROUNDS 60

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what, const struct kiln_err *err)
{
    fprintf(stderr, "%s: %s %s\n", what, err->where, err->text);
    exit(1);
}

static void read_file(const char *path, struct kiln_buf *buf)
{
    FILE *file = fopen(path, "rb");
    size_t n;

    kiln_buf_init(buf, 1u << 30);
    if (!file) {
        perror(path);
        exit(1);
    }
    do {
        char *at = kiln_buf_reserve(buf, 1u << 20);

        n = at ? fread(at, 1, 1u << 20, file) : 0;
        buf->len += n;
    } while (n > 0);
    fclose(file);
}

static void inflate(const struct kiln_buf *packed, struct kiln_buf *raw)
{
    struct kiln_err err = {0};
    struct kiln_str data = kiln_buf_str(packed);

    kiln_buf_init(raw, 1u << 30);
    if (kiln_compression_of(data) == KILN_PLAIN)
        kiln_buf_add_str(raw, data);
    else if (kiln_decompress(kiln_compression_of(data), data, raw, &err) < 0)
        die("decompress", &err);
}

static struct kiln_batch *decode(struct kiln_str raw)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;

    if (kiln_builder_new(NULL, &b) < 0 || kiln_pprof_decode(raw, b, &err) < 0 ||
        kiln_builder_finish(b, &batch, &err) < 0)
        die("decode", &err);
    return batch;
}

static void encode(const struct kiln_batch *batch, struct kiln_buf *out)
{
    struct kiln_err err = {0};

    kiln_buf_init(out, 1u << 30);
    if (kiln_pprof_encode(batch, NULL, out, &err) < 0)
        die("encode", &err);
}

/* Decompresses, decodes twice, and merges the two. */
static void merge_two(const struct kiln_buf *packed)
{
    struct kiln_batch *two[2], *merged = NULL;
    struct kiln_err err = {0};
    struct kiln_buf raw[2];

    for (int i = 0; i < 2; i++) {
        inflate(packed, &raw[i]);
        two[i] = decode(kiln_buf_str(&raw[i]));
    }
    if (kiln_merge(two, 2, &(struct kiln_merge_opts){.combine_times = true}, &merged, &err) < 0)
        die("merge", &err);
    kiln_batch_unref(merged);
    for (int i = 0; i < 2; i++) {
        kiln_batch_unref(two[i]);
        kiln_buf_done(&raw[i]);
    }
}

/* Runs a statement ROUNDS times and prints the best time. */
#define MEASURE(name, file, bytes, statement)                                                      \
    do {                                                                                           \
        double best = 1e9;                                                                         \
        for (int round = 0; round < ROUNDS; round++) {                                             \
            double start = now_ms();                                                               \
            statement;                                                                             \
            if (now_ms() - start < best)                                                           \
                best = now_ms() - start;                                                           \
        }                                                                                          \
        printf("%s\t%s\t%zu\t%.3f\n", (name), (file), (size_t)(bytes), best);                      \
    } while (0)

static void bench(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    struct kiln_buf packed, raw, out;
    struct kiln_batch *batch;

    read_file(path, &packed);
    inflate(&packed, &raw);
    MEASURE("parse-raw", file, raw.len, kiln_batch_unref(decode(kiln_buf_str(&raw))));
    MEASURE("parse-gzip", file, raw.len, {
        struct kiln_buf again;

        inflate(&packed, &again);
        kiln_batch_unref(decode(kiln_buf_str(&again)));
        kiln_buf_done(&again);
    });
    batch = decode(kiln_buf_str(&raw));
    fprintf(stderr, "%s: peak %.2f, kept %.2f times the raw bytes\n", file,
            (double)kiln_batch_peak_bytes(batch) / (double)raw.len,
            (double)kiln_batch_bytes(batch) / (double)raw.len);
    MEASURE("write-raw", file, raw.len, {
        encode(batch, &out);
        kiln_buf_done(&out);
    });
    MEASURE("merge-two-gzip", file, 2 * raw.len, merge_two(&packed));
    kiln_batch_unref(batch);
    kiln_buf_done(&raw);
    kiln_buf_done(&packed);
}

int main(int argc, char **argv)
{
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    mallopt(M_MMAP_THRESHOLD, 256 << 20);
    for (int i = 1; i < argc; i++)
        bench(argv[i]);
    return 0;
}
