/* SPDX-License-Identifier: Apache-2.0 */
#include "host/reason.h"

static const struct {
    const char *word, *text;
} reasons[KILN_ENDS] = {
    [KILN_END_COMPLETE] = {"complete", "complete"},
    [KILN_END_NO_USER] = {"no_user", "a kernel thread, which has no user stack"},
    [KILN_END_COMPAT] = {"compat", "a 32-bit program, whose stacks are not walked"},
    [KILN_END_JIT] = {"jit", "code made at run time, whose frame pointers do not lead on"},
    [KILN_END_NO_TABLE] = {"no_table", "code that its file has no unwind table for"},
    [KILN_END_UNMAPPED] = {"unmapped", "an address outside of all executable mappings"},
    [KILN_END_READ] = {"read", "the stack could not be read"},
    [KILN_END_STUCK] = {"stuck", "a frame that is not above the one before"},
    [KILN_END_DEPTH] = {"depth", "more frames than are kept"},
    [KILN_END_RULE] = {"rule", "a rule that needs a register which is lost in callers"},
    [KILN_END_NEW_PROCESS] = {"new_process", "a process not known yet"},
    [KILN_END_NEW_MAP] = {"new_map", "a mapping not known yet"},
    [KILN_END_NEW_PAGE] = {"new_page", "a page of unwind tables not loaded yet"},
    [KILN_END_SLICE] = {"slice", "a stack deeper than the slice of it that was copied"},
};

const char *kiln_end_word(enum kiln_end end)
{
    return reasons[end].word;
}

const char *kiln_end_text(enum kiln_end end)
{
    return reasons[end].text;
}

double kiln_end_success(const struct kiln_end_tally *tally)
{
    uint64_t all = tally->lost;

    for (int end = 0; end < KILN_ENDS; end++)
        if (end != KILN_END_NO_USER && end != KILN_END_COMPAT)
            all += tally->by_end[end];
    return all ? (double)tally->by_end[KILN_END_COMPLETE] / (double)all : 1;
}
