/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head, then each stack with its values, the largest first, its addresses, and a comment for each
 * frame; at the end where files are mapped:
 *
 *   heap profile: 3: 96 [5: 160] @ heapprofile      in use: objects, bytes [allocated]
 *   3: 96 [5: 160] @ 0x401136 0x40115f
 *   #	0x401136	make_node+0x16	/usr/bin/app
 *
 *   --- mutex:                                       (--- contention: of blocks and event loops)
 *   cycles/second=1000000000
 *   sampling period=1
 *   120000 4 @ 0x401136 ...                          nanoseconds, times
 *
 *   goroutine profile: total 7                       (threadcreate likewise)
 *   7 @ 0x401136 ...
 *
 *   --- Memory map: ---
 *   00401000-00402000 r-xp 00001000 00:00 0 /usr/bin/app
 *
 * "heapprofile" says that the values are whole: pprof would multiply those of "heap/RATE" by what
 * sampling left out, which ours are already.
 *
 * With debug=2 threads are a paragraph for each stack, with their name and how it is known
 * (inproc/keep/ threads_now.h): 2 threads "worker" [waiting]:
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "codec/pprof_rows.h"
#include "inproc/pprof/text.h"

enum { COLUMNS = 4 };

/* A row and what it is sorted by. */
struct order {
    int64_t by;
    uint32_t row;
};

struct text {
    const struct kiln_batch *batch;
    struct kiln_pprof_rows rows;
    struct order *order;
    int64_t totals[COLUMNS];
    struct kiln_buf *out;
};

static int64_t value(const struct text *t, uint32_t row, uint32_t column)
{
    return column < t->rows.n_types ? t->rows.values[(size_t)row * t->rows.n_types + column] : 0;
}

static int compare(const void *a, const void *b)
{
    const struct order *x = a, *y = b;

    if (x->by != y->by)
        return x->by < y->by ? 1 : -1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int sort_rows(struct text *t, uint32_t column)
{
    t->order = kiln_calloc(t->rows.n_rows + 1, sizeof(*t->order));
    if (!t->order)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->rows.n_rows; i++) {
        t->order[i] = (struct order){value(t, i, column), i};
        for (uint32_t c = 0; c < COLUMNS; c++)
            t->totals[c] += value(t, i, c);
    }
    qsort(t->order, t->rows.n_rows, sizeof(*t->order), compare);
    return 0;
}

/* ---- stacks ---- */

/* The address as the processor has it: behind a call, which locations name by its last byte. */
static uint64_t address_of(const struct kiln_dict *d, struct kiln_range stack, uint32_t i)
{
    return d->locations[d->frames[stack.first + i]].address + (i > 0);
}

static void put_addresses(struct text *t, uint32_t row)
{
    const struct kiln_dict *d = &t->batch->dict;
    struct kiln_range stack = d->stacks[t->rows.rows[row].stack];

    kiln_buf_puts(t->out, " @");
    for (uint32_t i = 0; i < stack.n; i++)
        kiln_buf_printf(t->out, " 0x%" PRIx64, address_of(d, stack, i));
    kiln_buf_putc(t->out, '\n');
}

static void put_name(struct text *t, const struct kiln_location *location, uint32_t line)
{
    const struct kiln_dict *d = &t->batch->dict;
    struct kiln_str name = KILN_STR_NONE;

    if (line < location->n)
        name = d->strings[d->functions[d->lines[location->first + line].function].name];
    if (name.len)
        kiln_buf_add_str(t->out, name);
    else
        kiln_buf_putc(t->out, '?');
}

/* "+0x16 /usr/bin/app": where in the file of the mapping. */
static void put_place(struct text *t, const struct kiln_location *location, const char *before)
{
    const struct kiln_dict *d = &t->batch->dict;
    const struct kiln_mapping *m = &d->mappings[location->mapping];

    if (!location->mapping)
        return;
    kiln_buf_puts(t->out, before);
    kiln_buf_add_utf8(t->out, d->strings[m->filename]);
    kiln_buf_printf(t->out, "+0x%" PRIx64, location->address - m->start + m->offset);
}

/* A comment, {"key":"value"}: texts alone. */
static void put_labels(struct text *t, uint32_t row)
{
    const struct kiln_dict *d = &t->batch->dict;
    struct kiln_range set = d->sets[t->rows.rows[row].attrs];
    struct kiln_json_out json;

    if (!set.n)
        return;
    kiln_buf_puts(t->out, "# labels: ");
    kiln_json_out_init(&json, t->out, 0);
    kiln_json_put_object(&json);
    for (uint32_t i = 0; i < set.n; i++) {
        const struct kiln_attr *attr = &d->attrs[d->members[set.first + i]];

        if (attr->value.kind != KILN_VALUE_STRING)
            continue;
        kiln_json_put_name_str(&json, d->strings[attr->key]);
        kiln_json_put_str(&json, d->strings[attr->value.str]);
    }
    kiln_json_end_object(&json);
    kiln_buf_putc(t->out, '\n');
}

static void put_frames(struct text *t, uint32_t row)
{
    const struct kiln_dict *d = &t->batch->dict;
    struct kiln_range stack = d->stacks[t->rows.rows[row].stack];

    put_labels(t, row);
    for (uint32_t i = 0; i < stack.n; i++) {
        const struct kiln_location *l = &d->locations[d->frames[stack.first + i]];

        for (uint32_t k = 0; k < (l->n ? l->n : 1); k++) {
            kiln_buf_printf(t->out, "#\t0x%" PRIx64 "\t", address_of(d, stack, i));
            put_name(t, l, k);
            put_place(t, l, "\t");
            kiln_buf_putc(t->out, '\n');
        }
    }
    kiln_buf_putc(t->out, '\n');
}

static void put_map(struct text *t)
{
    const struct kiln_dict *d = &t->batch->dict;

    kiln_buf_puts(t->out, "--- Memory map: ---\n");
    for (uint32_t i = 1; i < d->n_mappings; i++) {
        const struct kiln_mapping *m = &d->mappings[i];

        kiln_buf_printf(t->out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ", m->start,
                        m->limit, m->offset);
        kiln_buf_add_utf8(t->out, d->strings[m->filename]);
        kiln_buf_putc(t->out, '\n');
    }
}

/* ---- the forms ---- */

/* Columns are those of Go: alloc_objects, alloc_space, inuse_objects, inuse_space. */
static void put_heap_values(struct text *t, const int64_t values[COLUMNS])
{
    kiln_buf_printf(t->out, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "]", values[2],
                    values[3], values[0], values[1]);
}

static void put_heap(struct text *t)
{
    kiln_buf_puts(t->out, "heap profile: ");
    put_heap_values(t, t->totals);
    kiln_buf_puts(t->out, " @ heapprofile\n");
    for (uint32_t i = 0; i < t->rows.n_rows && !t->out->error; i++) {
        uint32_t row = t->order[i].row;
        int64_t values[COLUMNS];

        for (uint32_t c = 0; c < COLUMNS; c++)
            values[c] = value(t, row, c);
        put_heap_values(t, values);
        put_addresses(t, row);
        put_frames(t, row);
    }
}

static void put_delays(struct text *t, bool mutex)
{
    kiln_buf_puts(t->out, mutex ? "--- mutex:\n" : "--- contention:\n");
    kiln_buf_puts(t->out, "cycles/second=1000000000\nsampling period=1\n");
    for (uint32_t i = 0; i < t->rows.n_rows && !t->out->error; i++) {
        uint32_t row = t->order[i].row;

        kiln_buf_printf(t->out, "%" PRId64 " %" PRId64, value(t, row, t->rows.n_types - 1),
                        t->rows.n_types > 1 ? value(t, row, 0) : 1);
        put_addresses(t, row);
        put_frames(t, row);
    }
}

static void put_counts(struct text *t, const char *name)
{
    kiln_buf_printf(t->out, "%s profile: total %" PRId64 "\n", name, t->totals[0]);
    for (uint32_t i = 0; i < t->rows.n_rows && !t->out->error; i++) {
        uint32_t row = t->order[i].row;

        kiln_buf_add_i64(t->out, value(t, row, 0));
        put_addresses(t, row);
        put_frames(t, row);
    }
}

static void put_thread(struct text *t, uint32_t row)
{
    const struct kiln_dict *d = &t->batch->dict;
    struct kiln_range stack = d->stacks[t->rows.rows[row].stack];
    uint32_t attrs = t->rows.rows[row].attrs;
    struct kiln_str name = kiln_set_text(t->batch, attrs, KILN_STR("thread.name"));
    struct kiln_str seen = kiln_set_text(t->batch, attrs, KILN_STR("kiln.thread.seen"));
    int64_t n = value(t, row, 0);

    kiln_buf_printf(t->out, "%" PRId64 " thread%s", n, n == 1 ? "" : "s");
    if (name.len)
        kiln_buf_printf(t->out, " \"%.*s\"", KILN_STR_ARG(name));
    if (seen.len)
        kiln_buf_printf(t->out, " [%.*s]", KILN_STR_ARG(seen));
    kiln_buf_puts(t->out, ":\n");
    for (uint32_t i = 0; i < stack.n; i++) {
        const struct kiln_location *l = &d->locations[d->frames[stack.first + i]];

        for (uint32_t k = 0; k < (l->n ? l->n : 1); k++) {
            put_name(t, l, k);
            kiln_buf_printf(t->out, "\n\t0x%" PRIx64, address_of(d, stack, i));
            put_place(t, l, " ");
            kiln_buf_putc(t->out, '\n');
        }
    }
    kiln_buf_putc(t->out, '\n');
}

static void put_all(struct text *t, enum kiln_in_profile which, int64_t debug)
{
    if (which == KILN_IN_PROFILE_THREADS && debug >= 2) {
        for (uint32_t i = 0; i < t->rows.n_rows && !t->out->error; i++)
            put_thread(t, t->order[i].row);
        return;
    }
    if (which == KILN_IN_PROFILE_HEAP || which == KILN_IN_PROFILE_ALLOCS)
        put_heap(t);
    else if (which == KILN_IN_PROFILE_THREADS)
        put_counts(t, "goroutine");
    else if (which == KILN_IN_PROFILE_CREATE)
        put_counts(t, "threadcreate");
    else
        put_delays(t, which == KILN_IN_PROFILE_MUTEX || which == KILN_IN_PROFILE_HOLDERS);
    put_map(t);
}

int kiln_in_text(enum kiln_in_profile which, const struct kiln_batch *batch, int64_t debug,
                 struct kiln_buf *out)
{
    struct text t = {.batch = batch, .out = out};
    struct kiln_pprof_losses losses = {0};
    int r = kiln_pprof_rows_init(&t.rows, batch, &losses);

    if (r < 0)
        return r;
    r = sort_rows(&t, t.rows.n_types ? t.rows.n_types - 1 : 0);
    if (r == 0)
        put_all(&t, which, debug);
    kiln_free(t.order);
    kiln_pprof_rows_done(&t.rows);
    return r < 0 ? r : out->error;
}
