/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in the parameters of /ingest: names with labels, times, and the types of samples.
 */
#include <stdint.h>

#include "fuzz.h"
#include "pipeline/receivers/ingest_name.h"
#include "pipeline/receivers/pyroscope_types.h"

#define NOW UINT64_C(1700000000000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data, size}, app;
    const struct kiln_named_type *type;
    struct kiln_type_config config;
    struct kiln_err err = {0};
    struct kiln_tags tags;

    memset(&tags, 0, sizeof(tags));
    if (kiln_ingest_name_parse(text, &app, &tags, &err) == 0) {
        FUZZ_CHECK(app.len > 0 && tags.n <= KILN_TAGS_MAX);
        if (kiln_named_type_cut(&app, &type, &err) == 0)
            FUZZ_CHECK(app.len < size || size == app.len);
    } else {
        FUZZ_CHECK(err.code != 0);
    }
    (void)kiln_ingest_time(text, NOW);
    err = (struct kiln_err){0};
    if (kiln_type_config_parse(text, &config, &err) < 0)
        FUZZ_CHECK(err.code != 0);
    return 0;
}
