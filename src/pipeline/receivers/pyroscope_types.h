/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_types - how Pyroscope names what /ingest gets.
 *
 * Threads: no state.
 */
#ifndef KILN_PIPELINE_RECEIVERS_PYROSCOPE_TYPES_H
#define KILN_PIPELINE_RECEIVERS_PYROSCOPE_TYPES_H

#include "base/err.h"
#include "core/builder.h"
#include "pipeline/receivers/tags.h"

/* ---- pprof ---- */

/* What sample_type_config says: other names for sample types, of which all but the name is unused.
 */
struct kiln_type_config {
    struct {
        char type[64], display[64];
    } list[32];
    uint32_t n;
    bool given; /* else the default names */
};

/* Reads {"cpu": {"units": "samples", "display-name": "..."}, ...}. */
KILN_CHECK int kiln_type_config_parse(struct kiln_str json, struct kiln_type_config *ret_config,
                                      struct kiln_err *err);

/* One more name; texts are cut to what fits.  KILN_E_LIMIT. */
KILN_CHECK int kiln_type_config_add(struct kiln_type_config *config, struct kiln_str type,
                                    struct kiln_str display, struct kiln_err *err);

/*
 * The family of a pprof that was just decoded into the builder, by its sample types in their order:
 * "wall" if one of them is; else the first that says cpu, memory, mutex, block or goroutines; else
 * the last type.
 */
struct kiln_str kiln_pprof_family(const struct kiln_builder *b,
                                  const struct kiln_type_config *config);

/* ---- folded stacks and trees ---- */

/*
 * The last part of the application's name says what is counted: "shop.cart.alloc_objects"; no part,
 * CPU.  Cuts it off *app.  KILN_E_MALFORMED for a part that is no type.
 */
struct kiln_named_type;
KILN_CHECK int kiln_named_type_cut(struct kiln_str *app, const struct kiln_named_type **ret_type,
                                   struct kiln_err *err);

/*
 * Makes the counts in the builder's profiles what they are: CPU and wall-clock samples become
 * nanoseconds at `rate` a second (0: they stay counts).  The family goes to the tags.
 */
void kiln_named_type_apply(const struct kiln_named_type *type, uint32_t rate,
                           struct kiln_tags *tags, struct kiln_builder *b);

#endif /* KILN_PIPELINE_RECEIVERS_PYROSCOPE_TYPES_H */
