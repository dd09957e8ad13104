/* SPDX-License-Identifier: Apache-2.0 */
/* What a message seems to hold: its frame is gone down, and nothing else is looked at. */
#include "codec/otlp_int.h"

/* ResourceProfiles are field 1 of the message; ScopeProfiles, profiles and samples are field 2. */
enum level { RESOURCES, SCOPES, PROFILES, SAMPLES };

static bool count(struct kiln_str bytes, enum level level, struct kiln_otlp_counts *counts)
{
    uint32_t tag = level == RESOURCES ? KILN_PB_BYTES(1u) : KILN_PB_BYTES(2u);
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    struct kiln_str sample;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag != tag)
            continue;
        if (level == SAMPLES) {
            for (counts->samples++; kiln_pb_element(&r, tag, &sample);)
                counts->samples++;
            continue;
        }
        counts->profiles += level == PROFILES;
        if (!count(f.bytes, level + 1, counts))
            return false;
    }
    return n == 0;
}

bool kiln_otlp_count(struct kiln_str message, struct kiln_otlp_counts *ret_counts)
{
    *ret_counts = (struct kiln_otlp_counts){0};
    return count(message, RESOURCES, ret_counts);
}
