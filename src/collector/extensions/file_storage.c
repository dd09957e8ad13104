/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/extensions/file_storage.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "collector/graph.h"
#include "collector/registry.h"
#include "collector/settings.h"

struct settings {
    const char *directory;
    bool create, sync;
    uint64_t max_size;
    const struct kiln_node *permissions, *compaction;
    uint32_t folder_mode;
    /* Files here are made, filled and removed whole: there is nothing to time or to compact. */
    struct {
        uint64_t time_ns, bytes;
        const char *text;
        bool flag;
    } idle;
};

static int start(struct kiln_component *component, struct kiln_err *err)
{
    const struct kiln_file_storage *storage = (const struct kiln_file_storage *)component;
    struct stat info;
    int r = storage->create ? kiln_file_make_folders(storage->directory, storage->folder_mode) : 0;

    if (r < 0)
        return kiln_err_set(err, r, "directory", "\"%s\" cannot be made: %s", storage->directory,
                            kiln_err_text(r));
    if (stat(storage->directory, &info) < 0)
        return kiln_err_set(err, -errno, "directory",
                            "directory must exist: \"%s\"; you can enable the create_directory "
                            "option to make it automatically",
                            storage->directory);
    if (!S_ISDIR(info.st_mode))
        return kiln_err_set(err, -ENOTDIR, "directory", "\"%s\" is not a directory",
                            storage->directory);
    return 0;
}

static void destroy(struct kiln_component *component)
{
    struct kiln_file_storage *storage = (struct kiln_file_storage *)component;

    if (storage->shared && --storage->shared->refs == 0)
        kiln_free(storage->shared);
    kiln_free(storage);
}

/* That of the graph before, where nothing has changed; else a new one. */
static struct kiln_storage_room *find_room(const struct kiln_component_env *env,
                                           const struct settings *s)
{
    const struct kiln_graph *before = kiln_graph_before(env->graph);
    const struct kiln_file_storage *old =
        (const struct kiln_file_storage *)(before ? kiln_graph_extension(
                                                        before, env->id,
                                                        &kiln_file_storage_extension_type)
                                                  : NULL);
    struct kiln_storage_room *room;

    if (old && strcmp(old->directory, s->directory) == 0 && old->shared->room.max == s->max_size) {
        old->shared->refs++;
        return old->shared;
    }
    room = kiln_calloc(1, sizeof(*room));
    if (room)
        *room = (struct kiln_storage_room){.room.max = s->max_size, .refs = 1};
    return room;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .free = destroy};
    const struct settings *s = settings;
    struct kiln_file_storage *storage = kiln_calloc(1, sizeof(*storage));

    if (storage)
        storage->shared = find_room(env, s);
    if (!storage || !storage->shared) {
        kiln_free(storage);
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    }
    storage->component.ops = &ops;
    storage->directory = s->directory;
    storage->create = s->create;
    storage->folder_mode = s->folder_mode;
    storage->sync = s->sync;
    *ret_component = &storage->component;
    return 0;
}

/* ---- for others ---- */

const struct kiln_file_storage *kiln_file_storage_find(const struct kiln_component_env *env,
                                                       const char *key, const char *id,
                                                       struct kiln_err *err)
{
    const struct kiln_component *found =
        env->graph ? kiln_graph_extension(env->graph, id, &kiln_file_storage_extension_type) : NULL;

    if (!found)
        kiln_err_set(err, KILN_E_MALFORMED, key,
                     "there is no file_storage extension \"%s\" in service::extensions", id);
    return (const struct kiln_file_storage *)found;
}

/* A sign that a name may not have becomes ~ and its number, as the Collector writes it. */
void kiln_file_storage_place(const struct kiln_file_storage *storage, const char *kind,
                             const char *id, const char *what, char ret[KILN_STORAGE_PLACE_BYTES])
{
    struct kiln_buf name;

    kiln_buf_init(&name, KILN_STORAGE_PLACE_BYTES);
    kiln_buf_printf(&name, "%s/%s_", storage->directory, kind);
    for (; *id; id++) {
        if (isalnum((unsigned char)*id) || strchr("-_.", *id))
            kiln_buf_add(&name, id, 1);
        else
            kiln_buf_printf(&name, "~%04X", (unsigned char)*id);
    }
    kiln_buf_printf(&name, "_%s", what);
    snprintf(ret, KILN_STORAGE_PLACE_BYTES, "%.*s", (int)name.len, name.ptr);
    kiln_buf_done(&name);
}

/* ---- settings ---- */

static int read_settings(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"directory", KILN_FIELD_TEXT, offsetof(struct settings, directory)},
        {"create_directory", KILN_FIELD_BOOL, offsetof(struct settings, create)},
        {"fsync", KILN_FIELD_BOOL, offsetof(struct settings, sync)},
        {"max_size", KILN_FIELD_SIZE, offsetof(struct settings, max_size)},
        {"timeout", KILN_FIELD_DURATION, offsetof(struct settings, idle.time_ns)},
        {"compaction", KILN_FIELD_MAP, offsetof(struct settings, compaction)},
        {"directory_permissions", KILN_FIELD_NODE, offsetof(struct settings, permissions)},
        {"recreate", KILN_FIELD_BOOL, offsetof(struct settings, idle.flag)},
    };
    static const struct kiln_field compaction[] = {
        {"on_start", KILN_FIELD_BOOL, offsetof(struct settings, idle.flag)},
        {"on_rebound", KILN_FIELD_BOOL, offsetof(struct settings, idle.flag)},
        {"directory", KILN_FIELD_TEXT, offsetof(struct settings, idle.text)},
        {"rebound_needed_threshold_mib", KILN_FIELD_SIZE, offsetof(struct settings, idle.bytes)},
        {"rebound_trigger_threshold_mib", KILN_FIELD_SIZE, offsetof(struct settings, idle.bytes)},
        {"max_transaction_size", KILN_FIELD_SIZE, offsetof(struct settings, idle.bytes)},
        {"check_interval", KILN_FIELD_DURATION, offsetof(struct settings, idle.time_ns)},
        {"cleanup_on_start", KILN_FIELD_BOOL, offsetof(struct settings, idle.flag)},
    };
    struct settings *s = settings;
    int r;

    *s = (struct settings){
        .directory = "/var/lib/otelcol/file_storage", .sync = true, .folder_mode = 0750};
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (r == 0)
        r = kiln_node_read(s->compaction, compaction, KILN_ARRAY_LEN(compaction), s, err);
    return r < 0 ? r : kiln_settings_folder_mode(s->permissions, s->create, &s->folder_mode, err);
}

const struct kiln_component_type kiln_file_storage_extension_type = {
    .name = "file_storage",
    .kind = KILN_EXTENSION,
    .stability = "beta",
    .settings_size = sizeof(struct settings),
    .read = read_settings,
    .make = make,
};
