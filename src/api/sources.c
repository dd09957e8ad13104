/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name is made harmless first (".." takes the part before it away, and one too many is dropped;
 * the backslashes of Windows are slashes), and then looked for: in every place with a prefix that
 * fits, then in every directory by itself.  A directory is opened anew for each question: it may be
 * a link that a deployment changes.
 */
#include "api/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/file.h"
#include "base/mem.h"

enum { TRIES_MAX = 64 }; /* of one directory */

struct root {
    char *dir;
    struct kiln_source_name *prefix; /* NULL: any name may be in it */
    struct kiln_source_name *own;    /* its own path, where that is a whole one */
};

struct kiln_sources {
    struct root *roots;
    uint32_t n;
};

/* ---- names ---- */

static bool is_word(struct kiln_str part, const char *word)
{
    return kiln_str_eq(part, kiln_str_of(word));
}

static int add_part(struct kiln_source_name *name, struct kiln_str part)
{
    size_t at =
        name->n ? name->starts[name->n - 1] + strlen(name->text + name->starts[name->n - 1]) : 0;

    if (part.len == 0 || is_word(part, "."))
        return 0;
    if (is_word(part, "..")) {
        if (name->n)
            name->text[name->starts[--name->n]] = '\0';
        if (name->n)
            name->text[name->starts[name->n] - 1] = '\0';
        return 0;
    }
    if (name->n == KILN_SOURCE_PARTS_MAX || part.len >= 256 ||
        at + 1 + part.len >= sizeof(name->text))
        return KILN_E_MALFORMED;
    if (name->n)
        name->text[at++] = '/';
    name->starts[name->n++] = (uint16_t)at;
    memcpy(name->text + at, part.ptr, part.len);
    name->text[at + part.len] = '\0';
    return 0;
}

/* Who has no slash at all may have the other one. */
static char slash_of(struct kiln_str file)
{
    return !memchr(file.ptr, '/', file.len) && memchr(file.ptr, '\\', file.len) ? '\\' : '/';
}

int kiln_source_name_parse(struct kiln_str file, struct kiln_source_name *ret_name)
{
    char slash;
    int r = 0;

    ret_name->n = ret_name->first_open = 0;
    ret_name->text[0] = '\0';
    if (file.len == 0 || memchr(file.ptr, '\0', file.len))
        return KILN_E_MALFORMED;
    slash = slash_of(file);
    while (r == 0 && file.ptr)
        r = add_part(ret_name, kiln_str_cut(&file, slash));
    for (uint32_t i = 0; i < ret_name->n; i++) {
        if (ret_name->text[ret_name->starts[i]] == '.')
            ret_name->first_open = i + 1;
    }
    return r < 0 || ret_name->n == 0 ? KILN_E_MALFORMED : 0;
}

const char *kiln_source_name_behind(const struct kiln_source_name *name,
                                    const struct kiln_source_name *prefix)
{
    size_t len = strlen(prefix->text);

    if (prefix->n >= name->n || prefix->n < name->first_open ||
        strncmp(name->text, prefix->text, len) != 0 || name->text[len] != '/')
        return NULL;
    return name->text + len + 1;
}

/* ---- places ---- */

static int parse_name(const char *text, struct kiln_source_name **ret_name)
{
    struct kiln_source_name *name = kiln_malloc(sizeof(*name));
    int r = name ? kiln_source_name_parse(kiln_str_of(text), name) : -ENOMEM;

    if (r < 0)
        kiln_free(name);
    else
        *ret_name = name;
    return r;
}

static int check_dir(const char *dir, struct kiln_err *err)
{
    struct stat st;
    int r = kiln_file_stat(dir, &st);

    if (r == 0 && !S_ISDIR(st.st_mode))
        r = -ENOTDIR;
    return r < 0 ? kiln_err_set(err, r, dir, "no directory to read source text from: %s",
                                strerror(-r))
                 : 0;
}

static int add_root(struct kiln_sources *sources, const char *place, struct kiln_err *err)
{
    struct root *root = &sources->roots[sources->n];
    const char *equals = strchr(place, '=');
    int r = 0;

    root->dir = kiln_malloc(strlen(place) + 1);
    if (!root->dir)
        return -ENOMEM;
    sources->n++;
    memcpy(root->dir, place, strlen(place) + 1);
    if (equals) {
        root->dir[equals - place] = '\0';
        r = parse_name(root->dir, &root->prefix);
        memmove(root->dir, equals + 1, strlen(equals + 1) + 1);
    } else if (place[0] == '/') {
        (void)!parse_name(place, &root->own); /* "/" has none */
    }
    if (r == KILN_E_MALFORMED)
        return kiln_err_set(err, -EINVAL, place, "no beginning of a path before the \"=\"");
    return r < 0 ? r : check_dir(root->dir, err);
}

int kiln_sources_new(const char *const *places, uint32_t n, struct kiln_sources **ret_sources,
                     struct kiln_err *err)
{
    struct kiln_sources *sources;
    int r = 0;

    if (n > KILN_SOURCES_MAX)
        return kiln_err_set(err, -EINVAL, NULL, "more than %d directories of source text",
                            KILN_SOURCES_MAX);
    sources = kiln_calloc(1, sizeof(*sources));
    if (sources)
        sources->roots = kiln_calloc(n ? n : 1, sizeof(*sources->roots));
    if (!sources || !sources->roots)
        r = -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = add_root(sources, places[i], err);
    if (r < 0) {
        kiln_sources_free(sources);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_sources = sources;
    return 0;
}

void kiln_sources_free(struct kiln_sources *sources)
{
    if (!sources)
        return;
    for (uint32_t i = 0; i < sources->n; i++) {
        kiln_free(sources->roots[i].dir);
        kiln_free(sources->roots[i].prefix);
        kiln_free(sources->roots[i].own);
    }
    kiln_free(sources->roots);
    kiln_free(sources);
}

/* ---- finding ---- */

/* What is found, or the most telling reason why not. */
struct finding {
    const struct kiln_source_name *name;
    const char *path; /* in its directory */
    struct stat st;
    int why;
};

static void remember(struct finding *f, int why)
{
    if (f->why == -ENOENT || f->why == -ENOTDIR)
        f->why = why;
}

static int try_path(struct finding *f, int dir, const char *path)
{
    int fd = kiln_open_beneath(
        dir, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS, &f->st);

    if (fd < 0)
        remember(f, fd);
    else
        f->path = path;
    return fd;
}

/* The whole name first; of one with very many parts, its last ones. */
static int try_endings(struct finding *f, int dir)
{
    const struct kiln_source_name *name = f->name;
    uint32_t i = name->n > TRIES_MAX ? name->n - TRIES_MAX : 0;
    int fd = -ENOENT;

    for (i = i > name->first_open ? i : name->first_open; fd < 0 && i < name->n; i++)
        fd = try_path(f, dir, name->text + name->starts[i]);
    return fd;
}

/* `mapped`: only where a prefix says how. */
static int try_root(struct finding *f, const struct root *root, bool mapped)
{
    const struct kiln_source_name *prefix = mapped ? root->prefix : root->own;
    const char *behind = prefix ? kiln_source_name_behind(f->name, prefix) : NULL;
    int dir, fd = -ENOENT;

    if (mapped ? !behind : root->prefix != NULL)
        return -ENOENT;
    dir = kiln_file_open(root->dir);
    if (dir < 0) {
        remember(f, dir);
        return -ENOENT;
    }
    if (behind)
        fd = try_path(f, dir, behind);
    if (fd < 0 && !mapped)
        fd = try_endings(f, dir);
    close(dir);
    return fd;
}

static int find(const struct kiln_sources *sources, struct finding *f)
{
    int fd = -ENOENT;

    for (uint32_t i = 0; fd < 0 && i < sources->n; i++)
        fd = try_root(f, &sources->roots[i], true);
    for (uint32_t i = 0; fd < 0 && i < sources->n; i++)
        fd = try_root(f, &sources->roots[i], false);
    return fd;
}

static int not_found(const struct finding *f, struct kiln_err *err)
{
    switch (f->why) {
    case -EACCES:
        return kiln_err_set(err, -EACCES, NULL, "the server may not read it");
    case -ELOOP:
        return kiln_err_set(err, -ELOOP, NULL,
                            "it is behind a symbolic link, which is not followed");
    default:
        return kiln_err_set(err, -ENOENT, NULL,
                            "it is beneath none of the directories of --source (where the paths "
                            "of the build are others, say --source PREFIX=DIR)");
    }
}

/* ---- reading ---- */

static int read_all(int fd, struct kiln_buf *out)
{
    size_t left = KILN_SOURCE_BYTES_MAX;
    ssize_t got;

    do {
        char *at = kiln_buf_reserve(out, left < 65536 ? left + 1 : 65536);

        if (!at)
            return out->error;
        got = read(fd, at, left < 65536 ? left + 1 : 65536);
        if (got < 0)
            return -errno;
        if ((size_t)got > left)
            return KILN_E_LIMIT;
        out->len += (size_t)got;
        left -= (size_t)got;
    } while (got > 0);
    return 0;
}

static int read_text(int fd, const struct stat *st, struct kiln_buf *out, struct kiln_err *err)
{
    size_t before = out->len;
    int r = st->st_size > KILN_SOURCE_BYTES_MAX ? KILN_E_LIMIT : read_all(fd, out);

    if (r == KILN_E_LIMIT)
        return kiln_err_set(err, r, NULL, "it is larger than %d MiB", KILN_SOURCE_BYTES_MAX >> 20);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "it cannot be read: %s", kiln_err_text(r));
    if (out->len > before && memchr(out->ptr + before, '\0', out->len - before))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "it is no text");
    return 0;
}

int kiln_sources_read(const struct kiln_sources *sources, struct kiln_str file,
                      struct kiln_buf *out, char ret_path[KILN_SOURCE_PATH_MAX],
                      struct kiln_err *err)
{
    struct kiln_source_name name;
    struct finding f = {.name = &name, .why = -ENOENT};
    int fd, r;

    if (kiln_source_name_parse(file, &name) < 0)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "this cannot be the name of a file");
    if (name.first_open == name.n)
        return kiln_err_set(err, -EACCES, NULL, "hidden files are not shown");
    fd = find(sources, &f);
    if (fd < 0)
        return not_found(&f, err);
    r = read_text(fd, &f.st, out, err);
    close(fd);
    if (r == 0)
        memcpy(ret_path, f.path, strlen(f.path) + 1);
    return r;
}
