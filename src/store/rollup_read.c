/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll-ups as they are read (rollup_write.c has their columns): groups when they are opened, the
 * rest when it is asked for.  Every number is held against its table before it is used.
 */
#include <errno.h>

#include "base/sat.h"
#include "store/block_int.h"
#include "store/rollup.h"

#define N_COLUMNS 13u
#define N_HEAD    7u
#define TREES_MAX (3u * KILN_N_ROLLUP_LEVELS * KILN_ROLLUP_SPANS_MAX)

struct kiln_rollup {
    struct kiln_block *block; /* a reference */
    struct kiln_budget *budget;
    struct kiln_arena arena;
    struct kiln_page_in in;
    struct kiln_column columns[N_COLUMNS];
    struct kiln_rollup_group *groups;
    struct kiln_rollup_name *table;
    uint32_t names; /* section and 1; 0: none */
    uint32_t n_groups, cap_groups, n_names, cap_table, service;
    bool has_names;
};

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "%s", what);
}

/* ---- pages ---- */

static int load_page(struct kiln_rollup *u, uint32_t kind, uint32_t page, struct kiln_err *err)
{
    const struct kiln_page_ref *ref = &u->block->footer.pages[page];
    uint32_t n = kiln_section_shapes[kiln_section_place(kind)].numbers;
    int r = kiln_page_load(&u->in, u->block->io, u->block->fd, ref->offset, ref->size, err);

    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = kiln_page_get(&u->in, &u->columns[i], UINT32_MAX, err);
    if (r == 0 && !kiln_page_is_read(&u->in))
        r = damaged(err, "the page has more columns than it should");
    return r;
}

/* Says where it went wrong. */
static int fail_at(struct kiln_rollup *u, const struct kiln_section *section, uint32_t page,
                   int code, struct kiln_err *err)
{
    if (err && err->text[0] == '\0')
        kiln_err_set(err, code, NULL, "%s", kiln_err_text(code));
    kiln_err_within(err, "%s[%u]", kiln_section_name(section->kind), page);
    return kiln_block_fail(u->block, err, code);
}

/* What is asked of each page of a section: `first` is the number of its first entry. */
struct walk {
    int (*take)(struct kiln_rollup *u, struct walk *walk, uint64_t first, uint32_t n,
                struct kiln_err *err);
    uint64_t from, to; /* entries; pages outside are passed over */
    void *context;
};

static int walk_section(struct kiln_rollup *u, uint32_t index, struct walk *walk,
                        struct kiln_err *err)
{
    const struct kiln_section *s = &u->block->footer.sections[index];
    uint64_t first = 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < s->n_pages && first < walk->to; i++) {
        uint32_t n = (uint32_t)u->block->footer.pages[s->first_page + i].n_entries;

        if (first + n > walk->from) {
            r = load_page(u, s->kind, s->first_page + i, err);
            if (r == 0)
                r = walk->take(u, walk, first, n, err);
            if (r < 0)
                return fail_at(u, s, i, r, err);
        }
        first += n;
    }
    if (first < walk->to)
        return fail_at(u, s, s->n_pages, damaged(err, "it ends too early"), err);
    return r;
}

/* A sum as written, in the unit of the type. */
static bool get_sum(const struct kiln_rollup_group *g, uint64_t number, int64_t *ret)
{
    uint64_t sum;

    if (__builtin_mul_overflow(number, g->divisor, &sum) || sum > INT64_MAX)
        return false;
    *ret = (int64_t)sum;
    return true;
}

/* ---- groups ---- */

static int get_series(struct kiln_rollup *u, struct kiln_rollup_group *g, struct kiln_err *err)
{
    const struct kiln_footer *f = &u->block->footer;
    const struct kiln_column *c = &u->columns[1];
    uint64_t series = 0;

    g->n_series = c->n;
    g->series = kiln_arena_alloc(&u->arena, (c->n + (size_t)1) * sizeof(*g->series));
    if (!g->series)
        return KILN_E_LIMIT;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->v[i] >= f->info.n_series || (i && c->v[i] == 0))
            return damaged(err, "a roll-up has a series that is not there");
        series += c->v[i];
        if (series >= f->info.n_series || f->services[series] != u->service)
            return damaged(err, "a roll-up has a series that is not there");
        g->series[i] = (uint32_t)series;
    }
    return 0;
}

static bool get_span(const struct kiln_rollup *u, const struct kiln_rollup_group *g, uint32_t i,
                     uint64_t number, struct kiln_rollup_span *ret)
{
    const struct kiln_column *c = u->columns;
    uint64_t unit = i < g->n_hours ? kiln_rollup_limits.hour_ns : 24 * kiln_rollup_limits.hour_ns;

    if (number >= UINT64_MAX / unit)
        return false;
    *ret = (struct kiln_rollup_span){.start_ns = number * unit,
                                     .end_ns = (number + 1) * unit,
                                     .n_profiles = c[4].v[i],
                                     .n_continued = c[5].v[i],
                                     .n_rows = c[6].v[i],
                                     .count = c[7].v[i],
                                     .covered_ns = c[8].v[i],
                                     .n_time_set = c[11].v[i]};
    if (c[9].v[i] >= unit || c[10].v[i] >= unit - c[9].v[i])
        return false;
    ret->first_ns = ret->start_ns + c[9].v[i];
    ret->last_ns = ret->first_ns + c[10].v[i];
    return get_sum(g, c[3].v[i], &ret->total);
}

static int get_spans(struct kiln_rollup *u, struct kiln_rollup_group *g, struct kiln_err *err)
{
    const struct kiln_column *numbers = &u->columns[2];

    g->spans = kiln_arena_alloc(&u->arena, (g->n_spans + (size_t)1) * sizeof(*g->spans));
    if (!g->spans)
        return KILN_E_LIMIT;
    for (uint32_t i = 2; i < 12; i++) {
        if (u->columns[i].n != g->n_spans)
            return damaged(err, "its columns do not fit together");
    }
    for (uint32_t i = 0; i < g->n_spans; i++) {
        uint64_t before = 0, unit = i < g->n_hours ? kiln_rollup_limits.hour_ns
                                                   : 24 * kiln_rollup_limits.hour_ns;

        if (i != 0 && i != g->n_hours)
            before = g->spans[i - 1].start_ns / unit;
        if (numbers->v[i] > UINT64_MAX / unit - before || (before && numbers->v[i] == 0) ||
            !get_span(u, g, i, before + numbers->v[i], &g->spans[i]))
            return damaged(err, "a span is damaged");
    }
    return 0;
}

static int get_trees(struct kiln_rollup *u, struct kiln_rollup_group *g, struct kiln_err *err)
{
    const struct kiln_column *c = &u->columns[12];
    uint64_t at = 0;

    if (c->n != 3 * (uint64_t)g->n_trees)
        return damaged(err, "its columns do not fit together");
    g->trees = kiln_arena_alloc(&u->arena, (g->n_trees + (size_t)1) * sizeof(*g->trees));
    if (!g->trees)
        return KILN_E_LIMIT;
    for (uint32_t i = 0; i < g->n_trees; i++) {
        const uint64_t *v = c->v + 3 * (size_t)i;
        struct kiln_rollup_tree *tree = &g->trees[i];

        if (v[0] >= g->n_spans || (i && v[0] < g->trees[i - 1].span) || v[1] == 0 ||
            v[1] > KILN_ROLLUP_NODES || !get_sum(g, v[2], &tree->error_bound))
            return damaged(err, "a tree is damaged");
        tree->span = (uint32_t)v[0];
        tree->n_nodes = (uint32_t)v[1];
        tree->at = at;
        at += v[1];
        if (g->spans[v[0]].n_trees++ == 0)
            g->spans[v[0]].first_tree = i;
    }
    if (at && (g->nodes == 0 || u->block->footer.sections[g->nodes - 1].n_entries != at))
        return damaged(err, "a group has not the trees it counts");
    return 0;
}

static int get_head(struct kiln_rollup *u, struct kiln_rollup_group *g, struct kiln_err *err)
{
    const struct kiln_column *c = &u->columns[0];

    if (c->n != N_HEAD || c->v[0] == 0 || c->v[2] != u->columns[1].n ||
        c->v[3] > KILN_ROLLUP_SPANS_MAX || c->v[4] > KILN_ROLLUP_SPANS_MAX || c->v[4] == 0 ||
        c->v[5] > TREES_MAX || c->v[6] > u->n_groups)
        return damaged(err, "its head is damaged");
    g->divisor = c->v[0];
    g->n_rows = c->v[1];
    g->n_hours = (uint32_t)c->v[3];
    g->n_spans = g->n_hours + (uint32_t)c->v[4];
    g->n_trees = (uint32_t)c->v[5];
    if (c->v[6]) {
        g->functions = u->groups[u->n_groups - c->v[6]].functions;
        g->nodes = u->groups[u->n_groups - c->v[6]].nodes;
    }
    return 0;
}

static int take_group(struct kiln_rollup *u, struct walk *walk, uint64_t first, uint32_t n,
                      struct kiln_err *err)
{
    struct kiln_rollup_group *g = walk->context;
    int r = first == 0 ? get_head(u, g, err) : damaged(err, "a group has more than a page");

    if (r == 0)
        r = get_series(u, g, err);
    if (r == 0)
        r = get_spans(u, g, err);
    if (r == 0)
        r = get_trees(u, g, err);
    if (r == 0 && n != g->n_spans)
        r = damaged(err, "it has not the spans it counts");
    return r;
}

static int open_group(struct kiln_rollup *u, uint32_t index, uint32_t functions, uint32_t nodes,
                      struct kiln_err *err)
{
    struct kiln_rollup_group g = {.functions = functions, .nodes = nodes};
    struct walk walk = {.take = take_group, .context = &g};
    int r = kiln_grow(u->budget, (void **)&u->groups, &u->cap_groups, (uint64_t)u->n_groups + 1,
                      sizeof(*u->groups), UINT32_MAX);

    walk.to = u->block->footer.sections[index].n_entries;
    if (r == 0 && walk.to == 0)
        r = kiln_block_fail(u->block, err, damaged(err, "a roll-up is empty"));
    if (r == 0)
        r = walk_section(u, index, &walk, err);
    if (r == 0)
        u->groups[u->n_groups++] = g;
    return r;
}

/* The sections of a group come before it; those of no group are what could not be finished. */
static int open_groups(struct kiln_rollup *u, struct kiln_err *err)
{
    const struct kiln_footer *f = &u->block->footer;
    uint32_t functions = 0, nodes = 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->n_sections; i++) {
        if (f->sections[i].owner != u->service)
            continue;
        if (f->sections[i].kind == KILN_SECTION_ROLLUP_FUNCTIONS) {
            functions = i + 1;
            nodes = 0;
        } else if (f->sections[i].kind == KILN_SECTION_ROLLUP_NODES) {
            nodes = i + 1;
        } else if (f->sections[i].kind == KILN_SECTION_ROLLUP) {
            r = open_group(u, i, functions, nodes, err);
        } else if (f->sections[i].kind == KILN_SECTION_ROLLUP_NAMES) {
            u->names = i + 1;
        }
    }
    if (r == 0 && u->n_groups && u->names == 0)
        r = kiln_block_fail(u->block, err, damaged(err, "roll-ups without names"));
    return r;
}

int kiln_rollup_open(struct kiln_block *block, uint32_t service, struct kiln_budget *budget,
                     struct kiln_rollup **ret_rollup, struct kiln_err *err)
{
    struct kiln_rollup *u = kiln_calloc(1, sizeof(*u));
    int r;

    if (!u)
        return kiln_err_set(err, -ENOMEM, NULL, "no memory for roll-ups");
    u->block = kiln_block_ref(block);
    u->budget = budget;
    u->service = service;
    kiln_arena_init(&u->arena, budget);
    r = kiln_page_in_init(&u->in, budget);
    if (r == 0)
        r = open_groups(u, err);
    if (r == 0 && u->n_groups) {
        *ret_rollup = u;
        return 0;
    }
    kiln_rollup_free(u);
    if (r == 0)
        *ret_rollup = NULL;
    return r;
}

void kiln_rollup_free(struct kiln_rollup *u)
{
    if (!u)
        return;
    for (uint32_t i = 0; i < N_COLUMNS; i++)
        kiln_column_done(&u->columns[i], u->budget);
    kiln_array_free(u->budget, (void **)&u->groups, &u->cap_groups, sizeof(*u->groups));
    kiln_array_free(u->budget, (void **)&u->table, &u->cap_table, sizeof(*u->table));
    kiln_page_in_done(&u->in);
    kiln_arena_done(&u->arena);
    kiln_block_unref(u->block);
    kiln_free(u);
}

const struct kiln_rollup_group *kiln_rollup_groups(const struct kiln_rollup *rollup, uint32_t *n)
{
    *n = rollup->n_groups;
    return rollup->groups;
}

uint64_t kiln_rollup_bytes(const struct kiln_rollup *u)
{
    const struct kiln_footer *f = &u->block->footer;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < f->n_sections; i++) {
        const struct kiln_section *s = &f->sections[i];

        if (s->owner != u->service || s->kind < KILN_SECTION_ROLLUP ||
            s->kind >= KILN_SECTION_ROLLUP_END)
            continue;
        for (uint32_t k = 0; k < s->n_pages; k++)
            bytes += f->pages[s->first_page + k].size;
    }
    return bytes;
}

/* ---- names ---- */

static int take_names(struct kiln_rollup *u, struct walk *walk, uint64_t first, uint32_t n,
                      struct kiln_err *err)
{
    const struct kiln_section *locations =
        kiln_footer_section(&u->block->footer, KILN_SECTION_LOCATIONS);
    const struct kiln_column *c = u->columns;
    uint64_t location = first ? u->table[first - 1].location : 0;

    (void)walk;
    if (c[0].n != n || c[1].n != n || c[2].n != n)
        return damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        location += c[0].v[i] > UINT32_MAX ? UINT32_MAX : c[0].v[i];
        if (location > (locations ? locations->n_entries : 0) || c[1].v[i] >> 1 > UINT32_MAX)
            return damaged(err, "a name has a location that is not there");
        u->table[first + i] =
            (struct kiln_rollup_name){c[2].v[i], (uint32_t)location, (uint32_t)(c[1].v[i] >> 1)};
    }
    return 0;
}

static int load_names(struct kiln_rollup *u, struct kiln_err *err)
{
    struct walk walk = {.take = take_names};
    int r;

    if (u->has_names)
        return 0;
    walk.to = u->block->footer.sections[u->names - 1].n_entries;
    r = kiln_grow(u->budget, (void **)&u->table, &u->cap_table, walk.to + 1, sizeof(*u->table),
                  UINT32_MAX);
    if (r == 0)
        r = walk_section(u, u->names - 1, &walk, err);
    if (r < 0)
        return r;
    u->n_names = (uint32_t)walk.to;
    u->has_names = true;
    return 0;
}

int kiln_rollup_names(struct kiln_rollup *u, const struct kiln_rollup_name **ret, uint32_t *ret_n,
                      struct kiln_err *err)
{
    int r = load_names(u, err);

    if (r == 0) {
        *ret = u->table;
        *ret_n = u->n_names;
    }
    return r;
}

/* ---- functions ---- */

struct functions {
    const struct kiln_rollup_group *group;
    const bool *wanted;
    uint32_t n_spans;
    int64_t *self, *total;
};

/* The sums of one name from `at` on in the columns. */
static bool add_function(const struct kiln_rollup *u, const struct functions *f, uint32_t at,
                         uint64_t n, uint64_t name)
{
    uint64_t span = 0;

    for (uint64_t i = at; i < at + n; i++, span++) {
        int64_t self, rest;

        if (u->columns[1].v[i] >= f->n_spans - span)
            return false;
        span += u->columns[1].v[i];
        if (!get_sum(f->group, u->columns[2].v[i], &self) ||
            !get_sum(f->group, u->columns[3].v[i], &rest))
            return false;
        if (!f->wanted[span])
            continue;
        f->self[name] = kiln_sat_add(f->self[name], self);
        f->total[name] = kiln_sat_add(f->total[name], kiln_sat_add(self, rest));
    }
    return true;
}

static int take_functions(struct kiln_rollup *u, struct walk *walk, uint64_t first, uint32_t n,
                          struct kiln_err *err)
{
    const struct functions *f = walk->context;
    const struct kiln_column *c = u->columns;
    uint32_t at = 0;

    if (c[0].n != n || c[2].n != c[1].n || c[3].n != c[1].n || first < walk->from ||
        first + n > walk->to)
        return damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t spans = c[0].v[i];

        if (spans > f->n_spans || spans > c[1].n - at ||
            !add_function(u, f, at, spans, first + i - walk->from))
            return damaged(err, "a function is damaged");
        at += (uint32_t)spans;
    }
    return at == c[1].n ? 0 : damaged(err, "its columns do not fit together");
}

int kiln_rollup_functions(struct kiln_rollup *u, uint32_t group, enum kiln_rollup_level level,
                          const bool *wanted, int64_t *self, int64_t *total, struct kiln_err *err)
{
    const struct kiln_rollup_group *g = &u->groups[group];
    struct functions f = {.group = g, .wanted = wanted, .self = self, .total = total};
    struct walk walk = {.take = take_functions, .context = &f};
    uint32_t n_levels = g->n_hours ? 2 : 1;
    int r = load_names(u, err);

    if (r < 0)
        return r;
    f.n_spans = level == KILN_ROLLUP_HOURS ? g->n_hours : g->n_spans - g->n_hours;
    if (f.n_spans == 0)
        return 0;
    if (g->functions == 0 ||
        u->block->footer.sections[g->functions - 1].n_entries != (uint64_t)u->n_names * n_levels)
        return kiln_block_fail(u->block, err, damaged(err, "a roll-up has not a function each"));
    walk.from = level == KILN_ROLLUP_DAYS && g->n_hours ? u->n_names : 0;
    walk.to = walk.from + u->n_names;
    return walk_section(u, g->functions - 1, &walk, err);
}

/* ---- trees ---- */

struct growing {
    const struct kiln_rollup_group *group;
    struct kiln_rollup_nodes *nodes;
    uint32_t n_names;
    uint32_t open; /* the node before; its ancestors are found through their ends */
};

/* While it is read, the end of a node that is still open is its parent. */
static bool put_node(const struct kiln_rollup *u, struct growing *t, uint32_t i)
{
    const struct kiln_column *c = u->columns;
    struct kiln_rollup_nodes *nodes = t->nodes;
    uint32_t at = nodes->n;

    if (at == 0 ? c[0].v[i] != 0 || c[1].v[i] != 0 : c[0].v[i] >= t->n_names)
        return false;
    for (uint64_t up = c[1].v[i]; up > 0; up--) {
        uint32_t parent = nodes->ends[t->open];

        if (t->open == 0)
            return false;
        nodes->ends[t->open] = at;
        t->open = parent;
    }
    nodes->names[at] = (uint32_t)c[0].v[i];
    nodes->ends[at] = t->open;
    t->open = at;
    nodes->n++;
    return get_sum(t->group, c[2].v[i], &nodes->self[at]) &&
           get_sum(t->group, c[3].v[i], &nodes->folded[at]);
}

static int take_nodes(struct kiln_rollup *u, struct walk *walk, uint64_t first, uint32_t n,
                      struct kiln_err *err)
{
    const struct kiln_column *c = u->columns;

    if (c[0].n != n || c[1].n != n || c[2].n != n || c[3].n != n || first < walk->from ||
        first + n > walk->to)
        return damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        if (!put_node(u, walk->context, i))
            return damaged(err, "a node is damaged");
    }
    return 0;
}

static int make_room(struct kiln_budget *budget, struct kiln_rollup_nodes *nodes, uint32_t n)
{
    int r = 0;

#define ROOM(array)                                                                                \
    (r = r < 0 ? r                                                                                 \
               : kiln_grow(budget, (void **)&nodes->array, &nodes->cap_##array, n,                 \
                           sizeof(*nodes->array), UINT32_MAX))
    ROOM(names);
    ROOM(ends);
    ROOM(self);
    ROOM(folded);
#undef ROOM
    nodes->n = 0;
    return r;
}

int kiln_rollup_tree(struct kiln_rollup *u, uint32_t group, uint32_t tree,
                     struct kiln_rollup_nodes *nodes, struct kiln_err *err)
{
    const struct kiln_rollup_group *g = &u->groups[group];
    const struct kiln_rollup_tree *t = &g->trees[tree];
    struct growing growing = {.group = g, .nodes = nodes};
    struct walk walk = {
        .take = take_nodes, .from = t->at, .to = t->at + t->n_nodes, .context = &growing};
    int r = load_names(u, err);

    growing.n_names = u->n_names;
    if (r == 0)
        r = make_room(u->budget, nodes, t->n_nodes);
    if (r == 0)
        r = walk_section(u, g->nodes - 1, &walk, err);
    for (uint32_t i = growing.open, parent; r == 0; i = parent) {
        parent = nodes->ends[i];
        nodes->ends[i] = nodes->n;
        if (i == 0)
            break;
    }
    return r;
}

void kiln_rollup_nodes_done(struct kiln_rollup *u, struct kiln_rollup_nodes *nodes)
{
#define FREE(array)                                                                                \
    kiln_array_free(u->budget, (void **)&nodes->array, &nodes->cap_##array, sizeof(*nodes->array))
    FREE(names);
    FREE(ends);
    FREE(self);
    FREE(folded);
#undef FREE
}
