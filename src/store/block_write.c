/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file under the writer: a temporary name, pages one behind the other, footer, sync, rename.
 *
 *   head    magic, u32 version, u32 CRC-32C of the 12 bytes before
 *   pages   of rows first, as profiles come; then the dictionary
 *   footer  one page (block_footer.c)
 *   tail    u32 bytes of the footer's page, u32 version, u32 CRC-32C of these 8 bytes, magic
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "store/block_rows.h"
#include "store/rollup_make.h"

#define PENDING_BYTES (256u << 10) /* written at once */
#define INDEX_BYTES   12u          /* of an entry in a hash table */
#define COLUMN_SHARE  4            /* of the memory that one page may take at most */
#define ROLLUP_SHARE  4            /* of the memory that roll-ups may take at most */

bool kiln_writer_ok(struct kiln_block_writer *w, int r)
{
    if (r < 0 && !w->error)
        w->error = r;
    return w->error == 0;
}

/* ---- bytes ---- */

static void write_pending(struct kiln_block_writer *w)
{
    if (w->pending.len && kiln_writer_ok(w, w->pending.error) &&
        kiln_writer_ok(w, w->io->pwrite(w->io, w->fd, w->pending.ptr, w->pending.len,
                                        w->offset - w->pending.len)))
        kiln_buf_clear(&w->pending);
}

static void write_bytes(struct kiln_block_writer *w, struct kiln_str bytes)
{
    if (w->error)
        return;
    kiln_buf_add_str(&w->pending, bytes);
    w->offset += bytes.len;
    if (kiln_writer_ok(w, w->pending.error) && w->pending.len >= PENDING_BYTES)
        write_pending(w);
}

static void put_u32(char *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v));
}

static void write_head(struct kiln_block_writer *w)
{
    char head[KILN_BLOCK_HEAD] = KILN_BLOCK_MAGIC;

    put_u32(head + 8, KILN_BLOCK_VERSION);
    put_u32(head + 12, kiln_crc32c(0, head, 12));
    write_bytes(w, (struct kiln_str){head, sizeof(head)});
}

static void write_footer(struct kiln_block_writer *w)
{
    char tail[KILN_BLOCK_TAIL + 1] = "............" KILN_BLOCK_MAGIC;
    struct kiln_str page;

    w->footer.info.bytes = 0;
    if (!kiln_writer_ok(w, kiln_footer_encode(&w->footer, &w->out, &page)))
        return;
    write_bytes(w, page);
    put_u32(tail, (uint32_t)page.len);
    put_u32(tail + 4, KILN_BLOCK_VERSION);
    put_u32(tail + 8, kiln_crc32c(0, tail, 8));
    write_bytes(w, (struct kiln_str){tail, KILN_BLOCK_TAIL});
    write_pending(w);
}

/* ---- pages and sections ---- */

void kiln_writer_section(struct kiln_block_writer *w, uint32_t kind, uint32_t owner)
{
    struct kiln_footer *f = &w->footer;

    assert(w->n_entries == 0);
    w->section = kind;
    if (WRITER_ROOM(w, f->sections, f->cap_sections, (uint64_t)f->n_sections + 1))
        f->sections[f->n_sections++] =
            (struct kiln_section){.kind = kind, .owner = owner, .first_page = f->n_pages};
}

void kiln_writer_clear(struct kiln_block_writer *w)
{
    for (uint32_t i = 0; i < KILN_COLUMNS_MAX; i++)
        w->columns[i].n = 0;
    for (size_t i = 0; i < KILN_ARRAY_LEN(w->bytes); i++)
        kiln_buf_clear(&w->bytes[i]);
    w->n_entries = 0;
}

/* The page as bytes; returns false on failure. */
static bool make_page(struct kiln_block_writer *w, struct kiln_str *ret_page)
{
    const struct kiln_section_shape *shape = &kiln_section_shapes[kiln_section_place(w->section)];

    kiln_page_begin(&w->out, &w->habits[kiln_section_place(w->section)]);
    for (uint32_t i = 0; i < shape->numbers; i++)
        kiln_page_add(&w->out, w->columns[i].v, w->columns[i].n);
    for (uint32_t i = 0; i < shape->bytes; i++) {
        if (!kiln_writer_ok(w, w->bytes[i].error))
            return false;
        kiln_page_add_bytes(&w->out, kiln_buf_str(&w->bytes[i]));
    }
    return kiln_writer_ok(w, kiln_page_finish(&w->out, ret_page));
}

bool kiln_writer_page(struct kiln_block_writer *w)
{
    struct kiln_footer *f = &w->footer;
    struct kiln_section *section;
    struct kiln_str page;

    if (w->error || !make_page(w, &page) ||
        !WRITER_ROOM(w, f->pages, f->cap_pages, (uint64_t)f->n_pages + 1))
        return false;
    section = &f->sections[f->n_sections - 1];
    section->n_pages++;
    section->n_entries += w->n_entries;
    f->pages[f->n_pages++] = (struct kiln_page_ref){w->offset, page.len, w->n_entries};
    write_bytes(w, page);
    return w->error == 0;
}

void kiln_writer_flush(struct kiln_block_writer *w)
{
    if (w->n_entries)
        (void)kiln_writer_page(w);
    kiln_writer_clear(w);
}

void kiln_writer_entry(struct kiln_block_writer *w)
{
    const struct kiln_section_shape *shape = &kiln_section_shapes[kiln_section_place(w->section)];
    size_t bytes = w->bytes[0].len;

    for (uint32_t i = 0; i < shape->numbers; i++)
        bytes += w->columns[i].n;
    if (++w->n_entries >= KILN_BLOCK_PAGE_ROWS || bytes >= KILN_BLOCK_PAGE_BYTES)
        kiln_writer_flush(w);
}

/* ---- numbers ---- */

/* Makes an array as long as the table it numbers. */
static void cover(struct kiln_block_writer *w, uint32_t **of, uint32_t *cap, uint32_t n)
{
    uint32_t before = *cap;

    if (n > before && WRITER_ROOM(w, *of, *cap, n))
        memset(*of + before, 0, (*cap - before) * sizeof(**of));
}

static void numbers_done(struct kiln_block_writer *w, struct kiln_numbers *numbers)
{
    kiln_array_free(&w->budget, (void **)&numbers->of, &numbers->cap_of, sizeof(uint32_t));
    kiln_array_free(&w->budget, (void **)&numbers->order, &numbers->cap_order, sizeof(uint32_t));
}

uint32_t kiln_writer_new_number(struct kiln_block_writer *w, struct kiln_numbers *numbers,
                                uint32_t index)
{
    if (KILN_UNLIKELY(numbers->n == numbers->cap_order) &&
        !WRITER_ROOM(w, numbers->order, numbers->cap_order, (uint64_t)numbers->n + 1))
        return 0;
    numbers->order[numbers->n++] = index;
    return numbers->of[index] = numbers->n;
}

/* ---- beginning ---- */

static bool is_safe_name(struct kiln_str s)
{
    bool dots = true;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr("!_.*'()-", c))))
            return false;
        dots = dots && c == '.';
    }
    return s.len > 0 && s.len <= 150 && !(dots && s.len <= 2);
}

static int make_id(struct kiln_block_writer *w)
{
    struct kiln_block_info *info = &w->footer.info;
    uint64_t big_endian;

    info->made_ns = kiln_clock_unix_ns();
    big_endian = __builtin_bswap64(info->made_ns);
    memcpy(info->id.bytes, &big_endian, sizeof(big_endian));
    return getrandom(info->id.bytes + 8, 8, 0) == 8 ? 0 : -EIO;
}

static char *make_path(struct kiln_block_writer *w, const char *suffix)
{
    const struct kiln_block_info *info = &w->footer.info;
    struct kiln_buf text;
    char *path = NULL;

    kiln_buf_init(&text, 512);
    kiln_buf_puts(&text, "blocks/");
    kiln_buf_add_str(&text, info->tenant);
    if (suffix) {
        kiln_buf_putc(&text, '/');
        kiln_buf_add_hex(&text, info->id.bytes, sizeof(info->id.bytes));
        kiln_buf_puts(&text, suffix);
    }
    kiln_buf_putc(&text, 0);
    if (kiln_writer_ok(w, text.error))
        path = text.ptr;
    else
        kiln_buf_done(&text);
    return path;
}

static void open_file(struct kiln_block_writer *w)
{
    struct kiln_io *io = w->io;

    w->tmp_path = make_path(w, ".tmp");
    w->path = make_path(w, ".kb");
    w->folder = make_path(w, NULL);
    if (w->error || !kiln_writer_ok(w, io->mkdir(io, "blocks")) ||
        !kiln_writer_ok(w, io->sync_dir(io, ".")) || !kiln_writer_ok(w, io->mkdir(io, w->folder)) ||
        !kiln_writer_ok(w, io->sync_dir(io, "blocks")))
        return;
    w->fd = io->open(io, w->tmp_path, O_RDWR | O_CREAT | O_EXCL);
    if (!kiln_writer_ok(w, w->fd))
        return;
    w->opened = true;
    write_head(w);
}

static void copy_info(struct kiln_block_writer *w, const struct kiln_block_write_opts *opts)
{
    struct kiln_block_info *info = &w->footer.info;
    size_t ids = opts->n_replaces * sizeof(*opts->replaces);
    struct kiln_block_id *replaces = kiln_arena_alloc(&w->arena, ids ? ids : 1);

    info->tenant = kiln_arena_copy(&w->arena, opts->tenant);
    if (!replaces || !info->tenant.ptr) {
        kiln_writer_ok(w, KILN_E_LIMIT);
        return;
    }
    if (ids)
        memcpy(replaces, opts->replaces, ids);
    info->replaces = replaces;
    info->n_replaces = opts->n_replaces;
    info->level = opts->level;
    info->log_from = opts->log_from;
    info->log_to = opts->log_to;
    info->min_ns = UINT64_MAX;
}

static void copy_keys(struct kiln_block_writer *w, const struct kiln_str *keys, uint32_t n)
{
    w->keys = kiln_arena_alloc(&w->arena, (n ? n : 1) * sizeof(*keys));
    if (!w->keys)
        kiln_writer_ok(w, KILN_E_LIMIT);
    for (uint32_t i = 0; i < n && !w->error; i++) {
        w->keys[i] = kiln_arena_copy(&w->arena, keys[i]);
        if (!w->keys[i].ptr)
            kiln_writer_ok(w, KILN_E_LIMIT);
        assert(i == 0 || kiln_str_cmp(keys[i - 1], keys[i]) < 0);
    }
    w->n_keys = n;
}

void kiln_writer_cover(struct kiln_block_writer *w)
{
    const struct kiln_dict *d = &w->dict->dict;

    cover(w, &w->strings.of, &w->strings.cap_of, d->n_strings);
    cover(w, &w->functions.of, &w->functions.cap_of, d->n_functions);
    cover(w, &w->mappings.of, &w->mappings.cap_of, d->n_mappings);
    cover(w, &w->locations.of, &w->locations.cap_of, d->n_locations);
    cover(w, &w->links.of, &w->links.cap_of, d->n_links);
    cover(w, &w->attrs.of, &w->attrs.cap_of, d->n_attrs);
    cover(w, &w->sets.of, &w->sets.cap_of, d->n_sets);
    /* A list is named by its first child, and 1. */
    cover(w, &w->lists.of, &w->lists.cap_of, d->n_nested + 1);
    cover(w, &w->stack_of, &w->cap_stack_of, d->n_stacks);
    cover(w, &w->resource_of, &w->cap_resource_of, w->dict->n_resources);
    cover(w, &w->scope_of, &w->cap_scope_of, w->dict->n_scopes);
}

static void init_writer(struct kiln_block_writer *w, struct kiln_io *io, size_t memory_bytes)
{
    size_t page_max = memory_bytes / COLUMN_SHARE;

    w->io = io;
    w->verify = kiln_block_verify_within;
    w->fd = -1;
    w->series = UINT32_MAX;
    w->budget.limit = memory_bytes;
    kiln_arena_init(&w->arena, &w->budget);
    kiln_footer_init(&w->footer, &w->budget);
    kiln_buf_init(&w->pending, page_max + PENDING_BYTES);
    for (size_t i = 0; i < KILN_ARRAY_LEN(w->bytes); i++)
        kiln_buf_init(&w->bytes[i], page_max);
    for (uint32_t i = 0; i < KILN_COLUMNS_MAX; i++)
        kiln_writer_ok(w, kiln_column_grow(&w->columns[i], &w->budget, 1)); /* never NULL */
    kiln_writer_ok(w, kiln_page_out_init(&w->out, page_max));
}

int kiln_block_create(struct kiln_io *io, const struct kiln_block_write_opts *opts,
                      const struct kiln_batch *dict, const struct kiln_str *keys, uint32_t n_series,
                      struct kiln_block_writer **ret_writer, struct kiln_err *err)
{
    struct kiln_block_writer *w;
    int r;

    if (!is_safe_name(opts->tenant))
        return kiln_err_set(err, -EINVAL, NULL, "\"%.*s\" is no name for a tenant",
                            KILN_STR_ARG(opts->tenant));
    w = kiln_calloc(1, sizeof(*w));
    if (!w)
        return kiln_err_set(err, -ENOMEM, NULL, "no memory for writing a block");
    w->dict = dict;
    init_writer(w, io, opts->memory_bytes);
    if (opts->verify)
        w->verify = opts->verify;
    w->out.quick = opts->level == 0;
    if (opts->level)
        (void)!kiln_rollup_maker_new(opts->memory_bytes / ROLLUP_SHARE, &w->rollup);
    copy_info(w, opts);
    copy_keys(w, keys, n_series);
    w->ticks = kiln_arena_alloc(&w->arena, sizeof(*w->ticks));
    if (!w->ticks)
        kiln_writer_ok(w, KILN_E_LIMIT);
    (void)WRITER_ROOM(w, w->stack_order, w->cap_stack_order, 1); /* never NULL */
    kiln_writer_cover(w);
    if (kiln_writer_ok(w, make_id(w)))
        open_file(w);
    kiln_writer_section(w, KILN_SECTION_ROWS, 0);
    if (!w->error) {
        *ret_writer = w;
        return 0;
    }
    r = kiln_err_set(err, w->error, w->tmp_path, "a block cannot be begun: %s",
                     kiln_err_text(w->error));
    kiln_block_abort(w);
    return r;
}

/* ---- end ---- */

/* About what the dictionary takes in a builder, with the hash tables to find its entries. */
static uint64_t dict_bytes(const struct kiln_block_writer *w)
{
    const struct kiln_dict *d = &w->dict->dict;
    uint64_t bytes = (uint64_t)w->n_resources * sizeof(struct kiln_resource) +
                     (uint64_t)w->links.n * (sizeof(struct kiln_link) + INDEX_BYTES);

    for (uint32_t i = 0; i < w->strings.n; i++)
        bytes += d->strings[w->strings.order[i]].len + sizeof(struct kiln_str) + INDEX_BYTES;
    bytes += w->functions.n * (sizeof(struct kiln_function) + INDEX_BYTES);
    bytes +=
        w->locations.n * (sizeof(struct kiln_location) + sizeof(struct kiln_line) + INDEX_BYTES);
    bytes += w->attrs.n * (sizeof(struct kiln_attr) + INDEX_BYTES);
    bytes += w->sets.n * (sizeof(struct kiln_range) + 4 * sizeof(*d->members) + INDEX_BYTES);
    for (uint32_t i = 0; i < w->n_stacks; i++)
        bytes += d->stacks[w->stack_order[i]].n * sizeof(*d->frames) + sizeof(struct kiln_range) +
                 INDEX_BYTES;
    return bytes;
}

static void finish_info(struct kiln_block_writer *w)
{
    struct kiln_block_info *info = &w->footer.info;

    if (info->n_profiles == 0)
        info->min_ns = 0;
    info->dict_bytes = dict_bytes(w);
}

static void free_tables(struct kiln_block_writer *w)
{
    struct kiln_numbers *numbers[] = {&w->strings, &w->functions, &w->mappings, &w->locations,
                                      &w->links,   &w->attrs,     &w->sets,     &w->lists};

    for (size_t i = 0; i < KILN_ARRAY_LEN(numbers); i++)
        numbers_done(w, numbers[i]);
#define FREE(array)                                                                                \
    kiln_array_free(&w->budget, (void **)&w->array, &w->cap_##array, sizeof(*w->array))
    FREE(list_sizes);
    FREE(stack_of);
    FREE(stack_order);
    FREE(stack_starts);
    FREE(shared);
    FREE(origins);
    FREE(moments);
    FREE(resources);
    FREE(scopes);
    FREE(resource_of);
    FREE(scope_of);
    FREE(cpus);
    FREE(rows);
    FREE(keyed);
    FREE(keyed_scratch);
#undef FREE
    kiln_intern_done(&w->origin_index, &w->budget);
    kiln_intern_done(&w->moment_index, &w->budget);
    kiln_intern_done(&w->resource_index, &w->budget);
    kiln_intern_done(&w->scope_index, &w->budget);
}

/* What is needed until the footer is written. */
static void free_content(struct kiln_block_writer *w)
{
    free_tables(w);
    kiln_rollup_maker_free(w->rollup);
    w->rollup = NULL;
    for (uint32_t i = 0; i < KILN_COLUMNS_MAX; i++)
        kiln_column_done(&w->columns[i], &w->budget);
    for (size_t i = 0; i < KILN_ARRAY_LEN(w->bytes); i++)
        kiln_buf_done(&w->bytes[i]);
    kiln_buf_done(&w->pending);
    kiln_page_out_done(&w->out);
}

static void sync_file(struct kiln_block_writer *w)
{
    int fd = w->fd;

    if (!kiln_writer_ok(w, w->io->sync(w->io, fd)))
        return;
    w->fd = -1;
    if (kiln_writer_ok(w, w->io->close(w->io, fd)))
        w->finished = true;
}

static int fail(const struct kiln_block_writer *w, struct kiln_err *err)
{
    return kiln_err_set(err, w->error, w->path, "the block cannot be written: %s",
                        kiln_err_text(w->error));
}

int kiln_block_finish(struct kiln_block_writer *w, struct kiln_err *err)
{
    kiln_writer_end_rows(w);
    kiln_writer_number_all(w);
    kiln_writer_put_dict(w);
    kiln_writer_put_code(w);
    kiln_writer_put_stacks(w);
    if (!w->error) {
        finish_info(w);
        write_footer(w);
    }
    if (!w->error)
        sync_file(w);
    if (!w->error)
        free_content(w);
    return w->error ? fail(w, err) : 0;
}

/*
 * A block that needs more memory to be read than the writer may take is accepted: it is no evidence
 * of damage, and a cut must remain possible.
 */
int kiln_block_read_back(struct kiln_block_writer *w, struct kiln_err *err)
{
    int r = w->finished ? 0 : kiln_block_finish(w, err);
    struct kiln_err why = {0};
    struct kiln_block *block;

    if (r < 0)
        return r;
    r = kiln_block_open(w->io, w->tmp_path, &block, &why);
    if (r == 0) {
        r = w->verify(block, w->budget.limit, &why);
        kiln_block_unref(block);
    }
    if (r == 0 || r == KILN_E_LIMIT)
        return 0;
    return kiln_err_set(err, r, w->path, "the block cannot be read back: %s%s%s", why.where,
                        why.where[0] ? ": " : "", why.text);
}

static void publish(struct kiln_block_writer *w)
{
    struct kiln_io *io = w->io;

    if (!kiln_writer_ok(w, io->rename(io, w->tmp_path, w->path)))
        return;
    w->renamed = true;
    if (kiln_writer_ok(w, io->sync_dir(io, w->folder)))
        w->published = true;
}

int kiln_block_commit(struct kiln_block_writer *w, struct kiln_block_id *ret_id,
                      struct kiln_err *err)
{
    int r = kiln_block_read_back(w, err);

    if (r < 0)
        return r;
    publish(w);
    if (w->error)
        return fail(w, err);
    *ret_id = w->footer.info.id;
    kiln_block_abort(w);
    return 0;
}

void kiln_block_abort(struct kiln_block_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        (void)w->io->close(w->io, w->fd);
    /* Also a renamed one whose name may not last: what failed must not come back later. */
    if (w->opened && !w->published)
        (void)w->io->unlink(w->io, w->renamed ? w->path : w->tmp_path);
    if (w->renamed && !w->published)
        (void)w->io->sync_dir(w->io, w->folder);
    free_content(w);
    kiln_footer_done(&w->footer);
    kiln_arena_done(&w->arena);
    kiln_free(w->tmp_path);
    kiln_free(w->path);
    kiln_free(w->folder);
    kiln_free(w);
}
