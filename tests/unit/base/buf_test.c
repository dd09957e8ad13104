/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "test.h"

TEST(buf, appends_become_one_run_of_bytes)
{
    struct kiln_buf buf;
    unsigned char id[] = {0x00, 0xab, 0xff};

    kiln_buf_init(&buf, 1000);
    kiln_buf_puts(&buf, "a=");
    kiln_buf_add_u64(&buf, UINT64_MAX);
    kiln_buf_putc(&buf, ' ');
    kiln_buf_add_i64(&buf, INT64_MIN);
    kiln_buf_printf(&buf, " %s:%d ", "x", 7);
    kiln_buf_add_hex(&buf, id, sizeof(id));
    CHECK_STR(kiln_buf_str(&buf), "a=18446744073709551615 -9223372036854775808 x:7 00abff");
    CHECK_EQ(buf.error, 0);
    kiln_buf_done(&buf);
}

TEST(buf, nothing_is_allocated_for_nothing)
{
    int64_t live = kiln_mem_live();
    struct kiln_buf buf;

    kiln_buf_init(&buf, 10);
    kiln_buf_add(&buf, NULL, 0);
    kiln_buf_add_str(&buf, KILN_STR_NONE);
    kiln_buf_puts(&buf, "");
    CHECK_EQ(kiln_mem_live(), live);
    CHECK_EQ(buf.len, 0);
    CHECK_EQ(buf.error, 0);
}

TEST(buf, the_maximum_is_reachable_and_not_passable)
{
    struct kiln_buf buf;

    kiln_buf_init(&buf, 4);
    kiln_buf_puts(&buf, "abcd");
    CHECK_EQ(buf.error, 0);
    kiln_buf_putc(&buf, 'e');
    CHECK_EQ(buf.error, KILN_E_LIMIT);
    CHECK_STR(kiln_buf_str(&buf), "abcd");
    kiln_buf_done(&buf);
}

TEST(buf, the_first_failure_sticks_until_it_is_cleared)
{
    struct kiln_buf buf;

    kiln_buf_init(&buf, 4);
    kiln_buf_puts(&buf, "abcdefgh");
    kiln_buf_puts(&buf, "x");
    CHECK_EQ(buf.error, KILN_E_LIMIT);
    CHECK_EQ(buf.len, 0);
    kiln_buf_clear(&buf);
    kiln_buf_puts(&buf, "x");
    CHECK_STR(kiln_buf_str(&buf), "x");
    kiln_buf_done(&buf);
}

TEST(buf, running_out_of_memory_keeps_what_was_there)
{
    struct kiln_buf buf;

    kiln_buf_init(&buf, 1u << 20);
    kiln_buf_puts(&buf, "kept");
    kiln_mem_fail_at(1);
    CHECK(kiln_buf_reserve(&buf, 100000) == NULL);
    kiln_mem_fail_at(0);
    CHECK_EQ(buf.error, -ENOMEM);
    CHECK_STR(kiln_buf_str(&buf), "kept");
    kiln_buf_done(&buf);
}

TEST(buf, take_moves_the_memory_out)
{
    struct kiln_buf buf;
    char *ptr;
    size_t len;

    kiln_buf_init(&buf, 100);
    kiln_buf_puts(&buf, "mine");
    kiln_buf_take(&buf, &ptr, &len);
    CHECK_EQ(len, 4);
    CHECK(memcmp(ptr, "mine", 4) == 0);
    CHECK_EQ(buf.len, 0);
    kiln_free(ptr);
    kiln_buf_done(&buf);
}

TEST(buf, a_large_one_is_paid_from_its_pool_and_a_small_one_is_not)
{
    struct kiln_pool pool;
    struct kiln_buf buf;

    kiln_pool_init(&pool, "answers", 3 * (size_t)KILN_BUF_SMALL, NULL);
    kiln_buf_init(&buf, SIZE_MAX);
    buf.pool = &pool;
    kiln_buf_puts(&buf, "small");
    CHECK_EQ(pool.used, 0);
    CHECK(kiln_buf_reserve(&buf, KILN_BUF_SMALL) != NULL);
    CHECK_EQ(pool.used, buf.cap);
    CHECK(kiln_buf_reserve(&buf, 4 * (size_t)KILN_BUF_SMALL) == NULL);
    CHECK_EQ(buf.error, KILN_E_LIMIT);
    CHECK_STR(kiln_buf_str(&buf), "small");
    kiln_buf_done(&buf);
    CHECK_EQ(pool.used, 0);
}

TEST(buf, a_large_one_that_gets_no_memory_pays_nothing)
{
    struct kiln_pool pool;
    struct kiln_buf buf;

    kiln_pool_init(&pool, "answers", SIZE_MAX, NULL);
    kiln_buf_init(&buf, SIZE_MAX);
    buf.pool = &pool;
    kiln_mem_fail_at(1);
    CHECK(kiln_buf_reserve(&buf, 2 * (size_t)KILN_BUF_SMALL) == NULL);
    kiln_mem_fail_at(0);
    CHECK_EQ(pool.used, 0);
    kiln_buf_done(&buf);
}
