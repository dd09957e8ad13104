/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_int - the reader of YAML, between its files: config.c makes nodes of events,
 * config_alias.c knows anchors, aliases, merge keys and tags.
 *
 * Threads: one owner.
 */
#ifndef KILN_BASE_CONFIG_INT_H
#define KILN_BASE_CONFIG_INT_H

#include <yaml.h>

#include "base/config.h"
#include "base/mem.h"

enum { KILN_YAML_DEPTH = 32, KILN_YAML_NODES = 100000, KILN_YAML_KEYS = 1000 };

struct kiln_yaml_anchor;

struct kiln_yaml {
    yaml_parser_t parser;
    yaml_event_t event; /* the one at hand */
    struct kiln_arena *arena;
    const struct kiln_parse_opts *opts;
    struct kiln_node *root;
    struct kiln_node *open[KILN_YAML_DEPTH];                /* lists and maps that are not closed */
    struct kiln_node *last[KILN_YAML_DEPTH];                /* the newest child of each */
    struct kiln_yaml_anchor *anchors_open[KILN_YAML_DEPTH]; /* theirs; NULL: none */
    uint32_t height[KILN_YAML_DEPTH];                       /* levels below each, so far */
    uint32_t depth;
    uint32_t nodes; /* with those that aliases stand for */
    struct kiln_yaml_anchor *anchors;
    const char *key; /* read, its value comes; NULL: none */
    yaml_mark_t key_mark;
    struct kiln_err *err;
};

int kiln_yaml_fail(struct kiln_yaml *r, int code, const char *text);
int kiln_yaml_no_memory(struct kiln_yaml *r);
/* A new node under the innermost open list or map. */
KILN_CHECK int kiln_yaml_add(struct kiln_yaml *r, enum kiln_node_kind kind,
                             struct kiln_node **ret_node);

/* ---- config_alias.c ---- */

/* Keeps a new node for aliases, if the event at hand has an anchor. */
KILN_CHECK int kiln_yaml_anchor(struct kiln_yaml *r, const struct kiln_node *node);
/* The list or map at `depth` is complete. */
void kiln_yaml_anchor_close(struct kiln_yaml *r, uint32_t height);
/* Something so high is in the innermost open list or map. */
void kiln_yaml_stands_below(struct kiln_yaml *r, uint32_t height);
/* A node like the one that the event at hand names. */
KILN_CHECK int kiln_yaml_alias(struct kiln_yaml *r);
/* Puts what `<<` names in its place. */
KILN_CHECK int kiln_yaml_inherit(struct kiln_yaml *r, struct kiln_node *map);

/* Tags: those of the core schema, of which only !!str has something to say. */
bool kiln_yaml_knows_tag(const yaml_event_t *event);
bool kiln_yaml_says_text(const yaml_event_t *event);

/* ---- config_value.c ---- */

enum { KILN_PLACE_BYTES = 160 };
/* "collector.yaml: line 3, column 5"; without a file, or without a line, the rest. */
void kiln_place_format(const char *file, uint32_t line, uint32_t column, char *ret);

#endif /* KILN_BASE_CONFIG_INT_H */
