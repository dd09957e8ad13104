/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manual pages in mdoc(7): kiln.1, and kiln-COMMAND.1 for each command.  Text lines are broken
 * after each sentence and before column 80, as mandoc's lint wants them.
 */
#include <ctype.h>

#include "cli/cli.h"
#include "cli/help.h"

/* Of the last release. */
#define MAN_DATE "November 15, 2026"

enum { TEXT_COLUMNS = 78 };

/* One word: a backslash and a leading dot or quote mean something to roff. */
static void put_word(struct kiln_buf *out, struct kiln_str word, bool starts_line)
{
    if (starts_line && word.len && (word.ptr[0] == '.' || word.ptr[0] == '\''))
        kiln_buf_puts(out, "\\&");
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] == '\\')
            kiln_buf_puts(out, "\\e");
        else if (word.ptr[i] == '-' && i == 0)
            kiln_buf_puts(out, "\\-");
        else
            kiln_buf_putc(out, word.ptr[i]);
    }
}

static bool ends_sentence(struct kiln_str word)
{
    return word.len > 1 && (word.ptr[word.len - 1] == '.' || word.ptr[word.len - 1] == '?') &&
           !kiln_str_ends(word, KILN_STR("..."));
}

static void put_text(struct kiln_buf *out, struct kiln_str text)
{
    size_t at = 0;

    while (text.ptr && text.len) {
        struct kiln_str word = kiln_str_cut(&text, ' ');

        if (at && at + 1 + word.len > TEXT_COLUMNS) {
            kiln_buf_putc(out, '\n');
            at = 0;
        }
        if (at)
            kiln_buf_putc(out, ' ');
        put_word(out, word, at == 0);
        at += word.len + 1;
        if (ends_sentence(word) && text.ptr) {
            kiln_buf_putc(out, '\n');
            at = 0;
        }
    }
    kiln_buf_putc(out, '\n');
}

/* A fragment becomes a sentence. */
static void put_sentence(struct kiln_buf *out, const char *text)
{
    size_t start = out->len;

    put_text(out, kiln_str_of(text));
    if (out->error || out->len < start + 2)
        return;
    out->ptr[start] = (char)toupper((unsigned char)out->ptr[start]);
    if (out->ptr[out->len - 2] != '.') {
        out->len--;
        kiln_buf_puts(out, ".\n");
    }
}

static void put_paragraphs(struct kiln_buf *out, const char *about)
{
    struct kiln_str rest = kiln_str_of(about);

    while (rest.ptr && rest.len) {
        struct kiln_str paragraph = kiln_str_cut(&rest, '\n');

        if (paragraph.len)
            put_text(out, paragraph);
        else
            kiln_buf_puts(out, ".Pp\n");
    }
}

static void put_upper(struct kiln_buf *out, const char *text)
{
    for (; *text; text++)
        kiln_buf_putc(out, (char)toupper((unsigned char)*text));
}

static void put_head(struct kiln_buf *out, const struct kiln_command *command)
{
    const char *dash = command ? "-" : "";
    const char *name = command ? command->name : "";

    kiln_buf_puts(out, ".Dd " MAN_DATE "\n.Dt KILN");
    kiln_buf_puts(out, dash);
    put_upper(out, name);
    kiln_buf_printf(out, " 1\n.Os\n.Sh NAME\n.Nm kiln%s%s\n.Nd ", dash, name);
    kiln_buf_puts(out, command ? command->summary : "read, compare, draw and convert profiles");
    kiln_buf_puts(out, "\n.Sh SYNOPSIS\n.Nm kiln");
}

static void put_option(struct kiln_buf *out, const struct kiln_option *option)
{
    kiln_buf_puts(out, ".It ");
    if (option->letter)
        kiln_buf_printf(out, "Fl %c , ", option->letter);
    kiln_buf_printf(out, "Fl -%s", option->name);
    if (option->value)
        kiln_buf_printf(out, " Ar %s", option->value);
    kiln_buf_putc(out, '\n');
    put_sentence(out, option->text);
}

static void put_group(struct kiln_buf *out, const struct kiln_option_group *group)
{
    kiln_buf_printf(out, ".Ss %s\n.Bl -tag -width Ds\n", group->title);
    for (const struct kiln_option *o = group->options; o->name; o++)
        put_option(out, o);
    kiln_buf_puts(out, ".El\n");
}

static void put_environment(struct kiln_buf *out)
{
    kiln_buf_puts(out, ".Sh ENVIRONMENT\n.Bl -tag -width NO_COLOR\n");
#define X(name, text)                                                                              \
    kiln_buf_puts(out, ".It Ev " name "\n");                                                       \
    put_text(out, KILN_STR(text));
    KILN_ENVIRONMENT_MAP(X)
#undef X
    kiln_buf_puts(out, ".El\n");
}

static void put_exit_status(struct kiln_buf *out)
{
    kiln_buf_puts(out, ".Sh EXIT STATUS\n.Bl -tag -width Ds\n");
#define X(number, name, text)                                                                      \
    kiln_buf_puts(out, ".It " #number "\n");                                                       \
    put_text(out, KILN_STR(text));
    KILN_EXIT_MAP(X)
#undef X
    kiln_buf_puts(out, ".El\n");
}

static void put_examples(struct kiln_buf *out, const struct kiln_command *command)
{
    if (!command->examples[0].command)
        return;
    kiln_buf_puts(out, ".Sh EXAMPLES\n");
    for (uint32_t i = 0; i < KILN_EXAMPLES_MAX && command->examples[i].command; i++) {
        if (i)
            kiln_buf_puts(out, ".Pp\n");
        put_sentence(out, command->examples[i].text);
        kiln_buf_puts(out, ".Bd -literal -offset indent\n");
        kiln_buf_printf(out, "%s\n.Ed\n", command->examples[i].command);
    }
}

/* FILE..., or [WORD] for what may be left out. */
static void put_operands(struct kiln_buf *out, struct kiln_str operands)
{
    bool optional = kiln_str_starts(operands, KILN_STR("["));

    if (optional)
        operands = (struct kiln_str){operands.ptr + 1, operands.len - 2};
    if (operands.len)
        kiln_buf_printf(out, ".%sAr %.*s\n", optional ? "Op " : "", KILN_STR_ARG(operands));
}

static void command_page(const struct kiln_command *command, struct kiln_buf *out)
{
    put_head(out, command);
    kiln_buf_printf(out, " %s\n.Op Ar OPTION ...\n", command->name);
    put_operands(out, kiln_str_of(command->operands));
    kiln_buf_puts(out, ".Sh DESCRIPTION\n");
    put_paragraphs(out, command->about);
    for (uint32_t i = 0; i < KILN_GROUPS_MAX && command->groups[i]; i++)
        put_group(out, command->groups[i]);
    put_group(out, &kiln_group_common);
    put_environment(out);
    put_exit_status(out);
    put_examples(out, command);
    kiln_buf_puts(out, ".Sh SEE ALSO\n.Xr kiln 1\n");
}

static void put_formats(struct kiln_buf *out)
{
    kiln_buf_puts(out, ".Ss Formats\n.Bl -tag -width gperftools\n");
    for (uint32_t f = KILN_FORMAT_UNKNOWN + 1; f < KILN_FORMAT_COUNT; f++) {
        const struct kiln_format_info *info = kiln_format_info((enum kiln_format)f);

        kiln_buf_printf(out, ".It Cm %s\n%s (%s, usual ending\n.Pa %s ) .\n", info->name,
                        info->text,
                        !info->writes  ? "only read"
                        : !info->reads ? "only written"
                                       : "read and written",
                        info->ending);
    }
    kiln_buf_puts(out, ".El\n");
}

/* In the order of the alphabet, as pages are referred to. */
static void put_see_also(struct kiln_buf *out)
{
    const char *last = "";

    kiln_buf_puts(out, ".Sh SEE ALSO\n");
    for (;;) {
        const char *next = NULL;

        for (uint32_t i = 0; kiln_commands[i]; i++) {
            const char *name = kiln_commands[i]->name;

            if (strcmp(name, last) > 0 && (!next || strcmp(name, next) < 0))
                next = name;
        }
        if (!next)
            break;
        kiln_buf_printf(out, "%s.Xr kiln-%s 1", *last ? " ,\n" : "", next);
        last = next;
    }
    kiln_buf_putc(out, '\n');
}

static void main_page(struct kiln_buf *out)
{
    put_head(out, NULL);
    kiln_buf_puts(out, "\n.Op Ar COMMAND Oo Ar OPTION ... Oc Op Ar FILE ...\n.Sh DESCRIPTION\n.Nm\n"
                       "takes profiles in, keeps them and answers questions about them; and it\n"
                       "reads, compares, draws and converts profiles of any format.\n"
                       "Without a command it is the server.\n"
                       "A file may be compressed with gzip or zstd, and\n.Pa \\-\n"
                       "is standard input; formats are seen from the content.\n"
                       ".Ss Commands\n.Bl -tag -width completion\n");
    for (uint32_t i = 0; kiln_commands[i]; i++) {
        kiln_buf_printf(out, ".It Cm %s\n", kiln_commands[i]->name);
        put_sentence(out, kiln_commands[i]->summary);
    }
    kiln_buf_puts(out, ".El\n");
    put_formats(out);
    put_environment(out);
    put_exit_status(out);
    put_see_also(out);
}

void kiln_man_page(const struct kiln_command *command, struct kiln_buf *out)
{
    if (command)
        command_page(command, out);
    else
        main_page(out);
}
