/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Host header.  What is accepted consists of the characters of addresses alone, or has the
 * configured name or "localhost" before the port.
 */
#include <strings.h>

#include "fuzz.h"
#include "net/origin.h"

static bool of(struct kiln_str text, const char *characters)
{
    for (size_t i = 0; i < text.len; i++)
        if (!text.ptr[i] || !strchr(characters, text.ptr[i]))
            return false;
    return true;
}

static bool ends_in(struct kiln_str text, const char *word)
{
    size_t n = strlen(word);

    return text.len >= n && strncasecmp(text.ptr + text.len - n, word, n) == 0;
}

static bool is_ours(struct kiln_str host)
{
    struct kiln_str name = kiln_str_cut(&host, ':');

    name.len -= ends_in(name, ".");
    return of(host, "0123456789") &&
           (ends_in(name, "localhost") || (name.len == 12 && ends_in(name, "kiln.example")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"kiln.example"};
    const struct kiln_origin_policy policy = {.host_names = names, .n_host_names = 1};
    struct kiln_str host = {(const char *)data, size};
    struct kiln_header header = {KILN_STR("host"), host};
    struct kiln_request request = {.method = KILN_STR("GET"), .headers = &header, .n_headers = 1};

    if (kiln_origin_check(&policy, &request, KILN_ACCESS_READ) == KILN_ORIGIN_OK)
        FUZZ_CHECK(of(host, "0123456789abcdefABCDEF.:[]") || is_ours(host));
    (void)kiln_origin_name_valid(host);
    return 0;
}
