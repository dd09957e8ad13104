/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which deployment somebody means.  One whose label profiles have is chosen by that label, from its
 * first profile to its last: while one version takes the place of another both run.  One that was
 * only told is chosen by time alone, until the next.
 */
#include <errno.h>

#include "query/deployments.h"

static bool is_near(const struct kiln_deployment *d, struct kiln_str service)
{
    return !service.len || kiln_str_eq(d->service, service);
}

static bool is_meant(const struct kiln_deployment *d, struct kiln_str wanted)
{
    return kiln_str_eq(d->id, wanted) || (d->name.len && kiln_str_eq(d->name, wanted)) ||
           kiln_str_eq(d->version, wanted) || (d->commit.len && kiln_str_eq(d->commit, wanted)) ||
           (d->deployment_id.len && kiln_str_eq(d->deployment_id, wanted));
}

/* -1 is the last; 0: no such number. */
static uint32_t number_of(struct kiln_str wanted)
{
    int64_t number;

    if (kiln_str_parse_i64(wanted, &number) < 0 || number >= 0 || number < -KILN_DEPLOYMENTS_MAX)
        return 0;
    return (uint32_t)-number;
}

/* The next from `at` on that is meant; `nth` counts down. */
static const struct kiln_deployment *next_meant(const struct kiln_deployments *list, uint32_t *at,
                                                struct kiln_str service, struct kiln_str wanted,
                                                uint32_t *nth)
{
    while (*at < list->n) {
        const struct kiln_deployment *d = &list->rows[(*at)++];

        if (!is_near(d, service))
            continue;
        if (*nth ? --*nth == 0 : is_meant(d, wanted))
            return d;
    }
    return NULL;
}

static void list_names(const struct kiln_deployments *list, struct kiln_str service,
                       struct kiln_buf *out)
{
    for (uint32_t i = 0; i < list->n && !out->error; i++) {
        if (!is_near(&list->rows[i], service))
            continue;
        kiln_buf_puts(out, out->len ? ", " : "");
        kiln_buf_add_str(out, list->rows[i].id);
    }
}

static int not_found(const struct kiln_deployments *list, struct kiln_str service,
                     struct kiln_str wanted, struct kiln_err *err)
{
    struct kiln_buf names;

    kiln_buf_init(&names, 200);
    list_names(list, service, &names);
    if (names.len)
        kiln_err_set(err, KILN_E_NOMATCH, NULL, "no deployment is %.*s; there are %.*s%s",
                     KILN_STR_ARG(wanted), KILN_STR_ARG(kiln_buf_str(&names)),
                     names.error ? ", ..." : "");
    else
        kiln_err_set(err, KILN_E_NOMATCH, NULL, "no deployment is known%s%.*s",
                     service.len ? " of " : "", KILN_STR_ARG(service));
    kiln_buf_done(&names);
    return KILN_E_NOMATCH;
}

static void widen(struct kiln_window *window, const struct kiln_deployment *d)
{
    bool seen = d->label.len > 0;
    uint64_t start = seen ? d->first_ns : d->at_ns;
    uint64_t end = seen ? d->last_ns + 1 : d->until_ns ? d->until_ns : UINT64_MAX;

    window->start_ns = start < window->start_ns ? start : window->start_ns;
    window->end_ns = end > window->end_ns ? end : window->end_ns;
}

static void add_label(struct kiln_buf *out, struct kiln_str name, struct kiln_str value)
{
    kiln_buf_puts(out, ", ");
    kiln_selector_quote(name, out);
    kiln_buf_putc(out, '=');
    kiln_selector_quote(value, out);
}

/* By the version alone where that was meant, else by everything that tells it. */
static int make_selector(struct kiln_deployments *list, const struct kiln_deployment *d,
                         struct kiln_str wanted, struct kiln_str *ret)
{
    bool narrow = !kiln_str_eq(d->version, wanted);
    struct kiln_buf out;
    int r;

    kiln_buf_init(&out, KILN_SELECTOR_BYTES_MAX);
    kiln_buf_puts(&out, "{service_name=");
    kiln_selector_quote(d->service, &out);
    if (d->label.len)
        add_label(&out, d->label, d->version);
    if (narrow && d->commit.len && !kiln_str_eq(d->label, KILN_STR("git.commit")))
        add_label(&out, KILN_STR("git.commit"), d->commit);
    if (narrow && d->deployment_id.len && !kiln_str_eq(d->label, d->id_label))
        add_label(&out, d->id_label, d->deployment_id);
    kiln_buf_putc(&out, '}');
    r = out.error;
    if (r == 0) {
        *ret = kiln_arena_copy(&list->arena, kiln_buf_str(&out));
        r = ret->ptr ? 0 : -ENOMEM;
    }
    kiln_buf_done(&out);
    return r;
}

bool kiln_deployment_ran(const struct kiln_deployment *deployment, uint64_t start_ns,
                         uint64_t end_ns)
{
    struct kiln_window window = {UINT64_MAX, 0};

    widen(&window, deployment);
    if (deployment->at_ns < window.start_ns)
        window.start_ns = deployment->at_ns;
    return window.end_ns > start_ns && (!end_ns || window.start_ns < end_ns);
}

int kiln_deployments_choose(struct kiln_deployments *deployments, struct kiln_str service,
                            struct kiln_str wanted, struct kiln_deployment_choice *ret_choice,
                            struct kiln_err *err)
{
    struct kiln_deployment_choice choice = {.window = {UINT64_MAX, 0}};
    const struct kiln_deployment *d;
    uint32_t at = 0, nth = number_of(wanted);
    bool by_number = nth > 0;
    int r;

    while ((d = next_meant(deployments, &at, service, wanted, &nth))) {
        if (choice.deployment && !kiln_str_eq(d->service, choice.deployment->service))
            return kiln_err_set(err, KILN_E_AMBIGUOUS, NULL,
                                "%.*s is a deployment of %.*s and of %.*s: say which service",
                                KILN_STR_ARG(wanted), KILN_STR_ARG(choice.deployment->service),
                                KILN_STR_ARG(d->service));
        choice.deployment = choice.deployment ? choice.deployment : d;
        widen(&choice.window, d);
        if (by_number)
            break;
    }
    if (!choice.deployment)
        return not_found(deployments, service, wanted, err);
    r = make_selector(deployments, choice.deployment, wanted, &choice.selector);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    *ret_choice = choice;
    return 0;
}
