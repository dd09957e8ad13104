/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder is listed when somebody first asks; from then on the list in memory is what is there.
 * Two locks: `putting` is held while a file is replaced, `lock` for moments.
 */
#include "store/book.h"

#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "core/intern.h"

#define FILE_MAX       ((size_t)1 << 30)
#define MEMORY_MAX     ((size_t)512 << 20) /* of one file's names, in memory */
#define NAME_MAX_BYTES 240                 /* with room for the ending of a temporary name */
#define BUILDS_BYTES   ((size_t)64 << 20)
#define TMP_ENDING     KILN_STR(".tmp")
#define CACHE_SYMBOLS  (UINT32_MAX - 2) /* beside store/cache.h's */

struct build {
    struct kiln_str id;
    uint64_t age;        /* of the last change; 0: there was none */
    uint64_t changed_ns; /* likewise, by the clock that never jumps; 0: before the start */
    bool named;
    bool damaged; /* its names cannot be read */
};

struct kiln_book {
    struct kiln_book_opts opts;
    pthread_mutex_t putting, lock;
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_intern index;
    struct build *builds;
    uint32_t n, cap, n_named;
    uint64_t last_age;
    bool listed;
};

/* ---- paths ---- */

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
}

/* A text as one component of a path; it never begins with a dot, nor ends as temporary names do. */
static void put_name(struct kiln_buf *out, struct kiln_str text)
{
    size_t ending = kiln_str_ends(text, TMP_ENDING) ? text.len - TMP_ENDING.len : 0;

    for (size_t i = 0; i < text.len; i++) {
        if (is_plain(text.ptr[i]) || (text.ptr[i] == '.' && i > 0 && i != ending))
            kiln_buf_putc(out, text.ptr[i]);
        else
            kiln_buf_printf(out, "%%%02X", (unsigned char)text.ptr[i]);
    }
}

int kiln_symbols_path(struct kiln_str tenant, struct kiln_str build_id,
                      char ret_path[KILN_SYMBOLS_PATH_MAX], struct kiln_err *err)
{
    struct kiln_buf path;
    size_t name;
    int r;

    kiln_buf_init(&path, KILN_SYMBOLS_PATH_MAX - 1);
    kiln_buf_puts(&path, "symbols/");
    put_name(&path, tenant);
    kiln_buf_putc(&path, '/');
    name = path.len;
    put_name(&path, build_id);
    r = path.error;
    if (r == 0 && (tenant.len == 0 || build_id.len == 0 ||
                   build_id.len > KILN_SYMBOLS_BUILD_ID_MAX || path.len - name > NAME_MAX_BYTES))
        r = -EINVAL;
    if (r == 0) {
        memcpy(ret_path, path.ptr, path.len);
        ret_path[path.len] = '\0';
    }
    kiln_buf_done(&path);
    return r < 0 ? kiln_err_set(err, r, NULL, "this is no build id that can be stored") : 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The text that a name stands for; false if it is no such name. */
static bool parse_name(const char *name, char ret[KILN_SYMBOLS_BUILD_ID_MAX],
                       struct kiln_str *ret_text)
{
    size_t n = 0;

    if (kiln_str_ends(kiln_str_of(name), TMP_ENDING))
        return false;
    for (; *name && n < KILN_SYMBOLS_BUILD_ID_MAX; name++) {
        if (*name != '%') {
            ret[n++] = *name;
            continue;
        }
        if (hex_digit(name[1]) < 0 || hex_digit(name[2]) < 0)
            return false;
        ret[n++] = (char)(hex_digit(name[1]) << 4 | hex_digit(name[2]));
        name += 2;
    }
    *ret_text = (struct kiln_str){ret, n};
    return *name == '\0' && n > 0;
}

/* ---- the list ---- */

/* Under the lock; NULL: it is not there. */
static struct build *find(const struct kiln_book *book, struct kiln_str id)
{
    uint64_t hash = kiln_hash(id.ptr, id.len);

    for (struct kiln_probe p = kiln_intern_probe(&book->index, hash);
         kiln_intern_next(&book->index, &p);) {
        if (kiln_str_eq(book->builds[p.entry].id, id))
            return &book->builds[p.entry];
    }
    return NULL;
}

/* Under the lock; the one that is there, or a new one without names. */
static int find_or_add(struct kiln_book *book, struct kiln_str id, struct build **ret)
{
    struct build *known = find(book, id);
    struct kiln_str copy;
    int r;

    if (known) {
        *ret = known;
        return 0;
    }
    r = kiln_grow(&book->budget, (void **)&book->builds, &book->cap, (uint64_t)book->n + 1,
                  sizeof(*book->builds), UINT32_MAX);
    copy = r == 0 ? kiln_arena_copy(&book->arena, id) : KILN_STR_NONE;
    if (r == 0 && !copy.ptr)
        r = -ENOMEM;
    if (r == 0)
        r = kiln_intern_add(&book->index, &book->budget, kiln_hash(id.ptr, id.len), book->n);
    if (r < 0)
        return r;
    book->builds[book->n] = (struct build){.id = copy};
    *ret = &book->builds[book->n++];
    return 0;
}

static void set_named(struct kiln_book *book, struct build *build, bool named)
{
    book->n_named += named - build->named;
    if (book->opts.files)
        kiln_metric_add(book->opts.files, named - build->named);
    build->age = book->last_age = atomic_fetch_add(book->opts.ages, 1) + 1;
    build->named = named;
    build->damaged = false;
}

static int note_file(void *context, const char *name)
{
    char text[KILN_SYMBOLS_BUILD_ID_MAX];
    struct kiln_book *book = context;
    struct build *build;
    struct kiln_str id;
    int r;

    if (!parse_name(name, text, &id))
        return 0;
    r = find_or_add(book, id, &build);
    if (r == 0)
        set_named(book, build, true);
    return r;
}

/* Locks the book, and lists what there is if that was not done yet. */
static void lock(struct kiln_book *book)
{
    char path[KILN_SYMBOLS_PATH_MAX];

    pthread_mutex_lock(&book->lock);
    if (book->listed)
        return;
    book->listed = true;
    if (kiln_symbols_path(book->opts.tenant, KILN_STR("x"), path, NULL) < 0)
        return;
    *strrchr(path, '/') = '\0';
    (void)book->opts.io->list(book->opts.io, path, note_file, book);
}

static void unlock(struct kiln_book *book)
{
    pthread_mutex_unlock(&book->lock);
}

int kiln_book_new(const struct kiln_book_opts *opts, struct kiln_book **ret_book)
{
    struct kiln_book *book = kiln_calloc(1, sizeof(*book) + opts->tenant.len);

    if (!book)
        return -ENOMEM;
    book->opts = *opts;
    if (opts->tenant.len)
        memcpy(book + 1, opts->tenant.ptr, opts->tenant.len);
    book->opts.tenant.ptr = (char *)(book + 1);
    pthread_mutex_init(&book->putting, NULL);
    pthread_mutex_init(&book->lock, NULL);
    book->budget.limit = BUILDS_BYTES;
    kiln_arena_init(&book->arena, &book->budget);
    *ret_book = book;
    return 0;
}

void kiln_book_free(struct kiln_book *book)
{
    if (!book)
        return;
    kiln_intern_done(&book->index, &book->budget);
    kiln_array_free(&book->budget, (void **)&book->builds, &book->cap, sizeof(*book->builds));
    kiln_arena_done(&book->arena);
    pthread_mutex_destroy(&book->putting);
    pthread_mutex_destroy(&book->lock);
    kiln_free(book);
}

uint32_t kiln_book_count(struct kiln_book *book)
{
    uint32_t n;

    lock(book);
    n = book->n_named;
    unlock(book);
    return n;
}

uint64_t kiln_book_age(struct kiln_book *book, struct kiln_str build_id)
{
    const struct build *build;
    uint64_t age;

    lock(book);
    build = find(book, build_id);
    age = build ? build->age : 0;
    unlock(book);
    return age;
}

uint64_t kiln_book_last_age(struct kiln_book *book)
{
    uint64_t age;

    lock(book);
    age = book->last_age;
    unlock(book);
    return age;
}

uint64_t kiln_book_changed(struct kiln_book *book, struct kiln_str build_id)
{
    const struct build *build;
    uint64_t changed_ns;

    lock(book);
    build = find(book, build_id);
    changed_ns = build ? build->changed_ns : 0;
    unlock(book);
    return changed_ns;
}

bool kiln_book_list(struct kiln_book *book, uint32_t number, struct kiln_str *ret_build_id)
{
    bool is_there;

    lock(book);
    is_there = number < book->n;
    if (is_there)
        *ret_build_id = book->builds[number].named ? book->builds[number].id : KILN_STR("");
    unlock(book);
    return is_there;
}

/* ---- reading ---- */

/* Where names are kept in the cache: no block has such an id but by chance, and ages are unique. */
static struct kiln_block_id cache_id(uint64_t age)
{
    uint64_t parts[2] = {kiln_hash(&age, sizeof(age)), age};
    struct kiln_block_id id;

    memcpy(id.bytes, parts, sizeof(id.bytes));
    return id;
}

static int load(struct kiln_book *book, struct kiln_str build_id, struct kiln_symbols **ret,
                struct kiln_err *err)
{
    char path[KILN_SYMBOLS_PATH_MAX];
    void *data;
    size_t len;
    int r = kiln_symbols_path(book->opts.tenant, build_id, path, err);

    if (r < 0)
        return r;
    r = kiln_io_get(book->opts.io, path, FILE_MAX, &data, &len);
    if (r < 0)
        return kiln_err_set(err, r, path, "cannot be read: %s", kiln_err_text(r));
    r = kiln_symbols_decode((struct kiln_str){data, len}, MEMORY_MAX, ret, err);
    kiln_err_within(err, "%s", path);
    kiln_free(data);
    return r;
}

static bool is_own_fault(int code)
{
    return code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

static void note_damage(struct kiln_book *book, struct kiln_str build_id, uint64_t age)
{
    struct build *build;

    lock(book);
    build = find(book, build_id);
    if (build && build->named && build->age == age && !build->damaged) {
        build->damaged = true;
        if (book->opts.damaged)
            kiln_metric_add(book->opts.damaged, 1);
    }
    unlock(book);
}

int kiln_book_get(struct kiln_book *book, struct kiln_str build_id,
                  struct kiln_symbols **ret_symbols)
{
    struct kiln_symbols *symbols = NULL;
    const struct build *build;
    struct kiln_block_id id;
    uint64_t age;
    int r;

    lock(book);
    build = find(book, build_id);
    age = build && build->named && !build->damaged ? build->age : 0;
    unlock(book);
    if (age == 0)
        return 0;
    id = cache_id(age);
    if (book->opts.cache)
        symbols = (struct kiln_symbols *)kiln_cache_find(book->opts.cache, &id, CACHE_SYMBOLS, age);
    if (!symbols) {
        r = load(book, build_id, &symbols, NULL);
        if (r < 0 && !is_own_fault(r) && r != -ENOENT)
            note_damage(book, build_id, age);
        if (r < 0)
            return is_own_fault(r) ? r : 0;
        if (book->opts.cache)
            kiln_cache_put(book->opts.cache, &id, CACHE_SYMBOLS, age,
                           (struct kiln_cached *)symbols);
    }
    *ret_symbols = symbols;
    return 1;
}

size_t kiln_book_share(const struct kiln_book *book)
{
    return book->opts.cache ? book->opts.cache->limit / 2 : MEMORY_MAX;
}

/* ---- writing ---- */

/* The folder of a tenant, in place of the path of a file in it. */
static int make_folder(struct kiln_io *io, char *path)
{
    char *slash = strrchr(path, '/');
    int r = io->mkdir(io, "symbols");

    *slash = '\0';
    if (r == 0)
        r = io->sync_dir(io, ".");
    if (r == 0)
        r = io->mkdir(io, path);
    if (r == 0)
        r = io->sync_dir(io, "symbols");
    *slash = '/';
    return r;
}

static int write_file(struct kiln_book *book, char *path, const struct kiln_buf *out)
{
    int r = make_folder(book->opts.io, path);

    return r < 0 ? r : kiln_io_put(book->opts.io, path, out->ptr, out->len);
}

/* The list says what the disk has, or may have. */
static int note_change(struct kiln_book *book, struct kiln_str build_id, bool named)
{
    struct kiln_block_id id;
    struct build *build;
    uint64_t before = 0;
    int r;

    lock(book);
    r = find_or_add(book, build_id, &build);
    if (r == 0) {
        before = build->age;
        set_named(book, build, named);
        build->changed_ns = kiln_clock_mono_ns();
    }
    unlock(book);
    id = cache_id(before);
    if (before && book->opts.cache)
        kiln_cache_forget(book->opts.cache, &id);
    return r;
}

/* Under `putting`. */
static int put(struct kiln_book *book, char *path, struct kiln_str build_id,
               const struct kiln_symbol *symbols, uint32_t n, struct kiln_err *err)
{
    struct kiln_symbols *before = NULL;
    struct kiln_buf out;
    int r = kiln_book_get(book, build_id, &before);

    kiln_buf_init(&out, FILE_MAX);
    if (r >= 0)
        r = kiln_symbols_encode(build_id, before, symbols, n, &out, err);
    if (r == 0) {
        r = write_file(book, path, &out);
        if (r < 0)
            kiln_err_set(err, r, path, "cannot be written: %s", kiln_err_text(r));
        if (r == 0)
            r = note_change(book, build_id, true);
    }
    kiln_buf_done(&out);
    kiln_symbols_unref(before);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

int kiln_book_put(struct kiln_book *book, struct kiln_str build_id,
                  const struct kiln_symbol *symbols, uint32_t n, struct kiln_err *err)
{
    char path[KILN_SYMBOLS_PATH_MAX];
    int r = kiln_symbols_path(book->opts.tenant, build_id, path, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&book->putting);
    r = put(book, path, build_id, symbols, n, err);
    pthread_mutex_unlock(&book->putting);
    return r;
}

static bool has_names(struct kiln_book *book, struct kiln_str build_id)
{
    const struct build *build;
    bool named;

    lock(book);
    build = find(book, build_id);
    named = build && build->named;
    unlock(book);
    return named;
}

int kiln_book_drop(struct kiln_book *book, struct kiln_str build_id, struct kiln_err *err)
{
    struct kiln_io *io = book->opts.io;
    char path[KILN_SYMBOLS_PATH_MAX];
    int r = kiln_symbols_path(book->opts.tenant, build_id, path, err);

    if (r < 0)
        return r;
    if (!has_names(book, build_id))
        return 0;
    pthread_mutex_lock(&book->putting);
    r = io->unlink(io, path);
    r = r == -ENOENT ? 0 : r;
    if (r == 0)
        r = note_change(book, build_id, false);
    *strrchr(path, '/') = '\0';
    if (r == 0)
        r = io->sync_dir(io, path);
    pthread_mutex_unlock(&book->putting);
    return r < 0 ? kiln_err_set(err, r, path, "cannot be removed: %s", kiln_err_text(r)) : 0;
}
