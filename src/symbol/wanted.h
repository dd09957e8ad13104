/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wanted - a file that a reader of symbols would need besides the one it has: where debug
 * information lives elsewhere.
 *
 * A reader in a confined process cannot open files: it says what it wants, somebody else opens it,
 * and the reader checks build id, CRC or dwo id before it believes it.
 *
 * Threads: plain data.
 */
#ifndef KILN_SYMBOL_WANTED_H
#define KILN_SYMBOL_WANTED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "symbol/elf.h"

enum kiln_wanted_kind {
    KILN_WANTED_DEBUG,     /* the separate debug file */
    KILN_WANTED_ALTERNATE, /* what dwz moved out of several debug files into one */
    KILN_WANTED_DWP,       /* all split units of a program, PROGRAM.dwp */
    KILN_WANTED_DWO,       /* one split unit */
};

struct kiln_wanted {
    uint32_t kind;             /* enum kiln_wanted_kind */
    struct kiln_str name;      /* the debug link's name, the alternate's path, the dwo's name */
    struct kiln_str directory; /* of a dwo: where it was compiled */
    uint8_t build_id[KILN_BUILD_ID_MAX];
    uint8_t build_id_len; /* 0: not known */
    uint32_t crc;         /* of a debug link, if has_crc */
    bool has_crc;
    uint64_t dwo_id;
    uint32_t attempt; /* how many were found for it before, and were not it */
};

#endif /* KILN_SYMBOL_WANTED_H */
