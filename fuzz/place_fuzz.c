/* SPDX-License-Identifier: Apache-2.0 */
/* Names of control groups, which whoever may make one chooses. */
#include "fuzz.h"
#include "host/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_place place;
    size_t n;

    kiln_place_parse((struct kiln_str){(const char *)data, size}, &place);
    n = strlen(place.container_id);
    FUZZ_CHECK(n == 0 || (n > 32 && n <= 64));
    FUZZ_CHECK(strspn(place.container_id, "0123456789abcdef-") == n);
    FUZZ_CHECK(!place.container_id[0] || !place.container_name[0]);
    FUZZ_CHECK(strspn(place.pod_uid, "0123456789abcdef-") == strlen(place.pod_uid));
    FUZZ_CHECK(place.runtime != NULL);
    return 0;
}
