/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the text, with a stack of the brackets that are open.
 *
 * What stands between < and > is written as it comes; when the bracket closes, and it is longer
 * than LIST_MAX, it is taken back and replaced by "<...>".  So inner lists are short before it is
 * known how long the outer ones are.  Arguments that the C++ library adds by itself (allocators and
 * the like) go when they are the last.  `<A as B>` of Rust is no list but the name itself and
 * stays.
 *
 * In C++, < and > are also operators: of functions (`operator<`), which are read as a word, and in
 * expressions.  There libiberty puts each operand into parentheses, and all of an expression that
 * has a > in it: so after ")" a < opens nothing, and within parentheses a > closes nothing that is
 * outside of them.
 *
 * Outside of all brackets a parenthesis is a list of parameters and goes, with what qualifies the
 * function behind it; a space there ends a return type, which goes too.
 */
#include "symbol/demangle.h"

/* A constant of static storage, which KILN_STR() is not. */
#define WORD(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

enum {
    LIST_MAX = 32, /* of a list that stays, with its brackets */
    LEVELS = 64,   /* brackets whose content is shown; what is deeper is only counted */
};

struct level {
    size_t at;   /* where it opens in the output */
    size_t arg;  /* where its last argument begins */
    size_t kept; /* where the last one ends that is worth showing */
    bool first;  /* that argument is the first */
    bool path;   /* Rust's <A as B> */
    bool words;  /* Rust: in a list, of paths only the last word */
    bool too_much;
};

struct shortener {
    struct kiln_str s;
    size_t i;
    char *out;
    size_t n, max;
    size_t name_at;   /* output: where the name begins, behind "vtable for " */
    size_t operator_; /* output: behind the last operator of a function; 0: none */
    bool cpp;
    bool in_operator; /* since the last "::" outside of brackets: spaces belong to the name */
    size_t depth;
    char closes[KILN_DEMANGLED_MAX * 4]; /* what closes each open bracket */
    struct level levels[LEVELS];
};

static void put(struct shortener *sh, const char *text, size_t n)
{
    if (sh->depth > LEVELS)
        return;
    if (n > sh->max - sh->n)
        n = sh->max - sh->n;
    memcpy(sh->out + sh->n, text, n);
    sh->n += n;
}

static char last(const struct shortener *sh)
{
    return sh->n ? sh->out[sh->n - 1] : '\0';
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

static bool ahead(const struct shortener *sh, struct kiln_str text)
{
    return sh->s.len - sh->i >= text.len && memcmp(sh->s.ptr + sh->i, text.ptr, text.len) == 0;
}

static char peek(const struct shortener *sh, size_t by)
{
    return sh->s.len - sh->i > by ? sh->s.ptr[sh->i + by] : '\0';
}

/* ---- brackets ---- */

static bool open_level(struct shortener *sh, char closes)
{
    if (sh->depth == sizeof(sh->closes))
        return false;
    if (sh->depth < LEVELS)
        sh->levels[sh->depth] = (struct level){
            .at = sh->n, .first = true, .words = sh->depth > 0 && sh->levels[sh->depth - 1].words};
    else
        sh->levels[LEVELS - 1].too_much = true;
    put(sh, sh->s.ptr + sh->i, 1);
    sh->i++;
    sh->closes[sh->depth++] = closes;
    if (sh->depth <= LEVELS)
        sh->levels[sh->depth - 1].arg = sh->levels[sh->depth - 1].kept = sh->n;
    return true;
}

static char closing(const struct shortener *sh)
{
    return sh->depth ? sh->closes[sh->depth - 1] : '\0';
}

static void trim(struct shortener *sh, size_t least)
{
    while (sh->n > least && last(sh) == ' ')
        sh->n--;
}

/* Arguments that nobody wrote. */
static bool is_default(struct kiln_str arg)
{
    static const struct kiln_str defaults[] = {
        WORD("std::allocator<"), WORD("std::char_traits<"), WORD("std::less<"),
        WORD("std::hash<"),      WORD("std::equal_to<"),    WORD("std::default_delete<"),
    };

    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        if (kiln_str_starts(arg, defaults[i]))
            return true;
    return false;
}

static void end_argument(struct shortener *sh, struct level *level)
{
    trim(sh, level->arg);
    if (level->first || !sh->cpp ||
        !is_default((struct kiln_str){sh->out + level->arg, sh->n - level->arg}))
        level->kept = sh->n;
}

/* std::basic_string<char> is std::string. */
static void rename_basic(struct shortener *sh, size_t list_at)
{
    static const struct kiln_str basic = WORD("basic_"), list = WORD("<char>");
    size_t at = list_at;

    if (!kiln_str_eq((struct kiln_str){sh->out + list_at, sh->n - list_at}, list))
        return;
    while (at > 0 && is_word(sh->out[at - 1]))
        at--;
    if (at < 5 || memcmp(sh->out + at - 5, "std::", 5) != 0 ||
        !kiln_str_starts((struct kiln_str){sh->out + at, list_at - at}, basic))
        return;
    memmove(sh->out + at, sh->out + at + basic.len, list_at - at - basic.len);
    sh->n = list_at - basic.len;
}

static void close_list(struct shortener *sh)
{
    struct level *level = &sh->levels[sh->depth - 1];

    end_argument(sh, level);
    if (level->kept < sh->n && !level->path)
        sh->n = level->kept;
    put(sh, ">", 1);
    if (!level->path && (level->too_much || sh->n - level->at > LIST_MAX)) {
        sh->n = level->at;
        put(sh, "<...>", 5);
    }
    if (sh->cpp)
        rename_basic(sh, level->at);
}

static void close_level(struct shortener *sh)
{
    if (closing(sh) == '>' && sh->depth <= LEVELS)
        close_list(sh);
    else
        put(sh, sh->s.ptr + sh->i, 1);
    sh->depth--;
    sh->i++;
}

static bool open_list(struct shortener *sh)
{
    /* A path of Rust begins with it: what is before is no name, or a "::" without one. */
    bool path =
        !sh->cpp && !is_word(last(sh)) && last(sh) != ':' && last(sh) != '>' && last(sh) != '}';

    if (!open_level(sh, '>'))
        return false;
    if (sh->depth <= LEVELS) {
        sh->levels[sh->depth - 1].path = path;
        sh->levels[sh->depth - 1].words |= !sh->cpp && !path;
    }
    return true;
}

/* a::b::C in a list of Rust is C, but a::b::{closure#0} is b::{closure#0}. */
static bool drop_word(struct shortener *sh)
{
    size_t n = sh->n;

    if (sh->depth == 0 || sh->depth > LEVELS || !sh->levels[sh->depth - 1].words ||
        peek(sh, 1) != ':' || !is_word(peek(sh, 2)))
        return false;
    while (n > 0 && is_word(sh->out[n - 1]))
        n--;
    if (n == sh->n)
        return false;
    sh->n = n;
    sh->i += 2;
    return true;
}

/* ---- C++ outside of brackets ---- */

/* Behind the parenthesis that closes the one here. */
static size_t behind_parens(const struct shortener *sh)
{
    size_t depth = 0;
    size_t i = sh->i;

    for (; i < sh->s.len; i++) {
        if (sh->s.ptr[i] == '(')
            depth++;
        else if (sh->s.ptr[i] == ')' && --depth == 0)
            return i + 1;
    }
    return i;
}

/* Parameters, and "const", "&&" or " [clone .cold]" behind them, go. */
static void drop_parameters(struct shortener *sh)
{
    static const struct kiln_str qualifiers[] = {
        WORD(" const"), WORD(" volatile"), WORD(" &"), WORD("&"), WORD(" "),
    };
    size_t i = 0;

    sh->i = behind_parens(sh);
    while (i < sizeof(qualifiers) / sizeof(qualifiers[0])) {
        bool found = ahead(sh, qualifiers[i]);

        sh->i += found ? qualifiers[i].len : 0;
        i = found ? 0 : i + 1;
    }
    sh->in_operator = false;
}

/* "vtable for ", "non-virtual thunk to ": words, and then the name. */
static void take_what(struct shortener *sh)
{
    static const struct kiln_str ends[] = {WORD(" for "), WORD(" to ")};

    for (; is_word(peek(sh, 0)) || strchr(" -#", peek(sh, 0) ? peek(sh, 0) : 'x'); sh->i++) {
        for (size_t k = 0; k < 2; k++) {
            if (!ahead(sh, ends[k]))
                continue;
            sh->i += ends[k].len;
            put(sh, sh->s.ptr, sh->i);
            sh->name_at = sh->n;
            return;
        }
    }
    sh->i = 0;
}

/* The symbols of an operator that could be taken for something else. */
static bool take_operator(struct shortener *sh)
{
    static const struct kiln_str word = WORD("operator");
    static const struct kiln_str symbols[] = {
        WORD("<=>"), WORD("<<="), WORD(">>="),    WORD("->*"),       WORD("<<"), WORD(">>"),
        WORD("<="),  WORD(">="),  WORD("->"),     WORD("()"),        WORD("[]"), WORD("<"),
        WORD(">"),   WORD(","),   WORD(" new[]"), WORD(" delete[]"),
    };

    if (peek(sh, 0) != 'o' || !ahead(sh, word) || is_word(last(sh)) || is_word(peek(sh, word.len)))
        return false;
    put(sh, word.ptr, word.len);
    sh->i += word.len;
    if (sh->depth == 0)
        sh->in_operator = true;
    for (size_t k = 0; k < sizeof(symbols) / sizeof(symbols[0]); k++) {
        if (!ahead(sh, symbols[k]))
            continue;
        put(sh, symbols[k].ptr, symbols[k].len);
        sh->i += symbols[k].len;
        break;
    }
    sh->operator_ = sh->n;
    return true;
}

/* Inline namespaces of the library, and marks of its ABI. */
static bool skip_inline(struct shortener *sh)
{
    static const struct kiln_str spaces[] = {WORD("__cxx11::"), WORD("__1::"), WORD("_V2::"),
                                             WORD("__ndk1::")};
    static const struct kiln_str abi = WORD("[abi:");

    if (ahead(sh, abi) && sh->n > sh->operator_) {
        while (sh->i < sh->s.len && sh->s.ptr[sh->i++] != ']')
            ;
        return true;
    }
    if (peek(sh, 0) != '_' || !kiln_str_ends((struct kiln_str){sh->out, sh->n}, KILN_STR("std::")))
        return false;
    for (size_t k = 0; k < sizeof(spaces) / sizeof(spaces[0]); k++) {
        if (ahead(sh, spaces[k])) {
            sh->i += spaces[k].len;
            return true;
        }
    }
    return false;
}

/* ---- all of it ---- */

static bool take_paren(struct shortener *sh)
{
    static const struct kiln_str anonymous = WORD("(anonymous namespace)");
    char next = peek(sh, 1);

    if (!sh->cpp)
        return open_level(sh, ')');
    if (ahead(sh, anonymous)) {
        put(sh, anonymous.ptr, anonymous.len);
        sh->i += anonymous.len;
        sh->operator_ = 0;
        return true;
    }
    /* A conversion to a pointer to a function, or a function that returns one. */
    if (sh->depth == 0 && last(sh) == ' ' && (next == '*' || next == '&'))
        return false;
    if (sh->depth == 0) {
        drop_parameters(sh);
        return true;
    }
    if (closing(sh) != '}')
        return open_level(sh, ')');
    sh->i = behind_parens(sh); /* {lambda(int)#1} */
    return true;
}

/* Outside of all brackets in C++. */
static void take_space(struct shortener *sh)
{
    sh->i++;
    if (peek(sh, 0) == '[')
        sh->i = sh->s.len; /* [clone .cold] */
    else if (sh->in_operator)
        put(sh, " ", 1);
    else
        sh->n = sh->name_at;
}

/* Compilers call a lambda <lambda(int)> in debug information, and do not number it. */
static bool take_lambda(struct shortener *sh)
{
    static const struct kiln_str lambda = WORD("<lambda(");
    size_t begins = sh->i;

    if (!ahead(sh, lambda))
        return false;
    sh->i += lambda.len - 1;
    sh->i = behind_parens(sh);
    if (peek(sh, 0) != '>') {
        sh->i = begins;
        return false;
    }
    sh->i++;
    put(sh, "{lambda}", 8);
    return true;
}

static bool take_less(struct shortener *sh)
{
    if (sh->cpp && take_lambda(sh))
        return true;
    if (sh->cpp && last(sh) == ')' && sh->n != sh->operator_) {
        put(sh, "<", 1);
        sh->i++;
        return true;
    }
    return open_list(sh);
}

static bool take_comma(struct shortener *sh)
{
    if (closing(sh) == '>' && sh->depth <= LEVELS) {
        struct level *level = &sh->levels[sh->depth - 1];

        end_argument(sh, level);
        put(sh, ", ", 2);
        level->first = false;
        level->arg = sh->n;
        sh->i += peek(sh, 1) == ' ' ? 2 : 1;
        return true;
    }
    put(sh, ",", 1);
    sh->i++;
    return true;
}

/* {{closure}} of Rust is {closure}. */
static bool take_brace(struct shortener *sh)
{
    static const struct kiln_str closure = WORD("{{closure}}");

    if (sh->cpp || !ahead(sh, closure))
        return open_level(sh, '}');
    put(sh, "{closure}", 9);
    sh->i += closure.len;
    return true;
}

static bool is_arrow(const struct shortener *sh)
{
    return sh->i > 0 && sh->s.ptr[sh->i - 1] == '-';
}

/* False: this is not understood. */
static bool take_closing(struct shortener *sh, char c)
{
    bool is_operator = c == '>' && (is_arrow(sh) || closing(sh) != '>');

    if (is_operator && sh->depth > 0) {
        put(sh, &c, 1);
        sh->i++;
        return true;
    }
    if (closing(sh) != c)
        return false;
    close_level(sh);
    return true;
}

static bool take_one(struct shortener *sh)
{
    char c = sh->s.ptr[sh->i];

    if (sh->cpp && (take_operator(sh) || skip_inline(sh)))
        return true;
    switch (c) {
    case '<':
        return take_less(sh);
    case '(':
        return take_paren(sh);
    case '[':
        return open_level(sh, ']');
    case '{':
        return take_brace(sh);
    case '>':
    case ')':
    case ']':
    case '}':
        return take_closing(sh, c);
    case ',':
        return take_comma(sh);
    case ' ':
        if (sh->depth > 0 || !sh->cpp)
            break;
        take_space(sh);
        return true;
    case ':':
        if (sh->depth == 0 && peek(sh, 1) == ':')
            sh->in_operator = false;
        if (drop_word(sh))
            return true;
        break;
    }
    put(sh, &c, 1);
    sh->i++;
    return true;
}

/* Where the text ends, or is not understood, within brackets, they are closed. */
static void close_all(struct shortener *sh)
{
    if (sh->depth == 0)
        return;
    sh->n = sh->levels[0].at;
    if (sh->max - sh->n < 5)
        sh->n = sh->max - 5;
    sh->depth = 0;
    put(sh, sh->closes[0] == '>' ? "<...>" : "...", sh->closes[0] == '>' ? 5 : 3);
}

size_t kiln_name_shorten(struct kiln_str text, bool cpp, char *to, size_t max)
{
    struct shortener sh;
    bool well = true;

    if (text.len > sizeof(sh.closes))
        text.len = sizeof(sh.closes);
    sh.s = text;
    sh.i = sh.n = sh.name_at = sh.operator_ = sh.depth = 0;
    sh.out = to;
    sh.max = max;
    sh.cpp = cpp;
    sh.in_operator = false;
    if (max < 64)
        return 0;
    if (cpp)
        take_what(&sh);
    while (sh.i < sh.s.len && well)
        well = take_one(&sh);
    if (!well && sh.depth == 0) {
        sh.n = text.len < max ? text.len : max;
        memcpy(to, text.ptr, sh.n);
        return sh.n;
    }
    close_all(&sh);
    trim(&sh, 0);
    return sh.n;
}
