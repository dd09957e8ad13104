/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evented profiles: functions open ("O") and close ("C") at a time, properly nested.  The time
 * between two events belongs to the stack that is open.
 *
 * Stacks are nodes of a tree (parent, location), each once, and time is added up there: a profile
 * of a million short calls becomes as many samples as it has distinct stacks, and no stack is gone
 * through at every event.
 */
#include <errno.h>
#include <math.h>

#include "base/hash.h"
#include "codec/speedscope_int.h"
#include "core/intern.h"

struct node {
    uint32_t parent;
    uint32_t location;
    uint32_t depth;
    double self;
};

struct tree {
    struct kiln_intern index;
    struct node *nodes; /* nodes[0] is the empty stack */
    uint32_t n, cap;
    uint32_t top; /* the stack that is open */
    double now;
    bool started;
};

enum event_kind { EVENT_NONE, EVENT_OPEN, EVENT_CLOSE };

struct event {
    enum event_kind kind;
    bool has_at, has_frame;
    double at;
    uint32_t location;
};

static int add_node(struct speedscope *d, struct tree *t, struct node node, uint64_t hash)
{
    int r = kiln_grow(&d->budget, (void **)&t->nodes, &t->cap, (uint64_t)t->n + 1,
                      sizeof(*t->nodes), kiln_builder_limits(d->b)->table_count);

    if (r == 0 && t->n > 0)
        r = kiln_intern_add(&t->index, &d->budget, hash, t->n);
    if (r == 0)
        t->nodes[t->n++] = node;
    return r;
}

static int open_frame(struct speedscope *d, struct tree *t, uint32_t location)
{
    uint64_t hash = kiln_hash_mix(t->top, location);
    struct node node = {.parent = t->top, .location = location};
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&t->index, hash);
         kiln_intern_next(&t->index, &p);) {
        if (t->nodes[p.entry].parent == t->top && t->nodes[p.entry].location == location) {
            t->top = p.entry;
            return 0;
        }
    }
    node.depth = t->nodes[t->top].depth + 1;
    if (node.depth > kiln_builder_limits(d->b)->stack_depth)
        return kiln_json_fail(&d->r, KILN_E_LIMIT, "a stack of more than %u frames",
                              kiln_builder_limits(d->b)->stack_depth);
    r = add_node(d, t, node, hash);
    if (r == 0)
        t->top = t->n - 1;
    return r;
}

static int close_frame(struct speedscope *d, struct tree *t, uint32_t location)
{
    if (t->top == 0)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED, "closes a frame where none is open");
    if (t->nodes[t->top].location != location)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED, "closes another frame than the last opened");
    t->top = t->nodes[t->top].parent;
    return 0;
}

static int read_kind(struct speedscope *d, enum event_kind *ret)
{
    struct kiln_str text;
    int n = kiln_json_string(&d->r, &text);

    if (n == 0)
        *ret = kiln_str_eq(text, KILN_STR("O"))   ? EVENT_OPEN
               : kiln_str_eq(text, KILN_STR("C")) ? EVENT_CLOSE
                                                  : EVENT_NONE;
    return n;
}

static int read_event(struct speedscope *d, struct event *event)
{
    struct kiln_str name;
    int n = kiln_json_object(&d->r);

    while (n == 0 && (n = kiln_json_member(&d->r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("type"))) {
            n = read_kind(d, &event->kind);
        } else if (kiln_str_eq(name, KILN_STR("at"))) {
            n = kiln_json_double(&d->r, &event->at);
            event->has_at = true;
        } else if (kiln_str_eq(name, KILN_STR("frame"))) {
            n = speedscope_frame(d, &event->location);
            event->has_frame = true;
        } else {
            n = kiln_json_skip(&d->r);
        }
    }
    if (n == 0 && (!event->kind || !event->has_at || !event->has_frame))
        n = kiln_json_fail(&d->r, KILN_E_MALFORMED, "an event needs type O or C, at and frame");
    return n;
}

/* Gives the time that has passed to the open stack. */
static int pass_time(struct speedscope *d, struct tree *t, double now)
{
    if (t->started && now < t->now)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED, "events go back in time");
    if (t->started)
        t->nodes[t->top].self += now - t->now;
    t->now = now;
    t->started = true;
    return 0;
}

static int add_samples(struct speedscope *d, const struct tree *t)
{
    for (uint32_t i = 1; i < t->n; i++) {
        double self = t->nodes[i].self;

        if (self < 0.5)
            continue;
        if (!(self < 0x1p63))
            return kiln_json_fail(&d->r, -ERANGE, "the time is out of range");
        for (uint32_t k = i; k != 0; k = t->nodes[k].parent) {
            int r = kiln_textstack_add_location(&d->stack, t->nodes[k].location);

            if (r < 0)
                return r;
        }
        kiln_builder_add_value(d->b, d->profile, kiln_textstack_take(&d->stack, false), d->attrs,
                               (int64_t)llround(self));
        if (kiln_builder_error(d->b))
            return kiln_builder_error(d->b);
    }
    return 0;
}

static int read_events(struct speedscope *d, struct tree *t, double factor)
{
    uint32_t i = 0;
    int n = kiln_json_array(&d->r);

    while (n == 0 && (n = kiln_json_element(&d->r)) > 0) {
        struct event event = {0};

        n = read_event(d, &event);
        if (n == 0)
            n = pass_time(d, t, event.at * factor);
        if (n == 0)
            n = event.kind == EVENT_OPEN ? open_frame(d, t, event.location)
                                         : close_frame(d, t, event.location);
        if (n < 0)
            kiln_err_within(d->err, "events[%u]", i);
        i++;
    }
    return n;
}

int speedscope_events(struct speedscope *d, double factor, double end)
{
    struct tree t = {0};
    int r = add_node(d, &t, (struct node){0}, 0);

    if (r == 0)
        r = read_events(d, &t, factor);
    if (r == 0 && t.started && end > t.now)
        r = pass_time(d, &t, end); /* frames that were never closed */
    if (r == 0)
        r = add_samples(d, &t);
    kiln_intern_done(&t.index, &d->budget);
    kiln_array_free(&d->budget, (void **)&t.nodes, &t.cap, sizeof(*t.nodes));
    return r;
}
