/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of configuration files.  A tree that is accepted is walked: counts, places and texts
 * must hold together, every value can be asked for as anything, and what kiln_config_source() gives
 * of the whole can be read again.
 */
#include <stdint.h>

#include "base/config.h"
#include "fuzz.h"

struct any {
    const char *text;
    const struct kiln_node *node;
};

static const struct kiln_field fields[] = {
    {"server", KILN_FIELD_MAP, offsetof(struct any, node)},
    {"name", KILN_FIELD_TEXT, offsetof(struct any, text)},
};

static void ask(const struct kiln_node *node)
{
    uint64_t number;
    bool yes;
    struct kiln_err err = {0};
    struct any any = {0};
    const char *text;

    FUZZ_CHECK((kiln_node_text(node, &text, NULL) == 0) == (node->kind == KILN_NODE_TEXT));
    if (kiln_node_bool(node, &yes, NULL) == 0 && kiln_node_u64(node, &number, NULL) == 0)
        FUZZ_CHECK(false);
    if (kiln_node_u64(node, &number, NULL) == 0)
        FUZZ_CHECK(kiln_node_size(node, &number, NULL) == 0 || node->text[0] == '+');
    if (kiln_node_duration(node, &number, &err) < 0)
        FUZZ_CHECK(err.where[0] != '\0' && err.text[0] != '\0');
    err = (struct kiln_err){0};
    if (kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &any, &err) < 0)
        FUZZ_CHECK(err.where[0] != '\0' && err.text[0] != '\0');
}

static void walk(const struct kiln_node *node, const struct kiln_node *up)
{
    uint32_t n = 0;

    FUZZ_CHECK(node->line > 0 && node->column > 0);
    FUZZ_CHECK((node->text != NULL) == (node->kind == KILN_NODE_TEXT));
    FUZZ_CHECK((node->key != NULL) == (up && up->kind == KILN_NODE_MAP));
    FUZZ_CHECK(node->end >= node->start);
    ask(node);
    for (const struct kiln_node *m = node->first; m; m = m->next, n++)
        walk(m, node);
    FUZZ_CHECK(n == node->n);
}

static void read_again(const struct kiln_config *config, const struct kiln_node *root)
{
    struct kiln_config *again = NULL;
    struct kiln_buf source;

    kiln_buf_init(&source, 2 * KILN_CONFIG_MAX);
    kiln_config_source(config, root, &source);
    if (source.len <= KILN_CONFIG_MAX && root->kind != KILN_NODE_TEXT)
        FUZZ_CHECK(kiln_config_parse(kiln_buf_str(&source), &again, NULL) == 0);
    kiln_config_free(again);
    kiln_buf_done(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_config *config = NULL;
    struct kiln_err err = {0};
    int r = kiln_config_parse((struct kiln_str){(const char *)data, size}, &config, &err);

    FUZZ_CHECK((r < 0) == (err.text[0] != '\0'));
    if (r == 0 && kiln_config_root(config)) {
        walk(kiln_config_root(config), NULL);
        read_again(config, kiln_config_root(config));
    }
    kiln_config_free(config);
    return 0;
}
