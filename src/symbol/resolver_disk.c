/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of ELF files that have a build id are also kept on disk.  Whether there is a debug file for
 * one is found out here, when its names are first looked for there during an ask: by build id
 * alone, since only the child can read the name of a debug link.
 *
 * Anybody can give a program the build id of another.  So that nobody names the functions of
 * somebody else's, names are kept by build id and owner of the file.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytetext.h"
#include "base/log.h"
#include "base/metric.h"
#include "symbol/resolver_int.h"

void kiln_disk_open(const struct kiln_resolver_opts *opts, struct kiln_disk *ret_disk)
{
    const struct kiln_shelf_opts how = {.directory = opts->shelf_directory,
                                        .max_bytes = opts->shelf_bytes,
                                        .metrics = opts->metrics,
                                        .log = opts->log};
    struct kiln_err err = {0};

    *ret_disk = (struct kiln_disk){0};
    ret_disk->found = kiln_metric_counter(opts->metrics, "kiln_names_from_disk_total",
                                          "Addresses answered from names that are kept on disk.");
    if (opts->shelf_directory && kiln_shelf_open(&how, &ret_disk->shelf, &err) < 0) {
        ret_disk->shelf = NULL;
        kiln_log(opts->log, KILN_LOG_WARN, "names are not kept on disk", "directory", "%s",
                 opts->shelf_directory, "reason", "%s", err.text, NULL);
    }
}

void kiln_disk_close(struct kiln_disk *disk)
{
    kiln_shelf_close(disk->shelf);
}

static bool has_debug_file(const struct kiln_source *source)
{
    struct kiln_wanted wanted = {.kind = KILN_WANTED_DEBUG};
    size_t n = source->key.len / 2;
    int fd;

    if (!source->open || n > sizeof(wanted.build_id) ||
        kiln_hex_decode(source->key, wanted.build_id, n) < 0)
        return false;
    wanted.build_id_len = (uint8_t)n;
    if (source->open(source->context, &wanted, &fd) < 0)
        return false;
    close(fd);
    return true;
}

void kiln_disk_begin(struct kiln_disk *disk, const struct kiln_source *source)
{
    disk->begun = false;
    disk->has = disk->shelf && source->kind == KILN_SOURCE_ELF && kiln_shelf_takes(source->key);
    if (disk->shelf)
        kiln_shelf_turn(disk->shelf);
}

/* False: whose file it is cannot be told. */
static bool make_key(struct kiln_disk *disk, const struct kiln_source *source)
{
    struct stat st;
    int n;

    if (source->fd < 0 || fstat(source->fd, &st) < 0)
        return false;
    n = snprintf(disk->id, sizeof(disk->id), "%.*s%08x", KILN_STR_ARG(source->key),
                 (unsigned)st.st_uid);
    disk->key = (struct kiln_shelf_key){{disk->id, (size_t)n}, has_debug_file(source)};
    return (size_t)n < sizeof(disk->id);
}

/* Finds the key out when it is first needed; false: it has none. */
static bool has_key(struct kiln_disk *disk, const struct kiln_source *source)
{
    if (disk->has && !disk->begun)
        disk->has = make_key(disk, source);
    disk->begun = true;
    return disk->has;
}

bool kiln_disk_get(struct kiln_disk *disk, const struct kiln_source *source, uint64_t address,
                   struct kiln_name *ret_name)
{
    if (!has_key(disk, source) || kiln_shelf_get(disk->shelf, &disk->key, address, ret_name) != 1)
        return false;
    kiln_metric_add(disk->found, 1);
    return true;
}

void kiln_disk_put(struct kiln_disk *disk, const struct kiln_source *source, uint64_t address,
                   const struct kiln_name *name)
{
    /* Without memory it is only not kept. */
    if (has_key(disk, source) && kiln_shelf_put(disk->shelf, &disk->key, &address, name, 1) < 0)
        disk->has = false;
}
