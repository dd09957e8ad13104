/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containers - what the host's files say of a container: its name, image, pod, labels.
 *
 * Whoever runs a container leaves its description on the host: docker config.v2.json, containerd,
 * podman and cri-o the OCI's config.json.  They are read beneath the host's root, once for a
 * container, and what else they hold (arguments, environment) is wiped.  No runtime is asked: that
 * would take the right to command it.  Where a pod's description cannot be read, the files that
 * Kubernetes puts into its containers say a part of it.
 *
 * Up to 1,024 containers are remembered, for ten minutes each.
 *
 * Threads: one owner, the reader's thread.
 */
#ifndef KILN_HOST_CONTAINERS_H
#define KILN_HOST_CONTAINERS_H

#include "base/attr.h"
#include "host/place.h"

enum kiln_container_fact {
    KILN_CONTAINER_NAME,
    KILN_CONTAINER_IMAGE,   /* "registry/shop:7" */
    KILN_CONTAINER_SERVICE, /* that a label names */
    KILN_CONTAINER_NAMESPACE,
    KILN_CONTAINER_VERSION,
    KILN_CONTAINER_REVISION,
    KILN_CONTAINER_POD,
    KILN_CONTAINER_POD_NAMESPACE,
    KILN_CONTAINER_POD_UID,
    KILN_CONTAINER_IN_POD, /* its name there */
    KILN_CONTAINER_FACTS,
};

struct kiln_container {
    const char *facts[KILN_CONTAINER_FACTS]; /* never NULL */
};

struct kiln_containers;
KILN_CHECK int kiln_containers_new(struct kiln_containers **ret_containers);
void kiln_containers_free(struct kiln_containers *containers);

/*
 * What is known of the container at `place`; `proc` is /proc, `dir` the folder of a process that is
 * in it.  NULL: it has no id, or there is no memory.  Good until the next call.
 */
const struct kiln_container *kiln_containers_get(struct kiln_containers *containers, int proc,
                                                 int dir, const struct kiln_place *place);

#endif /* KILN_HOST_CONTAINERS_H */
