/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of containers.  The first byte says which: "d" docker's, "o" the OCI's, "s" podman's
 * storage, all others what Kubernetes writes into a pod.
 */
#include "fuzz.h"
#include "host/containers_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data + 1, size - 1};
    struct kiln_container_draft draft = {0};

    if (!size)
        return 0;
    if (data[0] == 'd')
        kiln_container_read_docker(&draft, text);
    else if (data[0] == 'o')
        kiln_container_read_oci(&draft, text);
    else if (data[0] == 's')
        kiln_container_read_storage(&draft, text, KILN_STR("ab"));
    else
        kiln_container_read_downward(&draft, text);
    for (int i = 0; i < KILN_CONTAINER_FACTS; i++)
        FUZZ_CHECK(!draft.texts[i][0] == !draft.rank[i]);
    return 0;
}
