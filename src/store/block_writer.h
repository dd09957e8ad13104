/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_writer - the inside of a block writer, shared by the files that write a section each.
 *
 * Everything that is numbered (dictionary entries, origins, moments) begins with 1; 0 is the zero
 * value, which is never written.  What rows refer to is numbered as it is first seen; strings,
 * functions, mappings and locations are numbered in their sorted order at the end.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_BLOCK_WRITER_H
#define KILN_STORE_BLOCK_WRITER_H

#include "core/intern.h"
#include "store/block_int.h"
#include "store/sort.h"

/* Which number an entry of the dictionary has, and the other way round. */
struct kiln_numbers {
    uint32_t *of;    /* by index: 0 if it has none */
    uint32_t *order; /* by number - 1: the index */
    uint32_t n;
    uint32_t cap_of, cap_order;
};

/* A profile's observation on its way to its page. */
struct kiln_block_row {
    uint32_t stack, attrs, link; /* indexes of the dictionary */
    int64_t value;
    uint64_t time_ns;
};

struct kiln_ticks;
struct kiln_rollup_maker;

struct kiln_block_writer {
    struct kiln_io *io;
    kiln_block_verifier *verify;
    int fd;                  /* -1: none */
    struct kiln_buf pending; /* the end of what was written, not yet in the file */
    char *tmp_path, *path, *folder;
    bool opened, finished, renamed, published;
    uint64_t offset; /* where the next page goes, behind what is pending */
    int error;       /* sticky */
    struct kiln_budget budget;
    struct kiln_arena arena;
    const struct kiln_batch *dict;
    struct kiln_str *keys;
    uint32_t n_keys;
    struct kiln_footer footer;

    struct kiln_page_out out;
    struct kiln_page_habit habits[KILN_N_SHAPES];
    struct kiln_column columns[KILN_COLUMNS_MAX]; /* of the page at hand */
    struct kiln_buf bytes[2];                     /* its columns of bytes */
    uint32_t n_entries;                           /* in it */
    uint32_t section;                             /* whose page it is */

    struct kiln_numbers strings, functions, mappings, locations, links, attrs, sets, lists;
    uint32_t *list_sizes; /* by number - 1 */
    uint32_t cap_list_sizes;
    uint32_t *stack_of;     /* by index: its number in the service at hand */
    uint32_t *stack_order;  /* indexes, service after service, as first seen */
    uint32_t *stack_starts; /* by service: the first in stack_order; and one more for the end */
    uint32_t *shared;       /* scratch: by place in the sorted order, locations like those before */
    uint32_t n_stacks, cap_stack_of, cap_stack_order, cap_stack_starts, cap_shared;

    struct kiln_origin *origins;
    struct kiln_moment *moments;
    uint32_t *resources, *scopes;     /* by number - 1: the first index of such content */
    uint32_t *resource_of, *scope_of; /* by index: number */
    uint32_t n_origins, n_moments, n_resources, n_scopes;
    uint32_t cap_origins, cap_moments, cap_resources, cap_scopes, cap_resource_of, cap_scope_of;
    struct kiln_intern origin_index, moment_index, resource_index, scope_index;

    /* the rows at hand */
    uint32_t series;             /* input index of the last profile's series; UINT32_MAX: none */
    uint64_t last_time_ns;       /* of the last profile */
    uint64_t head[KILN_N_HEAD];  /* of the page of rows at hand */
    struct kiln_rows_ref bounds; /* likewise */
    struct kiln_ticks *ticks;    /* scratch */
    uint16_t *cpus;              /* by number of a set, as far as `n_cpus` */
    uint32_t n_cpus, cap_cpus;
    struct kiln_block_row *rows; /* of the profile at hand */
    struct kiln_keyed *keyed, *keyed_scratch;
    uint32_t cap_rows, cap_keyed, cap_keyed_scratch;

    struct kiln_rollup_maker *rollup; /* NULL: none are made */
};

/* The first error sticks; returns true while there is none. */
bool kiln_writer_ok(struct kiln_block_writer *w, int r);

/* Room for at least `need` elements of an array charged to the writer; false (and sticky) if not.
 */
#define WRITER_ROOM(w, array, cap, need)                                                           \
    kiln_writer_ok((w), kiln_grow(&(w)->budget, (void **)&(array), &(cap), (need),                 \
                                  sizeof(*(array)), UINT32_MAX))

/* Makes the arrays of numbers as long as the tables of the dictionary, which may grow between two
 * profiles: compaction brings entries over as it goes. */
void kiln_writer_cover(struct kiln_block_writer *w);

/* The number of an entry, new or old. */
uint32_t kiln_writer_new_number(struct kiln_block_writer *w, struct kiln_numbers *numbers,
                                uint32_t index);
static inline uint32_t kiln_writer_number(struct kiln_block_writer *w, struct kiln_numbers *numbers,
                                          uint32_t index)
{
    uint32_t number = numbers->of[index];

    return number || index == 0 ? number : kiln_writer_new_number(w, numbers, index);
}

/* ---- pages ---- */

/* Appends a number to a column of the page at hand. */
static inline void kiln_writer_put(struct kiln_block_writer *w, uint32_t column, uint64_t number)
{
    struct kiln_column *c = &w->columns[column];

    if (KILN_UNLIKELY(c->n == c->cap) &&
        !kiln_writer_ok(w, kiln_column_grow(c, &w->budget, (uint64_t)c->n + 1)))
        return;
    c->v[c->n++] = number;
}

/* Begins a section; pages are written as entries fill them. */
void kiln_writer_section(struct kiln_block_writer *w, uint32_t kind, uint32_t owner);
/* Ends an entry of the section, and the page if it is full. */
void kiln_writer_entry(struct kiln_block_writer *w);
/* Writes the columns at hand as a page of the section, and forgets them; false on failure. */
bool kiln_writer_page(struct kiln_block_writer *w);
void kiln_writer_clear(struct kiln_block_writer *w);
/* Both, if there is something in them. */
void kiln_writer_flush(struct kiln_block_writer *w);

/* ---- parts ---- */

/* Rows: block_rows.c.  Writes the last page. */
void kiln_writer_end_rows(struct kiln_block_writer *w);
/* Numbers all that rows and heads refer to: block_number.c. */
void kiln_writer_number_all(struct kiln_block_writer *w);
/* Dictionary: block_dict.c, block_code.c, block_stacks.c. */
void kiln_writer_put_dict(struct kiln_block_writer *w);
void kiln_writer_put_code(struct kiln_block_writer *w);
void kiln_writer_put_stacks(struct kiln_block_writer *w);

/* Which origin and moment a profile has: block_origin.c. */
uint32_t kiln_writer_origin(struct kiln_block_writer *w, const struct kiln_block_profile *profile);
uint32_t kiln_writer_moment(struct kiln_block_writer *w, struct kiln_moment moment);

#endif /* KILN_STORE_BLOCK_WRITER_H */
