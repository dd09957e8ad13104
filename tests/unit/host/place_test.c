/* SPDX-License-Identifier: Apache-2.0 */
#include "host/place.h"
#include "test.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define UID "11111111-2222-3333-4444-555555555555"

static struct kiln_place place;

/* "id", or "name", and "runtime"; pod and unit, where they are expected. */
static void check(const char *text, const char *container, const char *runtime, const char *pod,
                  const char *unit)
{
    kiln_place_parse(kiln_str_of(text), &place);
    CHECK_TEXT(place.container_id[0] ? place.container_id : place.container_name, container);
    CHECK_TEXT(place.runtime, runtime);
    CHECK_TEXT(place.pod_uid, pod);
    CHECK_TEXT(place.unit, unit);
}

TEST(place, docker_with_and_without_systemd)
{
    check("0::/system.slice/docker-" ID ".scope\n", ID, "docker", "", "");
    check("0::/docker/" ID "\n", ID, "docker", "", "");
    check("12:pids:/docker/" ID "\n11:memory:/docker/" ID "\n0::/system.slice/containerd.service\n",
          ID, "docker", "", "");
}

TEST(place, containerd_and_cri_o_of_kubernetes)
{
    check("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
          "11111111_2222_3333_4444_555555555555.slice/cri-containerd-" ID ".scope\n",
          ID, "containerd", UID, "");
    check("0::/kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice/crio-" ID
          ".scope/container\n",
          ID, "cri-o", UID, "");
    check("4:memory:/kubepods/besteffort/pod" UID "/" ID "\n", ID, "", UID, "");
    check("0::/system.slice/containerd.service/kubepods-burstable-"
          "pod11111111_2222_3333_4444_555555555555.slice:cri-containerd:" ID "\n",
          ID, "containerd", UID, "");
    check("0::/kubepods/pod0123456789abcdef0123456789abcdef/" ID "\n", ID, "",
          "0123456789abcdef0123456789abcdef", "");
}

TEST(place, podman_and_the_unit_that_it_is)
{
    check("0::/machine.slice/libpod-" ID ".scope/container\n", ID, "podman", "", "");
    check("0::/system.slice/shop.service/libpod-payload-" ID "\n", ID, "podman", "",
          "shop.service");
    check("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n", ID,
          "podman", "", "");
    check("0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "", "", "");
}

TEST(place, lxc_and_nspawn_have_names)
{
    check("0::/lxc.payload.web/system.slice/nginx.service\n", "web", "lxc", "", "nginx.service");
    check("3:memory:/lxc/web/init.scope\n", "web", "lxc", "", "");
    check("0::/lxc.monitor.web\n", "", "", "", "");
    check("0::/machine.slice/machine-my\\x2dweb.scope/payload\n", "my-web", "systemd-nspawn", "",
          "");
    check("0::/machine.slice/systemd-nspawn@web.service/payload/system.slice/cron.service\n", "web",
          "systemd-nspawn", "", "cron.service");
    check("0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope\n", "", "", "", "");
}

TEST(place, units_of_the_host_and_of_users)
{
    check("0::/system.slice/nginx.service\n", "", "", "", "nginx.service");
    check("0::/system.slice/system-postgresql.slice/postgresql@15\\x2dmain.service\n", "", "", "",
          "postgresql@15-main.service");
    check("0::/user.slice/user-1000.slice/user@1000.service/app.slice/sync.service\n", "", "", "",
          "sync.service");
    check("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "", "", "");
    check("0::/user.slice/user-1000.slice/session-3.scope\n", "", "", "", "");
    check("2:cpu:/\n1:name=systemd:/system.slice/cron.service\n0::/\n", "", "", "", "cron.service");
    check("2:cpu:/wrong.service\n0::/\n", "", "", "", "");
}

TEST(place, the_innermost_container_counts)
{
    check("0::/docker/" ID "/docker/" ID2 "\n", ID2, "docker", "", "");
    check("0::/docker/" ID "/system.slice/nginx.service\n", ID, "docker", "", "nginx.service");
    check("0::/docker/" ID "/kubepods/pod" UID "/" ID2 "\n", ID2, "", UID, "");
}

TEST(place, the_unified_hierarchy_is_believed_first)
{
    check("9:cpu:/docker/" ID2 "\n0::/docker/" ID "\n", ID, "docker", "", "");
    check("0::/docker/" ID "\n9:cpu:/docker/" ID2 "\n", ID, "docker", "", "");
}

TEST(place, amazons_tasks_have_ids_of_their_own)
{
    check("9:cpu:/ecs/0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef-123456\n",
          "0123456789abcdef0123456789abcdef-123456", "", "", "");
}

TEST(place, what_only_looks_like_one_is_none)
{
    check("", "", "", "", "");
    check("0::/\n", "", "", "", "");
    check("0::/../../etc\n", "", "", "", "");
    check("4:memory:/api/688deae2c6f17b79a8324c30761ffbe0\n", "", "", "", "");
    check("0::/docker/" ID "0\n", "", "", "", "");
    check("0::/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\n", "", "",
          "", "");
    check("0::/podracer/pod\n", "", "", "", "");
    check("0::/.service\n", "", "", "", "");
    check("nonsense", "", "", "", "");
}
