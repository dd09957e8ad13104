/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts.  All shells get the same knowledge: the commands, the options of each, and
 * what may follow an option: words, a file, or nothing that could be known.
 */
#include "cli/help.h"

static void add_word(const char *word, void *context)
{
    struct kiln_buf *out = context;

    kiln_buf_putc(out, ' ');
    kiln_buf_puts(out, word);
}

static bool names_a_path(const struct kiln_option *option)
{
    return option->value &&
           (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "DIR") == 0);
}

static bool has_words(const struct kiln_option *option)
{
    return option->choices || option->kind == KILN_OPT_READS || option->kind == KILN_OPT_WRITES;
}

const char *const kiln_words_topics[] = {"formats", NULL};

static void add_commands(struct kiln_buf *out)
{
    for (uint32_t i = 0; kiln_commands[i]; i++)
        add_word(kiln_commands[i]->name, out);
}

/* What the operand of a command can be. */
static void add_operand_words(const struct kiln_command *command, struct kiln_buf *out)
{
    if (command->words == kiln_words_topics)
        add_commands(out);
    for (uint32_t i = 0; command->words[i]; i++)
        add_word(command->words[i], out);
}

/* The groups of a command and, last, the common one; NULL after that. */
static const struct kiln_option_group *group_at(const struct kiln_command *command, uint32_t i)
{
    if (i < KILN_GROUPS_MAX && command->groups[i])
        return command->groups[i];
    return i == 0 || (i <= KILN_GROUPS_MAX && command->groups[i - 1]) ? &kiln_group_common : NULL;
}

/* ---- bash ---- */

static void bash_option_names(const struct kiln_option *option, struct kiln_buf *out)
{
    kiln_buf_printf(out, " --%s", option->name);
    if (option->letter)
        kiln_buf_printf(out, " -%c", option->letter);
}

/* The line of `case $prev in` for an option with a value. */
static void bash_value(const struct kiln_option *option, struct kiln_buf *out)
{
    if (option->kind == KILN_OPT_FLAG)
        return;
    kiln_buf_printf(out, "        --%s", option->name);
    if (option->letter)
        kiln_buf_printf(out, " | -%c", option->letter);
    kiln_buf_puts(out, ") ");
    if (has_words(option)) {
        kiln_buf_puts(out, "words=\"");
        kiln_option_words(option, add_word, out);
        kiln_buf_puts(out, "\" ;;\n");
    } else {
        kiln_buf_puts(out, names_a_path(option) ? "words=files ;;\n" : "words=nothing ;;\n");
    }
}

static void bash_command(const struct kiln_command *command, struct kiln_buf *out)
{
    const struct kiln_option_group *group;

    kiln_buf_printf(out, "    %s)\n        options=\"", command->name);
    for (uint32_t i = 0; (group = group_at(command, i)); i++) {
        for (const struct kiln_option *o = group->options; o->name; o++)
            bash_option_names(o, out);
    }
    kiln_buf_puts(out, "\"\n");
    if (command->words) {
        kiln_buf_puts(out, "        operands=\"");
        add_operand_words(command, out);
        kiln_buf_puts(out, "\"\n");
    }
    kiln_buf_puts(out, "        case $prev in\n");
    for (uint32_t i = 0; (group = group_at(command, i)); i++) {
        for (const struct kiln_option *o = group->options; o->name; o++)
            bash_value(o, out);
    }
    kiln_buf_puts(out, "        esac\n        ;;\n");
}

void kiln_complete_bash(struct kiln_buf *out)
{
    kiln_buf_puts(out,
                  "# bash completion of kiln; made by `kiln completion bash`\n"
                  "_kiln()\n{\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                  "    local options='' operands=files words=''\n"
                  "    if [[ $cur == = ]]; then\n"
                  "        cur=''\n"
                  "    elif [[ $prev == = ]]; then\n"
                  "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
                  "    fi\n"
                  "    case ${COMP_WORDS[1]} in\n");
    for (uint32_t i = 0; kiln_commands[i]; i++)
        bash_command(kiln_commands[i], out);
    kiln_buf_puts(out, "    esac\n    if ((COMP_CWORD == 1)); then\n        words=\"");
    add_commands(out);
    kiln_buf_puts(out, "\"\n"
                       "    elif [[ -z $words && $cur == -* ]]; then\n"
                       "        words=$options\n"
                       "    fi\n"
                       "    case ${words:-$operands} in\n"
                       "    files) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
                       "    nothing) COMPREPLY=() ;;\n"
                       "    *) mapfile -t COMPREPLY < <(compgen -W \"${words:-$operands}\" -- "
                       "\"$cur\") ;;\n"
                       "    esac\n}\n"
                       "complete -o filenames -F _kiln kiln\n");
}

/* ---- zsh ---- */

/* A text inside single quotes and [...]. */
static void zsh_text(struct kiln_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            kiln_buf_puts(out, "'\\''");
        else if (strchr("[]:\\", *text))
            kiln_buf_printf(out, "\\%c", *text);
        else
            kiln_buf_putc(out, *text);
    }
}

static void zsh_option(const struct kiln_option *option, struct kiln_buf *out)
{
    const char *many = option->kind == KILN_OPT_LIST ? "*" : "";
    const char *equals = option->kind == KILN_OPT_FLAG ? "" : "=";

    kiln_buf_puts(out, " \\\n            ");
    if (option->letter && !*many)
        kiln_buf_printf(out, "'(-%c --%s)'", option->letter, option->name);
    if (option->letter)
        kiln_buf_printf(out, "{'%s-%c%s','%s--%s%s'}'[", many, option->letter,
                        option->kind == KILN_OPT_FLAG ? "" : "+", many, option->name, equals);
    else
        kiln_buf_printf(out, "'%s--%s%s[", many, option->name, equals);
    zsh_text(out, option->text);
    kiln_buf_putc(out, ']');
    if (option->kind != KILN_OPT_FLAG)
        kiln_buf_printf(out, ":%s:", option->value);
    if (has_words(option)) {
        kiln_buf_putc(out, '(');
        kiln_option_words(option, add_word, out);
        kiln_buf_putc(out, ')');
    } else if (names_a_path(option)) {
        kiln_buf_puts(out, "_files");
    }
    kiln_buf_putc(out, '\'');
}

static void zsh_command(const struct kiln_command *command, struct kiln_buf *out)
{
    const struct kiln_option_group *group;

    kiln_buf_printf(out, "    %s)\n        _arguments -s", command->name);
    for (uint32_t i = 0; (group = group_at(command, i)); i++) {
        for (const struct kiln_option *o = group->options; o->name; o++)
            zsh_option(o, out);
    }
    kiln_buf_puts(out, " \\\n            ");
    if (command->words) {
        kiln_buf_puts(out, "'*:word:(");
        add_operand_words(command, out);
        kiln_buf_puts(out, ")'");
    } else {
        kiln_buf_puts(out, command->operands_max ? "'*:file:_files'" : "'*: :()'");
    }
    kiln_buf_puts(out, "\n        ;;\n");
}

void kiln_complete_zsh(struct kiln_buf *out)
{
    kiln_buf_puts(out, "#compdef kiln\n"
                       "# zsh completion of kiln; made by `kiln completion zsh`\n"
                       "_kiln()\n{\n    local -a commands=(\n");
    for (uint32_t i = 0; kiln_commands[i]; i++) {
        kiln_buf_printf(out, "        '%s:", kiln_commands[i]->name);
        zsh_text(out, kiln_commands[i]->summary);
        kiln_buf_puts(out, "'\n");
    }
    kiln_buf_puts(out, "    )\n"
                       "    if ((CURRENT == 2)); then\n"
                       "        _describe -t commands 'kiln command' commands\n"
                       "        return\n"
                       "    fi\n"
                       "    shift words\n"
                       "    ((CURRENT--))\n"
                       "    case $words[1] in\n");
    for (uint32_t i = 0; kiln_commands[i]; i++)
        zsh_command(kiln_commands[i], out);
    kiln_buf_puts(out, "    esac\n}\n"
                       "if [[ $funcstack[1] == _kiln ]]; then\n"
                       "    _kiln \"$@\"\n"
                       "else\n"
                       "    compdef _kiln kiln\n"
                       "fi\n");
}

/* ---- fish ---- */

/* A text inside single quotes. */
static void fish_text(struct kiln_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            kiln_buf_putc(out, '\\');
        kiln_buf_putc(out, *text);
    }
}

static void fish_option(const char *command, const struct kiln_option *option, struct kiln_buf *out)
{
    kiln_buf_printf(out, "complete -c kiln -n '__kiln_command %s' -l %s", command, option->name);
    if (option->letter)
        kiln_buf_printf(out, " -s %c", option->letter);
    if (option->kind != KILN_OPT_FLAG)
        kiln_buf_puts(out, names_a_path(option) ? " -r -F" : " -x");
    if (has_words(option)) {
        kiln_buf_puts(out, " -a '");
        kiln_option_words(option, add_word, out);
        kiln_buf_putc(out, '\'');
    }
    kiln_buf_puts(out, " -d '");
    fish_text(out, option->text);
    kiln_buf_puts(out, "'\n");
}

static void fish_command(const struct kiln_command *command, struct kiln_buf *out)
{
    const struct kiln_option_group *group;

    kiln_buf_printf(out, "complete -c kiln -n '__kiln_command' -a %s -d '", command->name);
    fish_text(out, command->summary);
    kiln_buf_puts(out, "'\n");
    for (uint32_t i = 0; (group = group_at(command, i)); i++) {
        for (const struct kiln_option *o = group->options; o->name; o++)
            fish_option(command->name, o, out);
    }
    kiln_buf_printf(out, "complete -c kiln -n '__kiln_command %s'", command->name);
    if (command->words) {
        kiln_buf_puts(out, " -a '");
        add_operand_words(command, out);
        kiln_buf_puts(out, "'\n");
    } else {
        kiln_buf_puts(out, command->operands_max ? " -F\n" : "\n");
    }
}

void kiln_complete_fish(struct kiln_buf *out)
{
    kiln_buf_puts(out, "# fish completion of kiln; made by `kiln completion fish`\n"
                       "function __kiln_command\n"
                       "    set -l words (commandline -opc)\n"
                       "    test \"$words[2]\" = \"$argv[1]\"\n"
                       "end\n"
                       "complete -c kiln -f\n");
    for (uint32_t i = 0; kiln_commands[i]; i++)
        fish_command(kiln_commands[i], out);
}
