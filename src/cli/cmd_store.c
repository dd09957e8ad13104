/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln store VERB: what keeps a store in shape.  Each verb does its work in the directory or asks
 * the server that has it, and prints the same answer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "cli/store.h"
#include "store/backup.h"
#include "store/check.h"
#include "store/choose.h"
#include "store/store.h"
#include "store/usage.h"

#define JSON_MAX     ((size_t)1 << 30)
#define EXPORT_BYTES ((size_t)1 << 30)

static int failed(const struct kiln_store_place *place, const struct kiln_err *err)
{
    return kiln_cli_fail(place->dir, err);
}

static void show_progress(void *context, uint32_t done, uint32_t all)
{
    kiln_term_progress(context, done, all);
}

/* ---- check ---- */

static int get_check(struct kiln_store_place *place, struct kiln_buf *json)
{
    struct kiln_store_check_opts opts = {.progress = show_progress, .context = "checking"};
    struct kiln_store_check check;
    struct kiln_err err = {0};

    if (place->client)
        return kiln_store_ask(place, "POST", "/api/v1/store/check", NULL, json);
    if (kiln_store_check(place->io, &opts, &check, &err) < 0)
        return failed(place, &err);
    kiln_store_check_format(&check, json);
    kiln_store_check_done(&check);
    return KILN_EXIT_WELL;
}

static int run_check(struct kiln_cli *cli)
{
    struct kiln_store_place place;
    uint64_t damaged = 0;
    struct kiln_buf json;
    int code = kiln_store_place_open(cli, KILN_STORE_FILES, &place);

    if (code)
        return code;
    kiln_buf_init(&json, JSON_MAX);
    code = get_check(&place, &json);
    if (code == 0 && cli->args.json) {
        damaged = kiln_store_read_number(kiln_buf_str(&json), "damaged");
        kiln_buf_add_str(&cli->out, kiln_buf_str(&json));
    } else if (code == 0) {
        code = kiln_store_print_check(cli, kiln_buf_str(&json), &damaged);
    }
    kiln_buf_done(&json);
    kiln_store_place_close(&place);
    return code ? code : damaged ? KILN_EXIT_FAILED : KILN_EXIT_WELL;
}

/* ---- stats ---- */

static int get_stats(const struct kiln_cli *cli, struct kiln_store_place *place,
                     struct kiln_buf *json)
{
    struct kiln_usage_list list;
    struct kiln_err err = {0};

    if (place->client)
        return kiln_store_ask(place, "GET", "/api/v1/store/stats", NULL, json);
    if (kiln_usage_collect(place->engine, kiln_str_of(cli->args.remote.tenant), &list, &err) < 0)
        return failed(place, &err);
    kiln_usage_format(&list, json);
    kiln_usage_done(&list);
    return KILN_EXIT_WELL;
}

static int run_stats(struct kiln_cli *cli)
{
    struct kiln_store_place place;
    struct kiln_buf json;
    int code = kiln_store_place_open(cli, KILN_STORE_READ, &place);

    if (code)
        return code;
    kiln_buf_init(&json, JSON_MAX);
    code = get_stats(cli, &place, &json);
    if (code == 0 && cli->args.json)
        kiln_buf_add_str(&cli->out, kiln_buf_str(&json));
    else if (code == 0)
        code = kiln_store_print_stats(cli, kiln_buf_str(&json));
    kiln_buf_done(&json);
    kiln_store_place_close(&place);
    return code;
}

/* ---- compact, backup, delete: a number comes back ---- */

static void put_result(struct kiln_cli *cli, const char *name, uint64_t number)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, &cli->out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, name);
    kiln_json_put_u64(&w, number);
    kiln_json_end_object(&w);
    kiln_buf_putc(&cli->out, '\n');
}

static uint64_t blocks_of(struct kiln_engine *engine)
{
    struct kiln_engine_stats stats;

    engine->ops->stats(engine, KILN_STR_NONE, &stats);
    return stats.blocks;
}

static int ask_number(struct kiln_store_place *place, const char *method, const char *path,
                      const char *const *query, const char *name, uint64_t *ret)
{
    struct kiln_buf json;
    int code;

    kiln_buf_init(&json, JSON_MAX);
    code = kiln_store_ask(place, method, path, query, &json);
    if (code == 0)
        *ret = kiln_store_read_number(kiln_buf_str(&json), name);
    kiln_buf_done(&json);
    return code;
}

static int do_compact(struct kiln_store_place *place, uint64_t *ret_blocks)
{
    struct kiln_err err = {0};

    if (place->client)
        return ask_number(place, "POST", "/api/v1/store/compact", NULL, "blocks", ret_blocks);
    if (kiln_store_flush(place->engine, &err) < 0 ||
        kiln_store_compact(place->engine, true, &err) < 0)
        return failed(place, &err);
    *ret_blocks = blocks_of(place->engine);
    return KILN_EXIT_WELL;
}

static int run_compact(struct kiln_cli *cli)
{
    struct kiln_store_place place;
    uint64_t blocks = 0;
    int code = kiln_store_place_open(cli, KILN_STORE_CHANGE, &place);

    if (code)
        return code;
    code = do_compact(&place, &blocks);
    kiln_store_place_close(&place);
    if (code == 0 && cli->args.json) {
        put_result(cli, "blocks", blocks);
    } else if (code == 0) {
        kiln_report_count(&cli->out, (double)blocks, "block");
        kiln_buf_puts(&cli->out, " left, nothing more to merge\n");
    }
    return code;
}

/* A server elsewhere takes a name in its own directory for backups. */
static bool is_elsewhere(const struct kiln_store_place *place)
{
    return place->client && strncmp(place->dir, "unix:", 5) != 0;
}

static int do_backup(struct kiln_store_place *place, const char *target, uint64_t *ret_blocks)
{
    const char *query[] = {"dir", target, NULL};
    struct kiln_err err = {0};

    if (place->client)
        return ask_number(place, "POST", "/api/v1/store/backup", query, "blocks", ret_blocks);
    if (kiln_store_backup(place->engine, target, &err) < 0)
        return kiln_cli_fail(target, &err);
    *ret_blocks = blocks_of(place->engine);
    return KILN_EXIT_WELL;
}

/* The server's working directory is another one than ours. */
static int absolute(const char *path, char ret[PATH_MAX])
{
    char here[PATH_MAX];
    int n = path[0] == '/'           ? snprintf(ret, PATH_MAX, "%s", path)
            : getcwd(here, PATH_MAX) ? snprintf(ret, PATH_MAX, "%s/%s", here, path)
                                     : PATH_MAX;

    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int run_backup(struct kiln_cli *cli)
{
    struct kiln_store_place place;
    struct kiln_err err = {0};
    char target[PATH_MAX];
    uint64_t blocks = 0;
    int code;

    if (absolute(cli->args.operands.items[1], target) < 0) {
        kiln_err_set(&err, -ENAMETOOLONG, NULL, "the path is too long");
        return kiln_cli_fail(cli->args.operands.items[1], &err);
    }
    code = kiln_store_place_open(cli, KILN_STORE_CHANGE, &place);
    if (code)
        return code;
    if (is_elsewhere(&place))
        snprintf(target, sizeof(target), "%s", cli->args.operands.items[1]);
    code = do_backup(&place, target, &blocks);
    kiln_store_place_close(&place);
    if (code == 0 && cli->args.json) {
        put_result(cli, "blocks", blocks);
    } else if (code == 0) {
        kiln_report_count(&cli->out, (double)blocks, "block");
        kiln_buf_puts(&cli->out, " in ");
        kiln_cli_put_safe(&cli->out, kiln_str_of(target));
        kiln_buf_putc(&cli->out, '\n');
    }
    return code;
}

static int do_delete(const struct kiln_cli *cli, struct kiln_store_place *place,
                     const char *service, uint64_t *ret_profiles)
{
    const char *tenant = cli->args.remote.tenant ? cli->args.remote.tenant : "anonymous";
    struct kiln_err err = {0};
    struct kiln_buf path;
    int code;

    if (!place->client) {
        if (place->engine->ops->delete_service(place->engine, kiln_str_of(tenant),
                                               kiln_str_of(service), ret_profiles, &err) < 0)
            return failed(place, &err);
        return KILN_EXIT_WELL;
    }
    kiln_buf_init(&path, 1 << 16);
    kiln_buf_puts(&path, "/api/v1/services/");
    kiln_buf_puts(&path, service);
    kiln_buf_putc(&path, '\0');
    code = path.error ? kiln_cli_usage(cli->command, "the name is too long")
                      : ask_number(place, "DELETE", path.ptr, NULL, "profiles", ret_profiles);
    kiln_buf_done(&path);
    return code;
}

static int run_delete(struct kiln_cli *cli)
{
    const char *service = cli->args.operands.items[1];
    struct kiln_store_place place;
    uint64_t profiles = 0;
    int code = kiln_store_place_open(cli, KILN_STORE_CHANGE, &place);

    if (code)
        return code;
    code = do_delete(cli, &place, service, &profiles);
    kiln_store_place_close(&place);
    if (code == 0 && cli->args.json) {
        put_result(cli, "profiles", profiles);
    } else if (code == 0) {
        kiln_report_count(&cli->out, (double)profiles, "profile");
        kiln_buf_puts(&cli->out, " deleted\n");
    }
    return code;
}

/* ---- restore ---- */

static int run_restore(struct kiln_cli *cli)
{
    const char *backup = cli->args.operands.items[1];
    struct kiln_transfer_opts opts = {.progress = show_progress, .context = "restoring"};
    struct kiln_store_check check;
    struct kiln_err err = {0};
    char dir[PATH_MAX];
    struct kiln_buf json;
    uint64_t damaged;
    int code = kiln_store_dir(cli, dir);

    if (code)
        return code;
    if (kiln_store_restore(backup, dir, &opts, &check, &err) < 0) {
        code = kiln_cli_fail(NULL, &err);
        kiln_buf_init(&json, JSON_MAX);
        if (check.n_damages) {
            kiln_store_check_format(&check, &json);
            if (kiln_store_print_check(cli, kiln_buf_str(&json), &damaged))
                kiln_buf_clear(&cli->out);
        }
        kiln_buf_done(&json);
    } else if (cli->args.json) {
        put_result(cli, "blocks", check.blocks);
    } else {
        kiln_report_count(&cli->out, (double)check.blocks, "block");
        kiln_buf_puts(&cli->out, " in ");
        kiln_cli_put_safe(&cli->out, kiln_str_of(dir));
        kiln_buf_putc(&cli->out, '\n');
    }
    kiln_store_check_done(&check);
    return code;
}

/* ---- export ---- */

enum { WORDS_MAX = 5 };

/* The words of the selection, as name, value, ... */
static const char **selection_words(const struct kiln_cli *cli)
{
    const struct kiln_list *matches = &cli->args.store.matches;
    const char **words = kiln_calloc(2 * ((size_t)matches->n + WORDS_MAX) + 1, sizeof(*words));
    const char *fixed[2 * WORDS_MAX] = {
        "tenant", cli->args.remote.tenant, "service", cli->args.store.service,
        "type",   cli->args.store.type,    "from",    cli->args.store.from,
        "to",     cli->args.store.to,
    };
    size_t n = 0;

    for (size_t i = 0; words && i < WORDS_MAX; i++) {
        words[n++] = fixed[2 * i];
        words[n++] = fixed[2 * i + 1];
    }
    for (uint32_t i = 0; words && i < matches->n; i++) {
        words[n++] = "match";
        words[n++] = matches->items[i];
    }
    return words;
}

/* Checked here also for a server, so that a mistake is told the same way. */
static int choose(const struct kiln_cli *cli, const char *const *words, struct kiln_choice *choice)
{
    struct kiln_err err = {0};
    int r = 1;

    for (; r >= 0 && words[0]; words += 2) {
        if (words[1])
            r = kiln_choice_add(choice, kiln_str_of(words[0]), kiln_str_of(words[1]), &err);
    }
    if (r >= 0)
        r = kiln_choice_end(choice, &err);
    return r < 0 ? kiln_cli_usage(cli->command, "%s", err.text) : KILN_EXIT_WELL;
}

static int fetch(struct kiln_store_place *place, const char *const *words,
                 struct kiln_batch **ret_batch)
{
    struct kiln_decode_opts opts = {.format = KILN_FORMAT_OTLP, .input_bytes = JSON_MAX};
    struct kiln_err err = {0};
    struct kiln_buf body;
    int code;

    kiln_buf_init(&body, JSON_MAX);
    code = kiln_store_ask(place, "GET", "/api/v1/store/export", words, &body);
    if (code == 0 && kiln_decode(kiln_buf_str(&body), &opts, ret_batch, NULL, &err) < 0)
        code = failed(place, &err);
    kiln_buf_done(&body);
    return code;
}

static int get_batch(struct kiln_store_place *place, const char *const *words,
                     const struct kiln_choice *choice, struct kiln_batch **ret_batch)
{
    struct kiln_err err = {0};

    if (place->client)
        return fetch(place, words, ret_batch);
    if (place->engine->ops->select(place->engine, &choice->selection, EXPORT_BYTES, ret_batch,
                                   &err) < 0)
        return failed(place, &err);
    return KILN_EXIT_WELL;
}

static int export_to(struct kiln_cli *cli, const char *const *words,
                     const struct kiln_choice *choice, enum kiln_format format)
{
    struct kiln_store_place place;
    struct kiln_batch *batch = NULL;
    int code = kiln_store_place_open(cli, KILN_STORE_READ, &place);

    if (code)
        return code;
    code = get_batch(&place, words, choice, &batch);
    kiln_store_place_close(&place);
    if (code == 0 && batch->n_profiles == 0) {
        kiln_cli_note(NULL, "no profiles are chosen (`kiln store stats` shows what there is)");
        code = KILN_EXIT_INPUT;
    } else if (code == 0) {
        code = kiln_output_batch(cli, batch, format);
    }
    kiln_batch_unref(batch);
    return code;
}

static int run_export(struct kiln_cli *cli)
{
    struct kiln_choice *choice = kiln_calloc(1, sizeof(*choice));
    const char **words = selection_words(cli);
    enum kiln_format format;
    int code = cli->args.to == KILN_FORMAT_UNKNOWN && !cli->args.output
                   ? kiln_cli_usage(cli->command, "give -o FILE or --format FORMAT")
                   : kiln_output_format(cli, KILN_FORMAT_UNKNOWN, &format);

    if (code == 0 && (!choice || !words))
        code = kiln_cli_fail(NULL, &(struct kiln_err){.code = -ENOMEM});
    if (code == 0) {
        kiln_choice_init(choice);
        code = choose(cli, words, choice);
        if (code == 0)
            code = export_to(cli, words, choice, format);
        kiln_choice_done(choice);
    }
    kiln_free(choice);
    kiln_free(words);
    return code;
}

/* ---- verbs ---- */

static const struct kiln_verb verbs[] = {
    {"check", NULL, run_check},
    {"stats", NULL, run_stats},
    {"compact", NULL, run_compact},
    {"export", NULL, run_export},
    {"backup", "DIR", run_backup},
    {"restore", "DIR", run_restore},
    {"delete", "SERVICE", run_delete},
    {"salvage", NULL, kiln_store_run_salvage},
    {0},
};

static const char *const words[] = {"check",   "stats",  "compact", "export", "backup",
                                    "restore", "delete", "salvage", NULL};

static int run(struct kiln_cli *cli)
{
    return kiln_cli_run_verb(cli, verbs);
}

static const struct kiln_option options[] = {
    KILN_OPT("data-dir", 0, KILN_OPT_TEXT, store.data_dir, "DIR",
             "the store (KILN_DATA_DIR, /var/lib/kiln, ~/.local/share/kiln)"),
    KILN_OPT("memory-limit", 0, KILN_OPT_SIZE, store.memory_bytes, "SIZE",
             "the most that merging and reading may take (1G)"),
    KILN_OPT_JSON,
    KILN_OPT_WIDE,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Store", options};

static const struct kiln_option export_options[] = {
    KILN_OPT("service", 0, KILN_OPT_TEXT, store.service, "NAME", "of this service"),
    KILN_OPT("type", 't', KILN_OPT_TEXT, store.type, "TYPE",
             "of this profile type: cpu, alloc_space, process_cpu:cpu:nanoseconds, ..."),
    KILN_OPT("from", 0, KILN_OPT_TEXT, store.from, "TIME",
             "from this time on: 2026-03-01T12:00:00Z, now-1h, Unix time"),
    KILN_OPT("to", 0, KILN_OPT_TEXT, store.to, "TIME", "up to this time"),
    KILN_OPT("match", 'm', KILN_OPT_LIST, store.matches, "CONDITION",
             "of series with this label: key=value, key!=value, key=~REGEX, key!~REGEX"),
    KILN_OPT(
        "output", 'o', KILN_OPT_TEXT, output, "FILE",
        "write to FILE, whose ending says the format; salvage: OTLP files into directory FILE"),
    KILN_OPT("format", 0, KILN_OPT_WRITES, to, "FORMAT", "write this format"),
    KILN_OPT_END,
};
static const struct kiln_option_group export_group = {"Export", export_options};

static const struct kiln_option salvage_options[] = {
    KILN_OPT("dry-run", 0, KILN_OPT_FLAG, store.dry_run, NULL,
             "change nothing, say what can be recovered"),
    KILN_OPT("discard", 0, KILN_OPT_FLAG, store.discard, NULL,
             "remove also what cannot be recovered"),
    KILN_OPT_END,
};
static const struct kiln_option_group salvage_group = {"Salvage", salvage_options};

const struct kiln_command kiln_cmd_store = {
    .name = "store",
    .summary = "look after a server's store: check, stats, compact, export, backup, salvage, ...",
    .operands = "VERB [DIR|SERVICE]",
    .operands_min = 1,
    .operands_max = 2,
    .words = words,
    .about =
        "`check` reads every byte and names what is damaged; it changes nothing, and exits with 1 "
        "where there is damage. `stats` says what is in the store, by service and profile type. "
        "`compact` merges blocks until nothing is left to merge. `export` writes a selection as a "
        "profile. `backup DIR` puts a copy into a new directory, by hard links where it can (with "
        "--server URL, "
        "DIR is a name in the directory of its setting `server.backup_dir`); "
        "`restore DIR` checks such a copy and makes a new store of it in --data-dir. `delete "
        "SERVICE` removes every profile of a service, for good.\n"
        "\n"
        "`salvage` puts profiles of damaged files, which the server has set aside in the store's "
        "directory aside/, back into the store, without duplicates, or writes them to --output. A "
        "file with nothing left to recover is removed; what cannot be read is kept, unless "
        "--discard is given. It exits with 1 if something is kept.\n"
        "\n"
        "A store that a server has open is asked for through the server's socket (KILN_SOCKET, "
        "/run/kiln/kiln.sock), or where --server says.",
    .groups = {&group, &export_group, &salvage_group, &kiln_group_remote},
    .examples = {{"kiln store check --data-dir examples/store", "is all well?"},
                 {"kiln store stats --data-dir examples/store", "what is in there"},
                 {"kiln store export --data-dir examples/store --service checkout --type cpu "
                  "--from 2026-03-01T12:06:00Z -o /tmp/later.pb.gz",
                  "a part of it as pprof"},
                 {"kiln store salvage --data-dir examples/store --dry-run",
                  "what of damaged files can be recovered"}},
    .run = run,
};
