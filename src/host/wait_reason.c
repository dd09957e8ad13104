/* SPDX-License-Identifier: Apache-2.0 */
#include "host/wait_reason.h"

const char *kiln_state_word(enum kiln_thread_state state)
{
    return state == KILN_STATE_RUNNABLE ? "runnable" : "blocked";
}

const char *kiln_reason_word(enum kiln_wait_reason reason)
{
    static const char *const words[KILN_REASONS] = {[KILN_REASON_OTHER] = "other"};

    return words[reason < KILN_REASONS ? reason : KILN_REASON_OTHER];
}
