/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "store/symbols.h"
#include "support/drawn.h"
#include "test.h"

static const struct kiln_symbol three[] = {
    {0x2000, 0x100, {"parse", 5}, {"json.c", 6}, 40},
    {0x1000, 0, {"main", 4}, {"main.c", 6}, 7},
    {0x3000, 0x10, {"read", 4}, {"json.c", 6}, -1},
};

static struct kiln_symbols *round_trip(const struct kiln_symbol *symbols, uint32_t n)
{
    struct kiln_symbols *ret = NULL;
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_symbols_encode(KILN_STR("abc"), symbols, n, &out, NULL));
    CHECK_OK(kiln_symbols_decode(kiln_buf_str(&out), 1 << 20, &ret, NULL));
    kiln_buf_done(&out);
    return ret;
}

/* "name file:line", or "none". */
static const char *found(const struct kiln_symbols *symbols, uint64_t address)
{
    static char text[128];
    struct kiln_symbol s;

    if (!kiln_symbols_find(symbols, address, &s))
        return "none";
    snprintf(text, sizeof(text), "%.*s %.*s:%d", KILN_STR_ARG(s.name), KILN_STR_ARG(s.file),
             (int)s.line);
    return text;
}

TEST(symbols, an_address_lies_in_the_symbol_before_it_up_to_its_size)
{
    struct kiln_symbols *symbols = round_trip(three, 3);

    CHECK_STR(kiln_symbols_build_id(symbols), "abc");
    CHECK_TEXT(found(symbols, 0xfff), "none");
    CHECK_TEXT(found(symbols, 0x1000), "main main.c:7");
    CHECK_TEXT(found(symbols, 0x1fff), "main main.c:7");
    CHECK_TEXT(found(symbols, 0x2000), "parse json.c:40");
    CHECK_TEXT(found(symbols, 0x20ff), "parse json.c:40");
    CHECK_TEXT(found(symbols, 0x2100), "none");
    CHECK_TEXT(found(symbols, 0x300f), "read json.c:-1");
    CHECK_TEXT(found(symbols, UINT64_MAX), "none");
    kiln_symbols_free(symbols);
}

TEST(symbols, a_file_of_format_1_is_read_for_ever)
{
    struct kiln_symbols *symbols = NULL;
    size_t n;
    char *bytes = kiln_test_read(KILN_SOURCE_DIR "/tests/fixtures/symbols-v1", &n);

    CHECK(bytes != NULL);
    CHECK_OK(kiln_symbols_decode((struct kiln_str){bytes, n}, 1 << 20, &symbols, NULL));
    free(bytes);
    CHECK_STR(kiln_symbols_build_id(symbols), "abc");
    CHECK_TEXT(found(symbols, 0x1001), "main main.c:7");
    CHECK_TEXT(found(symbols, 0x3001), "read json.c:-1");
    kiln_symbols_free(symbols);
}

TEST(symbols, of_two_at_one_address_the_first_counts)
{
    struct kiln_symbol two[] = {{8, 0, KILN_STR("a"), KILN_STR_NONE, 0},
                                {8, 0, KILN_STR("b"), KILN_STR_NONE, 0}};
    struct kiln_symbols *symbols = round_trip(two, 2);

    CHECK_EQ(kiln_symbols_count(symbols), 1);
    CHECK_TEXT(found(symbols, 9), "a :0");
    kiln_symbols_free(symbols);
}

TEST(symbols, none_at_all_is_a_file_too)
{
    struct kiln_symbols *symbols = round_trip(NULL, 0);

    CHECK_TEXT(found(symbols, 0), "none");
    kiln_symbols_free(symbols);
}

TEST(symbols, a_flipped_bit_or_a_missing_end_is_noticed)
{
    struct kiln_symbols *symbols = NULL;
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_symbols_encode(KILN_STR("abc"), three, 3, &out, NULL));
    for (size_t i = 0; i < out.len * 8; i++) {
        out.ptr[i / 8] ^= (char)(1 << i % 8);
        CHECK(kiln_symbols_decode(kiln_buf_str(&out), 1 << 20, &symbols, NULL) < 0);
        out.ptr[i / 8] ^= (char)(1 << i % 8);
    }
    for (size_t i = 0; i < out.len; i++)
        CHECK(kiln_symbols_decode((struct kiln_str){out.ptr, i}, 1 << 20, &symbols, NULL) < 0);
    kiln_buf_done(&out);
}

TEST(symbols, what_does_not_fit_into_memory_is_refused)
{
    struct kiln_symbols *symbols = NULL;
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_symbols_encode(KILN_STR("abc"), three, 3, &out, NULL));
    for (size_t limit = 0; kiln_symbols_decode(kiln_buf_str(&out), limit, &symbols, NULL) < 0;
         limit++)
        CHECK(limit < 1024);
    CHECK_EQ(kiln_symbols_count(symbols), 3);
    kiln_symbols_free(symbols);
    kiln_buf_done(&out);
}

TEST(symbols, a_build_id_cannot_leave_its_folder)
{
    char path[KILN_SYMBOLS_PATH_MAX], much[600];

    CHECK_OK(kiln_symbols_path(KILN_STR("t"), KILN_STR("a/../b.c"), path, NULL));
    CHECK_TEXT(path, "symbols/t/a%2F..%2Fb.c");
    CHECK_OK(kiln_symbols_path(KILN_STR(".."), KILN_STR(".."), path, NULL));
    CHECK_TEXT(path, "symbols/%2E./%2E.");
    CHECK(kiln_symbols_path(KILN_STR("t"), KILN_STR(""), path, NULL) < 0);
    memset(much, '/', sizeof(much));
    CHECK(kiln_symbols_path(KILN_STR("t"), (struct kiln_str){much, 100}, path, NULL) < 0);
    CHECK(kiln_symbols_path(KILN_STR("t"), (struct kiln_str){much, 600}, path, NULL) < 0);
}

/* ---- files and batches ---- */

static char folder[] = "/tmp/kiln-symbols-XXXXXX";

static struct kiln_io *open_folder(void)
{
    struct kiln_io *io = NULL;

    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    CHECK(mkdtemp(folder) != NULL);
    CHECK_OK(kiln_io_open(folder, false, &io));
    return io;
}

static void close_folder(struct kiln_io *io)
{
    char command[64];

    kiln_io_close(io);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    CHECK_EQ((system)(command), 0);
}

/* Two nameless frames of one mapping below a named one, and one of a mapping without a build id.
 * The innermost has a function that is made up. */
static struct kiln_batch *nameless(const char *key, const char *build_id)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct kiln_mapping known = {.start = 0x400000, .limit = 0x500000, .offset = 0x1000};
    struct kiln_mapping other = {.start = 0x700000, .limit = 0x800000};
    struct kiln_profile profile = {.time_ns = 1};
    struct kiln_function function = {0};
    struct kiln_line line = {0}, made_up = {0};
    uint32_t attr, frames[4], p;

    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, kiln_str_of(key), kiln_str_of(build_id));
    known.attrs = kiln_builder_set(b, &attr, 1, NULL);
    known.filename = kiln_builder_string(b, KILN_STR("/bin/app"));
    other.filename = kiln_builder_string(b, KILN_STR("/lib/other.so"));
    function.name = kiln_builder_string(b, KILN_STR("start"));
    line.function = kiln_builder_function(b, &function);
    function.name = kiln_builder_string(b, KILN_STR("app+0x3000"));
    made_up.function = kiln_builder_function(b, &function);
    frames[0] = kiln_builder_location(
        b, &(struct kiln_location){.address = 0x402008, .mapping = kiln_builder_mapping(b, &known)},
        &made_up, 1);
    frames[1] = kiln_builder_location(
        b, &(struct kiln_location){.address = 0x401004, .mapping = kiln_builder_mapping(b, &known)},
        NULL, 0);
    frames[2] = kiln_builder_location(
        b, &(struct kiln_location){.address = 0x702008, .mapping = kiln_builder_mapping(b, &other)},
        NULL, 0);
    frames[3] = kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    p = kiln_builder_add_profile(b, &profile);
    kiln_builder_add_value(b, p, kiln_builder_stack(b, frames, 4), 0, 5);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

static const char *named_text(struct kiln_io *io, struct kiln_batch *batch)
{
    struct kiln_view_opts opts = {0};
    struct kiln_view *view;
    uint32_t damaged = 9;
    static char text[256];

    CHECK_OK(kiln_symbols_apply(io, KILN_STR("t"), 1 << 24, &batch, &damaged, NULL));
    view = kiln_test_view(batch, &opts);
    snprintf(text, sizeof(text), "%s%s", kiln_test_view_text(view), damaged ? "damaged\n" : "");
    kiln_view_free(view);
    return text;
}

TEST(symbols, names_come_late)
{
    struct kiln_io *io = open_folder();
    const char *key = "process.executable.build_id.gnu";
    const char *before = "start;other.so+0x2008;app+0x2004;app+0x3000 5\n";

    CHECK_TEXT(named_text(io, nameless(key, "id1")), before);
    CHECK_OK(kiln_symbols_put(io, KILN_STR("t"), KILN_STR("id2"), three, 3, NULL));
    CHECK_TEXT(named_text(io, nameless(key, "id1")), before);
    CHECK_OK(kiln_symbols_put(io, KILN_STR("t"), KILN_STR("id1"), three, 3, NULL));
    CHECK_TEXT(named_text(io, nameless(key, "id1")), "start;other.so+0x2008;parse;read 5\n");
    CHECK_OK(kiln_symbols_put(io, KILN_STR("t"), KILN_STR("id1"), three + 1, 1, NULL));
    CHECK_TEXT(named_text(io, nameless("process.executable.build_id.go", "id1")),
               "start;other.so+0x2008;main;main 5\n");
    CHECK_TEXT(named_text(io, nameless("process.executable.name", "id1")), before);
    close_folder(io);
}

TEST(symbols, a_damaged_file_is_passed_over_and_counted)
{
    struct kiln_io *io = open_folder();
    const char *key = "process.executable.build_id.htlhash";

    CHECK_OK(kiln_symbols_put(io, KILN_STR("t"), KILN_STR("id1"), three, 3, NULL));
    CHECK_OK(kiln_io_put(io, "symbols/t/id1", "rubbish", 7));
    CHECK_TEXT(named_text(io, nameless(key, "id1")),
               "start;other.so+0x2008;app+0x2004;app+0x3000 5\ndamaged\n");
    close_folder(io);
}
