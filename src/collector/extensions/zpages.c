/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages for people who look at a collector, where the Collector has them, as plain text:
 *
 *   /debug/servicez      what runs, and since when     /debug/extensionz   which extensions
 *   /debug/pipelinez     which components do what      /debug/featurez     gates: there are none
 *
 * /debug/tracez says that a collector of Kiln's has no traces of itself.
 */
#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "collector/door.h"
#include "collector/graph_int.h"
#include "collector/registry.h"

#define PAGE_MAX ((size_t)1 << 20)

struct zpages_settings {
    struct kiln_listen_settings listen;
    const struct kiln_node *expvar;
};

struct zpages {
    struct kiln_component component; /* first */
    const struct kiln_graph *graph;
    uint64_t made_ns;
    struct kiln_door door;
};

/* ---- pages ---- */

static void put_service(const struct zpages *zpages, struct kiln_buf *out)
{
    uint64_t seconds = (kiln_clock_mono_ns() - zpages->made_ns) / KILN_NS_PER_S;
    bool runs = zpages->graph && kiln_graph_is_running(zpages->graph);

    kiln_buf_printf(out,
                    "kiln collector %s\n%s for %llu s with this configuration\n\n"
                    "/debug/pipelinez\n/debug/extensionz\n/debug/featurez\n",
                    KILN_VERSION, runs ? "running" : "starting or stopping",
                    (unsigned long long)seconds);
}

static void put_list(struct kiln_buf *out, const char *what, const struct kiln_piece_list *list)
{
    kiln_buf_printf(out, "  %-11s", what);
    for (uint32_t i = 0; i < list->n; i++)
        kiln_buf_printf(out, "%s%s", i ? ", " : "", list->items[i]->id);
    kiln_buf_puts(out, list->n ? "\n" : "(none)\n");
}

static void put_pipelines(const struct zpages *zpages, struct kiln_buf *out)
{
    for (uint32_t i = 0; zpages->graph && i < zpages->graph->n_pipelines; i++) {
        const struct kiln_pipeline *pipeline = &zpages->graph->pipelines[i];

        kiln_buf_printf(out, "%s\n", pipeline->name);
        put_list(out, "receivers", &pipeline->receivers);
        put_list(out, "processors", &pipeline->processors);
        put_list(out, "exporters", &pipeline->exporters);
    }
}

static void put_extensions(const struct zpages *zpages, struct kiln_buf *out)
{
    for (uint32_t i = 0; zpages->graph && i < zpages->graph->extensions.n; i++)
        kiln_buf_printf(out, "%s\n", zpages->graph->extensions.items[i]->id);
}

static void put_features(const struct zpages *zpages, struct kiln_buf *out)
{
    (void)zpages;
    kiln_buf_puts(out, "There are no feature gates: all that there is works without.\n");
}

static void put_traces(const struct zpages *zpages, struct kiln_buf *out)
{
    (void)zpages;
    kiln_buf_puts(out, "This collector makes no traces of itself. The extension pprof serves "
                       "profiles of it.\n");
}

static const struct page {
    const char *path;
    void (*put)(const struct zpages *zpages, struct kiln_buf *out);
} pages[] = {
    {"/debug/servicez", put_service},      {"/debug/pipelinez", put_pipelines},
    {"/debug/extensionz", put_extensions}, {"/debug/featurez", put_features},
    {"/debug/tracez", put_traces},
};

static void show(struct kiln_request *request)
{
    struct kiln_reply reply = {.status = 200, .content_type = "text/plain; charset=utf-8"};
    struct kiln_buf out;

    kiln_buf_init(&out, PAGE_MAX);
    for (size_t i = 0; i < KILN_ARRAY_LEN(pages); i++)
        if (kiln_str_eq(request->path, kiln_str_of(pages[i].path)))
            pages[i].put(request->context, &out);
    if (out.error)
        reply.status = 500;
    else
        reply.body = kiln_buf_str(&out);
    kiln_request_reply(request, &reply);
    kiln_buf_done(&out);
}

/* ---- the extension ---- */

static int start(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_door_start(&((struct zpages *)component)->door, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    kiln_door_stop(&((struct zpages *)component)->door, deadline_ns);
}

static void destroy(struct kiln_component *component)
{
    kiln_door_done(&((struct zpages *)component)->door);
    kiln_free(component);
}

static int add_pages(struct zpages *zpages)
{
    int r = 0;

    for (size_t i = 0; i < KILN_ARRAY_LEN(pages) && r == 0; i++)
        r = kiln_router_add(kiln_listen_router(zpages->door.listen),
                            &(struct kiln_route){.method = "GET",
                                                 .path = pages[i].path,
                                                 .access = KILN_ACCESS_READ,
                                                 .handler = show,
                                                 .context = zpages});
    return r;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    const struct zpages_settings *s = settings;
    struct zpages *zpages = kiln_calloc(1, sizeof(*zpages));
    int r;

    if (!zpages)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    zpages->component.ops = &ops;
    zpages->graph = env->graph;
    zpages->made_ns = kiln_clock_mono_ns();
    r = kiln_door_make(&zpages->door, env, KILN_EXTENSION, &s->listen, err);
    if (r == 0 && add_pages(zpages) < 0)
        r = kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    if (r < 0) {
        destroy(&zpages->component);
        return r;
    }
    *ret_component = &zpages->component;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field own[] = {
        {"expvar", KILN_FIELD_MAP, offsetof(struct zpages_settings, expvar)},
    };
    struct zpages_settings *s = settings;

    *s = (struct zpages_settings){.listen.endpoint = "localhost:55679"};
    return kiln_listen_read_http(node, own, KILN_ARRAY_LEN(own), s, &s->listen, err);
}

const struct kiln_component_type kiln_zpages_extension_type = {
    .name = "zpages",
    .kind = KILN_EXTENSION,
    .signals = KILN_TAKES_ALL,
    .stability = "beta",
    .settings_size = sizeof(struct zpages_settings),
    .read = read,
    .make = make,
};
