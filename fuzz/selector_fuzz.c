/* SPDX-License-Identifier: Apache-2.0 */
#include "base/regex.h"
#include "fuzz.h"
#include "query/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data, size};
    struct kiln_selector selector = {0};
    struct kiln_err err = {0};
    int r = kiln_selector_add(&selector, text, &err);

    FUZZ_CHECK((r < 0) == (err.code < 0));
    for (uint32_t i = 0; i < selector.n_matchers; i++) {
        if (selector.matchers[i].regex)
            (void)!kiln_regex_matches(selector.matchers[i].regex, selector.matchers[0].value);
    }
    kiln_selector_done(&selector);
    return 0;
}
