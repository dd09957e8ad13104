/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_storage - a folder in which exporters keep their queues (`sending_queue: {storage: ID}`),
 * and receivers how far they have read.
 *
 * Threads: constant once made, but for the room, which counts.
 */
#ifndef KILN_COLLECTOR_EXTENSIONS_FILE_STORAGE_H
#define KILN_COLLECTOR_EXTENSIONS_FILE_STORAGE_H

#include "collector/component.h"
#include "pipeline/exporters/journal.h"

/*
 * Of one folder: exporters that are carried over to the next graph go on counting in it, beside
 * those that are new.
 */
struct kiln_storage_room {
    struct kiln_journal_room room;
    uint32_t refs; /* one owner counts */
};

struct kiln_file_storage {
    struct kiln_component component; /* first */
    const char *directory;
    bool create, sync;
    uint32_t folder_mode;
    struct kiln_storage_room *shared;
};

extern const struct kiln_component_type kiln_file_storage_extension_type;

enum { KILN_STORAGE_PLACE_BYTES = 4096 };

/* The one that `key` of a component names; NULL, and an error, where there is none. */
const struct kiln_file_storage *kiln_file_storage_find(const struct kiln_component_env *env,
                                                       const char *key, const char *id,
                                                       struct kiln_err *err);
/*
 * A place in it that no other component has: exporter_otlp~002Fsecond_profiles is that of
 * "otlp/second" for its profiles.
 */
void kiln_file_storage_place(const struct kiln_file_storage *storage, const char *kind,
                             const char *id, const char *what, char ret[KILN_STORAGE_PLACE_BYTES]);

#endif /* KILN_COLLECTOR_EXTENSIONS_FILE_STORAGE_H */
