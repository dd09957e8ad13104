/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_file - what an ELF file is good for when names are looked for: whose it is (build ids),
 * what it has, and where its code lies.
 *
 * Only headers and notes are read here, within the limits of symbol/elf.h; all else is for the
 * confined child of symbol/resolver.h.
 *
 * Threads: no state.
 */
#ifndef KILN_NAMING_DEBUG_FILE_H
#define KILN_NAMING_DEBUG_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "symbol/elf.h"

enum kiln_debug_kind {
    KILN_DEBUG_EXECUTABLE, /* has code; perhaps debug information too */
    KILN_DEBUG_INFO,       /* what was split off, or what dwz moved out */
    KILN_DEBUG_DWP,        /* the split units of a program: has no build id of its own */
    KILN_DEBUG_KINDS
};
/* "executable", "debuginfo", "dwp" */
const char *kiln_debug_kind_name(enum kiln_debug_kind kind);

enum { KILN_GO_BUILD_ID_MAX = 128, KILN_DEBUG_ID_MAX = 127 };

struct kiln_debug_facts {
    enum kiln_debug_kind kind;
    char gnu[2 * KILN_BUILD_ID_MAX + 1]; /* build ids as texts; "": none */
    char go[KILN_GO_BUILD_ID_MAX];
    char hash[33]; /* OpenTelemetry's */
    bool has_symtab, has_lines;
    uint64_t bytes;
};

/*
 * Looks at the bytes of a file.  KILN_E_UNKNOWN: no ELF file; KILN_E_UNSUPPORTED: 32 bits or
 * big-endian; KILN_E_TRUNCATED: the headers tell of more than there is; -ENODATA: nothing that
 * could name.
 */
KILN_CHECK int kiln_debug_inspect(const struct kiln_bytes *bytes,
                                  struct kiln_debug_facts *ret_facts, struct kiln_err *err);

/* Whether the file is the one of this build id, of whatever kind that is; case does not matter. */
bool kiln_debug_facts_match(const struct kiln_debug_facts *facts, struct kiln_str build_id);
/* What it is called by: GNU's build id, else Go's, else the hash. */
const char *kiln_debug_build_id(const struct kiln_debug_facts *facts);

/* ---- places and addresses ---- */

enum { KILN_DEBUG_SEGMENTS = 32 };

/* Where the code of a file is: in the file, and at which of its own addresses. */
struct kiln_debug_map {
    struct {
        uint64_t place, address, size;
    } segments[KILN_DEBUG_SEGMENTS];
    uint32_t n;
};

/*
 * By the program headers; those of a debug file, which may tell another file's places, are put
 * right.  -ENOENT: the file tells of no code.
 */
KILN_CHECK int kiln_debug_map_make(const struct kiln_elf *elf, struct kiln_debug_map *ret_map);
KILN_CHECK int kiln_debug_map_load(int fd, struct kiln_debug_map *ret_map);

/*
 * The address of what a location says (core/frame.h): a place in the file, or, where its mapping
 * was not known, an address already.
 */
bool kiln_debug_map_address(const struct kiln_debug_map *map, uint64_t place,
                            uint64_t *ret_address);

#endif /* KILN_NAMING_DEBUG_FILE_H */
