/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of source text: a list in the file, words with colons between them in KILN_SOURCE,
 * and an option that may be said more than once, whose words are joined to be like the variable's.
 */
#include <errno.h>

#include "base/mem.h"
#include "cli/settings_int.h"

static int no_memory(struct kiln_err *err)
{
    return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
}

int kiln_settings_join_sources(struct kiln_server_config *config, struct kiln_err *err)
{
    const struct kiln_list *said = &config->flags.source_flag;
    size_t room = 1;
    char *at;

    if (said->n == 0)
        return 0;
    for (uint32_t i = 0; i < said->n; i++)
        room += strlen(said->items[i]) + 1;
    at = config->sources_joined = kiln_malloc(room);
    if (!at)
        return no_memory(err);
    for (uint32_t i = 0; i < said->n; i++) {
        at = stpcpy(at, said->items[i]);
        *at++ = ':';
    }
    at[-1] = '\0';
    config->flags.source = (struct kiln_either){.text = config->sources_joined};
    return 0;
}

static int list_nodes(struct kiln_server_config *config, const struct kiln_node *list,
                      struct kiln_err *err)
{
    if (list->kind != KILN_NODE_LIST)
        return kiln_node_fail(list, KILN_E_MALFORMED, err, "this must be a list of directories");
    config->sources = kiln_calloc(list->n + 1, sizeof(*config->sources));
    if (!config->sources)
        return no_memory(err);
    for (const struct kiln_node *m = list->first; m; m = m->next) {
        int r = kiln_node_text(m, &config->sources[config->n_sources], err);

        if (r < 0)
            return r;
        config->n_sources++;
    }
    return 0;
}

/* Cuts a copy at its colons. */
static int list_words(struct kiln_server_config *config, const char *text, struct kiln_err *err)
{
    char *rest, *word;
    size_t n = 1;

    for (const char *c = text; *c; c++)
        n += *c == ':';
    config->sources = kiln_calloc(n, sizeof(*config->sources));
    rest = config->sources_words = kiln_malloc(strlen(text) + 1);
    if (!rest || !config->sources)
        return no_memory(err);
    memcpy(rest, text, strlen(text) + 1);
    while ((word = strsep(&rest, ":")) != NULL)
        if (*word)
            config->sources[config->n_sources++] = word;
    return 0;
}

int kiln_settings_list_sources(struct kiln_server_config *config, struct kiln_err *err)
{
    const struct kiln_either *said = &config->set.source;
    int r;

    if (said->text)
        return list_words(config, said->text, err);
    if (!said->node)
        return 0;
    r = list_nodes(config, said->node, err);
    if (r < 0)
        config->blamed = config->file_name;
    return r;
}
