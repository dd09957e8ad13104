/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_wire - what a resolver and its child say to each other, in packets of one machine.
 *
 *   resolver ──▶ child   first:  u64 memory
 *   child ──▶ resolver   ready:  the same, once it is confined
 *   resolver ──▶ child   ask:    struct kiln_names_ask, then n addresses (u64); a descriptor beside
 *   child ──▶ resolver   answer: struct kiln_names_answer, then n names: struct kiln_wire_name, the
 *                                module, and for each frame struct kiln_wire_frame and its three
 *                                texts, one behind the other
 *
 * An answer to many addresses comes in several packets, in order.  With a status other than 0 it
 * has no names and is the last.  The resolver believes nothing: answers are read with
 * kiln_wire_next() alone.
 *
 * Threads: plain data, no state.
 */
#ifndef KILN_SYMBOL_NAMES_WIRE_H
#define KILN_SYMBOL_NAMES_WIRE_H

#include "symbol/resolver.h"

enum {
    KILN_WIRE_ADDRESSES = 512,   /* of one ask */
    KILN_WIRE_PACKET = 64 << 10, /* of an answer, at most */
    KILN_WIRE_TEXT = 4096,
    KILN_WIRE_SOCKET = 3, /* the child's descriptor */
};

struct kiln_names_ask {
    uint32_t number; /* of the ask, said again in its answer */
    uint32_t kind;   /* enum kiln_source_kind */
    uint64_t id, version;
    uint32_t n;
    uint32_t reserved;
};

struct kiln_names_answer {
    uint32_t number;
    int32_t status; /* 0, or why the file has no names: a negative code; -ENOENT: it is not open */
    uint32_t first, n; /* of the addresses of the ask */
};

struct kiln_wire_name {
    uint16_t n;      /* frames */
    uint16_t module; /* bytes */
    uint32_t shallow;
    uint64_t begin;
};

struct kiln_wire_frame {
    uint16_t function, system_name, file, reserved; /* bytes */
    uint32_t line, column, start_line;
};

/*
 * Appends a name to a packet of KILN_WIRE_PACKET bytes.  False: it does not fit; into an empty
 * packet every name of names.h does.
 */
bool kiln_wire_add(char *packet, size_t *len, const struct kiln_name *name);

/*
 * Takes the head of an answer to `ask` that goes on at address `first`; then its names, one by one,
 * as often as the head says.  KILN_E_MALFORMED, KILN_E_TRUNCATED.  Texts are as they came, and
 * frames are in `room`.
 */
KILN_CHECK int kiln_wire_begin(struct kiln_str *packet, const struct kiln_names_ask *ask,
                               uint32_t first, struct kiln_names_answer *ret_answer);
KILN_CHECK int kiln_wire_next(struct kiln_str *packet,
                              struct kiln_name_frame room[KILN_NAME_FRAMES_MAX],
                              struct kiln_name *ret_name);

#endif /* KILN_SYMBOL_NAMES_WIRE_H */
