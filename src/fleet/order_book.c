/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of it is in memory, and the file is replaced as a whole at each change:
 *
 *   {"orders":[{"tenant":"anonymous","id":...,"kind":...},...]}
 *
 * with the members of fleet/orders.h.
 */
#include "fleet/order_book.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/when.h"
#include "core/tenant.h"

#define FILE_MAX ((size_t)KILN_ORDER_BOOK_MAX * 2048)

/* A difference of clocks that is none. */
#define DRIFT_NS (2 * KILN_NS_PER_S)

enum { COMPLAIN_S = 600 };

struct entry {
    char tenant[KILN_TENANT_MAX + 1];
    uint64_t deadline_ns; /* monotonic */
    struct kiln_order order;
};

struct kiln_order_book {
    char *path; /* NULL: nothing is kept */
    struct kiln_log *log;
    pthread_mutex_t lock; /* of the rest */
    struct entry *entries;
    uint32_t n, cap;
    bool is_stale; /* the file does not say what is here */
    _Atomic uint64_t said_stale;
    struct kiln_budget budget;
};

/* ---- logging ---- */

void kiln_order_log(struct kiln_log *log, const char *what, const char *tenant,
                    const struct kiln_order *order)
{
    struct kiln_buf target, until;

    kiln_buf_init(&target, 1024);
    kiln_buf_init(&until, 64);
    kiln_order_describe_target(order, &target);
    kiln_buf_putc(&target, '\0');
    kiln_when_format(order->expires_ns, &until);
    kiln_buf_putc(&until, '\0');
    kiln_log(log, KILN_LOG_INFO, what, "kind", "%s", kiln_order_kind_word(order->kind), "target",
             "%s", target.error ? "" : target.ptr, "hz", "%u", order->hz, "until", "%s",
             until.error ? "" : until.ptr, "by", "%s", order->by, "why", "%s", order->why, "tenant",
             "%s", tenant, "id", "%s", order->id, NULL);
    kiln_buf_done(&target);
    kiln_buf_done(&until);
}

/* ---- entries ---- */

static int grow(struct kiln_order_book *book)
{
    return kiln_grow(&book->budget, (void **)&book->entries, &book->cap, book->n + UINT64_C(1),
                     sizeof(*book->entries), KILN_ORDER_BOOK_MAX + 1);
}

/* When it ends by the other clock: at most all of its time from now, whatever the wall clock says.
 */
static uint64_t deadline_of(const struct kiln_order *order, uint64_t unix_ns, uint64_t mono_ns)
{
    uint64_t left_ns = order->expires_ns > unix_ns ? order->expires_ns - unix_ns : 0;
    uint64_t all_ns = order->expires_ns - order->created_ns;

    return mono_ns + (left_ns < all_ns ? left_ns : all_ns);
}

static int put_entry(struct kiln_order_book *book, const char *tenant,
                     const struct kiln_order *order)
{
    struct entry *entry;
    int r = book->n < KILN_ORDER_BOOK_MAX ? grow(book) : KILN_E_LIMIT;

    if (r < 0)
        return r;
    entry = &book->entries[book->n++];
    *entry = (struct entry){.order = *order};
    snprintf(entry->tenant, sizeof(entry->tenant), "%s", tenant);
    entry->deadline_ns = deadline_of(order, kiln_clock_unix_ns(), kiln_clock_mono_ns());
    return 0;
}

static void drop(struct kiln_order_book *book, uint32_t at)
{
    book->n--;
    memmove(&book->entries[at], &book->entries[at + 1], (book->n - at) * sizeof(*book->entries));
}

static bool is_of(const struct entry *entry, const char *tenant)
{
    return strcmp(entry->tenant, tenant) == 0;
}

/* ---- times ---- */

static bool is_near(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) < DRIFT_NS;
}

/* As it is shown and kept: where the wall clock was set meanwhile, by what is left of its time. */
static struct kiln_order shown(const struct entry *entry, uint64_t unix_ns, uint64_t mono_ns)
{
    struct kiln_order order = entry->order;
    uint64_t left_ns = entry->deadline_ns > mono_ns ? entry->deadline_ns - mono_ns : 0;
    uint64_t expires_ns = unix_ns + left_ns, all_ns = order.expires_ns - order.created_ns;

    if (!is_near(order.expires_ns, expires_ns)) {
        order.created_ns = expires_ns > all_ns ? expires_ns - all_ns : 0;
        order.expires_ns = expires_ns;
    }
    return order;
}

/* Brings all of them up to the wall clock; true: it was set. */
static bool follow_clock(struct kiln_order_book *book, uint64_t mono_ns)
{
    uint64_t unix_ns = kiln_clock_unix_ns();
    bool was_set = false;

    for (uint32_t i = 0; i < book->n; i++) {
        struct kiln_order *order = &book->entries[i].order, now;

        now = shown(&book->entries[i], unix_ns, mono_ns);
        was_set |= now.expires_ns != order->expires_ns;
        *order = now;
    }
    return was_set;
}

/* ---- the file ---- */

static int read_entry(struct kiln_order_book *book, struct kiln_json *r)
{
    char tenant[KILN_TENANT_MAX + 1] = "";
    struct kiln_order order = {.target = KILN_TARGET_SERVICE};
    struct kiln_err why = {0};
    struct kiln_str name;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("tenant"))) {
            code = kiln_fleet_read_text(r, tenant, sizeof(tenant));
            continue;
        }
        code = kiln_order_read_member(r, name, &order);
        if (code >= 0)
            code = code ? 0 : kiln_json_skip(r);
    }
    if (code == 0 && (!order.id[0] || kiln_order_check(&order, &why) < 0))
        code = kiln_json_fail(r, KILN_E_MALFORMED, "this is no order: %s %s", why.where, why.text);
    return code < 0 ? code : put_entry(book, tenant, &order);
}

static int read_entries(struct kiln_order_book *book, struct kiln_json *r)
{
    int code = kiln_json_array(r);

    while (code == 0 && (code = kiln_json_element(r)) > 0)
        code = read_entry(book, r);
    return code;
}

static int parse(struct kiln_order_book *book, struct kiln_str text, struct kiln_err *err)
{
    struct kiln_json r;
    struct kiln_str name;
    int code;

    kiln_json_init(&r, text, err);
    code = kiln_json_object(&r);
    while (code == 0 && (code = kiln_json_member(&r, &name)) > 0)
        code = kiln_str_eq(name, KILN_STR("orders")) ? read_entries(book, &r) : kiln_json_skip(&r);
    if (code == 0 && kiln_json_more(&r) != 0)
        code = kiln_json_fail(&r, KILN_E_MALFORMED, "something follows");
    kiln_json_done(&r);
    return code;
}

static void put_aside(struct kiln_order_book *book, const struct kiln_err *why)
{
    char aside[4096];

    book->n = 0;
    if (snprintf(aside, sizeof(aside), "%s.damaged", book->path) < (int)sizeof(aside) &&
        rename(book->path, aside) == 0)
        kiln_log(book->log, KILN_LOG_ERROR, "orders cannot be read: there are none", "path", "%s",
                 book->path, "aside", "%s", aside, "where", "%s", why->where, "reason", "%s",
                 why->text, NULL);
}

static int load(struct kiln_order_book *book, struct kiln_err *err)
{
    struct kiln_err why = {0};
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, FILE_MAX);
    r = kiln_file_read(book->path, &text, &why);
    if (r == 0) {
        r = parse(book, kiln_buf_str(&text), &why);
        if (r < 0 && r != -ENOMEM) {
            put_aside(book, &why);
            r = 0;
        }
    }
    kiln_buf_done(&text);
    if (r == KILN_E_LIMIT) {
        put_aside(book, &why);
        r = 0;
    }
    return r == 0 || r == -ENOENT ? 0 : kiln_err_set(err, r, book->path, "%s", kiln_err_text(r));
}

static void format(const struct kiln_order_book *book, struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "orders");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < book->n; i++) {
        kiln_json_put_object(&w);
        kiln_json_put_name(&w, "tenant");
        kiln_json_put_str(&w, kiln_str_of(book->entries[i].tenant));
        kiln_order_put_members(&w, &book->entries[i].order);
        kiln_json_end_object(&w);
    }
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

/* A name that was replaced is durable when its folder is. */
static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];
    int fd, r = 0;

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        r = -errno;
    if (fd >= 0)
        close(fd);
    return r;
}

static int save(struct kiln_order_book *book, struct kiln_err *err)
{
    struct kiln_buf text;
    int r;

    if (!book->path)
        return 0;
    follow_clock(book, kiln_clock_mono_ns());
    kiln_buf_init(&text, FILE_MAX);
    format(book, &text);
    r = text.error ? text.error : kiln_file_replace(book->path, kiln_buf_str(&text), NULL);
    kiln_buf_done(&text);
    if (r == 0)
        r = sync_folder(book->path);
    book->is_stale = r < 0;
    return r < 0
               ? kiln_err_set(err, r, book->path, "orders cannot be written: %s", kiln_err_text(r))
               : 0;
}

/* ---- the book ---- */

int kiln_order_book_open(const struct kiln_order_book_opts *opts, struct kiln_order_book **ret_book,
                         struct kiln_err *err)
{
    struct kiln_order_book *book = kiln_calloc(1, sizeof(*book));
    size_t n = opts->path ? strlen(opts->path) + 1 : 0;
    int r = 0;

    if (!book)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    book->log = opts->log;
    book->budget.limit = SIZE_MAX;
    pthread_mutex_init(&book->lock, NULL);
    if (n) {
        book->path = kiln_malloc(n);
        if (book->path)
            memcpy(book->path, opts->path, n);
        r = book->path ? load(book, err) : kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    }
    if (r < 0) {
        kiln_order_book_close(book);
        return r;
    }
    *ret_book = book;
    return 0;
}

void kiln_order_book_close(struct kiln_order_book *book)
{
    if (!book)
        return;
    kiln_array_free(&book->budget, (void **)&book->entries, &book->cap, sizeof(*book->entries));
    pthread_mutex_destroy(&book->lock);
    kiln_free(book->path);
    kiln_free(book);
}

/* Two of one process never have one id, and of two processes hardly. */
static void make_id(char id[KILN_ORDER_ID_BYTES])
{
    static _Atomic uint32_t counter;

    snprintf(id, KILN_ORDER_ID_BYTES, "%016llx%04x", (unsigned long long)kiln_clock_unix_ns(),
             atomic_fetch_add(&counter, 1) & 0xffff);
}

/* Where the order is that a new one takes the place of; n: nowhere. */
static uint32_t find_same(const struct kiln_order_book *book, const char *tenant,
                          const struct kiln_order *order, uint32_t *ret_of_tenant)
{
    uint32_t found = book->n;

    *ret_of_tenant = 0;
    for (uint32_t i = 0; i < book->n; i++) {
        if (!is_of(&book->entries[i], tenant))
            continue;
        ++*ret_of_tenant;
        if (kiln_order_same_aim(&book->entries[i].order, order))
            found = i;
    }
    return found;
}

/* Under the lock. */
static int add(struct kiln_order_book *book, const char *tenant, const struct kiln_order *order,
               struct kiln_err *err)
{
    uint32_t of_tenant, same = find_same(book, tenant, order, &of_tenant);
    struct entry replaced;
    int r;

    if (same == book->n && of_tenant >= KILN_ORDER_BOOK_TENANT_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL,
                            "there are %u orders already: withdraw some first", of_tenant);
    r = put_entry(book, tenant, order);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "no more orders can be kept: %s", kiln_err_text(r));
    if (same == book->n - 1)
        r = save(book, err);
    else {
        replaced = book->entries[same];
        book->entries[same] = book->entries[--book->n];
        r = save(book, err);
        if (r < 0) {
            book->entries[same] = replaced;
            return r;
        }
    }
    if (r < 0)
        book->n--;
    return r;
}

int kiln_order_book_add(struct kiln_order_book *book, const char *tenant, struct kiln_order *order,
                        struct kiln_err *err)
{
    int r = kiln_order_check(order, err);

    if (r < 0)
        return r;
    if (strlen(tenant) > KILN_TENANT_MAX)
        return kiln_err_set(err, -EINVAL, "tenant", "too long a name");
    make_id(order->id);
    pthread_mutex_lock(&book->lock);
    r = add(book, tenant, order, err);
    pthread_mutex_unlock(&book->lock);
    if (r == 0)
        kiln_order_log(book->log, "an order was given", tenant, order);
    return r;
}

int kiln_order_book_remove(struct kiln_order_book *book, const char *tenant, const char *id,
                           struct kiln_err *err)
{
    struct entry gone;
    uint32_t at = 0;
    int r = 0;

    pthread_mutex_lock(&book->lock);
    while (at < book->n &&
           !(is_of(&book->entries[at], tenant) && strcmp(book->entries[at].order.id, id) == 0))
        at++;
    if (at < book->n) {
        gone = book->entries[at];
        drop(book, at);
        r = save(book, err);
        if (r < 0) /* there is room: it was just there */
            book->entries[book->n++] = gone;
        else
            r = 1;
    }
    pthread_mutex_unlock(&book->lock);
    if (r > 0)
        kiln_order_log(book->log, "an order was withdrawn", tenant, &gone.order);
    return r;
}

/* ---- all of a tenant ---- */

/* Whether the book says the same of a tenant already, but for drifting clocks. */
static bool has_all(const struct kiln_order_book *book, const char *tenant,
                    const struct kiln_orders *orders)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < book->n; i++) {
        const struct kiln_order *ours = &book->entries[i].order, *theirs;

        if (!is_of(&book->entries[i], tenant))
            continue;
        theirs = kiln_orders_find(orders, ours->id);
        if (!theirs || !is_near(theirs->expires_ns, ours->expires_ns))
            return false;
        n++;
    }
    return n == orders->n;
}

int kiln_order_book_replace(struct kiln_order_book *book, const char *tenant,
                            const struct kiln_orders *orders, struct kiln_err *err)
{
    uint32_t kept = 0;
    int r = 0;

    pthread_mutex_lock(&book->lock);
    if (!has_all(book, tenant, orders)) {
        for (uint32_t i = 0; i < book->n; i++)
            if (!is_of(&book->entries[i], tenant))
                book->entries[kept++] = book->entries[i];
        book->n = kept;
        for (uint32_t i = 0; r == 0 && i < orders->n; i++)
            r = put_entry(book, tenant, &orders->items[i]);
        if (r < 0)
            kiln_err_set(err, r, NULL, "not all orders can be kept: %s", kiln_err_text(r));
        else
            r = save(book, err);
    }
    pthread_mutex_unlock(&book->lock);
    return r;
}

/* ---- what is in force ---- */

int kiln_order_book_list(struct kiln_order_book *book, const char *tenant, uint64_t mono_ns,
                         struct kiln_orders *orders)
{
    uint64_t unix_ns = kiln_clock_unix_ns();
    int r = 0;

    pthread_mutex_lock(&book->lock);
    for (uint32_t i = 0; r == 0 && i < book->n; i++) {
        const struct entry *entry = &book->entries[i];
        struct kiln_order order;

        if (entry->deadline_ns <= mono_ns || !is_of(entry, tenant))
            continue;
        order = shown(entry, unix_ns, mono_ns);
        r = kiln_orders_add(orders, &order);
    }
    pthread_mutex_unlock(&book->lock);
    return r;
}

/* Under the lock. */
static bool drop_over(struct kiln_order_book *book, uint64_t mono_ns)
{
    uint32_t n = book->n;

    for (uint32_t i = 0; i < book->n;) {
        if (book->entries[i].deadline_ns > mono_ns) {
            i++;
            continue;
        }
        kiln_order_log(book->log, "an order is over", book->entries[i].tenant,
                       &book->entries[i].order);
        drop(book, i);
    }
    return book->n != n;
}

void kiln_order_book_expire(struct kiln_order_book *book, uint64_t mono_ns)
{
    struct kiln_err err = {0};

    pthread_mutex_lock(&book->lock);
    book->is_stale |= drop_over(book, mono_ns);
    book->is_stale |= follow_clock(book, mono_ns);
    if (book->is_stale && save(book, &err) < 0 && kiln_log_every(&book->said_stale, COMPLAIN_S))
        kiln_log(book->log, KILN_LOG_WARN, "a restart would find other orders than there are",
                 "where", "%s", err.where, "reason", "%s", err.text, NULL);
    pthread_mutex_unlock(&book->lock);
}

uint32_t kiln_order_book_count(struct kiln_order_book *book, enum kiln_order_kind kind)
{
    uint32_t n = 0;

    pthread_mutex_lock(&book->lock);
    for (uint32_t i = 0; i < book->n; i++)
        n += book->entries[i].order.kind == kind;
    pthread_mutex_unlock(&book->lock);
    return n;
}
