/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config.h"

#include <errno.h>
#include <stdio.h>

#include "collector/config_int.h"

enum { SOURCES_MAX = 100 };

int kiln_resolver_no_memory(struct kiln_resolver *r)
{
    const struct kiln_budget *budget = r->arena->budget;

    if (budget->used > budget->limit / 2)
        return kiln_err_set(r->err, KILN_E_LIMIT, NULL, "the configuration takes more than %zu MiB",
                            budget->limit >> 20);
    return kiln_err_set(r->err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
}

/* ---- sources ---- */

/* What errors call a source that is no file. */
static int name_source(struct kiln_resolver *r, const char *word, const char *text,
                       const char **ret)
{
    char name[64];
    struct kiln_str copy;

    snprintf(name, sizeof(name), "%s %.40s", word, text);
    copy = kiln_arena_copy(r->arena, (struct kiln_str){name, strlen(name) + 1});
    if (!copy.ptr)
        return kiln_resolver_no_memory(r);
    *ret = copy.ptr;
    return 0;
}

static int add_source(struct kiln_resolver *r, struct kiln_str text, const char *file,
                      const struct kiln_node **root)
{
    const struct kiln_parse_opts opts = {.file = file};
    const struct kiln_node *later;
    struct kiln_node *read = NULL;
    int n = kiln_node_parse(r->arena, text, &opts, &read, r->err);

    if (n < 0 || !read || kiln_node_is_null(read))
        return n;
    if (read->kind != KILN_NODE_MAP)
        return kiln_node_fail(read, KILN_E_MALFORMED, r->err,
                              "retrieved value (type=%s) cannot be used as a Conf: it is no map",
                              read->kind == KILN_NODE_LIST ? "list" : "string");
    n = kiln_config_unfold(r, read, &later);
    return n < 0 ? n : kiln_config_merge(r, *root, later, root);
}

static int add_uri(struct kiln_resolver *r, const char *uri, const struct kiln_node **root)
{
    struct kiln_location location;
    struct kiln_retrieved found;
    int n = kiln_location_of_source(uri, &location, r->err);

    if (n == 0)
        n = kiln_location_retrieve(r, &location, NULL, &found);
    if (n == 0 && !found.file)
        n = name_source(r, "--config", uri, &found.file);
    return n < 0 ? n : add_source(r, found.text, found.file, root);
}

/* a.b=c is YAML: `a::b: c`. */
static int add_set(struct kiln_resolver *r, const char *set, const struct kiln_node **root)
{
    struct kiln_str value = kiln_str_of(set), key = kiln_str_trim(kiln_str_cut(&value, '='));
    const char *file;
    struct kiln_buf text;
    int n;

    if (!value.ptr || !key.len)
        return kiln_err_set(r->err, KILN_E_MALFORMED, NULL,
                            "--set %.100s: missing equal sign (say "
                            "--set=processors.batch.timeout=2s)",
                            set);
    n = name_source(r, "--set", set, &file);
    if (n < 0)
        return n;
    kiln_buf_init(&text, KILN_CONFIG_MAX);
    for (size_t i = 0; i < key.len; i++)
        kiln_buf_puts(&text, key.ptr[i] == '.' ? "::" : (const char[]){key.ptr[i], '\0'});
    kiln_buf_puts(&text, ": ");
    kiln_buf_add_str(&text, kiln_str_trim(value));
    n = text.error ? kiln_err_set(r->err, text.error, file, "%s", kiln_err_text(text.error))
                   : add_source(r, kiln_buf_str(&text), file, root);
    kiln_buf_done(&text);
    return n;
}

static int add_all(struct kiln_resolver *r, const struct kiln_node **root)
{
    const struct kiln_collector_sources *s = r->sources;
    int n = 0;

    if (s->n_uris > SOURCES_MAX || s->n_sets > SOURCES_MAX)
        return kiln_err_set(r->err, KILN_E_LIMIT, NULL, "there are more than %d sources",
                            SOURCES_MAX);
    for (uint32_t i = 0; n == 0 && i < s->n_uris; i++)
        n = add_uri(r, s->uris[i], root);
    for (uint32_t i = 0; n == 0 && i < s->n_sets; i++)
        n = add_set(r, s->sets[i], root);
    return n;
}

/* ---- the whole ---- */

static int resolve(struct kiln_collector_config *config,
                   const struct kiln_collector_sources *sources, struct kiln_err *err)
{
    static const struct kiln_node nothing = {.kind = KILN_NODE_MAP};
    struct kiln_resolver r = {.sources = sources, .arena = &config->arena, .err = err};
    const struct kiln_node *merged = &nothing, *expanded;
    int n = add_all(&r, &merged);

    if (n == 0)
        n = kiln_config_expand(&r, merged, &expanded);
    if (n == 0) /* what was put in may have such keys too */
        n = kiln_config_unfold(&r, expanded, &config->root);
    return n;
}

int kiln_collector_config_load(const struct kiln_collector_sources *sources,
                               struct kiln_collector_config **ret_config, struct kiln_err *err)
{
    struct kiln_collector_config *config = kiln_calloc(1, sizeof(*config));
    int n;

    if (!config)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    config->refs = 1;
    config->budget.limit = KILN_CONFIG_MEMORY;
    kiln_arena_init(&config->arena, &config->budget);
    n = resolve(config, sources, err);
    if (n < 0) {
        kiln_collector_config_unref(config);
        return n;
    }
    *ret_config = config;
    return 0;
}

struct kiln_collector_config *kiln_collector_config_ref(struct kiln_collector_config *config)
{
    config->refs++;
    return config;
}

void kiln_collector_config_unref(struct kiln_collector_config *config)
{
    if (!config || --config->refs)
        return;
    kiln_arena_done(&config->arena);
    kiln_free(config);
}
