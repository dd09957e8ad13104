/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser takes GNU's forms: --name VALUE, --name=VALUE, -xVALUE, -x VALUE, -xyz for flags, `--`
 * ends the options, `-` is an operand.  Options and operands may come in any order.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/quantity.h"
#include "cli/options.h"

struct parser {
    const struct kiln_command *command;
    struct kiln_args *args;
    struct kiln_err *err;
    char **argv;
    int argc;
    int at;
};

const struct kiln_command *kiln_command_named(const char *name)
{
    for (uint32_t i = 0; kiln_commands[i]; i++) {
        if (strcmp(kiln_commands[i]->name, name) == 0)
            return kiln_commands[i];
    }
    return NULL;
}

/* ---- finding options ---- */

static const struct kiln_option *find_in(const struct kiln_option_group *group,
                                         struct kiln_str name, char letter)
{
    for (const struct kiln_option *o = group->options; o->name; o++) {
        if (letter ? o->letter == letter : kiln_str_eq(kiln_str_of(o->name), name))
            return o;
    }
    return NULL;
}

/* By long name, or by letter where that is not 0. */
static const struct kiln_option *find(const struct kiln_command *command, struct kiln_str name,
                                      char letter)
{
    for (uint32_t i = 0; i < KILN_GROUPS_MAX && command->groups[i]; i++) {
        const struct kiln_option *found = find_in(command->groups[i], name, letter);

        if (found)
            return found;
    }
    return find_in(&kiln_group_common, name, letter);
}

static const char *nearest_option(const struct kiln_command *command, const char *name)
{
    const char *names[96];
    uint32_t n = 0;

    for (uint32_t i = 0; i < KILN_GROUPS_MAX && command->groups[i]; i++) {
        for (const struct kiln_option *o = command->groups[i]->options; o->name; o++) {
            if (n < KILN_ARRAY_LEN(names))
                names[n++] = o->name;
        }
    }
    return kiln_nearest(name, names, n);
}

static int unknown(struct parser *p, struct kiln_str name)
{
    char word[33]; /* longer ones are near nothing */
    const char *near = NULL;

    if (name.len < sizeof(word)) {
        memcpy(word, name.ptr, name.len);
        word[name.len] = '\0';
        near = nearest_option(p->command, word);
    }
    if (near)
        return kiln_err_set(p->err, -EINVAL, NULL, "unknown option --%.*s (did you mean --%s?)",
                            KILN_STR_ARG(name), near);
    return kiln_err_set(p->err, -EINVAL, NULL, "unknown option --%.60s",
                        name.ptr); /* argv: ends with NUL */
}

/* ---- values ---- */

void kiln_option_words(const struct kiln_option *option, void (*visit)(const char *, void *),
                       void *context)
{
    for (uint32_t i = 0; option->choices && option->choices[i]; i++)
        visit(option->choices[i], context);
    if (option->kind != KILN_OPT_READS && option->kind != KILN_OPT_WRITES)
        return;
    for (uint32_t f = KILN_FORMAT_UNKNOWN + 1; f < KILN_FORMAT_COUNT; f++) {
        const struct kiln_format_info *info = kiln_format_info((enum kiln_format)f);

        if (option->kind == KILN_OPT_READS ? info->reads : info->writes)
            visit(info->name, context);
    }
}

static void join_word(const char *word, void *context)
{
    struct kiln_buf *out = context;

    if (out->len)
        kiln_buf_puts(out, ", ");
    kiln_buf_puts(out, word);
}

/* --name: VALUE is none of a, b, c */
static int not_a_word(struct parser *p, const struct kiln_option *option, const char *value)
{
    struct kiln_buf words;
    int r;

    kiln_buf_init(&words, 512);
    kiln_option_words(option, join_word, &words);
    r = kiln_err_set(p->err, -EINVAL, NULL, "--%s: \"%.40s\" is none of %.*s", option->name, value,
                     (int)words.len, words.ptr ? words.ptr : "");
    kiln_buf_done(&words);
    return r;
}

static int parse_choice(struct parser *p, const struct kiln_option *option, const char *value,
                        uint32_t *ret)
{
    for (uint32_t i = 0; option->choices[i]; i++) {
        if (strcmp(option->choices[i], value) == 0) {
            *ret = i;
            return 0;
        }
    }
    return not_a_word(p, option, value);
}

static int parse_format(struct parser *p, const struct kiln_option *option, const char *value,
                        uint32_t *ret)
{
    enum kiln_format format = kiln_format_named(kiln_str_of(value));
    const struct kiln_format_info *info;

    if (format == KILN_FORMAT_UNKNOWN)
        return not_a_word(p, option, value);
    info = kiln_format_info(format);
    if (!(option->kind == KILN_OPT_READS ? info->reads : info->writes))
        return not_a_word(p, option, value);
    *ret = format;
    return 0;
}

static int parse_count(struct parser *p, const struct kiln_option *option, const char *value,
                       uint32_t *ret)
{
    uint64_t number;

    if (kiln_str_parse_u64(kiln_str_of(value), &number) < 0 || number > UINT32_MAX)
        return kiln_err_set(p->err, -EINVAL, NULL, "--%s: \"%.40s\" is not a whole number",
                            option->name, value);
    *ret = (uint32_t)number;
    return 0;
}

static int parse_percent(struct parser *p, const struct kiln_option *option, const char *value,
                         double *ret)
{
    char *end;
    double number = strtod(value, &end);

    if (end == value || !(strcmp(end, "") == 0 || strcmp(end, "%") == 0) || !isfinite(number) ||
        number < 0)
        return kiln_err_set(p->err, -EINVAL, NULL, "--%s: \"%.40s\" is not a percentage",
                            option->name, value);
    *ret = number;
    return 0;
}

static int parse_size(struct parser *p, const struct kiln_option *option, const char *value,
                      uint64_t *ret)
{
    uint64_t bytes;

    if (kiln_size_parse(kiln_str_of(value), &bytes) < 0 || bytes == 0)
        return kiln_err_set(p->err, -EINVAL, NULL, "--%s: \"%.40s\" is not a size (say 512M, 4G)",
                            option->name, value);
    *ret = bytes;
    return 0;
}

static int parse_duration(struct parser *p, const struct kiln_option *option, const char *value,
                          uint64_t *ret)
{
    uint64_t ns;

    if (kiln_duration_parse(kiln_str_of(value), &ns) < 0)
        return kiln_err_set(p->err, -EINVAL, NULL,
                            "--%s: \"%.40s\" is not a time span (say 30s, 12h, 14d)", option->name,
                            value);
    *ret = ns;
    return 0;
}

/* Lists hold at most as many items as there are words. */
static int append(struct parser *p, struct kiln_list *list, const char *item)
{
    if (!list->items)
        list->items = kiln_calloc((size_t)p->argc + 1, sizeof(*list->items));
    if (!list->items)
        return kiln_err_set(p->err, -ENOMEM, NULL, "out of memory");
    list->items[list->n++] = item;
    return 0;
}

static int store(struct parser *p, const struct kiln_option *option, const char *value)
{
    void *at = (char *)p->args + option->offset;

    switch ((enum kiln_option_kind)option->kind) {
    case KILN_OPT_FLAG:
        *(bool *)at = true;
        return 0;
    case KILN_OPT_TEXT:
        *(const char **)at = value;
        return 0;
    case KILN_OPT_LIST:
        return append(p, at, value);
    case KILN_OPT_COUNT:
        return parse_count(p, option, value, at);
    case KILN_OPT_PERCENT:
        return parse_percent(p, option, value, at);
    case KILN_OPT_SIZE:
        return parse_size(p, option, value, at);
    case KILN_OPT_DURATION:
        return parse_duration(p, option, value, at);
    case KILN_OPT_CHOICE:
        return parse_choice(p, option, value, at);
    case KILN_OPT_READS:
    case KILN_OPT_WRITES:
        return parse_format(p, option, value, at);
    }
    return -EINVAL;
}

/* ---- words ---- */

/* Stores the option with its attached value, or with the next word where it needs one. */
static int take(struct parser *p, const struct kiln_option *option, const char *attached)
{
    if (option->kind == KILN_OPT_FLAG && attached)
        return kiln_err_set(p->err, -EINVAL, NULL, "--%s takes no value", option->name);
    if (option->kind != KILN_OPT_FLAG && !attached) {
        if (p->at >= p->argc)
            return kiln_err_set(p->err, -EINVAL, NULL, "--%s needs a value: %s", option->name,
                                option->value);
        attached = p->argv[p->at++];
    }
    return store(p, option, attached);
}

static int take_long(struct parser *p, const char *word)
{
    struct kiln_str value = kiln_str_of(word);
    struct kiln_str name = kiln_str_cut(&value, '=');
    const struct kiln_option *option = find(p->command, name, 0);

    return option ? take(p, option, value.ptr) : unknown(p, name);
}

static int take_letters(struct parser *p, const char *letters)
{
    for (; *letters; letters++) {
        const struct kiln_option *option = find(p->command, KILN_STR_NONE, *letters);

        if (!option)
            return kiln_err_set(p->err, -EINVAL, NULL, "unknown option -%c", *letters);
        if (option->kind != KILN_OPT_FLAG)
            return take(p, option, letters[1] ? letters + 1 : NULL);
        if (store(p, option, NULL) < 0)
            return p->err->code;
    }
    return 0;
}

static int take_word(struct parser *p, bool *only_operands)
{
    const char *word = p->argv[p->at++];

    if (*only_operands || word[0] != '-' || word[1] == '\0') {
        *only_operands |= p->command->operands_last;
        return append(p, &p->args->operands, word);
    }
    if (word[1] != '-')
        return take_letters(p, word + 1);
    if (word[2])
        return take_long(p, word + 2);
    *only_operands = true;
    return 0;
}

static int check_operands(const struct kiln_command *command, uint32_t n, struct kiln_err *err)
{
    if (n < command->operands_min)
        return kiln_err_set(err, -EINVAL, NULL, "%s: give %s%s",
                            n ? "too few operands" : "nothing to work on", command->operands,
                            strstr(command->operands, "FILE") ? ", - for standard input" : "");
    if (command->operands_max != KILN_OPERANDS_ANY && n > command->operands_max)
        return kiln_err_set(err, -EINVAL, NULL, "too many operands: give %s",
                            command->operands[0] ? command->operands : "none");
    return 0;
}

int kiln_args_parse(const struct kiln_command *command, int argc, char **argv,
                    struct kiln_args *args, struct kiln_err *err)
{
    struct parser p = {.command = command, .args = args, .err = err, .argv = argv, .argc = argc};
    bool only_operands = false;

    *args = command->defaults;
    while (p.at < argc) {
        int r = take_word(&p, &only_operands);

        if (r < 0)
            return r;
    }
    return args->help ? 0 : check_operands(command, args->operands.n, err);
}

void kiln_args_done(struct kiln_args *args)
{
    const struct kiln_list *lists[] = {
        &args->operands,
        &args->relabel,
        &args->trim_path,
        &args->labels,
        &args->source_path,
        &args->store.matches,
        &args->load.templates,
        &args->query.by,
        &args->query.functions,
        &args->query.trace_ids,
        &args->query.span_ids,
        &args->query.profile_ids,
        &args->annotate.tags,
        &args->server.source_flag,
        &args->server.host_names_flag,
        &args->server.symbols_path_flag,
        &args->server.debuginfod_flag,
        &args->resolve.debug_dirs,
        &args->preload.headers,
        &args->preload.attributes,
        &args->collector.config,
        &args->collector.sets,
        &args->collector.gates,
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(lists); i++)
        kiln_free(lists[i]->items);
    *args = (struct kiln_args){0};
}
