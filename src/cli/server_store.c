/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the store of the server, and says in a sentence why it cannot.
 *
 * The file LOCK of the data folder is locked by its server and holds the process id, for whoever
 * comes second.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/serve.h"
#include "pipeline/receivers/recipe.h"

static int say_locked(const char *dir, struct kiln_err *err)
{
    char path[PATH_MAX];
    struct kiln_buf text;
    uint64_t pid = 0;

    kiln_buf_init(&text, 64);
    snprintf(path, sizeof(path), "%s/LOCK", dir);
    if (kiln_file_read(path, &text, NULL) < 0 ||
        kiln_str_parse_u64(kiln_str_trim(kiln_buf_str(&text)), &pid) < 0)
        pid = 0;
    kiln_buf_done(&text);
    if (pid == 0)
        return kiln_err_set(err, -EBUSY, dir, "another process has this data folder");
    return kiln_err_set(err, -EBUSY, dir, "another kiln server has this data folder (process %llu)",
                        (unsigned long long)pid);
}

static int write_pid(struct kiln_io *io)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    int fd = io->open(io, "LOCK", O_RDWR), r;

    if (fd < 0)
        return fd;
    r = io->truncate(io, fd, 0);
    if (r == 0)
        r = io->pwrite(io, fd, text, (size_t)n, 0);
    io->close(io, fd);
    return r;
}

int kiln_serve_open_folder(struct kiln_serve *serve, struct kiln_err *err)
{
    const char *dir = serve->config->set.data_dir;
    int r = kiln_io_open(dir, false, &serve->io);

    if (r == -EWOULDBLOCK)
        return say_locked(dir, err);
    if (r == 0)
        r = write_pid(serve->io);
    if (r == -ENOSPC || r == -EDQUOT)
        r = 0; /* it is for others to read: a full disk is no reason to stay down */
    if (r == -EACCES || r == -EROFS || r == -EPERM)
        return kiln_err_set(err, r, dir,
                            "the data folder cannot be written to: %s (say --data-dir DIR)",
                            kiln_err_text(r));
    if (r < 0)
        return kiln_err_set(err, r, dir, "the data folder cannot be used: %s (say --data-dir DIR)",
                            kiln_err_text(r));
    return 0;
}

/* SIGTERM and SIGINT are blocked, for the main thread to wait for; here it does not wait. */
static bool is_signalled(void *context)
{
    sigset_t pending;

    (void)context;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

int kiln_serve_open_store(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_server_config *config = serve->config;
    const struct kiln_settings *set = &config->set;
    struct kiln_store_opts opts = {
        .io = serve->io,
        .pool = &serve->memory.store,
        .query_pool = &serve->memory.query,
        .retention = {set->retention_ns, set->retention_size, set->disk_percent},
        .rules = config->rules,
        .n_rules = config->n_rules,
        .series_max = set->series_max,
        .follow = kiln_recipe_follow,
        .opening = &serve->opening,
        .metrics = serve->metrics,
        .log = serve->log,
    };
    int r =
        kiln_series_rule_new(config->series_labels, config->n_series_labels, &serve->series_rule);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "series_labels: %s", kiln_err_text(r));
    opts.series_rule = serve->series_rule;
    serve->opening.is_cancelled = is_signalled;
    return kiln_store_open(&opts, &serve->engine, err);
}
