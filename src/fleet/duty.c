/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two books, FOLDER/orders-told.json and FOLDER/orders-given.json; what is followed is compared
 * with what was, by id and end, after each change.
 */
#include "fleet/duty.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "fleet/order_book.h"

#define TENANT  ""
#define SAME_NS (2 * KILN_NS_PER_S) /* an end that moved by less did not move */

struct kiln_duty {
    struct kiln_duty_opts opts;
    char host_id[64], host_name[256];
    struct kiln_order_book *told, *given;
    pthread_mutex_t lock; /* of the rest, and of follow() */
    struct kiln_orders followed;
    uint64_t version;
    _Atomic uint64_t complained;
};

/* ---- what is followed ---- */

static int collect(struct kiln_duty *duty, uint64_t mono_ns, struct kiln_orders *now)
{
    uint32_t kept = 0;
    int r = kiln_order_book_list(duty->told, TENANT, mono_ns, now);

    if (r == 0)
        r = kiln_order_book_list(duty->given, TENANT, mono_ns, now);
    for (uint32_t i = 0; i < now->n; i++)
        if (kiln_order_within(duty->opts.limit, now->items[i].kind) &&
            kiln_order_for_host(&now->items[i], duty->host_id, duty->host_name))
            now->items[kept++] = now->items[i];
    now->n = kept;
    return r;
}

static bool is_same(const struct kiln_order *a, const struct kiln_order *b)
{
    uint64_t apart = a->expires_ns > b->expires_ns ? a->expires_ns - b->expires_ns
                                                   : b->expires_ns - a->expires_ns;

    return apart < SAME_NS;
}

/* Says what is in `some` and not in `others`; whether there was anything. */
static bool log_difference(struct kiln_duty *duty, const char *what, const struct kiln_orders *some,
                           const struct kiln_orders *others)
{
    bool found = false;

    for (uint32_t i = 0; i < some->n; i++) {
        const struct kiln_order *other = kiln_orders_find(others, some->items[i].id);

        if (other && is_same(other, &some->items[i]))
            continue;
        if (!other)
            kiln_order_log(duty->opts.log, what, "", &some->items[i]);
        found = true;
    }
    return found;
}

static void follow(struct kiln_duty *duty)
{
    struct kiln_orders now;
    bool began, ended;

    kiln_orders_init(&now, KILN_DUTY_ORDERS_MAX);
    pthread_mutex_lock(&duty->lock);
    if (collect(duty, kiln_clock_mono_ns(), &now) < 0 && kiln_log_every(&duty->complained, 60))
        kiln_log(duty->opts.log, KILN_LOG_WARN, "not all orders can be followed", NULL);
    ended = log_difference(duty, "an order has ended here", &duty->followed, &now);
    began = log_difference(duty, "an order holds here", &now, &duty->followed);
    if (began || ended) {
        struct kiln_orders before = duty->followed;

        duty->followed = now;
        now = before;
        duty->version++;
        duty->opts.follow(duty->opts.context, duty->followed.items, duty->followed.n);
    }
    pthread_mutex_unlock(&duty->lock);
    kiln_orders_done(&now);
}

/* ---- making ---- */

static int open_book(struct kiln_duty *duty, const char *name, struct kiln_order_book **ret_book,
                     struct kiln_err *err)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/%s", duty->opts.folder ? duty->opts.folder : "", name);

    if (n >= (int)sizeof(path))
        return kiln_err_set(err, -ENAMETOOLONG, NULL, "the folder of orders has too long a name");
    /* what happens to orders here is said by follow() */
    return kiln_order_book_open(
        &(struct kiln_order_book_opts){.path = duty->opts.folder ? path : NULL}, ret_book, err);
}

int kiln_duty_open(const struct kiln_duty_opts *opts, struct kiln_duty **ret_duty,
                   struct kiln_err *err)
{
    struct kiln_duty *duty = kiln_calloc(1, sizeof(*duty));
    int r;

    if (!duty)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    duty->opts = *opts;
    snprintf(duty->host_id, sizeof(duty->host_id), "%s", opts->host_id);
    snprintf(duty->host_name, sizeof(duty->host_name), "%s", opts->host_name);
    pthread_mutex_init(&duty->lock, NULL);
    kiln_orders_init(&duty->followed, KILN_DUTY_ORDERS_MAX);
    if (opts->folder && mkdir(opts->folder, 0755) < 0 && errno != EEXIST)
        r = kiln_err_set(err, -errno, opts->folder, "orders cannot be kept: %s",
                         kiln_err_text(-errno));
    else
        r = open_book(duty, "orders-told.json", &duty->told, err);
    if (r == 0)
        r = open_book(duty, "orders-given.json", &duty->given, err);
    if (r < 0) {
        kiln_duty_close(duty);
        return r;
    }
    follow(duty);
    *ret_duty = duty;
    return 0;
}

void kiln_duty_close(struct kiln_duty *duty)
{
    if (!duty)
        return;
    kiln_order_book_close(duty->told);
    kiln_order_book_close(duty->given);
    kiln_orders_done(&duty->followed);
    pthread_mutex_destroy(&duty->lock);
    kiln_free(duty);
}

/* ---- changing ---- */

/* What cannot be written holds all the same, until the next start. */
void kiln_duty_tell(struct kiln_duty *duty, const struct kiln_orders *orders)
{
    struct kiln_err err = {0};

    if (kiln_order_book_replace(duty->told, TENANT, orders, &err) < 0 &&
        kiln_log_every(&duty->complained, 60))
        kiln_log(duty->opts.log, KILN_LOG_WARN, "a restart will forget these orders", "where", "%s",
                 err.where, "reason", "%s", err.text, NULL);
    follow(duty);
}

int kiln_duty_give(struct kiln_duty *duty, struct kiln_order *order, struct kiln_err *err)
{
    int r;

    if (!kiln_order_within(duty->opts.limit, order->kind))
        return kiln_err_set(err, -EPERM, NULL, "this agent follows no %s (agent.orders, --orders)",
                            order->kind == KILN_ORDER_BOOST ? "boosts" : "pauses");
    r = kiln_order_book_add(duty->given, TENANT, order, err);
    follow(duty);
    return r;
}

int kiln_duty_withdraw(struct kiln_duty *duty, const char *id, struct kiln_err *err)
{
    struct kiln_orders told;
    int r = kiln_order_book_remove(duty->given, TENANT, id, err);

    follow(duty);
    if (r != 0)
        return r;
    kiln_orders_init(&told, KILN_ORDER_BOOK_MAX);
    r = kiln_order_book_list(duty->told, TENANT, kiln_clock_mono_ns(), &told);
    if (r == 0 && kiln_orders_find(&told, id))
        r = kiln_err_set(err, -EEXIST, "id",
                         "this order is the server's: withdraw it there (say --server URL)");
    kiln_orders_done(&told);
    return r;
}

void kiln_duty_tick(struct kiln_duty *duty)
{
    uint64_t mono_ns = kiln_clock_mono_ns();

    kiln_order_book_expire(duty->told, mono_ns);
    kiln_order_book_expire(duty->given, mono_ns);
    follow(duty);
}

int kiln_duty_list(struct kiln_duty *duty, struct kiln_orders *orders)
{
    int r = 0;

    pthread_mutex_lock(&duty->lock);
    for (uint32_t i = 0; r == 0 && i < duty->followed.n; i++)
        r = kiln_orders_add(orders, &duty->followed.items[i]);
    pthread_mutex_unlock(&duty->lock);
    return r;
}

bool kiln_duty_idle(struct kiln_duty *duty)
{
    bool idle;

    pthread_mutex_lock(&duty->lock);
    idle = duty->followed.n == 0;
    pthread_mutex_unlock(&duty->lock);
    return idle;
}

uint64_t kiln_duty_version(struct kiln_duty *duty)
{
    uint64_t version;

    pthread_mutex_lock(&duty->lock);
    version = duty->version;
    pthread_mutex_unlock(&duty->lock);
    return version;
}
