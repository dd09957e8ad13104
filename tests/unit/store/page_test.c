/* SPDX-License-Identifier: Apache-2.0 */
#include "store/page.h"

#include <fcntl.h>

#include "sim_io.h"
#include "starved.h"
#include "test.h"

#define N 5000u

/* A page with three columns of numbers and one of bytes. */
static int make(struct kiln_page_out *out, struct kiln_str *ret_page)
{
    static uint64_t same[N], rising[N];
    static struct kiln_page_habit habit;

    for (uint32_t i = 0; i < N; i++) {
        same[i] = 7;
        rising[i] = i * UINT64_C(1000003);
    }
    kiln_page_begin(out, &habit);
    kiln_page_add(out, same, N);
    kiln_page_add(out, rising, N);
    kiln_page_add(out, NULL, 0);
    kiln_page_add_bytes(out, KILN_STR("some bytes"));
    return kiln_page_finish(out, ret_page);
}

static int put(struct kiln_io *io, struct kiln_str page)
{
    int fd = io->open(io, "page", O_RDWR | O_CREAT);

    CHECK(fd >= 0);
    CHECK_OK(io->pwrite(io, fd, page.ptr, page.len, 0));
    CHECK_OK(io->sync(io, fd));
    return fd;
}

TEST(page, columns_come_back)
{
    struct kiln_budget budget = {.limit = 1 << 20};
    struct kiln_io *io = kiln_sim_new();
    struct kiln_column c = {0};
    struct kiln_page_out out;
    struct kiln_page_in in;
    struct kiln_str page, bytes;
    int fd;

    CHECK_OK(kiln_page_out_init(&out, 1 << 20));
    CHECK_OK(make(&out, &page));
    CHECK_OK(make(&out, &page)); /* as the habit has it */
    fd = put(io, page);
    CHECK_OK(kiln_page_in_init(&in, &budget));
    CHECK_OK(kiln_page_load(&in, io, fd, 0, page.len, NULL));
    CHECK_OK(kiln_page_get(&in, &c, N, NULL));
    CHECK_EQ(c.n, N);
    CHECK_EQ(c.v[N - 1], 7);
    CHECK_OK(kiln_page_get(&in, &c, N, NULL));
    CHECK_EQ(c.v[N - 1], (N - 1) * UINT64_C(1000003));
    CHECK_OK(kiln_page_get(&in, &c, N, NULL));
    CHECK_EQ(c.n, 0);
    CHECK_OK(kiln_page_get_bytes(&in, 100, &bytes, NULL));
    CHECK_STR(bytes, "some bytes");
    CHECK(kiln_page_is_read(&in));
    CHECK_EQ(kiln_page_get(&in, &c, N, NULL), KILN_E_CORRUPT);
    kiln_column_done(&c, &budget);
    kiln_page_in_done(&in);
    CHECK_EQ(budget.used, 0);
    kiln_page_out_done(&out);
    CHECK_OK(io->close(io, fd));
    kiln_sim_free(io);
}

TEST(page, a_column_that_is_larger_than_allowed_is_refused)
{
    struct kiln_budget budget = {.limit = 1 << 20}, small = {.limit = 64};
    struct kiln_io *io = kiln_sim_new();
    struct kiln_column c = {0};
    struct kiln_page_out out;
    struct kiln_page_in in;
    struct kiln_str page;
    int fd;

    CHECK_OK(kiln_page_out_init(&out, 1 << 20));
    CHECK_OK(make(&out, &page));
    fd = put(io, page);
    CHECK_OK(kiln_page_in_init(&in, &budget));
    CHECK_OK(kiln_page_load(&in, io, fd, 0, page.len, NULL));
    CHECK_EQ(kiln_page_get(&in, &c, N - 1, NULL), KILN_E_CORRUPT);
    kiln_page_in_done(&in);
    CHECK_OK(kiln_page_in_init(&in, &small));
    CHECK_EQ(kiln_page_load(&in, io, fd, 0, page.len, NULL), KILN_E_LIMIT);
    kiln_page_in_done(&in);
    kiln_page_out_done(&out);
    CHECK_OK(io->close(io, fd));
    kiln_sim_free(io);
}

TEST(page, every_flipped_bit_is_found)
{
    struct kiln_budget budget = {.limit = 1 << 20};
    struct kiln_io *io = kiln_sim_new();
    struct kiln_page_out out;
    struct kiln_page_in in;
    struct kiln_str page;
    int fd;

    CHECK_OK(kiln_page_out_init(&out, 1 << 20));
    CHECK_OK(make(&out, &page));
    fd = put(io, page);
    CHECK_OK(kiln_page_in_init(&in, &budget));
    for (size_t i = 0; i < page.len; i += 7) {
        struct kiln_err err = {0};

        CHECK(kiln_sim_flip(io, "page", i, (int)(i % 8)));
        CHECK_EQ(kiln_page_load(&in, io, fd, 0, page.len, &err), KILN_E_CORRUPT);
        CHECK_TEXT(err.text, "the checksum does not match");
        CHECK(kiln_sim_flip(io, "page", i, (int)(i % 8)));
    }
    CHECK_OK(kiln_page_load(&in, io, fd, 0, page.len, NULL));
    kiln_page_in_done(&in);
    kiln_page_out_done(&out);
    CHECK_OK(io->close(io, fd));
    kiln_sim_free(io);
}

TEST(page, a_page_past_its_maximum_is_a_limit)
{
    struct kiln_page_out out;
    struct kiln_str page;

    CHECK_OK(kiln_page_out_init(&out, 1000));
    CHECK_EQ(make(&out, &page), KILN_E_LIMIT);
    kiln_page_out_done(&out);
}
