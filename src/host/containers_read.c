/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of containers, JSON:
 *
 *   config.v2.json    docker: {"Name": "/web", "Config": {"Image": "shop:7", "Labels": {...}}}
 *   config.json       OCI: {"annotations": {...}}
 *   containers.json   podman's and cri-o's storage: [{"id": ID, "names": ["web"],
 *                     "metadata": "{\"image-name\": \"shop:7\"}"}]
 *
 * and what Kubernetes' downward API writes into a pod, labels or annotations, a line each:
 *
 *   app.kubernetes.io/name="shop"           the value quoted as in Go
 *
 * A file that is broken says what it says up to there.
 */
#include <stdio.h>

#include "base/json.h"
#include "host/containers_int.h"

/* Labels and annotations that say something; of two for a fact the first counts. */
static const struct {
    const char *label;
    enum kiln_container_fact fact;
} labels[] = {
    {"resource.opentelemetry.io/service.name", KILN_CONTAINER_SERVICE},
    {"resource.opentelemetry.io/service.namespace", KILN_CONTAINER_NAMESPACE},
    {"resource.opentelemetry.io/service.version", KILN_CONTAINER_VERSION},
    {"app.kubernetes.io/name", KILN_CONTAINER_SERVICE},
    {"app.kubernetes.io/version", KILN_CONTAINER_VERSION},
    {"com.docker.compose.service", KILN_CONTAINER_SERVICE},
    {"com.docker.compose.project", KILN_CONTAINER_NAMESPACE},
    {"com.docker.swarm.service.name", KILN_CONTAINER_SERVICE},
    {"com.docker.stack.namespace", KILN_CONTAINER_NAMESPACE},
    {"org.opencontainers.image.version", KILN_CONTAINER_VERSION},
    {"org.opencontainers.image.revision", KILN_CONTAINER_REVISION},
    {"org.label-schema.vcs-ref", KILN_CONTAINER_REVISION},
    {"io.kubernetes.cri.container-name", KILN_CONTAINER_IN_POD},
    {"io.kubernetes.cri.sandbox-name", KILN_CONTAINER_POD},
    {"io.kubernetes.cri.sandbox-namespace", KILN_CONTAINER_POD_NAMESPACE},
    {"io.kubernetes.cri.sandbox-uid", KILN_CONTAINER_POD_UID},
    {"io.kubernetes.cri.image-name", KILN_CONTAINER_IMAGE},
    {"io.kubernetes.container.name", KILN_CONTAINER_IN_POD},
    {"io.kubernetes.pod.name", KILN_CONTAINER_POD},
    {"io.kubernetes.pod.namespace", KILN_CONTAINER_POD_NAMESPACE},
    {"io.kubernetes.pod.uid", KILN_CONTAINER_POD_UID},
    {"io.kubernetes.cri-o.ImageName", KILN_CONTAINER_IMAGE},
    {"nerdctl/name", KILN_CONTAINER_NAME},
};
enum { LABELS = sizeof(labels) / sizeof(*labels), FIRST_RANK = 1 };

static void take(struct kiln_container_draft *draft, enum kiln_container_fact fact, unsigned rank,
                 struct kiln_str text)
{
    if (!text.len || text.len >= KILN_CONTAINER_TEXT_MAX || memchr(text.ptr, 0, text.len))
        return;
    if (draft->rank[fact] && draft->rank[fact] <= rank)
        return;
    draft->rank[fact] = rank;
    snprintf(draft->texts[fact], KILN_CONTAINER_TEXT_MAX, "%.*s", KILN_STR_ARG(text));
}

void kiln_container_say(struct kiln_container_draft *draft, enum kiln_container_fact fact,
                        struct kiln_str text)
{
    take(draft, fact, FIRST_RANK, text);
}

static int find_label(struct kiln_str name)
{
    for (int i = 0; i < LABELS; i++)
        if (kiln_str_eq(name, kiln_str_of(labels[i].label)))
            return i;
    return -1;
}

/* A text, or nothing where it is something else. */
static int read_text(struct kiln_json *r, struct kiln_str *ret)
{
    *ret = KILN_STR_NONE;
    return kiln_json_peek(r) == KILN_JSON_STRING ? kiln_json_string(r, ret) : kiln_json_skip(r);
}

static int read_labels(struct kiln_container_draft *draft, struct kiln_json *r)
{
    struct kiln_str name, value;
    int n;

    if (kiln_json_peek(r) != KILN_JSON_OBJECT)
        return kiln_json_skip(r);
    n = kiln_json_object(r);
    while (n >= 0 && (n = kiln_json_member(r, &name)) > 0) {
        int label = find_label(name);

        n = read_text(r, &value);
        if (n == 0 && label >= 0)
            take(draft, labels[label].fact, FIRST_RANK + 1 + (unsigned)label, value);
    }
    return n;
}

/* ---- docker ---- */

static int read_docker_config(struct kiln_container_draft *draft, struct kiln_json *r)
{
    struct kiln_str name, value;
    int n;

    if (kiln_json_peek(r) != KILN_JSON_OBJECT)
        return kiln_json_skip(r);
    n = kiln_json_object(r);
    while (n >= 0 && (n = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("Labels"))) {
            n = read_labels(draft, r);
        } else if (kiln_str_eq(name, KILN_STR("Image"))) {
            n = read_text(r, &value);
            if (n == 0)
                kiln_container_say(draft, KILN_CONTAINER_IMAGE, value);
        } else {
            n = kiln_json_skip(r);
        }
    }
    return n;
}

void kiln_container_read_docker(struct kiln_container_draft *draft, struct kiln_str json)
{
    struct kiln_str name, value;
    struct kiln_json r;
    int n;

    kiln_json_init(&r, json, NULL);
    n = kiln_json_object(&r);
    while (n >= 0 && (n = kiln_json_member(&r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("Config"))) {
            n = read_docker_config(draft, &r);
        } else if (kiln_str_eq(name, KILN_STR("Name"))) {
            n = read_text(&r, &value);
            if (n == 0 && value.len > 1 && *value.ptr == '/')
                kiln_container_say(draft, KILN_CONTAINER_NAME,
                                   (struct kiln_str){value.ptr + 1, value.len - 1});
        } else {
            n = kiln_json_skip(&r);
        }
    }
    kiln_json_done(&r);
}

/* ---- the OCI's ---- */

void kiln_container_read_oci(struct kiln_container_draft *draft, struct kiln_str json)
{
    struct kiln_json r;
    struct kiln_str name;
    int n;

    kiln_json_init(&r, json, NULL);
    n = kiln_json_object(&r);
    while (n >= 0 && (n = kiln_json_member(&r, &name)) > 0)
        n = kiln_str_eq(name, KILN_STR("annotations")) ? read_labels(draft, &r)
                                                       : kiln_json_skip(&r);
    kiln_json_done(&r);
}

void kiln_container_member(struct kiln_str json, const char *wanted, char *to, size_t size)
{
    struct kiln_str name, value;
    struct kiln_json r;
    int n;

    to[0] = '\0';
    kiln_json_init(&r, json, NULL);
    n = kiln_json_object(&r);
    while (n >= 0 && (n = kiln_json_member(&r, &name)) > 0) {
        bool found = kiln_str_eq(name, kiln_str_of(wanted));

        n = read_text(&r, &value);
        if (n == 0 && found && value.len < size)
            snprintf(to, size, "%.*s", KILN_STR_ARG(value));
    }
    kiln_json_done(&r);
}

/* ---- podman's storage ---- */

struct stored {
    bool found;
    char id[80], name[KILN_CONTAINER_TEXT_MAX], image[KILN_CONTAINER_TEXT_MAX];
};

static int read_names(struct kiln_json *r, struct stored *stored)
{
    struct kiln_str value;
    int n;

    if (kiln_json_peek(r) != KILN_JSON_ARRAY)
        return kiln_json_skip(r);
    n = kiln_json_array(r);
    while (n >= 0 && (n = kiln_json_element(r)) > 0) {
        n = read_text(r, &value);
        if (n == 0 && !stored->name[0] && value.len < sizeof(stored->name))
            snprintf(stored->name, sizeof(stored->name), "%.*s", KILN_STR_ARG(value));
    }
    return n;
}

static int read_stored(struct kiln_json *r, struct stored *stored)
{
    struct kiln_str name, value;
    int n;

    if (kiln_json_peek(r) != KILN_JSON_OBJECT)
        return kiln_json_skip(r);
    n = kiln_json_object(r);
    while (n >= 0 && (n = kiln_json_member(r, &name)) > 0) {
        bool is_id = kiln_str_eq(name, KILN_STR("id"));
        bool is_metadata = kiln_str_eq(name, KILN_STR("metadata"));

        if (kiln_str_eq(name, KILN_STR("names"))) {
            n = read_names(r, stored);
            continue;
        }
        n = read_text(r, &value);
        if (n == 0 && is_id && value.len < sizeof(stored->id))
            snprintf(stored->id, sizeof(stored->id), "%.*s", KILN_STR_ARG(value));
        if (n == 0 && is_metadata)
            kiln_container_member(value, "image-name", stored->image, sizeof(stored->image));
    }
    return n;
}

void kiln_container_read_storage(struct kiln_container_draft *draft, struct kiln_str json,
                                 struct kiln_str id)
{
    struct kiln_json r;
    int n;

    kiln_json_init(&r, json, NULL);
    n = kiln_json_array(&r);
    while (n >= 0 && (n = kiln_json_element(&r)) > 0) {
        struct stored stored = {0};

        n = read_stored(&r, &stored);
        if (n < 0 || !kiln_str_eq(kiln_str_of(stored.id), id))
            continue;
        kiln_container_say(draft, KILN_CONTAINER_NAME, kiln_str_of(stored.name));
        kiln_container_say(draft, KILN_CONTAINER_IMAGE, kiln_str_of(stored.image));
        break;
    }
    kiln_json_done(&r);
}

/* ---- Kubernetes' downward API ---- */

void kiln_container_read_downward(struct kiln_container_draft *draft, struct kiln_str lines)
{
    while (lines.len) {
        struct kiln_str value = kiln_str_cut(&lines, '\n'), name = kiln_str_cut(&value, '=');
        int label = find_label(name);

        if (label < 0 || value.len < 2 || value.ptr[0] != '"' || value.ptr[value.len - 1] != '"' ||
            memchr(value.ptr, '\\', value.len))
            continue;
        take(draft, labels[label].fact, FIRST_RANK + 1 + (unsigned)label,
             (struct kiln_str){value.ptr + 1, value.len - 2});
    }
}
