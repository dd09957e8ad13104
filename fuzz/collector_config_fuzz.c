/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector's configuration: two sources, a --set and a variable, parted by bytes of 1.  What is
 * accepted is walked, and printed: what is printed reads as the same tree again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "collector/config.h"
#include "collector/telemetry.h"
#include "fuzz.h"

enum { PARTS = 4, TEXT_MAX = 1 << 16 };

/* Whether the tree is made of what a reader can be shown again: plain characters, plain keys. */
static bool walk(const struct kiln_node *node, const struct kiln_node *up)
{
    bool plain = true;
    uint32_t n = 0;

    FUZZ_CHECK(node->strict);
    FUZZ_CHECK((node->text != NULL) == (node->kind == KILN_NODE_TEXT));
    FUZZ_CHECK((node->key != NULL) == (up && up->kind == KILN_NODE_MAP));
    for (const char *c = node->text; c && *c; c++)
        plain = plain && (unsigned char)*c < 0x7f;
    for (const char *c = node->key; c && *c; c++)
        plain = plain && (unsigned char)*c < 0x7f && !strchr("$<", *c);
    for (const struct kiln_node *m = node->first; m; m = m->next, n++)
        plain = walk(m, node) && plain;
    FUZZ_CHECK(n == node->n);
    return plain;
}

static int load(const char *const *uris, uint32_t n_uris, const char *const *sets, uint32_t n_sets,
                struct kiln_collector_config **ret)
{
    const struct kiln_collector_sources sources = {
        .uris = uris, .n_uris = n_uris, .sets = sets, .n_sets = n_sets};
    struct kiln_err err = {0};
    int r = kiln_collector_config_load(&sources, ret, &err);

    FUZZ_CHECK((r < 0) == (err.text[0] != '\0'));
    return r;
}

/* A dollar in what is printed is a dollar. */
static void double_dollars(const struct kiln_buf *from, struct kiln_buf *to)
{
    for (size_t i = 0; i < from->len; i++) {
        if (from->ptr[i] == '$')
            kiln_buf_putc(to, '$');
        kiln_buf_putc(to, from->ptr[i]);
    }
    kiln_buf_putc(to, '\0');
}

static void check_printed(const struct kiln_collector_config *config)
{
    struct kiln_buf yaml, uri, before, after;
    struct kiln_collector_config *again = NULL;

    kiln_buf_init(&yaml, KILN_CONFIG_MAX / 4);
    kiln_buf_init(&uri, KILN_CONFIG_MAX);
    kiln_buf_init(&before, 4 * KILN_CONFIG_MAX);
    kiln_buf_init(&after, 4 * KILN_CONFIG_MAX);
    kiln_collector_config_format(config, false, &yaml);
    kiln_collector_config_format_json(config, false, &before);
    kiln_buf_puts(&uri, "yaml:");
    double_dollars(&yaml, &uri);
    if (!yaml.error && !uri.error && !before.error && !kiln_mem_failed()) {
        int r = load((const char *const[]){uri.ptr}, 1, NULL, 0, &again);

        FUZZ_CHECK(r == 0);
        if (r == 0)
            kiln_collector_config_format_json(again, false, &after);
        FUZZ_CHECK(kiln_str_eq(kiln_buf_str(&before), kiln_buf_str(&after)));
        kiln_collector_config_unref(again);
    }
    kiln_buf_done(&yaml);
    kiln_buf_done(&uri);
    kiln_buf_done(&before);
    kiln_buf_done(&after);
}

static void check(char parts[PARTS][TEXT_MAX])
{
    const char *const uris[] = {parts[0], parts[1]}, *const sets[] = {parts[2]};
    struct kiln_collector_config *config = NULL;
    struct kiln_telemetry telemetry;
    struct kiln_err err = {0};

    if (load(uris, KILN_ARRAY_LEN(uris), sets, sets[0][0] != '\0', &config) < 0)
        return;
    if (kiln_telemetry_read(config->root, &telemetry, &err) < 0)
        FUZZ_CHECK(err.text[0] != '\0');
    if (walk(config->root, NULL))
        check_printed(config);
    kiln_collector_config_unref(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char parts[PARTS][TEXT_MAX];
    struct kiln_str rest = {(const char *)data, size};

    if (size > 32768 || kiln_str_contains(rest, KILN_STR("file")) || memchr(data, 0, size))
        return 0; /* files of this machine are no input of ours */
    for (uint32_t i = 0; i < PARTS; i++) {
        struct kiln_str part = rest.ptr ? kiln_str_cut(&rest, 1) : KILN_STR("");
        size_t n = i < 2 ? 5 : 0;

        memcpy(parts[i], "yaml:", n);
        if (part.len)
            memcpy(parts[i] + n, part.ptr, part.len);
        parts[i][n + part.len] = '\0';
    }
    setenv("F", parts[3], 1);
    check(parts);
    return 0;
}
