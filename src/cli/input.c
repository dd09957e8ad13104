/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/edit.h"
#include "cli/input.h"
#include "cli/output.h"
#include "core/merge.h"

#define INPUT_BYTES_DEFAULT ((size_t)256 << 20)
#define MEMORY_FACTOR       4u /* a decoded batch stays below this many times the raw bytes */
#define OUTPUT_FACTOR       4u /* text and drawings are larger than what they were made of */

static struct kiln_limits limits_for(size_t input_bytes)
{
    struct kiln_limits limits = kiln_limits_default;

    if (input_bytes > limits.memory_bytes / MEMORY_FACTOR)
        limits.memory_bytes = input_bytes * MEMORY_FACTOR;
    return limits;
}

static size_t input_limit(const struct kiln_cli *cli)
{
    return cli->args.max_size ? cli->args.max_size : INPUT_BYTES_DEFAULT;
}

size_t kiln_output_limit(const struct kiln_cli *cli)
{
    size_t most = input_limit(cli);

    if (most < INPUT_BYTES_DEFAULT)
        most = INPUT_BYTES_DEFAULT;
    return most > SIZE_MAX / 2 / OUTPUT_FACTOR ? SIZE_MAX / 2 : most * OUTPUT_FACTOR;
}

/*
 * Collapsed stacks of one frame each look like any list of numbers: there the name of the file
 * decides.  All other formats have marks of their own.
 */
static enum kiln_format fallback(const char *path)
{
    bool collapsed = kiln_output_format_of(path) == KILN_FORMAT_COLLAPSED;

    return collapsed ? KILN_FORMAT_COLLAPSED : KILN_FORMAT_UNKNOWN;
}

static int decode(const struct kiln_cli *cli, const char *path, struct kiln_str data,
                  struct kiln_input *input, struct kiln_err *err)
{
    struct kiln_decode_opts opts = {
        .format = (enum kiln_format)cli->args.from,
        .fallback = fallback(path),
        .limits = limits_for(input_limit(cli)),
        .input_bytes = input_limit(cli),
        .otlp_revision = cli->args.otlp_revision,
    };

    return kiln_decode(data, &opts, &input->batch, &input->info, err);
}

int kiln_input_load(const struct kiln_cli *cli, const char *path, struct kiln_input *ret_input,
                    struct kiln_err *err)
{
    struct kiln_input input = {0};
    struct kiln_buf data;
    int r;

    kiln_buf_init(&data, input_limit(cli));
    r = kiln_file_read(path, &data, err);
    if (r == 0)
        r = decode(cli, path, kiln_buf_str(&data), &input, err);
    input.file_bytes = data.len;
    kiln_buf_done(&data);
    if (r == 0)
        *ret_input = input;
    return r;
}

int kiln_input_open(const struct kiln_cli *cli, const char *path, struct kiln_input *ret_input)
{
    struct kiln_input input;
    struct kiln_err err = {0};
    int code;

    if (kiln_input_load(cli, path, &input, &err) < 0)
        return kiln_cli_fail(path, &err);
    code = kiln_edit(cli, path, &input.batch);
    if (code)
        kiln_input_close(&input);
    else
        *ret_input = input;
    return code;
}

int kiln_input_read(const struct kiln_cli *cli, const char *path, struct kiln_buf *out)
{
    struct kiln_err err = {0};
    struct kiln_buf data;
    int r;

    kiln_buf_init(&data, input_limit(cli));
    out->max = input_limit(cli);
    r = kiln_file_read(path, &data, &err);
    if (r == 0)
        r = kiln_decompress(kiln_compression_of(kiln_buf_str(&data)), kiln_buf_str(&data), out,
                            &err);
    kiln_buf_done(&data);
    return r < 0 ? kiln_cli_fail(path, &err) : KILN_EXIT_WELL;
}

void kiln_input_close(struct kiln_input *input)
{
    kiln_batch_unref(input->batch);
    input->batch = NULL;
}

static int merge(const struct kiln_cli *cli, struct kiln_batch **batches, uint32_t n,
                 struct kiln_batch **ret_batch)
{
    struct kiln_merge_opts opts = {
        .limits = limits_for(input_limit(cli)),
        .combine_times = cli->args.combine_times,
        .keep_profiles_apart = cli->args.keep_apart,
        .relocate = cli->args.combine_times, /* other times are often other starts */
    };
    struct kiln_err err = {0};

    if (kiln_merge(batches, n, &opts, ret_batch, &err) < 0)
        return kiln_cli_fail(NULL, &err);
    return KILN_EXIT_WELL;
}

static int merge_files(const struct kiln_cli *cli, const char **paths, uint32_t n,
                       struct kiln_batch **ret_batch)
{
    struct kiln_batch **batches = kiln_calloc(n, sizeof(*batches));
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;

    if (!batches) {
        kiln_err_set(&err, -ENOMEM, NULL, "out of memory");
        return kiln_cli_fail(NULL, &err);
    }
    for (uint32_t i = 0; i < n && code == 0; i++) {
        struct kiln_input input = {0};

        kiln_term_progress("reading", i, n);
        code = kiln_input_open(cli, paths[i], &input);
        batches[i] = input.batch;
    }
    kiln_term_progress("reading", n, n);
    if (code == 0)
        code = merge(cli, batches, n, ret_batch);
    for (uint32_t i = 0; i < n; i++)
        kiln_batch_unref(batches[i]);
    kiln_free(batches);
    return code;
}

int kiln_input_merge(const struct kiln_cli *cli, uint32_t first, struct kiln_batch **ret_batch)
{
    const struct kiln_list *operands = &cli->args.operands;
    struct kiln_input input;
    int code;

    if (operands->n - first > 1)
        return merge_files(cli, operands->items + first, operands->n - first, ret_batch);
    code = kiln_input_open(cli, operands->items[first], &input);
    if (code == 0)
        *ret_batch = input.batch;
    return code;
}

int kiln_input_opts(const struct kiln_cli *cli, struct kiln_view_opts *ret_opts)
{
    const struct kiln_args *args = &cli->args;
    struct kiln_str *labels = kiln_calloc(args->labels.n + 1, sizeof(*labels));
    struct kiln_err err = {0};

    if (!labels) {
        kiln_err_set(&err, -ENOMEM, NULL, "out of memory");
        return kiln_cli_fail(NULL, &err);
    }
    for (uint32_t i = 0; i < args->labels.n; i++)
        labels[i] = kiln_str_of(args->labels.items[i]);
    *ret_opts = (struct kiln_view_opts){
        .sample_type = kiln_str_of(args->sample_type),
        .granularity = (enum kiln_granularity)args->granularity,
        .focus = kiln_str_of(args->focus),
        .ignore = kiln_str_of(args->ignore),
        .show = kiln_str_of(args->show),
        .hide = kiln_str_of(args->hide),
        .labels = labels,
        .n_labels = args->labels.n,
        .memory_bytes = limits_for(input_limit(cli)).memory_bytes,
    };
    return KILN_EXIT_WELL;
}

void kiln_input_opts_done(struct kiln_view_opts *opts)
{
    kiln_free((void *)opts->labels);
    opts->labels = NULL;
}

int kiln_input_view(const struct kiln_cli *cli, struct kiln_batch *batch, const char *path,
                    struct kiln_view **ret_view)
{
    struct kiln_view_opts opts;
    struct kiln_err err = {0};
    int code = kiln_input_opts(cli, &opts);

    if (code)
        return code;
    if (kiln_view_new(batch, &opts, ret_view, &err) < 0)
        code = kiln_cli_fail(path, &err);
    kiln_input_opts_done(&opts);
    return code;
}

int kiln_input_view_file(const struct kiln_cli *cli, const char *path, struct kiln_view **ret_view)
{
    struct kiln_input input;
    int code = kiln_input_open(cli, path, &input);

    if (code)
        return code;
    code = kiln_input_view(cli, input.batch, path, ret_view);
    kiln_input_close(&input);
    return code;
}

int kiln_input_view_of(const struct kiln_cli *cli, uint32_t first, struct kiln_view **ret_view)
{
    const struct kiln_list *operands = &cli->args.operands;
    const char *path = operands->n - first == 1 ? operands->items[first] : NULL;
    struct kiln_batch *batch;
    int code = kiln_input_merge(cli, first, &batch);

    if (code)
        return code;
    code = kiln_input_view(cli, batch, path, ret_view);
    kiln_batch_unref(batch);
    return code;
}
