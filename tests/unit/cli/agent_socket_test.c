/* SPDX-License-Identifier: Apache-2.0 */
/* Who may give orders to an agent on its socket. */
#include "cli/agent_socket.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "folder.h"
#include "pipeline/audit.h"
#include "test.h"

enum { STRANGER = 65534 };

static char folder[FOLDER_NAME], address[FOLDER_NAME + 32];
static struct kiln_agent_socket agent;
static struct kiln_server *server;
static struct kiln_router *router;
static struct kiln_duty *duty;
static struct kiln_log *log_;
static int pipe_[2];
static uint32_t followed;

static void follow(void *context, const struct kiln_order *orders, uint32_t n)
{
    (void)context, (void)orders;
    followed = n;
}

static void tell(void *context, struct kiln_agent_status *ret_status)
{
    (void)context;
    *ret_status = (struct kiln_agent_status){.state = KILN_AGENT_RUNNING};
}

static void listen_here(void)
{
    folder_make(folder);
    CHECK_EQ(chmod(folder, 0755), 0);
    snprintf(address, sizeof(address), "unix:%s/agent.sock", folder);
    CHECK_OK(kiln_router_new(&router));
    CHECK_OK(kiln_agent_socket_add(&agent, router));
    CHECK_OK(kiln_server_new(NULL, &server));
    CHECK_OK(kiln_server_listen(
        server, &(struct kiln_listen_opts){.address = address, .router = router, .unix_mode = 0666},
        NULL, NULL));
    CHECK_OK(kiln_server_start(server, NULL));
}

static void start(void)
{
    const struct kiln_duty_opts opts = {
        .host_id = "id", .host_name = "web", .follow = follow, .limit = KILN_ORDERS_ALL};

    followed = 0;
    agent = (struct kiln_agent_socket){.tell = tell};
    CHECK_EQ(pipe(pipe_), 0);
    CHECK_OK(kiln_log_new(pipe_[1], KILN_LOG_INFO, KILN_LOG_LOGFMT, &log_));
    CHECK_OK(kiln_audit_new(log_, &agent.audit));
    CHECK_OK(kiln_duty_open(&opts, &duty, NULL));
    atomic_store(&agent.duty, duty);
    listen_here();
}

/* Ends it, and returns what the log has. */
static const char *stop(void)
{
    static char said[1 << 14];
    ssize_t n;

    kiln_server_stop(server, 1000);
    kiln_server_free(server);
    kiln_router_free(router);
    kiln_duty_close(duty);
    kiln_audit_free(agent.audit);
    kiln_log_free(log_);
    close(pipe_[1]);
    n = read(pipe_[0], said, sizeof(said) - 1);
    said[n > 0 ? n : 0] = '\0';
    close(pipe_[0]);
    folder_remove(folder);
    return said;
}

/* The status of the answer; 0: there was none. */
static int ask(const char *head, const char *body)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char text[512], answer[32] = "";
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int n = snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
                     head, strlen(body), body);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", address + strlen("unix:"));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || write(fd, text, (size_t)n) != n ||
        recv(fd, answer, sizeof("HTTP/1.1 200") - 1, MSG_WAITALL) < 0)
        answer[0] = '\0';
    close(fd);
    return (int)strtol(answer[0] ? answer + strlen("HTTP/1.1 ") : "0", NULL, 10);
}

/* The same as another user. */
static int ask_as_stranger(const char *head, const char *body)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        if (setgroups(0, NULL) < 0 || setgid(STRANGER) < 0 || setuid(STRANGER) < 0)
            _exit(0);
        _exit(ask(head, body) / 2); /* a status does not fit */
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status) * 2;
}

#define PAUSE "{\"kind\":\"pause\",\"target\":\"all\"}"

TEST(agent_socket, its_own_user_gives_orders_and_a_record_is_written)
{
    char who[64];
    const char *said;

    start();
    CHECK_EQ(ask("POST /api/v1/orders", PAUSE), 201);
    CHECK_EQ(followed, 1);
    CHECK_EQ(ask("DELETE /api/v1/orders/none", ""), 404);
    said = stop();
    snprintf(who, sizeof(who), "who=\"uid %u\" peer=unix result=ok", (unsigned)geteuid());
    CHECK(strstr(said, "msg=audit action=\"give order\" tenant=\"\" "
                       "target=\"pause every host for 3600 s\""));
    CHECK(strstr(said, who));
    CHECK(strstr(said, "action=\"withdraw order\" tenant=\"\" target=none"));
}

TEST(agent_socket, another_user_sees_orders_and_gives_none)
{
    if (geteuid() != 0)
        skip(); /* only root can become another user */
    start();
    CHECK_EQ(ask_as_stranger("POST /api/v1/orders", PAUSE), 403 / 2 * 2);
    CHECK_EQ(followed, 0);
    CHECK_EQ(ask("POST /api/v1/orders", PAUSE), 201);
    CHECK_EQ(ask_as_stranger("DELETE /api/v1/orders/none", ""), 403 / 2 * 2);
    CHECK_EQ(ask_as_stranger("GET /api/v1/orders", ""), 200);
    CHECK_EQ(followed, 1);
    CHECK(strstr(stop(), "target=\"pause every host for 3600 s\" who=\"uid 65534\" peer=unix "
                         "result=refused"));
}
