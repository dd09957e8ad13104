/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sidecar - what is known of a profile beside its file, as JSON that `kiln push` reads
 * (cli/sidecar.h):
 *
 *   {"service": "shop", "version": "1.4", "commit": "0af3", "environment": "prod",
 *    "attributes": {"host.name": "web-1"}, "type": "process_cpu",
 *    "window_start": "2026-03-01T12:00:00.000Z", "window_end": "2026-03-01T12:00:10.000Z",
 *    "lost": {"queue": 3}}
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_SIDECAR_H
#define KILN_CODEC_SIDECAR_H

#include "base/buf.h"
#include "core/batch.h"

/* What was lost before it came to a file. */
struct kiln_sidecar_loss {
    const char *name;
    uint64_t n;
};

/* Of a part of one scope (core/part.h) with a profile; `kind` is the name of its type. */
void kiln_sidecar_encode(const struct kiln_batch *part, struct kiln_str kind,
                         const struct kiln_sidecar_loss *losses, uint32_t n_losses,
                         struct kiln_buf *out);

/*
 * The name that a profile's file and its metadata share, without what each ends with:
 * FOLDER/kiln-SERVICE-KIND-20260301T120000.250Z-PID-NUMBER.  It leaves 16 bytes of `size` for the
 * endings; -ENAMETOOLONG.
 */
#define KILN_SIDECAR_PREFIX "kiln-"
KILN_CHECK int kiln_sidecar_stem(const char *folder, const struct kiln_batch *part,
                                 struct kiln_str kind, uint64_t number, char *to, size_t size);

#endif /* KILN_CODEC_SIDECAR_H */
