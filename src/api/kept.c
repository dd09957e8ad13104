/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is held in memory: a call reads the file, and one that changes something writes a new one
 * beside it, syncs it and puts it in its place (kiln_io_put).  These files are small and seldom
 * asked for; what is on the disk is what is answered, also after a write that failed half-way.
 *
 *   kept/TENANT/KIND.json
 *   {"items":[{"name":"theme","modified_ns":"1772366400000000000","text":"{\"dark\":true}"},...]}
 *
 * by name, ascending.  A file that cannot be read is an error and is never replaced.
 */
#include "api/kept.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "core/tenant.h"

#define FOLDER       "kept"
#define FILE_MAX     ((size_t)4 << 20) /* of one tenant and kind */
#define MEMORY_BYTES (4 * FILE_MAX)    /* to read it */

enum { NAME_MAX_BYTES = 1024, PATH_BYTES = 256, KIND_MAX = 32 };

struct kiln_kept {
    struct kiln_io *io;
    pthread_mutex_t lock;    /* one change at a time */
    pthread_mutex_t reading; /* one reader at a time: a page may be large */
};

/* The content of one file. */
struct page {
    struct kiln_kept_item *items; /* by name */
    uint32_t n, cap;
    struct kiln_budget budget;
    struct kiln_arena arena; /* texts */
    char path[PATH_BYTES];
};

int kiln_kept_open(struct kiln_io *io, struct kiln_kept **ret_kept, struct kiln_err *err)
{
    struct kiln_kept *kept = kiln_calloc(1, sizeof(*kept));

    if (!kept)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    kept->io = io;
    pthread_mutex_init(&kept->lock, NULL);
    pthread_mutex_init(&kept->reading, NULL);
    *ret_kept = kept;
    return 0;
}

void kiln_kept_close(struct kiln_kept *kept)
{
    if (!kept)
        return;
    pthread_mutex_destroy(&kept->lock);
    pthread_mutex_destroy(&kept->reading);
    kiln_free(kept);
}

/* ---- reading ---- */

static void page_init(struct page *page)
{
    *page = (struct page){.budget = {.limit = MEMORY_BYTES}};
    kiln_arena_init(&page->arena, &page->budget);
}

static void page_done(struct page *page)
{
    kiln_array_free(&page->budget, (void **)&page->items, &page->cap, sizeof(*page->items));
    kiln_arena_done(&page->arena);
}

static bool is_kind(const char *kind)
{
    size_t n = strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789-_");

    return n > 0 && n <= KIND_MAX && kind[n] == '\0';
}

static int find_path(struct kiln_str tenant, const char *kind, char *path, struct kiln_err *err)
{
    if (!kiln_tenant_valid(tenant))
        return kiln_err_set(err, -EINVAL, "tenant", "one tenant must be named");
    if (!is_kind(kind))
        return kiln_err_set(err, -EINVAL, "kind", "not the name of a kind");
    snprintf(path, PATH_BYTES, FOLDER "/%.*s/%s.json", KILN_STR_ARG(tenant), kind);
    return 0;
}

static int read_text(struct page *page, struct kiln_json *r, struct kiln_str *ret)
{
    struct kiln_str borrowed, text;
    int code = kiln_json_string(r, &borrowed);

    if (code < 0)
        return code;
    text = kiln_arena_copy(&page->arena, borrowed);
    if (!text.ptr)
        return kiln_json_fail(r, -ENOMEM, "out of memory");
    *ret = text;
    return 0;
}

static int read_time(struct kiln_json *r, uint64_t *ret)
{
    struct kiln_str text;
    int code = kiln_json_string(r, &text);

    if (code == 0 && kiln_json_parse_u64(text, ret) < 0)
        code = kiln_json_fail(r, KILN_E_MALFORMED, "not a time");
    return code;
}

static int read_item(struct page *page, struct kiln_json *r)
{
    struct kiln_kept_item item = {KILN_STR(""), KILN_STR(""), 0};
    struct kiln_str name;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("name")))
            code = read_text(page, r, &item.name);
        else if (kiln_str_eq(name, KILN_STR("text")))
            code = read_text(page, r, &item.text);
        else if (kiln_str_eq(name, KILN_STR("modified_ns")))
            code = read_time(r, &item.modified_ns);
        else
            code = kiln_json_skip(r);
    }
    if (code == 0 && page->n > 0 && kiln_str_cmp(page->items[page->n - 1].name, item.name) >= 0)
        code = kiln_json_fail(r, KILN_E_MALFORMED, "names are not in order");
    if (code == 0)
        code = kiln_grow(&page->budget, (void **)&page->items, &page->cap, page->n + UINT64_C(1),
                         sizeof(*page->items), KILN_KEPT_ITEMS_MAX + 1);
    if (code == 0)
        page->items[page->n++] = item;
    return code;
}

static int read_items(struct page *page, struct kiln_json *r)
{
    int code = kiln_json_array(r);

    while (code == 0 && (code = kiln_json_element(r)) > 0)
        code = read_item(page, r);
    return code;
}

static int parse_page(struct page *page, struct kiln_str text, struct kiln_err *err)
{
    struct kiln_json r;
    struct kiln_str name;
    int code;

    kiln_json_init(&r, text, err);
    code = kiln_json_object(&r);
    while (code == 0 && (code = kiln_json_member(&r, &name)) > 0)
        code = kiln_str_eq(name, KILN_STR("items")) ? read_items(page, &r) : kiln_json_skip(&r);
    if (code == 0 && kiln_json_more(&r) != 0)
        code = kiln_json_fail(&r, KILN_E_MALFORMED, "something follows");
    kiln_json_done(&r);
    return code < 0 ? kiln_err_in_file(err, code, page->path) : 0;
}

/* A file that is not there is an empty one. */
static int page_read(struct kiln_kept *kept, struct page *page, struct kiln_err *err)
{
    void *data;
    size_t n;
    int r = kiln_io_get(kept->io, page->path, FILE_MAX, &data, &n);

    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return kiln_err_set(err, r, page->path, "cannot be read: %s", kiln_err_text(r));
    r = parse_page(page, (struct kiln_str){data, n}, err);
    kiln_free(data);
    return r;
}

/* ---- writing ---- */

static void format_page(const struct page *page, struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "items");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < page->n; i++) {
        kiln_json_put_object(&w);
        kiln_json_put_name(&w, "name");
        kiln_json_put_str(&w, page->items[i].name);
        kiln_json_put_name(&w, "modified_ns");
        kiln_json_put_u64_text(&w, page->items[i].modified_ns);
        kiln_json_put_name(&w, "text");
        kiln_json_put_str(&w, page->items[i].text);
        kiln_json_end_object(&w);
    }
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

/* The folders are synced each time: one that was made before a power cut may not be there. */
static int make_folders(struct kiln_io *io, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_BYTES];
    int r;

    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    r = io->mkdir(io, FOLDER);
    if (r == 0)
        r = io->mkdir(io, folder);
    if (r == 0)
        r = io->sync_dir(io, FOLDER);
    return r == 0 ? io->sync_dir(io, ".") : r;
}

static int page_write(struct kiln_kept *kept, const struct page *page, struct kiln_err *err)
{
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, FILE_MAX);
    format_page(page, &text);
    r = text.error;
    if (r == KILN_E_LIMIT)
        kiln_err_set(err, r, NULL, "no more is kept of one kind than %zu MiB", FILE_MAX >> 20);
    if (r == 0)
        r = make_folders(kept->io, page->path);
    if (r == 0)
        r = kiln_io_put(kept->io, page->path, text.ptr, text.len);
    kiln_buf_done(&text);
    return r < 0 ? kiln_err_set(err, r, page->path, "cannot be written: %s", kiln_err_text(r)) : 0;
}

/* ---- changing ---- */

/* Where the name is, or would be. */
static uint32_t find(const struct page *page, struct kiln_str name, bool *ret_found)
{
    uint32_t low = 0, high = page->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (kiln_str_cmp(page->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = low < page->n && kiln_str_eq(page->items[low].name, name);
    return low;
}

static int check_item(const struct kiln_kept_item *item, struct kiln_err *err)
{
    if (item->name.len == 0 || item->name.len > NAME_MAX_BYTES || !kiln_utf8_valid(item->name))
        return kiln_err_set(err, KILN_E_LIMIT, "name", "must have 1 to %d bytes of UTF-8",
                            NAME_MAX_BYTES);
    if (item->text.len > KILN_KEPT_TEXT_MAX || !kiln_utf8_valid(item->text))
        return kiln_err_set(err, KILN_E_LIMIT, "text", "must be UTF-8 of at most %d bytes",
                            KILN_KEPT_TEXT_MAX);
    return 0;
}

static int put_item(struct page *page, const struct kiln_kept_item *item, struct kiln_err *err)
{
    bool found;
    uint32_t at = find(page, item->name, &found);
    int r;

    if (found && page->items[at].modified_ns > item->modified_ns)
        return kiln_err_set(err, -EEXIST, NULL, "there is a later one of this name");
    if (!found && page->n >= KILN_KEPT_ITEMS_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "there are %d of them already: remove some",
                            KILN_KEPT_ITEMS_MAX);
    if (!found) {
        r = kiln_grow(&page->budget, (void **)&page->items, &page->cap, page->n + UINT64_C(1),
                      sizeof(*page->items), KILN_KEPT_ITEMS_MAX + 1);
        if (r < 0)
            return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
        memmove(page->items + at + 1, page->items + at, (page->n - at) * sizeof(*page->items));
        page->n++;
    }
    page->items[at] = *item;
    return 0;
}

int kiln_kept_set(struct kiln_kept *kept, struct kiln_str tenant, const char *kind,
                  const struct kiln_kept_item *item, struct kiln_err *err)
{
    struct page page;
    int r = check_item(item, err);

    page_init(&page);
    if (r == 0)
        r = find_path(tenant, kind, page.path, err);
    pthread_mutex_lock(&kept->lock);
    if (r == 0)
        r = page_read(kept, &page, err);
    if (r == 0)
        r = put_item(&page, item, err);
    if (r == 0)
        r = page_write(kept, &page, err);
    pthread_mutex_unlock(&kept->lock);
    page_done(&page);
    return r;
}

int kiln_kept_delete(struct kiln_kept *kept, struct kiln_str tenant, const char *kind,
                     struct kiln_str name, struct kiln_err *err)
{
    struct page page;
    bool found = false;
    uint32_t at;
    int r;

    page_init(&page);
    r = find_path(tenant, kind, page.path, err);
    pthread_mutex_lock(&kept->lock);
    if (r == 0)
        r = page_read(kept, &page, err);
    if (r == 0) {
        at = find(&page, name, &found);
        if (found) {
            page.n--;
            memmove(page.items + at, page.items + at + 1, (page.n - at) * sizeof(*page.items));
            r = page_write(kept, &page, err);
        }
    }
    pthread_mutex_unlock(&kept->lock);
    page_done(&page);
    return r < 0 ? r : found;
}

/* Without the lock: a file is replaced as a whole, and who is called may change something. */
int kiln_kept_each(struct kiln_kept *kept, struct kiln_str tenant, const char *kind,
                   int (*each)(void *context, const struct kiln_kept_item *item), void *context,
                   struct kiln_err *err)
{
    struct page page;
    int r;

    page_init(&page);
    r = find_path(tenant, kind, page.path, err);
    pthread_mutex_lock(&kept->reading);
    if (r == 0)
        r = page_read(kept, &page, err);
    for (uint32_t i = 0; r == 0 && i < page.n; i++)
        r = each(context, &page.items[i]);
    page_done(&page);
    pthread_mutex_unlock(&kept->reading);
    return r;
}
