/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protojson - protobuf messages described by tables, so that one description serves three ways:
 *
 *   JSON ─▶ protobuf      requests (protobuf's rules of JSON: lowerCamelCase or the names of the
 *                         .proto file, 64-bit numbers as text or numbers, enums by name or number;
 *                         names of fields and enums that nobody knows are passed over)
 *   protobuf ─▶ struct    requests, whichever way they came
 *   protobuf ─▶ JSON      answers, which are written as protobuf (codec/pb.h) and nothing else
 *
 * Threads: no state; tables are constant.
 */
#ifndef KILN_API_PROTOJSON_H
#define KILN_API_PROTOJSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum kiln_field_kind {
    KILN_FIELD_STRING,
    KILN_FIELD_BYTES,  /* base64 in JSON */
    KILN_FIELD_LONG,   /* int64: text in JSON */
    KILN_FIELD_ULONG,  /* uint64: the same */
    KILN_FIELD_INT,    /* int32, uint32: a number in JSON */
    KILN_FIELD_DOUBLE, /* fixed64 */
    KILN_FIELD_BOOL,
    KILN_FIELD_ENUM,
    KILN_FIELD_MESSAGE,
};

struct kiln_enum_name {
    const char *name; /* NULL ends the list */
    int32_t number;
};

/*
 * One field.  `offset` is where a struct keeps it, counted from the struct of the outermost
 * message, so that nested messages are flattened:
 *   text         struct kiln_str; repeated, or `appends`: struct kiln_texts
 *   numbers      int64_t; double; bool
 *   message      bool: it was there; with `apart`: a pointer to a struct of its own
 */
struct kiln_field {
    uint32_t number;
    enum kiln_field_kind kind;
    const char *name;       /* of JSON */
    const char *proto_name; /* of the .proto file; NULL: the same */
    bool repeated;
    bool appends; /* a text of a repeated message: one more for the list at `offset` */
    bool kept;    /* a struct has it */
    size_t offset;
    size_t apart; /* size of the struct of a message with a struct of its own; 0: flattened */
    const struct kiln_message *message;
    const struct kiln_enum_name *names;
};

struct kiln_message {
    const char *name;
    const struct kiln_field *fields; /* ascending by number */
    uint32_t n_fields;
};

enum { KILN_TEXTS_MAX = 10000 };

struct kiln_texts {
    struct kiln_str *items;
    uint32_t n, cap;
};

/* Appends the protobuf form of a JSON object.  KILN_E_MALFORMED and others; `err` says where. */
KILN_CHECK int kiln_protojson_read(const struct kiln_message *message, struct kiln_str json,
                                   struct kiln_buf *out, struct kiln_err *err);

/* Appends the JSON form of a message whose repeated fields stand together. */
KILN_CHECK int kiln_protojson_write(const struct kiln_message *message, struct kiln_str bytes,
                                    struct kiln_buf *out);

/*
 * Fills a zeroed struct; texts are borrowed from `bytes`, lists and structs are in the arena.  A
 * list that has more than KILN_TEXTS_MAX texts is KILN_E_LIMIT.
 */
KILN_CHECK int kiln_message_read(const struct kiln_message *message, struct kiln_str bytes,
                                 struct kiln_arena *arena, void *ret, struct kiln_err *err);

#endif /* KILN_API_PROTOJSON_H */
