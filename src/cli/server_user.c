/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/server_user.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/own.h"
#include "base/str.h"

#define UID_NONE UINT32_MAX

/* What the server has in its directory (docs/formats/store.md). */
static const char *const own_names[] = {"LOCK",    "store.json",  "wal",  "blocks",
                                        "symbols", "debug",       "kept", "aside",
                                        "scrape",  "orders.json", NULL};
/* What may be there beside it: the agent's. */
static const char *const other_names[] = {"spool", "orders-told.json", "orders-given.json",
                                          "lost+found", NULL};

/* ---- which ---- */

static void take_entry(struct kiln_server_user *user, const struct passwd *entry)
{
    user->uid = entry->pw_uid;
    user->gid = entry->pw_gid;
    snprintf(user->name, sizeof(user->name), "%s", entry->pw_name);
}

static void take_uid(struct kiln_server_user *user, uid_t uid, gid_t gid)
{
    const struct passwd *entry = getpwuid(uid);

    user->uid = uid;
    user->gid = gid;
    snprintf(user->name, sizeof(user->name), "%u", (unsigned)uid);
    if (entry)
        take_entry(user, entry);
}

static int take_said(struct kiln_server_user *user, const char *said, struct kiln_err *err)
{
    const struct passwd *entry = getpwnam(said);
    uint64_t uid = 0;

    if (entry)
        take_entry(user, entry);
    else if (kiln_str_parse_u64(kiln_str_of(said), &uid) == 0 && uid < UID_NONE)
        take_uid(user, (uid_t)uid, (gid_t)uid);
    else
        return kiln_err_set(err, -EINVAL, NULL,
                            "--user: there is no user \"%.40s\" (a name, a uid, or root)", said);
    return 0;
}

/* A group of root's is no group for somebody else. */
static void take_owner_or_default(struct kiln_server_user *user, const struct stat *dir)
{
    const struct passwd *kiln = dir->st_uid ? NULL : getpwnam("kiln");

    if (kiln)
        take_entry(user, kiln);
    else if (dir->st_uid)
        take_uid(user, dir->st_uid, dir->st_gid ? dir->st_gid : (gid_t)dir->st_uid);
    else
        take_uid(user, KILN_SERVER_UID, KILN_SERVER_UID);
}

int kiln_server_user_find(const char *said, const char *data_dir, struct kiln_server_user *ret_user,
                          struct kiln_err *err)
{
    struct stat dir = {0};
    int r = 0;

    *ret_user = (struct kiln_server_user){.name = "root"};
    if (geteuid() != 0)
        return 0; /* systemd, or a container, has chosen */
    if (stat(data_dir, &dir) < 0)
        return kiln_err_set(err, -errno, data_dir, "%s", kiln_err_text(-errno));
    if (said)
        r = take_said(ret_user, said, err);
    else
        take_owner_or_default(ret_user, &dir);
    ret_user->changes = ret_user->uid != 0;
    return r;
}

/* ---- its store ---- */

static bool is_one_of(const char *const *names, const char *name)
{
    for (; *names; names++) {
        size_t n = strlen(*names);

        if (strncmp(name, *names, n) == 0 && (name[n] == '\0' || name[n] == '.'))
            return true;
    }
    return false;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Sockets, which a server that is gone may have left, and the log: standard output or error. */
static bool is_of_this_process(DIR *dir, const char *name)
{
    struct stat st, open_file;

    if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &open_file) == 0 && is_same(&st, &open_file))
            return true;
    return S_ISSOCK(st.st_mode);
}

/* The last entry that is not Kiln's; whether there is a store among them. */
static int look(const char *path, char ret_other[NAME_MAX + 1], bool *ret_store)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    if (!dir)
        return -errno;
    *ret_store = false;
    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (strcmp(name, "store.json") == 0 || strcmp(name, "wal") == 0)
            *ret_store = true;
        else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !is_one_of(own_names, name) &&
                 !is_one_of(other_names, name) && !is_of_this_process(dir, name))
            snprintf(ret_other, NAME_MAX + 1, "%s", name);
    }
    closedir(dir);
    return 0;
}

/* A directory that was made for something else, or that others share, is not given away. */
static int check_directory(const struct kiln_server_user *user, const char *path,
                           struct kiln_err *err)
{
    char other[NAME_MAX + 1] = "";
    bool has_store = false;
    struct stat st;
    int r = stat(path, &st) < 0 ? -errno : look(path, other, &has_store);

    if (r < 0)
        return kiln_err_set(err, r, path, "%s", kiln_err_text(r));
    if (st.st_uid == user->uid || !other[0] || (has_store && !(st.st_mode & S_IWOTH)))
        return 0;
    return kiln_err_set(err, -EPERM, path,
                        "it has other files than Kiln's (%.60s): it cannot become that of user %s "
                        "(say another --data-dir, or --user root)",
                        other, user->name);
}

int kiln_server_user_own(const struct kiln_server_user *user, const char *data_dir,
                         struct kiln_log *log, struct kiln_err *err)
{
    const struct kiln_own_opts opts = {
        .dir = data_dir, .uid = user->uid, .gid = user->gid, .names = own_names};
    uint64_t n = 0;
    int r = check_directory(user, data_dir, err);

    if (r == 0)
        r = kiln_own(&opts, &n, err);
    if (r == 0 && n)
        kiln_log(log, KILN_LOG_INFO, "files of root in the data directory have a new owner", "user",
                 "%s", user->name, "files", "%llu", (unsigned long long)n, NULL);
    return r;
}

/* ---- becoming ---- */

/* Tried in a process of its own, which cannot go back. */
static bool can_become(const struct kiln_server_user *user)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(setgroups(0, NULL) == 0 && setresgid(user->gid, user->gid, user->gid) == 0 &&
                      setresuid(user->uid, user->uid, user->uid) == 0
                  ? 0
                  : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

bool kiln_server_user_possible(const struct kiln_server_user *user)
{
    const uint64_t needed = KILN_CAP(CAP_SETUID) | KILN_CAP(CAP_SETGID) | KILN_CAP(CAP_CHOWN);

    return (kiln_capabilities() & needed) == needed && can_become(user);
}

int kiln_server_user_become(const struct kiln_server_user *user)
{
    kiln_capabilities_bound(0);
    if (user->changes) {
        if (initgroups(user->name, user->gid) < 0 || setresgid(user->gid, user->gid, user->gid) < 0)
            return -errno;
        if (setresuid(user->uid, user->uid, user->uid) < 0)
            return -errno;
    }
    return kiln_capabilities_keep(0);
}
