/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that root started becomes an unprivileged user once its addresses are bound, with no
 * capability, no_new_privs, and a filter of system calls (docs/adr/0039).
 *
 * Files that only root can read are opened by a child (base/keeper.h).  The data directory is
 * reached through an open descriptor: the directories above it may be closed to the user.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/keeper.h"
#include "cli/agent_confine.h"
#include "cli/daemon.h"
#include "cli/serve.h"

/* What root needs for files of others, where it has to stay root. */
#define FILE_CAPABILITIES                                                                          \
    (KILN_CAP(CAP_DAC_OVERRIDE) | KILN_CAP(CAP_DAC_READ_SEARCH) | KILN_CAP(CAP_FOWNER))

/* ---- files that only root can read ---- */

struct paths {
    const char *items[KILN_KEEPER_FILES_MAX];
    uint32_t n;
};

static void add(struct paths *paths, const char *path)
{
    if (path && paths->n < KILN_KEEPER_FILES_MAX)
        paths->items[paths->n++] = path;
}

/* The members called ..._file, wherever they are: secrets and certificates of scrape jobs. */
static void add_files_of(struct paths *paths, const struct kiln_node *node)
{
    if (!node)
        return;
    if (node->key && node->text && kiln_str_ends(kiln_str_of(node->key), KILN_STR("_file")))
        add(paths, node->text);
    for (const struct kiln_node *m = node->first; m; m = m->next)
        add_files_of(paths, m);
}

static int start_keeper(struct kiln_serve *serve)
{
    const struct kiln_settings *set = &serve->config->set;
    struct kiln_keeper_opts opts = {
        .write = set->ready_file, .user = serve->user.uid, .log = serve->log};
    struct paths paths = {.n = 0};

    opts.remove[0] = kiln_settings_on(set->socket) ? set->socket : NULL;
    opts.remove[1] = kiln_settings_on(set->otlp_socket) ? set->otlp_socket : NULL;
    add(&paths, set->tokens);
    add(&paths, set->tls_cert);
    add(&paths, set->tls_key);
    add(&paths, set->tls_client_ca);
    add(&paths, set->redact ? set->redact : serve->config->file_name);
    add_files_of(&paths, set->scrape);
    for (uint32_t i = 0; i < serve->config->source.n; i++) {
        const char *place = serve->config->source.items[i], *equals = strchr(place, '=');

        add(&paths, equals ? equals + 1 : place);
    }
    for (uint32_t i = 0; i < serve->config->symbols_path.n; i++)
        add(&paths, serve->config->symbols_path.items[i]);
    opts.read = paths.items;
    opts.n_read = paths.n;
    return kiln_keeper_start(&opts);
}

/* ---- the data directory ---- */

/* Where the descriptor leads, whoever may pass through the directories above. */
static int hold_directory(struct kiln_serve *serve, struct kiln_err *err)
{
    const char *dir = serve->config->set.data_dir;

    serve->data_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (serve->data_fd < 0)
        return kiln_err_set(err, -errno, dir, "%s", kiln_err_text(-errno));
    snprintf(serve->data_dir, sizeof(serve->data_dir), "/proc/self/fd/%d", serve->data_fd);
    if (access(serve->data_dir, F_OK) < 0) /* there is no /proc */
        snprintf(serve->data_dir, sizeof(serve->data_dir), "%s", dir);
    return 0;
}

static int check_access(const struct kiln_serve *serve, struct kiln_err *err)
{
    if (faccessat(AT_FDCWD, serve->data_dir, R_OK | W_OK | X_OK, AT_EACCESS) == 0)
        return 0;
    return kiln_err_set(err, -errno, serve->config->set.data_dir,
                        "user %s cannot write to the data directory: %s (say --user USER)",
                        serve->user.name, kiln_err_text(-errno));
}

/* Children that read debug files are started from the program's own file. */
static void check_program(const struct kiln_serve *serve)
{
    char path[PATH_MAX];
    ssize_t n;

    if (faccessat(AT_FDCWD, "/proc/self/exe", X_OK, AT_EACCESS) == 0 || errno != EACCES)
        return;
    n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n < 0 ? 0 : n] = '\0';
    kiln_log(serve->log, KILN_LOG_WARN,
             "the user cannot execute the program's file: no names are read from debug files "
             "(chmod it to 755, or say --user root)",
             "user", "%s", serve->user.name, "path", "%s", path, NULL);
}

/* ---- the user ---- */

int kiln_serve_choose_user(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    int r = kiln_server_user_find(set->user, set->data_dir, &serve->user, err);

    snprintf(serve->data_dir, sizeof(serve->data_dir), "%s", set->data_dir);
    if (r < 0 || !serve->user.changes)
        return r;
    /* now, so that threads which start before the filter is there have it too */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    kiln_notify_connect();
    if (r == 0)
        r = start_keeper(serve);
    return r < 0 ? kiln_err_set(err, r, NULL, "privileges cannot be given up: %s (say --user root)",
                                kiln_err_text(r))
                 : hold_directory(serve, err);
}

/* As in a container without the capabilities for it. */
static int stay_root(struct kiln_serve *serve, const char *why, struct kiln_err *err)
{
    int r = kiln_capabilities_keep(FILE_CAPABILITIES);

    kiln_log(serve->log, KILN_LOG_WARN,
             "the server stays root, with capabilities for files alone: it cannot become another "
             "user",
             "user", "%s", serve->user.name, "reason", "%s", why, NULL);
    snprintf(serve->user.name, sizeof(serve->user.name), "root");
    return r < 0
               ? kiln_err_set(err, r, NULL, "capabilities cannot be given up: %s", kiln_err_text(r))
               : 0;
}

/* If that fails, it stays for root alone. */
static void give_socket(const struct kiln_serve *serve)
{
    int file = open(serve->config->set.socket, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (file < 0)
        return;
    if (fstat(file, &st) == 0 && S_ISSOCK(st.st_mode))
        (void)!fchownat(file, "", serve->user.uid, serve->user.gid, AT_EMPTY_PATH);
    close(file);
}

static int become(struct kiln_serve *serve, struct kiln_err *err)
{
    const char *dir = serve->config->set.data_dir;
    int r;

    if (!kiln_server_user_possible(&serve->user))
        return stay_root(serve,
                         "that takes CAP_SETUID, CAP_SETGID and CAP_CHOWN, and a uid that "
                         "this user namespace has",
                         err);
    r = kiln_server_user_own(&serve->user, dir, serve->log, err);
    if (r < 0)
        return r;
    if (serve->socket_on)
        give_socket(serve);
    r = kiln_server_user_become(&serve->user);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "the server cannot become user %s: %s (say --user root)",
                            serve->user.name, kiln_err_text(r));
    check_program(serve);
    return check_access(serve, err);
}

int kiln_serve_give_up(struct kiln_serve *serve, struct kiln_err *err)
{
    int r = serve->user.changes ? become(serve, err) : 0;

    if (r < 0 || !serve->user.changes)
        return r;
    kiln_server_confine(serve->log);
    if (geteuid() != 0)
        kiln_log(serve->log, KILN_LOG_INFO, "privileges of root were given up", "user", "%s",
                 serve->user.name, "uid", "%u", (unsigned)geteuid(), NULL);
    return 0;
}

void kiln_serve_privileges_done(struct kiln_serve *serve)
{
    kiln_keeper_stop();
    if (serve->data_fd >= 0)
        close(serve->data_fd);
}
