/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/extensions/file_storage.h"

#include "test.h"

static void check_place(const char *id, const char *expected)
{
    const struct kiln_file_storage storage = {.directory = "/var/lib/kiln"};
    char place[KILN_STORAGE_PLACE_BYTES];

    kiln_file_storage_place(&storage, "exporter", id, "profiles", place);
    CHECK_TEXT(place, expected);
}

TEST(file_storage, no_two_components_have_one_place)
{
    check_place("otlp", "/var/lib/kiln/exporter_otlp_profiles");
    check_place("otlp_http/a", "/var/lib/kiln/exporter_otlp_http~002Fa_profiles");
    check_place("otlp/http_a", "/var/lib/kiln/exporter_otlp~002Fhttp_a_profiles");
    check_place("otlp/..", "/var/lib/kiln/exporter_otlp~002F.._profiles");
    check_place("otlp/\xc3\xa4~", "/var/lib/kiln/exporter_otlp~002F~00C3~00A4~007E_profiles");
}
