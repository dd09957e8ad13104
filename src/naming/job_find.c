/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has the file of a build id.  It is looked for until something has lines:
 *
 *   1. uploads of the tenant, and what was fetched before
 *   2. what a process of this host has mapped that sent a profile of it (naming/local.h)
 *   3. the server's own: FOLDER/.build-id/AB/CDEF.debug (and without the ending: the executable) of
 *      /usr/lib/debug and of the folders in the settings; the executable also where the profile has
 *      it, if that is among the system's files.  A file counts if it is of that build id.
 *   4. debuginfod
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/bytetext.h"
#include "base/file.h"
#include "naming/job_int.h"
#include "naming/local.h"

#define SYSTEM_DEBUG "/usr/lib/debug"

struct finding {
    struct kiln_naming *naming;
    const char *tenant;
    struct kiln_str build_id;
    struct kiln_found_files *files;
};

static void say(struct kiln_found_files *files, const char *what, const char *how)
{
    size_t at = strlen(files->why);

    snprintf(files->why + at, sizeof(files->why) - at, "%s%s: %s", at ? "; " : "", what, how);
}

static bool is_hex(struct kiln_str id)
{
    for (size_t i = 0; i < id.len; i++)
        if (kiln_hex_digit(id.ptr[i]) < 0)
            return false;
    return id.len >= 4 && id.len <= 2 * KILN_BUILD_ID_MAX;
}

/* ---- what is believed ---- */

static void note_facts(struct kiln_found_files *files, const struct kiln_debug_facts *facts)
{
    files->has_lines |= facts->has_lines;
    files->has_names |= facts->has_symtab || facts->go[0];
}

/* Takes a descriptor if it is a file of this build id; closes it otherwise. */
static bool take(struct finding *f, int fd)
{
    struct kiln_debug_facts facts;
    struct kiln_bytes bytes;
    int *to = NULL;

    if (kiln_bytes_file(fd, &bytes) == 0 && kiln_debug_inspect(&bytes, &facts, NULL) == 0 &&
        kiln_debug_facts_match(&facts, f->build_id))
        to = facts.kind == KILN_DEBUG_INFO ? &f->files->info : &f->files->executable;
    if (!to || *to >= 0) {
        close(fd);
        return false;
    }
    *to = fd;
    note_facts(f->files, &facts);
    return true;
}

/* ---- the depot ---- */

static void look_in_depot(struct finding *f, const char *tenant)
{
    static const enum kiln_debug_kind kinds[] = {KILN_DEBUG_EXECUTABLE, KILN_DEBUG_INFO};
    struct kiln_depot *depot = f->naming->opts.depot;
    int *to[] = {&f->files->executable, &f->files->info};

    for (size_t i = 0; i < KILN_ARRAY_LEN(kinds); i++) {
        struct kiln_depot_file file;

        if (*to[i] < 0 && kiln_depot_look(depot, tenant, f->build_id, kinds[i], &file) == 0 &&
            kiln_depot_get(depot, tenant, f->build_id, kinds[i], to[i]) == 0)
            note_facts(f->files, &file.facts);
    }
}

/* ---- files of who sent it ---- */

static void look_nearby(struct finding *f)
{
    struct kiln_local_files *local = f->naming->opts.local;
    int fd;

    if (local && f->files->executable < 0 && kiln_local_files_get(local, f->build_id, &fd) == 0)
        (void)take(f, fd);
}

/* ---- the server's own files ---- */

/* `folder` is the administrator's: links in it may lead anywhere. */
static bool look_at(struct finding *f, const char *folder, const char *ending)
{
    char path[PATH_MAX];
    struct stat st;
    int dir = kiln_file_open(folder), fd;

    if (dir < 0)
        return false;
    snprintf(path, sizeof(path), ".build-id/%.2s/%.*s%s", f->build_id.ptr, (int)f->build_id.len - 2,
             f->build_id.ptr + 2, ending);
    fd = kiln_open_beneath(dir, path, 0, &st);
    close(dir);
    return fd >= 0 && take(f, fd);
}

static bool is_of_system(struct kiln_str path)
{
    static const struct kiln_str roots[] = {{"/usr/", 5}, {"/lib/", 5},  {"/lib64/", 7},
                                            {"/bin/", 5}, {"/sbin/", 6}, {"/opt/", 5}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(roots); i++)
        if (kiln_str_starts(path, roots[i]))
            return !kiln_str_contains(path, KILN_STR("/../"));
    return false;
}

/* The name comes from a stranger: only files that everybody may know of. */
static bool look_at_program(struct finding *f, struct kiln_str name)
{
    char path[PATH_MAX];
    struct stat st;
    int fd;

    if (!is_of_system(name) || name.len >= sizeof(path) || memchr(name.ptr, '\0', name.len))
        return false;
    memcpy(path, name.ptr, name.len);
    path[name.len] = '\0';
    fd = kiln_open_beneath(AT_FDCWD, path, RESOLVE_NO_MAGICLINKS, &st);
    return fd >= 0 && take(f, fd);
}

static void look_in_folders(struct finding *f)
{
    const struct kiln_naming_opts *opts = &f->naming->opts;
    const char *folder = SYSTEM_DEBUG;

    for (uint32_t i = 0; !f->files->has_lines && i <= opts->n_paths; i++) {
        folder = i ? opts->paths[i - 1] : SYSTEM_DEBUG;
        (void)look_at(f, folder, ".debug");
        if (f->files->executable < 0)
            (void)look_at(f, folder, "");
    }
}

static void look_here(struct finding *f, struct kiln_str program)
{
    bool had = f->files->executable >= 0 || f->files->info >= 0;

    if (is_hex(f->build_id))
        look_in_folders(f);
    if (f->files->executable < 0)
        (void)look_at_program(f, program);
    if (!had && f->files->executable < 0 && f->files->info < 0)
        say(f->files, "files of the server", "none");
}

/* ---- debuginfod ---- */

static void look_elsewhere(struct finding *f)
{
    static const enum kiln_debug_kind kinds[] = {KILN_DEBUG_INFO, KILN_DEBUG_EXECUTABLE};

    for (size_t i = 0; !f->files->has_lines && i < KILN_ARRAY_LEN(kinds); i++) {
        struct kiln_err err = {0};
        int r;

        if (*(kinds[i] == KILN_DEBUG_INFO ? &f->files->info : &f->files->executable) >= 0)
            continue;
        r = kiln_fetch_get(f->naming->fetch, f->build_id, kinds[i], &err);
        if (r < 0 && (r != -ENOENT || i == 0))
            say(f->files, "debuginfod", r == -ENOENT ? "none" : err.text);
        look_in_depot(f, KILN_DEPOT_SHARED);
    }
}

/* ---- all of it ---- */

static void look(struct finding *f, struct kiln_str program)
{
    struct kiln_found_files *files = f->files;

    look_in_depot(f, f->tenant);
    look_in_depot(f, KILN_DEPOT_SHARED);
    if (files->executable < 0 && files->info < 0)
        say(files, "uploads", "none");
    if (!files->has_lines)
        look_nearby(f);
    if (!files->has_lines)
        look_here(f, program);
    if (!files->has_lines && f->naming->fetch && is_hex(f->build_id))
        look_elsewhere(f);
}

void kiln_naming_find(struct kiln_naming *naming, const char *tenant,
                      const struct kiln_unnamed *unnamed, struct kiln_found_files *ret_files)
{
    struct finding f = {naming, tenant, unnamed->build_id, ret_files};

    *ret_files = (struct kiln_found_files){.executable = -1, .info = -1};
    look(&f, unnamed->file);
}

int kiln_naming_find_info(struct kiln_naming *naming, const char *tenant, struct kiln_str build_id,
                          int *ret_fd)
{
    struct kiln_found_files files = {.executable = -1, .info = -1};
    struct finding f = {naming, tenant, build_id, &files};

    look(&f, KILN_STR_NONE);
    if (files.info < 0) {
        kiln_found_files_close(&files);
        return -ENOENT;
    }
    *ret_fd = files.info;
    files.info = -1;
    kiln_found_files_close(&files);
    return 0;
}

void kiln_found_files_close(struct kiln_found_files *files)
{
    if (files->executable >= 0)
        close(files->executable);
    if (files->info >= 0)
        close(files->info);
    files->executable = files->info = -1;
}
