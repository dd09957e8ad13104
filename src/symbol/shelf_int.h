/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf_int - the parts of a shelf:
 *
 *   shelf.c        which build ids are known; what waits to be written, and when it is
 *   shelf_file.c   reading one file
 *   shelf_made.c   what goes into a file, and its bytes
 *   shelf_room.c   the directory: files in, files out, how large all of it is
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_SHELF_INT_H
#define KILN_SYMBOL_SHELF_INT_H

#include "base/buf.h"
#include "base/mem.h"
#include "symbol/shelf.h"

/*
 * The names that are read of a file today: raised whenever reading finds more or other names, so
 * that those of before are looked for again.
 */
#define KILN_SHELF_READER    3u

#define KILN_SHELF_MAGIC     "KILNSHF\n"
#define KILN_SHELF_VERSION   1u
#define KILN_SHELF_FILE_MAX  ((size_t)64 << 20)
#define KILN_SHELF_ADDRESSES (1u << 20) /* of one file at most */
#define KILN_SHELF_WEAK_MINUTES                                                                    \
    (24u * 60) /* after that, names without lines are looked for again */

enum {
    KILN_SHELF_ID_MAX = 128, /* characters of a build id */
    KILN_SHELF_TEXT_MAX = 4096,
};

/* ---- the bytes of a file ---- */

struct kiln_shelf_head {
    char magic[8];
    uint32_t version, reader;
    uint64_t size; /* of the file */
    uint64_t seed; /* of the table's hash */
    uint32_t bits; /* the table has 1 << bits slots */
    uint32_t n;    /* of which so many are in use */
    uint32_t lists_size, texts_size;
    uint32_t id_crc;   /* of the key */
    uint32_t body_crc; /* of all behind the head */
    uint32_t reserved;
    uint32_t head_crc; /* of the head before this */
};

/* What begins at a place of the lists; frames follow. */
struct kiln_shelf_list {
    uint16_t n; /* frames */
    uint16_t module_len;
    uint32_t module;
    uint64_t begin;
};

/* `when` of a slot: minutes since 1970, and: */
#define KILN_SHELF_DEBUG   (1u << 31) /* a debug file was there */
#define KILN_SHELF_LINES   (1u << 30) /* a frame has a line */
#define KILN_SHELF_MINUTES (KILN_SHELF_LINES - 1)

struct kiln_shelf_slot {
    uint64_t address;
    uint32_t list; /* place of its list, in units of 8 bytes, and 1; 0: the slot is free */
    uint32_t when;
};

struct kiln_shelf_frame {
    uint32_t function, system_name, file; /* places in the texts */
    uint16_t function_len, system_name_len, file_len, reserved;
    uint32_t line, column, start_line;
};

_Static_assert(sizeof(struct kiln_shelf_head) == 64 && sizeof(struct kiln_shelf_slot) == 16 &&
                   sizeof(struct kiln_shelf_frame) == 32 && sizeof(struct kiln_shelf_list) == 16,
               "what is on disk");

static inline uint64_t kiln_shelf_hash(uint64_t seed, uint64_t address)
{
    __uint128_t product = (__uint128_t)(address ^ seed) * 0x9e3779b97f4a7c15u;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* ---- a file that is read ---- */

struct kiln_shelf_file {
    const char *data;
    size_t size;
    uint64_t seed;
    const struct kiln_shelf_slot *slots;
    const char *lists, *texts;
    uint32_t mask;
    uint32_t n;
    uint32_t lists_size, texts_size;
    bool damaged; /* something in it pointed outside */
};

/* All of a file, which must stay.  KILN_E_MALFORMED, KILN_E_CORRUPT (sums), or KILN_E_UNSUPPORTED:
 * of another version. */
KILN_CHECK int kiln_shelf_file_open(const void *data, size_t size, struct kiln_str build_id,
                                    struct kiln_shelf_file *ret_file);
/* 1 or 0, as kiln_shelf_get(); `frames` has room for KILN_NAME_FRAMES_MAX. */
KILN_CHECK int kiln_shelf_file_find(struct kiln_shelf_file *file, uint64_t address, bool debug,
                                    struct kiln_name_frame *frames, struct kiln_name *ret_name);
/* The name of slot `i`; false: there is none. */
bool kiln_shelf_file_slot(struct kiln_shelf_file *file, uint32_t i, struct kiln_name_frame *frames,
                          struct kiln_name *ret_name);

/* ---- a file that is made ---- */

struct kiln_shelf_index {
    struct kiln_shelf_place {
        uint32_t hash, at;
    } * places;
    uint32_t n, cap;
};

struct kiln_shelf_made {
    struct kiln_budget budget;
    struct kiln_shelf_slot *slots; /* in the order they came */
    uint32_t n, cap;
    struct kiln_buf lists, texts;
    struct kiln_shelf_index by_address, by_list, by_text;
};

void kiln_shelf_made_init(struct kiln_shelf_made *made, size_t max_bytes);
void kiln_shelf_made_done(struct kiln_shelf_made *made);
size_t kiln_shelf_made_bytes(const struct kiln_shelf_made *made);
/* Of an address that is there already the one with lines counts, else `over` says it.  -ENOMEM or
 * KILN_E_LIMIT. */
KILN_CHECK int kiln_shelf_made_add(struct kiln_shelf_made *made, uint64_t address, uint32_t when,
                                   const struct kiln_name *name, bool over);
/* Adds what a file has and `made` has not. */
KILN_CHECK int kiln_shelf_made_merge(struct kiln_shelf_made *made, struct kiln_shelf_file *file);
KILN_CHECK int kiln_shelf_made_encode(const struct kiln_shelf_made *made, struct kiln_str build_id,
                                      uint64_t seed, struct kiln_buf *out);

/* ---- the directory ---- */

struct kiln_shelf_room {
    int fd;   /* of the directory */
    int lock; /* its lock; -1: it cannot be written to */
    uint64_t max_bytes;
    uint64_t bytes, since; /* in all when last counted; written since then */
    uint32_t files;
};

/* A file that is mapped; data NULL: it is not there. */
struct kiln_shelf_mapped {
    const char *data;
    size_t size;
    uint64_t inode, changed_ns;
};

KILN_CHECK int kiln_shelf_room_open(const char *directory, uint64_t max_bytes,
                                    struct kiln_shelf_room *ret_room, struct kiln_err *err);
void kiln_shelf_room_close(struct kiln_shelf_room *room);
/* Maps a file, unless it is still the one that is mapped.  1: it is new; 0: as before; -ENOENT. */
KILN_CHECK int kiln_shelf_room_map(const struct kiln_shelf_room *room, const char *name,
                                   struct kiln_shelf_mapped *mapped);
void kiln_shelf_room_unmap(struct kiln_shelf_mapped *mapped);
/* Says that a file is in use. */
void kiln_shelf_room_touch(const struct kiln_shelf_room *room, const char *name);
void kiln_shelf_room_remove(const struct kiln_shelf_room *room, const char *name);
/* Only one process writes at a time: false where another does. */
bool kiln_shelf_room_lock(const struct kiln_shelf_room *room);
void kiln_shelf_room_unlock(const struct kiln_shelf_room *room);
/* With the lock: replaces a file, and makes room. */
KILN_CHECK int kiln_shelf_room_write(struct kiln_shelf_room *room, const char *name,
                                     struct kiln_str data);

#endif /* KILN_SYMBOL_SHELF_INT_H */
