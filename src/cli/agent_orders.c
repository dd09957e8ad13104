/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_orders.h"

#include <stdio.h>

#include "base/clock.h"
#include "cli/host_status.h"
#include "pipeline/audit.h"

enum { SAMPLES, CPU_S };

/* ---- how the agent is ---- */

static void tell_rates(struct kiln_agent_orders *orders, struct kiln_agent_status *status,
                       uint64_t cpu_ns)
{
    const double values[KILN_PULSE_VALUES] = {
        [SAMPLES] = (double)status->samples, [CPU_S] = (double)cpu_ns / 1e9};
    uint64_t now_ns = kiln_clock_mono_ns();
    struct kiln_pulse_rates rates;

    if (kiln_pulse_is_due(&orders->pulse, now_ns))
        kiln_pulse_note(&orders->pulse, now_ns, values);
    kiln_pulse_rates(&orders->pulse, now_ns, values, &rates);
    status->samples_per_s = rates.per_second[SAMPLES];
    status->cpu_cores = rates.per_second[CPU_S];
}

static void tell_host(struct kiln_agent_orders *orders, struct kiln_agent_status *status)
{
    uint64_t cpu_ns = 0;

    pthread_mutex_lock(&orders->lock);
    if (orders->host)
        kiln_host_status_tell(orders->host, status, &cpu_ns);
    if (orders->exporter)
        kiln_host_status_losses(orders->exporter, status);
    pthread_mutex_unlock(&orders->lock);
    tell_rates(orders, status, cpu_ns);
}

static void tell(void *context, struct kiln_agent_status *ret_status)
{
    struct kiln_agent_orders *orders = context;
    struct kiln_agent_status status = {.version = KILN_VERSION,
                                       .state = KILN_AGENT_FAILED,
                                       .started_ns = orders->started_ns,
                                       .last_seen_ns = kiln_clock_unix_ns()};
    struct kiln_orders followed;

    snprintf(status.id, sizeof(status.id), "%s", orders->facts.id);
    snprintf(status.host, sizeof(status.host), "%s", orders->facts.name);
    snprintf(status.kernel, sizeof(status.kernel), "%s", orders->facts.kernel);
    tell_host(orders, &status);
    kiln_orders_init(&followed, KILN_DUTY_ORDERS_MAX);
    if (kiln_duty_list(orders->duty, &followed) == 0)
        kiln_host_status_orders(&followed, &status);
    kiln_orders_done(&followed);
    *ret_status = status;
}

/* ---- following ---- */

static void follow(void *context, const struct kiln_order *list, uint32_t n)
{
    struct kiln_agent_orders *orders = context;
    int r = 0;

    pthread_mutex_lock(&orders->lock);
    if (orders->host)
        r = kiln_host_set_orders(orders->host, list, n);
    pthread_mutex_unlock(&orders->lock);
    if (r < 0)
        kiln_log(orders->log, KILN_LOG_ERROR, "orders cannot be followed", "reason", "%s",
                 kiln_err_text(r), NULL);
}

static void be_watched(void *context, bool watched)
{
    struct kiln_agent_orders *orders = context;

    pthread_mutex_lock(&orders->lock);
    if (orders->host)
        kiln_host_set_watched(orders->host, watched);
    pthread_mutex_unlock(&orders->lock);
}

/* ---- making ---- */

void kiln_agent_orders_init(struct kiln_agent_orders *orders,
                            const struct kiln_server_config *config, struct kiln_metrics *metrics,
                            struct kiln_log *log)
{
    *orders = (struct kiln_agent_orders){
        .config = config, .metrics = metrics, .log = log, .started_ns = kiln_clock_unix_ns()};
    orders->socket = (struct kiln_agent_socket){.tell = tell, .context = orders};
    kiln_host_find_facts(&orders->facts);
    kiln_pulse_init(&orders->pulse);
    pthread_mutex_init(&orders->lock, NULL);
}

/* Where nothing can be kept, orders hold until the next start. */
static int open_duty(struct kiln_agent_orders *orders, struct kiln_err *err)
{
    struct kiln_duty_opts opts = {.folder = orders->config->set.data_dir,
                                  .host_id = orders->facts.id,
                                  .host_name = orders->facts.name,
                                  .follow = follow,
                                  .context = orders,
                                  .log = orders->log};
    int r = kiln_order_limit_parse(orders->config->set.agent.orders, &opts.limit);
    struct kiln_err why = {0};

    if (r < 0)
        return kiln_err_set(err, r, NULL, "orders: %s", kiln_err_text(r));
    if (kiln_duty_open(&opts, &orders->duty, &why) == 0)
        return 0;
    kiln_log(orders->log, KILN_LOG_WARN, "orders are not kept: a restart forgets them", "where",
             "%s", why.where, "reason", "%s", why.text, NULL);
    opts.folder = NULL;
    return kiln_duty_open(&opts, &orders->duty, err);
}

int kiln_agent_orders_start(struct kiln_agent_orders *orders, struct kiln_host *host,
                            const struct kiln_consumer *exporter, struct kiln_err *err)
{
    struct kiln_agent_link_opts link = {.config = orders->config,
                                        .host_id = orders->facts.id,
                                        .tell = tell,
                                        .watched = be_watched,
                                        .context = orders,
                                        .metrics = orders->metrics,
                                        .log = orders->log};
    int r;

    pthread_mutex_lock(&orders->lock);
    orders->host = host;
    orders->exporter = exporter;
    pthread_mutex_unlock(&orders->lock);
    r = kiln_audit_new(orders->log, &orders->audit);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = open_duty(orders, err);
    if (r < 0)
        return r;
    orders->socket.audit = orders->audit;
    link.duty = orders->duty;
    r = kiln_agent_link_start(&link, &orders->link, err);
    if (r == 0)
        atomic_store(&orders->socket.duty, orders->duty);
    return r;
}

void kiln_agent_orders_stop(struct kiln_agent_orders *orders)
{
    kiln_agent_link_stop(orders->link);
    orders->link = NULL;
    pthread_mutex_lock(&orders->lock);
    orders->host = NULL;
    orders->exporter = NULL;
    pthread_mutex_unlock(&orders->lock);
}

void kiln_agent_orders_done(struct kiln_agent_orders *orders)
{
    kiln_duty_close(orders->duty);
    kiln_audit_free(orders->audit);
    kiln_pulse_done(&orders->pulse);
    pthread_mutex_destroy(&orders->lock);
}
