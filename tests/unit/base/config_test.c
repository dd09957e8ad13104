/* SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "test.h"

static struct kiln_config *parsed(const char *text)
{
    struct kiln_config *config = NULL;
    struct kiln_err err = {0};

    if (kiln_config_parse(kiln_str_of(text), &config, &err) < 0)
        fail_msg("%s: %s: %s", text, err.where, err.text);
    return config;
}

/* The error that a text gives, as "place: sentence". */
static void check_refused(const char *text, const char *expected)
{
    struct kiln_config *config = NULL;
    struct kiln_err err = {0};
    char said[512];

    CHECK(kiln_config_parse(kiln_str_of(text), &config, &err) < 0);
    CHECK(config == NULL);
    snprintf(said, sizeof(said), "%s: %s", err.where, err.text);
    CHECK_TEXT(said, expected);
}

static const char *text_of(const struct kiln_config *config, const char *key)
{
    const struct kiln_node *node = kiln_node_get(kiln_config_root(config), key);

    return node ? node->text : NULL;
}

TEST(config, a_file_becomes_a_tree_that_knows_its_places)
{
    struct kiln_config *config = parsed("a: 1\nb:\n  - x\n  - {c: \"d\"}\n");
    const struct kiln_node *b = kiln_node_get(kiln_config_root(config), "b");

    CHECK_TEXT(text_of(config, "a"), "1");
    CHECK_EQ(b->kind, KILN_NODE_LIST);
    CHECK_EQ(b->n, 2);
    CHECK_TEXT(b->first->text, "x");
    CHECK_EQ(b->first->line, 3);
    CHECK_EQ(b->first->column, 5);
    CHECK_TEXT(kiln_node_get(b->first->next, "c")->text, "d");
    CHECK_EQ(kiln_node_get(b->first->next, "c")->key_column, 6);
    kiln_config_free(config);
}

TEST(config, empty_files_and_null_values_are_nothing)
{
    struct kiln_config *config = parsed("");

    CHECK(kiln_config_root(config) == NULL);
    kiln_config_free(config);
    config = parsed("# only a remark\n---\n");
    CHECK(kiln_config_root(config) == NULL);
    kiln_config_free(config);
    config = parsed("a:\nb: ~\nc: null\nd: \"\"\ne: 'null'\n");
    CHECK(text_of(config, "a") == NULL);
    CHECK(text_of(config, "b") == NULL);
    CHECK(text_of(config, "c") == NULL);
    CHECK_TEXT(text_of(config, "d"), "");
    CHECK_TEXT(text_of(config, "e"), "null");
    kiln_config_free(config);
}

TEST(config, variables_are_put_into_values)
{
    struct kiln_config *config;

    setenv("KILN_TEST_A", "one", 1);
    setenv("KILN_TEST_EMPTY", "", 1);
    unsetenv("KILN_TEST_ABSENT");
    config = parsed("a: x-${env:KILN_TEST_A}-y\n"
                    "b: ${env:KILN_TEST_ABSENT:-a:-b}\n"
                    "c: \"${env:KILN_TEST_EMPTY:-two}${env:KILN_TEST_A:-three}\"\n"
                    "d: $$5 $1 $${env:X} $\n"
                    "e: ${env:KILN_TEST_EMPTY}\n");
    CHECK_TEXT(text_of(config, "a"), "x-one-y");
    CHECK_TEXT(text_of(config, "b"), "a:-b");
    CHECK_TEXT(text_of(config, "c"), "twoone");
    CHECK_TEXT(text_of(config, "d"), "$5 $1 ${env:X} $");
    CHECK(text_of(config, "e") == NULL);
    kiln_config_free(config);
    check_refused("a: 1\nb: ${env:KILN_TEST_ABSENT}",
                  "line 2, column 4: this variable is not set (a default is written "
                  "${env:NAME:-default})");
    check_refused("b: ${HOME}", "line 1, column 4: only ${env:NAME} and ${env:NAME:-default} are "
                                "known (a dollar is $$)");
    check_refused("b: ${env:HOME", "line 1, column 4: ${ is not closed (a dollar is $$)");
    check_refused("b: ${env:}", "line 1, column 4: this is no name of a variable");
}

TEST(config, faults_are_named_with_their_place)
{
    check_refused("a: 1\na: 2\n", "line 2, column 1: this key is here twice");
    check_refused("a: !mine 1\n", "line 1, column 4: this tag is not known here");
    check_refused("a: *x\n", "line 1, column 4: no anchor of this name stands before");
    check_refused("a: &x [*x]\n", "line 1, column 8: an alias stands within what it names");
    check_refused("a: {<<: 1}\n", "line 1, column 9: << takes the keys of a map, or of a list of "
                                  "maps");
    check_refused("{[1]: 2}\n", "line 1, column 2: a key belongs here");
    check_refused("--- 1\n--- 2\n", "line 2, column 1: there is a second document");
    check_refused("a: \"\\0\"\n", "line 1, column 4: a text holds a NUL character");
    check_refused("a: [1\n", "line 2, column 1: did not find expected ',' or ']'");
}

TEST(config, an_alias_is_what_its_anchor_has)
{
    struct kiln_config *config = parsed("a: &a [1, &b \"null\"]\nb: *b\nc: *a\nd: {e: *a}\n");
    const struct kiln_node *root = kiln_config_root(config), *c = kiln_node_get(root, "c");

    CHECK_TEXT(text_of(config, "b"), "null");
    CHECK_EQ(c->kind, KILN_NODE_LIST);
    CHECK_EQ(c->n, 2);
    CHECK_EQ(c->line, 3);
    CHECK_TEXT(c->first->text, "1");
    CHECK_EQ(kiln_node_get(kiln_node_get(root, "d"), "e")->n, 2);
    kiln_config_free(config);
}

TEST(config, a_merge_key_takes_what_a_map_does_not_say_itself)
{
    struct kiln_config *config = parsed("x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\n"
                                        "one: {a: 9, <<: *x}\n"
                                        "two: {<<: [*x, *y]}\n");
    const struct kiln_node *one = kiln_node_get(kiln_config_root(config), "one");
    const struct kiln_node *two = kiln_node_get(kiln_config_root(config), "two");

    CHECK_EQ(one->n, 2);
    CHECK_TEXT(kiln_node_get(one, "a")->text, "9");
    CHECK_TEXT(kiln_node_get(one, "b")->text, "2");
    CHECK_EQ(two->n, 3);
    CHECK_TEXT(kiln_node_get(two, "b")->text, "2");
    CHECK_TEXT(kiln_node_get(two, "c")->text, "4");
    kiln_config_free(config);
}

TEST(config, tags_of_the_core_schema_are_known)
{
    struct kiln_config *config = parsed("a: !!str null\nb: !!int 5\nc: ! ~\n");

    CHECK_TEXT(text_of(config, "a"), "null");
    CHECK_TEXT(text_of(config, "b"), "5");
    CHECK_TEXT(text_of(config, "c"), "~");
    kiln_config_free(config);
}

/* Each line stands for nine times the one before. */
TEST(config, aliases_count_as_all_that_they_stand_for)
{
    char text[1024] = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
    struct kiln_config *config = NULL;
    struct kiln_err err = {0};

    for (int i = 1; i < 6; i++) {
        size_t n = strlen(text);

        n += (size_t)snprintf(text + n, sizeof(text) - n, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s*a%d", k ? ", " : "", i - 1);
        snprintf(text + n, sizeof(text) - n, "]\n");
    }
    CHECK_EQ(kiln_config_parse(kiln_str_of(text), &config, &err), KILN_E_LIMIT);
    CHECK_TEXT(err.text, "aliases stand for too many values");
}

TEST(config, aliases_do_not_stand_deeper_than_all_else)
{
    char text[2048] = "a0: &a0 [1]\n";
    struct kiln_config *config = NULL;
    struct kiln_err err = {0};

    for (int i = 1; i < 40; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "a%d: &a%d [*a%d]\n", i, i,
                 i - 1);
    CHECK_EQ(kiln_config_parse(kiln_str_of(text), &config, &err), KILN_E_LIMIT);
    CHECK_TEXT(err.text, "lists and maps stand too deep within each other");
}

TEST(config, depth_and_size_are_limited)
{
    char *text = malloc(KILN_CONFIG_MAX + 1);
    struct kiln_config *config = NULL;

    memset(text, '[', 100);
    CHECK_EQ(kiln_config_parse((struct kiln_str){text, 100}, &config, NULL), KILN_E_LIMIT);
    memset(text, ' ', KILN_CONFIG_MAX + 1);
    CHECK_EQ(kiln_config_parse((struct kiln_str){text, KILN_CONFIG_MAX + 1}, &config, NULL),
             KILN_E_LIMIT);
    for (size_t i = 0; i < 300000; i += 2)
        memcpy(text + i, i ? "1," : " [", 2);
    CHECK_EQ(kiln_config_parse((struct kiln_str){text, 300000}, &config, NULL), KILN_E_LIMIT);
    free(text);
}

struct things {
    const char *text;
    uint64_t size, span_ns;
    uint32_t count;
    bool yes;
    const struct kiln_node *list, *map;
};

static const struct kiln_field fields[] = {
    {"text", KILN_FIELD_TEXT, offsetof(struct things, text)},
    {"yes", KILN_FIELD_BOOL, offsetof(struct things, yes)},
    {"count", KILN_FIELD_COUNT, offsetof(struct things, count)},
    {"memory_limit", KILN_FIELD_SIZE, offsetof(struct things, size)},
    {"interval", KILN_FIELD_DURATION, offsetof(struct things, span_ns)},
    {"list", KILN_FIELD_LIST, offsetof(struct things, list)},
    {"map", KILN_FIELD_MAP, offsetof(struct things, map)},
};

TEST(config, a_map_is_read_by_a_table)
{
    struct kiln_config *config =
        parsed("text: hi\nyes: on\ncount: 7\nmemory_limit: 64MiB\ninterval: 1h30m\n"
               "list: [1]\nmap: {a: 1}\n");
    struct things things = {0};

    CHECK_OK(
        kiln_node_read(kiln_config_root(config), fields, KILN_ARRAY_LEN(fields), &things, NULL));
    CHECK_TEXT(things.text, "hi");
    CHECK(things.yes);
    CHECK_EQ(things.count, 7);
    CHECK_EQ(things.size, 64 << 20);
    CHECK_EQ(things.span_ns, UINT64_C(5400000000000));
    CHECK_EQ(things.list->n, 1);
    CHECK_EQ(things.map->n, 1);
    kiln_config_free(config);
}

TEST(config, what_a_table_does_not_find_stays_as_it_was)
{
    struct kiln_config *config = parsed("text:\n");
    struct things things = {.text = "before", .count = 5};

    CHECK_OK(
        kiln_node_read(kiln_config_root(config), fields, KILN_ARRAY_LEN(fields), &things, NULL));
    CHECK_OK(kiln_node_read(NULL, fields, KILN_ARRAY_LEN(fields), &things, NULL));
    CHECK_TEXT(things.text, "before");
    CHECK_EQ(things.count, 5);
    kiln_config_free(config);
}

static void check_not_read(const char *text, const char *expected)
{
    struct kiln_config *config = parsed(text);
    struct things things = {0};
    struct kiln_err err = {0};
    char said[512];

    CHECK_EQ(
        kiln_node_read(kiln_config_root(config), fields, KILN_ARRAY_LEN(fields), &things, &err),
        KILN_E_MALFORMED);
    snprintf(said, sizeof(said), "%s: %s", err.where, err.text);
    CHECK_TEXT(said, expected);
    kiln_config_free(config);
}

TEST(config, what_a_table_refuses_is_said_with_its_place)
{
    check_not_read("count: 1\nmemory-limit: 1G\n",
                   "line 2, column 1: unknown key memory-limit (did you mean memory_limit?)");
    check_not_read("colour: 1\n", "line 1, column 1: unknown key colour");
    check_not_read("yes: maybe\n", "line 1, column 6: yes: \"maybe\" is not true or false");
    check_not_read("count: -1\n", "line 1, column 8: count: \"-1\" is not a whole number");
    check_not_read("count: 4294967296\n",
                   "line 1, column 8: count: \"4294967296\" is not a number below 4294967296");
    check_not_read("memory_limit: big\n",
                   "line 1, column 15: memory_limit: \"big\" is not a size (say 64M, 2GiB)");
    check_not_read("interval: 15\n",
                   "line 1, column 11: interval: \"15\" is not a time span (say 15s, 12h, 14d)");
    check_not_read("list: {a: 1}\n", "line 1, column 7: list is a map, not a list");
    check_not_read("map: []\n", "line 1, column 6: map is a list, not a map");
    check_not_read("text: [a]\n", "line 1, column 7: text is a list, not a text");
    check_not_read("[a]\n", "line 1, column 1: this is a list, not a map");
}

TEST(config, without_variables_a_dollar_is_a_dollar)
{
    struct kiln_config *config;

    CHECK_OK(kiln_config_parse_plain(KILN_STR("a: ${1}$$\n"), &config, NULL));
    CHECK_TEXT(kiln_node_get(kiln_config_root(config), "a")->text, "${1}$$");
    kiln_config_free(config);
}

TEST(config, a_tree_can_be_read_into_an_arena_and_knows_its_file)
{
    static const struct kiln_parse_opts opts = {.file = "x.yaml"};
    struct kiln_budget budget = {.limit = KILN_CONFIG_MEMORY};
    struct kiln_node *root = NULL;
    struct kiln_err err = {0};
    struct kiln_arena arena;
    uint64_t number;

    kiln_arena_init(&arena, &budget);
    CHECK_OK(kiln_node_parse(&arena, KILN_STR("a: \"1\"\n"), &opts, &root, NULL));
    CHECK_OK(kiln_node_u64(root->first, &number, NULL));
    ((struct kiln_node *)root->first)->strict = true;
    CHECK_EQ(kiln_node_u64(root->first, &number, &err), KILN_E_MALFORMED);
    CHECK_TEXT(err.where, "x.yaml: line 1, column 4");
    err = (struct kiln_err){0};
    CHECK_EQ(kiln_node_parse(&arena, KILN_STR("]"), &opts, &root, &err), KILN_E_MALFORMED);
    CHECK_TEXT(err.where, "x.yaml: line 1, column 1");
    kiln_arena_done(&arena);
}

TEST(config, a_file_that_is_not_there_is_told_apart)
{
    struct kiln_config *config = NULL;

    CHECK_EQ(kiln_config_load("/nonexistent/kiln.yaml", &config, NULL), -ENOENT);
}

TEST(config, out_of_memory_is_an_ordinary_error)
{
    for (uint64_t n = 1;; n++) {
        struct kiln_config *config = NULL;
        int r;

        kiln_mem_fail_at(n);
        r = kiln_config_parse(KILN_STR("a: &a {b: [1, 2]}\nb: {c: $$d, <<: *a}\n"), &config, NULL);
        if (!kiln_mem_failed()) {
            CHECK_EQ(r, 0);
            kiln_config_free(config);
            break;
        }
        CHECK_EQ(r, -ENOMEM);
    }
    kiln_mem_fail_at(0);
    CHECK_EQ(kiln_mem_live(), 0);
}
