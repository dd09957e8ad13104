/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost ${...} that ends first is put in first, so that a name can be put together of
 * others; what comes is looked at again.  Dollars are halved when all is done, also those that came
 * in.
 *
 * A whole value becomes what its text is as YAML.  The text stays beside it, put in as a text, for
 * fields that are texts: 0123 is 83 as a number.
 */
#include <errno.h>
#include <string.h>

#include "collector/config_int.h"

enum { DEPTH_MAX = 32, NODES_MAX = 100000, IN_A_VALUE_MAX = 100, IN_ALL_MAX = 10000 };

static int expand_node(struct kiln_resolver *r, const struct kiln_node *node,
                       const struct kiln_node *place, uint32_t depth, struct kiln_node *ret);

/* ---- finding ---- */

static bool is_escaped(struct kiln_str text, size_t open)
{
    size_t dollars = 0;

    while (dollars < open && text.ptr[open - 1 - dollars] == '$')
        dollars++;
    return dollars % 2 == 1;
}

/* The last ${ in [from, end). */
static bool find_open(struct kiln_str text, size_t from, size_t end, size_t *ret)
{
    for (size_t i = end; i >= from + 2; i--) {
        if (text.ptr[i - 2] == '$' && text.ptr[i - 1] == '{') {
            *ret = i - 2;
            return true;
        }
    }
    return false;
}

/* From its dollar to behind its brace. */
struct span {
    size_t begin, end;
};

static bool find_reference(struct kiln_str text, struct span *ret)
{
    size_t from = 0;

    for (size_t i = 0; i < text.len; i++) {
        size_t open;

        if (text.ptr[i] != '}')
            continue;
        if (find_open(text, from, i, &open) && !is_escaped(text, open)) {
            *ret = (struct span){open, i + 1};
            return true;
        }
        from = i + 1;
    }
    return false;
}

/* ---- putting in ---- */

/* What a reference names, counted. */
static int look_up(struct kiln_resolver *r, const struct kiln_node *place, struct kiln_str text,
                   struct span at, struct kiln_retrieved *ret)
{
    struct kiln_str inside = {text.ptr + at.begin + 2, at.end - at.begin - 3};
    struct kiln_location location;
    int n;

    if (++r->substitutions > IN_ALL_MAX)
        return kiln_node_fail(place, KILN_E_LIMIT, r->err, "more than %d substitutions in all",
                              IN_ALL_MAX);
    n = kiln_location_of_reference(place, inside, &location, r->err);
    return n < 0 ? n : kiln_location_retrieve(r, &location, place, ret);
}

static int too_many(struct kiln_resolver *r, const struct kiln_node *place)
{
    return kiln_node_fail(place, KILN_E_LIMIT, r->err,
                          "too many recursive expansions (at most %d in a value)", IN_A_VALUE_MAX);
}

/* The text with one reference replaced, in the arena. */
static int replace(struct kiln_resolver *r, const struct kiln_node *place, struct kiln_str text,
                   struct span at, struct kiln_str with, struct kiln_str *ret)
{
    size_t len = text.len - (at.end - at.begin) + with.len;
    char *made;

    if (len > KILN_CONFIG_MAX)
        return kiln_node_fail(place, KILN_E_LIMIT, r->err, "a value has more than %u bytes",
                              KILN_CONFIG_MAX);
    made = kiln_arena_alloc(r->arena, len + 1);
    if (!made)
        return kiln_resolver_no_memory(r);
    memcpy(made, text.ptr, at.begin);
    memcpy(made + at.begin, with.ptr, with.len);
    memcpy(made + at.begin + with.len, text.ptr + at.end, text.len - at.end);
    made[len] = '\0';
    *ret = (struct kiln_str){made, len};
    return 0;
}

/* $$ is a dollar. */
static int halve_dollars(struct kiln_resolver *r, struct kiln_str text, const char **ret)
{
    char *made;
    size_t n = 0;

    if (!memmem(text.ptr, text.len, "$$", 2)) {
        *ret = text.ptr;
        return 0;
    }
    made = kiln_arena_alloc(r->arena, text.len + 1);
    if (!made)
        return kiln_resolver_no_memory(r);
    for (size_t i = 0; i < text.len; i++) {
        i += text.ptr[i] == '$' && i + 1 < text.len && text.ptr[i + 1] == '$';
        made[n++] = text.ptr[i];
    }
    made[n] = '\0';
    *ret = made;
    return 0;
}

/* All of a text that stays a text. */
static int expand_text(struct kiln_resolver *r, const struct kiln_node *place, struct kiln_str text,
                       const char **ret)
{
    struct kiln_retrieved found;
    struct span at;
    int n = 0;

    for (uint32_t i = 0; n == 0 && find_reference(text, &at); i++) {
        if (i == IN_A_VALUE_MAX)
            return too_many(r, place);
        n = look_up(r, place, text, at, &found);
        if (n == 0)
            n = replace(r, place, text, at, found.text, &text);
    }
    return n < 0 ? n : halve_dollars(r, text, ret);
}

/* ---- whole values ---- */

/* What a text is as YAML; *ret NULL: just this text. */
static int read_value(struct kiln_resolver *r, const struct kiln_retrieved *found,
                      struct kiln_node **ret)
{
    static struct kiln_node nothing = {.kind = KILN_NODE_TEXT, .text = ""};
    const struct kiln_parse_opts opts = {.file = found->file};
    int n;

    *ret = NULL;
    if (found->is_text)
        return 0;
    n = kiln_node_parse(r->arena, found->text, &opts, ret, NULL);
    if (n == -ENOMEM)
        return kiln_resolver_no_memory(r);
    if (n == 0 && !*ret)
        *ret = &nothing;
    if (n < 0 || ((*ret)->kind == KILN_NODE_TEXT && kiln_scalar_of_node(*ret) == KILN_SCALAR_TEXT))
        *ret = NULL; /* not YAML, or a text in it: with its quotes, as it is */
    return 0;
}

/* How it was written, for who wants a text.  One that cannot be put in is none. */
static int set_original(struct kiln_resolver *r, const struct kiln_node *place,
                        struct kiln_str text, struct kiln_node *ret)
{
    struct kiln_err *err = r->err;
    int n;

    r->err = NULL;
    n = expand_text(r, place, text, &ret->original);
    r->err = err;
    return n == -ENOMEM ? kiln_resolver_no_memory(r) : 0;
}

static int set_value(struct kiln_resolver *r, const struct kiln_node *place,
                     const struct kiln_retrieved *found, const struct kiln_node *value,
                     uint32_t depth, struct kiln_node *ret)
{
    int n = expand_node(r, value, found->file ? NULL : place, depth + 1, ret);

    return n < 0 ? n : set_original(r, place, found->text, ret);
}

static int expand_scalar(struct kiln_resolver *r, const struct kiln_node *place, uint32_t depth,
                         struct kiln_node *ret)
{
    struct kiln_str text = kiln_str_of(ret->text);
    struct kiln_retrieved found;
    struct kiln_node *value = NULL;
    struct span at;
    int n = 0;

    for (uint32_t i = 0; n == 0 && find_reference(text, &at); i++) {
        if (i == IN_A_VALUE_MAX)
            return too_many(r, place);
        n = look_up(r, place, text, at, &found);
        if (n == 0 && at.begin == 0 && at.end == text.len) {
            n = read_value(r, &found, &value);
            if (n == 0 && value)
                return set_value(r, place, &found, value, depth, ret);
        }
        if (n == 0)
            n = replace(r, place, text, at, found.text, &text);
        ret->quoted = true; /* a text now, whatever it looks like */
    }
    return n < 0 ? n : halve_dollars(r, text, &ret->text);
}

/* ---- the tree ---- */

/* Numbers in their plain form. */
static int set_type(struct kiln_resolver *r, struct kiln_node *node)
{
    char room[KILN_SCALAR_BYTES];
    const char *plain = node->quoted ? NULL : kiln_scalar_plain(node->text, room);
    struct kiln_str copy;

    if (!plain)
        return 0;
    copy = kiln_arena_copy(r->arena, (struct kiln_str){plain, strlen(plain) + 1});
    if (!copy.ptr)
        return kiln_resolver_no_memory(r);
    node->original = node->text;
    node->text = copy.ptr;
    return 0;
}

static int expand_members(struct kiln_resolver *r, const struct kiln_node *place, uint32_t depth,
                          struct kiln_node *ret)
{
    struct kiln_members members = {0};
    int n = 0;

    for (const struct kiln_node *m = ret->first; n == 0 && m; m = m->next) {
        struct kiln_node *made = kiln_members_add(&members, r->arena, m);

        n = made ? expand_node(r, m, place, depth + 1, made) : kiln_resolver_no_memory(r);
    }
    ret->first = members.first;
    return n;
}

/* Fills `ret`, whose key and neighbours stay, with what `node` comes to.  `place` is where it was
 * asked for; NULL: it has a place of its own. */
static int expand_node(struct kiln_resolver *r, const struct kiln_node *node,
                       const struct kiln_node *place, uint32_t depth, struct kiln_node *ret)
{
    struct kiln_node here = *node;
    int n;

    if (!place)
        place = node;
    here.file = place->file;
    here.line = place->line;
    here.column = place->column;
    if (depth > DEPTH_MAX)
        return kiln_node_fail(&here, KILN_E_LIMIT, r->err,
                              "lists and maps stand too deep within each other");
    if (r->nodes++ >= NODES_MAX)
        return kiln_node_fail(&here, KILN_E_LIMIT, r->err, "there are too many values");
    here.key = ret->key;
    here.key_line = ret->key_line;
    here.key_column = ret->key_column;
    here.next = ret->next;
    here.strict = true;
    *ret = here;
    if (node->kind != KILN_NODE_TEXT)
        return expand_members(r, place == node ? NULL : place, depth, ret);
    n = expand_scalar(r, &here, depth, ret);
    return n < 0 || ret->kind != KILN_NODE_TEXT || ret->original ? n : set_type(r, ret);
}

int kiln_config_expand(struct kiln_resolver *r, const struct kiln_node *root,
                       const struct kiln_node **ret)
{
    struct kiln_node *made = kiln_arena_alloc(r->arena, sizeof(*made));

    if (!made)
        return kiln_resolver_no_memory(r);
    *made = (struct kiln_node){0};
    *ret = made;
    return expand_node(r, root, NULL, 0, made);
}
