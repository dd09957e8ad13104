/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What variables of a process say of it.
 *
 *   OTEL_SERVICE_NAME=name
 *   OTEL_RESOURCE_ATTRIBUTES=key=value,key=value    values percent-encoded; a mistake voids it all
 *
 * and those that builds and deployments set by custom.  Variables that somebody allowed who reads
 * them for another reason are attributes under their own names.
 */
#include <stdio.h>

#include "base/params.h"
#include "host/identity_int.h"

enum {
    OWN_MAX = 64,         /* pairs that a process may say of itself */
    OWN_VALUE_MAX = 1024, /* bytes of each */
};

/* Which attribute a variable stands for; of two for one the first counts. */
static const struct {
    const char *name, *attribute; /* NULL: for other code to look at */
} known[] = {
    {"OTEL_SERVICE_NAME", NULL},
    {"OTEL_RESOURCE_ATTRIBUTES", NULL},
    {"SERVICE_VERSION", "service.version"},
    {"APP_VERSION", "service.version"},
    {"DD_VERSION", "service.version"},
    {"GIT_COMMIT", "git.commit"},
    {"GIT_COMMIT_SHA", "git.commit"},
    {"SOURCE_COMMIT", "git.commit"},
    {"DD_GIT_COMMIT_SHA", "git.commit"},
    {"GIT_BRANCH", "git.branch"},
    {"DEPLOYMENT_ENVIRONMENT", "deployment.environment"},
    {"DD_ENV", "deployment.environment"},
    {"DEPLOYMENT_ID", "deployment_id"},
    {"PYTHON_VERSION", NULL},
    {"NODE_VERSION", NULL},
    {"JAVA_VERSION", NULL},
    {"RUBY_VERSION", NULL},
    {"PHP_VERSION", NULL},
    {"DOTNET_VERSION", NULL},
};

const char *kiln_env_usual(uint32_t i)
{
    return i < KILN_ARRAY_LEN(known) ? known[i].name : NULL;
}

struct kiln_str kiln_facts_env(const struct kiln_facts *facts, const char *name)
{
    struct kiln_str rest = {facts->env.ptr, facts->env.len};

    while (rest.len) {
        struct kiln_str value = kiln_str_cut(&rest, '\0');

        if (kiln_str_eq(kiln_str_cut(&value, '='), kiln_str_of(name)))
            return value;
    }
    return KILN_STR("");
}

/* ---- OpenTelemetry's ---- */

/* One pair; `attrs` NULL: only looked at.  Negative: a mistake. */
static int put_pair(struct kiln_attrs *attrs, struct kiln_str key, struct kiln_str value)
{
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, (size_t)3 * OWN_VALUE_MAX);
    r = kiln_percent_decode(value, false, &text);
    if (r == 0 && text.len > OWN_VALUE_MAX)
        r = KILN_E_LIMIT;
    if (r == 0 && text.len && attrs && kiln_facts_may_say(key))
        kiln_attrs_set(attrs, key, kiln_buf_str(&text));
    kiln_buf_done(&text);
    return r;
}

static int put_pairs(struct kiln_attrs *attrs, struct kiln_str pairs)
{
    uint32_t n = 0;

    while (pairs.len) {
        struct kiln_str value = kiln_str_cut(&pairs, ',');
        struct kiln_str key = kiln_str_trim(kiln_str_cut(&value, '='));

        if (!value.ptr || !key.len || ++n > OWN_MAX ||
            put_pair(attrs, key, kiln_str_trim(value)) < 0)
            return KILN_E_MALFORMED;
    }
    return 0;
}

void kiln_facts_put_otel(struct kiln_facts *facts)
{
    struct kiln_str pairs = kiln_facts_env(facts, "OTEL_RESOURCE_ATTRIBUTES");
    struct kiln_str service = kiln_facts_env(facts, "OTEL_SERVICE_NAME");

    if (put_pairs(NULL, pairs) == 0 && put_pairs(&facts->attrs, pairs) < 0)
        return; /* no memory: the identity is not made */
    if (service.len)
        kiln_attrs_set(&facts->attrs, KILN_STR("service.name"), service);
}

/* ---- others ---- */

static bool is_known(struct kiln_str name)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(known); i++)
        if (kiln_str_eq(name, kiln_str_of(known[i].name)))
            return true;
    return false;
}

/* A variable that was allowed by its name, which stands for nothing else. */
static void put_variable(struct kiln_facts *facts, const char *name)
{
    char key[KILN_COMMAND_MAX];
    int n = snprintf(key, sizeof(key), "process.environment_variable.%s", name);

    if (n > 0 && (size_t)n < sizeof(key) && !is_known(kiln_str_of(name)))
        kiln_attrs_default(&facts->attrs, key, kiln_facts_env(facts, name));
}

void kiln_facts_put_env(struct kiln_facts *facts)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(known) && facts->n_env; i++)
        if (known[i].attribute)
            kiln_attrs_default(&facts->attrs, known[i].attribute,
                               kiln_facts_env(facts, known[i].name));
    for (uint32_t i = 0; i < facts->n_shown && facts->n_env; i++)
        put_variable(facts, facts->shown[i]);
}
