/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/otlp_int.h"

int otlp_old_message(struct otlp_decoder *d, struct kiln_str message)
{
    (void)message;
    return kiln_err_set(d->err, KILN_E_UNSUPPORTED, NULL, "OTLP profiles of revision %s",
                        kiln_otlp_revision_name(d->revision));
}
