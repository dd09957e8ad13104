/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever reads a part of a configuration tells the first fault and stops.  So the part is read
 * again, each time without what was at fault: what that stands for is found by its place.
 */
#include "collector/faults.h"

#include <errno.h>

/* All that is below a node is its own from now on; false: no memory. */
static bool copy_below(struct kiln_node *node, struct kiln_arena *arena)
{
    struct kiln_members members = {0};

    for (const struct kiln_node *m = node->first; m; m = m->next) {
        struct kiln_node *copy = kiln_members_add(&members, arena, m);

        if (!copy || !copy_below(copy, arena))
            return false;
    }
    node->first = members.first;
    node->n = members.n;
    return true;
}

static bool stands_at(const struct kiln_node *node, const char *where, bool key)
{
    struct kiln_node at = *node;
    struct kiln_err place = {0};

    at.line = key ? node->key_line : node->line;
    at.column = key ? node->key_column : node->column;
    (void)!kiln_node_fail(&at, KILN_E_MALFORMED, &place, "%s", "");
    return strcmp(place.where, where) == 0;
}

/* What is to go, below `node`: the place of a key that is not known, or that of a value. */
struct victim {
    struct kiln_node *parent, *before, *node; /* `node` NULL: there is none */
};

static struct victim find(struct kiln_node *node, const char *where, bool key)
{
    struct kiln_node *before = NULL;
    struct victim victim = {0};

    for (const struct kiln_node *m = node->first; m && !victim.node; m = m->next) {
        struct kiln_node *member = (struct kiln_node *)(uintptr_t)m; /* of our copy */

        victim = stands_at(m, where, key) ? (struct victim){node, before, member}
                                          : find(member, where, key);
        before = member;
    }
    return victim;
}

static void take_out(struct victim victim)
{
    if (victim.before)
        victim.before->next = victim.node->next;
    else
        victim.parent->first = victim.node->next;
    victim.parent->n--;
}

/* What was taken out, as far as it matters later. */
struct taken {
    const struct kiln_node *of[KILN_FAULTS_MAX]; /* that may have meant something: whose it was */
    uint32_t n;
};

/* Whether a fault may have its reason in what was taken out: it is one of what that was part of. */
static bool may_follow(const struct taken *taken, const struct kiln_node *node)
{
    for (uint32_t i = 0; i < taken->n; i++)
        if (!node || taken->of[i] == node)
            return true;
    return false;
}

int kiln_faults_find(const struct kiln_node *node, struct kiln_arena *arena,
                     const struct kiln_faults_reader *reader)
{
    struct kiln_node rest = node ? *node : (struct kiln_node){0};
    struct kiln_err fault = {0};
    struct taken taken = {0};
    int r = reader->read(reader->context, node, &fault);

    if (r < 0 && node && !copy_below(&rest, arena))
        return -ENOMEM;
    for (uint32_t i = 0; r < 0 && i < KILN_FAULTS_MAX; i++) {
        bool unknown = kiln_str_starts(kiln_str_of(fault.text), KILN_STR("unknown key "));
        bool meant = !unknown || strstr(fault.text, "did you mean");
        struct victim victim = find(&rest, fault.where, unknown);
        int end = 0;

        if (!may_follow(&taken, victim.node))
            end = reader->found(reader->context, &fault);
        if (end < 0 || !victim.node)
            return end;
        take_out(victim);
        if (meant)
            taken.of[taken.n++] = victim.parent;
        fault = (struct kiln_err){0};
        r = reader->read(reader->context, rest.n ? &rest : NULL, &fault);
    }
    return 0;
}
