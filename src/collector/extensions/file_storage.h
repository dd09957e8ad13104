/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_storage - a folder in which exporters keep their queues (`sending_queue: {storage: ID}`).
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

#endif /* KILN_COLLECTOR_EXTENSIONS_FILE_STORAGE_H */
