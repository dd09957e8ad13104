/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings that are several words: a list in the file, words with something between them in a
 * variable, and an option that may be said more than once, whose words are joined to be like the
 * variable's.
 */
#include <errno.h>

#include "base/mem.h"
#include "cli/settings_int.h"

static const struct several {
    size_t said, flag; /* struct kiln_either and struct kiln_list of struct kiln_settings */
    size_t words;      /* struct kiln_words of struct kiln_server_config */
    char between;
    const char *what;
} all[] = {
#define SEVERAL(member, between, what)                                                             \
    {                                                                                              \
        offsetof(struct kiln_settings, member), offsetof(struct kiln_settings, member##_flag),     \
            offsetof(struct kiln_server_config, member), (between), (what)                         \
    }
    SEVERAL(source, ':', "directories"),
    SEVERAL(symbols_path, ':', "directories"),
    SEVERAL(debuginfod, ' ', "addresses"),
    SEVERAL(host_names, ',', "host names"),
#undef SEVERAL
};

static struct kiln_words *words_of(struct kiln_server_config *config, const struct several *s)
{
    return (struct kiln_words *)(void *)((char *)config + s->words);
}

static int no_memory(struct kiln_err *err)
{
    return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
}

static int join(struct kiln_settings *flags, const struct several *s, struct kiln_words *words,
                struct kiln_err *err)
{
    const struct kiln_list *said = (const struct kiln_list *)((const char *)flags + s->flag);
    size_t room = 1;
    char *at;

    if (said->n == 0)
        return 0;
    for (uint32_t i = 0; i < said->n; i++)
        room += strlen(said->items[i]) + 1;
    at = words->joined = kiln_malloc(room);
    if (!at)
        return no_memory(err);
    for (uint32_t i = 0; i < said->n; i++) {
        at = stpcpy(at, said->items[i]);
        *at++ = s->between;
    }
    at[-1] = '\0';
    *(struct kiln_either *)(void *)((char *)flags + s->said) =
        (struct kiln_either){.text = words->joined};
    return 0;
}

int kiln_settings_join_words(struct kiln_server_config *config, struct kiln_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(all); i++)
        r = join(&config->flags, &all[i], words_of(config, &all[i]), err);
    return r;
}

static int list_nodes(struct kiln_words *words, const struct kiln_node *list, const char *what,
                      struct kiln_err *err)
{
    if (list->kind != KILN_NODE_LIST)
        return kiln_node_fail(list, KILN_E_MALFORMED, err, "this must be a list of %s", what);
    words->items = kiln_calloc(list->n + 1, sizeof(*words->items));
    if (!words->items)
        return no_memory(err);
    for (const struct kiln_node *m = list->first; m; m = m->next) {
        int r = kiln_node_text(m, &words->items[words->n], err);

        if (r < 0)
            return r;
        words->n++;
    }
    return 0;
}

/* Cuts a copy apart. */
static int list_words(struct kiln_words *words, const char *text, char between,
                      struct kiln_err *err)
{
    const char separator[] = {between, '\0'};
    char *rest, *word;
    size_t n = 1;

    for (const char *c = text; *c; c++)
        n += *c == between;
    words->items = kiln_calloc(n, sizeof(*words->items));
    rest = words->cut = kiln_malloc(strlen(text) + 1);
    if (!rest || !words->items)
        return no_memory(err);
    memcpy(rest, text, strlen(text) + 1);
    while ((word = strsep(&rest, separator)) != NULL)
        if (*word)
            words->items[words->n++] = word;
    return 0;
}

int kiln_settings_list_words(struct kiln_server_config *config, struct kiln_err *err)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(all); i++) {
        const struct kiln_either *said =
            (const struct kiln_either *)((const char *)&config->set + all[i].said);
        struct kiln_words *words = words_of(config, &all[i]);
        int r = said->text   ? list_words(words, said->text, all[i].between, err)
                : said->node ? list_nodes(words, said->node, all[i].what, err)
                             : 0;

        if (r < 0 && !said->text)
            config->blamed = config->file_name;
        if (r < 0)
            return r;
    }
    return 0;
}

void kiln_settings_free_words(struct kiln_server_config *config)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(all); i++) {
        struct kiln_words *words = words_of(config, &all[i]);

        kiln_free(words->items);
        kiln_free(words->joined);
        kiln_free(words->cut);
    }
}
