/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/remote.h"
#include "pipeline/receivers/recipe.h"
#include "store/store.h"

#define SOCKET_DEFAULT "/run/kiln/kiln.sock"
#define ANSWER_MAX     ((size_t)1 << 30)
#define TIMEOUT_MS     3600000u /* a merge of everything may take long */
#define MEMORY_BYTES   (UINT64_C(1) << 30)

/* ---- the directory ---- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* As a service Kiln keeps its data in /var/lib; for a person, in their home. */
static bool is_usual_place_there(void)
{
    struct stat st;

    return geteuid() == 0 ||
           (stat("/var/lib/kiln", &st) == 0 && access("/var/lib/kiln", R_OK) == 0);
}

int kiln_store_dir(const struct kiln_cli *cli, char ret_dir[PATH_MAX])
{
    const char *dir =
        cli->args.store.data_dir ? cli->args.store.data_dir : variable("KILN_DATA_DIR");
    const char *below = "";

    if (!dir && is_usual_place_there())
        dir = "/var/lib/kiln";
    if (!dir && (dir = variable("XDG_DATA_HOME")))
        below = "/kiln";
    if (!dir && (dir = variable("HOME")))
        below = "/.local/share/kiln";
    if (!dir)
        return kiln_cli_usage(cli->command, "where is the store? Give --data-dir DIR");
    if (snprintf(ret_dir, PATH_MAX, "%s%s", dir, below) >= PATH_MAX)
        return kiln_cli_usage(cli->command, "the name of the directory is too long");
    return KILN_EXIT_WELL;
}

/* Whether another process has the directory; looked at without leaving a trace. */
static bool is_locked(const char *dir)
{
    char path[PATH_MAX + 8];
    bool locked = false;
    int fd;

    snprintf(path, sizeof(path), "%s/LOCK", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        close(fd);
    }
    return locked;
}

/* ---- a server ---- */

static int open_client(const struct kiln_cli *cli, const char *server,
                       struct kiln_store_place *place)
{
    struct kiln_client_opts opts = {
        .server = server,
        .token = cli->args.remote.token ? cli->args.remote.token : variable("KILN_TOKEN"),
        .tenant = cli->args.remote.tenant,
        .ca_file = cli->args.remote.ca_file,
        .timeout_ms = TIMEOUT_MS,
        .answer_max = ANSWER_MAX,
    };
    struct kiln_err err = {0};

    if (cli->args.remote.timeout_ns)
        opts.timeout_ms = (uint32_t)(cli->args.remote.timeout_ns / KILN_NS_PER_MS);
    if (kiln_client_new(&opts, &place->client, &err) < 0)
        return kiln_cli_fail(server, &err);
    snprintf(place->dir, sizeof(place->dir), "%.*s", PATH_MAX - 1, server);
    return KILN_EXIT_WELL;
}

static int open_socket(const struct kiln_cli *cli, struct kiln_store_place *place)
{
    const char *path = variable("KILN_SOCKET");
    char address[PATH_MAX + 8];

    if (!kiln_remote_socket(address))
        snprintf(address, sizeof(address), "unix:%s", path ? path : SOCKET_DEFAULT);
    return open_client(cli, address, place);
}

/* What a refusal means for the exit code: what was asked for was wrong, or the server failed. */
static int refused(const struct kiln_store_place *place, const struct kiln_answer *answer)
{
    struct kiln_err err = {0};
    int code = answer->status == 404                            ? KILN_E_UNSUPPORTED
               : answer->status == 409                          ? -ENOTEMPTY
               : answer->status == 401 || answer->status == 403 ? -EACCES
               : answer->status < 500                           ? -EINVAL
                                                                : -EIO;

    kiln_err_set(&err, code, NULL, "%s",
                 answer->status == 404 ? "this server has no store to ask about"
                 : answer->message[0]  ? answer->message
                                       : "the server refused, and did not say why");
    return kiln_cli_fail(place->dir, &err);
}

int kiln_store_ask(struct kiln_store_place *place, const char *method, const char *path,
                   const char *const *query, struct kiln_buf *out)
{
    struct kiln_call call = {.method = method};
    struct kiln_answer answer;
    struct kiln_err err = {0};
    struct kiln_buf target;
    int r, code = KILN_EXIT_WELL;

    kiln_buf_init(&target, 1 << 20);
    kiln_remote_put_text(&target, kiln_str_of(path), true);
    for (; query && query[0]; query += 2)
        kiln_remote_put_param(&target, query[0], query[1]);
    kiln_buf_putc(&target, '\0');
    kiln_answer_init(&answer);
    call.path = target.ptr;
    r = target.error ? target.error : kiln_client_call(place->client, &call, &answer, &err);
    if (r < 0)
        code = err.code ? kiln_cli_fail(NULL, &err)
                        : kiln_cli_fail(place->dir, &(struct kiln_err){.code = r});
    else if (!kiln_remote_accepted(&answer))
        code = refused(place, &answer);
    else
        kiln_buf_add_str(out, kiln_buf_str(&answer.body));
    kiln_answer_done(&answer);
    kiln_buf_done(&target);
    return code;
}

/* ---- opening ---- */

static int check_there(const char *dir)
{
    struct kiln_err err = {0};
    struct stat st;
    int r = stat(dir, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;

    if (r == 0)
        return KILN_EXIT_WELL;
    kiln_err_set(&err, r, NULL, "%s",
                 r == -ENOENT ? "no such directory (give --data-dir DIR)" : kiln_err_text(r));
    return kiln_cli_fail(dir, &err);
}

/* Opening would make one. */
static int check_store(const struct kiln_store_place *place)
{
    struct kiln_err err = {0};
    int fd = place->io->open(place->io, "store.json", O_RDONLY);

    if (fd >= 0) {
        place->io->close(place->io, fd);
        return KILN_EXIT_WELL;
    }
    kiln_err_set(&err, fd, NULL, "%s",
                 fd == -ENOENT ? "there is no store in this directory" : kiln_err_text(fd));
    return kiln_cli_fail(place->dir, &err);
}

static int open_engine(const struct kiln_cli *cli, enum kiln_store_need need,
                       struct kiln_store_place *place)
{
    static struct kiln_pool pool;
    struct kiln_store_opts opts = {.io = place->io,
                                   .pool = &pool,
                                   .follow = kiln_recipe_follow,
                                   .read_only = need == KILN_STORE_READ,
                                   .retention.age_ns = UINT64_MAX, /* the server knows better */
                                   .no_background = true};
    struct kiln_err err = {0};

    kiln_pool_init(&pool, "store",
                   cli->args.store.memory_bytes ? cli->args.store.memory_bytes : MEMORY_BYTES,
                   NULL);
    if (kiln_store_open(&opts, &place->engine, &err) < 0)
        return kiln_cli_fail(place->dir, &err);
    return KILN_EXIT_WELL;
}

static int open_dir(const struct kiln_cli *cli, enum kiln_store_need need,
                    struct kiln_store_place *place)
{
    struct kiln_err err = {0};
    int code, r = kiln_io_open(place->dir, true, &place->io);

    if (r == 0 && need == KILN_STORE_FILES)
        return KILN_EXIT_WELL;
    code = r == 0 ? check_store(place) : KILN_EXIT_WELL;
    if (code)
        return code;
    if (r == 0 && need == KILN_STORE_CHANGE) {
        kiln_io_close(place->io);
        place->io = NULL;
        r = kiln_io_open(place->dir, false, &place->io);
    }
    if (r == -EWOULDBLOCK)
        return open_socket(cli, place);
    if (r < 0) {
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        return kiln_cli_fail(place->dir, &err);
    }
    return open_engine(cli, need, place);
}

int kiln_store_place_open(const struct kiln_cli *cli, enum kiln_store_need need,
                          struct kiln_store_place *ret_place)
{
    struct kiln_store_place place = {0};
    int code;

    if (cli->args.remote.server) {
        code = open_client(cli, cli->args.remote.server, &place);
    } else {
        code = kiln_store_dir(cli, place.dir);
        if (code == 0)
            code = check_there(place.dir);
        if (code == 0)
            code = is_locked(place.dir) ? open_socket(cli, &place) : open_dir(cli, need, &place);
    }
    if (code)
        kiln_store_place_close(&place);
    else
        *ret_place = place;
    return code;
}

void kiln_store_place_close(struct kiln_store_place *place)
{
    kiln_client_free(place->client);
    if (place->engine)
        place->engine->ops->close(place->engine);
    if (place->io)
        kiln_io_close(place->io);
    *place = (struct kiln_store_place){0};
}
