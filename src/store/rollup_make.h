/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup_make - roll-ups in the making, inside a block writer.
 *
 * While profiles pass, the sums of stacks are kept by series and hour (rollup_take.c); when the
 * stacks of a service are sorted and written, its roll-ups are made of them (rollup_make.c, with
 * names of rollup_name.c, trees of rollup_tree.c) and written (rollup_write.c).
 *
 * A roll-up is worth having, never needed: where memory ends, a service has none, and the block is
 * written all the same.
 *
 * Threads: as the writer.
 */
#ifndef KILN_STORE_ROLLUP_MAKE_H
#define KILN_STORE_ROLLUP_MAKE_H

#include "store/block_writer.h"
#include "store/rollup.h"

#define KILN_ROLLUP_HOURS_EACH 48u /* that one profile may touch */

/* What stands behind sums. */
struct kiln_rollup_basis {
    uint64_t first_ns, last_ns, n_profiles, n_continued, n_rows, n_time_set, covered_ns;
    double count;
};

/* The sums of the stacks of one series in one hour, or in a part of it. */
struct kiln_rollup_run {
    uint64_t hour;
    uint32_t series;  /* of the block */
    uint32_t n;       /* stacks */
    int64_t scale;    /* of its values */
    uint64_t divisor; /* that all values have in common, before the scale; 0: all are 0 */
    size_t at;        /* into the bytes: difference of stack numbers (zigzag) and value, varints */
    struct kiln_rollup_basis basis;
    bool bad; /* has negative values, or sums that are too large: nothing is made of the series */
};

struct kiln_rollup_maker {
    struct kiln_budget budget;
    struct kiln_rollup_run *runs;
    uint32_t n_runs, cap_runs;
    struct kiln_buf bytes;
    uint32_t *starts; /* by service: its first run; and one more for the end */
    uint32_t n_starts, cap_starts;
    uint64_t service_rows;
    size_t service_bytes;
    bool off; /* there was no memory for this service */

    /* the run at hand */
    struct kiln_rollup_run run;
    bool is_open;
    int64_t *sums;     /* by stack number - 1 */
    uint32_t *touched; /* stack numbers - 1 whose sums are not 0 */
    uint32_t n_touched, cap_sums, cap_touched;
    struct kiln_str type; /* of the series at hand */
    uint64_t covered_to;  /* by its profiles so far */
    uint32_t series;

    uint8_t *used; /* by location of the dictionary: stacks of the service at hand have it */
    uint32_t cap_used;
};

KILN_CHECK int kiln_rollup_maker_new(size_t memory_bytes, struct kiln_rollup_maker **ret_maker);
void kiln_rollup_maker_free(struct kiln_rollup_maker *m);

/* A profile that was written; all of it lies in first_ns <= t <= last_ns. */
void kiln_rollup_take(struct kiln_block_writer *w, const struct kiln_block_profile *profile,
                      uint64_t first_ns, uint64_t last_ns);
/* After the last one. */
void kiln_rollup_end(struct kiln_block_writer *w);

/* Before the stacks of a service are written: where to mark their locations; NULL: need not be. */
uint8_t *kiln_rollup_expect(struct kiln_block_writer *w, uint32_t service);
/* Makes and writes the roll-ups of a service, right after its stacks and ranks: w->keyed has the
 * rank of each stack number, and the number of each rank. */
void kiln_rollup_make(struct kiln_block_writer *w, uint32_t service);

/* ---- the parts of making ---- */

/* What the frames of a service are called. */
struct kiln_rollup_naming {
    struct kiln_budget *budget;
    struct kiln_arena arena; /* texts of frames without a function */
    uint32_t *first; /* by location of the dictionary: 1 and its place in the pool; 0: none */
    uint32_t *pool;  /* names, from the outermost in; the last one of a location: + LAST */
    struct kiln_rollup_name *names;
    struct kiln_str *texts;
    struct kiln_intern index;
    uint32_t n, n_pool, cap_first, cap_pool, cap_names, cap_texts;
    bool lacks_symbols;
};
#define KILN_ROLLUP_LAST (1u << 31)

void kiln_rollup_naming_done(struct kiln_rollup_naming *naming);

/* Stacks that have something in a span, in their sorted order. */
struct kiln_rollup_active {
    uint32_t *stacks; /* of the dictionary */
    uint32_t *shared; /* locations like the one before, from the root */
    int64_t *before;  /* the sum of those before; and one more for the sum of all */
    uint32_t n, cap_stacks, cap_shared, cap_before;
};

/* A tree in the making: nodes in preorder. */
struct kiln_rollup_drawn {
    uint32_t *names;
    uint32_t *ups; /* levels to go up from the node before, to the one whose child this is */
    int64_t *self, *folded, *total;
    uint32_t *order; /* the largest first */
    uint32_t n, cap_names, cap_ups, cap_self, cap_folded, cap_total, cap_order;
    int64_t error_bound;
};
KILN_CHECK int kiln_rollup_draw(const struct kiln_dict *dict,
                                const struct kiln_rollup_naming *naming,
                                const struct kiln_rollup_active *active, uint32_t nodes_max,
                                struct kiln_rollup_drawn *drawn);
/* Leaves the `n` largest nodes of a tree. */
KILN_CHECK int kiln_rollup_prune(struct kiln_rollup_drawn *drawn, uint32_t n,
                                 struct kiln_budget *budget);
void kiln_rollup_drawn_done(struct kiln_rollup_drawn *drawn, struct kiln_budget *budget);

static inline void kiln_rollup_put_varint(struct kiln_buf *out, uint64_t v)
{
    char *at = kiln_buf_reserve(out, 10);

    if (!at)
        return;
    for (; v >= 0x80; v >>= 7, out->len++)
        *at++ = (char)(v | 0x80);
    *at = (char)v;
    out->len++;
}

static inline uint64_t kiln_rollup_get_varint(const unsigned char **at)
{
    uint64_t v = 0;

    for (unsigned shift = 0;; shift += 7) {
        unsigned char c = *(*at)++;

        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return v;
    }
}

static inline uint64_t kiln_rollup_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

#endif /* KILN_STORE_ROLLUP_MAKE_H */
