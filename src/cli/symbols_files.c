/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files for `kiln symbols resolve`: the one that --debug names, then those of the directories
 * of --debug-dir, each laid out as /usr/lib/debug, then where symbol/debugfile.h looks.
 *
 * Who reads them asks again with the number of an attempt where a file was not the right one: that
 * many that exist are passed over.
 */
#include "cli/symbols_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"

enum { PATH_BYTES = 2 * PATH_MAX };

int kiln_symbols_files_init(struct kiln_symbols_files *files, const struct kiln_cli *cli,
                            const char *path)
{
    *files = (struct kiln_symbols_files){
        .debug = cli->args.resolve.debug, .dirs = &cli->args.resolve.debug_dirs, .where.root = -1};
    if (!realpath(path, files->program))
        return -errno;
    files->where.program = files->program;
    files->where.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return files->where.root < 0 ? -errno : 0;
}

void kiln_symbols_files_done(struct kiln_symbols_files *files)
{
    if (files->where.root >= 0)
        close(files->where.root);
}

/* Opens a file unless it has to be passed over. */
static bool take(const char *path, uint32_t *attempt, int *ret_fd)
{
    int fd;

    if (kiln_file_open_plain(path, &fd) < 0)
        return false;
    if (*attempt == 0) {
        *ret_fd = fd;
        return true;
    }
    (*attempt)--;
    close(fd);
    return false;
}

static bool take_by_id(const char *dir, const struct kiln_wanted *wanted, uint32_t *attempt,
                       int *ret_fd)
{
    char id[2 * KILN_BUILD_ID_MAX + 1] = "";
    char path[PATH_BYTES];

    if (wanted->build_id_len < 2 || wanted->build_id_len > KILN_BUILD_ID_MAX)
        return false;
    for (uint32_t i = 0; i < wanted->build_id_len; i++)
        (void)snprintf(id + 2 * i, 3, "%02x", wanted->build_id[i]);
    (void)snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", dir, id, id + 2);
    return take(path, attempt, ret_fd);
}

static bool take_by_name(const char *dir, const char *between, const struct kiln_wanted *wanted,
                         uint32_t *attempt, int *ret_fd)
{
    struct kiln_str rest = wanted->name, last = wanted->name;
    char path[PATH_BYTES];

    while (rest.ptr)
        last = kiln_str_cut(&rest, '/');
    if (!last.len || last.len > NAME_MAX)
        return false;
    (void)snprintf(path, sizeof(path), "%s/%s%.*s", dir, between, KILN_STR_ARG(last));
    return take(path, attempt, ret_fd);
}

static bool take_from(const char *dir, const struct kiln_wanted *wanted, uint32_t *attempt,
                      int *ret_fd)
{
    return take_by_id(dir, wanted, attempt, ret_fd) ||
           take_by_name(dir, "", wanted, attempt, ret_fd) ||
           (wanted->kind == KILN_WANTED_ALTERNATE &&
            take_by_name(dir, ".dwz/", wanted, attempt, ret_fd));
}

int kiln_symbols_files_open(void *context, const struct kiln_wanted *wanted, int *ret_fd)
{
    struct kiln_symbols_files *files = context;
    struct kiln_wanted rest = *wanted;

    if (wanted->kind == KILN_WANTED_DEBUG && files->debug &&
        take(files->debug, &rest.attempt, ret_fd))
        return 0;
    for (uint32_t i = 0; i < files->dirs->n; i++) {
        if (take_from(files->dirs->items[i], wanted, &rest.attempt, ret_fd))
            return 0;
    }
    return kiln_debugfile_open(&files->where, &rest, ret_fd);
}
