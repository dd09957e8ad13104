/* SPDX-License-Identifier: Apache-2.0 */
/* The Collector serves profiles of itself; here libkiln does it, from outside: this says so. */
#include "collector/registry.h"

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    (void)node, (void)settings;
    return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL,
                        "the collector serves its own profiles where it is started by "
                        "`kiln run --pprof localhost:1777 -- kiln collector ...`; leave this "
                        "extension out");
}

const struct kiln_component_type kiln_pprof_extension_type = {
    .name = "pprof",
    .kind = KILN_EXTENSION,
    .signals = KILN_TAKES_ALL,
    .stability = "by kiln run --pprof",
    .read = read,
};
