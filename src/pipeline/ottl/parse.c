/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive descent, a function for each line of the grammar: see ottl.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/ottl/ottl_int.h"

struct parser {
    struct kiln_ottl *ottl;
    struct kiln_str text;
    struct kiln_ottl_word word;     /* the next one */
    enum kiln_ottl_context context; /* of paths that do not name theirs; CONTEXTS: none may */
    enum kiln_ottl_context deepest; /* that was named */
    bool named;
    uint32_t depth;
    struct kiln_err *err;
};

/* ---- words ---- */

static int fail_at(struct parser *p, size_t at, const char *what)
{
    char where[64];

    snprintf(where, sizeof(where), "column %zu", at + 1);
    return kiln_err_set(p->err, KILN_E_MALFORMED, where, "%s: \"%.*s\"", what,
                        (int)(p->text.len < 120 ? p->text.len : 120), p->text.ptr);
}

static int fail(struct parser *p, const char *what)
{
    return fail_at(p, p->word.at, what);
}

static void step(struct parser *p)
{
    p->word = kiln_ottl_lex(p->text, p->word.at + p->word.text.len);
}

static bool is(const struct parser *p, enum kiln_ottl_word_kind kind, const char *text)
{
    return p->word.kind == kind && kiln_str_eq(p->word.text, kiln_str_of(text));
}

/* Takes a sign or a name where it is the next word. */
static bool take(struct parser *p, enum kiln_ottl_word_kind kind, const char *text)
{
    bool there = is(p, kind, text);

    if (there)
        step(p);
    return there;
}

/* ---- nodes ---- */

static void *room(struct parser *p, size_t size)
{
    void *ptr = kiln_arena_alloc(&p->ottl->arena, size);

    if (ptr)
        memset(ptr, 0, size);
    else
        kiln_err_set(p->err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    return ptr;
}

static int node_new(struct parser *p, enum kiln_ottl_node_kind kind,
                    struct kiln_ottl_node **ret_node)
{
    struct kiln_ottl_node *node;

    if (++p->ottl->n_nodes > KILN_OTTL_NODES_MAX)
        return fail(p, "this has too many parts");
    node = room(p, sizeof(*node));
    if (!node)
        return -ENOMEM;
    node->kind = kind;
    node->made_before = p->ottl->last;
    p->ottl->last = node;
    *ret_node = node;
    return 0;
}

static int set_args(struct parser *p, struct kiln_ottl_node *node, struct kiln_ottl_node **args,
                    uint32_t n)
{
    node->args = room(p, (n + 1) * sizeof(struct kiln_ottl_node *));
    if (!node->args)
        return -ENOMEM;
    memcpy(node->args, args, n * sizeof(struct kiln_ottl_node *));
    node->n_args = n;
    return 0;
}

static int parse_value(struct parser *p, struct kiln_ottl_node **ret);
static int parse_or(struct parser *p, struct kiln_ottl_node **ret);

/* One level deeper, up to the limit. */
static int enter(struct parser *p)
{
    return ++p->depth > KILN_OTTL_DEPTH_MAX ? fail(p, "this is nested too deeply") : 0;
}

/* ---- literals ---- */

static char unescaped(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    default:
        return c;
    }
}

/* The text in quotes; \\ and \" and \n as usual, and any other as it stands: patterns have them. */
static int unquote(struct parser *p, struct kiln_str *ret)
{
    struct kiln_str quoted = {p->word.text.ptr + 1, p->word.text.len - 2};
    char *text = room(p, quoted.len + 1);
    size_t n = 0;

    if (!text)
        return -ENOMEM;
    for (size_t i = 0; i < quoted.len; i++) {
        char c = quoted.ptr[i];

        if (c == '\\' && i + 1 < quoted.len && strchr("\\\"ntr", quoted.ptr[i + 1]))
            c = unescaped(quoted.ptr[++i]);
        text[n++] = c;
    }
    *ret = (struct kiln_str){text, n};
    return 0;
}

static int hex_bytes(struct parser *p, struct kiln_ottl_value *ret)
{
    struct kiln_str digits = {p->word.text.ptr + 2, p->word.text.len - 2};
    char *bytes = room(p, digits.len / 2 + 1);

    if (!bytes)
        return -ENOMEM;
    if (digits.len == 0 || digits.len % 2)
        return fail(p, "bytes are 0x and an even number of digits");
    for (size_t i = 0; i < digits.len; i += 2) {
        uint64_t byte;

        if (kiln_str_parse_hex((struct kiln_str){digits.ptr + i, 2}, &byte) < 0)
            return fail(p, "bytes are 0x and an even number of digits");
        bytes[i / 2] = (char)byte;
    }
    ret->kind = KILN_OTTL_BYTES;
    ret->text = (struct kiln_str){bytes, digits.len / 2};
    return 0;
}

static int number(struct parser *p, struct kiln_ottl_value *ret)
{
    struct kiln_str text = p->word.text;
    char copy[64];
    char *end;

    if (kiln_str_starts(text, KILN_STR("0x")))
        return hex_bytes(p, ret);
    if (kiln_str_parse_i64(text, &ret->i) == 0) {
        ret->kind = KILN_OTTL_INT;
        return 0;
    }
    if (text.len >= sizeof(copy))
        return fail(p, "this is no number");
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    ret->kind = KILN_OTTL_DOUBLE;
    ret->d = strtod(copy, &end);
    return *end ? fail(p, "this is no number") : 0;
}

static int parse_literal(struct parser *p, struct kiln_ottl_node **ret)
{
    int r = node_new(p, KILN_OTTL_LITERAL, ret);
    struct kiln_ottl_value *value;

    if (r < 0)
        return r;
    value = &(*ret)->value;
    if (p->word.kind == KILN_OTTL_STRING) {
        value->kind = KILN_OTTL_TEXT;
        r = unquote(p, &value->text);
    } else if (p->word.kind == KILN_OTTL_NUMBER) {
        r = number(p, value);
    } else if (!is(p, KILN_OTTL_NAME, "nil")) {
        value->kind = KILN_OTTL_BOOL;
        value->flag = is(p, KILN_OTTL_NAME, "true");
    }
    step(p);
    return r;
}

/* Values up to the closing sign, which is taken. */
static int parse_values(struct parser *p, const char *closing, struct kiln_ottl_node *node)
{
    struct kiln_ottl_node *args[KILN_OTTL_ARGS_MAX];
    uint32_t n = 0;
    int r = 0;

    while (!take(p, KILN_OTTL_SIGN, closing)) {
        if (n == KILN_OTTL_ARGS_MAX)
            return fail(p, "these are too many");
        if (n && !take(p, KILN_OTTL_SIGN, ","))
            return fail(p, "a comma or the end of the list belongs here");
        r = parse_value(p, &args[n++]);
        if (r < 0)
            return r;
    }
    return set_args(p, node, args, n);
}

/* ---- paths ---- */

static int parse_key(struct parser *p, struct kiln_ottl_key *key)
{
    int64_t index = 0;
    int r = 0;

    *key = (struct kiln_ottl_key){0};
    if (p->word.kind == KILN_OTTL_STRING)
        r = unquote(p, &key->text);
    else if (p->word.kind != KILN_OTTL_NUMBER || kiln_str_parse_i64(p->word.text, &index) < 0 ||
             index < 0)
        return fail(p, "a text in quotes or a number belongs here");
    if (r < 0)
        return r;
    key->index = (uint64_t)index;
    step(p);
    return take(p, KILN_OTTL_SIGN, "]") ? 0 : fail(p, "] belongs here");
}

/* ["a"]["b"] */
static int parse_keys(struct parser *p, struct kiln_ottl_path *path)
{
    int r = 0;

    while (r == 0 && take(p, KILN_OTTL_SIGN, "[")) {
        if (path->n_keys == KILN_OTTL_KEYS_MAX)
            return fail(p, "a path has at most four keys");
        r = parse_key(p, &path->keys[path->n_keys++]);
    }
    return r;
}

/* There is one cache, of what the statement is for. */
static int note_cache(struct parser *p, const struct kiln_ottl_path *path, size_t at)
{
    if (p->ottl->cache != KILN_OTTL_CONTEXTS && p->ottl->cache != path->context)
        return fail_at(p, at, "a statement has one cache, that of its context");
    p->ottl->cache = path->context;
    return 0;
}

static int parse_path(struct parser *p, struct kiln_str first, size_t at,
                      struct kiln_ottl_node **ret)
{
    struct kiln_str names[4] = {first};
    uint32_t n = 1;
    struct kiln_ottl_path *path;
    int r = node_new(p, KILN_OTTL_PATH, ret);

    if (r < 0)
        return r;
    while (take(p, KILN_OTTL_SIGN, ".")) {
        if (p->word.kind != KILN_OTTL_NAME || n == KILN_ARRAY_LEN(names))
            return fail(p, "the name of a field belongs here");
        names[n++] = p->word.text;
        step(p);
    }
    path = &(*ret)->path;
    r = parse_keys(p, path);
    if (r < 0)
        return r;
    if (!kiln_ottl_path_find(names, n, p->context, path))
        return fail_at(p, at, "there is no such path");
    if (path->context > p->context)
        return fail_at(p, at, "this path is not within the context");
    if (!p->named || path->context > p->deepest)
        p->deepest = path->context;
    p->named = true;
    return path->field == KILN_OTTL_CACHE ? note_cache(p, path, at) : 0;
}

/* ---- functions ---- */

static int compile(struct parser *p, struct kiln_ottl_node *node, size_t at)
{
    struct kiln_err why = {0};
    int r = kiln_regex_new(node->value.text, 0, &node->pattern, &why);

    if (r == -ENOMEM)
        return kiln_err_set(p->err, r, NULL, "%s", why.text);
    return r < 0 ? fail_at(p, at, why.text) : 0;
}

static bool is_literal(const struct kiln_ottl_node *node, enum kiln_ottl_kind kind)
{
    return node->kind == KILN_OTTL_LITERAL && node->value.kind == kind;
}

static bool is_strategy(const struct kiln_ottl_node *node)
{
    static const char *const names[] = {"insert", "update", "upsert"};

    for (size_t i = 0; is_literal(node, KILN_OTTL_TEXT) && i < KILN_ARRAY_LEN(names); i++) {
        if (kiln_str_eq(node->value.text, kiln_str_of(names[i])))
            return true;
    }
    return false;
}

static int check_arg(struct parser *p, char want, struct kiln_ottl_node *arg, size_t at)
{
    bool path = arg->kind == KILN_OTTL_PATH;
    const char *why = path ? kiln_ottl_path_unwritten(&arg->path) : "a path belongs here";

    switch (want) {
    case 'p':
        return why ? fail_at(p, at, why) : 0;
    case 'm':
        return path && kiln_ottl_path_is_map(&arg->path) ? 0
                                                         : fail_at(p, at, "attributes belong here");
    case 's':
        return is_literal(arg, KILN_OTTL_TEXT) ? 0 : fail_at(p, at, "a text belongs here");
    case 'u':
        return is_strategy(arg) ? 0 : fail_at(p, at, "insert, update or upsert belongs here");
    case 'r':
        return is_literal(arg, KILN_OTTL_TEXT) ? compile(p, arg, at)
                                               : fail_at(p, at, "a pattern belongs here");
    case 'n':
        return is_literal(arg, KILN_OTTL_INT) && arg->value.i >= 0
                   ? 0
                   : fail_at(p, at, "a number from 0 belongs here");
    case 'l':
        return arg->kind == KILN_OTTL_ITEMS ? 0 : fail_at(p, at, "a list belongs here");
    case 'v':
        return arg->kind == KILN_OTTL_ITEMS ? fail_at(p, at, "a value belongs here, no list") : 0;
    default:
        return 0;
    }
}

static int check_replacement(struct parser *p, const struct kiln_ottl_node *pattern,
                             const struct kiln_ottl_node *with, size_t at)
{
    struct kiln_err why = {0};

    if (kiln_regex_check_replacement(pattern->pattern, with->value.text, &why) < 0)
        return fail_at(p, at, why.text);
    return 0;
}

static int check_args(struct parser *p, const struct kiln_ottl_node *call, size_t at)
{
    const char *want = call->function->args;
    bool optional = false;
    int r = 0;

    for (uint32_t i = 0; i < call->n_args && r == 0; i++) {
        optional = optional || *want == '?';
        want += *want == '?';
        if (!*want)
            return fail_at(p, at, "this has too many arguments");
        r = check_arg(p, *want++, call->args[i], at);
        if (r == 0 && i && call->args[i - 1]->pattern && want[-1] == 's')
            r = check_replacement(p, call->args[i - 1], call->args[i], at);
    }
    if (r == 0 && *want && *want != '?' && !optional)
        return fail_at(p, at, "this lacks an argument");
    return r;
}

static int parse_call(struct parser *p, const struct kiln_ottl_function *function, size_t at,
                      struct kiln_ottl_node **ret)
{
    int r = node_new(p, KILN_OTTL_CALL, ret);

    if (r == 0)
        r = enter(p);
    if (r < 0)
        return r;
    (*ret)->function = function;
    r = parse_values(p, ")", *ret);
    p->depth--;
    return r < 0 ? r : check_args(p, *ret, at);
}

/* ---- values ---- */

static int parse_items(struct parser *p, struct kiln_ottl_node **ret)
{
    int r = node_new(p, KILN_OTTL_ITEMS, ret);

    if (r == 0)
        r = enter(p);
    if (r == 0)
        r = parse_values(p, "]", *ret);
    p->depth--;
    return r;
}

/* A word that begins with a letter: true, a converter, a path. */
static int parse_named(struct parser *p, struct kiln_ottl_node **ret)
{
    struct kiln_ottl_word word = p->word;

    if (is(p, KILN_OTTL_NAME, "true") || is(p, KILN_OTTL_NAME, "false") ||
        is(p, KILN_OTTL_NAME, "nil"))
        return parse_literal(p, ret);
    step(p);
    if (take(p, KILN_OTTL_SIGN, "(")) {
        const struct kiln_ottl_function *function = kiln_ottl_converter(word.text);

        return function ? parse_call(p, function, word.at, ret)
                        : fail_at(p, word.at, "there is no such converter");
    }
    return parse_path(p, word.text, word.at, ret);
}

/* A sign right before a number is a part of it. */
static int parse_signed(struct parser *p, struct kiln_ottl_node **ret)
{
    struct kiln_ottl_word sign = p->word;

    step(p);
    if (p->word.kind != KILN_OTTL_NUMBER || p->word.at != sign.at + 1)
        return fail(p, "a number belongs here");
    p->word.at = sign.at;
    p->word.text = (struct kiln_str){sign.text.ptr, p->word.text.len + 1};
    return parse_literal(p, ret);
}

static int parse_inner(struct parser *p, struct kiln_ottl_node **ret)
{
    int r = enter(p);

    if (r == 0)
        r = parse_value(p, ret);
    p->depth--;
    if (r == 0 && !take(p, KILN_OTTL_SIGN, ")"))
        r = fail(p, ") belongs here");
    return r;
}

static int parse_operand(struct parser *p, struct kiln_ottl_node **ret)
{
    switch (p->word.kind) {
    case KILN_OTTL_STRING:
    case KILN_OTTL_NUMBER:
        return parse_literal(p, ret);
    case KILN_OTTL_NAME:
        return parse_named(p, ret);
    default:
        break;
    }
    if (is(p, KILN_OTTL_SIGN, "-") || is(p, KILN_OTTL_SIGN, "+"))
        return parse_signed(p, ret);
    if (take(p, KILN_OTTL_SIGN, "("))
        return parse_inner(p, ret);
    return take(p, KILN_OTTL_SIGN, "[") ? parse_items(p, ret) : fail(p, "a value belongs here");
}

/* Operands with one of two signs between them, each of which `next` reads. */
static int parse_math(struct parser *p, const char signs[2],
                      int (*next)(struct parser *, struct kiln_ottl_node **),
                      struct kiln_ottl_node **ret)
{
    struct kiln_ottl_node *sides[2];
    int r = next(p, ret);

    while (r == 0 && p->word.kind == KILN_OTTL_SIGN && p->word.text.len == 1 &&
           (p->word.text.ptr[0] == signs[0] || p->word.text.ptr[0] == signs[1])) {
        char sign = p->word.text.ptr[0];
        size_t at = p->word.at;

        step(p);
        sides[0] = *ret;
        r = next(p, &sides[1]);
        if (r == 0 && (sides[0]->kind == KILN_OTTL_ITEMS || sides[1]->kind == KILN_OTTL_ITEMS))
            r = fail_at(p, at, "only numbers can be calculated with");
        if (r == 0)
            r = node_new(p, KILN_OTTL_MATH, ret);
        if (r == 0)
            r = set_args(p, *ret, sides, 2);
        if (r == 0)
            (*ret)->sign = sign;
    }
    return r;
}

static int parse_product(struct parser *p, struct kiln_ottl_node **ret)
{
    return parse_math(p, "*/", parse_operand, ret);
}

static int parse_value(struct parser *p, struct kiln_ottl_node **ret)
{
    return parse_math(p, "+-", parse_product, ret);
}

/* ---- conditions ---- */

static int parse_comparison(struct parser *p, struct kiln_ottl_node **ret)
{
    static const char *const signs[] = {
        [KILN_OTTL_EQ] = "==", [KILN_OTTL_NE] = "!=", [KILN_OTTL_LT] = "<",
        [KILN_OTTL_LE] = "<=", [KILN_OTTL_GT] = ">",  [KILN_OTTL_GE] = ">=",
    };
    struct kiln_ottl_node *sides[2];
    int r = parse_value(p, &sides[0]);

    if (r < 0)
        return r;
    *ret = sides[0];
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(signs); i++) {
        if (!take(p, KILN_OTTL_SIGN, signs[i]))
            continue;
        r = parse_value(p, &sides[1]);
        if (r == 0 && (sides[0]->kind == KILN_OTTL_ITEMS || sides[1]->kind == KILN_OTTL_ITEMS))
            r = fail(p, "lists as they are written cannot be compared");
        if (r == 0)
            r = node_new(p, KILN_OTTL_COMPARE, ret);
        if (r < 0)
            return r;
        (*ret)->op = (enum kiln_ottl_op)i;
        return set_args(p, *ret, sides, 2);
    }
    return 0;
}

static int parse_term(struct parser *p, struct kiln_ottl_node **ret)
{
    struct kiln_ottl_node *inner;
    int r = enter(p);

    if (r < 0)
        return r;
    if (take(p, KILN_OTTL_NAME, "not")) {
        r = parse_term(p, &inner);
        if (r == 0)
            r = node_new(p, KILN_OTTL_NOT, ret);
        if (r == 0)
            r = set_args(p, *ret, &inner, 1);
    } else if (take(p, KILN_OTTL_SIGN, "(")) {
        r = parse_or(p, ret);
        if (r == 0 && !take(p, KILN_OTTL_SIGN, ")"))
            r = fail(p, ") belongs here");
    } else {
        r = parse_comparison(p, ret);
    }
    p->depth--;
    return r;
}

/* A chain of `word`, each of which `next` reads. */
static int parse_chain(struct parser *p, const char *word, enum kiln_ottl_node_kind kind,
                       int (*next)(struct parser *, struct kiln_ottl_node **),
                       struct kiln_ottl_node **ret)
{
    struct kiln_ottl_node *sides[2];
    int r = next(p, ret);

    while (r == 0 && take(p, KILN_OTTL_NAME, word)) {
        sides[0] = *ret;
        r = next(p, &sides[1]);
        if (r == 0)
            r = node_new(p, kind, ret);
        if (r == 0)
            r = set_args(p, *ret, sides, 2);
    }
    return r;
}

static int parse_and(struct parser *p, struct kiln_ottl_node **ret)
{
    return parse_chain(p, "and", KILN_OTTL_AND, parse_term, ret);
}

static int parse_or(struct parser *p, struct kiln_ottl_node **ret)
{
    return parse_chain(p, "or", KILN_OTTL_OR, parse_and, ret);
}

/* ---- all of it ---- */

static int parse_edit(struct parser *p)
{
    const struct kiln_ottl_function *function;
    struct kiln_ottl_word word = p->word;
    int r;

    if (word.kind != KILN_OTTL_NAME)
        return fail(p, "a statement begins with an editor: set, delete_key, ...");
    function = kiln_ottl_editor(word.text);
    if (!function)
        return fail(p, "there is no such editor");
    step(p);
    if (!take(p, KILN_OTTL_SIGN, "("))
        return fail(p, "( belongs here");
    r = parse_call(p, function, word.at, &p->ottl->edit);
    if (r < 0 || !take(p, KILN_OTTL_NAME, "where"))
        return r;
    return parse_or(p, &p->ottl->condition);
}

static int parse(struct parser *p, bool statement)
{
    int r;

    if (p->text.len > KILN_OTTL_TEXT_MAX)
        return kiln_err_set(p->err, KILN_E_LIMIT, NULL, "a statement has at most 16 KiB");
    if (memchr(p->text.ptr, 0, p->text.len))
        return kiln_err_set(p->err, KILN_E_MALFORMED, NULL, "a statement has no zero bytes");
    p->word = kiln_ottl_lex(p->text, 0);
    r = statement ? parse_edit(p) : parse_or(p, &p->ottl->condition);
    if (r == 0 && p->word.kind != KILN_OTTL_END)
        r = fail(p, "this does not belong here");
    if (r == 0 && p->context == KILN_OTTL_CONTEXTS && !p->named)
        r = fail_at(p, 0, "no path says which context this is for");
    p->ottl->context = p->context == KILN_OTTL_CONTEXTS ? p->deepest : p->context;
    if (r == 0 && !kiln_ottl_fits(p->ottl, p->ottl->context))
        r = fail_at(p, 0, "the cache is that of the innermost context that is named");
    return r;
}

static int parse_new(struct kiln_str text, enum kiln_ottl_context context, bool statement,
                     struct kiln_ottl **ret_ottl, struct kiln_err *err)
{
    struct kiln_ottl *ottl = kiln_calloc(1, sizeof(*ottl));
    struct parser p = {.ottl = ottl, .text = text, .context = context, .err = err};
    int r;

    if (!ottl)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    ottl->budget.limit = 1u << 20;
    ottl->cache = KILN_OTTL_CONTEXTS;
    kiln_arena_init(&ottl->arena, &ottl->budget);
    r = parse(&p, statement);
    if (r < 0) {
        kiln_ottl_free(ottl);
        return r;
    }
    *ret_ottl = ottl;
    return 0;
}

int kiln_ottl_condition(struct kiln_str text, enum kiln_ottl_context context,
                        struct kiln_ottl **ret_ottl, struct kiln_err *err)
{
    return parse_new(text, context, false, ret_ottl, err);
}

int kiln_ottl_statement(struct kiln_str text, enum kiln_ottl_context context,
                        struct kiln_ottl **ret_ottl, struct kiln_err *err)
{
    return parse_new(text, context, true, ret_ottl, err);
}

void kiln_ottl_free(struct kiln_ottl *ottl)
{
    if (!ottl)
        return;
    for (struct kiln_ottl_node *node = ottl->last; node; node = node->made_before)
        kiln_regex_free(node->pattern);
    kiln_draft_done(&ottl->draft);
    kiln_arena_done(&ottl->arena);
    kiln_free(ottl);
}

enum kiln_ottl_context kiln_ottl_context_of(const struct kiln_ottl *ottl)
{
    return ottl->context;
}

bool kiln_ottl_fits(const struct kiln_ottl *ottl, enum kiln_ottl_context context)
{
    return ottl->cache == KILN_OTTL_CONTEXTS || ottl->cache == context;
}
