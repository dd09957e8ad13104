/* SPDX-License-Identifier: Apache-2.0 */
#include "api_kit.h"

#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "drawn.h"
#include "test.h"

#define MEMORY ((size_t)256 << 20)

static char head[8192];
static char *body;

static int let_in(void *context, struct kiln_request *request, enum kiln_access access,
                  struct kiln_reply *reply)
{
    struct kiln_str tenant = kiln_request_header(request, "x-scope-orgid");

    (void)context, (void)access, (void)reply;
    if (!tenant.ptr)
        tenant = KILN_STR("anonymous");
    snprintf(request->tenant, sizeof(request->tenant), "%.*s", KILN_STR_ARG(tenant));
    return 0;
}

void api_kit_init(struct api_kit *kit, size_t memory,
                  int (*add)(struct kiln_api *api, struct kiln_router *router))
{
    struct kiln_querier_opts opts = {.pool = &kit->pool};

    memset(kit, 0, sizeof(*kit));
    kit_init(&kit->store, API_KIT_NOW);
    kiln_pool_init(&kit->pool, "query", memory ? memory : MEMORY, NULL);
    opts.engine = kit->store.engine;
    CHECK_OK(kiln_querier_new(&opts, &kit->querier));
    CHECK_OK(kiln_kept_open(kit->store.io, &kit->kept, NULL));
    kit->api =
        (struct kiln_api){.querier = kit->querier, .engine = kit->store.engine, .kept = kit->kept};
    CHECK_OK(kiln_router_new(&kit->net.router));
    kiln_router_guard(kit->net.router, (struct kiln_guard){.check = let_in});
    CHECK_OK(add(&kit->api, kit->net.router));
    net_start(&kit->net, NULL);
}

void api_kit_done(struct api_kit *kit)
{
    net_stop(&kit->net);
    kiln_kept_close(kit->kept);
    kiln_querier_free(kit->querier);
    CHECK_EQ(kit->pool.used, 0);
    kit_done(&kit->store);
    free(body);
    body = NULL;
}

/* ---- what is stored ---- */

void api_kit_put_cpu(struct api_kit *kit, const char *stacks, uint64_t ago_ns, const char *resource,
                     uint8_t id)
{
    struct kiln_drawn drawn = {.stacks = stacks,
                               .type = "cpu",
                               .unit = "nanoseconds",
                               .period_type = "cpu",
                               .period_unit = "nanoseconds",
                               .period = 10000000,
                               .time_ns = API_KIT_NOW - ago_ns,
                               .duration_ns = 10 * KILN_NS_PER_S,
                               .id = id,
                               .resource = resource};

    kit_put(&kit->store, kiln_test_batch(&drawn, 1));
}

void api_kit_put_heap(struct api_kit *kit, const char *stacks, uint64_t ago_ns,
                      const char *resource)
{
    struct kiln_drawn drawn = {.stacks = stacks,
                               .type = "inuse_space",
                               .unit = "bytes",
                               .time_ns = API_KIT_NOW - ago_ns,
                               .resource = resource};

    kit_put(&kit->store, kiln_test_batch(&drawn, 1));
}

void api_kit_put_off_cpu(struct api_kit *kit, const char *stacks, uint64_t ago_ns,
                         const char *resource)
{
    struct kiln_drawn drawn = {.stacks = stacks,
                               .type = "off_cpu",
                               .unit = "nanoseconds",
                               .time_ns = API_KIT_NOW - ago_ns,
                               .duration_ns = 10 * KILN_NS_PER_S,
                               .resource = resource};

    kit_put(&kit->store, kiln_test_batch(&drawn, 1));
}

/* ---- asking ---- */

/* Reads until the server ends the connection: answers may be larger than net.h's buffer. */
static void read_answer(int fd)
{
    size_t n = 0, cap = 1 << 16;
    char *all = malloc(cap), *end;
    ssize_t got;

    CHECK(all != NULL);
    while ((got = read(fd, all + n, cap - n - 1)) > 0) {
        n += (size_t)got;
        if (cap - n < 4096) {
            cap *= 2;
            all = realloc(all, cap);
            CHECK(all != NULL);
        }
    }
    all[n] = '\0';
    end = strstr(all, "\r\n\r\n");
    CHECK(end != NULL);
    CHECK((size_t)(end - all) < sizeof(head));
    memcpy(head, all, (size_t)(end - all));
    head[end - all] = '\0';
    memmove(all, end + 4, n - (size_t)(end + 4 - all) + 1);
    free(body);
    body = all;
}

const char *api_kit_send(struct api_kit *kit, const char *method, const char *target,
                         const char *text)
{
    int fd = net_connect(kit->net.port);
    struct kiln_buf out;

    kiln_buf_init(&out, 64 << 20);
    kiln_buf_printf(&out, "%s ", method);
    kiln_buf_puts(&out, target);
    kiln_buf_printf(&out,
                    " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n",
                    text ? strlen(text) : 0, kit->headers ? kit->headers : "");
    kiln_buf_puts(&out, text ? text : "");
    CHECK_OK(out.error);
    net_send_str(fd, kiln_buf_str(&out));
    kiln_buf_done(&out);
    read_answer(fd);
    close(fd);
    return body;
}

const char *api_kit_get(struct api_kit *kit, const char *target)
{
    return api_kit_send(kit, "GET", target, NULL);
}

int api_kit_status(void)
{
    return net_status(head);
}

const char *api_kit_header(const char *name)
{
    static char value[1024];
    size_t n = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':') {
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + 4 + n, "\r"), line + 4 + n);
            return value;
        }
    return "";
}

/* ---- golden answers ---- */

/* A line for each member of an object and each object of an array; lists of numbers stay whole. */
static char *break_lines(const char *json)
{
    char *out = calloc(1, 64 * strlen(json) + 1), *to = out;
    char open[64];
    int depth = 0;
    bool quoted = false;

    CHECK(out != NULL);
    for (const char *c = json; *c; c++) {
        bool breaks = false;

        *to++ = *c;
        if (quoted) {
            if (*c == '\\')
                *to++ = *++c;
            quoted = *c != '"' || c[-1] == '\\';
            continue;
        }
        quoted = *c == '"';
        if ((*c == '{' || *c == '[') && depth < 63)
            open[depth++] = *c;
        else if ((*c == '}' || *c == ']') && depth > 0)
            depth--;
        breaks = *c == '{' || (*c == '[' && c[1] == '{');
        breaks = breaks || (*c == ',' && (c[1] == '{' || (depth && open[depth - 1] == '{')));
        if (breaks)
            to += snprintf(to, 66, "\n%*s", depth, "");
    }
    return out;
}

/* How many blocks were read, and whether somebody counted the nodes, is the store's affair. */
static void mask(char *json, const char *name)
{
    for (char *at = json; (at = strstr(at, name)) != NULL;) {
        char *value = at += strlen(name), *end = value + strcspn(value, ",}");

        memmove(value + 1, end, strlen(end) + 1);
        *value = '#';
    }
}

void api_kit_golden(const char *path, const char *text)
{
    char *broken = break_lines(text), *wanted;
    size_t len;

    mask(broken, "\"blocks\":");
    mask(broken, "\"nodes_all\":");
    if (getenv("KILN_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "w");

        CHECK(file != NULL);
        fputs(broken, file);
        fclose(file);
    }
    wanted = kiln_test_read(path, &len);
    if (!wanted)
        fail_msg("%s is not there", path);
    CHECK_TEXT(broken, wanted);
    free(wanted);
    free(broken);
}
