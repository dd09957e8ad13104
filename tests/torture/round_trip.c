/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: round_trip [SECONDS [SEED]]
 *
 * Whatever a store acknowledges can be replayed, cut into a block, merged and read back, and equals
 * what was sent (tests/support/round_trip.h).  Every seed of fuzz/corpus and, where there are any,
 * every capture is sent as it is, and then changed (tests/support/mutate.h), in the format of its
 * folder or what it looks like.  Without SECONDS a fixed number of changes with a fixed seed.
 *
 * An input that comes back wrong is written to round-trip-failed.LETTER; the same bytes behind the
 * letter of its format are an input of the fuzz target round_trip.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/compress.h"
#include "codec/codec.h"
#include "codec/otlp_json.h"
#include "mutate.h"
#include "round_trip.h"
#include "sim_io.h"

enum { CHANGES = 1500, INPUTS_MAX = 4096, FORMATS_MAX = 16, TRIES = 256 };
#define INPUT_BYTES_MAX ((size_t)16 << 20)
#define LARGE_BYTES     ((size_t)1 << 20) /* those are changed less often */

struct input {
    const struct round_trip_format *format;
    char *bytes;
    size_t len;
    char path[256];
};

static struct input inputs[INPUTS_MAX];
static uint32_t n_inputs;
static uint64_t n_same[FORMATS_MAX], n_refused; /* by format */

/* ---- inputs ---- */

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(INPUT_BYTES_MAX);

    *ret_len = file && bytes ? fread(bytes, 1, INPUT_BYTES_MAX, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static const struct round_trip_format *format_named(const char *name)
{
    for (const struct round_trip_format *f = round_trip_formats; f->letter; f++) {
        if (strcmp(f->name, name) == 0)
            return f;
    }
    return NULL;
}

static uint32_t n_formats(void)
{
    uint32_t n = 0;

    while (round_trip_formats[n].letter)
        n++;
    return n;
}

static struct kiln_buf unpack(struct kiln_str content)
{
    struct kiln_buf plain;

    kiln_buf_init(&plain, INPUT_BYTES_MAX);
    if (kiln_decompress(kiln_compression_of(content), content, &plain, NULL) < 0) {
        kiln_buf_clear(&plain);
        kiln_buf_add_str(&plain, content);
    }
    return plain;
}

static void add_input(const char *path, const struct round_trip_format *format, struct kiln_str s)
{
    struct input *input = &inputs[n_inputs];

    if (n_inputs == INPUTS_MAX || !format || s.len == 0)
        return;
    *input = (struct input){.format = format, .bytes = malloc(s.len), .len = s.len};
    memcpy(input->bytes, s.ptr, s.len);
    snprintf(input->path, sizeof(input->path), "%.255s", path);
    n_inputs++;
}

/* The same as JSON. */
static void add_as_json(const char *path, struct kiln_str otlp)
{
    struct kiln_decode_opts opts = {.format = KILN_FORMAT_OTLP};
    struct kiln_batch *batch;
    struct kiln_buf json;

    if (kiln_decode(otlp, &opts, &batch, NULL, NULL) < 0)
        return;
    kiln_buf_init(&json, INPUT_BYTES_MAX);
    if (kiln_otlp_json_encode(batch, &json, NULL) == 0)
        add_input(path, format_named("otlp-json"), kiln_buf_str(&json));
    kiln_buf_done(&json);
    kiln_batch_unref(batch);
}

/* `format` NULL: what it looks like. */
static void add_file(const char *path, const struct round_trip_format *format)
{
    struct kiln_buf plain;
    size_t len;
    char *bytes = read_file(path, &len);

    if (format && (format->letter == 'i' || format->letter == 't') && len && bytes) {
        memmove(bytes, bytes + 1, --len); /* the letter of fuzz/ingest_tree_fuzz.c */
    }
    plain = unpack((struct kiln_str){bytes, len});
    if (!format)
        format = format_named(kiln_format_info(kiln_format_detect(kiln_buf_str(&plain)))->name);
    add_input(path, format, kiln_buf_str(&plain));
    if (format && format->letter == 'o')
        add_as_json(path, kiln_buf_str(&plain));
    kiln_buf_done(&plain);
    free(bytes);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_folder(const char *path, const struct round_trip_format *format)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, NULL, by_name);

    for (int i = 0; i < n; i++) {
        char below[512];
        struct stat st;

        snprintf(below, sizeof(below), "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && stat(below, &st) == 0) {
            if (S_ISDIR(st.st_mode))
                add_folder(below, format);
            else
                add_file(below, format);
        }
        free(names[i]);
    }
    free(names);
}

static void add_all(void)
{
    const char *source = getenv("KILN_SOURCE_DIR"), *data = getenv("KILN_TEST_DATA");
    static const char *const captures[] = {"otlp", "pprof", "jfr"};
    char path[512];

    for (const struct round_trip_format *f = round_trip_formats; f->letter; f++) {
        snprintf(path, sizeof(path), "%s/fuzz/corpus/%s", source ? source : ".", f->corpus);
        add_folder(path, f);
    }
    for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", data ? data : "../shared/data", captures[i]);
        add_folder(path, NULL);
    }
}

/* ---- trips ---- */

static void keep(const struct input *input, struct kiln_str body)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "round-trip-failed.%c", input->format->letter);
    file = fopen(path, "wb");
    if (file) {
        fputc(input->format->letter, file);
        fwrite(body.ptr, 1, body.len, file);
        fclose(file);
    }
    fprintf(stderr, "the input is in %s\n", path);
}

static int send(const struct input *input, struct kiln_str body, uint64_t seed)
{
    enum round_trip_result result;
    struct kiln_buf why;

    kiln_buf_init(&why, 1 << 20);
    result = round_trip(input->format, body, seed, &why);
    n_same[input->format - round_trip_formats] += result == ROUND_TRIP_SAME;
    n_refused += result == ROUND_TRIP_REFUSED;
    if (result == ROUND_TRIP_WRONG) {
        fprintf(stderr, "%s as %s, seed %llu:\n%.*s", input->path, input->format->name,
                (unsigned long long)seed, KILN_STR_ARG(kiln_buf_str(&why)));
        keep(input, body);
    }
    kiln_buf_done(&why);
    return result == ROUND_TRIP_WRONG;
}

/* Each format as often as any other; large inputs less often. */
static struct input *pick(uint64_t *random)
{
    struct input *input = &inputs[kiln_sim_random(random) % n_inputs];
    const struct round_trip_format *format =
        &round_trip_formats[kiln_sim_random(random) % n_formats()];

    for (int i = 0; i < TRIES && (input->format != format || input->len > LARGE_BYTES); i++)
        input = &inputs[kiln_sim_random(random) % n_inputs];
    return input;
}

static int send_changed(uint64_t *random)
{
    struct input *input = pick(random);
    uint64_t seed = kiln_sim_random(random);
    struct kiln_buf body;
    int failed;

    kiln_buf_init(&body, 2 * INPUT_BYTES_MAX);
    mutate((enum mutate_shape)input->format->shape, (struct kiln_str){input->bytes, input->len},
           seed, &body);
    failed = send(input, kiln_buf_str(&body), seed);
    kiln_buf_done(&body);
    return failed;
}

/* 1 if a format had no trip at all. */
static int report(void)
{
    uint64_t all = 0;
    int none = 0;

    for (uint32_t i = 0; round_trip_formats[i].letter; i++) {
        printf("%s %llu, ", round_trip_formats[i].name, (unsigned long long)n_same[i]);
        all += n_same[i];
        none |= n_same[i] == 0;
    }
    printf("refused %llu\n%u inputs: %llu trips came back as they were sent\n",
           (unsigned long long)n_refused, n_inputs, (unsigned long long)all);
    return none;
}

int main(int argc, char **argv)
{
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t random = argc > 2 ? strtoull(argv[2], NULL, 10) : seconds ? kiln_clock_unix_ns() : 1;
    uint64_t until = kiln_clock_mono_ns() + seconds * KILN_NS_PER_S;
    int failed = 0;

    printf("seed %llu\n", (unsigned long long)random);
    fflush(stdout);
    add_all();
    for (uint32_t i = 0; i < n_inputs && !failed; i++)
        failed = send(&inputs[i], (struct kiln_str){inputs[i].bytes, inputs[i].len}, i);
    for (uint64_t i = 0; n_inputs && !failed; i++) {
        if (seconds ? kiln_clock_mono_ns() >= until : i == CHANGES)
            break;
        failed = send_changed(&random);
    }
    for (uint32_t i = 0; i < n_inputs; i++)
        free(inputs[i].bytes);
    return report() || failed;
}
