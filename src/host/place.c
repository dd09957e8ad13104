/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of control groups are read from the root on; each name may say something:
 *
 *   /docker/ID                                       docker, its own way
 *   /system.slice/docker-ID.scope                    docker by systemd
 *   /kubepods/burstable/podUID/ID                    Kubernetes
 *   /kubepods.slice/.../kubepods-burstable-podUID.slice/cri-containerd-ID.scope
 *   .../kubepods-podUID.slice:cri-containerd:ID      containerd without systemd's names
 *   /machine.slice/libpod-ID.scope                   podman; crio-ID.scope: cri-o
 *   /ecs/TASK/TASK-NUMBER                            Amazon's ECS
 *   /lxc/NAME, /lxc.payload.NAME                     LXC
 *   /machine.slice/machine-NAME.scope, systemd-nspawn@NAME.service
 *   /system.slice/NAME.service
 *
 * ID has 64 hexadecimal digits.  systemd writes UIDs with "_" for "-", and "\x2d" for what its own
 * names may not hold.  A unit around a container is that of its manager and says nothing, but for
 * podman, whose containers are units' own processes.
 */
#include "host/place.h"

#include <stdio.h>

#include "base/hash.h"

enum { ID_DIGITS = 64, ECS_DIGITS = 32, UID_LEN = 36 };

#define NAME(literal) KILN_STR(literal)

static bool is_hex(struct kiln_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f')))
            return false;
    return s.len > 0;
}

/* Without the prefix; false: it has another. */
static bool cut_prefix(struct kiln_str *s, struct kiln_str prefix)
{
    if (s->len <= prefix.len || !kiln_str_starts(*s, prefix))
        return false;
    s->ptr += prefix.len;
    s->len -= prefix.len;
    return true;
}

static bool cut_suffix(struct kiln_str *s, struct kiln_str suffix)
{
    if (s->len <= suffix.len || !kiln_str_ends(*s, suffix))
        return false;
    s->len -= suffix.len;
    return true;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What systemd has escaped.  Empty where it does not fit. */
static void unescape(struct kiln_str s, char *to, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len && n + 1 < size; i++) {
        bool escaped = s.len - i >= 4 && s.ptr[i] == '\\' && s.ptr[i + 1] == 'x' &&
                       digit(s.ptr[i + 2]) >= 0 && digit(s.ptr[i + 3]) >= 0;

        to[n++] = escaped ? (char)(digit(s.ptr[i + 2]) << 4 | digit(s.ptr[i + 3])) : s.ptr[i];
        i += escaped ? 3 : 0;
    }
    to[n] = '\0';
}

/* ---- containers ---- */

/* All that was outside of it no longer counts. */
static void enter(struct kiln_place *place, const char *runtime)
{
    place->container_id[0] = place->container_name[0] = '\0';
    if (strcmp(runtime, "podman") != 0)
        place->unit[0] = '\0';
    place->runtime = runtime;
}

static void enter_named(struct kiln_place *place, const char *runtime, struct kiln_str name)
{
    enter(place, runtime);
    place->pod_uid[0] = '\0';
    unescape(name, place->container_name, sizeof(place->container_name));
}

static bool is_uid(struct kiln_str s)
{
    if (s.len == 32)
        return is_hex(s); /* of pods that are told by files */
    if (s.len != UID_LEN)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? s.ptr[i] != '-' && s.ptr[i] != '_' : digit(s.ptr[i]) < 0)
            return false;
    }
    return true;
}

/* "podUID", "kubepods-besteffort-podUID.slice" */
static bool take_pod(struct kiln_place *place, struct kiln_str name)
{
    const char *at;

    cut_suffix(&name, NAME(".slice"));
    if (kiln_str_starts(name, NAME("kubepods-")) &&
        (at = memmem(name.ptr, name.len, "-pod", 4)) != NULL)
        name = (struct kiln_str){at + 1, name.len - (size_t)(at + 1 - name.ptr)};
    if (!cut_prefix(&name, NAME("pod")) || !is_uid(name))
        return false;
    enter(place, "");
    snprintf(place->pod_uid, sizeof(place->pod_uid), "%.*s", KILN_STR_ARG(name));
    for (char *c = place->pod_uid; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return true;
}

static bool is_id(struct kiln_str s)
{
    struct kiln_str task = {s.ptr, ECS_DIGITS};
    uint64_t number;

    if (s.len == ID_DIGITS)
        return is_hex(s);
    if (s.len <= ECS_DIGITS + 1 || s.len > ID_DIGITS || s.ptr[ECS_DIGITS] != '-' || !is_hex(task))
        return false;
    s = (struct kiln_str){s.ptr + ECS_DIGITS + 1, s.len - ECS_DIGITS - 1};
    return s.ptr[0] != '+' && s.ptr[0] != '-' && kiln_str_parse_u64(s, &number) == 0;
}

/* Whose container the name is of, what stands before its id being cut off. */
static const char *runtime_of(struct kiln_str *name, struct kiln_str parent)
{
    static const struct {
        struct kiln_str prefix;
        const char *runtime;
    } known[] = {
        {{"docker-", 7}, "docker"},
        {{"cri-containerd-", 15}, "containerd"},
        {{"containerd-", 11}, "containerd"},
        {{"nerdctl-", 8}, "containerd"},
        {{"libpod-payload-", 15}, "podman"},
        {{"libpod-", 7}, "podman"},
        {{"crio-", 5}, "cri-o"},
    };
    const char *colon = name->len ? memrchr(name->ptr, ':', name->len) : NULL;

    if (colon) {
        struct kiln_str before = {name->ptr, (size_t)(colon - name->ptr)};

        *name = (struct kiln_str){colon + 1, name->len - before.len - 1};
        return kiln_str_ends(before, NAME("cri-containerd")) ? "containerd" : "";
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (cut_prefix(name, known[i].prefix))
            return known[i].runtime;
    return kiln_str_eq(parent, NAME("docker")) ? "docker" : "";
}

static bool take_container(struct kiln_place *place, struct kiln_str name, struct kiln_str parent)
{
    struct kiln_str rest = name, pod = kiln_str_cut(&rest, ':');
    const char *runtime;

    if (rest.ptr)
        take_pod(place, pod);
    cut_suffix(&name, NAME(".scope"));
    runtime = runtime_of(&name, parent);
    if (!is_id(name))
        return false;
    enter(place, runtime);
    snprintf(place->container_id, sizeof(place->container_id), "%.*s", KILN_STR_ARG(name));
    return true;
}

/* LXC's and systemd's, which have names. */
static bool take_named(struct kiln_place *place, struct kiln_str name, struct kiln_str parent)
{
    if (kiln_str_eq(parent, NAME("lxc")) || cut_prefix(&name, NAME("lxc.payload."))) {
        enter_named(place, "lxc", name);
        return true;
    }
    if ((kiln_str_starts(name, NAME("systemd-nspawn@")) && cut_suffix(&name, NAME(".service"))) ||
        (kiln_str_starts(name, NAME("machine-")) && cut_suffix(&name, NAME(".scope")))) {
        if (!cut_prefix(&name, NAME("machine-")))
            cut_prefix(&name, NAME("systemd-nspawn@"));
        if (!kiln_str_starts(name, NAME("qemu")))
            enter_named(place, "systemd-nspawn", name);
        return true;
    }
    return false;
}

/* ---- units ---- */

/* The manager of a user is no service: what it runs is. */
static void take_unit(struct kiln_place *place, struct kiln_str name)
{
    if (kiln_str_ends(name, NAME(".service")) && name.len > 8 &&
        !kiln_str_starts(name, NAME("user@")))
        unescape(name, place->unit, sizeof(place->unit));
}

static void parse_path(struct kiln_str path, struct kiln_place *ret_place)
{
    struct kiln_str parent = KILN_STR_NONE;

    *ret_place = (struct kiln_place){.runtime = ""};
    while (path.len) {
        struct kiln_str name = kiln_str_cut(&path, '/');

        if (!take_named(ret_place, name, parent) && !take_pod(ret_place, name) &&
            !take_container(ret_place, name, parent))
            take_unit(ret_place, name);
        parent = name;
    }
}

/* ---- all of them ---- */

static bool in_container(const struct kiln_place *place)
{
    return place->container_id[0] || place->container_name[0] || place->pod_uid[0];
}

/* How much a hierarchy is to be believed: 2 the unified one, 1 systemd's own, 0 any other. */
static int rank_of(struct kiln_str id, struct kiln_str controllers)
{
    if (kiln_str_eq(id, NAME("0")) && !controllers.len)
        return 2;
    return kiln_str_eq(controllers, NAME("name=systemd"));
}

void kiln_place_parse(struct kiln_str text, struct kiln_place *ret_place)
{
    int best = -1;

    *ret_place = (struct kiln_place){.runtime = ""};
    while (text.len) {
        struct kiln_str line = kiln_str_cut(&text, '\n');
        struct kiln_str id = kiln_str_cut(&line, ':'), controllers = kiln_str_cut(&line, ':');
        int rank = rank_of(id, controllers);
        struct kiln_place place;

        parse_path(line, &place);
        if (rank == 0)
            place.unit[0] = '\0';
        /* a container is a better answer than none, whoever tells of it */
        rank += in_container(&place) ? 3 : place.unit[0] ? 0 : -3;
        if (rank <= best)
            continue;
        best = rank;
        place.where = kiln_hash(line.ptr, line.len);
        *ret_place = place;
    }
}
