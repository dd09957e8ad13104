/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_wire - what a resolver and its child say to each other, in packets of one machine.
 *
 *   resolver ──▶ child   first:   struct kiln_names_greeting; beside it perhaps a scratch file
 *   child ──▶ resolver   ready:   the same, once it is confined
 *   resolver ──▶ child   ask:     struct kiln_names_ask, then n addresses (u64); a descriptor
 * beside child ──▶ resolver   answer:  struct kiln_names_said, then n names: struct kiln_wire_name,
 * the module, and for each frame struct kiln_wire_frame and its three texts, one behind the other
 *
 * An answer to many addresses comes in several packets, in order.  With a status other than 0 it
 * has no names and is the last.  Before it the child may say, any number of times, that it lacks a
 * file:
 *
 *   child ──▶ resolver   wanted:  struct kiln_names_said, struct kiln_wire_wanted, name, directory
 *   resolver ──▶ child   given:   struct kiln_names_given; beside it the file, if there is one
 *
 * and, also while nobody asks, whose debug information it reads, for that may be its end:
 *
 *   child ──▶ resolver   working: struct kiln_names_said with the number of the ask that was for
 *                                 that file; 0: of none
 *
 * An ask may also be for the source text that is embedded in the debug information of the file
 * beside it: then it has the name of a source file, in as many words, in place of addresses.
 *
 *   child ──▶ resolver   text:    struct kiln_names_said with how many bytes came before and how
 *                                 many follow, and these; the last has none, and the status
 *
 * The resolver believes nothing: what is said is read by the functions here alone.
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
    KILN_WIRE_SOCKET = 3, /* the child's descriptors */
    KILN_WIRE_SCRATCH = 4,
    KILN_WIRE_MAPS = 5,
    KILN_WIRE_PAGEMAP = 6,
};

struct kiln_names_greeting {
    uint64_t memory;      /* that it may take */
    uint64_t deep_cpu_ms; /* that debug information of one file may take in all */
    uint64_t scratch;     /* bytes that the file beside it may get; 0: there is none */
    uint32_t rest_ms;     /* without an ask, until it ends */
    uint32_t eager;       /* goes on between asks without a pause */
};

struct kiln_names_ask {
    uint32_t number; /* of the ask, said again in its answer; not 0 */
    uint32_t kind;   /* enum kiln_source_kind */
    uint64_t id, version;
    uint32_t n;
    uint32_t deep_ms; /* how long lines and inlines may be looked for before it is answered */
    uint32_t deep;    /* 0: not at all */
    uint32_t name;    /* bytes of a name that is in place of addresses; 0: there are addresses */
};

enum kiln_names_saying {
    KILN_SAID_NAMES = 1,
    KILN_SAID_WANTED,
    KILN_SAID_WORKING,
    KILN_SAID_TEXT,
};

struct kiln_names_said {
    uint32_t what;   /* enum kiln_names_saying */
    uint32_t number; /* of the ask */
    int32_t status;  /* 0, or why the file has no names: a negative code; -ENOENT: it is not open */
    uint32_t first, n; /* of the addresses of the ask; of a text's bytes */
    uint32_t gave_up;  /* reading debug information of this file took too much */
};

struct kiln_names_given {
    uint32_t number;
    int32_t status; /* 0: the file is beside it */
};

struct kiln_wire_wanted {
    uint16_t name, directory; /* bytes */
    uint8_t kind, build_id_len, has_crc, attempt;
    uint32_t crc;
    uint8_t build_id[KILN_BUILD_ID_MAX];
    uint64_t dwo_id;
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

/* A packet that says what is wanted: its bytes. */
size_t kiln_wire_add_wanted(char packet[KILN_WIRE_PACKET], uint32_t number,
                            const struct kiln_wanted *wanted);

/* Takes the head of whatever is said.  KILN_E_MALFORMED, KILN_E_TRUNCATED, here and below. */
KILN_CHECK int kiln_wire_head(struct kiln_str *packet, struct kiln_names_said *ret_said);
/* What the rest of the packet wants.  Texts are as they came. */
KILN_CHECK int kiln_wire_wanted(struct kiln_str *packet, struct kiln_wanted *ret_wanted);
/* Whether names that are said answer `ask` from address `first` on. */
KILN_CHECK int kiln_wire_begin(const struct kiln_names_said *said, const struct kiln_names_ask *ask,
                               uint32_t first);
/* Then its names, one by one, as often as the head says.  Frames are in `room`. */
KILN_CHECK int kiln_wire_next(struct kiln_str *packet,
                              struct kiln_name_frame room[KILN_NAME_FRAMES_MAX],
                              struct kiln_name *ret_name);

/* Whether a piece of text goes on at byte `first` of the answer to `ask`, with all of the packet.
 */
KILN_CHECK int kiln_wire_text(const struct kiln_names_said *said, const struct kiln_names_ask *ask,
                              uint64_t first, struct kiln_str packet);

#endif /* KILN_SYMBOL_NAMES_WIRE_H */
