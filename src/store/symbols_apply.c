/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol files, and what they say of a batch: each mapping with a build id is looked up once, and
 * the batch goes through an edit that asks for the lines of locations without a name.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/frame.h"
#include "core/remap.h"
#include "store/symbols.h"

#define FILE_MAX       (UINT64_C(1) << 30)
#define NAME_MAX_BYTES 240 /* with room for the ending of a temporary name */

/* ---- files ---- */

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
}

/* A text as one component of a path; the first byte is never a dot. */
static void put_name(struct kiln_buf *out, struct kiln_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (is_plain(text.ptr[i]) || (text.ptr[i] == '.' && i > 0))
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

/* The folder of a tenant, in place of the path of a file in it. */
static int make_folder(struct kiln_io *io, char *path)
{
    char *slash = strrchr(path, '/');
    int r = io->mkdir(io, "symbols");

    *slash = '\0';
    if (r == 0)
        r = io->mkdir(io, path);
    if (r == 0)
        r = io->sync_dir(io, "symbols");
    *slash = '/';
    return r;
}

int kiln_symbols_put(struct kiln_io *io, struct kiln_str tenant, struct kiln_str build_id,
                     const struct kiln_symbol *symbols, uint32_t n, struct kiln_err *err)
{
    char path[KILN_SYMBOLS_PATH_MAX];
    struct kiln_buf out;
    int r = kiln_symbols_path(tenant, build_id, path, err);

    if (r < 0)
        return r;
    kiln_buf_init(&out, FILE_MAX);
    r = kiln_symbols_encode(build_id, symbols, n, &out, err);
    if (r == 0) {
        r = make_folder(io, path);
        if (r == 0)
            r = kiln_io_put(io, path, out.ptr, out.len);
        if (r < 0)
            kiln_err_set(err, r, path, "cannot be written: %s", kiln_err_text(r));
    }
    kiln_buf_done(&out);
    return r;
}

/* -ENOENT where there is none. */
static int load(struct kiln_io *io, struct kiln_str tenant, struct kiln_str build_id,
                size_t memory_bytes, struct kiln_symbols **ret_symbols, struct kiln_err *err)
{
    char path[KILN_SYMBOLS_PATH_MAX];
    void *data;
    size_t len;
    int r = kiln_symbols_path(tenant, build_id, path, err);

    if (r < 0)
        return r;
    r = kiln_io_get(io, path, memory_bytes, &data, &len);
    if (r < 0)
        return kiln_err_set(err, r, path, "cannot be read: %s", kiln_err_text(r));
    r = kiln_symbols_decode((struct kiln_str){data, len}, memory_bytes, ret_symbols, err);
    kiln_err_within(err, "%s", path);
    kiln_free(data);
    return r;
}

/* ---- a batch ---- */

struct naming {
    struct kiln_symbols **by_set; /* of the attributes of a mapping; NULL: none */
    size_t memory_bytes;          /* what is left */
    uint32_t n_sets;
    uint32_t found, damaged;
};

static const struct kiln_str build_id_keys[] = {
    {"process.executable.build_id.gnu", 31},
    {"process.executable.build_id.go", 30},
    {"process.executable.build_id.htlhash", 35},
};

static int load_for(struct naming *naming, struct kiln_io *io, struct kiln_str tenant,
                    const struct kiln_batch *batch, uint32_t set)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(build_id_keys); i++) {
        struct kiln_str id = kiln_set_text(batch, set, build_id_keys[i]);
        struct kiln_symbols *symbols;
        int r;

        if (id.len == 0 || id.len > KILN_SYMBOLS_BUILD_ID_MAX)
            continue;
        r = load(io, tenant, id, naming->memory_bytes, &symbols, NULL);
        if (r == -ENOMEM || r == KILN_E_LIMIT)
            return r;
        if (r == 0) {
            naming->by_set[set] = symbols;
            naming->memory_bytes -= kiln_symbols_bytes(symbols);
            naming->found++;
            return 0;
        }
        naming->damaged += r != -ENOENT && r != -EINVAL;
    }
    return 0;
}

/* Looks up the mappings of locations that have no name, each set of attributes once. */
static int load_all(struct naming *naming, struct kiln_io *io, struct kiln_str tenant,
                    const struct kiln_batch *batch)
{
    bool *asked = kiln_calloc(naming->n_sets, sizeof(*asked));
    int r = asked ? 0 : -ENOMEM;

    for (uint32_t i = 1; r == 0 && i < batch->dict.n_locations; i++) {
        const struct kiln_location *l = &batch->dict.locations[i];
        uint32_t set = batch->dict.mappings[l->mapping].attrs;

        if (set && !asked[set] && kiln_frame_lacks_name(&batch->dict, l)) {
            asked[set] = true;
            r = load_for(naming, io, tenant, batch, set);
        }
    }
    kiln_free(asked);
    return r;
}

static int is_there(void *context, const char *name)
{
    (void)name;
    *(bool *)context = true;
    return -ECANCELED;
}

bool kiln_symbols_any(struct kiln_io *io, struct kiln_str tenant)
{
    char path[KILN_SYMBOLS_PATH_MAX];
    bool found = false;

    if (kiln_symbols_path(tenant, KILN_STR("x"), path, NULL) < 0)
        return false;
    *strrchr(path, '/') = '\0';
    return io->list(io, path, is_there, &found) < 0 && found;
}

static bool name_line(void *context, struct kiln_builder *b, const struct kiln_batch *from,
                      const struct kiln_location *location, struct kiln_line *line)
{
    const struct naming *naming = context;
    const struct kiln_symbols *symbols =
        naming->by_set[from->dict.mappings[location->mapping].attrs];
    struct kiln_function function = {0};
    struct kiln_symbol symbol;

    if (!symbols || !kiln_symbols_find(symbols, kiln_frame_address(from, location), &symbol))
        return false;
    function.name = function.system_name = kiln_builder_string(b, symbol.name);
    function.filename = kiln_builder_string(b, symbol.file);
    *line =
        (struct kiln_line){.function = kiln_builder_function(b, &function), .line = symbol.line};
    return true;
}

static int name_batch(struct naming *naming, struct kiln_batch **batch, struct kiln_err *err)
{
    struct kiln_remap_edit edit = {.context = naming, .line = name_line};
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_batch *named;
    int r;

    limits.memory_bytes = naming->memory_bytes;
    r = kiln_remap_batch(*batch, &edit, &limits, &named, err);
    if (r < 0)
        return r;
    kiln_batch_unref(*batch);
    *batch = named;
    return 0;
}

int kiln_symbols_apply(struct kiln_io *io, struct kiln_str tenant, size_t memory_bytes,
                       struct kiln_batch **batch, uint32_t *ret_damaged, struct kiln_err *err)
{
    struct naming naming = {.n_sets = (*batch)->dict.n_sets, .memory_bytes = memory_bytes};
    int r;

    *ret_damaged = 0;
    if (!kiln_symbols_any(io, tenant))
        return 0;
    naming.by_set = kiln_calloc(naming.n_sets, sizeof(*naming.by_set));
    r = naming.by_set ? load_all(&naming, io, tenant, *batch) : -ENOMEM;
    if (r == 0 && naming.found)
        r = name_batch(&naming, batch, err);
    *ret_damaged = naming.damaged;
    for (uint32_t i = 0; naming.by_set && i < naming.n_sets; i++)
        kiln_symbols_free(naming.by_set[i]);
    kiln_free(naming.by_set);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

/* ---- one location at a time ---- */

struct kiln_symbol_finder {
    struct kiln_io *io;
    char *tenant;
    size_t tenant_len;
    struct kiln_budget budget;
    struct naming naming;
    bool *asked; /* parallel to naming.by_set */
    uint32_t cap_by_set, cap_asked;
};

int kiln_symbol_finder_new(struct kiln_io *io, struct kiln_str tenant, size_t memory_bytes,
                           struct kiln_symbol_finder **ret_finder)
{
    struct kiln_symbol_finder *f;

    *ret_finder = NULL;
    if (!kiln_symbols_any(io, tenant))
        return 0;
    f = kiln_calloc(1, sizeof(*f) + tenant.len);
    if (!f)
        return -ENOMEM;
    f->io = io;
    f->tenant = (char *)(f + 1);
    f->tenant_len = tenant.len;
    memcpy(f->tenant, tenant.ptr, tenant.len);
    f->budget.limit = SIZE_MAX;
    f->naming.memory_bytes = memory_bytes;
    *ret_finder = f;
    return 0;
}

void kiln_symbol_finder_free(struct kiln_symbol_finder *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->naming.n_sets; i++)
        kiln_symbols_free(f->naming.by_set[i]);
    kiln_array_free(&f->budget, (void **)&f->naming.by_set, &f->cap_by_set,
                    sizeof(*f->naming.by_set));
    kiln_array_free(&f->budget, (void **)&f->asked, &f->cap_asked, sizeof(*f->asked));
    kiln_free(f);
}

static int finder_room(struct kiln_symbol_finder *f, uint32_t n)
{
    uint32_t have = f->naming.n_sets;
    int r;

    if (n <= have)
        return 0;
    r = kiln_reserve(&f->budget, (void **)&f->naming.by_set, &f->cap_by_set, n,
                     sizeof(*f->naming.by_set), UINT32_MAX);
    if (r == 0)
        r = kiln_reserve(&f->budget, (void **)&f->asked, &f->cap_asked, n, sizeof(*f->asked),
                         UINT32_MAX);
    if (r < 0)
        return r;
    memset(f->naming.by_set + have, 0, (n - have) * sizeof(*f->naming.by_set));
    memset(f->asked + have, 0, (n - have) * sizeof(*f->asked));
    f->naming.n_sets = n;
    return 0;
}

int kiln_symbol_finder_get(struct kiln_symbol_finder *f, const struct kiln_batch *batch,
                           const struct kiln_location *location, struct kiln_symbol *ret_symbol)
{
    uint32_t set = batch->dict.mappings[location->mapping].attrs;
    int r = 0;

    if (set == 0)
        return 0;
    r = finder_room(f, batch->dict.n_sets);
    if (r == 0 && !f->asked[set]) {
        f->asked[set] = true;
        r = load_for(&f->naming, f->io, (struct kiln_str){f->tenant, f->tenant_len}, batch, set);
    }
    if (r < 0 || !f->naming.by_set[set])
        return r;
    return kiln_symbols_find(f->naming.by_set[set], kiln_frame_address(batch, location),
                             ret_symbol);
}
