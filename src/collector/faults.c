/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/faults.h"

#include <errno.h>

int kiln_faults_note(struct kiln_faults *faults, const struct kiln_err *fault,
                     struct kiln_err *first)
{
    if (first && !first->code)
        *first = *fault;
    if (faults && faults->n < KILN_FAULTS_MAX)
        faults->list[faults->n++] = *fault;
    else if (faults)
        faults->left_out++;
    return fault->code == -ENOMEM ? -ENOMEM : 0;
}
