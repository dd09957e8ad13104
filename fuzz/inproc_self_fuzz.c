/* SPDX-License-Identifier: Apache-2.0 */
/* What libkiln reads of whoever answers on the local socket. */
#include "fuzz.h"
#include "inproc/keep/self.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_in_self self;

    (void)!kiln_in_self_parse((struct kiln_str){(const char *)data, size}, &self);
    return 0;
}
