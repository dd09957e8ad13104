/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes to a server and to agents about orders: requests and alerts, reports of agents, a
 * server's answers.  What is read makes sense, and is read again as it is written.
 */
#include "fleet/link.h"
#include "fleet/request.h"
#include "fleet/status.h"
#include "fuzz.h"

#define NOW (UINT64_C(1772366400) * KILN_NS_PER_S)

static void check_orders(const struct kiln_orders *orders)
{
    for (uint32_t i = 0; i < orders->n; i++) {
        FUZZ_CHECK(kiln_order_check(&orders->items[i], NULL) == 0);
        FUZZ_CHECK(memchr(orders->items[i].name, '\0', sizeof(orders->items[i].name)));
    }
}

static void check_again(const struct kiln_orders *orders)
{
    struct kiln_orders again;
    struct kiln_json_out w;
    struct kiln_buf text;
    struct kiln_json r;

    kiln_orders_init(&again, orders->max);
    kiln_buf_init(&text, 16 << 20);
    kiln_json_out_init(&w, &text, 0);
    kiln_orders_put(&w, orders);
    kiln_json_init(&r, kiln_buf_str(&text), NULL);
    FUZZ_CHECK(kiln_orders_read(&r, &again) == 0);
    FUZZ_CHECK(again.n == orders->n);
    for (uint32_t i = 0; i < again.n; i++) {
        FUZZ_CHECK(kiln_order_same_aim(&again.items[i], &orders->items[i]));
        FUZZ_CHECK(again.items[i].expires_ns == orders->items[i].expires_ns);
    }
    kiln_json_done(&r);
    kiln_buf_done(&text);
    kiln_orders_done(&again);
}

static void fuzz_request(struct kiln_str text)
{
    const struct kiln_request_wish wish = {.now_ns = NOW};
    struct kiln_orders orders;
    struct kiln_err err = {0};

    kiln_orders_init(&orders, KILN_REQUEST_ORDERS_MAX);
    if (kiln_order_request_read(text, &wish, &orders, &err) == 0)
        check_orders(&orders);
    else
        FUZZ_CHECK(err.text[0]);
    kiln_orders_done(&orders);
}

static void fuzz_answer(struct kiln_str text)
{
    struct kiln_link_answer answer;
    struct kiln_err err = {0};

    if (kiln_link_answer_read(text, NOW, &answer, &err) == 0) {
        check_orders(&answer.orders);
        check_again(&answer.orders);
        FUZZ_CHECK(answer.every_s >= 1 && answer.every_s <= KILN_LINK_EVERY_MAX_S);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    kiln_link_answer_done(&answer);
}

static void fuzz_status(struct kiln_str text)
{
    struct kiln_agent_status status, again;
    struct kiln_json_out w;
    struct kiln_buf put;
    struct kiln_json r;

    kiln_json_init(&r, text, NULL);
    if (kiln_agent_status_read(&r, &status) == 0) {
        kiln_buf_init(&put, 1 << 20);
        kiln_json_out_init(&w, &put, 0);
        kiln_agent_status_put(&w, &status);
        kiln_json_done(&r);
        kiln_json_init(&r, kiln_buf_str(&put), NULL);
        FUZZ_CHECK(kiln_agent_status_read(&r, &again) == 0);
        FUZZ_CHECK(strcmp(again.host, status.host) == 0 && again.samples == status.samples);
        FUZZ_CHECK(again.n_drops == status.n_drops && again.n_orders == status.n_orders);
        kiln_buf_done(&put);
    }
    kiln_json_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data, size};

    fuzz_request(text);
    fuzz_answer(text);
    fuzz_status(text);
    return 0;
}
