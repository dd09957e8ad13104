/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people: lines of at most 80 columns, options in two columns.
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/help.h"

enum { OPTION_COLUMN = 28 };

static void heading(const struct kiln_term *term, struct kiln_buf *out, const char *text)
{
    kiln_buf_putc(out, '\n');
    kiln_term_put(term, out, KILN_STYLE_STRONG, kiln_str_of(text));
    kiln_buf_puts(out, ":\n");
}

static void spaces(struct kiln_buf *out, uint32_t n)
{
    kiln_buf_printf(out, "%*s", (int)n, "");
}

static void put_option(const struct kiln_option *option, struct kiln_buf *out)
{
    char head[80];
    int n = snprintf(head, sizeof(head), "  %c%c%s --%s%s%s", option->letter ? '-' : ' ',
                     option->letter ? option->letter : ' ', option->letter ? "," : " ",
                     option->name, option->value ? " " : "", option->value ? option->value : "");

    kiln_buf_puts(out, head);
    if (n + 2 > OPTION_COLUMN) {
        kiln_buf_putc(out, '\n');
        n = 0;
    }
    spaces(out, (uint32_t)(OPTION_COLUMN - n));
    kiln_term_wrap(out, kiln_str_of(option->text), OPTION_COLUMN, OPTION_COLUMN);
}

static void put_group(const struct kiln_option_group *group, const struct kiln_term *term,
                      struct kiln_buf *out)
{
    heading(term, out, group->title);
    for (const struct kiln_option *o = group->options; o->name; o++)
        put_option(o, out);
}

static void put_about(const char *about, struct kiln_buf *out)
{
    struct kiln_str rest = kiln_str_of(about);

    while (rest.ptr && rest.len) {
        struct kiln_str paragraph = kiln_str_cut(&rest, '\n');

        kiln_term_wrap(out, paragraph, 0, 0);
    }
}

void kiln_help_command(const struct kiln_command *command, const struct kiln_term *term,
                       struct kiln_buf *out)
{
    kiln_buf_printf(out, "usage: kiln %s [OPTION]...%s%s\n\n", command->name,
                    command->operands[0] ? " " : "", command->operands);
    put_about(command->about, out);
    for (uint32_t i = 0; i < KILN_GROUPS_MAX && command->groups[i]; i++)
        put_group(command->groups[i], term, out);
    put_group(&kiln_group_common, term, out);
    if (command->examples[0].command)
        heading(term, out, "Examples");
    for (uint32_t i = 0; i < KILN_EXAMPLES_MAX && command->examples[i].command; i++)
        kiln_buf_printf(out, "%s  # %s\n  %s\n", i ? "\n" : "", command->examples[i].text,
                        command->examples[i].command);
    heading(term, out, "Exit status");
#define X(number, name, text) kiln_buf_printf(out, "  %d  %s\n", (number), (text));
    KILN_EXIT_MAP(X)
#undef X
}

void kiln_help_all(const struct kiln_term *term, struct kiln_buf *out)
{
    kiln_buf_puts(out, "usage: kiln [COMMAND [OPTION]... [FILE]...]\n\n"
                       "Kiln takes profiles in, keeps them and answers questions about them; and "
                       "it\nreads, compares, draws and converts profiles of any format. Without a "
                       "COMMAND it\nis the server, and profiles this machine.\n");
    heading(term, out, "Commands");
    for (uint32_t i = 0; kiln_commands[i]; i++)
        kiln_buf_printf(out, "  %-12s %s\n", kiln_commands[i]->name, kiln_commands[i]->summary);
    kiln_buf_puts(out, "\nA FILE may be - for standard input, and gzip or zstd; its format is seen "
                       "from its\ncontent.\n");
    kiln_buf_puts(out, "\n`kiln help COMMAND` tells all about a command, `kiln help formats` lists "
                       "the formats.\n");
}

void kiln_help_formats(const struct kiln_term *term, struct kiln_buf *out)
{
    char line[160];

    snprintf(line, sizeof(line), "%-12s %-18s %-5s %-5s %s\n", "format", "usual ending", "read",
             "write", "what it is");
    kiln_term_put(term, out, KILN_STYLE_FAINT, kiln_str_of(line));
    for (uint32_t f = KILN_FORMAT_UNKNOWN + 1; f < KILN_FORMAT_COUNT; f++) {
        const struct kiln_format_info *info = kiln_format_info((enum kiln_format)f);

        kiln_buf_printf(out, "%-12s %-18s %-5s %-5s %s\n", info->name, info->ending,
                        info->reads ? "yes" : "no", info->writes ? "yes" : "no", info->text);
    }
}
