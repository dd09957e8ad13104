/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type - what the values of a profile are: the one place that maps sample and period types to the
 * type ids people query by ("process_cpu:cpu:nanoseconds:cpu:nanoseconds").
 *
 * samples/count with a cpu/nanoseconds period is CPU time: its values count times the period,
 * unless cpu/nanoseconds is given beside it (then it stays a count).  Flow types add up over time;
 * level types (what is in use, how many threads) are averaged over it.
 *
 * A period type that a profile does not say is the usual one of its type.  The family is the usual
 * one of the type too, unless the attribute `profile.type` of the profile, or else of its scope,
 * names another ("block": contentions and delays are otherwise of the family mutex); a scope named
 * "block" says it as well.  A type nobody knows is a family of its own.
 *
 * Threads: plain data.
 */
#ifndef KILN_CORE_TYPE_H
#define KILN_CORE_TYPE_H

#include "base/buf.h"
#include "base/err.h"
#include "core/batch.h"

enum kiln_unit_kind { KILN_UNIT_NANOSECONDS, KILN_UNIT_BYTES, KILN_UNIT_COUNT, KILN_UNIT_OTHER };

/* All texts are borrowed from the batch or constant. */
struct kiln_type {
    struct kiln_str name;        /* family: process_cpu, memory, mutex, ... */
    struct kiln_str type;        /* cpu, alloc_space, ... */
    struct kiln_str unit;        /* nanoseconds, bytes, count */
    struct kiln_str period_type; /* cpu, space, ...; may be empty */
    struct kiln_str period_unit;
    int64_t period; /* in period_unit; 0 if unknown */
    int64_t scale;  /* values of the profile times this are in `unit`: the period, or 1 */
    bool level;     /* a level, not a flow */
};

/*
 * Types of all profiles of a batch, parallel to batch->profiles; the caller owns the array.
 * Samples counted at a known CPU period are taken as CPU time where the scope has none, unless
 * `counts_stay`.
 */
KILN_CHECK int kiln_types_of_batch(const struct kiln_batch *batch, bool counts_stay,
                                   struct kiln_type **ret_types);

/*
 * The profile whose type is shown when nobody asked for one.  pprof's rule where the first scope
 * has pprof's attributes: `pprof.scope.default_sample_type`, else the last of
 * `pprof.scope.sample_type_order` unless all its values are zero.  Otherwise CPU time if there is
 * any, else the first profile.  0 for a batch without profiles.
 */
uint32_t kiln_type_default(const struct kiln_batch *batch, const struct kiln_type *types);

/* Whether a type of these parts is a level. */
bool kiln_type_is_level(const struct kiln_type *type);

/* Writes the id name:type:unit:period_type:period_unit. */
void kiln_type_id(const struct kiln_type *type, struct kiln_buf *out);
/* True if the ids are equal; periods may differ. */
bool kiln_type_equal(const struct kiln_type *a, const struct kiln_type *b);

/*
 * True if `wanted` names this type: a type ("cpu"), type:unit ("cpu:nanoseconds"), the five-part
 * id, or its first three parts.
 */
bool kiln_type_matches(const struct kiln_type *type, struct kiln_str wanted);

enum kiln_unit_kind kiln_unit_kind(struct kiln_str unit);

/*
 * A type that others add up to, for whoever has these and not the type itself: wall-clock time is
 * that on a processor and that off it.
 */
enum { KILN_MADE_PARTS = 2 };
struct kiln_made_type {
    struct kiln_type type;
    struct kiln_str id;
    struct kiln_str parts[KILN_MADE_PARTS]; /* ids but for the period, of which a pprof has one for
                                               all its types */
};
extern const struct kiln_made_type kiln_type_wall;

/* Whether a five-part id is that of `type`, which may lack the period. */
bool kiln_type_id_is(struct kiln_str id, struct kiln_str type);

/* Which of its parts a type of this id is; KILN_MADE_PARTS: none. */
uint32_t kiln_made_part(const struct kiln_made_type *made, struct kiln_str id);
/* Whether `type` has to be made where these types are: all its parts are, and it is not. */
bool kiln_type_is_made(const struct kiln_type *type, const struct kiln_type *types, uint32_t n);
/* Whether values of `type` are of the wanted one: equal, or a part of it where it is made. */
bool kiln_type_counts(const struct kiln_type *wanted, bool made, const struct kiln_type *type);

/* ---- numbers for people ---- */

/*
 * "1.25s", "340ms", "1.5GB", "12,345": a value in its unit, with three significant digits (whole
 * counts below ten million with all of them).  Bytes are binary under pprof's names: 1kB is 1024B.
 */
void kiln_format_value(struct kiln_buf *out, double value, struct kiln_str unit);

/*
 * The value as a rate over a duration: "2.44 cores" for CPU time, "420 MB/min" for bytes,
 * "12/s" for counts.  Writes nothing where the duration is 0 or the type is a level.
 */
void kiln_format_rate(struct kiln_buf *out, double value, const struct kiln_type *type,
                      uint64_t duration_ns);

#endif /* KILN_CORE_TYPE_H */
