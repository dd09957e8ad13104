/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The footer is a page of these columns:
 *
 *   0      level, log from, log to, made, min, max, series, profiles, samples, observations,
 * stacks, frames, bytes of the dictionary, bytes of the tenant's name, replaced blocks 1-4    of
 * each section, in the order of the file: kind, owner, pages, entries 5-6    of each page,
 * likewise: bytes, entries 7-10   of each page of rows: first series (difference to the page
 * before), last series (difference to the first), smallest time (zigzag difference to the page
 * before), largest (difference to the smallest) 11-18  of each series, by key: bytes of its key
 * shared with the series before, bytes of its own, smallest time (zigzag difference to the series
 * before), largest (difference to the smallest), profiles, samples, observations, bytes bytes  id
 * of the block, tenant, ids of replaced blocks; keys
 *
 * Pages lie one behind the other from the end of the file's head to the footer, so that their
 * places follow from their sizes.
 */
#include <errno.h>

#include "store/block_int.h"
#include "store/shared_keys.h"

enum {
    COUNTS = 15,
    SECTION = 1,
    PAGE = 5,
    ROWS = 7,
    SERIES = 11,
    N_COLUMNS = 19,
};

const struct kiln_section_shape kiln_section_shapes[KILN_N_SHAPES] = {
    [KILN_SECTION_ROWS] = {"rows", KILN_N_ROWS_COLUMNS, 2},
    [KILN_SECTION_STRINGS] = {"strings", 2, 1},
    [KILN_SECTION_LISTS] = {"lists", 5, 0},
    [KILN_SECTION_ATTRS] = {"attributes", 4, 0},
    [KILN_SECTION_SETS] = {"attribute sets", 2, 0},
    [KILN_SECTION_LINKS] = {"links", 0, 1},
    [KILN_SECTION_MAPPINGS] = {"mappings", 5, 0},
    [KILN_SECTION_FUNCTIONS] = {"functions", 4, 0},
    [KILN_SECTION_LOCATIONS] = {"locations", 7, 0},
    [KILN_SECTION_RESOURCES] = {"resources", 9, 0},
    [KILN_SECTION_SCOPES] = {"scopes", 5, 0},
    [KILN_SECTION_ORIGINS] = {"origins", 11, 0},
    [KILN_SECTION_MOMENTS] = {"moments", 2, 0},
    [KILN_SECTION_STACKS] = {"stacks", 3, 0},
    [KILN_SECTION_RANKS] = {"ranks", 1, 0},
    [KILN_N_SECTIONS] = {"roll-ups", 13, 0},
    [KILN_N_SECTIONS + 1] = {"names of roll-ups", 3, 0},
    [KILN_N_SECTIONS + 2] = {"functions of roll-ups", 4, 0},
    [KILN_N_SECTIONS + 3] = {"trees of roll-ups", 4, 0},
};

const char *kiln_section_name(uint32_t kind)
{
    if (kind > 0 &&
        (kind < KILN_N_SECTIONS || (kind >= KILN_SECTION_ROLLUP && kind < KILN_SECTION_ROLLUP_END)))
        return kiln_section_shapes[kiln_section_place(kind)].name;
    return "an optional one";
}

void kiln_footer_init(struct kiln_footer *footer, struct kiln_budget *budget)
{
    *footer = (struct kiln_footer){.budget = budget};
    kiln_arena_init(&footer->arena, budget);
}

void kiln_footer_done(struct kiln_footer *f)
{
    for (; f->n_shared; f->n_shared--) {
        struct kiln_str key = f->series[f->n_shared - 1].key;

        kiln_budget_give(f->budget, key.len);
        kiln_shared_key_put(key);
    }
    kiln_array_free(f->budget, (void **)&f->sections, &f->cap_sections, sizeof(*f->sections));
    kiln_array_free(f->budget, (void **)&f->pages, &f->cap_pages, sizeof(*f->pages));
    kiln_array_free(f->budget, (void **)&f->rows, &f->cap_rows, sizeof(*f->rows));
    kiln_array_free(f->budget, (void **)&f->series, &f->cap_series, sizeof(*f->series));
    kiln_array_free(f->budget, (void **)&f->services, &f->cap_services, sizeof(*f->services));
    kiln_array_free(f->budget, (void **)&f->stacks, &f->cap_stacks, sizeof(*f->stacks));
    kiln_array_free(f->budget, (void **)&f->ranks, &f->cap_ranks, sizeof(*f->ranks));
    kiln_arena_done(&f->arena);
}

const struct kiln_section *kiln_footer_section(const struct kiln_footer *footer, uint32_t kind)
{
    for (uint32_t i = 0; i < footer->n_sections; i++) {
        if (footer->sections[i].kind == kind)
            return &footer->sections[i];
    }
    return NULL;
}

/* ---- writing ---- */

/* The columns before they are written, and after they are read. */
struct columns {
    struct kiln_budget *budget;
    struct kiln_column c[N_COLUMNS];
    int error;
};

static void columns_done(struct columns *columns)
{
    for (uint32_t i = 0; i < N_COLUMNS; i++)
        kiln_column_done(&columns->c[i], columns->budget);
}

static void put(struct columns *columns, uint32_t column, uint64_t number)
{
    struct kiln_column *c = &columns->c[column];

    if (columns->error)
        return;
    columns->error = kiln_column_grow(c, columns->budget, (uint64_t)c->n + 1);
    if (columns->error == 0)
        c->v[c->n++] = number;
}

static void put_info(struct columns *c, const struct kiln_block_info *info)
{
    const uint64_t counts[COUNTS] = {
        info->level,    info->log_from, info->log_to,     info->made_ns,    info->min_ns,
        info->max_ns,   info->n_series, info->n_profiles, info->n_samples,  info->n_observations,
        info->n_stacks, info->n_frames, info->dict_bytes, info->tenant.len, info->n_replaces,
    };

    for (uint32_t i = 0; i < COUNTS; i++)
        put(c, 0, counts[i]);
}

static void put_index(struct columns *c, const struct kiln_footer *f)
{
    struct kiln_rows_ref last = {0};

    for (uint32_t i = 0; i < f->n_sections; i++) {
        put(c, SECTION, f->sections[i].kind);
        put(c, SECTION + 1, f->sections[i].owner);
        put(c, SECTION + 2, f->sections[i].n_pages);
        put(c, SECTION + 3, f->sections[i].n_entries);
    }
    for (uint32_t i = 0; i < f->n_pages; i++) {
        put(c, PAGE, f->pages[i].size);
        put(c, PAGE + 1, f->pages[i].n_entries);
    }
    for (uint32_t i = 0; i < f->n_rows; i++) {
        put(c, ROWS, f->rows[i].first_series - last.first_series);
        put(c, ROWS + 1, f->rows[i].last_series - f->rows[i].first_series);
        put(c, ROWS + 2, kiln_zigzag_diff(f->rows[i].min_ns, last.min_ns));
        put(c, ROWS + 3, f->rows[i].max_ns - f->rows[i].min_ns);
        last = f->rows[i];
    }
}

static size_t shared(struct kiln_str a, struct kiln_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    size_t i = 0;

    while (i < n && a.ptr[i] == b.ptr[i])
        i++;
    return i;
}

static void put_series(struct columns *c, const struct kiln_footer *f, struct kiln_buf *keys)
{
    struct kiln_block_series last = {.key = KILN_STR("")};

    for (uint64_t i = 0; i < f->info.n_series; i++) {
        const struct kiln_block_series *s = &f->series[i];
        size_t kept = shared(last.key, s->key);

        put(c, SERIES, kept);
        put(c, SERIES + 1, s->key.len - kept);
        put(c, SERIES + 2, kiln_zigzag_diff(s->min_ns, last.min_ns));
        put(c, SERIES + 3, s->max_ns - s->min_ns);
        put(c, SERIES + 4, s->n_profiles);
        put(c, SERIES + 5, s->n_samples);
        put(c, SERIES + 6, s->n_observations);
        put(c, SERIES + 7, s->bytes);
        kiln_buf_add(keys, s->key.ptr + kept, s->key.len - kept);
        last = *s;
    }
}

int kiln_footer_encode(const struct kiln_footer *f, struct kiln_page_out *out,
                       struct kiln_str *ret_page)
{
    struct columns c = {.budget = f->budget};
    struct kiln_page_habit habit = {0};
    struct kiln_buf names, keys;
    int r;

    kiln_buf_init(&names, UINT32_MAX);
    kiln_buf_init(&keys, UINT32_MAX);
    put_info(&c, &f->info);
    put_index(&c, f);
    put_series(&c, f, &keys);
    kiln_buf_add(&names, f->info.id.bytes, sizeof(f->info.id.bytes));
    kiln_buf_add_str(&names, f->info.tenant);
    if (f->info.n_replaces)
        kiln_buf_add(&names, f->info.replaces, f->info.n_replaces * sizeof(*f->info.replaces));
    kiln_page_begin(out, &habit);
    for (uint32_t i = 0; i < N_COLUMNS; i++)
        kiln_page_add(out, c.c[i].v, c.c[i].n);
    kiln_page_add_bytes(out, kiln_buf_str(&names));
    kiln_page_add_bytes(out, kiln_buf_str(&keys));
    r = c.error ? c.error : names.error ? names.error : keys.error;
    if (r == 0)
        r = kiln_page_finish(out, ret_page);
    columns_done(&c);
    kiln_buf_done(&names);
    kiln_buf_done(&keys);
    return r;
}

/* ---- reading ---- */

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "footer: %s", what);
}

static int get_info(struct kiln_footer *f, const struct columns *c, struct kiln_str names,
                    struct kiln_err *err)
{
    struct kiln_block_info *info = &f->info;
    const uint64_t *v = c->c[0].v;
    struct kiln_str copy;

    if (c->c[0].n != COUNTS || v[0] > UINT32_MAX || v[6] > UINT32_MAX)
        return damaged(err, "its counts are damaged");
    info->level = (uint32_t)v[0];
    info->log_from = v[1];
    info->log_to = v[2];
    info->made_ns = v[3];
    info->min_ns = v[4];
    info->max_ns = v[5];
    info->n_series = v[6];
    info->n_profiles = v[7];
    info->n_samples = v[8];
    info->n_observations = v[9];
    info->n_stacks = v[10];
    info->n_frames = v[11];
    info->dict_bytes = v[12];
    if (names.len < sizeof(info->id) || v[13] > names.len - sizeof(info->id) ||
        v[14] > UINT32_MAX || v[14] * 16 != names.len - sizeof(info->id) - v[13])
        return damaged(err, "its names are damaged");
    copy = kiln_arena_copy(&f->arena, names);
    if (!copy.ptr)
        return KILN_E_LIMIT;
    memcpy(info->id.bytes, copy.ptr, sizeof(info->id.bytes));
    info->tenant = (struct kiln_str){copy.ptr + sizeof(info->id), (size_t)v[13]};
    info->n_replaces = (uint32_t)v[14];
    info->replaces = (const struct kiln_block_id *)(copy.ptr + sizeof(info->id) + info->tenant.len);
    return 0;
}

static int get_pages(struct kiln_footer *f, const struct columns *c, uint64_t file_bytes,
                     struct kiln_err *err)
{
    uint32_t n = c->c[PAGE].n;
    uint64_t offset = KILN_BLOCK_HEAD;
    int r = kiln_reserve(f->budget, (void **)&f->pages, &f->cap_pages, n, sizeof(*f->pages),
                         UINT32_MAX);

    if (r < 0)
        return r;
    if (c->c[PAGE + 1].n != n)
        return damaged(err, "its index of pages is damaged");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t size = c->c[PAGE].v[i];

        if (size < KILN_PAGE_HEAD || size > file_bytes - offset)
            return damaged(err, "a page lies outside the file");
        f->pages[i] = (struct kiln_page_ref){offset, size, c->c[PAGE + 1].v[i]};
        offset += size;
    }
    f->n_pages = n;
    return offset == file_bytes ? 0 : damaged(err, "there are bytes that belong to no page");
}

/* Adds up what the pages of a section say. */
static bool entries_fit(const struct kiln_footer *f, const struct kiln_section *s)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < s->n_pages; i++) {
        uint64_t more = f->pages[s->first_page + i].n_entries;

        if (more == 0 || more > UINT32_MAX || more > s->n_entries - n)
            return false;
        n += more;
    }
    return n == s->n_entries;
}

static int get_sections(struct kiln_footer *f, const struct columns *c, struct kiln_err *err)
{
    uint32_t n = c->c[SECTION].n, page = 0;
    int r = kiln_reserve(f->budget, (void **)&f->sections, &f->cap_sections, n,
                         sizeof(*f->sections), UINT32_MAX);

    if (r < 0)
        return r;
    for (uint32_t i = 1; i < 4; i++) {
        if (c->c[SECTION + i].n != n)
            return damaged(err, "its index of sections is damaged");
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t kind = c->c[SECTION].v[i], owner = c->c[SECTION + 1].v[i];
        uint64_t n_pages = c->c[SECTION + 2].v[i];

        if (kind == 0 || kind > UINT32_MAX || owner > UINT32_MAX ||
            (kind >= KILN_N_SECTIONS && kind < KILN_SECTION_OPTIONAL))
            return damaged(err, "it has a section of a kind that there is not");
        if (n_pages > f->n_pages - page)
            return damaged(err, "a section has more pages than there are");
        f->sections[i] = (struct kiln_section){.kind = (uint32_t)kind,
                                               .owner = (uint32_t)owner,
                                               .first_page = page,
                                               .n_pages = (uint32_t)n_pages,
                                               .n_entries = c->c[SECTION + 3].v[i]};
        if (!entries_fit(f, &f->sections[i]))
            return damaged(err, "a section has not the entries of its pages");
        page += (uint32_t)n_pages;
    }
    f->n_sections = n;
    return page == f->n_pages ? 0 : damaged(err, "there are pages that belong to no section");
}

/* Which sections belong to which service: one of each for each, and one alone of all others. */
static int get_owners(struct kiln_footer *f, struct kiln_err *err)
{
    uint64_t seen = 0;
    uint32_t n_stacks = 0, n_ranks = 0;
    int r = kiln_reserve(f->budget, (void **)&f->stacks, &f->cap_stacks, f->n_services,
                         sizeof(*f->stacks), UINT32_MAX);

    if (r == 0)
        r = kiln_reserve(f->budget, (void **)&f->ranks, &f->cap_ranks, f->n_services,
                         sizeof(*f->ranks), UINT32_MAX);
    for (uint32_t i = 0; r == 0 && i < f->n_sections; i++) {
        const struct kiln_section *s = &f->sections[i];
        bool fits = true;

        if (s->kind == KILN_SECTION_STACKS && s->owner == n_stacks && n_stacks < f->n_services)
            f->stacks[n_stacks++] = i;
        else if (s->kind == KILN_SECTION_RANKS && s->owner == n_ranks && n_ranks < f->n_services)
            f->ranks[n_ranks++] = i;
        else if (s->kind < KILN_SECTION_STACKS)
            fits = s->owner == 0 && !(seen & UINT64_C(1) << s->kind);
        else
            fits = s->kind >= KILN_SECTION_OPTIONAL;
        if (!fits)
            return damaged(err, "a section has no owner, or is there twice");
        seen |= s->kind < KILN_SECTION_STACKS ? UINT64_C(1) << s->kind : 0;
    }
    if (r == 0 && (n_stacks != f->n_services || n_ranks != f->n_services))
        r = damaged(err, "a service has no stacks");
    return r;
}

static int get_rows(struct kiln_footer *f, const struct columns *c, struct kiln_err *err)
{
    const struct kiln_section *section = kiln_footer_section(f, KILN_SECTION_ROWS);
    uint32_t n = c->c[ROWS].n;
    struct kiln_rows_ref last = {0};
    int r =
        kiln_reserve(f->budget, (void **)&f->rows, &f->cap_rows, n, sizeof(*f->rows), UINT32_MAX);

    if (r < 0)
        return r;
    if (!section || section->n_pages != n || c->c[ROWS + 1].n != n || c->c[ROWS + 2].n != n ||
        c->c[ROWS + 3].n != n)
        return damaged(err, "its index of rows is damaged");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t first = last.first_series + c->c[ROWS].v[i];
        uint64_t more = c->c[ROWS + 1].v[i];

        if (c->c[ROWS].v[i] >= f->info.n_series || first >= f->info.n_series ||
            more >= f->info.n_series - first || f->services[first] != f->services[first + more])
            return damaged(err, "a page of rows has no series");
        last.first_series = (uint32_t)first;
        last.last_series = (uint32_t)(first + more);
        last.min_ns = kiln_zigzag_add(last.min_ns, c->c[ROWS + 2].v[i]);
        last.max_ns = last.min_ns + c->c[ROWS + 3].v[i];
        f->rows[i] = last;
    }
    f->n_rows = n;
    return 0;
}

/* Shares a key with other blocks (store/shared_keys.h); its bytes are charged all the same. */
static int share_key(struct kiln_footer *f, struct kiln_str key)
{
    int r = kiln_budget_take(f->budget, key.len);

    if (r < 0)
        return r;
    f->series[f->n_shared].key = kiln_shared_key_get(key);
    if (!f->series[f->n_shared].key.ptr) {
        kiln_budget_give(f->budget, key.len);
        return -ENOMEM;
    }
    f->n_shared++;
    return 0;
}

/* The next key: the beginning of the last one, and its own end. */
static int join_key(struct kiln_buf *key, struct kiln_str last, uint64_t kept, struct kiln_str own)
{
    kiln_buf_clear(key);
    kiln_buf_add(key, last.ptr, (size_t)kept);
    kiln_buf_add_str(key, own);
    return key->error;
}

static int read_keys(struct kiln_footer *f, const struct columns *c, struct kiln_str own,
                     struct kiln_buf *key, struct kiln_err *err)
{
    struct kiln_str last = KILN_STR("");
    size_t at = 0;
    int r;

    for (uint64_t i = 0; i < f->info.n_series; i++) {
        uint64_t kept = c->c[SERIES].v[i], more = c->c[SERIES + 1].v[i];

        if (kept > last.len || more > own.len - at)
            return damaged(err, "the key of a series is damaged");
        r = join_key(key, last, kept, (struct kiln_str){own.ptr + at, (size_t)more});
        if (r == 0)
            r = share_key(f, kiln_buf_str(key));
        if (r < 0)
            return r;
        at += (size_t)more;
        if (i && kiln_str_cmp(last, f->series[i].key) >= 0)
            return damaged(err, "its series are not in order");
        if (i && !kiln_str_eq(kiln_block_service(last), kiln_block_service(f->series[i].key)))
            f->n_services++;
        f->services[i] = f->n_services;
        last = f->series[i].key;
    }
    f->n_services += f->info.n_series > 0;
    return at == own.len ? 0 : damaged(err, "there are bytes that belong to no key");
}

static int get_keys(struct kiln_footer *f, const struct columns *c, struct kiln_str own,
                    struct kiln_err *err)
{
    struct kiln_buf key;
    int r;

    kiln_buf_init(&key, f->budget->limit);
    r = read_keys(f, c, own, &key, err);
    kiln_buf_done(&key);
    return r;
}

static int get_series(struct kiln_footer *f, const struct columns *c, struct kiln_str keys,
                      struct kiln_err *err)
{
    uint64_t n = f->info.n_series;
    uint64_t min_ns = 0;
    int r = kiln_reserve(f->budget, (void **)&f->series, &f->cap_series, n, sizeof(*f->series),
                         UINT32_MAX);

    for (uint32_t i = 0; i < 8; i++) {
        if (c->c[SERIES + i].n != n)
            return damaged(err, "its table of series is damaged");
    }
    if (r == 0)
        r = kiln_reserve(f->budget, (void **)&f->services, &f->cap_services, n,
                         sizeof(*f->services), UINT32_MAX);
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        min_ns = kiln_zigzag_add(min_ns, c->c[SERIES + 2].v[i]);
        f->series[i] = (struct kiln_block_series){
            .min_ns = min_ns,
            .max_ns = min_ns + c->c[SERIES + 3].v[i],
            .n_profiles = c->c[SERIES + 4].v[i],
            .n_samples = c->c[SERIES + 5].v[i],
            .n_observations = c->c[SERIES + 6].v[i],
            .bytes = c->c[SERIES + 7].v[i],
        };
    }
    return r < 0 ? r : get_keys(f, c, keys, err);
}

static int decode(struct kiln_footer *f, struct columns *c, struct kiln_page_in *in,
                  uint64_t file_bytes, struct kiln_err *err)
{
    struct kiln_str bytes;
    int r = 0;

    /* There are more bytes in the file than entries of anything here. */
    for (uint32_t i = 0; r == 0 && i < N_COLUMNS; i++)
        r = kiln_page_get(in, &c->c[i], f->info.bytes, err);
    if (r == 0)
        r = kiln_page_get_bytes(in, UINT32_MAX, &bytes, err);
    if (r == 0)
        r = get_info(f, c, bytes, err);
    if (r == 0)
        r = kiln_page_get_bytes(in, UINT32_MAX, &bytes, err);
    if (r == 0)
        r = get_series(f, c, bytes, err);
    if (r == 0)
        r = get_pages(f, c, file_bytes, err);
    if (r == 0)
        r = get_sections(f, c, err);
    if (r == 0)
        r = get_owners(f, err);
    if (r == 0)
        r = get_rows(f, c, err);
    if (r == 0 && !kiln_page_is_read(in))
        r = damaged(err, "it is longer than what is in it");
    return r;
}

int kiln_footer_decode(struct kiln_footer *f, struct kiln_page_in *in, uint64_t file_bytes,
                       struct kiln_err *err)
{
    struct columns c = {.budget = f->budget};
    int r = decode(f, &c, in, file_bytes, err);

    columns_done(&c);
    return r;
}
