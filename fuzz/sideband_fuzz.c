/* SPDX-License-Identifier: Apache-2.0 */
/* A record of perf's side-band. */
#include <stdlib.h>
#include <string.h>

#include "host/sideband_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_event event;
    if (!kiln_sideband_parse(data, size, &event))
        return 0;
    if (event.name && (const uint8_t *)event.name + strlen(event.name) >= data + size)
        abort();
    if (event.build_id_len > sizeof(event.build_id))
        abort();
    return 0;
}
