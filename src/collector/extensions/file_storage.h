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

struct kiln_file_storage {
    struct kiln_component component; /* first */
    const char *directory;
    bool create, sync;
    struct kiln_journal_room room;
};

extern const struct kiln_component_type kiln_file_storage_extension_type;

#endif /* KILN_COLLECTOR_EXTENSIONS_FILE_STORAGE_H */
