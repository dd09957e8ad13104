/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "fake_proc.h"
#include "host/containers.h"
#include "test.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TASKS "root/run/containerd/io.containerd.runtime.v2.task/"

static struct fake_proc fake;
static struct kiln_containers *containers;
static int64_t blocks;

static void begin(void)
{
    blocks = kiln_mem_live();
    fake_proc_init(&fake);
    fake_proc_add(&fake, 1, 0, 1000000000);
    fake_proc_add(&fake, 7, 1, 5000000000);
    CHECK_OK(kiln_containers_new(&containers));
}

static void end(void)
{
    kiln_containers_free(containers);
    fake_proc_done(&fake);
    CHECK_EQ(kiln_mem_live(), blocks);
}

static const struct kiln_container *found(const char *runtime, const char *pod_uid)
{
    struct kiln_place place = {.container_id = ID, .runtime = runtime};
    int proc = open(fake.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int dir = openat(proc, "7", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct kiln_container *container;

    snprintf(place.pod_uid, sizeof(place.pod_uid), "%s", pod_uid);
    container = kiln_containers_get(containers, proc, dir, &place);
    close(dir);
    close(proc);
    return container;
}

static const char *fact(const char *runtime, enum kiln_container_fact wanted)
{
    return found(runtime, "")->facts[wanted];
}

static const char docker[] =
    "{\"StreamConfig\":{},\"ID\":\"" ID "\",\"Args\":[\"--password\",\"secret\"],"
    "\"Config\":{\"Hostname\":\"x\",\"Env\":[\"KEY=secret\"],\"Image\":\"shop/web:1.2\","
    "\"Labels\":{\"com.docker.compose.service\":\"web\",\"com.docker.compose.project\":\"shop\","
    "\"org.opencontainers.image.revision\":\"1234abcd\",\"maintainer\":\"x\"}},"
    "\"Image\":\"sha256:00\",\"Name\":\"/shop-web-1\"}";

TEST(containers, of_docker)
{
    begin();
    fake_proc_text(&fake, 1, "root/var/lib/docker/containers/" ID "/config.v2.json", docker);
    CHECK_TEXT(fact("docker", KILN_CONTAINER_NAME), "shop-web-1");
    CHECK_TEXT(fact("docker", KILN_CONTAINER_IMAGE), "shop/web:1.2");
    CHECK_TEXT(fact("docker", KILN_CONTAINER_SERVICE), "web");
    CHECK_TEXT(fact("docker", KILN_CONTAINER_NAMESPACE), "shop");
    CHECK_TEXT(fact("docker", KILN_CONTAINER_REVISION), "1234abcd");
    CHECK_TEXT(fact("docker", KILN_CONTAINER_VERSION), "");
    end();
}

TEST(containers, of_docker_that_keeps_them_elsewhere)
{
    begin();
    fake_proc_text(&fake, 1, "root/etc/docker/daemon.json",
                   "{\"debug\": true, \"data-root\": \"/mnt/docker\"}");
    fake_proc_text(&fake, 1, "root/mnt/docker/containers/" ID "/config.v2.json", docker);
    CHECK_TEXT(fact("", KILN_CONTAINER_NAME), "shop-web-1");
    end();
}

TEST(containers, of_containerd_in_a_pod)
{
    begin();
    fake_proc_text(&fake, 1, TASKS "k8s.io/" ID "/config.json",
                   "{\"ociVersion\":\"1.0\",\"process\":{\"args\":[\"secret\"],\"env\":[\"A=b\"]},"
                   "\"annotations\":{\"io.kubernetes.cri.container-name\":\"web\","
                   "\"io.kubernetes.cri.sandbox-name\":\"web-6c8d-x2k9z\","
                   "\"io.kubernetes.cri.sandbox-namespace\":\"shop\","
                   "\"io.kubernetes.cri.image-name\":\"registry:5000/web:7\"}}");
    CHECK_TEXT(fact("containerd", KILN_CONTAINER_IN_POD), "web");
    CHECK_TEXT(fact("containerd", KILN_CONTAINER_POD), "web-6c8d-x2k9z");
    CHECK_TEXT(fact("containerd", KILN_CONTAINER_POD_NAMESPACE), "shop");
    CHECK_TEXT(fact("containerd", KILN_CONTAINER_IMAGE), "registry:5000/web:7");
    end();
}

TEST(containers, of_podman)
{
    begin();
    fake_proc_text(&fake, 1,
                   "root/var/lib/containers/storage/overlay-containers/" ID "/userdata/config.json",
                   "{\"annotations\":{\"org.opencontainers.image.version\":\"3\"}}");
    fake_proc_text(&fake, 1, "root/var/lib/containers/storage/overlay-containers/containers.json",
                   "[{\"id\":\"00\",\"names\":[\"other\"]},"
                   "{\"id\":\"" ID "\",\"names\":[\"web\",\"old\"],\"image\":\"00\","
                   "\"metadata\":\"{\\\"image-name\\\":\\\"docker.io/shop/web:3\\\"}\"}]");
    CHECK_TEXT(fact("podman", KILN_CONTAINER_NAME), "web");
    CHECK_TEXT(fact("podman", KILN_CONTAINER_IMAGE), "docker.io/shop/web:3");
    CHECK_TEXT(fact("podman", KILN_CONTAINER_VERSION), "3");
    end();
}

TEST(containers, of_cri_o)
{
    begin();
    fake_proc_text(&fake, 1,
                   "root/run/containers/storage/overlay-containers/" ID "/userdata/config.json",
                   "{\"annotations\":{\"io.kubernetes.container.name\":\"web\","
                   "\"io.kubernetes.pod.name\":\"web-0\",\"io.kubernetes.pod.namespace\":\"shop\","
                   "\"io.kubernetes.cri-o.ImageName\":\"web:7\"}}");
    CHECK_TEXT(fact("cri-o", KILN_CONTAINER_POD), "web-0");
    CHECK_TEXT(fact("cri-o", KILN_CONTAINER_IMAGE), "web:7");
    end();
}

TEST(containers, a_pod_whose_description_cannot_be_read_is_told_by_its_own_files)
{
    begin();
    fake_proc_text(&fake, 1, "root/etc/hostname", "node-1\n");
    fake_proc_text(&fake, 7, "root/etc/hostname", "web-0\n");
    fake_proc_text(&fake, 7, "root/var/run/secrets/kubernetes.io/serviceaccount/namespace", "shop");
    fake_proc_text(&fake, 7, "root/etc/podinfo/labels",
                   "app.kubernetes.io/name=\"cart\"\nother=\"x\"\nbroken\n");
    CHECK_TEXT(found("", "u")->facts[KILN_CONTAINER_POD], "web-0");
    CHECK_TEXT(found("", "u")->facts[KILN_CONTAINER_POD_NAMESPACE], "shop");
    CHECK_TEXT(found("", "u")->facts[KILN_CONTAINER_SERVICE], "cart");
    end();
    begin();
    fake_proc_text(&fake, 1, "root/etc/hostname", "node-1\n");
    fake_proc_text(&fake, 7, "root/etc/hostname", "node-1\n");
    CHECK_TEXT(found("", "u")->facts[KILN_CONTAINER_POD], "");
    end();
}

TEST(containers, are_read_once)
{
    begin();
    CHECK_TEXT(fact("docker", KILN_CONTAINER_NAME), "");
    fake_proc_text(&fake, 1, "root/var/lib/docker/containers/" ID "/config.v2.json", docker);
    CHECK_TEXT(fact("docker", KILN_CONTAINER_NAME), "");
    end();
}

TEST(containers, files_that_are_broken_say_what_they_say_up_to_there)
{
    begin();
    fake_proc_text(&fake, 1, "root/var/lib/docker/containers/" ID "/config.v2.json",
                   "{\"Name\":\"/web\",\"Config\":{\"Image\":7,\"Labels\":null}, \"x\":[[[");
    CHECK_TEXT(fact("docker", KILN_CONTAINER_NAME), "web");
    end();
}

TEST(containers, a_description_that_leads_out_of_the_root_is_not_read)
{
    begin();
    fake_proc_text(&fake, 7, "secret.json", docker);
    fake_proc_text(&fake, 1, "root/var/lib/docker/containers/" ID "/.keep", "");
    fake_proc_link(&fake, 1, "root/var/lib/docker/containers/" ID "/config.v2.json",
                   "../../../../../../../7/secret.json");
    CHECK_TEXT(fact("docker", KILN_CONTAINER_NAME), "");
    end();
}

/* Whoever may make control groups can give one the name of somebody's container. */
TEST(containers, what_is_known_at_one_place_is_not_told_of_another)
{
    struct kiln_place place = {.container_id = ID, .runtime = "docker", .where = 1};
    const struct kiln_container *first;

    begin();
    first = kiln_containers_get(containers, -1, -1, &place);
    CHECK(first && kiln_containers_get(containers, -1, -1, &place) == first);
    place.where = 2;
    CHECK(kiln_containers_get(containers, -1, -1, &place) != first);
    end();
}

TEST(containers, a_thousand_are_remembered_and_no_more)
{
    struct kiln_place place = {.runtime = "docker"};
    int64_t many;

    begin();
    for (int i = 0; i < 3000; i++) {
        snprintf(place.container_id, sizeof(place.container_id), "%064x", i);
        CHECK(kiln_containers_get(containers, -1, -1, &place) != NULL);
        if (i == 1100)
            many = kiln_mem_live();
    }
    CHECK_EQ(kiln_mem_live(), many);
    place.container_id[0] = '\0';
    CHECK(!kiln_containers_get(containers, -1, -1, &place));
    end();
}

TEST(containers, every_allocation_may_fail)
{
    for (uint64_t n = 1; n < 20; n++) {
        begin();
        fake_proc_text(&fake, 1, "root/var/lib/docker/containers/" ID "/config.v2.json", docker);
        kiln_mem_fail_at(n);
        found("docker", "u");
        kiln_mem_fail_at(0);
        end();
    }
}
