/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln symbols resolve: addresses in, frames out, as addr2line does it, by the confined resolver
 * that the agent and the server name with.
 *
 * Addresses are asked for sorted, each once, in slices: a reader of debug information goes through
 * a file in order.  A slice's texts are formatted at once (they live until the next slice) and kept
 * until all are there; then they are printed in the order that the addresses were given in.  An
 * answer whose lines are still being looked for is asked for again, until --timeout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/metric.h"
#include "cli/report.h"
#include "cli/symbols.h"
#include "cli/symbols_files.h"
#include "symbol/resolver.h"

enum {
    ADDRESSES_MAX = 1 << 24,
    INPUT_MAX = 512 << 20,
    SLICE = 4096,
    PAUSE_MS = 5,
    TIMEOUT_S = 60,
    FILE_OPERAND = 1, /* behind the verb */
};

/* One address, and where its text is. */
struct answer {
    uint64_t address;
    size_t offset, len;
};

struct asking {
    struct kiln_cli *cli;
    const char *path;
    int fd;
    struct kiln_budget budget;
    uint64_t *addresses; /* as they were given */
    uint32_t n, cap;
    struct answer *answers; /* sorted, each address once */
    uint32_t n_answers;
    uint32_t *left; /* numbers of answers that are not there yet, ascending */
    uint32_t n_left;
    uint32_t n_shallow; /* had no lines when the time was over */
    struct kiln_buf texts;
    struct kiln_resolver *resolver;
    struct kiln_metrics *metrics;
    struct kiln_symbols_files files;
    uint64_t deadline_ns;
    /* of one slice */
    uint64_t slice[SLICE];
    struct kiln_name names[SLICE];
};

/* ---- what is asked ---- */

static int add_address(struct asking *a, struct kiln_str text, uint32_t line)
{
    uint64_t address;
    void *array = a->addresses;
    int r;

    if (kiln_str_parse_hex(text, &address) < 0 && line)
        return kiln_cli_usage(a->cli->command,
                              "standard input, line %u: %.*s is no address (hexadecimal digits, "
                              "with or without 0x)",
                              line, text.len < 40 ? (int)text.len : 40, text.ptr);
    if (kiln_str_parse_hex(text, &address) < 0)
        return kiln_cli_usage(a->cli->command,
                              "%.40s is no address (hexadecimal digits, with or without 0x)",
                              text.ptr);
    r = kiln_grow(&a->budget, &array, &a->cap, (uint64_t)a->n + 1, sizeof(*a->addresses),
                  ADDRESSES_MAX);
    a->addresses = array;
    if (r < 0)
        return kiln_cli_fail(NULL, &(struct kiln_err){.code = r});
    a->addresses[a->n++] = address;
    return 0;
}

static int read_line(struct asking *a, struct kiln_str rest, uint32_t line)
{
    int code = 0;

    while (code == 0 && rest.ptr) {
        struct kiln_str word = kiln_str_trim(kiln_str_cut(&rest, ' '));

        if (word.len)
            code = add_address(a, word, line);
    }
    return code;
}

static int read_input(struct asking *a)
{
    struct kiln_err err = {0};
    struct kiln_buf text;
    struct kiln_str rest;
    int code = 0;

    kiln_buf_init(&text, INPUT_MAX);
    if (kiln_file_read("-", &text, &err) < 0)
        code = kiln_cli_fail("-", &err);
    rest = kiln_buf_str(&text);
    for (uint32_t line = 1; code == 0 && rest.ptr; line++)
        code = read_line(a, kiln_str_cut(&rest, '\n'), line);
    kiln_buf_done(&text);
    return code;
}

static int read_addresses(struct asking *a)
{
    const struct kiln_list *operands = &a->cli->args.operands;
    int code = 0;

    if (operands->n <= FILE_OPERAND + 1)
        return read_input(a);
    for (uint32_t i = FILE_OPERAND + 1; code == 0 && i < operands->n; i++)
        code = add_address(a, kiln_str_of(operands->items[i]), 0);
    return code;
}

static int by_address(const void *a, const void *b)
{
    const struct answer *x = a;
    const struct answer *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

static int sort_addresses(struct asking *a)
{
    a->answers = kiln_calloc(a->n + 1, sizeof(*a->answers));
    a->left = kiln_calloc(a->n + 1, sizeof(*a->left));
    if (!a->answers || !a->left)
        return kiln_cli_fail(NULL, &(struct kiln_err){.code = -ENOMEM});
    for (uint32_t i = 0; i < a->n; i++)
        a->answers[i].address = a->addresses[i];
    qsort(a->answers, a->n, sizeof(*a->answers), by_address);
    for (uint32_t i = 0; i < a->n; i++) {
        if (!i || a->answers[i].address != a->answers[a->n_answers - 1].address)
            a->answers[a->n_answers++] = a->answers[i];
    }
    for (uint32_t i = 0; i < a->n_answers; i++)
        a->left[i] = i;
    a->n_left = a->n_answers;
    return 0;
}

/* ---- the file, and what belongs to it ---- */

static int open_elf(const char *path, int *ret_fd)
{
    struct kiln_err err = {0};
    char magic[4];
    int r = kiln_file_open_plain(path, ret_fd);

    if (r < 0 && r != KILN_E_UNKNOWN)
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    else if (r < 0 || pread(*ret_fd, magic, sizeof(magic), 0) != (ssize_t)sizeof(magic) ||
             memcmp(magic, "\177ELF", sizeof(magic)) != 0)
        kiln_err_set(&err, KILN_E_UNKNOWN, NULL, "no program or library (an ELF file is wanted)");
    return err.code ? kiln_cli_fail(path, &err) : 0;
}

/* ---- texts ---- */

static struct kiln_str linker_name(const struct kiln_name_frame *frame)
{
    return frame->system_name.len ? frame->system_name : frame->function;
}

static void put_place(struct kiln_buf *out, const struct kiln_name_frame *frame)
{
    if (frame->file.len)
        kiln_cli_put_safe(out, frame->file);
    else
        kiln_buf_puts(out, "??");
    kiln_buf_putc(out, ':');
    kiln_buf_add_u64(out, frame->line);
}

static void put_addr2line(struct kiln_buf *out, const struct answer *answer,
                          const struct kiln_name *name)
{
    kiln_buf_printf(out, "0x%016llx\n", (unsigned long long)answer->address);
    if (!name->n)
        kiln_buf_puts(out, "??\n??:0\n");
    for (uint32_t i = 0; i < name->n; i++) {
        kiln_cli_put_safe(out, linker_name(name->frames + i));
        kiln_buf_putc(out, '\n');
        put_place(out, name->frames + i);
        kiln_buf_putc(out, '\n');
    }
}

static void put_text(struct kiln_buf *out, const struct answer *answer,
                     const struct kiln_name *name)
{
    kiln_buf_printf(out, "0x%llx", (unsigned long long)answer->address);
    if (!name->n)
        kiln_buf_puts(out, "\t??\t??:0\n");
    for (uint32_t i = 0; i < name->n; i++) {
        kiln_buf_putc(out, '\t');
        kiln_cli_put_safe(out, name->frames[i].function);
        kiln_buf_putc(out, '\t');
        put_place(out, name->frames + i);
        if (name->frames[i].column)
            kiln_buf_printf(out, ":%u", name->frames[i].column);
        kiln_buf_putc(out, '\n');
    }
}

static void json_text(struct kiln_json_out *w, const char *name, struct kiln_str text)
{
    if (!text.len)
        return;
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, text);
}

static void json_number(struct kiln_json_out *w, const char *name, uint32_t number)
{
    if (!number)
        return;
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, number);
}

static void json_frame(struct kiln_json_out *w, const struct kiln_name_frame *frame)
{
    kiln_json_put_object(w);
    json_text(w, "function", frame->function);
    json_text(w, "system_name", frame->system_name);
    json_text(w, "file", frame->file);
    json_number(w, "line", frame->line);
    json_number(w, "column", frame->column);
    json_number(w, "start_line", frame->start_line);
    kiln_json_end_object(w);
}

static void put_json(struct kiln_buf *out, const struct answer *answer,
                     const struct kiln_name *name)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "address");
    kiln_json_put_raw_begin(&w);
    kiln_buf_printf(out, "0x%llx", (unsigned long long)answer->address);
    kiln_json_put_raw_end(&w);
    kiln_json_put_name(&w, "frames");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < name->n; i++)
        json_frame(&w, name->frames + i);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
}

static void keep(struct asking *a, struct answer *answer, const struct kiln_name *name)
{
    answer->offset = a->texts.len;
    if (a->cli->args.resolve.addr2line)
        put_addr2line(&a->texts, answer, name);
    else if (a->cli->args.json)
        put_json(&a->texts, answer, name);
    else
        put_text(&a->texts, answer, name);
    answer->len = a->texts.len - answer->offset;
}

/* ---- asking ---- */

static void pause_a_little(void)
{
    const struct timespec pause = kiln_timespec_of(PAUSE_MS * KILN_NS_PER_MS);

    (void)nanosleep(&pause, NULL);
}

/* Asks for `n` of those that are left, from `first` on; what is still shallow goes to `*kept`. */
static int ask_slice(struct asking *a, uint32_t first, uint32_t n, uint32_t *kept)
{
    const struct kiln_source source = {.kind = KILN_SOURCE_ELF,
                                       .fd = a->fd,
                                       .id = 1,
                                       .version = 1,
                                       .key = kiln_str_of(a->path),
                                       .open = kiln_symbols_files_open,
                                       .context = &a->files};
    bool late = kiln_clock_mono_ns() >= a->deadline_ns;
    int r;

    for (uint32_t i = 0; i < n; i++)
        a->slice[i] = a->answers[a->left[first + i]].address;
    r = kiln_resolver_ask(a->resolver, &source, a->slice, n, a->names);
    /* The child was ended too often of late: another one may be had in a moment. */
    if (r < 0 && (r != -EAGAIN || late))
        return r;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t number = a->left[first + i];

        if (!late && (r == -EAGAIN || a->names[i].shallow))
            a->left[(*kept)++] = number;
        else
            keep(a, a->answers + number, a->names + i);
        a->n_shallow += late && a->names[i].shallow;
    }
    return 0;
}

static int ask_all(struct asking *a)
{
    while (a->n_left) {
        uint32_t kept = 0;

        for (uint32_t i = 0; i < a->n_left; i += SLICE) {
            uint32_t n = a->n_left - i < SLICE ? a->n_left - i : SLICE;
            int r = ask_slice(a, i, n, &kept);

            if (r < 0)
                return r;
        }
        if (kept == a->n_left)
            pause_a_little();
        a->n_left = kept;
    }
    return a->texts.error;
}

/* ---- printing ---- */

static void print_one(struct asking *a, uint64_t address)
{
    const struct answer key = {.address = address};
    const struct answer *answer =
        bsearch(&key, a->answers, a->n_answers, sizeof(*a->answers), by_address);

    kiln_buf_add(&a->cli->out, a->texts.ptr + answer->offset, answer->len);
}

static void print_json(struct asking *a)
{
    struct kiln_buf *out = &a->cli->out;
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "file");
    kiln_json_put_str(&w, kiln_str_of(a->path));
    kiln_json_put_name(&w, "addresses");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < a->n; i++) {
        kiln_buf_puts(out, i ? ",\n" : "\n");
        print_one(a, a->addresses[i]);
    }
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

static bool is_counted(const struct asking *a, const char *name)
{
    return kiln_metric_value(kiln_metric_counter(a->metrics, name, "")) > 0;
}

/* What went wrong is said, and what could be read all the same is printed. */
static int judge(const struct asking *a)
{
    if (a->n_shallow)
        kiln_cli_note(a->path, "%u addresses have no lines yet (--timeout raises the limit)",
                      a->n_shallow);
    if (a->files.debug && is_counted(a, "kiln_names_debug_files_refused_total"))
        kiln_cli_note(a->files.debug, "this is the debug file of another build");
    else if (is_counted(a, "kiln_names_debug_set_aside_total"))
        kiln_cli_note(a->path, "reading its lines took too much or ended their reader");
    else if (is_counted(a, "kiln_names_set_aside_total"))
        kiln_cli_note(a->path, "reading it took too much or ended its reader");
    else
        return KILN_EXIT_WELL;
    return KILN_EXIT_INPUT;
}

static int answer_all(struct asking *a)
{
    int r = ask_all(a);

    if (r < 0)
        return kiln_cli_fail(a->path, &(struct kiln_err){.code = r});
    if (a->cli->args.json) {
        print_json(a);
        return judge(a);
    }
    for (uint32_t i = 0; i < a->n; i++)
        print_one(a, a->addresses[i]);
    return judge(a);
}

/* ---- the verb ---- */

static int start(struct asking *a)
{
    uint64_t timeout_ns = a->cli->args.remote.timeout_ns;
    struct kiln_resolver_opts opts = {.patient = true, .scratch_directory = getenv("TMPDIR")};
    struct kiln_err err = {0};
    int r = kiln_metrics_new(&a->metrics);

    if (!timeout_ns)
        timeout_ns = TIMEOUT_S * KILN_NS_PER_S;
    a->deadline_ns = kiln_clock_mono_ns() + timeout_ns;
    opts.metrics = a->metrics;
    opts.deep_cpu_ms = timeout_ns / KILN_NS_PER_MS < UINT32_MAX
                           ? (uint32_t)(timeout_ns / KILN_NS_PER_MS)
                           : UINT32_MAX;
    if (!opts.scratch_directory || !opts.scratch_directory[0])
        opts.scratch_directory = P_tmpdir;
    if (r < 0)
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    else
        r = kiln_resolver_new(&opts, &a->resolver, &err);
    if (r < 0)
        return kiln_cli_fail(NULL, &err);
    r = kiln_symbols_files_init(&a->files, a->cli, a->path);
    return r < 0 ? kiln_cli_fail(a->path, &(struct kiln_err){.code = r}) : 0;
}

static void end(struct asking *a)
{
    kiln_resolver_free(a->resolver);
    kiln_metrics_free(a->metrics);
    kiln_symbols_files_done(&a->files);
    kiln_buf_done(&a->texts);
    kiln_free(a->answers);
    kiln_free(a->left);
    kiln_array_free(&a->budget, (void **)&a->addresses, &a->cap, sizeof(*a->addresses));
    if (a->fd >= 0)
        close(a->fd);
    kiln_free(a);
}

int kiln_symbols_run_resolve(struct kiln_cli *cli)
{
    struct asking *a = kiln_calloc(1, sizeof(*a));
    int code;

    if (!a)
        return kiln_cli_fail(NULL, &(struct kiln_err){.code = -ENOMEM});
    a->cli = cli;
    a->path = cli->args.operands.items[FILE_OPERAND];
    a->fd = -1;
    a->files.where.root = -1;
    a->budget.limit = SIZE_MAX;
    kiln_buf_init(&a->texts, cli->out.max);
    code = open_elf(a->path, &a->fd);
    if (code == 0)
        code = read_addresses(a);
    if (code == 0)
        code = sort_addresses(a);
    if (code == 0)
        code = start(a);
    if (code == 0)
        code = answer_all(a);
    end(a);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("addr2line", 0, KILN_OPT_FLAG, resolve.addr2line, NULL,
             "print what `addr2line -a -f -i` prints, with the linker's names"),
    KILN_OPT("debug", 0, KILN_OPT_TEXT, resolve.debug, "FILE",
             "the file that has the debug information"),
    KILN_OPT("debug-dir", 0, KILN_OPT_LIST, resolve.debug_dirs, "DIR",
             "look for debug files there too, as in /usr/lib/debug"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_resolve = {"Resolve", options};
