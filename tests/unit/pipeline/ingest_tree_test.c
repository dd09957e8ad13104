/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "pipeline/receivers/ingest_tree.h"
#include "stacks.h"
#include "test.h"

typedef int decoder(struct kiln_str content, struct kiln_builder *b, struct kiln_err *err);

static int decode(decoder *decode_it, struct kiln_str content, struct kiln_batch **ret,
                  struct kiln_err *err)
{
    struct kiln_builder *b;
    int r;

    CHECK_OK(kiln_builder_new(NULL, &b));
    r = decode_it(content, b, err);
    if (r == 0)
        return kiln_builder_finish(b, ret, err);
    kiln_builder_free(b);
    return r;
}

static void check(decoder *decode_it, struct kiln_str content, const char *drawing)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch;

    CHECK_OK(decode(decode_it, content, &batch, &err));
    check_stacks(batch, drawing);
    kiln_batch_unref(batch);
}

TEST(ingest_tree, lines_count_one_each)
{
    check(kiln_ingest_lines, KILN_STR("main;read\nmain;read\r\n\nidle"),
          "main;read 1\nmain;read 1\nidle 1\n");
}

/*   ""  +- main (0) +- read (3)
 *       |           +- write (1)
 *       +- idle (2)
 */
TEST(ingest_tree, a_tree_has_frames_as_nodes)
{
    check(kiln_ingest_tree,
          KILN_STR("\0\0\2"
                   "\4main\0\2"
                   "\4read\3\0"
                   "\5write\1\0"
                   "\4idle\2\0"),
          "main;read 3\nmain;write 1\nidle 2\n");
}

TEST(ingest_tree, a_trie_has_pieces_of_text_as_nodes)
{
    check(kiln_ingest_trie,
          KILN_STR("\0\0\2"
                   "\5main;\0\2"
                   "\4read\3\1"
                   "\2er\1\0"
                   "\5write\1\0"
                   "\1x\2\0"),
          "main;read 3\nmain;reader 1\nmain;write 1\nx 2\n");
}

TEST(ingest_tree, trees_that_are_cut_off_are_refused)
{
    struct kiln_str whole = KILN_STR("\0\0\2\4main\0\1\4read\3\0\4idle\2\0");
    struct kiln_batch *batch;

    for (size_t n = 0; n < whole.len; n++) {
        struct kiln_err err = {0};

        CHECK(decode(kiln_ingest_tree, (struct kiln_str){whole.ptr, n}, &batch, &err) < 0);
        CHECK(decode(kiln_ingest_trie, (struct kiln_str){whole.ptr, n}, &batch, &err) < 0);
    }
    CHECK_EQ(decode(kiln_ingest_tree, KILN_STR("\0\0\0more"), &batch, NULL), KILN_E_MALFORMED);
}

TEST(ingest_tree, a_tree_may_not_be_endlessly_deep)
{
    size_t depth = 70000;
    char *bytes = kiln_malloc(depth * 4 + 3), *at = bytes;
    struct kiln_batch *batch;
    struct kiln_err err = {0};

    for (size_t i = 0; i < depth; i++, at += 4)
        memcpy(at, "\1f\0\1", 4);
    memcpy(at, "\0\1\0", 3);
    CHECK_EQ(decode(kiln_ingest_tree, (struct kiln_str){bytes, depth * 4 + 3}, &batch, &err),
             KILN_E_LIMIT);
    kiln_free(bytes);
    CHECK_EQ(kiln_mem_live(), 0);
}
