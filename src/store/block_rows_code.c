/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of a page of rows.  Plain numbers are what the words say; on disk they are
 *
 *   series   difference to the profile before
 *   origin   as recently seen (kiln_recent_encode)
 *   moment   0: time and duration are in `extra`; 1: the next new one; 2: that of the profile
 * before; from 3 on: difference, zigzag, to the last that was told like this shape    as it is
 *   count    rows of the profile
 *   extra    for each profile that needs it: rows of the shapes 1, 2, 3 if mixed; time, duration;
 *            bytes of the payload
 *   stack    see enum kiln_stack_way
 *   attrs    as recently seen
 *   link     as recently seen
 *   value    divided by the greatest divisor all have in common; zigzag if one is negative
 *   time     difference, zigzag, to the row before in the profile, or to the profile's time; or
 *   tick     beats (store/ticks.h) since the profile's time, as zigzag difference to the row before
 *   off      from that beat, zigzag
 */
#include "store/block_rows.h"

/* ---- walking ---- */

int kiln_rows_next(struct kiln_rows_cursor *c, struct kiln_rows_profile *ret)
{
    const struct kiln_column *col = c->columns;
    const struct kiln_column *extra = &col[KILN_ROWS_EXTRA];
    struct kiln_rows_profile p = {.row = c->row, .value = c->value, .time = c->time};
    uint64_t moment, shape, all = 0;
    uint32_t need;

    if (c->profile == col[KILN_ROWS_SHAPE].n)
        return 0;
    moment = col[KILN_ROWS_MOMENT].v[c->profile];
    p.shape = (uint32_t)col[KILN_ROWS_SHAPE].v[c->profile];
    shape = p.shape & KILN_SHAPE_MASK;
    need = (shape ? 0 : 3) + (moment ? 0 : 2) + (p.shape & KILN_SHAPE_HAS_PAYLOAD ? 1 : 0);
    if (need > extra->n - c->extra)
        return KILN_E_CORRUPT;
    p.of[shape] = shape ? col[KILN_ROWS_COUNT].v[c->profile] : 0;
    for (uint32_t i = 1; i <= 3; i++) {
        p.of[i] = shape ? p.of[i] : extra->v[c->extra++];
        if (p.of[i] > col[KILN_ROWS_STACK].n - c->row - all)
            return KILN_E_CORRUPT;
        all += p.of[i];
    }
    if (all != col[KILN_ROWS_COUNT].v[c->profile] ||
        p.of[1] + p.of[3] > col[KILN_ROWS_VALUE].n - c->value ||
        p.of[2] + p.of[3] > col[KILN_ROWS_TIME].n - c->time)
        return KILN_E_CORRUPT;
    p.moment = moment ? c->tables->moments[moment - 1]
                      : (struct kiln_moment){extra->v[c->extra], extra->v[c->extra + 1]};
    c->extra += moment ? 0 : 2;
    p.id = c->id;
    p.payload = c->payload;
    p.payload_len = p.shape & KILN_SHAPE_HAS_PAYLOAD ? extra->v[c->extra++] : 0;
    c->id += p.shape & KILN_SHAPE_HAS_ID ? 16 : 0;
    if (p.payload_len > UINT32_MAX)
        return KILN_E_CORRUPT;
    c->payload += p.payload_len;
    c->row += (uint32_t)all;
    c->value += (uint32_t)(p.of[1] + p.of[3]);
    c->time += (uint32_t)(p.of[2] + p.of[3]);
    c->profile++;
    *ret = p;
    return 1;
}

/* ---- writing ---- */

static void encode_recent(struct kiln_column *c, uint64_t before)
{
    uint32_t next = (uint32_t)before;

    for (uint32_t i = 0; i < c->n; i++)
        c->v[i] = kiln_recent_encode((uint32_t)c->v[i], &next);
}

static void encode_differences(struct kiln_column *c)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        uint64_t v = c->v[i];

        c->v[i] = v - last;
        last = v;
    }
}

static void encode_moments(struct kiln_column *c, uint64_t before)
{
    uint64_t next = before, last = 0, told = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        uint64_t v = c->v[i];

        if (v == 0) {
            continue;
        } else if (v == next + 1) {
            next++;
            c->v[i] = 1;
        } else if (v == last) {
            c->v[i] = 2;
        } else {
            c->v[i] = 3 + kiln_zigzag_diff(v, told);
            told = v;
        }
        last = v;
    }
}

static void encode_stacks(struct kiln_block_writer *w)
{
    struct kiln_column *c = &w->columns[KILN_ROWS_STACK];
    const struct kiln_column *counts = &w->columns[KILN_ROWS_COUNT];
    uint64_t next = w->head[KILN_HEAD_STACKS];
    bool ascending = w->columns[KILN_ROWS_TIME].n == 0;
    uint32_t at = 0;

    w->head[KILN_HEAD_STACK_WAY] = ascending ? KILN_STACKS_ASCENDING : KILN_STACKS_BY_NUMBER;
    for (uint32_t p = 0; ascending && p < counts->n; p++) {
        encode_differences(&(struct kiln_column){.v = c->v + at, .n = (uint32_t)counts->v[p]});
        at += (uint32_t)counts->v[p];
    }
    for (uint32_t i = 0; !ascending && i < c->n; i++) {
        if (c->v[i] == next + 1) {
            next++;
            c->v[i] = 0;
        }
    }
}

static uint64_t magnitude(uint64_t v)
{
    return (int64_t)v < 0 ? 0 - v : v;
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static void encode_values(struct kiln_block_writer *w)
{
    struct kiln_column *c = &w->columns[KILN_ROWS_VALUE];
    uint64_t common = 0;
    bool has_sign = false;

    for (uint32_t i = 0; i < c->n; i++) {
        common = common == 1 ? 1 : divisor(magnitude(c->v[i]), common);
        has_sign |= (int64_t)c->v[i] < 0;
    }
    w->head[KILN_HEAD_DIVISOR] = common;
    w->head[KILN_HEAD_SIGNED] = has_sign;
    for (uint32_t i = 0; common && i < c->n; i++) {
        uint64_t quotient = common == 1 ? magnitude(c->v[i]) : magnitude(c->v[i]) / common;

        if (has_sign)
            quotient = (int64_t)c->v[i] < 0 ? 2 * quotient - 1 : 2 * quotient;
        c->v[i] = quotient;
    }
}

/* ---- times ---- */

uint16_t kiln_rows_cpu(const struct kiln_dict *dict, uint32_t set)
{
    struct kiln_range range = dict->sets[set];

    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_attr *attr = &dict->attrs[dict->members[range.first + i]];

        if (attr->value.kind == KILN_VALUE_INT &&
            kiln_str_eq(dict->strings[attr->key], KILN_STR("cpu.logical_number")))
            return (uint16_t)(attr->value.bits % KILN_TICKS_CPUS);
    }
    return 0;
}

/* Learns the processors of the sets that are new since the last page. */
static bool learn_cpus(struct kiln_block_writer *w)
{
    if (!WRITER_ROOM(w, w->cpus, w->cap_cpus, (uint64_t)w->sets.n + 1))
        return false;
    for (; w->n_cpus <= w->sets.n; w->n_cpus++)
        w->cpus[w->n_cpus] =
            w->n_cpus ? kiln_rows_cpu(&w->dict->dict, w->sets.order[w->n_cpus - 1]) : 0;
    return true;
}

static uint32_t width(uint64_t v)
{
    return 64u - (uint32_t)__builtin_clzll(v | 1);
}

/* Times as ticks, in their two columns.  Returns their bits. */
static uint64_t encode_ticks(struct kiln_block_writer *w, const struct kiln_rows_tables *tables)
{
    const struct kiln_column *times = &w->columns[KILN_ROWS_TIME];
    struct kiln_rows_cursor cursor = {.columns = w->columns, .tables = tables};
    struct kiln_rows_profile p;
    uint64_t bits = 0;

    kiln_ticks_begin(tables->ticks, w->head[KILN_HEAD_PERIOD]);
    while (kiln_rows_next(&cursor, &p) > 0) {
        const uint64_t *sets = w->columns[KILN_ROWS_ATTRS].v + p.row + p.of[1];
        uint64_t last = 0;

        for (uint32_t i = p.time; i < cursor.time; i++) {
            struct kiln_tick t = kiln_ticks_encode(tables->ticks, tables->cpus[sets[i - p.time]],
                                                   p.moment.time_ns, times->v[i]);
            uint64_t tick = kiln_zigzag_diff(t.tick, last), off = kiln_zigzag((int64_t)t.off);

            kiln_writer_put(w, KILN_ROWS_TICK, tick);
            kiln_writer_put(w, KILN_ROWS_OFF, off);
            bits += width(tick) + width(off);
            last = t.tick;
        }
    }
    return bits;
}

/* Times as differences, in place.  Returns their bits. */
static uint64_t encode_plain(struct kiln_block_writer *w, const struct kiln_rows_tables *tables)
{
    struct kiln_column *c = &w->columns[KILN_ROWS_TIME];
    struct kiln_rows_cursor cursor = {.columns = w->columns, .tables = tables};
    struct kiln_rows_profile p;
    uint64_t bits = 0;

    while (kiln_rows_next(&cursor, &p) > 0) {
        uint64_t last = p.moment.time_ns;

        for (uint32_t i = p.time; i < cursor.time; i++) {
            uint64_t v = c->v[i];

            c->v[i] = kiln_zigzag_diff(v, last);
            bits += width(c->v[i]);
            last = v;
        }
    }
    return bits;
}

/* Both ways are tried; the shorter one stays. */
static void encode_times(struct kiln_block_writer *w)
{
    struct kiln_rows_tables tables = {.moments = w->moments, .cpus = w->cpus, .ticks = w->ticks};
    uint64_t ticks = UINT64_MAX;

    w->head[KILN_HEAD_TIME_WAY] = KILN_TIMES_PLAIN;
    if (w->columns[KILN_ROWS_TIME].n == 0)
        return;
    if (w->head[KILN_HEAD_PERIOD])
        ticks = encode_ticks(w, &tables);
    if (encode_plain(w, &tables) <= ticks) {
        w->columns[KILN_ROWS_TICK].n = w->columns[KILN_ROWS_OFF].n = 0;
        return;
    }
    w->head[KILN_HEAD_TIME_WAY] = KILN_TIMES_TICKS;
    w->columns[KILN_ROWS_TIME].n = 0;
}

/* ---- a page ---- */

/* Shares the bytes of a page among its series, by their rows (and one for each profile). */
static void share_bytes(struct kiln_block_writer *w, uint64_t bytes)
{
    const struct kiln_column *series = &w->columns[KILN_ROWS_SERIES];
    const struct kiln_column *counts = &w->columns[KILN_ROWS_COUNT];
    uint64_t all = (uint64_t)w->columns[KILN_ROWS_STACK].n + series->n, done = 0, given = 0;

    for (uint32_t i = 0, at = 0; i < series->n; i++) {
        uint64_t upto;

        at += (uint32_t)series->v[i];
        done += counts->v[i] + 1;
        upto = (uint64_t)((double)bytes * ((double)done / (double)all));
        w->footer.series[at].bytes += upto - given;
        given = upto;
    }
}

void kiln_rows_flush(struct kiln_block_writer *w)
{
    struct kiln_footer *f = &w->footer;
    uint64_t start = w->offset;

    if (w->n_entries == 0 || w->error ||
        !WRITER_ROOM(w, f->rows, f->cap_rows, (uint64_t)f->n_rows + 1) || !learn_cpus(w))
        return;
    encode_stacks(w);
    encode_times(w);
    encode_values(w);
    encode_recent(&w->columns[KILN_ROWS_ATTRS], w->head[KILN_HEAD_SETS]);
    encode_recent(&w->columns[KILN_ROWS_LINK], w->head[KILN_HEAD_LINKS]);
    encode_recent(&w->columns[KILN_ROWS_ORIGIN], w->head[KILN_HEAD_ORIGINS]);
    encode_moments(&w->columns[KILN_ROWS_MOMENT], w->head[KILN_HEAD_MOMENTS]);
    encode_differences(&w->columns[KILN_ROWS_SERIES]);
    for (uint32_t i = 0; i < KILN_N_HEAD; i++)
        kiln_writer_put(w, KILN_ROWS_HEAD, w->head[i]);
    if (!kiln_writer_page(w))
        return;
    f->rows[f->n_rows++] = w->bounds;
    share_bytes(w, w->offset - start);
    kiln_writer_clear(w);
}

/* ---- reading ---- */

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "%s", what);
}

static bool decode_recent(struct kiln_column *c, uint64_t before, uint64_t limit)
{
    uint32_t next = (uint32_t)before;

    if (before > limit)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t number = 0;

        if (!kiln_recent_decode(c->v[i], &next, &number) || number > limit)
            return false;
        c->v[i] = number;
    }
    return true;
}

/* Adds up differences; false if a number gets past the limit. */
static bool decode_differences(uint64_t *v, uint64_t n, uint64_t limit)
{
    uint64_t last = 0, large = 0;

    /* None is larger than a limit that itself is far from wrapping: looking once is enough. */
    if (limit > UINT32_MAX || n > UINT32_MAX)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        large |= v[i];
        last += v[i];
        v[i] = last;
    }
    return large <= UINT32_MAX && last <= limit;
}

static bool decode_moments(struct kiln_column *c, uint64_t before, uint64_t limit)
{
    uint64_t next = before, last = 0, told = 0;

    if (before > limit)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->v[i] == 0)
            continue;
        if (c->v[i] == 1)
            last = ++next;
        else if (c->v[i] > 2)
            last = told = kiln_zigzag_add(told, c->v[i] - 3);
        if (last == 0 || last > limit)
            return false;
        c->v[i] = last;
    }
    return true;
}

static bool decode_stacks(struct kiln_column *columns, uint64_t limit)
{
    const uint64_t *head = columns[KILN_ROWS_HEAD].v;
    struct kiln_column *c = &columns[KILN_ROWS_STACK];
    const struct kiln_column *counts = &columns[KILN_ROWS_COUNT];
    uint64_t next = head[KILN_HEAD_STACKS], at = 0;

    if (head[KILN_HEAD_STACK_WAY] > KILN_STACKS_ASCENDING || next > limit)
        return false;
    if (head[KILN_HEAD_STACK_WAY] == KILN_STACKS_ASCENDING) {
        for (uint32_t p = 0; p < counts->n; p++) {
            if (counts->v[p] > c->n - at || !decode_differences(c->v + at, counts->v[p], limit) ||
                (counts->v[p] && c->v[at] == 0)) /* the least of them */
                return false;
            at += counts->v[p];
        }
        return at == c->n;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->v[i] == 0)
            c->v[i] = ++next;
        if (c->v[i] > limit)
            return false;
    }
    return true;
}

static void decode_values(struct kiln_column *columns)
{
    const uint64_t *head = columns[KILN_ROWS_HEAD].v;
    struct kiln_column *c = &columns[KILN_ROWS_VALUE];
    uint64_t common = head[KILN_HEAD_DIVISOR];

    if (head[KILN_HEAD_SIGNED]) {
        for (uint32_t i = 0; i < c->n; i++)
            c->v[i] = common * (uint64_t)kiln_unzigzag(c->v[i]);
    } else if (common != 1) {
        for (uint32_t i = 0; i < c->n; i++)
            c->v[i] *= common;
    }
}

/* Ticks become times, in the column of times. */
static int decode_ticks(struct kiln_column *columns, const struct kiln_rows_tables *tables,
                        struct kiln_budget *budget, struct kiln_err *err)
{
    struct kiln_column *c = &columns[KILN_ROWS_TIME];
    const struct kiln_column *ticks = &columns[KILN_ROWS_TICK], *offs = &columns[KILN_ROWS_OFF];
    struct kiln_rows_cursor cursor = {.columns = columns, .tables = tables};
    uint64_t period = columns[KILN_ROWS_HEAD].v[KILN_HEAD_PERIOD];
    struct kiln_rows_profile p;
    int r;

    if (period == 0 || period > INT64_MAX || c->n || offs->n != ticks->n)
        return damaged(err, "its ticks do not fit together");
    r = kiln_column_grow(c, budget, (uint64_t)ticks->n + 1);
    if (r < 0)
        return r;
    c->n = ticks->n;
    kiln_ticks_begin(tables->ticks, period);
    while ((r = kiln_rows_next(&cursor, &p)) > 0) {
        const uint64_t *sets = columns[KILN_ROWS_ATTRS].v + p.row + p.of[1];
        uint64_t last = 0;

        for (uint32_t i = p.time; i < cursor.time; i++) {
            last = kiln_zigzag_add(last, ticks->v[i]);
            c->v[i] =
                kiln_ticks_decode(tables->ticks, tables->cpus[sets[i - p.time]], p.moment.time_ns,
                                  (struct kiln_tick){last, (uint64_t)kiln_unzigzag(offs->v[i])});
        }
    }
    return r < 0 ? damaged(err, "the columns of its rows do not fit together") : 0;
}

static int decode_plain(struct kiln_column *columns, const struct kiln_rows_tables *tables,
                        struct kiln_err *err)
{
    struct kiln_column *c = &columns[KILN_ROWS_TIME];
    struct kiln_rows_cursor cursor = {.columns = columns, .tables = tables};
    struct kiln_rows_profile p;
    int r;

    if (columns[KILN_ROWS_TICK].n || columns[KILN_ROWS_OFF].n)
        return damaged(err, "there are ticks that belong to no time");
    while ((r = kiln_rows_next(&cursor, &p)) > 0) {
        uint64_t last = p.moment.time_ns;

        for (uint32_t i = p.time; i < cursor.time; i++)
            c->v[i] = last = kiln_zigzag_add(last, c->v[i]);
    }
    return r < 0 ? damaged(err, "the columns of its rows do not fit together") : 0;
}

static int decode_times(struct kiln_column *columns, const struct kiln_rows_tables *tables,
                        struct kiln_budget *budget, struct kiln_err *err)
{
    switch (columns[KILN_ROWS_HEAD].v[KILN_HEAD_TIME_WAY]) {
    case KILN_TIMES_PLAIN:
        return decode_plain(columns, tables, err);
    case KILN_TIMES_TICKS:
        return decode_ticks(columns, tables, budget, err);
    default:
        return damaged(err, "times are written in an unknown way");
    }
}

/* Whether the profiles use up all columns, and no more. */
static int check_all_used(const struct kiln_column *columns, const struct kiln_rows_tables *tables,
                          struct kiln_err *err)
{
    struct kiln_rows_cursor cursor = {.columns = columns, .tables = tables};
    struct kiln_rows_profile p;
    int r;

    while ((r = kiln_rows_next(&cursor, &p)) > 0)
        ;
    if (r < 0 || cursor.row != columns[KILN_ROWS_STACK].n ||
        cursor.time != columns[KILN_ROWS_TIME].n || cursor.value != columns[KILN_ROWS_VALUE].n ||
        cursor.extra != columns[KILN_ROWS_EXTRA].n)
        return damaged(err, "the columns of its rows do not fit together");
    return 0;
}

static bool lengths_fit(const struct kiln_column *columns, uint64_t n_profiles)
{
    uint32_t n_rows = columns[KILN_ROWS_STACK].n;

    for (uint32_t i = KILN_ROWS_SERIES; i <= KILN_ROWS_COUNT; i++) {
        if (columns[i].n != n_profiles)
            return false;
    }
    for (uint32_t i = 0; i < n_profiles; i++) {
        if (columns[KILN_ROWS_SHAPE].v[i] >= KILN_SHAPE_LIMIT)
            return false;
    }
    return columns[KILN_ROWS_HEAD].n == KILN_N_HEAD && columns[KILN_ROWS_ATTRS].n == n_rows &&
           columns[KILN_ROWS_LINK].n == n_rows;
}

static bool is_skipped(const struct kiln_rows_tables *tables, uint32_t column)
{
    return tables->skipped >> column & 1;
}

int kiln_rows_decode(struct kiln_column *columns, uint64_t n_profiles,
                     const struct kiln_rows_tables *tables, struct kiln_budget *budget,
                     struct kiln_err *err)
{
    const uint64_t *head = columns[KILN_ROWS_HEAD].v;
    int r;

    if (!lengths_fit(columns, n_profiles))
        return damaged(err, "a column of its rows has a wrong length");
    if (!decode_differences(columns[KILN_ROWS_SERIES].v, n_profiles, tables->n_series - 1))
        return damaged(err, "a profile has no series");
    if (!decode_recent(&columns[KILN_ROWS_ORIGIN], head[KILN_HEAD_ORIGINS], tables->n_origins))
        return damaged(err, "a profile has no origin");
    if (!decode_moments(&columns[KILN_ROWS_MOMENT], head[KILN_HEAD_MOMENTS], tables->n_moments))
        return damaged(err, "a profile has no time");
    if (!decode_stacks(columns, tables->n_stacks))
        return damaged(err, "a row has no stack");
    if ((!is_skipped(tables, KILN_ROWS_ATTRS) &&
         !decode_recent(&columns[KILN_ROWS_ATTRS], head[KILN_HEAD_SETS], tables->n_sets)) ||
        (!is_skipped(tables, KILN_ROWS_LINK) &&
         !decode_recent(&columns[KILN_ROWS_LINK], head[KILN_HEAD_LINKS], tables->n_links)))
        return damaged(err, "a row has attributes or a link that are not there");
    decode_values(columns);
    if (is_skipped(tables, KILN_ROWS_TIME)) {
        columns[KILN_ROWS_TIME].n += columns[KILN_ROWS_TICK].n;
        return check_all_used(columns, tables, err);
    }
    r = decode_times(columns, tables, budget, err);
    return r < 0 ? r : check_all_used(columns, tables, err);
}

/* ---- times alone ---- */

/* The time of each profile, where its moment is a number of the clock, or in the column EXTRA. */
static int find_times(const struct kiln_column *columns, uint32_t n, const uint64_t *clock,
                      uint64_t *ret_times)
{
    const struct kiln_column *extra = &columns[KILN_ROWS_EXTRA];
    uint32_t at = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t moment = columns[KILN_ROWS_MOMENT].v[i], shape = columns[KILN_ROWS_SHAPE].v[i];
        uint32_t sizes = shape & KILN_SHAPE_MASK ? 0 : 3, own = moment ? 0 : 2;
        uint32_t payload = shape & KILN_SHAPE_HAS_PAYLOAD ? 1 : 0;

        if (shape >= KILN_SHAPE_LIMIT || sizes + own + payload > extra->n - at)
            return KILN_E_CORRUPT;
        ret_times[i] = moment ? clock[moment - 1] : extra->v[at + sizes];
        at += sizes + own + payload;
    }
    return 0;
}

int kiln_rows_decode_times(struct kiln_column *columns, uint64_t n_profiles,
                           const struct kiln_rows_clock *clock, uint64_t *ret_times)
{
    const struct kiln_column *head = &columns[KILN_ROWS_HEAD];

    if (head->n != KILN_N_HEAD || columns[KILN_ROWS_SERIES].n != n_profiles ||
        columns[KILN_ROWS_MOMENT].n != n_profiles || columns[KILN_ROWS_SHAPE].n != n_profiles)
        return KILN_E_CORRUPT;
    if (!decode_differences(columns[KILN_ROWS_SERIES].v, n_profiles, clock->n_series - 1) ||
        !decode_moments(&columns[KILN_ROWS_MOMENT], head->v[KILN_HEAD_MOMENTS], clock->n))
        return KILN_E_CORRUPT;
    return find_times(columns, (uint32_t)n_profiles, clock->times, ret_times);
}
