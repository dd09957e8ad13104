/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading mangled names is libiberty's.  Its recursion limit stays on, but a name of a few hundred
 * bytes may expand to more than any disk holds, since it can repeat parts of itself that repeat
 * parts.  libiberty has no way to stop: so what it calls with each piece of text jumps out when the
 * text is longer than anybody wants.  Its callback functions keep nothing on the heap meanwhile;
 * with one exception, the names of Rust with letters beyond ASCII, and those are always followed by
 * a piece without such letters.
 *
 * The short form of C++ begins with what libiberty makes without parameters: that has no return
 * type, which could not be told from the name in a text (`void (*f<int>(int))(char)`).
 */
#include "symbol/demangle.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "base/mem.h"

enum { TEXT_MAX = 4 * KILN_DEMANGLED_MAX };

struct kiln_demangler {
    char in[KILN_DEMANGLED_MAX + 1];
    char text[TEXT_MAX]; /* before it is shortened */
    char out[KILN_DEMANGLED_MAX];
    size_t n;
    jmp_buf enough;
};

int kiln_demangler_new(struct kiln_demangler **ret_demangler)
{
    struct kiln_demangler *d = kiln_malloc(sizeof(*d));

    if (!d)
        return -ENOMEM;
    *ret_demangler = d;
    return 0;
}

void kiln_demangler_free(struct kiln_demangler *demangler)
{
    kiln_free(demangler);
}

static bool is_ascii(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

static void take(const char *text, size_t n, void *context)
{
    struct kiln_demangler *d = context;
    size_t room = TEXT_MAX - d->n;

    if (n > 0)
        memcpy(d->text + d->n, text, n < room ? n : room);
    d->n += n < room ? n : room;
    if (n > room && is_ascii(text, n))
        longjmp(d->enough, 1);
}

/* True: it is such a name, and d->text has at least the beginning of what it says. */
static bool undo(struct kiln_demangler *d,
                 int (*fn)(const char *mangled, int options, demangle_callbackref, void *),
                 int options)
{
    d->n = 0;
    if (setjmp(d->enough))
        return true;
    return fn(d->in, options, take, d) && d->n > 0;
}

static bool undo_rust(struct kiln_demangler *d)
{
    return undo(d, rust_demangle_callback, DMGL_RUST);
}

/* True: it may be mangled, and is in d->in. */
static bool put_in(struct kiln_demangler *d, struct kiln_str name)
{
    if (name.len < 3 || name.len > KILN_DEMANGLED_MAX || name.ptr[0] != '_')
        return false;
    memcpy(d->in, name.ptr, name.len);
    d->in[name.len] = '\0';
    return true;
}

/* ---- clones ---- */

static bool is_number(struct kiln_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return s.len > 0;
}

/* Cuts off the last ".word"; false: there is none, or nothing before it. */
static bool cut_last(struct kiln_str *s, struct kiln_str *ret_word)
{
    for (size_t i = s->len; i > 1; i--) {
        if (s->ptr[i - 1] != '.')
            continue;
        *ret_word = (struct kiln_str){s->ptr + i, s->len - i};
        s->len = i - 1;
        return true;
    }
    return false;
}

static bool is_clone(struct kiln_str word, bool numbered)
{
    static const struct {
        const char *word;
        bool alone; /* also without a number */
    } words[] = {
        {"cold", true},  {"part", false},     {"constprop", false},
        {"isra", false}, {"lto_priv", false}, {"localalias", true},
        {"llvm", false}, {"clone", false},    {"__uniq", false},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (kiln_str_eq(word, kiln_str_of(words[i].word)))
            return numbered || words[i].alone;
    return false;
}

struct kiln_str kiln_demangle_unclone(struct kiln_str name)
{
    for (;;) {
        struct kiln_str rest = name, word;
        bool numbered;

        if (!cut_last(&rest, &word))
            return name;
        numbered = is_number(word);
        if ((numbered && !cut_last(&rest, &word)) || !is_clone(word, numbered))
            return name;
        name = rest;
    }
}

/* ---- both forms ---- */

struct kiln_str kiln_demangle(struct kiln_demangler *d, struct kiln_str name)
{
    bool cpp = false;

    name = kiln_demangle_unclone(name);
    if (!put_in(d, name))
        return name;
    if (!undo_rust(d)) {
        cpp = true;
        /* Without parameters libiberty would also take what has anything else behind the name. */
        if (!undo(d, cplus_demangle_v3_callback, DMGL_PARAMS | DMGL_ANSI) ||
            !undo(d, cplus_demangle_v3_callback, DMGL_ANSI))
            return name;
    }
    d->n = kiln_name_shorten((struct kiln_str){d->text, d->n}, cpp, d->out, sizeof(d->out));
    return d->n ? (struct kiln_str){d->out, d->n} : name;
}

/* Rust's names with a suffix are not always known as such with it. */
struct kiln_str kiln_demangle_full(struct kiln_demangler *d, struct kiln_str name)
{
    struct kiln_str bare = kiln_demangle_unclone(name);

    if (!put_in(d, bare))
        return name;
    if (!undo_rust(d) &&
        (!put_in(d, name) || !undo(d, cplus_demangle_v3_callback, DMGL_PARAMS | DMGL_ANSI)))
        return name;
    return (struct kiln_str){d->text, d->n < KILN_DEMANGLED_MAX ? d->n : KILN_DEMANGLED_MAX};
}

struct kiln_str kiln_demangle_text(struct kiln_demangler *d, struct kiln_str text)
{
    bool plain = !memchr(text.ptr ? text.ptr : "", '<', text.len) &&
                 !memchr(text.ptr ? text.ptr : "", '(', text.len);

    if (plain || text.len > TEXT_MAX)
        return text;
    d->n = kiln_name_shorten(text, true, d->out, sizeof(d->out));
    return d->n ? (struct kiln_str){d->out, d->n} : text;
}
