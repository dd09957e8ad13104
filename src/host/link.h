/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link - rings of things that carry their own links: in order of use, out in one step.
 *
 * A ring's head is a link too; first is head.next, last is head.prev.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_HOST_LINK_H
#define KILN_HOST_LINK_H

#include <stdbool.h>
#include <stddef.h>

struct kiln_link {
    struct kiln_link *prev, *next;
};

#define KILN_OF_LINK(type, member, link) ((type *)((char *)(link)-offsetof(type, member)))

static inline void kiln_link_init(struct kiln_link *link)
{
    link->prev = link->next = link;
}

static inline bool kiln_link_empty(const struct kiln_link *head)
{
    return head->next == head;
}

static inline void kiln_link_drop(struct kiln_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    kiln_link_init(link);
}

/* Puts it first, out of whatever ring it was in. */
static inline void kiln_link_first(struct kiln_link *head, struct kiln_link *link)
{
    kiln_link_drop(link);
    link->prev = head;
    link->next = head->next;
    head->next->prev = link;
    head->next = link;
}

#endif /* KILN_HOST_LINK_H */
