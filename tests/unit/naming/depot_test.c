/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/bytetext.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "elf_maker.h"
#include "naming/depot.h"
#include "sim_io.h"
#include "test.h"

#define HOUR (UINT64_C(3600) * 1000000000)

static struct kiln_io *io;
static struct kiln_depot *depot;
static struct kiln_err err;
static struct kiln_depot_state said;
static uint64_t quota, tenant_quota, rest_ns;

static void open_again(void)
{
    struct kiln_depot_opts opts = {.io = io,
                                   .quota_bytes = quota,
                                   .tenant_quota_bytes = tenant_quota,
                                   .min_free_bytes = 1,
                                   .upload_rest_ns = rest_ns};

    kiln_depot_close(depot);
    depot = NULL;
    err = (struct kiln_err){0};
    CHECK_OK(kiln_depot_open(&opts, &depot, &err));
}

static void start(uint64_t quota_bytes)
{
    io = kiln_sim_new();
    quota = quota_bytes;
    open_again();
}

static void stop(void)
{
    kiln_depot_close(depot);
    depot = NULL;
    kiln_sim_free(io);
    tenant_quota = rest_ns = 0;
}

/* A file of so many bytes whose build id is aabbccNN. */
static struct kiln_str file_of(uint8_t id, enum kiln_debug_kind kind, size_t n)
{
    static struct elf_maker maker;
    static uint8_t bulk[200000];
    uint8_t note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xaa\xbb\xcc\0";

    note[sizeof(note) - 2] = id;
    memset(&maker, 0, sizeof(maker));
    maker.type = ET_DYN;
    elf_maker_add(&maker, (struct elf_part){.name = ".note.gnu.build-id",
                                            .type = SHT_NOTE,
                                            .data = note,
                                            .n = sizeof(note) - 1});
    elf_maker_add(&maker,
                  (struct elf_part){.name = kind == KILN_DEBUG_EXECUTABLE ? ".text" : ".debug_info",
                                    .flags = kind == KILN_DEBUG_EXECUTABLE ? SHF_EXECINSTR : 0,
                                    .data = bulk,
                                    .n = n});
    elf_maker_bytes(&maker);
    return (struct kiln_str){(const char *)maker.data, maker.n};
}

static const char *digits_of(struct kiln_str bytes)
{
    static char text[65];
    uint8_t digest[32];

    kiln_sha256(bytes, digest);
    kiln_hex_encode(digest, sizeof(digest), text);
    return text;
}

static int put_as(const char *tenant, const char *id, struct kiln_str file)
{
    const struct kiln_depot_part part = {.tenant = tenant,
                                         .build_id = kiln_str_of(id),
                                         .total = file.len,
                                         .bytes = file,
                                         .name = KILN_STR("prog")};

    err = (struct kiln_err){0};
    return kiln_depot_put(depot, &part, &said, &err);
}

/* One byte of a file that is said to have `total`. */
static int promise(const char *tenant, uint8_t number, uint64_t total)
{
    char digits[65];
    const struct kiln_depot_part part = {.tenant = tenant,
                                         .build_id = KILN_STR("aabbccff"),
                                         .sha256 = {digits, 64},
                                         .total = total,
                                         .bytes = KILN_STR("x")};

    snprintf(digits, sizeof(digits), "%064x", number);
    err = (struct kiln_err){0};
    return kiln_depot_put(depot, &part, &said, &err);
}

static int put_part(const char *id, struct kiln_str file, const char *digits, uint64_t offset,
                    size_t n)
{
    const struct kiln_depot_part part = {.tenant = "shop",
                                         .build_id = kiln_str_of(id),
                                         .sha256 = kiln_str_of(digits),
                                         .offset = offset,
                                         .total = file.len,
                                         .bytes = {file.ptr + offset, n}};

    err = (struct kiln_err){0};
    return kiln_depot_put(depot, &part, &said, &err);
}

static bool is_there(const char *tenant, const char *id, enum kiln_debug_kind kind)
{
    struct kiln_depot_file file;

    return kiln_depot_look(depot, tenant, kiln_str_of(id), kind, &file) == 0;
}

TEST(depot, a_file_is_found_by_tenant_build_id_and_kind_also_after_a_restart)
{
    start(0);
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_EXECUTABLE, 100)));
    CHECK(said.complete && !said.known);
    CHECK_OK(put_as("shop", "AABBCC01", file_of(1, KILN_DEBUG_INFO, 100)));
    CHECK_EQ(said.kind, KILN_DEBUG_INFO);
    CHECK_TEXT(said.build_id, "aabbcc01");
    for (int i = 0; i < 2; i++) {
        CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_EXECUTABLE));
        CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
        CHECK(!is_there("shop", "aabbcc01", KILN_DEBUG_DWP));
        CHECK(!is_there("shop", "aabbcc02", KILN_DEBUG_INFO));
        CHECK(!is_there("bank", "aabbcc01", KILN_DEBUG_INFO));
        open_again();
    }
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100)));
    CHECK(said.known);
    stop();
}

TEST(depot, parts_make_a_file_in_order_and_a_repeated_one_is_no_harm)
{
    struct kiln_str file = file_of(7, KILN_DEBUG_INFO, 50000);
    char digits[65];

    start(0);
    memcpy(digits, digits_of(file), sizeof(digits));
    CHECK_OK(put_part("aabbcc07", file, digits, 0, 20000));
    CHECK(!said.complete);
    CHECK_EQ(said.received, 20000);
    CHECK_OK(put_part("aabbcc07", file, digits, 0, 20000));
    CHECK_EQ(said.received, 20000);
    CHECK_OK(put_part("aabbcc07", file, digits, 10000, 20000));
    CHECK_EQ(said.received, 30000);
    CHECK_EQ(put_part("aabbcc07", file, digits, 40000, 100), -ESTALE);
    CHECK_EQ(said.received, 30000);
    CHECK_OK(put_part("aabbcc07", file, digits, 30000, file.len - 30000));
    CHECK(said.complete);
    CHECK(is_there("shop", "aabbcc07", KILN_DEBUG_INFO));
    stop();
}

TEST(depot, an_upload_goes_on_after_a_restart)
{
    struct kiln_str file = file_of(7, KILN_DEBUG_INFO, 50000);
    char digits[65];

    start(0);
    memcpy(digits, digits_of(file), sizeof(digits));
    CHECK_OK(put_part("aabbcc07", file, digits, 0, 20000));
    open_again();
    CHECK_EQ(put_part("aabbcc07", file, digits, 30000, 100), -ESTALE);
    CHECK_EQ(said.received, 20000);
    CHECK_OK(put_part("aabbcc07", file, digits, 20000, file.len - 20000));
    CHECK(said.complete);
    stop();
}

TEST(depot, what_is_wrong_is_refused_and_leaves_nothing)
{
    struct kiln_str file = file_of(7, KILN_DEBUG_INFO, 5000);
    char digits[65];

    start(0);
    memcpy(digits, digits_of(file), sizeof(digits));
    digits[3] = digits[3] == '0' ? '1' : '0';
    CHECK_EQ(put_as("shop", "aabbcc07", KILN_STR("no ELF file at all")), KILN_E_UNKNOWN);
    CHECK_EQ(put_as("shop", "aabbcc08", file), -EKEYREJECTED);
    CHECK(strstr(err.text, "aabbcc07"));
    CHECK_EQ(put_as("shop", "aabbcc07", (struct kiln_str){file.ptr, file.len - 9}),
             KILN_E_TRUNCATED);
    CHECK_EQ(put_part("aabbcc07", file, digits, 0, file.len), KILN_E_CORRUPT);
    CHECK_EQ(put_part("aabbcc07", file, "xyz", 0, file.len), -EINVAL);
    CHECK_EQ(put_part("aabbcc07", file, "", 0, 10), -EINVAL);
    CHECK_EQ(put_as("shop", "", file), -EINVAL);
    CHECK_EQ(kiln_sim_used(io), 0);
    stop();
}

static uint64_t used_by(const char *tenant)
{
    struct kiln_depot_stats stats;

    kiln_depot_stats(depot, tenant, &stats);
    return stats.used_bytes;
}

TEST(depot, the_least_recently_used_of_a_tenant_make_room_within_the_quota)
{
    start(350000);
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100000)));
    CHECK_OK(put_as("shop", "aabbcc02", file_of(2, KILN_DEBUG_INFO, 100000)));
    CHECK_OK(put_as("bank", "aabbcc03", file_of(3, KILN_DEBUG_INFO, 100000)));
    kiln_depot_use(depot, "shop", KILN_STR("aabbcc01"), UINT64_MAX / 2);
    CHECK_OK(put_as("shop", "aabbcc04", file_of(4, KILN_DEBUG_INFO, 100000)));
    CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    CHECK(!is_there("shop", "aabbcc02", KILN_DEBUG_INFO));
    CHECK(is_there("bank", "aabbcc03", KILN_DEBUG_INFO));
    CHECK(is_there("shop", "aabbcc04", KILN_DEBUG_INFO));
    CHECK(used_by(NULL) <= 350000);
    CHECK_EQ(used_by(NULL), used_by("shop") + used_by("bank"));
    CHECK_EQ(promise("shop", 1, 350001), KILN_E_LIMIT);
    CHECK(strstr(err.text, "--symbols-quota"));
    stop();
}

TEST(depot, what_is_only_announced_removes_nothing_and_blocks_nobody)
{
    start(300000);
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100000)));
    CHECK_OK(put_as("bank", "aabbcc02", file_of(2, KILN_DEBUG_INFO, 100000)));
    for (uint8_t i = 0; i < 20; i++)
        CHECK_OK(promise("mallory", i, 300000));
    CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    CHECK(is_there("bank", "aabbcc02", KILN_DEBUG_INFO));
    CHECK_EQ(used_by("mallory"), 20);
    CHECK_OK(put_as("bank", "aabbcc03", file_of(3, KILN_DEBUG_INFO, 40000)));
    CHECK(is_there("bank", "aabbcc02", KILN_DEBUG_INFO));
    stop();
}

TEST(depot, a_tenant_has_a_quota_of_its_own)
{
    tenant_quota = 150000;
    start(1000000);
    CHECK_OK(put_as("bank", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100000)));
    CHECK_OK(put_as("shop", "aabbcc02", file_of(2, KILN_DEBUG_INFO, 100000)));
    CHECK_OK(put_as("shop", "aabbcc03", file_of(3, KILN_DEBUG_INFO, 100000)));
    CHECK(is_there("bank", "aabbcc01", KILN_DEBUG_INFO));
    CHECK(!is_there("shop", "aabbcc02", KILN_DEBUG_INFO));
    CHECK_EQ(put_as("shop", "aabbcc04", file_of(4, KILN_DEBUG_INFO, 160000)), KILN_E_LIMIT);
    CHECK(strstr(err.text, "--symbols-tenant-quota"));
    CHECK(is_there("shop", "aabbcc03", KILN_DEBUG_INFO));
    stop();
}

/* A store may be full of one tenant's files before others come. */
TEST(depot, a_tenant_gets_its_share_from_the_one_that_has_the_most)
{
    char id[] = "aabbcc00";

    start(400000);
    for (uint8_t i = 1; i <= 9; i++) {
        id[7] = (char)('0' + i);
        CHECK_OK(put_as(i == 9 ? "bank" : "shop", id, file_of(i, KILN_DEBUG_INFO, 40000)));
    }
    CHECK_OK(put_as("late", "aabbcc0a", file_of(10, KILN_DEBUG_INFO, 100000)));
    CHECK(is_there("late", "aabbcc0a", KILN_DEBUG_INFO));
    CHECK(is_there("bank", "aabbcc09", KILN_DEBUG_INFO));
    CHECK(!is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    CHECK(is_there("shop", "aabbcc08", KILN_DEBUG_INFO));
    CHECK_OK(put_as("late", "aabbcc0b", file_of(11, KILN_DEBUG_INFO, 100000)));
    CHECK(!is_there("late", "aabbcc0a", KILN_DEBUG_INFO)); /* its share is used: its own go */
    CHECK(is_there("shop", "aabbcc08", KILN_DEBUG_INFO));
    stop();
}

TEST(depot, an_upload_that_is_under_way_keeps_no_other_tenant_below_its_share)
{
    struct kiln_str file = file_of(7, KILN_DEBUG_INFO, 180000);
    char digits[65];

    memcpy(digits, digits_of(file), sizeof(digits));
    start(200000);
    CHECK_OK(put_part("aabbcc07", file, digits, 0, 170000)); /* of shop */
    CHECK_OK(put_as("bank", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 90000)));
    CHECK_EQ(used_by("shop"), 0);
    stop();
}

TEST(depot, an_upload_that_rests_goes_before_files_and_one_under_way_stays)
{
    struct kiln_str file = file_of(7, KILN_DEBUG_INFO, 60000);
    char digits[65];

    memcpy(digits, digits_of(file), sizeof(digits));
    start(150000);
    CHECK_OK(put_part("aabbcc07", file, digits, 0, 50000));
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 80000)));
    CHECK_OK(put_as("shop", "aabbcc02", file_of(2, KILN_DEBUG_INFO, 90000)));
    CHECK(!is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    CHECK_EQ(put_as("shop", "aabbcc03", file_of(3, KILN_DEBUG_INFO, 120000)), -EDQUOT);
    CHECK(strstr(err.text, "--symbols-tenant-quota"));
    rest_ns = 1;
    open_again();
    CHECK_OK(put_as("shop", "aabbcc03", file_of(3, KILN_DEBUG_INFO, 120000)));
    CHECK_EQ(put_part("aabbcc07", file_of(7, KILN_DEBUG_INFO, 60000), digits, 50000, 100), -ESTALE);
    CHECK_EQ(said.received, 0);
    stop();
}

TEST(depot, places_of_uploads_are_shared_too)
{
    char tenant[] = "tenant0";

    start(0);
    for (int t = 0; t < 8; t++) {
        tenant[6] = (char)('0' + t);
        for (uint8_t i = 0; i < 32; i++)
            CHECK_OK(promise(tenant, i, 1000));
        CHECK_EQ(promise(tenant, 99, 1000), -EDQUOT);
    }
    CHECK_OK(promise("late", 1, 1000));
    stop();
}

TEST(depot, the_disk_is_looked_at_before_anything_goes)
{
    start(300000);
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 200000)));
    kiln_sim_limit(io, kiln_sim_used(io) + 1000);
    CHECK_EQ(promise("shop", 1, 250000), -ENOSPC);
    CHECK(strstr(err.text, "disk"));
    CHECK_EQ(put_as("shop", "aabbcc02", file_of(2, KILN_DEBUG_INFO, 150000)), -ENOSPC);
    CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    stop();
}

TEST(depot, a_full_disk_is_told)
{
    start(0);
    kiln_sim_limit(io, 1000);
    CHECK_EQ(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100000)), -ENOSPC);
    CHECK_EQ(kiln_sim_used(io), 0);
    kiln_sim_limit(io, UINT64_MAX);
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100000)));
    stop();
}

TEST(depot, what_no_profile_uses_goes_after_its_time)
{
    struct kiln_depot_file file;

    start(0);
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100)));
    CHECK_OK(put_as("shop", "aabbcc02", file_of(2, KILN_DEBUG_INFO, 100)));
    CHECK_OK(kiln_depot_look(depot, "shop", KILN_STR("aabbcc02"), KILN_DEBUG_INFO, &file));
    kiln_depot_use(depot, "shop", KILN_STR("aabbcc02"), file.used_ns + 5 * HOUR);
    kiln_depot_retire(depot, file.used_ns + HOUR, 2 * HOUR);
    CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    kiln_depot_retire(depot, file.used_ns + 4 * HOUR, 2 * HOUR);
    CHECK(!is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    CHECK(is_there("shop", "aabbcc02", KILN_DEBUG_INFO));
    open_again();
    CHECK(!is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    stop();
}

TEST(depot, deleting_takes_all_kinds_of_one_tenant)
{
    uint32_t n;

    start(0);
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100)));
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_EXECUTABLE, 100)));
    CHECK_OK(put_as("bank", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 100)));
    CHECK_OK(kiln_depot_delete(depot, "shop", KILN_STR("aabbcc01"), &n, &err));
    CHECK_EQ(n, 2);
    CHECK(!is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    CHECK(is_there("bank", "aabbcc01", KILN_DEBUG_INFO));
    stop();
}

TEST(depot, whatever_fails_on_the_way_the_next_try_goes_well)
{
    for (uint64_t n = 1; n < 60; n++) {
        start(0);
        kiln_sim_fail_at(io, n, -EIO);
        (void)!put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 1000));
        kiln_sim_fail_at(io, 0, 0);
        CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 1000)));
        CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
        stop();
    }
}

/* What was acknowledged is there, and what is there is whole. */
TEST(depot, a_power_cut_at_any_moment_leaves_whole_files)
{
    for (uint64_t n = 1; n < 24; n++) {
        int r;

        start(0);
        kiln_sim_cut_at(io, n);
        r = put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 3000));
        kiln_sim_cut(io, n * 77);
        open_again();
        if (r == 0)
            CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
        CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 3000)));
        open_again();
        CHECK(is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
        stop();
    }
}

TEST(depot, a_name_alone_does_not_make_a_file)
{
    start(0);
    CHECK_OK(put_as("shop", "aabbcc01", file_of(1, KILN_DEBUG_INFO, 1000)));
    CHECK_OK(io->rename(io, "debug/shop/aabbcc01.debuginfo", "debug/shop/aabbcc02.debuginfo"));
    open_again();
    CHECK(!is_there("shop", "aabbcc01", KILN_DEBUG_INFO));
    CHECK(!is_there("shop", "aabbcc02", KILN_DEBUG_INFO));
    stop();
}
