/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles with what protobuf-c generates of their descriptors: otlp-decode (no validation of
 * indexes, nothing interned) and otlp-encode.
 */
#include <string.h>

#include "../../bench.h"
#include "opentelemetry/proto/profiles/v1development/profiles.pb-c.h"

#define Data Opentelemetry__Proto__Profiles__V1development__ProfilesData

struct ctx {
    Data **messages;
    uint8_t *out;
};

static Data *decode(const struct bench_file *file)
{
    Data *data = opentelemetry__proto__profiles__v1development__profiles_data__unpack(
        NULL, file->len, file->data);

    if (!data)
        bench_die("protobuf-c", "cannot decode");
    return data;
}

static void pass_decode(const struct bench *b, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < b->n_files; i++)
        opentelemetry__proto__profiles__v1development__profiles_data__free_unpacked(
            decode(&b->files[i]), NULL);
}

static void pass_encode(const struct bench *b, void *ctx)
{
    struct ctx *c = ctx;

    for (int i = 0; i < b->n_files; i++)
        opentelemetry__proto__profiles__v1development__profiles_data__pack(c->messages[i], c->out);
}

int main(int argc, char **argv)
{
    struct bench b = bench_begin(argc, argv);
    struct ctx c = {calloc((size_t)b.n_files, sizeof(Data *)), malloc(2 * b.bytes)};

    for (int i = 0; i < b.n_files; i++)
        c.messages[i] = decode(&b.files[i]);
    if (strcmp(b.what, "otlp-decode") == 0)
        bench_run(&b, pass_decode, &c);
    else if (strcmp(b.what, "otlp-encode") == 0)
        bench_run(&b, pass_encode, &c);
    else
        bench_die(b.what, "protobuf-c has no such thing");
    return 0;
}
