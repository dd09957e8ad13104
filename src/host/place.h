/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place - where a process runs, as the names of its control groups tell: which container, pod and
 * unit of systemd.
 *
 * Known are docker, containerd, podman, cri-o, Kubernetes with any of them, ECS, LXC and
 * systemd-nspawn, in version 1 and 2 of control groups, within each other: the innermost counts.
 *
 * Threads: no state.
 */
#ifndef KILN_HOST_PLACE_H
#define KILN_HOST_PLACE_H

#include "base/str.h"

struct kiln_place {
    char container_id[80];    /* "" */
    char container_name[256]; /* of LXC and systemd-nspawn, which have names instead; "" */
    char pod_uid[40];         /* "" */
    char unit[256];           /* "nginx.service"; "" */
    const char *runtime;      /* "docker", "containerd", "podman", "cri-o", "lxc",
                                 "systemd-nspawn"; "": not known */
    uint64_t where; /* hash of the path that tells this: anybody may make one that tells the same */
};

/* Of the text of /proc/PID/cgroup. */
void kiln_place_parse(struct kiln_str text, struct kiln_place *ret_place);

#endif /* KILN_HOST_PLACE_H */
