/* SPDX-License-Identifier: Apache-2.0 */
/* What `kiln doctor` reads of somebody's /metrics. */
#include "cli/doctor.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_doctor_agent agent = {0};

    kiln_doctor_read_metrics((struct kiln_str){(const char *)data, size}, &agent);
    return 0;
}
