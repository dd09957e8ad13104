/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of what was found, by container id; the one longest not asked for makes room.  Files that
 * are not there are looked for again after a minute.
 */
#include "host/containers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "host/containers_int.h"
#include "host/link.h"

enum {
    REMEMBERED = 1024,
    BUCKETS = 256,
    DESCRIPTION_MAX = 1 << 20,
    STORAGE_MAX = 8 << 20,
    DOWNWARD_MAX = 64 << 10,
};
#define KEEP_NS      (600 * KILN_NS_PER_S)
#define TRY_AGAIN_NS (60 * KILN_NS_PER_S)

struct known {
    struct kiln_container pub;
    struct known *next; /* of its bucket */
    struct kiln_link use;
    uint64_t until_ns, where;
    char id[sizeof(((struct kiln_place *)0)->container_id)];
    char texts[]; /* of the facts, each ended by NUL */
};

struct kiln_containers {
    struct known *buckets[BUCKETS];
    struct kiln_link uses; /* the last used is first */
    uint32_t n;
};

int kiln_containers_new(struct kiln_containers **ret_containers)
{
    struct kiln_containers *containers = kiln_calloc(1, sizeof(*containers));

    if (!containers)
        return -ENOMEM;
    kiln_link_init(&containers->uses);
    *ret_containers = containers;
    return 0;
}

/* ---- the table ---- */

static struct known **bucket(struct kiln_containers *containers, const char *id)
{
    return &containers->buckets[kiln_hash(id, strlen(id)) % BUCKETS];
}

static void forget(struct kiln_containers *containers, struct known *known)
{
    struct known **at = bucket(containers, known->id);

    while (*at != known)
        at = &(*at)->next;
    *at = known->next;
    kiln_link_drop(&known->use);
    containers->n--;
    kiln_free(known);
}

void kiln_containers_free(struct kiln_containers *containers)
{
    if (!containers)
        return;
    while (!kiln_link_empty(&containers->uses))
        forget(containers, KILN_OF_LINK(struct known, use, containers->uses.next));
    kiln_free(containers);
}

static struct known *find(struct kiln_containers *containers, const struct kiln_place *place)
{
    struct known *known = *bucket(containers, place->container_id);

    while (known && (known->where != place->where || strcmp(known->id, place->container_id) != 0))
        known = known->next;
    if (known && kiln_clock_mono_ns() >= known->until_ns) {
        forget(containers, known);
        return NULL;
    }
    return known;
}

static struct known *remember(struct kiln_containers *containers, const struct kiln_place *place,
                              const struct kiln_container_draft *draft)
{
    struct known *known, **at = bucket(containers, place->container_id);
    size_t size = 0;
    char *text;

    for (int i = 0; i < KILN_CONTAINER_FACTS; i++)
        size += strlen(draft->texts[i]) + 1;
    known = kiln_calloc(1, sizeof(*known) + size);
    if (!known)
        return NULL;
    text = known->texts;
    for (int i = 0; i < KILN_CONTAINER_FACTS; i++) {
        known->pub.facts[i] = text;
        text = stpcpy(text, draft->texts[i]) + 1;
    }
    snprintf(known->id, sizeof(known->id), "%s", place->container_id);
    known->where = place->where;
    known->until_ns = kiln_clock_mono_ns() + (size > KILN_CONTAINER_FACTS ? KEEP_NS : TRY_AGAIN_NS);
    while (containers->n >= REMEMBERED)
        forget(containers, KILN_OF_LINK(struct known, use, containers->uses.prev));
    known->next = *at;
    *at = known;
    kiln_link_init(&known->use);
    containers->n++;
    return known;
}

/* ---- files ---- */

/* The whole of a file beneath a root; the caller wipes it with drop().  NULL: not to be had. */
static char *load(int root, const char *path, size_t max, size_t *ret_len)
{
    struct stat st;
    int fd = kiln_open_beneath(root, path, RESOLVE_IN_ROOT, &st);
    size_t size =
        fd >= 0 && st.st_size >= 0 && (uint64_t)st.st_size <= max ? (size_t)st.st_size : 0;
    char *text = size ? kiln_malloc(size) : NULL;
    ssize_t got = text ? pread(fd, text, size, 0) : -1;

    if (fd >= 0)
        close(fd);
    if (got <= 0) {
        kiln_free(text);
        return NULL;
    }
    *ret_len = (size_t)got;
    return text;
}

/* Descriptions hold environments and arguments: nothing of them stays in memory. */
static void drop(char *text, size_t len)
{
    explicit_bzero(text, len);
    kiln_free(text);
}

/* Shows a file to a reader; false: there is none. */
static bool read_with(int root, const char *path, struct kiln_container_draft *draft,
                      void (*read)(struct kiln_container_draft *draft, struct kiln_str text))
{
    size_t len;
    char *text = load(root, path, DESCRIPTION_MAX, &len);

    if (!text)
        return false;
    read(draft, (struct kiln_str){text, len});
    drop(text, len);
    return true;
}

/* Where docker keeps its data, if it was told; "var/lib/docker" otherwise. */
static void find_docker(int root, char *to, size_t size)
{
    size_t len;
    char *text = load(root, "etc/docker/daemon.json", DESCRIPTION_MAX, &len);

    to[0] = '\0';
    if (text) {
        kiln_container_member((struct kiln_str){text, len}, "data-root", to, size);
        drop(text, len);
    }
    if (!to[0])
        snprintf(to, size, "var/lib/docker");
}

static bool read_docker(int root, const char *id, struct kiln_container_draft *draft)
{
    char folder[512], path[768];

    find_docker(root, folder, sizeof(folder));
    snprintf(path, sizeof(path), "%s/containers/%s/config.v2.json", folder, id);
    return read_with(root, path, draft, kiln_container_read_docker);
}

static bool read_containerd(int root, const char *id, struct kiln_container_draft *draft)
{
    static const char *const folders[] = {
        "run/containerd/io.containerd.runtime.v2.task/k8s.io",
        "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io",
        "run/containerd/io.containerd.runtime.v2.task/default",
        "run/containerd/io.containerd.runtime.v2.task/moby",
    };
    char path[256];

    for (size_t i = 0; i < KILN_ARRAY_LEN(folders); i++) {
        snprintf(path, sizeof(path), "%s/%s/config.json", folders[i], id);
        if (read_with(root, path, draft, kiln_container_read_oci))
            return true;
    }
    return false;
}

static void read_storage(int root, const char *id, struct kiln_container_draft *draft)
{
    size_t len;
    char *text = load(root, "var/lib/containers/storage/overlay-containers/containers.json",
                      STORAGE_MAX, &len);

    if (!text)
        return;
    kiln_container_read_storage(draft, (struct kiln_str){text, len}, kiln_str_of(id));
    drop(text, len);
}

/* Podman and cri-o share their storage. */
static bool read_podman(int root, const char *id, struct kiln_container_draft *draft)
{
    static const char *const folders[] = {
        "run/containers/storage/overlay-containers",
        "var/lib/containers/storage/overlay-containers",
    };
    char path[256];

    for (size_t i = 0; i < KILN_ARRAY_LEN(folders); i++) {
        snprintf(path, sizeof(path), "%s/%s/userdata/config.json", folders[i], id);
        if (!read_with(root, path, draft, kiln_container_read_oci))
            continue;
        read_storage(root, id, draft);
        return true;
    }
    return false;
}

static void read_host(int root, const struct kiln_place *place, struct kiln_container_draft *draft)
{
    static const struct {
        const char *runtimes;
        bool (*read)(int root, const char *id, struct kiln_container_draft *draft);
    } ways[] = {
        {"docker", read_docker}, {"containerd", read_containerd}, {"podman cri-o", read_podman}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(ways); i++)
        if (strstr(ways[i].runtimes, place->runtime) &&
            ways[i].read(root, place->container_id, draft))
            return;
}

/* The one line of a file. */
static void read_line(int root, const char *path, char *to, size_t size)
{
    size_t len;
    char *text = load(root, path, DOWNWARD_MAX, &len);
    struct kiln_str line = {text, text ? len : 0};

    line = kiln_str_trim(line);
    if (line.len >= size)
        line.len = 0;
    snprintf(to, size, "%.*s", KILN_STR_ARG(line));
    if (text)
        drop(text, len);
}

/* A pod's own files.  Its name is that of its host, unless it shares the network of the node. */
static void read_pod(int root, int host, struct kiln_container_draft *draft)
{
    char name[KILN_CONTAINER_TEXT_MAX], node[KILN_CONTAINER_TEXT_MAX];

    read_with(root, "etc/podinfo/annotations", draft, kiln_container_read_downward);
    read_with(root, "etc/podinfo/labels", draft, kiln_container_read_downward);
    if (draft->texts[KILN_CONTAINER_POD][0])
        return;
    read_line(root, "var/run/secrets/kubernetes.io/serviceaccount/namespace", name, sizeof(name));
    kiln_container_say(draft, KILN_CONTAINER_POD_NAMESPACE, kiln_str_of(name));
    read_line(root, "etc/hostname", name, sizeof(name));
    read_line(host, "etc/hostname", node, sizeof(node));
    if (strcmp(name, node) != 0)
        kiln_container_say(draft, KILN_CONTAINER_POD, kiln_str_of(name));
}

/* That of the first process, or where it is not for us to see, our own. */
static int open_host(int proc)
{
    int host = openat(proc, "1/root", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return host < 0 && errno == EACCES ? openat(proc, "self/root", O_PATH | O_DIRECTORY | O_CLOEXEC)
                                       : host;
}

static struct known *learn(struct kiln_containers *containers, int proc, int dir,
                           const struct kiln_place *place)
{
    struct kiln_container_draft *draft = kiln_calloc(1, sizeof(*draft));
    int host = open_host(proc);
    int root = place->pod_uid[0] ? openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct known *known = NULL;

    if (draft && host >= 0)
        read_host(host, place, draft);
    if (draft && root >= 0)
        read_pod(root, host, draft);
    if (draft)
        known = remember(containers, place, draft);
    if (host >= 0)
        close(host);
    if (root >= 0)
        close(root);
    kiln_free(draft);
    return known;
}

const struct kiln_container *kiln_containers_get(struct kiln_containers *containers, int proc,
                                                 int dir, const struct kiln_place *place)
{
    struct known *known;

    if (!place->container_id[0])
        return NULL;
    known = find(containers, place);
    if (!known)
        known = learn(containers, proc, dir, place);
    if (!known)
        return NULL;
    kiln_link_first(&containers->uses, &known->use);
    return &known->pub;
}
