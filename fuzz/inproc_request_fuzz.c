/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to /debug/pprof.  They must come to the same whether their bytes arrive at once or one
 * by one, and be answered (or refused) by the pages without harm, whatever they ask for.
 */
#include "base/hash.h"
#include "core/builder.h"
#include "fuzz.h"
#include "inproc/pprof/pages.h"

struct outcome {
    int last; /* what the reader said last */
    uint32_t n;
    uint64_t hash;
};

/* ---- profiles of nothing ---- */

static int no_mark(enum kiln_in_profile which, struct kiln_in_mark **ret, struct kiln_err *err)
{
    (void)which, (void)err;
    *ret = NULL;
    return 0;
}

static void no_drop(struct kiln_in_mark *mark)
{
    FUZZ_CHECK(!mark);
}

static int no_read(enum kiln_in_profile which, const struct kiln_in_mark *from,
                   struct kiln_batch **ret, struct kiln_err *err)
{
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    FUZZ_CHECK(which < KILN_IN_PROFILES && !from);
    return r < 0 ? r : kiln_builder_finish(b, ret, err);
}

static int no_name(const uint64_t *addresses, size_t n, struct kiln_buf *out)
{
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(addresses[i] != 0);
    kiln_buf_puts(out, "0x1 one\n");
    return 0;
}

static const struct kiln_in_source nothing = {no_mark, no_drop, no_read, no_name};

/* ---- reading ---- */

static void mix(struct outcome *out, struct kiln_str s)
{
    out->hash = kiln_hash_mix(out->hash, kiln_hash(s.ptr, s.len));
}

static void answer(const struct kiln_in_reader *reader)
{
    struct kiln_in_pages pages = {.source = &nothing};
    struct kiln_in_job job = {0};
    struct kiln_in_reply reply;
    struct kiln_buf head;

    kiln_in_reply_init(&reply);
    kiln_buf_init(&head, 4096);
    if (kiln_in_pages_admit(&pages, &reader->request, &reply) == 0 &&
        kiln_in_pages_begin(&pages, &reader->request, &reply, &job) > 0) {
        FUZZ_CHECK(job.due_ns > 0);
        kiln_in_job_finish(&pages, &job, &reply);
    }
    kiln_in_reply_head(&reply, true, &head);
    FUZZ_CHECK(head.len > 0 && head.error == 0);
    kiln_in_reply_done(&reply);
    kiln_buf_done(&head);
}

/* Follows what is there without more bytes. */
static void follow(struct kiln_in_reader *reader, int found, bool answers, struct outcome *out)
{
    while (found == KILN_IN_READ_HEAD || found == KILN_IN_READ_WHOLE) {
        if (found == KILN_IN_READ_HEAD) {
            found = kiln_in_reader_took(reader, 0);
            continue;
        }
        out->n++;
        mix(out, reader->request.method);
        mix(out, reader->request.path);
        mix(out, reader->request.query);
        mix(out, reader->request.body);
        if (answers)
            answer(reader);
        found = kiln_in_reader_next(reader);
    }
    out->last = found;
}

static struct outcome run(const uint8_t *data, size_t size, size_t step, bool answers)
{
    struct outcome out = {.last = KILN_IN_READ_MORE};
    struct kiln_in_reader reader;

    if (kiln_in_reader_init(&reader) == 0) {
        while (size && out.last == KILN_IN_READ_MORE) {
            size_t room, n;
            char *at = kiln_in_reader_room(&reader, &room);

            FUZZ_CHECK(room > 0);
            n = size < step ? size : step;
            n = n < room ? n : room;
            memcpy(at, data, n);
            data += n;
            size -= n;
            follow(&reader, kiln_in_reader_took(&reader, n), answers, &out);
        }
    }
    kiln_in_reader_done(&reader);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole = run(data, size, SIZE_MAX, true);
    struct outcome bytes = run(data, size, 1, false);

    FUZZ_CHECK(whole.n == bytes.n && whole.hash == bytes.hash);
    FUZZ_CHECK(whole.last == bytes.last);
    return 0;
}
