/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of configuration files.  A tree that is accepted is walked: counts, places and texts
 * must hold together, every value can be asked for as anything, and it can be read without
 * variables too.
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
    ask(node);
    for (const struct kiln_node *m = node->first; m; m = m->next, n++)
        walk(m, node);
    FUZZ_CHECK(n == node->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data, size};
    struct kiln_config *config = NULL, *plain = NULL;
    struct kiln_err err = {0};
    int r = kiln_config_parse(text, &config, &err);

    FUZZ_CHECK((r < 0) == (err.text[0] != '\0'));
    if (r == 0 && kiln_config_root(config)) {
        walk(kiln_config_root(config), NULL);
        if (kiln_config_parse_plain(text, &plain, NULL) == 0)
            walk(kiln_config_root(plain), NULL);
        else
            FUZZ_CHECK(kiln_mem_failed());
        kiln_config_free(plain);
    }
    kiln_config_free(config);
    return 0;
}
