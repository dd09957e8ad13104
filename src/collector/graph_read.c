/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration as pieces (a component each) and pipelines that refer to them.  What is said in
 * an error is what the Collector says, because people look for it; the place is ours.
 *
 * A fault does not end the reading: it is noted, and what else is wrong is looked for.  What is
 * wrong because something else is, is not told: a reference to a faulty component is a good one.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
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

/* Where `r` is a fault, notes it; returns what is a reason to stop. */
static int note(const struct kiln_graph *graph, int r, const struct kiln_err *fault,
                struct kiln_err *err)
{
    return r < 0 ? kiln_faults_note(graph->opts.faults, fault, err) : 0;
}

/* The Collector's sentence before what is wrong; its place, where that was not told. */
static void say_whose(enum kiln_component_kind kind, const struct kiln_node *node,
                      struct kiln_err *err)
{
    const struct kiln_err why = *err;
    bool has_place = strstr(why.where, "line ") != NULL;

    if (!has_place) {
        *err = (struct kiln_err){0};
        (void)!kiln_node_fail(node, why.code, err, "%s", "");
    }
    snprintf(err->text, sizeof(err->text), "'%s' error reading configuration for \"%.40s\": %.150s",
             kiln_component_section_names[kind], node->key, why.text);
}

/* A component that is being read, once into its settings and then to find all faults. */
struct piece_reading {
    struct kiln_graph *graph;
    const struct kiln_piece *piece;
    bool again;
    struct kiln_err *err;
};

static int read_again(const struct kiln_component_type *type, const struct kiln_node *node,
                      struct kiln_err *err)
{
    void *settings = kiln_calloc(1, type->settings_size + 1);
    int r;

    if (!settings)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = type->read(node, settings, err);
    if (type->settings_done)
        type->settings_done(settings);
    kiln_free(settings);
    return r;
}

static int read_settings(void *context, const struct kiln_node *node, struct kiln_err *err)
{
    struct piece_reading *reading = context;
    const struct kiln_piece *piece = reading->piece;

    if (reading->again)
        return read_again(piece->type, node, err);
    reading->again = true;
    return piece->type->read(node, piece->settings, err);
}

static int found_in_piece(void *context, struct kiln_err *fault)
{
    const struct piece_reading *reading = context;

    say_whose(reading->piece->type->kind, reading->piece->node, fault);
    return note(reading->graph, fault->code, fault, reading->err);
}

static int read_piece(struct kiln_graph *graph, enum kiln_component_kind kind,
                      const struct kiln_node *map, const struct kiln_node *node,
                      struct kiln_piece *piece, struct kiln_err *err)
{
    const struct kiln_component_type *type = kiln_component_find(kind, type_of(node->key));
    struct piece_reading reading = {graph, piece, false, err};
    struct kiln_err fault = {0};

    piece->id = node->key;
    piece->node = node;
    if (!type)
        return note(graph, unknown_type(node, kind, &fault), &fault, err);
    piece->type = type;
    if (type->settings_size) {
        piece->settings = kiln_graph_alloc(graph, 1, type->settings_size, err);
        if (!piece->settings)
            return -ENOMEM;
    }
    return kiln_faults_find(kiln_node_get(map, node->key), &graph->arena,
                            &(struct kiln_faults_reader){read_settings, found_in_piece, &reading});
}

/* A map of the configuration that is read by table. */
struct table_reading {
    struct kiln_graph *graph;
    const struct kiln_field *fields;
    uint32_t n;
    void *into;
    struct kiln_err *err;
};

static int read_fields(void *context, const struct kiln_node *node, struct kiln_err *err)
{
    const struct table_reading *reading = context;

    return kiln_node_read(node, reading->fields, reading->n, reading->into, err);
}

static int found_in_table(void *context, struct kiln_err *fault)
{
    const struct table_reading *reading = context;

    return note(reading->graph, fault->code, fault, reading->err);
}

static int read_table(struct kiln_graph *graph, const struct kiln_node *node,
                      const struct kiln_field *fields, uint32_t n, void *into, struct kiln_err *err)
{
    struct table_reading reading = {graph, fields, n, into, err};

    return kiln_faults_find(node, &graph->arena,
                            &(struct kiln_faults_reader){read_fields, found_in_table, &reading});
}

static int read_section(struct kiln_graph *graph, enum kiln_component_kind kind,
                        const struct kiln_node *map, struct kiln_err *err)
{
    struct kiln_err fault = {0};
    int r = 0;

    if (map && map->kind != KILN_NODE_MAP)
        return note(graph,
                    kiln_node_fail(map, KILN_E_MALFORMED, &fault,
                                   "'%s' must be a map of components",
                                   kiln_component_section_names[kind]),
                    &fault, err);
    graph->pieces[kind] = kiln_graph_alloc(graph, map ? map->n : 0, sizeof(struct kiln_piece), err);
    if (!graph->pieces[kind])
        return -ENOMEM;
    for (const struct kiln_node *node = map ? map->first : NULL; r == 0 && node;
         node = node->next) {
        struct kiln_piece *piece = &graph->pieces[kind][graph->n_pieces[kind]++];

        r = read_piece(graph, kind, map, node, piece, err);
    }
    return r;
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
                       enum kiln_component_kind kind, const char *from, struct kiln_err *err)
{
    const struct kiln_piece *piece = list->items[list->n];

    for (uint32_t i = 0; i < list->n; i++)
        if (list->items[i] == piece)
            return kiln_node_fail(item, KILN_E_MALFORMED, err,
                                  "%.80s: references %s \"%.60s\" multiple times", from,
                                  kiln_component_kind_names[kind], piece->id);
    return 0;
}

static int read_references(struct kiln_graph *graph, const struct kiln_node *list,
                           enum kiln_component_kind kind, const char *from,
                           struct kiln_piece_list *ret, struct kiln_err *err)
{
    int r = 0;

    if (!list || list->kind != KILN_NODE_LIST)
        return 0;
    ret->items = kiln_graph_alloc(graph, list->n, sizeof(*ret->items), err);
    if (!ret->items)
        return -ENOMEM;
    ret->said = list->n;
    for (const struct kiln_node *item = list->first; r == 0 && item; item = item->next) {
        struct kiln_err fault = {0};
        int bad = refer(graph, item, kind, from, &ret->items[ret->n], &fault);

        if (bad == 0)
            bad = check_twice(ret, item, kind, from, &fault);
        if (bad == 0)
            ret->items[ret->n++]->used = true;
        r = note(graph, bad, &fault, err);
    }
    return r;
}

/* A component of another signal, or one that Kiln has for profiles alone. */
static int check_signal(const struct kiln_pipeline *pipeline, const struct kiln_piece_list *list,
                        struct kiln_err *err)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct kiln_piece *piece = list->items[i];

        if (piece->type && !(piece->type->signals & KILN_TAKES(pipeline->signal)))
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

    if (!pipeline->receivers.said || !pipeline->exporters.said)
        return kiln_node_fail(pipeline->node, KILN_E_MALFORMED, err,
                              "service::pipelines::%.60s: must have at least one %s",
                              pipeline->name, pipeline->receivers.said ? "exporter" : "receiver");
    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(lists); i++)
        r = check_signal(pipeline, lists[i], err);
    return r;
}

/* The lists of a pipeline, as they stand there. */
struct lists {
    const struct kiln_node *of[3];
};

static const struct {
    const char *key;
    enum kiln_component_kind kind;
} list_keys[3] = {
    {"receivers", KILN_RECEIVER}, {"processors", KILN_PROCESSOR}, {"exporters", KILN_EXPORTER}};

static int read_lists(struct kiln_graph *graph, struct kiln_pipeline *pipeline,
                      struct kiln_err *err)
{
    struct kiln_piece_list *lists[] = {&pipeline->receivers, &pipeline->processors,
                                       &pipeline->exporters};
    const struct kiln_field fields[] = {
        {list_keys[0].key, KILN_FIELD_LIST, offsetof(struct lists, of[0])},
        {list_keys[1].key, KILN_FIELD_LIST, offsetof(struct lists, of[1])},
        {list_keys[2].key, KILN_FIELD_LIST, offsetof(struct lists, of[2])},
    };
    const struct kiln_node *node = pipeline->node->kind == KILN_NODE_MAP ? pipeline->node : NULL;
    struct lists nodes = {0};
    char from[128];
    int r = read_table(graph, node, fields, KILN_ARRAY_LEN(fields), &nodes, err);

    snprintf(from, sizeof(from), "service::pipelines::%.100s", pipeline->name);
    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(lists); i++)
        r = read_references(graph, kiln_node_get(node, list_keys[i].key), list_keys[i].kind, from,
                            lists[i], err);
    return r;
}

static int read_pipeline(struct kiln_graph *graph, const struct kiln_node *node,
                         struct kiln_pipeline *pipeline, struct kiln_err *err)
{
    struct kiln_err fault = {0};
    bool knows_signal;
    int r;

    pipeline->name = node->key;
    pipeline->node = node;
    r = read_signal(pipeline, &fault);
    knows_signal = r == 0;
    r = note(graph, r, &fault, err);
    if (r == 0)
        r = read_lists(graph, pipeline, err);
    fault = (struct kiln_err){0};
    if (r == 0 && knows_signal)
        r = note(graph, check_pipeline(pipeline, &fault), &fault, err);
    return r;
}

static int read_pipelines(struct kiln_graph *graph, const struct kiln_node *map,
                          struct kiln_err *err)
{
    struct kiln_err fault = {0};
    int r = 0;

    if (!map || map->kind != KILN_NODE_MAP || !map->n)
        return note(graph,
                    kiln_err_set(&fault, KILN_E_MALFORMED, NULL,
                                 "service::pipelines: service must have at least one pipeline"),
                    &fault, err);
    graph->pipelines = kiln_graph_alloc(graph, map->n, sizeof(*graph->pipelines), err);
    if (!graph->pipelines)
        return -ENOMEM;
    for (const struct kiln_node *node = map->first; r == 0 && node; node = node->next)
        r = read_pipeline(graph, node, &graph->pipelines[graph->n_pipelines++], err);
    return r;
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
    int r = read_table(graph, node, fields, KILN_ARRAY_LEN(fields), &service, err);

    if (r == 0)
        r = read_references(graph, kiln_node_get(node, "extensions"), KILN_EXTENSION,
                            "service::extensions", &graph->extensions, err);
    return r < 0 ? r : read_pipelines(graph, kiln_node_get(node, "pipelines"), err);
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
    struct kiln_err first = {0};
    struct root root = {0};
    int r = read_table(graph, node, fields, KILN_ARRAY_LEN(fields), &root, &first);

    for (int kind = 0; r == 0 && kind < KILN_COMPONENT_KINDS; kind++)
        r = read_section(graph, (enum kiln_component_kind)kind,
                         kiln_node_get(node, kiln_component_section_names[kind]), &first);
    if (r == 0)
        r = read_service(graph, kiln_node_get(node, "service"), &first);
    if (first.code && err && !err->code)
        *err = first;
    return r < 0 ? r : first.code;
}
