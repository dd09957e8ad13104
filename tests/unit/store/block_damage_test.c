/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are damaged, cut off, or made by another version.
 *
 * tests/fixtures/block-v1.kb is a block of format 1.  It is made by this program, when
 * KILN_WRITE_FIXTURE names the file, and must never be made anew: newer formats get their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "blocks.h"
#include "drawn.h"
#include "sim_io.h"
#include "store/block_int.h"
#include "test.h"

static struct kiln_batch *small(void)
{
    const struct kiln_drawn profiles[] = {
        {.stacks = "main;parse@json.c:12;read 3 thread=main,n=7\n"
                   "main;lib.so+0x1234 2\n",
         .type = "cpu",
         .unit = "nanoseconds",
         .time_ns = 1700000000000000000,
         .duration_ns = 10000000000,
         .resource = "service.name=shop,host.name=a",
         .scope = "agent"},
        {.stacks = "main;wait 5@1700000000000000100 6@1700000000000000300\n",
         .type = "wall",
         .unit = "nanoseconds",
         .time_ns = 1700000000000000000,
         .resource = "service.name=cart"},
    };

    return kiln_test_batch(profiles, KILN_ARRAY_LEN(profiles));
}

/* 0 if the file is a whole block. */
static int check_file(struct kiln_io *io, const char *path, struct kiln_err *err)
{
    struct kiln_block *block;
    int r = kiln_block_open(io, path, &block, err);

    if (r < 0)
        return r;
    r = kiln_block_verify(block, err);
    kiln_block_unref(block);
    return r;
}

static const char *write_small(struct kiln_io *io)
{
    struct kiln_batch *batch = small();
    struct kiln_block_id id;

    CHECK_OK(block_write(io, batch, NULL, &id, NULL));
    kiln_batch_unref(batch);
    return block_path(&id);
}

static uint64_t size_of(struct kiln_io *io, const char *path)
{
    uint64_t size = 0;
    int fd = io->open(io, path, O_RDONLY);

    CHECK(fd >= 0);
    CHECK_OK(io->size(io, fd, &size));
    CHECK_OK(io->close(io, fd));
    return size;
}

TEST(block_damage, every_single_flipped_bit_is_found)
{
    struct kiln_io *io = kiln_sim_new();
    const char *path = write_small(io);
    uint64_t size = size_of(io, path);

    CHECK_OK(check_file(io, path, NULL));
    for (uint64_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct kiln_err err = {0};

            CHECK(kiln_sim_flip(io, path, i, bit));
            if (check_file(io, path, &err) == 0)
                fail_msg("bit %d of byte %llu is not missed", bit, (unsigned long long)i);
            CHECK(strncmp(err.where, "blocks/t/", 9) == 0);
            CHECK(kiln_sim_flip(io, path, i, bit));
        }
    }
    CHECK_OK(check_file(io, path, NULL));
    kiln_sim_free(io);
}

TEST(block_damage, damage_is_named_by_section_and_page)
{
    struct kiln_io *io = kiln_sim_new();
    const char *path = write_small(io);
    struct kiln_err err = {0};

    CHECK(kiln_sim_flip(io, path, KILN_BLOCK_HEAD + 12, 3));
    CHECK_EQ(check_file(io, path, &err), KILN_E_CORRUPT);
    CHECK(strstr(err.where, ".kb.rows[0]") != NULL);
    CHECK_TEXT(err.text, "the checksum does not match");
    kiln_sim_free(io);
}

TEST(block_damage, a_block_that_is_cut_off_is_found)
{
    struct kiln_io *io = kiln_sim_new();
    const char *path = write_small(io);
    uint64_t size = size_of(io, path);
    int fd = io->open(io, path, O_RDWR);

    CHECK(fd >= 0);
    while (size > 0) {
        CHECK_OK(io->truncate(io, fd, --size));
        CHECK(check_file(io, path, NULL) < 0);
    }
    CHECK_OK(io->close(io, fd));
    kiln_sim_free(io);
}

/* The bytes of a small block, to be changed. */
struct bytes {
    char *ptr;
    size_t len;
};

static struct bytes small_bytes(struct kiln_io *io)
{
    void *data = NULL;
    struct bytes b;

    CHECK_OK(kiln_io_get(io, write_small(io), 1 << 20, &data, &b.len));
    b.ptr = data;
    return b;
}

static void put_u32(char *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v));
}

TEST(block_damage, a_newer_format_is_refused_in_one_sentence)
{
    struct kiln_io *io = kiln_sim_new();
    struct bytes b = small_bytes(io);
    struct kiln_err err = {0};

    put_u32(b.ptr + 8, KILN_BLOCK_VERSION + 1);
    put_u32(b.ptr + 12, kiln_crc32c(0, b.ptr, 12));
    CHECK_OK(kiln_io_put(io, "blocks/x.kb", b.ptr, b.len));
    CHECK_EQ(check_file(io, "blocks/x.kb", &err), KILN_E_UNSUPPORTED);
    CHECK_TEXT(err.where, "blocks/x.kb");
    CHECK_TEXT(err.text, "block format 2 is newer than this kiln (1): use a newer kiln");
    kiln_free(b.ptr);
    kiln_sim_free(io);
}

TEST(block_damage, something_else_is_no_block)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_err err = {0};
    char zeros[1000] = {0};

    CHECK_OK(kiln_io_put(io, "x.kb", zeros, sizeof(zeros)));
    CHECK_EQ(check_file(io, "x.kb", &err), KILN_E_UNKNOWN);
    CHECK_TEXT(err.text, "this is no block: its magic is missing");
    kiln_sim_free(io);
}

/* The block with one more section, of this kind, behind the others. */
static void put_with_section(struct kiln_io *io, uint32_t kind, const char *path)
{
    struct kiln_str page, footer;
    struct kiln_page_habit habit = {0};
    struct kiln_page_out out;
    struct kiln_block *block;
    struct kiln_buf file;
    struct bytes b = small_bytes(io);
    struct kiln_footer *f;
    char tail[12];
    uint64_t end;

    CHECK_OK(kiln_io_put(io, "small.kb", b.ptr, b.len));
    CHECK_OK(kiln_block_open(io, "small.kb", &block, NULL));
    f = &block->footer;
    end = f->pages[f->n_pages - 1].offset + f->pages[f->n_pages - 1].size;
    kiln_buf_init(&file, 1 << 20);
    kiln_buf_add(&file, b.ptr, end);
    CHECK_OK(kiln_page_out_init(&out, 1 << 20));
    kiln_page_begin(&out, &habit);
    kiln_page_add_bytes(&out, KILN_STR("something new"));
    CHECK_OK(kiln_page_finish(&out, &page));
    kiln_buf_add_str(&file, page);
    CHECK_OK(kiln_grow(f->budget, (void **)&f->sections, &f->cap_sections, f->n_sections + 1,
                       sizeof(*f->sections), 1000));
    CHECK_OK(kiln_grow(f->budget, (void **)&f->pages, &f->cap_pages, f->n_pages + 1,
                       sizeof(*f->pages), 1000));
    f->sections[f->n_sections++] = (struct kiln_section){kind, 0, f->n_pages, 1, 1};
    f->pages[f->n_pages++] = (struct kiln_page_ref){end, page.len, 1};
    CHECK_OK(kiln_footer_encode(f, &out, &footer));
    kiln_buf_add_str(&file, footer);
    put_u32(tail, (uint32_t)footer.len);
    put_u32(tail + 4, KILN_BLOCK_VERSION);
    put_u32(tail + 8, kiln_crc32c(0, tail, 8));
    kiln_buf_add(&file, tail, sizeof(tail));
    kiln_buf_puts(&file, KILN_BLOCK_MAGIC);
    CHECK_OK(kiln_io_put(io, path, file.ptr, file.len));
    kiln_buf_done(&file);
    kiln_page_out_done(&out);
    kiln_block_unref(block);
    kiln_free(b.ptr);
}

TEST(block_damage, an_optional_section_is_skipped_when_unknown)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = small(), *back;
    struct kiln_block *block;

    put_with_section(io, KILN_SECTION_ROLLUP + 3, "x.kb");
    CHECK_OK(kiln_block_open(io, "x.kb", &block, NULL));
    CHECK_OK(kiln_block_verify(block, NULL));
    back = block_batch(block, NULL, NULL, NULL);
    block_check_same(batch, back);
    kiln_batch_unref(back);
    kiln_batch_unref(batch);
    kiln_block_unref(block);
    kiln_sim_free(io);
}

TEST(block_damage, a_needed_section_must_be_known)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_err err = {0};

    put_with_section(io, KILN_N_SECTIONS, "x.kb");
    CHECK_EQ(check_file(io, "x.kb", &err), KILN_E_CORRUPT);
    CHECK_TEXT(err.text, "footer: it has a section of a kind that there is not");
    kiln_sim_free(io);
}

/* ---- disks that fail ---- */

static int count_name(void *context, const char *name)
{
    (void)name;
    ++*(int *)context;
    return 0;
}

TEST(block_damage, a_failing_disk_is_an_error_and_leaves_no_block)
{
    struct kiln_batch *batch = small();
    int r = -EIO;

    for (uint64_t n = 1; r < 0; n++) {
        struct kiln_io *io = kiln_sim_new();
        struct kiln_block_id id;
        struct kiln_err err = {0};
        int left = 0;

        kiln_sim_fail_at(io, n, -ENOSPC);
        r = block_write(io, batch, NULL, &id, &err);
        /* Reading back fails with -EIO. */
        CHECK(r == 0 || ((r == -ENOSPC || r == -EIO) && err.text[0]));
        kiln_sim_fail_at(io, 0, 0);
        if (io->list(io, "blocks/t", count_name, &left) == 0)
            CHECK_EQ(left, r == 0);
        kiln_sim_free(io);
        CHECK(n < 100);
    }
    kiln_batch_unref(batch);
}

TEST(block_damage, a_block_outlives_a_power_cut_once_it_is_committed)
{
    struct kiln_batch *batch = small();

    for (uint64_t seed = 0; seed < 30; seed++) {
        struct kiln_io *io = kiln_sim_new();
        struct kiln_block_id id;

        CHECK_OK(block_write(io, batch, NULL, &id, NULL));
        kiln_sim_cut(io, seed);
        CHECK_OK(check_file(io, block_path(&id), NULL));
        kiln_sim_free(io);
    }
    kiln_batch_unref(batch);
}

TEST(block_damage, a_disk_that_cannot_be_read_is_an_error)
{
    struct kiln_io *io = kiln_sim_new();
    const char *path = write_small(io);
    int r = -EIO;

    for (uint64_t n = 1; r < 0; n++) {
        struct kiln_err err = {0};

        kiln_sim_fail_at(io, n, -EIO);
        r = check_file(io, path, &err);
        CHECK(r == 0 || (r == -EIO && err.text[0]));
        kiln_sim_fail_at(io, 0, 0);
        CHECK(n < 100);
    }
    kiln_sim_free(io);
}

/* ---- older formats ---- */

#define FIXTURES KILN_SOURCE_DIR "/tests/fixtures"

TEST(block_damage, a_block_of_format_1_can_be_read)
{
    const char *make = getenv("KILN_WRITE_FIXTURE");
    struct kiln_batch *batch = small(), *back;
    struct kiln_block *block;
    struct kiln_io *io;

    if (make) {
        struct kiln_io *sim = kiln_sim_new();
        struct bytes b = small_bytes(sim);
        FILE *file = fopen(make, "wb");

        assert_non_null(file);
        CHECK_EQ(fwrite(b.ptr, 1, b.len, file), b.len);
        CHECK_OK(fclose(file));
        kiln_free(b.ptr);
        kiln_sim_free(sim);
    }
    CHECK_OK(kiln_io_open(FIXTURES, true, &io));
    CHECK_OK(kiln_block_open(io, "block-v1.kb", &block, NULL));
    CHECK_OK(kiln_block_verify(block, NULL));
    back = block_batch(block, NULL, NULL, NULL);
    assert_non_null(back);
    block_check_same(batch, back);
    kiln_batch_unref(back);
    kiln_block_unref(block);
    kiln_io_close(io);
    kiln_batch_unref(batch);
}
