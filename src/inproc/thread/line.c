/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/line.h"

_Thread_local struct kiln_in_line kiln_in_line
    __attribute__((tls_model("initial-exec"), aligned(64)));
