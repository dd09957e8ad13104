/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/compress.h"
#include "base/file.h"
#include "cli/input.h"
#include "cli/output.h"
#include "codec/pprof.h"

static const struct kiln_option output_options[] = {
    KILN_OPT("output", 'o', KILN_OPT_TEXT, output, "FILE",
             "write FILE instead of standard output; one that ends in .gz or .zst is compressed"),
    KILN_OPT("to", 0, KILN_OPT_WRITES, to, "FORMAT",
             "write FORMAT (by default what the ending of FILE says)"),
    KILN_OPT("title", 0, KILN_OPT_TEXT, title, "TEXT", "what a drawing says at its top"),
    KILN_OPT("no-compression", 0, KILN_OPT_FLAG, no_compression, NULL,
             "write pprof plain instead of gzip"),
    KILN_OPT_END,
};

const struct kiln_option_group kiln_group_output = {"Output", output_options};

static struct kiln_str without(struct kiln_str path, struct kiln_str ending)
{
    path.len -= kiln_str_ends(path, ending) ? ending.len : 0;
    return path;
}

enum kiln_format kiln_output_format_of(const char *path)
{
    struct kiln_str name = kiln_str_of(path);
    enum kiln_format format = kiln_format_of_path(name);

    name = without(without(name, KILN_STR(".gz")), KILN_STR(".zst"));
    if (format == KILN_FORMAT_UNKNOWN)
        format = kiln_format_of_path(name);
    if (format == KILN_FORMAT_UNKNOWN && kiln_str_ends(name, KILN_STR(".pb")))
        format = KILN_FORMAT_PPROF;
    return format;
}

/* pprof is gzip whatever its name, but for names that say it is something else. */
static bool is_plain_name(const char *path)
{
    struct kiln_str name = kiln_str_of(path);

    return kiln_str_ends(name, KILN_STR(".pb")) || kiln_str_ends(name, KILN_STR(".zst"));
}

/* Bytes would upset a terminal, and nobody reads a drawing there. */
static bool suits_terminal(enum kiln_format format)
{
    return format != KILN_FORMAT_OTLP && format != KILN_FORMAT_PPROF && format != KILN_FORMAT_SVG;
}

static bool to_standard_output(const struct kiln_cli *cli)
{
    return !cli->args.output || strcmp(cli->args.output, "-") == 0;
}

int kiln_output_format(const struct kiln_cli *cli, enum kiln_format fallback,
                       enum kiln_format *ret_format)
{
    enum kiln_format format = (enum kiln_format)cli->args.to;

    if (format == KILN_FORMAT_UNKNOWN && !to_standard_output(cli))
        format = kiln_output_format_of(cli->args.output);
    if (format == KILN_FORMAT_UNKNOWN)
        format = fallback;
    if (format == KILN_FORMAT_UNKNOWN)
        return kiln_cli_usage(cli->command, "which format shall it be? Give --to FORMAT%s",
                              to_standard_output(cli) ? " or -o FILE"
                                                      : ", the ending of FILE is not known");
    if (!kiln_format_info(format)->writes)
        return kiln_cli_usage(cli->command, "%s can be read, but not written",
                              kiln_format_info(format)->name);
    if (!suits_terminal(format) && to_standard_output(cli) && cli->term.is_terminal)
        return kiln_cli_usage(cli->command, "%s is not for a terminal: give -o FILE or a pipe",
                              kiln_format_info(format)->name);
    *ret_format = format;
    return KILN_EXIT_WELL;
}

/* Formats that keep the whole batch, whatever the selection. */
static bool keeps_everything(enum kiln_format format)
{
    return format == KILN_FORMAT_OTLP || format == KILN_FORMAT_OTLP_JSON ||
           format == KILN_FORMAT_PPROF;
}

/* The name of a selection option that was given, or NULL. */
static const char *selection(const struct kiln_args *args)
{
    const struct kiln_args none = {0};

    for (const struct kiln_option *o = kiln_group_selection.options; o->name; o++) {
        size_t size = o->kind == KILN_OPT_CHOICE ? sizeof(uint32_t) : sizeof(const char *);

        if (memcmp((const char *)args + o->offset, (const char *)&none + o->offset, size) != 0)
            return o->name;
    }
    return NULL;
}

static void say_losses(const struct kiln_pprof_losses *losses)
{
    const struct {
        uint64_t n;
        const char *what;
    } rows[] = {
        {losses->timestamps, "timestamps"},
        {losses->profile_ids, "ids and payloads of profiles"},
        {losses->scopes, "scopes"},
        {losses->periods, "periods"},
        {losses->attributes, "attributes"},
        {losses->values_as_text, "types of labels"},
        {losses->overflows, "sums past 64 bits"},
    };
    struct kiln_buf text;

    kiln_buf_init(&text, 512);
    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        if (!rows[i].n)
            continue;
        kiln_buf_puts(&text, text.len ? ", " : "");
        kiln_buf_add_u64(&text, rows[i].n);
        kiln_buf_printf(&text, " %s", rows[i].what);
    }
    if (text.len)
        kiln_cli_note(NULL, "pprof cannot hold everything, these are lost: %.*s",
                      KILN_STR_ARG(kiln_buf_str(&text)));
    kiln_buf_done(&text);
}

int kiln_output_batch(struct kiln_cli *cli, struct kiln_batch *batch, enum kiln_format format)
{
    struct kiln_pprof_losses losses = {0};
    struct kiln_encode_opts opts = {
        .format = format,
        .title = cli->args.title,
        .no_compression =
            cli->args.no_compression || (cli->args.output && is_plain_name(cli->args.output)),
        .losses = &losses,
    };
    struct kiln_err err = {0};
    int code;
    int r;

    if (keeps_everything(format) && selection(&cli->args))
        return kiln_cli_usage(cli->command, "--%s has no effect on %s, which keeps everything",
                              selection(&cli->args), kiln_format_info(format)->name);
    code = kiln_input_opts(cli, &opts.view);
    if (code)
        return code;
    r = kiln_encode(batch, &opts, &cli->out, &err);
    kiln_input_opts_done(&opts.view);
    if (r < 0) {
        kiln_buf_clear(&cli->out);
        return kiln_cli_fail(NULL, &err);
    }
    if (!cli->args.silent_losses)
        say_losses(&losses);
    return kiln_output_deliver(cli, format);
}

static enum kiln_compression compression_of(const char *path, enum kiln_format format)
{
    struct kiln_str name = kiln_str_of(path);

    if (kiln_str_ends(name, KILN_STR(".zst")))
        return KILN_ZSTD;
    if (format != KILN_FORMAT_PPROF && kiln_str_ends(name, KILN_STR(".gz")))
        return KILN_GZIP;
    return KILN_PLAIN;
}

/* Writes `data`, compressed if need be. */
static int write_file(const char *path, enum kiln_compression compression, struct kiln_str data,
                      struct kiln_err *err)
{
    struct kiln_buf packed;
    int r;

    if (compression == KILN_PLAIN)
        return kiln_file_write(path, data, err);
    kiln_buf_init(&packed, SIZE_MAX / 2);
    r = kiln_compress(compression, 0, data, &packed);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    else
        r = kiln_file_write(path, kiln_buf_str(&packed), err);
    kiln_buf_done(&packed);
    return r;
}

/*
 * Collapsed stacks have names as they are.  On a terminal, characters that it would obey become
 * U+FFFD; in JSON they are escaped anyway, and reports and drawings of text do not have them.
 */
static void suit_terminal(struct kiln_buf *out)
{
    struct kiln_str rest = kiln_buf_str(out);
    struct kiln_buf safe;

    kiln_buf_init(&safe, out->max);
    while (rest.len) {
        kiln_cli_put_safe(&safe, kiln_str_cut(&rest, '\n'));
        kiln_buf_putc(&safe, '\n');
    }
    kiln_buf_done(out);
    *out = safe;
}

int kiln_output_deliver(struct kiln_cli *cli, enum kiln_format format)
{
    const char *path = cli->args.output;
    struct kiln_err err = {0};
    int r = cli->out.error;

    if (to_standard_output(cli)) {
        if (cli->term.is_terminal && format == KILN_FORMAT_COLLAPSED)
            suit_terminal(&cli->out);
        return KILN_EXIT_WELL;
    }
    if (r < 0)
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    else
        r = write_file(path, compression_of(path, format), kiln_buf_str(&cli->out), &err);
    kiln_buf_clear(&cli->out);
    return r < 0 ? kiln_cli_fail(path, &err) : KILN_EXIT_WELL;
}
