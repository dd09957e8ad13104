/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle - names of the linker undone: C++ (Itanium) and Rust (v0 and before).
 *
 *   linker   _ZNSt6vectorIiSaIiEE9push_backERKi.cold
 *   full     std::vector<int, std::allocator<int> >::push_back(int const&) [clone .cold]
 *   short    std::vector<int>::push_back
 *
 * The short form is for people, and what a function is called in profiles: no parameters, no
 * return type, template arguments only where they are few, no inline namespaces of the library, no
 * hashes, no parts that the compiler split off.  The full one can be made of the linker's name
 * whenever it is wanted.  Names come from strangers' files: what is made of them is at most
 * KILN_DEMANGLED_MAX bytes, and making it ends soon, whatever the name would expand to.
 *
 * Threads: a demangler has one owner at a time.
 */
#ifndef KILN_SYMBOL_DEMANGLE_H
#define KILN_SYMBOL_DEMANGLE_H

#include "base/attr.h"
#include "base/str.h"

enum { KILN_DEMANGLED_MAX = 4096 };

struct kiln_demangler;
KILN_CHECK int kiln_demangler_new(struct kiln_demangler **ret_demangler);
void kiln_demangler_free(struct kiln_demangler *demangler);

/* The short and the full form; a name that is none of these languages' stays as it is, but for a
 * clone's suffix in the short form.  Texts live until the next call, or as long as `name`. */
struct kiln_str kiln_demangle(struct kiln_demangler *demangler, struct kiln_str name);
struct kiln_str kiln_demangle_full(struct kiln_demangler *demangler, struct kiln_str name);

/* The short form of a name as debug information has it, with its scopes: C++'s "f<int>". */
struct kiln_str kiln_demangle_text(struct kiln_demangler *demangler, struct kiln_str text);

/* Without ".cold", ".part.0", ".constprop.0", ".isra.0", ".llvm.123" and the like. */
struct kiln_str kiln_demangle_unclone(struct kiln_str name);

/*
 * Shortens a text that is undone already: template arguments as above, and in C++ (else Rust) also
 * parameters, a return type before them, and what qualifies the function behind them.  Writes at
 * most `max` bytes to `to`, which may not be `text`; returns how many.
 */
size_t kiln_name_shorten(struct kiln_str text, bool cpp, char *to, size_t max);

#endif /* KILN_SYMBOL_DEMANGLE_H */
