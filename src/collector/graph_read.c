/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration as pieces (a component each) and pipelines that refer to them.  What is said in
 * an error is what the Collector says, because people look for it; the place is ours.
 */
#include <errno.h>
#include <stdio.h>

#include "collector/graph_int.h"

/* What stands before the slash of an id. */
static struct kiln_str type_of(const char *id)
{
    struct kiln_str rest = kiln_str_of(id);

    return kiln_str_trim(kiln_str_cut(&rest, '/'));
}

/* Why a component of the Collector that Kiln has not cannot run. */
static int unknown_type(const struct kiln_node *node, enum kiln_component_kind kind,
                        struct kiln_err *err)
{
    char known[160] = "";
    size_t len = 0;

    for (const struct kiln_component_type *const *t = kiln_component_types; *t; t++)
        if ((*t)->kind == kind && len < sizeof(known))
            len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", len ? " " : "",
                                    (*t)->name);
    return kiln_node_fail(node, KILN_E_UNSUPPORTED, err,
                          "'%s' unknown type: \"%.*s\" for id: \"%.40s\" (valid values: [%s])",
                          kiln_component_section_names[kind], KILN_STR_ARG(type_of(node->key)),
                          node->key, known);
}

/* The Collector's sentence before what is wrong. */
static void say_whose(enum kiln_component_kind kind, const char *id, struct kiln_err *err)
{
    struct kiln_err why;

    if (!err)
        return;
    why = *err;
    snprintf(err->text, sizeof(err->text), "'%s' error reading configuration for \"%.40s\": %.150s",
             kiln_component_section_names[kind], id, why.text);
}

static int read_piece(struct kiln_graph *graph, enum kiln_component_kind kind,
                      const struct kiln_node *map, const struct kiln_node *node,
                      struct kiln_piece *piece, struct kiln_err *err)
{
    const struct kiln_component_type *type = kiln_component_find(kind, type_of(node->key));
    int r;

    if (!type)
        return unknown_type(node, kind, err);
    piece->type = type;
    piece->id = node->key;
    piece->node = node;
    if (type->settings_size) {
        piece->settings = kiln_graph_alloc(graph, 1, type->settings_size, err);
        if (!piece->settings)
            return -ENOMEM;
    }
    r = type->read(kiln_node_get(map, node->key), piece->settings, err);
    if (r < 0)
        say_whose(kind, node->key, err);
    return r;
}

static int read_section(struct kiln_graph *graph, enum kiln_component_kind kind,
                        const struct kiln_node *map, struct kiln_err *err)
{
    if (!map)
        return 0;
    if (map->kind != KILN_NODE_MAP)
        return kiln_node_fail(map, KILN_E_MALFORMED, err, "'%s' must be a map of components",
                              kiln_component_section_names[kind]);
    graph->pieces[kind] = kiln_graph_alloc(graph, map->n, sizeof(struct kiln_piece), err);
    if (!graph->pieces[kind])
        return -ENOMEM;
    for (const struct kiln_node *node = map->first; node; node = node->next) {
        struct kiln_piece *piece = &graph->pieces[kind][graph->n_pieces[kind]];
        int r;

        graph->n_pieces[kind]++;
        r = read_piece(graph, kind, map, node, piece, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static struct kiln_piece *find_piece(const struct kiln_graph *graph, enum kiln_component_kind kind,
                                     const char *id)
{
    for (uint32_t i = 0; i < graph->n_pieces[kind]; i++)
        if (strcmp(graph->pieces[kind][i].id, id) == 0)
            return &graph->pieces[kind][i];
    return NULL;
}

/* A reference to a piece of this kind, or to a connector where it may stand for one. */
static int refer(const struct kiln_graph *graph, const struct kiln_node *item,
                 enum kiln_component_kind kind, const char *from, struct kiln_piece **ret,
                 struct kiln_err *err)
{
    const char *id;
    int r = kiln_node_text(item, &id, err);

    if (r < 0)
        return r;
    *ret = find_piece(graph, kind, id);
    if (!*ret && (kind == KILN_RECEIVER || kind == KILN_EXPORTER))
        *ret = find_piece(graph, KILN_CONNECTOR, id);
    if (*ret)
        return 0;
    return kiln_node_fail(item, KILN_E_MALFORMED, err,
                          "%.80s: references %s \"%.60s\" which is not configured", from,
                          kiln_component_kind_names[kind], id);
}

static int check_twice(const struct kiln_piece_list *list, const struct kiln_node *item,
                       const char *from, struct kiln_err *err)
{
    const struct kiln_piece *piece = list->items[list->n];

    for (uint32_t i = 0; i < list->n; i++)
        if (list->items[i] == piece)
            return kiln_node_fail(item, KILN_E_MALFORMED, err,
                                  "%.80s: references %s \"%.60s\" multiple times", from,
                                  kiln_component_kind_names[piece->type->kind], piece->id);
    return 0;
}

static int read_references(struct kiln_graph *graph, const struct kiln_node *list,
                           enum kiln_component_kind kind, const char *from,
                           struct kiln_piece_list *ret, struct kiln_err *err)
{
    if (!list)
        return 0;
    ret->items = kiln_graph_alloc(graph, list->n, sizeof(*ret->items), err);
    if (!ret->items)
        return -ENOMEM;
    for (const struct kiln_node *item = list->first; item; item = item->next) {
        int r = refer(graph, item, kind, from, &ret->items[ret->n], err);

        if (r == 0)
            r = check_twice(ret, item, from, err);
        if (r < 0)
            return r;
        ret->items[ret->n++]->used = true;
    }
    return 0;
}

/* A component of another signal, or one that Kiln has for profiles alone. */
static int check_signal(const struct kiln_pipeline *pipeline, const struct kiln_piece_list *list,
                        struct kiln_err *err)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct kiln_piece *piece = list->items[i];

        if (!(piece->type->signals & KILN_TAKES(pipeline->signal)))
            return kiln_node_fail(
                pipeline->node, KILN_E_UNSUPPORTED, err,
                "service::pipelines::%.40s: %s \"%.40s\" does not take %s: Kiln looks into "
                "profiles only, and passes %s from otlp receivers to otlp exporters",
                pipeline->name, kiln_component_kind_names[piece->type->kind], piece->id,
                kiln_signal_names[pipeline->signal], kiln_signal_names[pipeline->signal]);
    }
    return 0;
}

static int read_signal(struct kiln_pipeline *pipeline, struct kiln_err *err)
{
    struct kiln_str word = type_of(pipeline->name);

    for (int signal = 0; signal < KILN_SIGNALS; signal++) {
        if (kiln_str_eq(word, kiln_str_of(kiln_signal_names[signal]))) {
            pipeline->signal = (enum kiln_signal)signal;
            return 0;
        }
    }
    return kiln_node_fail(pipeline->node, KILN_E_MALFORMED, err,
                          "service::pipelines::%.60s: unknown signal \"%.*s\" (profiles, traces, "
                          "metrics or logs)",
                          pipeline->name, KILN_STR_ARG(word));
}

static int check_pipeline(const struct kiln_pipeline *pipeline, struct kiln_err *err)
{
    const struct kiln_piece_list *lists[] = {&pipeline->receivers, &pipeline->processors,
                                             &pipeline->exporters};
    int r = 0;

    if (!pipeline->receivers.n || !pipeline->exporters.n)
        return kiln_node_fail(pipeline->node, KILN_E_MALFORMED, err,
                              "service::pipelines::%.60s: must have at least one %s",
                              pipeline->name, pipeline->receivers.n ? "exporter" : "receiver");
    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(lists); i++)
        r = check_signal(pipeline, lists[i], err);
    return r;
}

static int read_pipeline(struct kiln_graph *graph, const struct kiln_node *node,
                         struct kiln_pipeline *pipeline, struct kiln_err *err)
{
    struct {
        const struct kiln_node *receivers, *processors, *exporters;
    } said_of = {0};
    const struct kiln_field fields[] = {
        {"receivers", KILN_FIELD_LIST, (size_t)((char *)&said_of.receivers - (char *)&said_of)},
        {"processors", KILN_FIELD_LIST, (size_t)((char *)&said_of.processors - (char *)&said_of)},
        {"exporters", KILN_FIELD_LIST, (size_t)((char *)&said_of.exporters - (char *)&said_of)},
    };
    char from[128];
    int r;

    pipeline->name = node->key;
    pipeline->node = node;
    snprintf(from, sizeof(from), "service::pipelines::%.100s", node->key);
    r = read_signal(pipeline, err);
    if (r == 0)
        r = kiln_node_read(node->kind == KILN_NODE_MAP ? node : NULL, fields,
                           KILN_ARRAY_LEN(fields), &said_of, err);
    if (r == 0)
        r = read_references(graph, said_of.receivers, KILN_RECEIVER, from, &pipeline->receivers,
                            err);
    if (r == 0)
        r = read_references(graph, said_of.processors, KILN_PROCESSOR, from, &pipeline->processors,
                            err);
    if (r == 0)
        r = read_references(graph, said_of.exporters, KILN_EXPORTER, from, &pipeline->exporters,
                            err);
    return r < 0 ? r : check_pipeline(pipeline, err);
}

static int read_pipelines(struct kiln_graph *graph, const struct kiln_node *map,
                          struct kiln_err *err)
{
    if (!map || map->kind != KILN_NODE_MAP || !map->n)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "service::pipelines: service must have at least one pipeline");
    graph->pipelines = kiln_graph_alloc(graph, map->n, sizeof(*graph->pipelines), err);
    if (!graph->pipelines)
        return -ENOMEM;
    for (const struct kiln_node *node = map->first; node; node = node->next) {
        int r = read_pipeline(graph, node, &graph->pipelines[graph->n_pipelines], err);

        if (r < 0)
            return r;
        graph->n_pipelines++;
    }
    return 0;
}

/* The service: `telemetry` is the program's business. */
struct service {
    const struct kiln_node *telemetry, *extensions, *pipelines;
};

static int read_service(struct kiln_graph *graph, const struct kiln_node *node,
                        struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"telemetry", KILN_FIELD_NODE, offsetof(struct service, telemetry)},
        {"extensions", KILN_FIELD_LIST, offsetof(struct service, extensions)},
        {"pipelines", KILN_FIELD_MAP, offsetof(struct service, pipelines)},
    };
    struct service service = {0};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &service, err);

    if (r == 0)
        r = read_references(graph, service.extensions, KILN_EXTENSION, "service::extensions",
                            &graph->extensions, err);
    return r < 0 ? r : read_pipelines(graph, service.pipelines, err);
}

struct root {
    const struct kiln_node *sections[KILN_COMPONENT_KINDS], *service;
};

int kiln_graph_read(struct kiln_graph *graph, const struct kiln_node *node, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"extensions", KILN_FIELD_NODE, offsetof(struct root, sections[KILN_EXTENSION])},
        {"receivers", KILN_FIELD_NODE, offsetof(struct root, sections[KILN_RECEIVER])},
        {"processors", KILN_FIELD_NODE, offsetof(struct root, sections[KILN_PROCESSOR])},
        {"exporters", KILN_FIELD_NODE, offsetof(struct root, sections[KILN_EXPORTER])},
        {"connectors", KILN_FIELD_NODE, offsetof(struct root, sections[KILN_CONNECTOR])},
        {"service", KILN_FIELD_MAP, offsetof(struct root, service)},
    };
    struct root root = {0};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &root, err);

    for (int kind = 0; r == 0 && kind < KILN_COMPONENT_KINDS; kind++)
        r = read_section(graph, (enum kiln_component_kind)kind, root.sections[kind], err);
    return r < 0 ? r : read_service(graph, root.service, err);
}
