/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/load_run.h"
#include "cli/remote.h"
#include "cli/report.h"

#define DAY_NS        (86400 * KILN_NS_PER_S)
#define KEEP_BYTES    ((size_t)256 << 20)
#define HOST_SAMPLES  150u
#define PPROF_SAMPLES 20430u
#define PROFILES      100u

static const char *const shapes[] = {"host", "pprof", NULL};
static const char *const churns[] = {"usual", "address", "graft", "frames", NULL};
static const char *const protocols[] = {"otlp-grpc", "otlp-http", "pyroscope", NULL};
static const char *const compressions[] = {"none", "gzip", "zstd", NULL};
static const char *const types[] = {
#define X(suffix, name) name,
    KILN_LOAD_TYPE_MAP(X)
#undef X
        NULL};

/* ---- what the options ask for ---- */

/* "cpu,heap" as bits; 0 where a name is wrong. */
static uint32_t parse_types(struct kiln_str list)
{
    uint32_t bits = 0;

    while (list.ptr) {
        struct kiln_str name = kiln_str_cut(&list, ',');
        uint32_t i = 0;

        while (types[i] && !kiln_str_eq(name, kiln_str_of(types[i])))
            i++;
        if (!types[i])
            return 0;
        bits |= 1u << i;
    }
    return bits;
}

static int read_opts(const struct kiln_cli *cli, struct kiln_load_opts *ret)
{
    const struct kiln_args *args = &cli->args;
    bool host = args->load.shape == KILN_LOAD_HOST;
    uint32_t bits = parse_types(kiln_str_of(args->load.types ? args->load.types : "cpu"));

    if (bits == 0)
        return kiln_cli_usage(cli->command,
                              "--types: \"%.40s\" names a type that is not known "
                              "(cpu, off_cpu, wall, heap, mutex, block, goroutine)",
                              args->load.types);
    if (host && (bits & ~(1u << KILN_LOAD_CPU | 1u << KILN_LOAD_OFF_CPU)))
        return kiln_cli_usage(cli->command, "--types: hosts send cpu and off_cpu (see --shape)");
    if (host && args->load.protocol == KILN_LOAD_PYROSCOPE)
        return kiln_cli_usage(cli->command, "hosts speak OTLP (say --shape pprof, or --protocol "
                                            "otlp-http)");
    if (args->load.churn > 100 || args->load.spans > 100)
        return kiln_cli_usage(cli->command, "--churn and --spans are at most 100 %%");
    if (args->load.host_churn > 100)
        return kiln_cli_usage(cli->command, "--host-churn is at most 100 %%");
    if (args->load.tenants && args->remote.tenant)
        return kiln_cli_usage(cli->command, "--tenants and --tenant exclude each other");
    *ret = (struct kiln_load_opts){
        .shape = (enum kiln_load_shape)args->load.shape,
        .how = host ? KILN_CHURN_ADDRESS : KILN_CHURN_GRAFT,
        .churn = args->load.churn / 100,
        .spans = args->load.spans / 100,
        .types = bits,
        .services = args->load.services ? args->load.services : 1,
        .hosts = args->load.hosts ? args->load.hosts : 1,
        .host_churn = args->load.host_churn / 100,
        .tenants = args->load.tenants,
        .processes = args->load.processes ? args->load.processes : 1,
        .samples = args->load.samples ? args->load.samples
                   : host             ? HOST_SAMPLES
                                      : PPROF_SAMPLES,
        .seed = args->load.seed,
        .ids = args->load.journal != NULL,
    };
    if (args->load.churn_by)
        ret->how = (enum kiln_load_churn)(args->load.churn_by - 1);
    return KILN_EXIT_WELL;
}

/* All templates as one batch, their profiles apart; NULL without any. */
static int read_templates(const struct kiln_cli *cli, struct kiln_batch **ret_batch)
{
    struct kiln_cli other = *cli;

    *ret_batch = NULL;
    if (cli->args.load.templates.n == 0)
        return KILN_EXIT_WELL;
    other.args.operands = cli->args.load.templates;
    other.args.keep_apart = true;
    return kiln_input_merge(&other, 0, ret_batch);
}

static int parse_time(const struct kiln_cli *cli, const char *option, const char *text,
                      uint64_t *ret_ns)
{
    if (text && kiln_when_parse(kiln_str_of(text), kiln_clock_unix_ns(), ret_ns) < 0)
        return kiln_cli_usage(
            cli->command, "%s: \"%.40s\" is no time (say 2026-03-01T12:00:00Z, -1h)", option, text);
    return KILN_EXIT_WELL;
}

/* How many requests there are, and what times they tell of. */
static int plan_times(const struct kiln_cli *cli, struct kiln_load_plan *plan)
{
    const struct kiln_args *args = &cli->args;
    uint64_t round = kiln_load_round(plan->load), step = kiln_load_step_ns(plan->load);
    uint64_t from = 0, to = 0, rounds;

    if (parse_time(cli, "--from", args->load.from, &from) ||
        parse_time(cli, "--to", args->load.to, &to))
        return KILN_EXIT_USAGE;
    if (args->load.from && args->load.to && to <= from)
        return kiln_cli_usage(cli->command, "--to is not after --from");
    plan->requests = args->load.profiles;
    if (!plan->requests && from && to)
        plan->requests = (to - from + step - 1) / step * round;
    if (!plan->requests && !plan->duration_ns)
        plan->requests = PROFILES;
    if (!plan->requests && !from)
        return KILN_EXIT_WELL; /* as time goes by */
    rounds = (plan->requests + round - 1) / round;
    if (from && to && rounds)
        step = (to - from) / rounds ? (to - from) / rounds : 1;
    else if (!from && rounds * step > DAY_NS)
        step = DAY_NS / rounds;
    if (!from)
        from = (to ? to : kiln_clock_unix_ns()) - rounds * step;
    kiln_load_set_times(plan->load, from, step);
    return KILN_EXIT_WELL;
}

static int open_journal(const struct kiln_cli *cli, struct kiln_load_plan *plan)
{
    const char *path = cli->args.load.journal;
    struct kiln_err err = {0};

    if (!path)
        return KILN_EXIT_WELL;
    plan->journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (plan->journal >= 0)
        return KILN_EXIT_WELL;
    kiln_err_set(&err, -errno, NULL, "%s", kiln_err_text(-errno));
    return kiln_cli_fail(path, &err);
}

/* ---- the account ---- */

static void put_ms(struct kiln_buf *out, const char *name, uint64_t ns)
{
    kiln_buf_printf(out, "  %s ", name);
    kiln_report_number(out, (double)ns, KILN_STR("nanoseconds"));
}

static void print_latencies(const struct kiln_load_account *a, struct kiln_buf *out)
{
    kiln_buf_puts(out, "latency     ");
    put_ms(out, "p50", kiln_load_percentile(a, 0.50));
    put_ms(out, "p90", kiln_load_percentile(a, 0.90));
    put_ms(out, "p99", kiln_load_percentile(a, 0.99));
    put_ms(out, "max", a->longest_ns);
    kiln_buf_putc(out, '\n');
}

static void print_line(struct kiln_buf *out, const char *label, uint64_t count, const char *noun)
{
    kiln_buf_printf(out, "%-14s", label);
    kiln_report_count(out, (double)count, noun);
}

static double per_second(const struct kiln_load_account *a, uint64_t n)
{
    return a->elapsed_ns ? (double)n * 1e9 / (double)a->elapsed_ns : 0;
}

static void print_sent(const struct kiln_load_account *a, struct kiln_buf *out)
{
    print_line(out, "acknowledged", a->acknowledged, "request");
    kiln_buf_puts(out, ": ");
    kiln_report_count(out, (double)a->profiles, "profile");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, (double)a->samples, "sample");
    kiln_buf_putc(out, '\n');
    kiln_buf_printf(out,
                    "refused       %llu, failed %llu, rejected profiles %llu, tries again %llu\n",
                    (unsigned long long)a->refused, (unsigned long long)a->failed,
                    (unsigned long long)a->rejected, (unsigned long long)a->again);
    print_latencies(a, out);
}

static void print(const struct kiln_load_plan *plan, const struct kiln_load_account *a,
                  struct kiln_buf *out)
{
    uint64_t stacks, nodes;

    kiln_load_counts(plan->load, &stacks, &nodes);
    if (!plan->out)
        print_sent(a, out);
    print_line(out, plan->out ? "written" : "sent", a->sent, "request");
    kiln_buf_puts(out, " in ");
    kiln_report_number(out, (double)a->elapsed_ns, KILN_STR("nanoseconds"));
    kiln_buf_printf(out, " (%.1f/s), ", per_second(a, a->sent));
    kiln_report_number(out, (double)a->bytes_sent, KILN_STR("bytes"));
    kiln_buf_puts(out, " of ");
    kiln_report_number(out, (double)a->bytes_raw, KILN_STR("bytes"));
    kiln_buf_puts(out, " raw\n");
    print_line(out, "stacks", stacks, "distinct stack");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, (double)nodes, "tree node");
    kiln_buf_putc(out, '\n');
    kiln_buf_puts(out, "generator     ");
    kiln_report_number(out, a->sent ? (double)a->make_cpu_ns / (double)a->sent : 0,
                       KILN_STR("nanoseconds"));
    kiln_buf_puts(out, " of CPU a request, compression included\n");
}

static void put_number(struct kiln_json_out *w, const char *name, uint64_t value)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, value);
}

static void put_json(const struct kiln_load_plan *plan, const struct kiln_load_account *a,
                     struct kiln_buf *out)
{
    uint64_t stacks, nodes;
    struct kiln_json_out w;

    kiln_load_counts(plan->load, &stacks, &nodes);
    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    put_number(&w, "requests", a->sent);
    put_number(&w, "acknowledged", a->acknowledged);
    put_number(&w, "refused", a->refused);
    put_number(&w, "failed", a->failed);
    put_number(&w, "tried_again", a->again);
    put_number(&w, "profiles", a->profiles);
    put_number(&w, "rejected", a->rejected);
    put_number(&w, "samples", a->samples);
    put_number(&w, "bytes", a->bytes_sent);
    put_number(&w, "raw_bytes", a->bytes_raw);
    put_number(&w, "elapsed_ns", a->elapsed_ns);
    put_number(&w, "generator_cpu_ns", a->make_cpu_ns);
    put_number(&w, "stacks", stacks);
    put_number(&w, "tree_nodes", nodes);
    kiln_json_put_name(&w, "latency_ns");
    kiln_json_put_object(&w);
    put_number(&w, "p50", kiln_load_percentile(a, 0.50));
    put_number(&w, "p90", kiln_load_percentile(a, 0.90));
    put_number(&w, "p99", kiln_load_percentile(a, 0.99));
    put_number(&w, "max", a->longest_ns);
    kiln_json_end_object(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

/* ---- the command ---- */

static int exit_code(const struct kiln_load_account *a)
{
    if (a->err.code)
        kiln_cli_fail(NULL, &a->err);
    if (a->failed)
        return KILN_EXIT_IO;
    return a->refused || a->rejected ? KILN_EXIT_FAILED : KILN_EXIT_WELL;
}

static int send_load(struct kiln_cli *cli, struct kiln_load_plan *plan)
{
    struct kiln_load_account *account = kiln_calloc(1, sizeof(*account));
    struct kiln_err err = {0};
    int code;

    if (!account || kiln_load_run(cli, plan, account, &err) < 0) {
        kiln_err_set(&err, -ENOMEM, NULL, "out of memory");
        kiln_free(account);
        return kiln_cli_fail(NULL, &err);
    }
    if (cli->args.json)
        put_json(plan, account, &cli->out);
    else if (!cli->args.push.quiet)
        print(plan, account, &cli->out);
    code = exit_code(account);
    kiln_free(account);
    return code;
}

static int run_plan(struct kiln_cli *cli, struct kiln_load *load)
{
    const struct kiln_args *args = &cli->args;
    struct kiln_load_plan plan = {
        .load = load,
        .wire = {(enum kiln_load_protocol)args->load.protocol,
                 (enum kiln_compression)args->load.compression},
        .duration_ns = args->load.duration_ns,
        .rate = args->load.rate,
        .connections = args->load.connections ? args->load.connections : 1,
        .retry_ns = args->push.retry_ns,
        .prepare = args->load.prepare,
        .quiet = args->push.quiet,
        .out = args->load.out,
        .journal = -1,
    };
    int code = plan_times(cli, &plan);

    if (code)
        return code;
    if (!plan.requests && (plan.prepare || plan.out))
        return kiln_cli_usage(cli->command, "--prepare and --out need --profiles");
    code = open_journal(cli, &plan);
    if (code == 0)
        code = send_load(cli, &plan);
    if (plan.journal >= 0)
        close(plan.journal);
    return code;
}

static int run(struct kiln_cli *cli)
{
    struct kiln_load_opts opts;
    struct kiln_load *load;
    struct kiln_err err = {0};
    int code = read_opts(cli, &opts);

    kiln_mem_keep(KEEP_BYTES, KEEP_BYTES);
    if (code == 0)
        code = read_templates(cli, &opts.base);
    if (code)
        return code;
    if (kiln_load_new(&opts, &load, &err) < 0) {
        kiln_batch_unref(opts.base);
        return kiln_cli_fail(NULL, &err);
    }
    kiln_batch_unref(opts.base);
    code = run_plan(cli, load);
    kiln_load_free(load);
    return code;
}

static const struct kiln_option fleet_options[] = {
    KILN_OPT_OF("shape", load.shape, shapes, "SHAPE",
                "host: batches of a host profiler; pprof: profiles of one process each (host)"),
    KILN_OPT("template", 0, KILN_OPT_LIST, load.templates, "FILE",
             "take stacks and types from this real profile instead of inventing them"),
    KILN_OPT("services", 0, KILN_OPT_COUNT, load.services, "N", "so many services (10)"),
    KILN_OPT("hosts", 0, KILN_OPT_COUNT, load.hosts, "N", "on so many hosts (4)"),
    KILN_OPT("host-churn", 0, KILN_OPT_PERCENT, load.host_churn, "PERCENT",
             "hosts that new ones replace in every round of requests (0)"),
    KILN_OPT("tenants", 0, KILN_OPT_COUNT, load.tenants, "N",
             "share the hosts out among so many tenants (0: name no tenant)"),
    KILN_OPT("processes", 0, KILN_OPT_COUNT, load.processes, "N",
             "processes in a host's batch, three of five never seen before (20)"),
    KILN_OPT("samples", 0, KILN_OPT_COUNT, load.samples, "N",
             "samples in a host's batch (150), or in an invented pprof (20430)"),
    KILN_OPT("types", 0, KILN_OPT_TEXT, load.types, "TYPE,...",
             "cpu, off_cpu; with --shape pprof also wall, heap, mutex, block, goroutine (cpu)"),
    KILN_OPT("churn", 0, KILN_OPT_PERCENT, load.churn, "PERCENT",
             "samples of every request whose stack was never sent before (5)"),
    KILN_OPT_OF("churn-by", load.churn_by, churns, "HOW",
                "another address in one frame, callees grafted from another stack, or callees "
                "drawn frame by frame (address for hosts, graft for pprof)"),
    KILN_OPT("spans", 0, KILN_OPT_PERCENT, load.spans, "PERCENT",
             "samples that belong to a span (0)"),
    KILN_OPT("seed", 0, KILN_OPT_COUNT, load.seed, "N", "another seed, another fleet (1)"),
    KILN_OPT_END,
};
static const struct kiln_option sending_options[] = {
    KILN_OPT("profiles", 'n', KILN_OPT_COUNT, load.profiles, "N",
             "send so many profiles, or batches of a host (100)"),
    KILN_OPT("duration", 0, KILN_OPT_DURATION, load.duration_ns, "TIME", "stop after this time"),
    KILN_OPT("rate", 0, KILN_OPT_COUNT, load.rate, "N",
             "send so many a second (as fast as it goes)"),
    KILN_OPT("from", 0, KILN_OPT_TEXT, load.from, "TIME",
             "the profiles are of a past that begins here: 2026-03-01T12:00:00Z, -1d"),
    KILN_OPT("to", 0, KILN_OPT_TEXT, load.to, "TIME", "and ends here (now)"),
    KILN_OPT_OF("protocol", load.protocol, protocols, "NAME",
                "otlp-grpc, otlp-http or pyroscope (otlp-http)"),
    KILN_OPT_OF("compression", load.compression, compressions, "NAME",
                "of requests: none, gzip or zstd (gzip)"),
    KILN_OPT("connections", 'j', KILN_OPT_COUNT, load.connections, "N",
             "as many requests under way at once (4)"),
    KILN_OPT("retry", 0, KILN_OPT_DURATION, push.retry_ns, "TIME",
             "go on trying a request for so long where the server allows it (30s)"),
    KILN_OPT("prepare", 0, KILN_OPT_FLAG, load.prepare, NULL,
             "make all requests first, so that making them takes no time while they are sent"),
    KILN_OPT("out", 0, KILN_OPT_TEXT, load.out, "DIR", "write them to files instead"),
    KILN_OPT("journal", 0, KILN_OPT_TEXT, load.journal, "FILE",
             "give every profile an id, and append a line to FILE for each request acknowledged"),
    KILN_OPT("quiet", 'q', KILN_OPT_FLAG, push.quiet, NULL, "say only what goes wrong"),
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group fleet_group = {"Fleet", fleet_options};
static const struct kiln_option_group sending_group = {"Sending", sending_options};

const struct kiln_command kiln_cmd_loadgen = {
    .name = "loadgen",
    .summary = "send a server the profiles of an invented fleet",
    .operands = "",
    .about =
        "Sends profiles as a fleet of services on hosts would, to see what a server can take. Most "
        "stacks repeat, as they do in life; --churn says how many samples of every request have "
        "one that was never sent before. The same seed gives the same requests.\n"
        "\n"
        "The account at the end says what was acknowledged, refused and tried again, how long "
        "answers took, and how many distinct stacks and tree nodes were sent.",
    .groups = {&fleet_group, &sending_group, &kiln_group_remote},
    .examples = {{"kiln loadgen --out /tmp/kiln-load -n 5", "five batches of a host, as files"},
                 {"kiln loadgen --out /tmp/kiln-load -n 2 --shape pprof --template "
                  "examples/checkout.pb.gz --churn 20",
                  "a real profile twice, a fifth of its stacks new each time"}},
    .defaults = {.load = {.services = 10,
                          .hosts = 4,
                          .processes = 20,
                          .churn = 5,
                          .seed = 1,
                          .protocol = KILN_LOAD_OTLP_HTTP,
                          .compression = KILN_GZIP,
                          .connections = 4},
                 .push = {.retry_ns = 30 * KILN_NS_PER_S}},
    .run = run,
};
