/* SPDX-License-Identifier: Apache-2.0 */
#include "host/reason.h"
#include "test.h"

TEST(reason, every_end_has_a_word_and_a_sentence)
{
    for (int end = 0; end < KILN_ENDS; end++) {
        CHECK(kiln_end_word((enum kiln_end)end) != NULL);
        CHECK(kiln_end_text((enum kiln_end)end) != NULL);
    }
}

TEST(reason, lost_samples_count_as_failures_and_kernel_threads_do_not_count)
{
    struct kiln_end_tally tally = {.lost = 1};

    CHECK(kiln_end_success(&(struct kiln_end_tally){0}) == 1);
    tally.by_end[KILN_END_COMPLETE] = 2;
    tally.by_end[KILN_END_JIT] = 1;
    tally.by_end[KILN_END_NO_USER] = 100;
    tally.by_end[KILN_END_COMPAT] = 100;
    CHECK(kiln_end_success(&tally) == 0.5);
}

TEST(reason, rows_keep_what_is_packed_into_them)
{
    uint64_t row = kiln_row_pack(0x3fff, KILN_CFA_REG + 15, KILN_FP_AT_FP, -2097152, -32768);
    row = kiln_row_with_bx(row, KILN_BX_LOST);

    CHECK_EQ(kiln_row_address(row), 0x3fff);
    CHECK_EQ(kiln_row_cfa(row), KILN_CFA_REG + 15);
    CHECK_EQ(kiln_row_fp(row), KILN_FP_AT_FP);
    CHECK_EQ(kiln_row_cfa_off(row), -2097152);
    CHECK_EQ(kiln_row_fp_off(row), -32768);
    CHECK_EQ(kiln_row_bx(row), KILN_BX_LOST);
    CHECK_EQ(kiln_row_cfa_off(kiln_row_pack(0, 0, 0, 2097151, 32767)), 2097151);
}
