/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln store salvage: into the store, here or through its server, or into files of OTLP.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/report.h"
#include "cli/store.h"
#include "codec/otlp.h"
#include "pipeline/receivers/recipe.h"
#include "store/salvage.h"

#define JSON_MAX ((size_t)1 << 30)
#define OTLP_MAX ((size_t)1 << 30)

static void show_progress(void *context, uint32_t done, uint32_t all)
{
    kiln_term_progress(context, done, all);
}

static struct kiln_salvage_opts options_of(const struct kiln_cli *cli)
{
    return (struct kiln_salvage_opts){
        .dry_run = cli->args.store.dry_run,
        .discard = cli->args.store.discard,
        .tenant = kiln_str_of(cli->args.remote.tenant ? cli->args.remote.tenant : ""),
        .memory_bytes = (size_t)cli->args.store.memory_bytes,
        .follow = kiln_recipe_follow,
        .progress = show_progress,
        .context = "salvaging",
    };
}

/* ---- into files ---- */

struct files {
    const char *dir;
    const char *name; /* of the last one in aside/ */
    uint32_t part;    /* of it */
};

static int write_all(int fd, struct kiln_str s)
{
    while (s.len) {
        ssize_t n = write(fd, s.ptr, s.len);

        if (n < 0 && errno != EINTR)
            return -errno;
        s.ptr += n > 0 ? n : 0;
        s.len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int write_file(const char *path, struct kiln_str bytes, struct kiln_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : write_all(fd, bytes);

    if (fd >= 0 && close(fd) < 0 && r == 0)
        r = -errno;
    return r < 0 ? kiln_err_set(err, r, path, "%s", kiln_err_text(r)) : 0;
}

/* DIR/NAME-PART.otlp; what is of many tenants has the tenant before it. */
static int put_batch(void *context, const struct kiln_salvaged *one, struct kiln_err *err)
{
    struct files *files = context;
    bool mixed = kiln_str_ends(kiln_str_of(one->name), KILN_STR(".log"));
    char path[PATH_MAX];
    struct kiln_buf body;
    int r;

    files->part = files->name == one->name ? files->part + 1 : 1;
    files->name = one->name;
    if (snprintf(path, sizeof(path), "%s/%s%s%s-%u.otlp", files->dir, mixed ? one->tenant : "",
                 mixed ? "-" : "", one->name, files->part) >= PATH_MAX)
        return kiln_err_set(err, -ENAMETOOLONG, files->dir, "the path is too long");
    kiln_buf_init(&body, OTLP_MAX);
    r = kiln_otlp_encode(one->batch, NULL, &body, err);
    if (r == 0)
        r = write_file(path, kiln_buf_str(&body), err);
    kiln_buf_done(&body);
    return r;
}

static int count_batch(void *context, const struct kiln_salvaged *one, struct kiln_err *err)
{
    (void)context;
    (void)one;
    (void)err;
    return 0;
}

static int extract(const struct kiln_cli *cli, struct kiln_salvage *ret)
{
    struct kiln_salvage_opts opts = options_of(cli);
    struct files files = {.dir = cli->args.output};
    char dir[PATH_MAX];
    struct kiln_err err = {0};
    struct kiln_io *io;
    int code = kiln_store_dir(cli, dir), r;

    if (code)
        return code;
    if (!opts.dry_run && mkdir(files.dir, 0700) < 0 && errno != EEXIST)
        return kiln_cli_fail(files.dir, &(struct kiln_err){.code = -errno});
    r = kiln_io_open(dir, true, &io);
    if (r < 0) {
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        return kiln_cli_fail(dir, &err);
    }
    r = kiln_salvage_extract(io, &opts, opts.dry_run ? count_batch : put_batch, &files, ret, &err);
    kiln_io_close(io);
    return r < 0 ? kiln_cli_fail(NULL, &err) : KILN_EXIT_WELL;
}

/* ---- into the store ---- */

static int ask_server(const struct kiln_cli *cli, struct kiln_store_place *place,
                      struct kiln_buf *json)
{
    const char *query[] = {"dry_run", cli->args.store.dry_run ? "1" : NULL, "discard",
                           cli->args.store.discard ? "1" : NULL, NULL};

    return kiln_store_ask(place, "POST", "/api/v1/store/salvage", query, json);
}

static int salvage_here(const struct kiln_cli *cli, struct kiln_store_place *place,
                        struct kiln_buf *json)
{
    struct kiln_salvage_opts opts = options_of(cli);
    struct kiln_salvage salvage;
    struct kiln_err err = {0};

    if (kiln_store_salvage(place->engine, &opts, &salvage, &err) < 0)
        return kiln_cli_fail(place->dir, &err);
    kiln_salvage_format(&salvage, json);
    kiln_salvage_done(&salvage);
    return KILN_EXIT_WELL;
}

static int get_salvage(const struct kiln_cli *cli, struct kiln_buf *json)
{
    struct kiln_store_place place;
    struct kiln_salvage salvage;
    int code;

    if (cli->args.output) {
        code = extract(cli, &salvage);
        if (code == 0) {
            kiln_salvage_format(&salvage, json);
            kiln_salvage_done(&salvage);
        }
        return code;
    }
    code = kiln_store_place_open(cli, cli->args.store.dry_run ? KILN_STORE_READ : KILN_STORE_CHANGE,
                                 &place);
    if (code)
        return code;
    code = place.client ? ask_server(cli, &place, json) : salvage_here(cli, &place, json);
    kiln_store_place_close(&place);
    return code;
}

int kiln_store_run_salvage(struct kiln_cli *cli)
{
    struct kiln_buf json;
    int code;

    if (cli->args.output && cli->args.store.discard)
        return kiln_cli_usage(cli->command, "--discard removes files of the store: give it alone");
    kiln_buf_init(&json, JSON_MAX);
    code = get_salvage(cli, &json);
    if (code == 0 && cli->args.json)
        kiln_buf_add_str(&cli->out, kiln_buf_str(&json));
    else if (code == 0)
        code = kiln_store_print_salvage(cli, kiln_buf_str(&json));
    if (code == 0 && kiln_store_read_number(kiln_buf_str(&json), "kept"))
        code = KILN_EXIT_FAILED;
    kiln_buf_done(&json);
    return code;
}
