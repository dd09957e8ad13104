/* SPDX-License-Identifier: Apache-2.0 */
/* How a queue lets go of deliveries, and how it ends. */
#include <errno.h>

#include "folder.h"
#include "queue_kit.h"

TEST(queue_stop, is_not_stopped_before_what_is_being_written_has_ended)
{
    for (int i = 0; i < 20; i++) {
        char folder[FOLDER_NAME];
        struct fixture f = {
            .fake.hold = true, .end_us = 1000, .opts = {.storage = folder, .size = 10}};

        folder_make(folder);
        start(&f);
        send(&f, "main 1\n");
        send(&f, "main 1\n");
        kiln_sendq_stop(f.queue, 0);
        CHECK_EQ(f.ended, 2);
        stop_on_disk(&f, 0);
        folder_remove(folder);
    }
}

TEST(queue_stop, lets_go_of_deliveries_that_wait_for_room)
{
    struct fixture f = {.fake.hold = true, .opts.size = 1};

    start(&f);
    for (int i = 0; i < 3; i++)
        send(&f, "main 1\n");
    CHECK_EQ(f.ended, 1);
    kiln_sendq_release(f.queue, 0);
    wait_until_ended(&f, 3);
    CHECK_EQ(f.outcome.code, -ESHUTDOWN);
    send(&f, "main 1\n"); /* nobody waits any more */
    CHECK_EQ(f.ended, 4);
    CHECK_EQ(f.outcome.code, -ESHUTDOWN);
    CHECK_EQ(failed(&f), 3);
    f.fake.hold = false;
    finish(&f.fake, take_held(&f.fake)); /* what was acknowledged is still sent */
    send(&f, "main 1\n");
    CHECK_EQ(f.outcome.code, 0);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 2);
    finish_fixture(&f);
}

TEST(queue_stop, lets_go_of_deliveries_that_wait_for_a_result_or_for_company)
{
    struct fixture f = {.fake.hold = true,
                        .opts = {.wait_for_result = true, .size = 3, .consumers = 1}};

    start(&f);
    for (int i = 0; i < 4; i++)
        send(&f, "main 1\n");
    CHECK_EQ(f.ended, 0);
    kiln_sendq_release(f.queue, 0);
    wait_until_ended(&f, 4);
    CHECK_EQ(f.outcome.code, -EAGAIN);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 0);
    finish_fixture(&f);

    f = (struct fixture){
        .opts.batching = {
            .on = true, .sizer = KILN_SIZE_ITEMS, .flush_ns = 3600 * KILN_NS_PER_S, .min = 4}};
    start(&f);
    send(&f, "main 1\n");
    CHECK_EQ(f.ended, 0);
    kiln_sendq_release(f.queue, 0);
    wait_until_ended(&f, 1);
    CHECK_EQ(f.outcome.code, 0);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 1);
    finish_fixture(&f);
}

static void *finish_held(void *fixture)
{
    struct fixture *f = fixture;

    finish(&f->fake, take_held(&f->fake));
    return NULL;
}

TEST(queue_stop, is_not_stopped_before_the_delivery_of_what_was_sent_has_ended)
{
    struct fixture f = {.fake.hold = true, .end_us = 20000, .opts.wait_for_result = true};
    pthread_t thread;

    start(&f);
    send(&f, "main 1\n");
    CHECK_OK(pthread_create(&thread, NULL, finish_held, &f));
    while (f.fake.n_held)
        sched_yield();
    kiln_sendq_stop(f.queue, kiln_clock_mono_ns() + PATIENCE_NS);
    CHECK_EQ(f.ended, 1);
    pthread_join(thread, NULL);
    stop(&f, 0);
    finish_fixture(&f);
}

static void *fail_held(void *fixture)
{
    struct fixture *f = fixture;

    usleep(20000); /* by then the queue is stopping */
    f->fake.hold = false;
    finish(&f->fake, take_held(&f->fake));
    return NULL;
}

TEST(queue_stop, tries_once_more_what_failed_while_the_end_came)
{
    struct fixture f = {.fake = {.hold = true, .n_fates = 1, .fates = {KILN_EXPORT_AGAIN}}};
    pthread_t thread;

    start(&f);
    send(&f, "main 1\n");
    CHECK_OK(pthread_create(&thread, NULL, fail_held, &f));
    stop(&f, PATIENCE_NS);
    pthread_join(thread, NULL);
    CHECK_EQ(sent(&f), 1);
    CHECK_EQ(f.fake.n_sends, 2);
    finish_fixture(&f);
}

TEST(queue_stop, tries_only_once_more)
{
    struct fixture f = {.fake = {.hold = true,
                                 .n_fates = 3,
                                 .fates = {KILN_EXPORT_AGAIN, KILN_EXPORT_AGAIN, KILN_EXPORT_SENT}},
                        .opts.retry = {.initial_ns = 3600 * KILN_NS_PER_S,
                                       .max_ns = 3600 * KILN_NS_PER_S,
                                       .multiplier = 1}};
    pthread_t thread;

    start(&f);
    send(&f, "main 1\n");
    CHECK_OK(pthread_create(&thread, NULL, fail_held, &f));
    stop(&f, PATIENCE_NS);
    pthread_join(thread, NULL);
    CHECK_EQ(dropped(&f, "shutdown"), 1);
    CHECK_EQ(f.fake.n_sends, 2);
    finish_fixture(&f);
}
