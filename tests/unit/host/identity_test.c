/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "context_maker.h"
#include "fake_proc.h"
#include "host/identity_int.h"
#include "test.h"

static struct fake_proc fake;
static struct kiln_processes *processes;
static uint32_t files;
static int64_t blocks;

/* A process 7, child of 3. */
static void begin(const char *const *env_names, uint32_t n)
{
    files = open_files();
    blocks = kiln_mem_live();
    fake_proc_init(&fake);
    fake_proc_add(&fake, 7, 3, 5000000000);
    CHECK_OK(kiln_processes_new(
        &(struct kiln_processes_opts){.proc = fake.dir, .env_names = env_names, .n_env_names = n},
        &processes));
}

static void end(void)
{
    kiln_processes_free(processes);
    fake_proc_done(&fake);
    CHECK_EQ(open_files(), files);
    CHECK_EQ(kiln_mem_live(), blocks);
}

static struct kiln_identity *identity(void)
{
    struct kiln_process *p = drawn_sample(processes, 7, 5000000000, 1);

    return kiln_process_identity(processes, p);
}

TEST(identity, who_a_process_is)
{
    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/opt/my app/server (deleted)");
    fake_proc_write(&fake, 7, "cmdline", "./server\0--password=x\0", 22);
    fake_proc_text(&fake, 7, "status", "PPid:\t3\nUid:\t0\t54321\t0\t0\nNStgid:\t7\t2\n");
    fake_proc_text(&fake, 7, "cgroup", "0::/system.slice/server.service\n");
    CHECK_TEXT(identity()->name, "server");
    CHECK_TEXT(identity()->path, "/opt/my app/server");
    CHECK_TEXT(identity()->command, "./server");
    CHECK_TEXT(identity()->owner, "54321");
    CHECK_TEXT(identity()->cgroup_path, "/system.slice/server.service");
    CHECK_EQ(identity()->uid, 54321);
    CHECK_EQ(identity()->pid, 7);
    CHECK_EQ(identity()->ns_pid, 2);
    CHECK_EQ(identity()->parent_pid, 3);
    CHECK_EQ(identity()->start_ns, 5000000000);
    CHECK(!identity()->is_kernel);
    end();
}

TEST(identity, arguments_that_a_program_writes_behind_its_name_are_cut_off)
{
    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/opt/my browser/browser");
    fake_proc_text(&fake, 7, "cmdline", "/opt/my browser/browser --token=secret browser x");
    CHECK_TEXT(identity()->command, "/opt/my browser/browser");
    end();
}

TEST(identity, what_runs_by_now_is_not_taken_for_what_was_sampled)
{
    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/bin/next");
    fake_proc_text(&fake, 7, "cmdline", "next");
    fake_proc_text(&fake, 7, "status", "Uid:\t5\t5\t5\t5\n");
    drawn_exec(processes, 7, "first");
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/bin/first");
    CHECK_TEXT(identity()->path, "/bin/first");
    CHECK_TEXT(identity()->command, "first");
    CHECK_EQ(identity()->uid, 5);
    drawn_exec(processes, 7, "second");
    drawn_lost(processes);
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/lib/ld.so");
    CHECK_TEXT(identity()->path, "/bin/next");
    end();
}

TEST(identity, a_title_without_the_name_stays)
{
    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/usr/sbin/nginx");
    fake_proc_text(&fake, 7, "cmdline", "nginx: worker process");
    CHECK_TEXT(identity()->command, "nginx: worker process");
    end();
}

static void check_command(const char *exe, const char *cmdline, const char *command)
{
    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", exe);
    fake_proc_text(&fake, 7, "cmdline", cmdline);
    CHECK_TEXT(identity()->command, command);
    end();
}

TEST(identity, arguments_behind_another_name_are_cut_off_too)
{
    check_command("/usr/bin/python3.11", "python3 job.py --token=secret", "python3");
    check_command("/usr/bin/python3.11", "job --password secret", "job");
    check_command("/usr/bin/python3.11", " secret", "thread");
    check_command("/usr/bin/python3.11",
                  "[celeryd: celery@host:MainProcess] -active- (worker -b redis://:secret@host)",
                  "[celeryd: celery@host:MainProcess]");
    check_command("/usr/bin/python3.11", "job: running key=secret", "job: running");
    check_command("/usr/bin/python3.11", "job: (worker secret)", "job:");
}

/* What an attribute of the resource says; "" where there is none. */
static const char *said(const char *key)
{
    const struct kiln_identity *who = identity();

    for (uint32_t i = 0; i < who->n_attrs; i++)
        if (strcmp(who->attrs[i].key, key) == 0)
            return who->attrs[i].value;
    return "";
}

TEST(identity, of_the_environment_only_allowed_names_are_taken)
{
    static const char *const names[] = {"SERVICE", "EMPTY"};

    begin(names, 2);
    fake_proc_write(&fake, 7, "environ", "PASSWORD=1\0SERVICE=shop\0SERVICES=2\0EMPTY=", 41);
    CHECK_TEXT(said("process.environment_variable.SERVICE"), "shop");
    CHECK_TEXT(said("process.environment_variable.SERVICES"), "");
    CHECK_TEXT(said("process.environment_variable.EMPTY"), "");
    CHECK_TEXT(said("process.environment_variable.PASSWORD"), "");
    end();
}

TEST(identity, by_default_the_names_of_opentelemetry_and_of_deployments_are_allowed)
{
    static const char text[] =
        "HOME=/\0OTEL_SERVICE_NAME=cart\0GIT_COMMIT=1234abcd\0GIT_BRANCH=main\0"
        "DEPLOYMENT_ENVIRONMENT=production\0DEPLOYMENT_ID=77\0APP_VERSION=2.1";

    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/bin/a");
    fake_proc_write(&fake, 7, "environ", text, sizeof(text));
    CHECK_STR(kiln_identity_service(identity()), "cart");
    CHECK_TEXT(said("service.name"), "cart");
    CHECK_TEXT(said("service.version"), "2.1");
    CHECK_TEXT(said("git.commit"), "1234abcd");
    CHECK_TEXT(said("git.branch"), "main");
    CHECK_TEXT(said("deployment.environment"), "production");
    CHECK_TEXT(said("deployment_id"), "77");
    for (uint32_t i = 0; i < identity()->n_attrs; i++)
        CHECK(!strstr(identity()->attrs[i].key, "variable"));
    end();
}

static void service_with(const char *environment, const char *service, const char *team)
{
    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/bin/gopher");
    fake_proc_text(&fake, 7, "environ", environment);
    CHECK_TEXT(said("service.name"), service);
    CHECK_TEXT(said("team"), team);
    end();
}

TEST(identity, attributes_of_the_environment_are_all_taken_or_none)
{
    service_with("OTEL_RESOURCE_ATTRIBUTES=service.name=a,team=b%20c, zone = eu ", "a", "b c");
    service_with("OTEL_RESOURCE_ATTRIBUTES=team=b", "gopher", "b");
    service_with("OTEL_RESOURCE_ATTRIBUTES=team=b,service.name=%4", "gopher", "");
    service_with("OTEL_RESOURCE_ATTRIBUTES=team=b,nonsense", "gopher", "");
    service_with("OTEL_RESOURCE_ATTRIBUTES=team=b,=c", "gopher", "");
    service_with("OTEL_RESOURCE_ATTRIBUTES=team=%ff", "gopher", "\xef\xbf\xbd");
    service_with("OTEL_SERVICE_NAME=s", "s", "");
    service_with("OTEL_SERVICE_NAME=", "gopher", "");
    service_with("OTEL_SERVICE_NAMES=x", "gopher", "");
}

TEST(identity, nothing_of_the_environment_is_read_where_nothing_is_allowed)
{
    static const char *const none[] = {NULL};

    begin(none, 0);
    fake_proc_write(&fake, 7, "environ", "OTEL_SERVICE_NAME=cart", 22);
    CHECK_TEXT(said("service.name"), "thread");
    end();
}

/* ---- what it is called, by how much is to be believed ---- */

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void check_service(const char *service)
{
    struct kiln_record record = {.pid = 7, .tid = 7, .start_ns = 5000000000, .era = 1};

    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){.proc = fake.dir}, &processes));
    CHECK_STR(kiln_identity_service(
                  kiln_process_identity(processes, kiln_processes_of(processes, &record))),
              service);
    kiln_processes_free(processes);
}

TEST(identity, a_service_is_named_by_whoever_knows_best)
{
    begin(NULL, 0);
    kiln_processes_free(processes);
    check_service("unknown");
    fake_proc_link(&fake, 7, "exe", "/usr/bin/python3.11");
    check_service("python3.11");
    fake_proc_text(&fake, 7, "cgroup", "0::/docker/" ID "\n");
    check_service("python3.11");
    fake_proc_text(&fake, 1, "root/var/lib/docker/containers/" ID "/config.v2.json",
                   "{\"Name\":\"/shop-web-1\"}");
    check_service("shop-web-1");
    fake_proc_text(&fake, 1, "root/var/lib/docker/containers/" ID "/config.v2.json",
                   "{\"Name\":\"/shop-web-1\",\"Config\":{\"Labels\":"
                   "{\"com.docker.compose.service\":\"web\"}}}");
    check_service("web");
    fake_proc_text(&fake, 7, "cgroup", "0::/docker/" ID "/system.slice/nginx.service\n");
    check_service("nginx");
    fake_proc_publish(&fake, 7, "service.name=unknown_service:python", 1);
    check_service("nginx");
    fake_proc_publish(&fake, 7, "service.name=published", 2);
    check_service("published");
    fake_proc_text(&fake, 7, "environ", "OTEL_RESOURCE_ATTRIBUTES=service.name=attribute");
    check_service("attribute");
    fake_proc_write(&fake, 7, "environ",
                    "OTEL_SERVICE_NAME=named\0OTEL_RESOURCE_ATTRIBUTES=service.name=attribute", 68);
    check_service("named");
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){.proc = fake.dir}, &processes));
    end();
}

TEST(identity, where_it_runs_is_known_better_than_it_says)
{
    begin(NULL, 0);
    fake_proc_text(&fake, 7, "cgroup", "0::/docker/" ID "\n");
    fake_proc_text(&fake, 1, "root/var/lib/docker/containers/" ID "/config.v2.json",
                   "{\"Name\":\"/web\",\"Config\":{\"Image\":\"r:5000/shop/web:1.2@sha256:0\"}}");
    fake_proc_publish(&fake, 7,
                      "container.id=forged,process.executable.path=/forged,team=a,"
                      "process.command_line=secret,process.command=secret,"
                      "process.environment_variable.KEY=secret,vcs.ref.head.revision=12ab",
                      1);
    CHECK_TEXT(said("container.id"), ID);
    CHECK_TEXT(said("container.name"), "web");
    CHECK_TEXT(said("container.runtime.name"), "docker");
    CHECK_TEXT(said("container.image.name"), "r:5000/shop/web");
    CHECK_TEXT(said("container.image.tag"), "1.2");
    CHECK_TEXT(said("service.version"), "1.2");
    CHECK_TEXT(said("team"), "a");
    CHECK_TEXT(said("git.commit"), "12ab");
    CHECK_STR(kiln_identity_container_id(identity()), ID);
    CHECK_STR(kiln_identity_container_name(identity()), "web");
    for (uint32_t i = 0; i < identity()->n_attrs; i++)
        CHECK(!strstr(identity()->attrs[i].value, "secret"));
    end();
}

TEST(identity, of_a_pod)
{
    begin(NULL, 0);
    fake_proc_text(&fake, 7, "cgroup",
                   "0::/kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice/"
                   "cri-containerd-" ID ".scope\n");
    fake_proc_text(&fake, 1,
                   "root/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
                   "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"web\","
                   "\"io.kubernetes.cri.sandbox-name\":\"web-0\","
                   "\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}");
    CHECK_TEXT(said("k8s.pod.uid"), "11111111-2222-3333-4444-555555555555");
    CHECK_TEXT(said("k8s.pod.name"), "web-0");
    CHECK_TEXT(said("k8s.namespace.name"), "shop");
    CHECK_TEXT(said("k8s.container.name"), "web");
    CHECK_TEXT(said("service.name"), "web");
    CHECK_TEXT(said("service.namespace"), "shop");
    end();
}

/* ---- versions of runtimes ---- */

static void check_runtime(const char *exe, const char *environment, const char *name,
                          const char *version)
{
    fake_proc_link(&fake, 7, "exe", exe);
    fake_proc_text(&fake, 7, "environ", environment);
    drawn_exec(processes, 7, "x");
    CHECK_TEXT(said("process.runtime.name"), name);
    CHECK_TEXT(said("process.runtime.version"), version);
    CHECK_TEXT(said("runtime.version"), version);
}

TEST(identity, runtimes_have_versions)
{
    begin(NULL, 0);
    check_runtime("/usr/bin/python3.11", "", "cpython", "3.11");
    check_runtime("/usr/bin/python3.11", "PYTHON_VERSION=3.11.4", "cpython", "3.11.4");
    check_runtime("/usr/bin/python3.9", "PYTHON_VERSION=3.11.4", "cpython", "3.9");
    check_runtime("/root/.nvm/versions/node/v20.1.0/bin/node", "", "nodejs", "20.1.0");
    check_runtime("/usr/local/bin/node", "NODE_VERSION=18.2.0", "nodejs", "18.2.0");
    fake_proc_text(&fake, 7, "root/usr/local/bin/.keep", "");
    fake_proc_text(&fake, 7, "root/usr/local/include/node/node_version.h",
                   "#define NODE_MAJOR_VERSION 18\n#define NODE_MINOR_VERSION 3\n"
                   "#define NODE_PATCH_VERSION 1\n");
    check_runtime("/usr/local/bin/node", "NODE_VERSION=18.2.0", "nodejs", "18.3.1");
    check_runtime("/usr/lib/jvm/java-17/bin/java", "", "java", "");
    fake_proc_text(&fake, 7, "root/usr/lib/jvm/java-17/bin/.keep", "");
    fake_proc_text(&fake, 7, "root/usr/lib/jvm/java-17/release",
                   "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.9\"\n");
    check_runtime("/usr/lib/jvm/java-17/bin/java", "", "java", "17.0.9");
    check_runtime("/usr/bin/javac", "JAVA_VERSION=17", "", "");
    check_runtime("/usr/bin/pythonic", "", "", "");
    end();
}

/* ---- what samples tell ---- */

/* The first process of a container of ours, of our own user namespace. */
static struct kiln_who told(void)
{
    return (struct kiln_who){
        .cgroups = 77,
        .parent_pid = 3,
        .ns_pid = 1,
        .uid = 0,
        .user_namespace = kiln_space_of(AT_FDCWD, "/proc/self/ns/user"),
        .mount_namespace = kiln_space_of(AT_FDCWD, "/proc/self/ns/mnt"),
    };
}

static bool has_first_users(void)
{
    return told().user_namespace == 0xeffffffd;
}

static const struct kiln_identity *identity_told(uint32_t pid, struct kiln_who who)
{
    return kiln_process_identity(processes, drawn_telling(processes, pid, 5000000000, &who));
}

TEST(identity, what_a_sample_tells_is_not_read)
{
    const struct kiln_identity *me;

    if (!has_first_users())
        SKIP("this is not the first user namespace");
    begin(NULL, 0);
    fake_proc_text(&fake, 7, "status", "PPid:\t4\nUid:\t0\t54321\t0\t0\nNStgid:\t7\t2\n");
    me = identity_told(7, told());
    CHECK_EQ(me->uid, 0);
    CHECK_EQ(me->parent_pid, 3);
    CHECK_EQ(me->ns_pid, 1);
    CHECK_TEXT(me->owner, "root");
    end();
}

TEST(identity, of_a_process_that_is_gone_a_sample_tells)
{
    const struct kiln_identity *me;

    if (!has_first_users())
        SKIP("this is not the first user namespace");
    begin(NULL, 0);
    fake_proc_add(&fake, 9, 3, 5000000000);
    fake_proc_text(&fake, 7, "cgroup", "0::/system.slice/mail.service\n");
    fake_proc_text(&fake, 9, "cgroup", "0::/system.slice/mail.service\n");
    identity_told(7, told());
    identity_told(9, told());
    me = identity_told(8, told()); /* nothing of it is in /proc */
    CHECK_TEXT(me->owner, "root");
    CHECK_EQ(me->parent_pid, 3);
    CHECK_TEXT(me->cgroup_path, "/system.slice/mail.service");
    CHECK_TEXT(me->service, "mail");
    end();
}

TEST(identity, users_of_other_namespaces_are_numbers)
{
    struct kiln_who elsewhere = told(), mapped = told();

    elsewhere.mount_namespace++;
    mapped.user_namespace++;
    begin(NULL, 0);
    fake_proc_text(&fake, 7, "status", "Uid:\t0\t0\t0\t0\n");
    fake_proc_add(&fake, 8, 3, 5000000000);
    fake_proc_text(&fake, 8, "status", "Uid:\t0\t0\t0\t0\n");
    CHECK_TEXT(identity_told(7, elsewhere)->owner, "0");
    CHECK_TEXT(identity_told(8, mapped)->owner, "0");
    end();
}

/* Of the first alone nobody knows whether it was moved after its sample. */
TEST(identity, control_groups_are_read_until_two_say_the_same)
{
    struct kiln_who other = told();

    other.cgroups++;
    begin(NULL, 0);
    for (uint32_t pid = 8; pid <= 11; pid++)
        fake_proc_add(&fake, pid, 3, 5000000000);
    fake_proc_text(&fake, 7, "cgroup", "0::/system.slice/moved.service\n");
    fake_proc_text(&fake, 8, "cgroup", "0::/system.slice/mail.service\n");
    fake_proc_text(&fake, 9, "cgroup", "0::/system.slice/mail.service\n");
    fake_proc_text(&fake, 10, "cgroup", "0::/not/read\n");
    fake_proc_text(&fake, 11, "cgroup", "0::/system.slice/shop.service\n");
    CHECK_TEXT(identity_told(7, told())->service, "moved");
    CHECK_TEXT(identity_told(8, told())->service, "mail");
    CHECK_TEXT(identity_told(9, told())->service, "mail");
    CHECK_TEXT(identity_told(10, told())->service, "mail");
    CHECK_TEXT(identity_told(10, told())->cgroup_path, "/system.slice/mail.service");
    CHECK_TEXT(identity_told(11, other)->service, "shop");
    end();
}

TEST(identity, another_program_may_have_another_owner)
{
    begin(NULL, 0);
    identity_told(7, told());
    drawn_exec(processes, 7, "other");
    fake_proc_text(&fake, 7, "status", "Uid:\t0\t54321\t0\t0\n");
    CHECK_TEXT(kiln_process_identity(processes, drawn_sample(processes, 7, 5000000000, 2))->owner,
               "54321");
    end();
}

TEST(identity, a_child_that_is_gone_belongs_to_whoever_it_came_from)
{
    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/bin/a");
    fake_proc_text(&fake, 7, "environ", "OTEL_SERVICE_NAME=cart");
    fake_proc_text(&fake, 7, "cgroup", "0::/docker/" ID "\n");
    CHECK_TEXT(said("service.name"), "cart");
    drawn_fork(processes, 7, 8);
    {
        struct kiln_process *p = drawn_sample(processes, 8, 6000000000, 1);

        CHECK_STR(kiln_identity_service(kiln_process_identity(processes, p)), "cart");
        CHECK_STR(kiln_identity_container_id(p->identity), ID);
    }
    drawn_fork(processes, 7, 9);
    drawn_exec(processes, 9, "other");
    {
        struct kiln_process *p = drawn_sample(processes, 9, 6000000000, 1);

        CHECK_STR(kiln_identity_service(kiln_process_identity(processes, p)), "other");
        CHECK_STR(kiln_identity_container_id(p->identity), ID);
    }
    fake_proc_text(&fake, 7, "cgroup", "0::/system.slice/cron.service\n");
    drawn_fork(processes, 7, 10);
    drawn_exec(processes, 10, "job");
    {
        struct kiln_process *p = drawn_sample(processes, 10, 6000000000, 1);

        CHECK_STR(kiln_identity_service(kiln_process_identity(processes, p)), "cron");
    }
    kiln_proc_find(processes, 7)->cgroup = 77;
    drawn_fork(processes, 7, 11);
    drawn_exec(processes, 11, "job");
    {
        struct kiln_process *p = drawn_sample(processes, 11, 6000000000, 1);

        CHECK_STR(kiln_identity_service(kiln_process_identity(processes, p)), "job");
    }
    end();
}

TEST(identity, those_longest_not_sampled_are_forgotten_where_memory_is_short)
{
    char environment[2048] = "OTEL_RESOURCE_ATTRIBUTES=text=";

    begin(NULL, 0);
    kiln_processes_free(processes);
    CHECK_OK(kiln_processes_new(
        &(struct kiln_processes_opts){.proc = fake.dir, .memory_bytes = 1 << 20}, &processes));
    memset(environment + strlen(environment), 'x', 1000);
    for (uint32_t pid = 100; pid < 200; pid++) {
        fake_proc_add(&fake, pid, 3, 5000000000);
        fake_proc_text(&fake, pid, "environ", environment);
        CHECK(kiln_process_identity(processes, drawn_sample(processes, pid, 5000000000, 1)));
        CHECK(processes->identity_bytes <= processes->identity_bytes_max);
    }
    CHECK(kiln_proc_find(processes, 199)->pub.identity != NULL);
    CHECK(!kiln_proc_find(processes, 100)->pub.identity);
    CHECK(kiln_process_identity(processes, drawn_sample(processes, 100, 5000000000, 1)));
    end();
}

TEST(identity, rules_have_the_last_word)
{
    struct kiln_identity_rules *rules;
    struct kiln_config *config;

    begin(NULL, 0);
    CHECK_OK(kiln_config_parse(KILN_STR("- match: {process.executable.name: a, env:TIER: '*'}\n"
                                        "  set: {service.name: 'shop-{1}', process.command: ''}\n"),
                               &config, NULL));
    CHECK_OK(kiln_identity_rules_read(kiln_config_root(config), &rules, NULL));
    kiln_processes_free(processes);
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){.proc = fake.dir, .rules = rules},
                                &processes));
    fake_proc_link(&fake, 7, "exe", "/bin/a");
    fake_proc_text(&fake, 7, "cmdline", "a");
    fake_proc_write(&fake, 7, "environ", "OTEL_SERVICE_NAME=x\0TIER=front\0", 31);
    CHECK_STR(kiln_identity_service(identity()), "shop-front");
    CHECK_TEXT(said("service.name"), "shop-front");
    CHECK_TEXT(said("process.command"), "");
    CHECK_TEXT(said("process.environment_variable.TIER"), "");
    kiln_processes_free(processes);
    kiln_identity_rules_free(rules);
    kiln_config_free(config);
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){.proc = fake.dir}, &processes));
    end();
}

TEST(identity, texts_are_valid_utf8)
{
    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/bin/a\xff");
    fake_proc_text(&fake, 7, "cmdline", "\xc3(");
    CHECK_TEXT(identity()->name, "a\xef\xbf\xbd");
    CHECK_TEXT(identity()->command, "\xef\xbf\xbd(");
    end();
}

TEST(identity, it_outlives_the_process_and_the_table)
{
    struct kiln_identity *held;

    begin(NULL, 0);
    fake_proc_link(&fake, 7, "exe", "/bin/a");
    held = kiln_identity_ref(identity());
    kiln_processes_free(processes);
    CHECK_TEXT(held->name, "a");
    kiln_identity_unref(held);
    fake_proc_done(&fake);
    CHECK_EQ(kiln_mem_live(), blocks);
}

TEST(identity, every_allocation_may_fail)
{
    for (uint64_t n = 1; n < 30; n++) {
        struct kiln_process *p;

        begin(NULL, 0);
        fake_proc_link(&fake, 7, "exe", "/bin/a");
        fake_proc_write(&fake, 7, "environ", "OTEL_SERVICE_NAME=cart", 22);
        kiln_mem_fail_at(n);
        p = drawn_sample(processes, 7, 5000000000, 1);
        if (p)
            kiln_process_identity(processes, p);
        kiln_mem_fail_at(0);
        end();
    }
}

TEST(identity, users_have_names)
{
    char name[33];

    kiln_owner_name(0, name, sizeof(name));
    CHECK_TEXT(name, "root");
    kiln_owner_name(54321, name, sizeof(name));
    CHECK_TEXT(name, "54321");
    kiln_owner_name(0, name, sizeof(name));
    CHECK_TEXT(name, "root");
}

/* ---- perf-map files, of this very process ---- */

static struct kiln_identity me;
static char map_path[64], other_path[64];

/* Nobody else uses this number: it is above every pid. */
static void begin_perf_map(void)
{
    me = (struct kiln_identity){
        .pid = (uint32_t)getpid(), .ns_pid = 4000000000u - (uint32_t)getpid(), .uid = geteuid()};
    snprintf(map_path, sizeof(map_path), "/tmp/perf-%u.map", me.ns_pid);
    snprintf(other_path, sizeof(other_path), "/tmp/perf-%u.other", me.ns_pid);
    unlink(map_path);
    unlink(other_path);
}

static int opens(void)
{
    int fd, r = kiln_process_open_perf_map(&me, &fd);

    if (r == 0)
        close(fd);
    return r;
}

static void write_file(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "10 1 f\n", 7), 7);
    CHECK_OK(fchmod(fd, mode));
    close(fd);
}

TEST(perf_map, a_file_of_the_same_user_is_opened)
{
    begin_perf_map();
    CHECK_EQ(opens(), -ENOENT);
    write_file(map_path, 0644);
    CHECK_OK(opens());
    me.start_ns = 1;
    CHECK_EQ(opens(), -ESRCH);
    me.is_kernel = true;
    CHECK_EQ(opens(), -ENOENT);
    unlink(map_path);
}

TEST(perf_map, links_pipes_and_folders_are_refused)
{
    begin_perf_map();
    write_file(other_path, 0644);
    CHECK_OK(symlink(other_path, map_path));
    CHECK_EQ(opens(), -ELOOP);
    unlink(map_path);
    CHECK_OK(link(other_path, map_path));
    CHECK_EQ(opens(), -EPERM);
    unlink(map_path);
    CHECK_OK(mkfifo(map_path, 0644));
    CHECK_EQ(opens(), -ENOENT);
    unlink(map_path);
    CHECK_OK(mkdir(map_path, 0755));
    CHECK_EQ(opens(), -ENOENT);
    rmdir(map_path);
    unlink(other_path);
}

TEST(perf_map, files_of_others_that_anybody_writes_or_that_are_huge_are_refused)
{
    begin_perf_map();
    write_file(map_path, 0666);
    CHECK_EQ(opens(), -EPERM);
    CHECK_OK(chmod(map_path, 0600));
    CHECK_OK(truncate(map_path, (64 << 20) + 1));
    CHECK_EQ(opens(), -EPERM);
    CHECK_OK(truncate(map_path, 64 << 20));
    CHECK_OK(opens());
    if (geteuid() == 0) {
        CHECK_OK(chown(map_path, 54321, 54321));
        CHECK_EQ(opens(), -EPERM);
        me.uid = 54321;
        CHECK_OK(opens());
    }
    unlink(map_path);
}

/* ---- in a container: namespaces of its own ---- */

/* The first process of its PID namespace, with a /tmp of its own; says when it is ready. */
static int contained(void *context)
{
    int ready = *(int *)context;
    bool ok = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
              mount("none", "/tmp", "tmpfs", 0, NULL) == 0;
    int fd = ok ? open("/tmp/perf-1.map", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (fd < 0 || write(fd, "1000 10 f\n", 10) != 10 || write(ready, "y", 1) != 1)
        (void)!write(ready, "n", 1);
    pause();
    return 0;
}

TEST(perf_map, in_a_container_it_is_found_by_the_pid_that_the_process_has_there)
{
    static char stack[256 << 10] __attribute__((aligned(16)));
    struct kiln_process *p;
    int ready[2], fd = -1;
    char answer = 'n', text[16] = "";
    pid_t pid;

    if (geteuid() != 0)
        SKIP("a namespace needs root");
    CHECK_OK(pipe2(ready, O_CLOEXEC));
    pid = clone(contained, stack + sizeof(stack), CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, &ready[1]);
    if (pid < 0)
        SKIP("namespaces cannot be made here");
    CHECK_EQ(read(ready[0], &answer, 1), 1);
    if (answer == 'y') {
        CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){0}, &processes));
        p = drawn_sample(processes, (uint32_t)pid, 0, 1);
        CHECK_EQ(kiln_process_identity(processes, p)->ns_pid, 1);
        CHECK_OK(kiln_process_open_perf_map(p->identity, &fd));
        CHECK_EQ(read(fd, text, sizeof(text)), 10);
        close(fd);
        kiln_processes_free(processes);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    if (answer != 'y')
        SKIP("nothing can be mounted here, as in a chroot");
    CHECK_TEXT(text, "1000 10 f\n");
}
