/* SPDX-License-Identifier: Apache-2.0 */
#include "store/lacks.h"

#include "sim_io.h"
#include "test.h"

static _Atomic uint64_t ages;

/* Addresses without a name: `n` of them, STEP apart. */
static struct kiln_batch *addresses(const char *build_id, uint64_t first, uint32_t n)
{
    struct kiln_mapping mapping = {.limit = UINT64_MAX};
    struct kiln_batch *batch;
    struct kiln_builder *b;
    uint32_t attr;

    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, KILN_STR("process.executable.build_id.go"),
                                  kiln_str_of(build_id));
    mapping.attrs = kiln_builder_set(b, &attr, 1, NULL);
    mapping.filename = kiln_builder_string(b, KILN_STR("/bin/app"));
    for (uint32_t i = n; i > 0; i--) /* not in order */
        kiln_builder_location(b,
                              &(struct kiln_location){.address = first + i - 1,
                                                      .mapping = kiln_builder_mapping(b, &mapping)},
                              NULL, 0);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

static void add(struct kiln_lacks *lacks, const char *build_id, uint64_t first, uint32_t n)
{
    struct kiln_batch *batch = addresses(build_id, first, n);
    struct kiln_build_use *uses;
    uint32_t n_uses;

    CHECK_OK(kiln_lacks_add(lacks, batch, (struct kiln_lacks_range){0, batch->dict.n_locations},
                            &uses, &n_uses));
    CHECK_EQ(n_uses, 1);
    CHECK(uses[0].lacking);
    CHECK_STR(kiln_lacks_build_id(lacks, uses[0].build), build_id);
    kiln_free(uses);
    kiln_batch_unref(batch);
}

static void put(struct kiln_book *book, uint64_t first, uint64_t size)
{
    struct kiln_symbol symbol = {.address = first, .size = size};

    CHECK_OK(kiln_book_put(book, KILN_STR("abc"), &symbol, 1, NULL));
}

TEST(lacks, of_too_many_addresses_the_lowest_are_told_and_that_there_are_more)
{
    const struct kiln_book_opts opts = {
        .io = kiln_sim_new(), .tenant = KILN_STR("t"), .ages = &ages};
    struct kiln_unnamed unnamed;
    struct kiln_lacks *lacks;
    struct kiln_book *book;

    CHECK_OK(kiln_book_new(&opts, &book));
    CHECK_OK(kiln_lacks_new(book, &lacks));
    add(lacks, "abc", 1, KILN_LACKS_MAX + 10);
    add(lacks, "abc", 1, KILN_LACKS_MAX + 10);
    add(lacks, "xyz", 5, 1);
    CHECK_EQ(kiln_lacks_count(lacks), 2);
    CHECK_OK(kiln_lacks_get(lacks, 0, &unnamed));
    CHECK_EQ(unnamed.n, KILN_LACKS_MAX);
    CHECK(unnamed.more);
    CHECK_EQ(unnamed.addresses[0], 1);
    CHECK_EQ(unnamed.addresses[KILN_LACKS_MAX - 1], KILN_LACKS_MAX);
    put(book, 1, KILN_LACKS_MAX + 5);
    CHECK_OK(kiln_lacks_get(lacks, 0, &unnamed));
    CHECK_EQ(unnamed.n, 5);
    CHECK(!unnamed.more);
    add(lacks, "abc", 1u << 20, 3 * KILN_LACKS_MAX);
    CHECK_OK(kiln_lacks_get(lacks, 0, &unnamed));
    CHECK_EQ(unnamed.n, KILN_LACKS_MAX);
    put(book, 1, UINT32_MAX);
    CHECK_OK(kiln_lacks_get(lacks, 0, &unnamed));
    CHECK_EQ(unnamed.n, 0);
    CHECK(unnamed.more); /* that were forgotten */
    kiln_lacks_forget(lacks, 0);
    CHECK_OK(kiln_lacks_get(lacks, 0, &unnamed));
    CHECK(!unnamed.more);
    CHECK_OK(kiln_lacks_get(lacks, 1, &unnamed));
    CHECK_EQ(unnamed.n, 1);
    kiln_lacks_free(lacks);
    kiln_book_free(book);
    kiln_sim_free(opts.io);
}
