/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First all names are listed, so that progress can say of how many; then each file is read by
 * whoever knows its format.
 */
#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "store/block.h"
#include "store/check.h"
#include "store/names.h"
#include "store/store.h"
#include "store/symbols.h"
#include "store/wal.h"

#define SYMBOLS_MAX ((size_t)1 << 30)
#define NAMES_BYTES ((size_t)64 << 20)

struct look {
    struct kiln_io *io;
    const struct kiln_store_check_opts *opts;
    struct kiln_store_check *check;
    struct kiln_names blocks, symbols;
    uint32_t done;
    int failure; /* of memory: the report would not be whole */
};

/* ---- damage ---- */

static void add_damage(struct look *look, const char *path, const struct kiln_err *why)
{
    struct kiln_store_check *c = look->check;
    struct kiln_store_damage *d;
    int r;

    c->n_damages++;
    if (c->n_told >= KILN_CHECK_DAMAGES_MAX)
        return;
    r = kiln_grow(&c->budget, (void **)&c->damages, &c->cap_told, (uint64_t)c->n_told + 1,
                  sizeof(*c->damages), KILN_CHECK_DAMAGES_MAX);
    if (r < 0) {
        look->failure = r;
        return;
    }
    d = &c->damages[c->n_told++];
    *d = (struct kiln_store_damage){.err = *why};
    snprintf(d->path, sizeof(d->path), "%s", path);
    if (strncmp(d->err.where, path, strlen(path)) == 0) {
        const char *rest = d->err.where + strlen(path);

        rest += *rest == '.'; /* the place in the file is enough */
        memmove(d->err.where, rest, strlen(rest) + 1);
    }
}

static void note_progress(struct look *look)
{
    look->done++;
    if (look->opts && look->opts->progress)
        look->opts->progress(look->opts->context, look->done, look->blocks.n + look->symbols.n + 1);
}

/* What the errors of the machine are: they end the check, for nothing is known of the file. */
static bool is_own_fault(int code)
{
    return code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

static void judge(struct look *look, const char *path, int code, const struct kiln_err *why)
{
    if (code == -ENOENT)
        return;
    if (is_own_fault(code))
        look->failure = code;
    else
        add_damage(look, path, why);
}

/* ---- files ---- */

static void check_block(struct look *look, const char *path)
{
    struct kiln_err err = {0};
    struct kiln_block *block = NULL;
    int r = kiln_block_open(look->io, path, &block, &err);

    if (r == 0)
        r = kiln_block_verify(block, &err);
    if (r == 0) {
        const struct kiln_block_info *info = kiln_block_info(block);

        look->check->profiles += info->n_profiles;
        look->check->samples += info->n_samples;
        look->check->bytes += info->bytes;
    } else {
        judge(look, path, r, &err);
    }
    look->check->blocks++;
    kiln_block_unref(block);
    note_progress(look);
}

static void check_symbols(struct look *look, const char *path)
{
    struct kiln_symbols *symbols = NULL;
    struct kiln_err err = {0};
    void *data = NULL;
    size_t n = 0;
    int r = kiln_io_get(look->io, path, SYMBOLS_MAX, &data, &n);

    if (r == 0)
        r = kiln_symbols_decode((struct kiln_str){data, n}, SYMBOLS_MAX, &symbols, &err);
    if (r == 0)
        look->check->bytes += n;
    else
        judge(look, path, r,
              err.code ? &err : &(struct kiln_err){.code = r, .text = "cannot be read"});
    look->check->symbols++;
    kiln_symbols_unref(symbols);
    kiln_free(data);
    note_progress(look);
}

static int count_record(void *context, const struct kiln_wal_record *record)
{
    struct look *look = context;

    (void)record;
    look->check->records++;
    return 0;
}

static void note_log_damage(void *context, const struct kiln_wal_damage *damage)
{
    struct kiln_err err = {.code = KILN_E_CORRUPT};

    snprintf(err.where, sizeof(err.where), "byte %llu", (unsigned long long)damage->offset);
    snprintf(err.text, sizeof(err.text), "%.200s", damage->text);
    add_damage(context, damage->path, &err);
}

static int count_name(void *context, const char *name)
{
    (void)name;
    (*(uint64_t *)context)++;
    return 0;
}

/* Notes stand beside the files that they are of. */
static int count_aside(void *context, const char *name)
{
    return kiln_str_ends(kiln_str_of(name), KILN_STR(".json")) ? 0 : count_name(context, name);
}

static void read_log(struct look *look)
{
    struct kiln_wal_opts opts = {.read_only = true, .damaged = note_log_damage};
    struct kiln_wal *wal = NULL;
    struct kiln_err err = {0};
    int r;

    look->check->segments = look->check->records = 0;
    r = look->io->list(look->io, "wal", count_name, &look->check->segments);
    if (r == 0)
        r = kiln_wal_open(look->io, &opts, 0, count_record, look, &wal, &err);
    if (r < 0)
        judge(look, "wal", r, &err);
    if (wal)
        kiln_wal_close(wal);
}

static bool is_same(const struct kiln_store_damage *a, const struct kiln_store_damage *b)
{
    return strcmp(a->path, b->path) == 0 && strcmp(a->err.where, b->err.where) == 0;
}

/* Keeps, from number `from` on, what is among the `n` of before as well. */
static void keep_common(struct kiln_store_check *c, uint32_t from,
                        const struct kiln_store_damage *before, uint32_t n)
{
    uint32_t kept = from;

    for (uint32_t i = from; i < c->n_told; i++) {
        uint32_t k = 0;

        while (k < n && !is_same(&before[k], &c->damages[i]))
            k++;
        if (k < n)
            c->damages[kept++] = c->damages[i];
    }
    c->n_told = kept;
    c->n_damages = kept;
}

/*
 * A log that is being written to may look damaged where a record was only half there.  What a
 * second reading does not find in the same place was no damage.
 */
static void check_log(struct look *look)
{
    struct kiln_store_check *c = look->check;
    struct kiln_store_damage *before;
    uint32_t from = c->n_told, n;

    read_log(look);
    n = c->n_told - from;
    before = n ? kiln_calloc(n, sizeof(*before)) : NULL;
    if (before) {
        memcpy(before, c->damages + from, n * sizeof(*before));
        c->n_told = from;
        read_log(look);
        keep_common(c, from, before, n);
    }
    kiln_free(before);
    note_progress(look);
}

/* ---- the directory ---- */

static int read_version(struct kiln_str text, uint64_t *ret, struct kiln_err *err)
{
    struct kiln_json r;
    struct kiln_str name;
    int n;

    kiln_json_init(&r, text, err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("version")))
            n = kiln_json_u64(&r, ret);
        else
            n = kiln_json_skip(&r);
    }
    kiln_json_done(&r);
    return n;
}

/* A directory without store.json is no store, unless there are blocks: then it was lost. */
static int check_identity(struct look *look, struct kiln_err *err)
{
    struct kiln_err why = {0};
    uint64_t version = 0;
    void *data = NULL;
    size_t n = 0;
    int r = kiln_io_get(look->io, "store.json", 4096, &data, &n);

    if (r == -ENOENT && look->blocks.n == 0)
        return kiln_err_set(err, -ENOENT, NULL, "there is no store in this directory");
    if (r == 0)
        r = read_version((struct kiln_str){data, n}, &version, &why);
    kiln_free(data);
    if (r < 0)
        add_damage(look, "store.json",
                   why.code ? &why : &(struct kiln_err){.code = r, .text = "cannot be read"});
    if (version > KILN_STORE_VERSION)
        return kiln_err_set(err, KILN_E_UNSUPPORTED, "store.json",
                            "the store has format %llu, this Kiln reads up to %d",
                            (unsigned long long)version, KILN_STORE_VERSION);
    return 0;
}

static int list_all(struct look *look)
{
    int r = kiln_names_below(&look->blocks, look->io, "blocks", ".kb");

    if (r == 0)
        r = kiln_names_below(&look->symbols, look->io, "symbols", NULL);
    if (r == 0) {
        r = look->io->list(look->io, "aside", count_aside, &look->check->aside);
        r = r == -ENOENT ? 0 : r;
    }
    return r;
}

int kiln_store_check(struct kiln_io *io, const struct kiln_store_check_opts *opts,
                     struct kiln_store_check *ret_check, struct kiln_err *err)
{
    struct kiln_store_check check = {.budget.limit = NAMES_BYTES};
    struct look look = {.io = io, .opts = opts, .check = &check};
    int r;

    kiln_names_init(&look.blocks, NAMES_BYTES);
    kiln_names_init(&look.symbols, NAMES_BYTES);
    r = list_all(&look);
    if (r < 0)
        kiln_err_set(err, r, NULL, "the directory cannot be read: %s", kiln_err_text(r));
    if (r == 0)
        r = check_identity(&look, err);
    if (r == 0)
        check_log(&look);
    for (uint32_t i = 0; r == 0 && i < look.blocks.n && !look.failure; i++)
        check_block(&look, kiln_names_get(&look.blocks, i));
    for (uint32_t i = 0; r == 0 && i < look.symbols.n && !look.failure; i++)
        check_symbols(&look, kiln_names_get(&look.symbols, i));
    if (r == 0 && look.failure)
        r = kiln_err_set(err, look.failure, NULL, "%s", kiln_err_text(look.failure));
    kiln_names_done(&look.blocks);
    kiln_names_done(&look.symbols);
    if (r < 0)
        kiln_store_check_done(&check);
    else
        *ret_check = check;
    return r;
}

void kiln_store_check_done(struct kiln_store_check *check)
{
    kiln_free(check->damages);
    *check = (struct kiln_store_check){0};
}

/* ---- JSON ---- */

static void put_number(struct kiln_json_out *w, const char *name, uint64_t number)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, number);
}

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

void kiln_store_check_format(const struct kiln_store_check *check, struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    put_number(&w, "blocks", check->blocks);
    put_number(&w, "segments", check->segments);
    put_number(&w, "records", check->records);
    put_number(&w, "symbols", check->symbols);
    put_number(&w, "profiles", check->profiles);
    put_number(&w, "samples", check->samples);
    put_number(&w, "bytes", check->bytes);
    put_number(&w, "aside", check->aside);
    put_number(&w, "damaged", check->n_damages);
    kiln_json_put_name(&w, "damages");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < check->n_told; i++) {
        kiln_json_put_object(&w);
        put_text(&w, "path", check->damages[i].path);
        put_text(&w, "where", check->damages[i].err.where);
        put_text(&w, "text", check->damages[i].err.text);
        kiln_json_end_object(&w);
    }
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}
