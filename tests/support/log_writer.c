/* SPDX-License-Identifier: Apache-2.0 */
#include "log_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/wal_int.h"

enum { BODY_MAX = 3000, SEGMENT_BYTES = 8192 };

struct log_writer_append {
    struct kiln_wal_append append;
    struct kiln_log_writer *writer;
    uint32_t i;
    char tenant[8], recipe[32];
    char body[BODY_MAX];
};

static size_t body_of(uint32_t i, char *body)
{
    size_t n = i % 7 == 0 ? 4 + i * 97u % (BODY_MAX - 4) : 4 + i * 31u % 200;

    memcpy(body, &i, 4);
    for (size_t k = 4; k < n; k++)
        body[k] = (char)(i + k * 7);
    return n;
}

static struct kiln_str recipe_of(uint32_t i, char recipe[32])
{
    if (i % 5 != 4)
        return KILN_STR_NONE;
    return (struct kiln_str){recipe, (size_t)snprintf(recipe, 32, "recipe %u", i)};
}

void kiln_log_writer_init(struct kiln_log_writer *w, struct kiln_wal *wal)
{
    memset(w, 0, sizeof(*w));
    w->wal = wal;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->told, NULL);
    w->appends = calloc(LOG_WRITER_MAX, sizeof(*w->appends));
}

void kiln_log_writer_done(struct kiln_log_writer *w)
{
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->told);
    free(w->appends);
}

static void answer(struct kiln_wal_append *append, int code)
{
    struct log_writer_append *a = (struct log_writer_append *)(void *)append;
    struct kiln_log_writer *w = a->writer;

    pthread_mutex_lock(&w->lock);
    w->codes[a->i] = code;
    if (code == 0) {
        w->numbers[a->i] = append->record.number;
        w->disordered |= append->record.number <= w->last_number;
        w->last_number = append->record.number;
    }
    w->answered++;
    pthread_cond_broadcast(&w->told);
    pthread_mutex_unlock(&w->lock);
}

void kiln_log_writer_submit(struct kiln_log_writer *w)
{
    struct log_writer_append *a;
    uint32_t i;

    pthread_mutex_lock(&w->lock);
    i = w->submitted++;
    w->codes[i] = 1;
    pthread_mutex_unlock(&w->lock);
    a = &w->appends[i];
    a->writer = w;
    a->i = i;
    snprintf(a->tenant, sizeof(a->tenant), "t%u", i % 3);
    a->append.record = (struct kiln_wal_record){
        .tenant = kiln_str_of(a->tenant),
        .received_ns = 1000 + i,
        .oldest_ns = i,
        .compression = (enum kiln_compression)(i % 3),
        .recipe = recipe_of(i, a->recipe),
        .body = {a->body, body_of(i, a->body)},
    };
    a->append.done = answer;
    kiln_wal_submit(w->wal, &a->append);
}

void kiln_log_writer_wait(struct kiln_log_writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->answered < w->submitted)
        pthread_cond_wait(&w->told, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

int kiln_log_writer_append(struct kiln_log_writer *w, uint32_t n)
{
    while (n--)
        kiln_log_writer_submit(w);
    kiln_log_writer_wait(w);
    return w->codes[w->submitted - 1];
}

struct foreign {
    struct kiln_wal_append append;
    struct kiln_log_writer *writer;
    int code;
    bool done;
};

static void answer_foreign(struct kiln_wal_append *append, int code)
{
    struct foreign *foreign = (struct foreign *)(void *)append;

    pthread_mutex_lock(&foreign->writer->lock);
    foreign->code = code;
    foreign->done = true;
    pthread_cond_broadcast(&foreign->writer->told);
    pthread_mutex_unlock(&foreign->writer->lock);
}

int kiln_log_writer_submit_foreign(struct kiln_log_writer *w, struct kiln_wal_append *append)
{
    struct foreign foreign = {.append = *append, .writer = w};

    foreign.append.done = answer_foreign;
    kiln_wal_submit(w->wal, &foreign.append);
    pthread_mutex_lock(&w->lock);
    while (!foreign.done)
        pthread_cond_wait(&w->told, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return foreign.code;
}

static bool is_ours(const struct kiln_wal_record *record, uint32_t i)
{
    char body[BODY_MAX];
    char tenant[16], recipe[32];
    size_t n = body_of(i, body);

    snprintf(tenant, sizeof(tenant), "t%u", i % 3);
    return kiln_str_eq(record->body, (struct kiln_str){body, n}) &&
           kiln_str_eq(record->recipe, recipe_of(i, recipe)) &&
           kiln_str_eq(record->tenant, kiln_str_of(tenant)) && record->received_ns == 1000 + i &&
           record->oldest_ns == i && record->compression == i % 3;
}

int kiln_log_read_record(void *context, const struct kiln_wal_record *record)
{
    struct kiln_log_read *read = context;
    uint32_t i = LOG_WRITER_MAX;

    if (record->body.len >= 4)
        memcpy(&i, record->body.ptr, 4);
    read->n++;
    if (i >= LOG_WRITER_MAX || !is_ours(record, i) || record->number <= read->last_number) {
        read->wrong++;
    } else {
        read->times[i]++;
        read->numbers[i] = record->number;
    }
    read->last_number = record->number;
    return 0;
}

void kiln_log_read_damage(void *context, const struct kiln_wal_damage *damage)
{
    struct kiln_log_read *read = context;

    read->damaged++;
    read->lost_after = damage->after;
    read->lost_up_to = damage->up_to;
    snprintf(read->path, sizeof(read->path), "%s", damage->path);
}

int kiln_log_open(struct kiln_io *io, uint64_t floor, struct kiln_log_read *ret,
                  struct kiln_wal **ret_wal)
{
    struct kiln_wal_opts opts = {.segment_bytes = SEGMENT_BYTES, .damaged = kiln_log_read_damage};

    memset(ret, 0, sizeof(*ret));
    return kiln_wal_open(io, &opts, floor, kiln_log_read_record, ret, ret_wal, NULL);
}

void kiln_log_head_of_version(uint32_t version, uint8_t ret_bytes[32])
{
    struct wal_segment_head head = {.version = version, .first = 1};

    wal_segment_encode(&head, ret_bytes);
}

const char *kiln_log_compare(const struct kiln_log_writer *w, const struct kiln_log_read *read)
{
    if (read->wrong)
        return "a record is none of ours, or out of order";
    if (w->disordered)
        return "answers came out of order";
    for (uint32_t i = 0; i < w->submitted; i++) {
        if (read->times[i] > 1)
            return "a record is there twice";
        if (w->codes[i] == 0 && read->times[i] == 0 && w->numbers[i] > w->trimmed)
            return "an acknowledged record is lost";
        if (w->codes[i] == 0 && read->times[i] && read->numbers[i] != w->numbers[i])
            return "a record has another number";
    }
    return NULL;
}
