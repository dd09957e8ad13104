/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/order.h"

#include <errno.h>
#include <string.h>

static const char *const kinds[] = {"boost", "pause"};
static const char *const targets[] = {"all", "host", "service", "container", "process"};

const char *kiln_order_kind_word(enum kiln_order_kind kind)
{
    return kinds[kind];
}

const char *kiln_order_target_word(enum kiln_order_target target)
{
    return targets[target];
}

static int find(struct kiln_str word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (kiln_str_eq(word, kiln_str_of(words[i])))
            return i;
    return KILN_E_UNKNOWN;
}

int kiln_order_kind_parse(struct kiln_str word, enum kiln_order_kind *ret_kind)
{
    int i = find(word, kinds, KILN_ARRAY_LEN(kinds));

    if (i < 0)
        return i;
    *ret_kind = (enum kiln_order_kind)i;
    return 0;
}

int kiln_order_target_parse(struct kiln_str word, enum kiln_order_target *ret_target)
{
    int i = find(word, targets, KILN_ARRAY_LEN(targets));

    if (i < 0)
        return i;
    *ret_target = (enum kiln_order_target)i;
    return 0;
}

/* ---- limits ---- */

const char *const kiln_order_limits[] = {"off", "boost", "all", NULL};

int kiln_order_limit_parse(const char *word, enum kiln_order_limit *ret_limit)
{
    int i = find(kiln_str_of(word), kiln_order_limits, KILN_ARRAY_LEN(kiln_order_limits) - 1);

    if (i < 0)
        return i;
    *ret_limit = (enum kiln_order_limit)i;
    return 0;
}

bool kiln_order_within(enum kiln_order_limit limit, enum kiln_order_kind kind)
{
    return limit == KILN_ORDERS_ALL || (limit == KILN_ORDERS_BOOST && kind == KILN_ORDER_BOOST);
}

int kiln_order_check_anonymous(const struct kiln_order *order, enum kiln_order_limit limit,
                               struct kiln_err *err)
{
    static const char how[] = "use the Unix socket as root or as the server's user, or a token, or "
                              "set server.anonymous_orders";
    bool small =
        order->hz <= KILN_BOOST_HZ && order->expires_ns - order->created_ns <= KILN_BOOST_NS;

    if (!kiln_order_within(limit, order->kind))
        return kiln_err_set(err, -EPERM, NULL, "clients without a token may not %s: %s",
                            kiln_order_kind_word(order->kind), how);
    if (limit == KILN_ORDERS_ALL || small)
        return 0;
    return kiln_err_set(err, -EPERM, NULL,
                        "clients without a token may boost to at most %u Hz and for at most %llu "
                        "minutes: %s",
                        KILN_BOOST_HZ, (unsigned long long)(KILN_BOOST_NS / KILN_NS_PER_S / 60),
                        how);
}

/* ---- sense ---- */

static int check_target(const struct kiln_order *order, struct kiln_err *err)
{
    bool named = order->target == KILN_TARGET_HOST || order->target == KILN_TARGET_SERVICE ||
                 order->target == KILN_TARGET_CONTAINER;
    bool process = order->target == KILN_TARGET_PROCESS;

    if (named && !order->name[0])
        return kiln_err_set(err, -EINVAL, "name", "which %s is meant?",
                            kiln_order_target_word(order->target));
    if (!named && order->name[0])
        return kiln_err_set(err, -EINVAL, "name", "belongs to a host, a service or a container");
    if (process != (order->pid != 0))
        return kiln_err_set(err, -EINVAL, "pid",
                            process ? "which process is meant?" : "belongs to a process");
    if (process && !order->host[0])
        return kiln_err_set(err, -EINVAL, "host", "a process needs its host: numbers repeat");
    if (order->target == KILN_TARGET_HOST && order->host[0])
        return kiln_err_set(err, -EINVAL, "host", "the name of the host says it already");
    return 0;
}

int kiln_order_check(const struct kiln_order *order, struct kiln_err *err)
{
    bool boost = order->kind == KILN_ORDER_BOOST;
    uint64_t max_ns = boost ? KILN_BOOST_MAX_NS : KILN_PAUSE_MAX_NS;
    int r = check_target(order, err);

    if (r < 0)
        return r;
    if (boost && (order->hz < 1 || order->hz > KILN_ORDER_HZ_MAX))
        return kiln_err_set(err, -EINVAL, "hz", "a rate is from 1 to %d Hz", KILN_ORDER_HZ_MAX);
    if (!boost && order->hz)
        return kiln_err_set(err, -EINVAL, "hz", "belongs to a boost");
    if (order->expires_ns <= order->created_ns)
        return kiln_err_set(err, -EINVAL, "expires", "an order ends after it began");
    if (order->expires_ns - order->created_ns > max_ns)
        return kiln_err_set(err, -EINVAL, "duration", "a %s lasts %llu hours at most",
                            kiln_order_kind_word(order->kind),
                            (unsigned long long)(max_ns / KILN_NS_PER_S / 3600));
    return 0;
}

bool kiln_order_same_aim(const struct kiln_order *a, const struct kiln_order *b)
{
    return a->kind == b->kind && a->target == b->target && a->pid == b->pid &&
           strcmp(a->name, b->name) == 0 && strcmp(a->host, b->host) == 0;
}

bool kiln_order_for_host(const struct kiln_order *order, const char *host_id, const char *host_name)
{
    const char *wanted = order->target == KILN_TARGET_HOST ? order->name : order->host;

    return !wanted[0] || strcmp(wanted, host_id) == 0 || strcmp(wanted, host_name) == 0;
}

void kiln_order_describe_target(const struct kiln_order *order, struct kiln_buf *out)
{
    if (order->target == KILN_TARGET_ALL)
        kiln_buf_puts(out, order->host[0] ? "everything" : "every host");
    else if (order->target == KILN_TARGET_PROCESS)
        kiln_buf_printf(out, "process %u", order->pid);
    else
        kiln_buf_printf(out, "%s %s", kiln_order_target_word(order->target), order->name);
    if (order->host[0])
        kiln_buf_printf(out, " on %s", order->host);
}

void kiln_order_describe(const struct kiln_order *order, uint32_t more, struct kiln_buf *out)
{
    uint64_t ns = order->expires_ns - order->created_ns;

    kiln_buf_printf(out, "%s ", kiln_order_kind_word(order->kind));
    kiln_order_describe_target(order, out);
    if (order->kind == KILN_ORDER_BOOST)
        kiln_buf_printf(out, " to %u Hz", order->hz);
    kiln_buf_printf(out, " for %llu s", (unsigned long long)(ns / KILN_NS_PER_S));
    if (more)
        kiln_buf_printf(out, ", and %u more", more);
}
