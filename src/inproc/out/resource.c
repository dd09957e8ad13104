/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/resource.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/bytetext.h"
#include "core/frame.h"

#define MEMORY_MAX ((size_t)1 << 20)

/* Which attribute a variable stands for; of two for one the first counts. */
static const struct {
    const char *name, *attribute;
} variables[] = {
    {"SERVICE_VERSION", "service.version"},
    {"APP_VERSION", "service.version"},
    {"DD_VERSION", "service.version"},
    {"SERVICE_NAMESPACE", "service.namespace"},
    {"SERVICE_INSTANCE_ID", "service.instance.id"},
    {"GIT_COMMIT", "git.commit"},
    {"GIT_COMMIT_SHA", "git.commit"},
    {"SOURCE_COMMIT", "git.commit"},
    {"DD_GIT_COMMIT_SHA", "git.commit"},
    {"GIT_BRANCH", "git.branch"},
    {"GIT_TAG", "git.tag"},
    {"GIT_REPOSITORY", "git.repository"},
    {"DEPLOYMENT_ENVIRONMENT", "deployment.environment"},
    {"DD_ENV", "deployment.environment"},
    {"DEPLOYMENT_ID", "deployment_id"},
    {"RUNTIME_VERSION", "runtime.version"},
};

/* ---- one attribute ---- */

struct kiln_str kiln_in_resource_get(const struct kiln_in_resource *resource, const char *key)
{
    for (uint32_t i = 0; i < resource->n; i++)
        if (kiln_str_eq(resource->attributes[i].key, kiln_str_of(key)))
            return resource->attributes[i].value;
    return KILN_STR_NONE;
}

/* Where nobody has said it before.  0 or -ENOMEM. */
static int put(struct kiln_in_resource *resource, struct kiln_str key, struct kiln_str value)
{
    struct kiln_str keys, text;

    if (!key.len || !value.len || resource->n == KILN_IN_RESOURCE_MAX)
        return 0;
    for (uint32_t i = 0; i < resource->n; i++)
        if (kiln_str_eq(resource->attributes[i].key, key))
            return 0;
    if (value.len > KILN_IN_RESOURCE_VALUE_MAX)
        value.len = KILN_IN_RESOURCE_VALUE_MAX;
    keys = kiln_arena_copy(&resource->arena, key);
    text = kiln_arena_copy(&resource->arena, value);
    if (!keys.ptr || !text.ptr)
        return -ENOMEM;
    resource->attributes[resource->n].key = keys;
    resource->attributes[resource->n++].value = text;
    return 0;
}

static int put_text(struct kiln_in_resource *resource, const char *key, const char *value)
{
    return put(resource, kiln_str_of(key), kiln_str_of(value));
}

/* ---- what can be seen ---- */

/* The first line of a small file; "": it has none. */
static void read_line(const char *path, char *ret, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, ret, size - 1);

    if (fd >= 0)
        close(fd);
    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

static int put_process(struct kiln_in_resource *resource)
{
    char text[KILN_IN_RESOURCE_VALUE_MAX];
    ssize_t n = readlink("/proc/thread-self/exe", text, sizeof(text) - 1);
    struct kiln_str path = {text, n > 0 ? (size_t)n : 0};
    char number[24];
    int r = put(resource, KILN_STR("process.executable.path"), path);

    if (r == 0)
        r = put(resource, KILN_STR("process.executable.name"), kiln_frame_base(path));
    if (r == 0)
        r = put(resource, KILN_STR("service.name"), kiln_frame_base(path));
    snprintf(number, sizeof(number), "%d", (int)getpid());
    if (r == 0)
        r = put_text(resource, "process.pid", number);
    snprintf(number, sizeof(number), "glibc %s", gnu_get_libc_version());
    if (r == 0)
        r = put_text(resource, "runtime.version", number);
    read_line("/proc/self/comm", text, sizeof(text));
    if (r == 0)
        r = put_text(resource, "process.command", text);
    return r;
}

static int put_host(struct kiln_in_resource *resource)
{
    struct utsname names;
    char text[256];
    int r = uname(&names) == 0 ? put_text(resource, "host.name", names.nodename) : 0;

    if (r == 0)
        r = put_text(resource, "host.arch",
                     strcmp(names.machine, "x86_64") == 0    ? "amd64"
                     : strcmp(names.machine, "aarch64") == 0 ? "arm64"
                                                             : names.machine);
    read_line("/etc/machine-id", text, sizeof(text));
    if (r == 0)
        r = put_text(resource, "host.id", text);
    return r < 0 ? r : put_text(resource, "os.type", "linux");
}

/* One start of a service, told from all others: a random UUID. */
static int put_instance(struct kiln_in_resource *resource)
{
    uint8_t id[16];
    char hex[32], text[40];

    if (getrandom(id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
        return 0;
    id[6] = (uint8_t)((id[6] & 15) | 0x40);
    id[8] = (uint8_t)((id[8] & 63) | 0x80);
    kiln_hex_encode(id, sizeof(id), hex);
    snprintf(text, sizeof(text), "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
    return put_text(resource, "service.instance.id", text);
}

static int put_seen(struct kiln_in_resource *resource)
{
    int r = put_process(resource);

    if (r == 0)
        r = put_host(resource);
    if (r == 0)
        r = put_instance(resource);
    if (r == 0)
        r = put_text(resource, "telemetry.sdk.name", "libkiln");
    if (r == 0)
        r = put_text(resource, "telemetry.sdk.language", "cpp");
    return r < 0 ? r : put_text(resource, "telemetry.sdk.version", KILN_VERSION);
}

/* ---- all of it ---- */

int kiln_in_resource_init(struct kiln_in_resource *resource, const struct kiln_attribute *stated,
                          uint32_t n_stated, const char *(*variable)(const char *name))
{
    int r = 0;

    resource->n = 0;
    resource->budget = (struct kiln_budget){.limit = MEMORY_MAX};
    kiln_arena_init(&resource->arena, &resource->budget);
    for (uint32_t i = 0; r == 0 && i < n_stated; i++)
        r = put_text(resource, stated[i].key, stated[i].value);
    for (size_t i = 0; r == 0 && i < sizeof(variables) / sizeof(variables[0]); i++)
        r = put_text(resource, variables[i].attribute, variable(variables[i].name));
    return r < 0 ? r : put_seen(resource);
}

void kiln_in_resource_done(struct kiln_in_resource *resource)
{
    kiln_arena_done(&resource->arena);
    resource->n = 0;
}

uint32_t kiln_in_resource_set(const struct kiln_in_resource *resource, struct kiln_builder *b)
{
    uint32_t attrs[KILN_IN_RESOURCE_MAX];

    for (uint32_t i = 0; i < resource->n; i++) {
        struct kiln_str key = resource->attributes[i].key;
        struct kiln_str value = resource->attributes[i].value;
        int64_t pid;

        /* The one number among them. */
        if (kiln_str_eq(key, KILN_STR("process.pid")) && kiln_str_parse_i64(value, &pid) == 0)
            attrs[i] = kiln_builder_attr(b, kiln_builder_string(b, key), kiln_value_int(pid), 0);
        else
            attrs[i] = kiln_builder_text_attr(b, key, value);
    }
    return kiln_builder_set(b, attrs, resource->n, NULL);
}
