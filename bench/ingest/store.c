/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the way of a request costs inside: from compressed bytes to a compacted block, in one
 * process and without a network.
 *
 *   bench_store CUT FILE...     cuts a block after every CUT requests
 *
 * The files are requests as `kiln loadgen --out` writes them.  Prints the CPU time of a request by
 * step, and what was stored; under `valgrind --tool=callgrind` it tells instructions by function.
 */
#include <ftw.h>
#include <pthread.h>
#include <unistd.h>

#include "../batch.h"
#include "base/clock.h"
#include "base/compress.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "store/store_int.h"

#define POOL_BYTES    ((size_t)1 << 30)
#define CONTENT_BYTES ((size_t)64 << 20)

enum step { DECOMPRESS, DECODE, SUBMIT, LOG, APPLY, CUT, COMPACT, N_STEPS };
static const char *const step_names[N_STEPS] = {"decompress", "decode", "submit", "log",
                                                "apply",      "cut",    "compact"};

struct run {
    struct kiln_engine *engine;
    double cpu_s[N_STEPS];
    uint64_t n_samples, fresh_bytes;
    int code; /* of the append under way; 1: not known yet */
    pthread_mutex_t lock;
    pthread_cond_t known;
};

static double clock_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double mine_s(void)
{
    return clock_s(CLOCK_THREAD_CPUTIME_ID);
}

static void appended(struct kiln_append *append, int code)
{
    struct run *run = append->context;

    pthread_mutex_lock(&run->lock);
    run->code = code;
    pthread_cond_signal(&run->known);
    pthread_mutex_unlock(&run->lock);
}

static void send(struct run *run, struct kiln_append *append)
{
    run->code = 1;
    run->engine->ops->append(run->engine, append);
    pthread_mutex_lock(&run->lock);
    while (run->code == 1)
        pthread_cond_wait(&run->known, &run->lock);
    pthread_mutex_unlock(&run->lock);
    bench_must(run->code, "append", &append->err);
}

/* Decodes like a receiver does: the batch keeps the content. */
static struct kiln_batch *decode(struct kiln_buf *content, bool *ret_otlp)
{
    struct kiln_decode_info info;
    struct kiln_str text = kiln_buf_str(content);
    struct kiln_batch *batch;
    struct kiln_builder *b;
    struct kiln_err err = {0};
    char *bytes;
    size_t len;

    bench_must(kiln_builder_new(NULL, &b), "builder", &err);
    kiln_buf_take(content, &bytes, &len);
    kiln_builder_adopt(b, bytes, len);
    bench_must(kiln_decode_into(text, &(struct kiln_decode_opts){0}, b, &info, &err), "decode",
               &err);
    bench_must(kiln_builder_finish(b, &batch, &err), "batch", &err);
    *ret_otlp = info.format == KILN_FORMAT_OTLP;
    return batch;
}

static void take(struct run *run, const struct bench_file *file)
{
    struct kiln_str data = {(char *)file->data, file->len};
    struct kiln_append append = {.tenant = "bench", .done = appended, .context = run};
    struct kiln_err err = {0};
    struct kiln_buf content;
    double at[4];
    bool otlp;

    kiln_buf_init(&content, CONTENT_BYTES);
    at[0] = mine_s();
    bench_must(kiln_decompress(kiln_compression_of(data), data, &content, &err), "decompress",
               &err);
    at[1] = mine_s();
    append.batch = decode(&content, &otlp);
    at[2] = mine_s();
    append.received_ns = kiln_clock_unix_ns();
    if (otlp) {
        append.body = data;
        append.body_compression = kiln_compression_of(data);
    }
    send(run, &append);
    at[3] = mine_s();
    for (int i = 0; i < 3; i++)
        run->cpu_s[DECOMPRESS + i] += at[i + 1] - at[i];
    run->n_samples += append.batch->n_samples;
    kiln_batch_unref(append.batch);
}

static void cut(struct run *run)
{
    struct kiln_err err = {0};
    double before;

    kiln_store_settle(run->engine);
    before = mine_s();
    bench_must(kiln_store_flush(run->engine, &err), "flush", &err);
    run->cpu_s[CUT] += mine_s() - before;
}

static uint64_t block_bytes(struct run *run)
{
    struct kiln_engine_stats stats;

    run->engine->ops->stats(run->engine, KILN_STR_NONE, &stats);
    return stats.block_bytes;
}

static void finish(struct run *run)
{
    struct kiln_err err = {0};
    clockid_t applier;
    double before, others;

    run->fresh_bytes = block_bytes(run);
    before = mine_s();
    bench_must(kiln_store_compact(run->engine, true, &err), "compact", &err);
    run->cpu_s[COMPACT] = mine_s() - before;
    others = clock_s(CLOCK_PROCESS_CPUTIME_ID) - mine_s();
    if (pthread_getcpuclockid(kiln_store_of(run->engine)->applier, &applier) == 0)
        run->cpu_s[APPLY] = clock_s(applier);
    run->cpu_s[LOG] = others - run->cpu_s[APPLY];
}

static void report(struct run *run, int n)
{
    double all = 0;

    for (int i = 0; i < N_STEPS; i++) {
        printf("%s %.3f ms  ", step_names[i], run->cpu_s[i] / n * 1e3);
        all += run->cpu_s[i];
    }
    printf("all %.3f ms a request; %.2f bytes a sample, %.2f compacted\n", all / n * 1e3,
           (double)run->fresh_bytes / (double)run->n_samples,
           (double)block_bytes(run) / (double)run->n_samples);
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
    (void)stat, (void)type, (void)at;
    return remove(path);
}

int main(int argc, char **argv)
{
    struct kiln_pool pool;
    struct kiln_store_opts opts = {
        .pool = &pool, .no_background = true, .retention = {.age_ns = UINT64_MAX}};
    struct run run = {.lock = PTHREAD_MUTEX_INITIALIZER, .known = PTHREAD_COND_INITIALIZER};
    char folder[] = "/tmp/kiln-bench-XXXXXX";
    struct kiln_err err = {0};
    int every = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;

    if (every <= 0 || !mkdtemp(folder))
        bench_die(argv[0], "usage: CUT FILE...");
    kiln_mem_keep(POOL_BYTES / 8);
    kiln_pool_init(&pool, "bench", POOL_BYTES, NULL);
    bench_must(kiln_io_open(folder, false, &opts.io), folder, &err);
    bench_must(kiln_store_open(&opts, &run.engine, &err), folder, &err);
    for (int i = 2; i < argc; i++) {
        struct bench_file file = bench_read(argv[i]);

        take(&run, &file);
        free(file.data);
        if ((i - 1) % every == 0 || i + 1 == argc)
            cut(&run);
    }
    finish(&run);
    report(&run, argc - 2);
    run.engine->ops->close(run.engine);
    kiln_io_close(opts.io);
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0;
}
