/* SPDX-License-Identifier: Apache-2.0 */
/* Deliveries that nobody has decoded yet, on their way through what takes them as they are. */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "core/concat.h"
#include "drawn.h"
#include "pipeline/exporters/encode.h"
#include "pipeline/fanout.h"
#include "pipeline/processors/batcher.h"
#include "relay.h"
#include "test.h"

#define HOUR       (3600 * KILN_NS_PER_S)
#define BATCH_SIZE 1000u /* what the pool is charged for one */

/* A message, and how often it was opened. */
struct letter {
    struct kiln_seal seal; /* first */
    struct relay_post post;
    struct kiln_buf body, plain;
    int opened, checked, code;
    bool opens; /* when it is checked */
};

static struct kiln_pool pool;

static int break_seal(const struct kiln_seal *seal, struct kiln_batch **ret_batch,
                      size_t *ret_bytes, struct kiln_err *err)
{
    struct letter *letter = (struct letter *)(uintptr_t)seal;
    struct kiln_builder *b;

    letter->opened++;
    if (letter->code < 0)
        return kiln_err_set(err, letter->code, NULL, "not today");
    CHECK_OK(kiln_pool_take(&pool, BATCH_SIZE));
    *ret_bytes = BATCH_SIZE;
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_otlp_decode(kiln_buf_str(&letter->plain), NULL, b, NULL, NULL));
    return kiln_builder_finish(b, ret_batch, NULL);
}

/* Takes the batch over. */
static void write_letter(struct letter *letter, struct kiln_batch *batch,
                         enum kiln_compression compression)
{
    *letter = (struct letter){0};
    kiln_buf_init(&letter->plain, 1 << 20);
    kiln_buf_init(&letter->body, 1 << 20);
    CHECK_OK(kiln_otlp_encode(batch, NULL, &letter->plain, NULL));
    if (compression == KILN_PLAIN)
        kiln_buf_add_str(&letter->body, kiln_buf_str(&letter->plain));
    else
        CHECK_OK(kiln_compress(compression, 0, kiln_buf_str(&letter->plain), &letter->body));
    letter->seal =
        (struct kiln_seal){.open = break_seal, .pool = &pool, .content_bytes = letter->plain.len};
    letter->post.delivery = (struct kiln_delivery){
        .seal = &letter->seal,
        .items = batch->n_samples,
        .profiles = batch->n_profiles,
        .body = kiln_buf_str(&letter->body),
        .body_compression = compression,
        .body_is_current = true,
    };
    kiln_batch_unref(batch);
}

static int check_letter(const struct kiln_seal *seal, struct kiln_delivery *delivery,
                        struct kiln_err *err)
{
    struct letter *letter = (struct letter *)(uintptr_t)seal;

    letter->checked++;
    letter->seal.check = NULL;
    if (letter->code < 0)
        return kiln_err_set(err, letter->code, NULL, "not good");
    return letter->opens ? kiln_delivery_open(delivery, err) : 0;
}

/* Of `spoilt` ones the last index of the dictionary is cut off. */
static void write_unchecked(struct letter *letter, struct kiln_batch *batch, bool spoilt)
{
    write_letter(letter, batch, KILN_PLAIN);
    if (spoilt)
        letter->body.ptr[letter->body.len - 1] |= (char)0x80;
    letter->seal.check = check_letter;
    letter->code = spoilt ? KILN_E_MALFORMED : 0;
    CHECK(kiln_otlp_count(kiln_buf_str(&letter->body), &letter->seal.counts));
}

static void burn(struct letter *letter)
{
    kiln_buf_done(&letter->body);
    kiln_buf_done(&letter->plain);
}

static void set_up(void)
{
    kiln_pool_init(&pool, "test", SIZE_MAX, NULL);
}

TEST(seal, is_broken_for_who_does_not_take_it)
{
    struct relay_sink sink = RELAY_SINK;
    struct letter letter;

    set_up();
    write_letter(&letter, kiln_test_stacks("main;a 1\nmain;b 2\n"), KILN_PLAIN);
    CHECK_EQ(kiln_delivery_items(&letter.post.delivery), 2);
    CHECK_EQ(kiln_delivery_profiles(&letter.post.delivery), 1);
    sink.consumer.takes_sealed = true;
    relay_post(&letter.post, &sink.consumer);
    CHECK(!sink.kept[0]->batch);
    sink.n = 0;
    sink.consumer.takes_sealed = false;
    relay_post(&letter.post, &sink.consumer);
    CHECK_EQ(sink.kept[0]->batch->n_samples, 2);
    CHECK(!sink.kept[0]->seal);
    CHECK_EQ(pool.used, BATCH_SIZE);
    relay_end(&sink, 0);
    CHECK_EQ(letter.opened, 1);
    CHECK_EQ(pool.used, 0);
    burn(&letter);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(seal, that_cannot_be_broken_ends_the_delivery)
{
    struct relay_sink sink = RELAY_SINK;
    struct letter letter;

    set_up();
    write_letter(&letter, kiln_test_stacks("main 1\n"), KILN_PLAIN);
    letter.code = -EAGAIN;
    relay_post(&letter.post, &sink.consumer);
    CHECK_EQ(sink.n, 0);
    CHECK_EQ(letter.post.ended, 1);
    CHECK_EQ(letter.post.outcome.code, -EAGAIN);
    CHECK(letter.post.outcome.retry_after_s > 0);
    burn(&letter);
}

TEST(seal, stays_whole_where_a_fan_out_leads_to_nobody_who_looks)
{
    struct relay_sink sinks[2] = {RELAY_SINK, RELAY_SINK};
    struct kiln_consumer *next[2] = {&sinks[0].consumer, &sinks[1].consumer}, *fanout;
    struct letter letter;

    set_up();
    sinks[0].consumer.takes_sealed = true;
    CHECK_OK(kiln_fanout_new(next, 2, &fanout));
    CHECK(!fanout->takes_sealed); /* it is opened before, once for both */
    write_letter(&letter, kiln_test_stacks("main 1\n"), KILN_PLAIN);
    relay_post(&letter.post, fanout);
    CHECK_EQ(letter.opened, 1);
    CHECK(sinks[0].kept[0]->batch == sinks[1].kept[0]->batch);
    relay_end(&sinks[0], 0);
    relay_end(&sinks[1], 0);
    kiln_fanout_free(fanout);
    burn(&letter);

    sinks[1].consumer.takes_sealed = true;
    CHECK_OK(kiln_fanout_new(next, 2, &fanout));
    write_letter(&letter, kiln_test_stacks("main 1\n"), KILN_PLAIN);
    relay_post(&letter.post, fanout);
    CHECK_EQ(letter.opened, 0);
    for (int i = 0; i < 2; i++) { /* who finds that he needs it after all pays for it */
        CHECK_OK(kiln_delivery_open(sinks[i].kept[0], NULL));
        CHECK_EQ(sinks[i].kept[0]->batch->n_samples, 1);
    }
    CHECK_EQ(pool.used, 2 * BATCH_SIZE);
    relay_end(&sinks[0], 0);
    CHECK_EQ(letter.post.ended, 0);
    relay_end(&sinks[1], 0);
    CHECK_EQ(letter.post.ended, 1);
    CHECK_EQ(pool.used, 0);
    kiln_fanout_free(fanout);
    burn(&letter);
    CHECK_EQ(kiln_mem_live(), 0);
}

static struct kiln_batch *drawing(uint32_t i)
{
    static const struct kiln_drawn drawn[3][2] = {
        {{.stacks = "main;a 1 k=v\nmain;b 2\n", .resource = "service.name=x", .time_ns = 1},
         {.stacks = "main;c 3\n", .resource = "service.name=y", .time_ns = 2}},
        {{.stacks = "main;d 4\nmain;a 5 k=v\n", .resource = "service.name=y", .time_ns = 3},
         {.stacks = "main;e 6 k=w\n", .scope = "other", .time_ns = 4}},
        {{.stacks = "main;a 7@100 8@200\n", .resource = "service.name=x", .time_ns = 5},
         {.stacks = "- 9\n", .resource = "service.name=z", .time_ns = 6}},
    };

    return kiln_test_batch(drawn[i], 2);
}

/* Decoded into one batch, or each into its own first: what comes out is the same. */
TEST(seal, batches_of_letters_are_batches_of_what_is_in_them)
{
    static const enum kiln_compression compressions[3] = {KILN_PLAIN, KILN_GZIP, KILN_ZSTD};
    struct kiln_batch *batches[3] = {drawing(0), drawing(1), drawing(2)}, *expected;
    struct relay_sink sink = RELAY_SINK;
    struct kiln_batcher_opts opts = {.processor = {.id = "batch", .next = &sink.consumer},
                                     .samples = 8,
                                     .timeout_ns = HOUR,
                                     .quiet_ns = HOUR};
    struct kiln_batcher *batcher;
    struct letter letters[3];

    set_up();
    CHECK_OK(kiln_concat(batches, 3, NULL, &expected, NULL));
    CHECK_OK(kiln_batcher_new(&opts, &batcher));
    CHECK_OK(kiln_batcher_start(batcher));
    for (uint32_t i = 0; i < 3; i++) {
        write_letter(&letters[i], batches[i], compressions[i]);
        relay_post(&letters[i].post, kiln_batcher_consumer(batcher));
    }
    CHECK_EQ(sink.n, 1);
    CHECK_EQ(sink.kept[0]->batch->n_resources, 3);
    CHECK_EQ(sink.kept[0]->batch->n_scopes, 4);
    CHECK(kiln_batch_equal(sink.kept[0]->batch, expected));
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(letters[i].opened + letters[i].post.ended, 0);
    relay_end(&sink, 0);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(letters[i].post.ended, 1);
        burn(&letters[i]);
    }
    kiln_batch_unref(expected);
    kiln_batcher_stop(batcher);
    kiln_batcher_free(batcher);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(seal, letters_among_open_ones_are_opened_and_one_alone_goes_on_sealed)
{
    struct relay_sink sink = RELAY_SINK;
    struct kiln_batcher_opts opts = {.processor = {.id = "batch", .next = &sink.consumer},
                                     .samples = 5,
                                     .timeout_ns = HOUR,
                                     .quiet_ns = HOUR};
    struct kiln_batcher *batcher;
    struct relay_post open = {0};
    struct letter letter;

    set_up();
    sink.consumer.takes_sealed = true;
    CHECK_OK(kiln_batcher_new(&opts, &batcher));
    write_letter(&letter, drawing(0), KILN_PLAIN);
    relay_post(&letter.post, kiln_batcher_consumer(batcher));
    relay_send(&open, kiln_batcher_consumer(batcher), drawing(1), NULL);
    CHECK_EQ(sink.kept[0]->batch->n_samples, 6);
    CHECK_EQ(letter.opened, 1);
    CHECK_EQ(pool.used, 0); /* what is in the batch of all is given back */
    relay_end(&sink, 0);
    CHECK_EQ(letter.post.ended + open.ended, 2);
    burn(&letter);

    write_letter(&letter, kiln_test_stacks("a 1\nb 1\nc 1\nd 1\ne 1\n"), KILN_PLAIN);
    relay_post(&letter.post, kiln_batcher_consumer(batcher));
    CHECK(sink.kept[0] == &letter.post.delivery);
    CHECK(sink.kept[0]->seal == &letter.seal);
    relay_end(&sink, 0);
    burn(&letter);
    kiln_batcher_free(batcher);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Sends letters to a batcher until they are enough, or it is stopped. */
static void batch_up(struct relay_sink *sink, struct letter *letters, uint32_t n, uint64_t samples)
{
    struct kiln_batcher_opts opts = {.processor = {.id = "batch", .next = &sink->consumer},
                                     .samples = samples,
                                     .timeout_ns = HOUR,
                                     .quiet_ns = HOUR};
    struct kiln_batcher *batcher;

    CHECK_OK(kiln_batcher_new(&opts, &batcher));
    CHECK_OK(kiln_batcher_start(batcher));
    CHECK(kiln_batcher_consumer(batcher)->takes_unchecked);
    for (uint32_t i = 0; i < n; i++)
        relay_post(&letters[i].post, kiln_batcher_consumer(batcher));
    kiln_batcher_stop(batcher);
    relay_end(sink, 0);
    kiln_batcher_free(batcher);
}

static struct kiln_batch *joined; /* that a sink got */

static void keep_joined(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    CHECK(!joined);
    joined = kiln_batch_ref(delivery->batch);
    relay_keep(consumer, delivery);
}

TEST(seal, unchecked_letters_are_checked_by_who_decodes_them)
{
    struct kiln_batch *batches[3] = {drawing(0), drawing(1), drawing(2)}, *expected;
    struct relay_sink sink = RELAY_SINK;
    struct letter letters[3];

    set_up();
    sink.consumer.consume = keep_joined;
    CHECK_OK(kiln_concat(batches, 3, NULL, &expected, NULL));
    for (uint32_t i = 0; i < 3; i++)
        write_unchecked(&letters[i], batches[i], false);
    batch_up(&sink, letters, 3, 8);
    CHECK(kiln_batch_equal(joined, expected));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(letters[i].checked + letters[i].opened, 0);
        CHECK_EQ(letters[i].post.ended, 1);
        burn(&letters[i]);
    }
    kiln_batch_unref(expected);
    kiln_batch_unref(joined);
    joined = NULL;
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Wherever it stands: the others go on as if it had not been there. */
TEST(seal, a_bad_letter_is_refused_and_spoils_none)
{
    for (uint32_t bad = 0; bad < 3; bad++) {
        struct kiln_batch *batches[3] = {drawing(0), drawing(1), drawing(2)}, *expected;
        struct kiln_batch *good[2] = {batches[bad == 0], batches[bad == 2 ? 1 : 2]};
        struct relay_sink sink = RELAY_SINK;
        struct letter letters[3];

        set_up();
        sink.consumer.consume = keep_joined;
        CHECK_OK(kiln_concat(good, 2, NULL, &expected, NULL));
        for (uint32_t i = 0; i < 3; i++) {
            write_unchecked(&letters[i], batches[i], i == bad);
            letters[i].opens = i + 1 == bad; /* unusual, but good */
        }
        batch_up(&sink, letters, 3, 8);
        CHECK(kiln_batch_equal(joined, expected));
        for (uint32_t i = 0; i < 3; i++) {
            CHECK_EQ(letters[i].checked, 1);
            CHECK_EQ(letters[i].post.ended, 1);
            CHECK_EQ(letters[i].post.outcome.code, i == bad ? KILN_E_MALFORMED : 0);
            burn(&letters[i]);
        }
        CHECK_EQ(pool.used, 0);
        kiln_batch_unref(expected);
        kiln_batch_unref(joined);
        joined = NULL;
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Whoever sent one that was bad, or unusual, will send more. */
TEST(seal, after_a_bad_letter_others_are_checked_as_they_come)
{
    struct relay_sink sink = RELAY_SINK;
    struct kiln_batcher_opts opts = {.processor = {.id = "batch", .next = &sink.consumer},
                                     .samples = 6,
                                     .timeout_ns = HOUR,
                                     .quiet_ns = HOUR};
    struct kiln_batcher *batcher;
    struct letter letters[6];

    set_up();
    CHECK_OK(kiln_batcher_new(&opts, &batcher));
    CHECK_OK(kiln_batcher_start(batcher));
    for (uint32_t i = 0; i < 6; i++) {
        write_unchecked(&letters[i], drawing(0), i == 1 || i == 3);
        CHECK_EQ(kiln_is_light(kiln_batcher_consumer(batcher), &letters[i].post.delivery), i == 0);
        relay_post(&letters[i].post, kiln_batcher_consumer(batcher));
        CHECK_EQ(letters[i].checked, i >= 1);
        CHECK_EQ(letters[i].post.ended, i == 1 || i == 3);
    }
    CHECK_EQ(sink.n, 2); /* the first alone, two of the others together */
    CHECK_EQ(letters[0].checked, 1);
    relay_end(&sink, 0);
    kiln_batcher_stop(batcher);
    relay_end(&sink, 0);
    kiln_batcher_free(batcher);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(letters[i].post.ended, 1);
        burn(&letters[i]);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(seal, unchecked_letters_that_go_on_alone_are_checked_before)
{
    struct relay_sink sink = RELAY_SINK;
    struct letter letters[2];

    set_up();
    sink.consumer.takes_sealed = true;
    for (uint32_t spoilt = 0; spoilt < 2; spoilt++) {
        struct letter *letter = &letters[spoilt];

        write_unchecked(letter, drawing(0), spoilt);
        batch_up(&sink, letter, 1, 8);
        CHECK_EQ(letter->checked, 1);
        CHECK_EQ(letter->opened, 0);
        CHECK_EQ(letter->post.ended, 1);
        CHECK_EQ(letter->post.outcome.code, spoilt ? KILN_E_MALFORMED : 0);
        burn(letter);
    }
    for (uint32_t i = 0; i < 2; i++) /* and none is left */
        write_unchecked(&letters[i], drawing(i), true);
    batch_up(&sink, letters, 2, 8);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(letters[i].post.outcome.code, KILN_E_MALFORMED);
        burn(&letters[i]);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(seal, is_passed_on_by_exporters_that_need_not_change_it)
{
    struct kiln_export_shape shape = {.request_max = 1 << 20};
    struct kiln_export_item *items;
    struct letter letter;

    set_up();
    for (enum kiln_compression c = KILN_PLAIN; c <= KILN_ZSTD; c++) {
        write_letter(&letter, drawing(0), c);
        shape.compression = c;
        CHECK(kiln_export_passes(&letter.post.delivery, &shape));
        CHECK_OK(kiln_export_pack(&letter.post.delivery, &shape, &items, NULL));
        CHECK(items->borrowed);
        CHECK_EQ(items->head.samples, 3);
        CHECK_EQ(items->head.profiles, 2);
        kiln_export_items_free(items);
        shape.json = true;
        CHECK(!kiln_export_passes(&letter.post.delivery, &shape));
        shape.json = false;
        shape.request_max = letter.plain.len - 1; /* to be split */
        CHECK(!kiln_export_passes(&letter.post.delivery, &shape));
        shape.request_max = letter.plain.len;
        CHECK(kiln_export_passes(&letter.post.delivery, &shape));
        burn(&letter);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}
