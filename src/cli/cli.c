/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cli.h"
#include "codec/clean.h"

#define LINE_BYTES_MAX 2048u

int kiln_cli_exit_code(int code)
{
    switch (code) {
    case 0:
        return KILN_EXIT_WELL;
    case -EINVAL:
    case KILN_E_PATTERN:
    case KILN_E_NOMATCH:
    case KILN_E_AMBIGUOUS:
        return KILN_EXIT_USAGE;
    case -ENODATA:
        return KILN_EXIT_INPUT;
    default:
        return code <= KILN_E_TRUNCATED ? KILN_EXIT_INPUT : KILN_EXIT_IO;
    }
}

/* What a person can do about it; NULL where the sentence says it all. */
static const char *hint(const struct kiln_err *err)
{
    if (err->text[0] && strchr(err->text, '('))
        return NULL;
    switch (err->code) {
    case KILN_E_TRUNCATED:
        return "is the file complete?";
    case KILN_E_CORRUPT:
        return "was it copied as a binary file?";
    case KILN_E_UNKNOWN:
        return "name the format with --from; `kiln help formats` lists all";
    case KILN_E_LIMIT:
        return "--max-size raises the limits";
    case KILN_E_PATTERN:
        return "patterns are Perl's; see pcre2pattern(3)";
    case KILN_E_NOMATCH:
        return "`kiln info` shows what there is";
    default:
        return NULL;
    }
}

/* One write, so that lines of several processes do not mix.  Nothing can be done if it fails. */
static void say(struct kiln_buf *line)
{
    kiln_buf_putc(line, '\n');
    if (kiln_fd_write(STDERR_FILENO, kiln_buf_str(line)) < 0)
        errno = 0;
    kiln_buf_done(line);
}

const char *kiln_cli_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static void start_line(struct kiln_buf *line, const char *file)
{
    kiln_buf_init(line, LINE_BYTES_MAX);
    kiln_buf_puts(line, "kiln: ");
    if (!file)
        return;
    kiln_cli_put_safe(line, kiln_str_of(kiln_cli_file_name(file)));
    kiln_buf_puts(line, ": ");
}

int kiln_cli_fail(const char *file, const struct kiln_err *err)
{
    const char *text = err->text[0] ? err->text : kiln_err_text(err->code);
    const char *next = hint(err);
    struct kiln_buf line;

    start_line(&line, file);
    if (err->where[0]) {
        kiln_cli_put_safe(&line, kiln_str_of(err->where));
        kiln_buf_puts(&line, ": ");
    }
    kiln_cli_put_safe(&line, kiln_str_of(text));
    if (next)
        kiln_buf_printf(&line, " (%s)", next);
    say(&line);
    return kiln_cli_exit_code(err->code);
}

static void put_sentence(struct kiln_buf *line, const char *fmt, va_list args)
{
    char text[512];

    vsnprintf(text, sizeof(text), fmt, args);
    kiln_cli_put_safe(line, kiln_str_of(text));
}

int kiln_cli_usage(const struct kiln_command *command, const char *fmt, ...)
{
    struct kiln_buf line;
    va_list args;

    start_line(&line, command ? command->name : NULL);
    va_start(args, fmt);
    put_sentence(&line, fmt, args);
    va_end(args);
    if (line.len && !memchr(line.ptr, '(', line.len))
        kiln_buf_printf(&line, " (see `kiln help%s%s`)", command ? " " : "",
                        command ? command->name : "");
    say(&line);
    return KILN_EXIT_USAGE;
}

static int no_such_verb(const struct kiln_cli *cli, const struct kiln_verb *verbs)
{
    char all[256] = "";
    size_t n = 0;

    for (const struct kiln_verb *v = verbs; v->name && n < sizeof(all); v++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", v->name);
    return kiln_cli_usage(cli->command, "%.40s: give one of %s", cli->args.operands.items[0], all);
}

int kiln_cli_run_verb(struct kiln_cli *cli, const struct kiln_verb *verbs)
{
    const struct kiln_verb *verb = verbs;

    while (verb->name && strcmp(verb->name, cli->args.operands.items[0]) != 0)
        verb++;
    if (!verb->name)
        return no_such_verb(cli, verbs);
    if (verb->operand && cli->args.operands.n < 2)
        return kiln_cli_usage(cli->command, "%s needs a %s", verb->name, verb->operand);
    if (!verb->operand && cli->args.operands.n > 1)
        return kiln_cli_usage(cli->command, "%s takes no operand: %.60s", verb->name,
                              cli->args.operands.items[1]);
    return verb->run(cli);
}

void kiln_cli_note(const char *file, const char *fmt, ...)
{
    struct kiln_buf line;
    va_list args;

    start_line(&line, file);
    va_start(args, fmt);
    put_sentence(&line, fmt, args);
    va_end(args);
    say(&line);
}

void kiln_cli_put_quoted(struct kiln_buf *out, const char *text)
{
    kiln_buf_putc(out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            kiln_buf_puts(out, "'\\''");
        else
            kiln_buf_putc(out, *text);
    kiln_buf_putc(out, '\'');
}

/* A name without a slash was found in $PATH, and will be again. */
void kiln_cli_put_program(struct kiln_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._+-";
    const char *name = program_invocation_name;
    struct kiln_buf quoted;

    if (!name || !*name || name[0] == '-')
        name = "kiln";
    if (strspn(name, plain) == strlen(name)) {
        kiln_buf_puts(out, name);
        return;
    }
    kiln_buf_init(&quoted, LINE_BYTES_MAX);
    kiln_cli_put_quoted(&quoted, name);
    kiln_cli_put_safe(out, kiln_buf_str(&quoted));
    kiln_buf_done(&quoted);
}

enum kiln_log_form kiln_cli_log_form(void)
{
    return isatty(STDERR_FILENO) == 1 ? KILN_LOG_PLAIN : KILN_LOG_LOGFMT;
}

void kiln_cli_put_safe(struct kiln_buf *out, struct kiln_str text)
{
    kiln_clean_add(out, text, SIZE_MAX, KILN_QUOTE_NONE);
}
