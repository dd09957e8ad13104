/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource of a process, by OpenTelemetry's conventions.  Who is to be believed:
 *
 *   what it is (program, user, container, pod, unit)  the agent, then the process itself
 *   what it is called (service.*), its version, its deployment
 *       1. the process: its variables, then what it publishes (host/process_context.h)
 *       2. variables that builds and deployments set
 *       3. for its name: the unit of systemd, the container, the executable
 *          for its version: the executable (Go), labels of the container, the tag of its image
 *
 * and over all of it the operator's rules.
 */
#include "host/identity_int.h"

static void set(struct kiln_facts *facts, const char *key, const char *text)
{
    if (text[0])
        kiln_attrs_set(&facts->attrs, kiln_str_of(key), kiln_str_of(text));
}

static void otherwise(struct kiln_facts *facts, const char *key, const char *text)
{
    kiln_attrs_default(&facts->attrs, key, kiln_str_of(text));
}

static const char *of_container(const struct kiln_facts *facts, enum kiln_container_fact fact)
{
    return facts->container ? facts->container->facts[fact] : "";
}

/* ---- what a process says of itself ---- */

bool kiln_facts_may_say(struct kiln_str key)
{
    return !kiln_str_starts(key, KILN_STR("process.command")) &&
           !kiln_str_starts(key, KILN_STR("process.environment_variable."));
}

/* SDKs call a service "unknown_service" that nobody has named. */
static bool says_nothing(const struct kiln_context_attr *attr)
{
    return strcmp(attr->key, "service.name") == 0 &&
           kiln_str_starts(kiln_str_of(attr->text), KILN_STR("unknown_service"));
}

static void put_context(struct kiln_facts *facts)
{
    const struct kiln_process_context *context = facts->context;

    for (uint32_t i = 0; context && i < context->n_resource; i++) {
        const struct kiln_context_attr *attr = &context->resource[i];

        if (attr->text && kiln_facts_may_say(kiln_str_of(attr->key)) && !says_nothing(attr))
            set(facts, attr->key, attr->text);
    }
}

/* Names that others have for the same. */
static void put_synonyms(struct kiln_facts *facts)
{
    kiln_attrs_default(&facts->attrs, "git.commit",
                       kiln_attrs_get(&facts->attrs, KILN_STR("vcs.ref.head.revision")));
    kiln_attrs_default(&facts->attrs, "git.branch",
                       kiln_attrs_get(&facts->attrs, KILN_STR("vcs.ref.head.name")));
}

/* ---- what the agent knows ---- */

/* "registry:5000/shop:7@sha256:..." is shop of that registry, and its tag 7. */
static void put_image(struct kiln_facts *facts)
{
    struct kiln_str tag = kiln_str_of(of_container(facts, KILN_CONTAINER_IMAGE)), name;
    const char *slash, *colon;

    tag = kiln_str_cut(&tag, '@');
    slash = tag.len ? memrchr(tag.ptr, '/', tag.len) : NULL;
    colon = tag.len ? memrchr(tag.ptr, ':', tag.len) : NULL;
    name = tag;
    if (colon && (!slash || colon > slash)) {
        name.len = (size_t)(colon - tag.ptr);
        tag = (struct kiln_str){colon + 1, tag.len - name.len - 1};
        kiln_attrs_set(&facts->attrs, KILN_STR("container.image.tag"), tag);
    }
    if (name.len)
        kiln_attrs_set(&facts->attrs, KILN_STR("container.image.name"), name);
}

static const char *container_name(const struct kiln_facts *facts)
{
    const char *name = of_container(facts, KILN_CONTAINER_NAME);

    return name[0] ? name : facts->place.container_name;
}

static void put_place(struct kiln_facts *facts)
{
    const char *uid = of_container(facts, KILN_CONTAINER_POD_UID);

    set(facts, "container.id", facts->place.container_id);
    set(facts, "container.name", container_name(facts));
    set(facts, "container.runtime.name", facts->place.runtime);
    put_image(facts);
    set(facts, "k8s.pod.uid", facts->place.pod_uid[0] ? facts->place.pod_uid : uid);
    set(facts, "k8s.pod.name", of_container(facts, KILN_CONTAINER_POD));
    set(facts, "k8s.namespace.name", of_container(facts, KILN_CONTAINER_POD_NAMESPACE));
    set(facts, "k8s.container.name", of_container(facts, KILN_CONTAINER_IN_POD));
    set(facts, "systemd.unit", facts->place.unit);
}

static void put_process(struct kiln_facts *facts)
{
    kiln_attrs_set(&facts->attrs, KILN_STR("process.executable.name"), facts->name);
    set(facts, "process.executable.path", facts->path);
    set(facts, "process.command", facts->command);
    set(facts, "process.owner", facts->owner);
}

/* ---- what it is called ---- */

static void put_unit(struct kiln_facts *facts)
{
    struct kiln_str unit = kiln_str_of(facts->place.unit), suffix = KILN_STR(".service");

    if (kiln_str_ends(unit, suffix))
        unit.len -= suffix.len;
    kiln_attrs_default(&facts->attrs, "service.name", unit);
}

static void put_service(struct kiln_facts *facts)
{
    const char *space = of_container(facts, KILN_CONTAINER_NAMESPACE);

    put_unit(facts);
    otherwise(facts, "service.name", of_container(facts, KILN_CONTAINER_SERVICE));
    otherwise(facts, "service.name", of_container(facts, KILN_CONTAINER_IN_POD));
    otherwise(facts, "service.name", container_name(facts));
    kiln_attrs_default(&facts->attrs, "service.name", facts->name);
    otherwise(facts, "service.namespace",
              space[0] ? space : of_container(facts, KILN_CONTAINER_POD_NAMESPACE));
}

/* A tag that is moved from image to image is no version. */
static void put_versions(struct kiln_facts *facts)
{
    struct kiln_str tag;

    kiln_facts_put_runtime(facts);
    otherwise(facts, "service.version", of_container(facts, KILN_CONTAINER_VERSION));
    otherwise(facts, "git.commit", of_container(facts, KILN_CONTAINER_REVISION));
    tag = kiln_attrs_get(&facts->attrs, KILN_STR("container.image.tag"));
    if (!kiln_str_eq(tag, KILN_STR("latest")))
        kiln_attrs_default(&facts->attrs, "service.version", tag);
}

void kiln_facts_describe(struct kiln_facts *facts, const struct kiln_identity_rules *rules)
{
    put_context(facts);
    kiln_facts_put_otel(facts);
    put_synonyms(facts);
    kiln_facts_put_env(facts);
    put_place(facts);
    put_process(facts);
    put_service(facts);
    put_versions(facts);
    kiln_facts_apply(facts, rules);
    kiln_attrs_default(&facts->attrs, "service.name", facts->name);
}
