/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places are tried one after the other as they are made: a place is a directory and a name, joined
 * and straightened (".." is taken as text, as the link that led to a debug file is).
 */
#include "symbol/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/bytetext.h"

enum { PATH_BYTES = 4096 };

#define DEBUG_DIRECTORY "/usr/lib/debug"

struct search {
    struct kiln_debugfile *where;
    uint32_t attempt;
    int fd; /* found; -1: not yet */
    struct kiln_str directory;
    char path[PATH_BYTES];
};

/* Without ".", "..", "//"; absolute.  False: it is too long. */
static bool join(char to[PATH_BYTES], struct kiln_str directory, struct kiln_str name)
{
    struct kiln_str parts[] = {directory, name};
    size_t n = 0;

    for (uint32_t i = 0; i < 2; i++) {
        struct kiln_str rest = parts[i];

        while (rest.len) {
            struct kiln_str part = kiln_str_cut(&rest, '/');

            if (kiln_str_eq(part, KILN_STR(".."))) {
                while (n > 0 && to[--n] != '/')
                    ;
                continue;
            }
            if (part.len == 0 || kiln_str_eq(part, KILN_STR(".")))
                continue;
            if (part.len + 2 > PATH_BYTES - n || memchr(part.ptr, 0, part.len))
                return false;
            to[n++] = '/';
            memcpy(to + n, part.ptr, part.len);
            n += part.len;
        }
    }
    to[n] = '\0';
    return n > 0;
}

static bool is_elf(int fd)
{
    char magic[4];

    return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && memcmp(magic, "\177ELF", 4) == 0;
}

static bool is_trusted(const struct kiln_debugfile *where, const struct stat *st)
{
    return !where->owned || st->st_uid == 0 || st->st_uid == where->owner;
}

/* True: it is found, no more need be tried. */
static bool try(struct search *s, struct kiln_str directory, struct kiln_str name)
{
    struct stat st;
    bool fits;
    int fd;

    if (!name.len || !join(s->path, directory, name) || strcmp(s->path, s->where->program) == 0)
        return false;
    fd = kiln_open_beneath(s->where->root, s->path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, &st);
    if (fd < 0)
        return false;
    fits = is_trusted(s->where, &st) && is_elf(fd);
    if (fits && s->where->passed == s->attempt) {
        s->fd = fd;
        return true;
    }
    s->where->passed += fits;
    close(fd);
    return false;
}

/* In /usr/lib/debug, as if that were the root. */
static bool try_mirrored(struct search *s, struct kiln_str directory, struct kiln_str name)
{
    char mirrored[PATH_BYTES];

    return join(mirrored, KILN_STR(DEBUG_DIRECTORY), directory) &&
           try(s, kiln_str_of(mirrored), name);
}

/* The same, also where /lib is but a link to /usr/lib. */
static bool try_debug(struct search *s, struct kiln_str directory, struct kiln_str name)
{
    char merged[PATH_BYTES];

    if (try_mirrored(s, directory, name))
        return true;
    if (kiln_str_starts(directory, KILN_STR("/usr/")))
        return try_mirrored(s, (struct kiln_str){directory.ptr + 4, directory.len - 4}, name);
    return join(merged, KILN_STR("/usr"), directory) && try_mirrored(s, kiln_str_of(merged), name);
}

static bool try_id(struct search *s, const struct kiln_wanted *wanted)
{
    char hex[2 * KILN_BUILD_ID_MAX];
    char name[2 * KILN_BUILD_ID_MAX + 8];
    size_t n = (size_t)2 * wanted->build_id_len;

    if (wanted->build_id_len < 2)
        return false;
    kiln_hex_encode(wanted->build_id, wanted->build_id_len, hex);
    memcpy(name, hex, 2);
    name[2] = '/';
    memcpy(name + 3, hex + 2, n - 2);
    memcpy(name + n + 1, ".debug", 6);
    return try(s, KILN_STR(DEBUG_DIRECTORY "/.build-id"), (struct kiln_str){name, n + 7});
}

static struct kiln_str last_part(struct kiln_str path)
{
    for (size_t i = path.len; i > 0; i--)
        if (path.ptr[i - 1] == '/')
            return (struct kiln_str){path.ptr + i, path.len - i};
    return path;
}

static bool is_absolute(struct kiln_str path)
{
    return path.len > 0 && path.ptr[0] == '/';
}

static bool find_debug(struct search *s, const struct kiln_wanted *wanted)
{
    struct kiln_str name = wanted->name;
    char hidden[PATH_BYTES];

    if (try_id(s, wanted))
        return true;
    if (s->where->by_id || memchr(name.ptr ? name.ptr : "", '/', name.len))
        return false;
    return try(s, s->directory, name) ||
           (join(hidden, s->directory, KILN_STR(".debug")) && try(s, kiln_str_of(hidden), name)) ||
           try_debug(s, s->directory, name);
}

static bool find_alternate(struct search *s, const struct kiln_wanted *wanted)
{
    struct kiln_str name = wanted->name;

    if (wanted->build_id_len && is_absolute(name) && try(s, KILN_STR_NONE, name))
        return true;
    if (wanted->build_id_len && !is_absolute(name) &&
        (try(s, KILN_STR(DEBUG_DIRECTORY "/.build-id/00"), name) ||
         (!s->where->by_id && (try(s, s->directory, name) || try_debug(s, s->directory, name)))))
        return true;
    return try(s, KILN_STR(DEBUG_DIRECTORY "/.dwz"), last_part(name)) || try_id(s, wanted);
}

static bool find_dwp(struct search *s)
{
    char name[PATH_BYTES];
    struct kiln_str program = last_part(kiln_str_of(s->where->program));

    if (s->where->by_id || program.len + 5 > sizeof(name))
        return false;
    memcpy(name, program.ptr, program.len);
    memcpy(name + program.len, ".dwp", 5);
    return try(s, s->directory, kiln_str_of(name)) || try_debug(s, s->directory, kiln_str_of(name));
}

static bool find_dwo(struct search *s, const struct kiln_wanted *wanted)
{
    struct kiln_str name = wanted->name;

    if (s->where->by_id)
        return false;
    if (is_absolute(name) ? try(s, KILN_STR_NONE, name) : try(s, wanted->directory, name))
        return true;
    return (!is_absolute(name) && try(s, s->directory, name)) ||
           try(s, s->directory, last_part(name));
}

int kiln_debugfile_open(struct kiln_debugfile *where, const struct kiln_wanted *wanted, int *ret_fd)
{
    struct search s = {.where = where, .attempt = wanted->attempt, .fd = -1};
    struct kiln_str program = kiln_str_of(where->program);

    where->passed = 0;
    s.directory = (struct kiln_str){program.ptr, program.len - last_part(program).len};
    if (wanted->kind == KILN_WANTED_DEBUG)
        (void)find_debug(&s, wanted);
    else if (wanted->kind == KILN_WANTED_ALTERNATE)
        (void)find_alternate(&s, wanted);
    else if (wanted->kind == KILN_WANTED_DWP)
        (void)find_dwp(&s);
    else if (wanted->kind == KILN_WANTED_DWO)
        (void)find_dwo(&s, wanted);
    if (s.fd < 0)
        return -ENOENT;
    *ret_fd = s.fd;
    return 0;
}

int kiln_debugfile_opener(void *context, const struct kiln_wanted *wanted, int *ret_fd)
{
    return kiln_debugfile_open(context, wanted, ret_fd);
}
