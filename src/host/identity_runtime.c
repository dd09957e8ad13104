/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which language runs a process, and at which version.  Go writes it into its programs.  Others are
 * known by the name of their executable; their version is told by, in this order,
 *
 *   a file beside it      Java: ../release has JAVA_VERSION="17.0.9"; Node.js: ../include/node/
 *                         node_version.h has NODE_MAJOR_VERSION and the others
 *   its path              /root/.nvm/versions/node/v20.1.0/bin/node, python3.11
 *   a variable            that images set: PYTHON_VERSION=3.11.4, unless it contradicts the path
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "base/beneath.h"
#include "host/aside.h"
#include "host/identity_int.h"
#include "symbol/go_info.h"

enum { FILE_MAX_BYTES = 16 << 10, VERSION_MAX = 64 };

struct runtime {
    const char *executable; /* begins the name, then digits, dots and dashes alone */
    const char *name;
    const char *variable; /* NULL: none */
};

static const struct runtime runtimes[] = {
    {"python", "cpython", "PYTHON_VERSION"},
    {"node", "nodejs", "NODE_VERSION"},
    {"nodejs", "nodejs", "NODE_VERSION"},
    {"java", "java", "JAVA_VERSION"},
    {"ruby", "ruby", "RUBY_VERSION"},
    {"php", "php", "PHP_VERSION"},
    {"php-fpm", "php", "PHP_VERSION"},
    {"dotnet", "dotnet", "DOTNET_VERSION"},
    {"beam.smp", "beam", NULL},
    {"perl", "perl", NULL},
    {"deno", "deno", NULL},
    {"bun", "bun", NULL},
    {"luajit", "luajit", NULL},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const struct runtime *find_runtime(struct kiln_str name)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(runtimes); i++) {
        size_t at = strlen(runtimes[i].executable);

        if (!kiln_str_starts(name, kiln_str_of(runtimes[i].executable)))
            continue;
        while (at < name.len && (is_digit(name.ptr[at]) || strchr(".-", name.ptr[at])))
            at++;
        if (at == name.len)
            return &runtimes[i];
    }
    return NULL;
}

/* Numbers with at least one dot between them: the last ones of a text. */
static struct kiln_str last_version(struct kiln_str text)
{
    struct kiln_str found = KILN_STR("");

    for (size_t i = 0; i < text.len; i++) {
        size_t begin = i, dots = 0;

        while (i < text.len &&
               (is_digit(text.ptr[i]) || (i > begin && text.ptr[i] == '.' && i + 1 < text.len &&
                                          is_digit(text.ptr[i + 1])))) {
            dots += text.ptr[i] == '.';
            i++;
        }
        if (dots && i - begin < VERSION_MAX)
            found = (struct kiln_str){text.ptr + begin, i - begin};
    }
    return found;
}

/* ---- files beside it ---- */

/* A file beside the folder of the executable, beneath the root of the process; its length, or 0. */
static size_t read_beside(const struct kiln_facts *facts, const char *name, char *to, size_t size)
{
    char path[KILN_PROCFS_PATH_MAX + 64];
    const char *slash = strrchr(facts->path, '/');
    struct stat st;
    int64_t got = 0;
    int root, fd;

    if (facts->dir < 0 || !slash)
        return 0;
    root = openat(facts->dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return 0;
    snprintf(path, sizeof(path), "%.*s/../%s", (int)(slash - facts->path), facts->path, name);
    fd = facts->aside ? kiln_aside_open(facts->aside, root, path, RESOLVE_IN_ROOT, &st)
                      : kiln_open_beneath(root, path, RESOLVE_IN_ROOT, &st);
    close(root);
    if (fd >= 0 && facts->aside) {
        got = kiln_aside_read(facts->aside, fd, 0, to, size);
        kiln_aside_close(facts->aside, fd);
    } else if (fd >= 0) {
        got = pread(fd, to, size, 0);
        close(fd);
    }
    return got > 0 ? (size_t)got : 0;
}

static void read_java(const struct kiln_facts *facts, char *to, size_t size)
{
    char text[FILE_MAX_BYTES];
    struct kiln_str rest = {text, read_beside(facts, "release", text, sizeof(text))};

    while (rest.len) {
        struct kiln_str value = kiln_str_cut(&rest, '\n'), key = kiln_str_cut(&value, '=');

        if (kiln_str_eq(key, KILN_STR("JAVA_VERSION")) && value.len > 2 && value.len < size)
            snprintf(to, size, "%.*s", (int)value.len - 2, value.ptr + 1);
    }
}

/* The number that a line "#define NAME 7" has. */
static long defined(struct kiln_str text, const char *name)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "#define %s ", name);
    const char *at = text.len ? memmem(text.ptr, text.len, line, (size_t)n) : NULL;
    long value = 0;

    if (!at)
        return -1;
    for (at += n; at < text.ptr + text.len && is_digit(*at) && value < 100000; at++)
        value = value * 10 + (*at - '0');
    return value;
}

static void read_node(const struct kiln_facts *facts, char *to, size_t size)
{
    char text[FILE_MAX_BYTES];
    size_t len = read_beside(facts, "include/node/node_version.h", text, sizeof(text));
    struct kiln_str header = {text, len};
    long major = defined(header, "NODE_MAJOR_VERSION"), minor;

    minor = defined(header, "NODE_MINOR_VERSION");
    if (major >= 0 && minor >= 0)
        snprintf(to, size, "%ld.%ld.%ld", major, minor, defined(header, "NODE_PATCH_VERSION"));
}

/* ---- all of it ---- */

/* Where only a part is known ("3.11"), a variable may know more; it may also be of another one. */
static void refine(char *version, size_t size, struct kiln_str said)
{
    said = last_version(said);
    if (said.len && said.len < size && kiln_str_starts(said, kiln_str_of(version)))
        snprintf(version, size, "%.*s", KILN_STR_ARG(said));
}

static void put(struct kiln_facts *facts, const char *name, const char *version)
{
    kiln_attrs_default(&facts->attrs, "process.runtime.name", kiln_str_of(name));
    kiln_attrs_default(&facts->attrs, "process.runtime.version", kiln_str_of(version));
    kiln_attrs_default(&facts->attrs, "runtime.version",
                       kiln_attrs_get(&facts->attrs, KILN_STR("process.runtime.version")));
}

static void put_go(struct kiln_facts *facts)
{
    struct kiln_go_info info;

    if (kiln_go_info_read(facts->executable->elf, &info) < 0)
        return;
    put(facts, "go", info.version);
    kiln_attrs_default(&facts->attrs, "service.version", kiln_str_of(info.module_version));
    kiln_attrs_default(&facts->attrs, "git.commit", kiln_str_of(info.revision));
}

void kiln_facts_put_runtime(struct kiln_facts *facts)
{
    const struct runtime *runtime = find_runtime(facts->name);
    char version[VERSION_MAX] = "";
    struct kiln_str path;

    if (facts->executable && facts->executable->is_go && facts->executable->elf) {
        put_go(facts);
        return;
    }
    if (!runtime) {
        put(facts, "", "");
        return;
    }
    if (strcmp(runtime->name, "java") == 0)
        read_java(facts, version, sizeof(version));
    else if (strcmp(runtime->name, "nodejs") == 0)
        read_node(facts, version, sizeof(version));
    path = last_version(kiln_str_of(facts->path));
    if (!version[0] && path.len)
        snprintf(version, sizeof(version), "%.*s", KILN_STR_ARG(path));
    if (runtime->variable)
        refine(version, sizeof(version), kiln_facts_env(facts, runtime->variable));
    put(facts, runtime->name, version);
}
