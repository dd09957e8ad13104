/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_writer - appends small records to a log, remembers what was acknowledged, and reads back.
 *
 * Record i has the tenant "t<i % 3>", each fifth a recipe, and a body of a few bytes to a few
 * kilobytes that depends on i alone, so that what comes back can be checked without keeping it.
 */
#ifndef KILN_TESTS_LOG_WRITER_H
#define KILN_TESTS_LOG_WRITER_H

#include <pthread.h>

#include "store/wal.h"

enum { LOG_WRITER_MAX = 4096 };

struct kiln_log_writer {
    struct kiln_wal *wal;
    pthread_mutex_t lock;
    pthread_cond_t told;
    uint32_t submitted;
    uint32_t answered;
    int codes[LOG_WRITER_MAX];        /* of append i; 1 until it is done */
    uint64_t numbers[LOG_WRITER_MAX]; /* given to append i */
    uint64_t last_number;             /* done comes in the order of numbers */
    uint64_t trimmed;                 /* records up to this one need not be there */
    bool disordered;
    struct log_writer_append *appends;
};

/* What a replay gave. */
struct kiln_log_read {
    uint32_t n;
    uint32_t times[LOG_WRITER_MAX]; /* append i was given */
    uint64_t numbers[LOG_WRITER_MAX];
    uint64_t last_number;
    uint32_t wrong;   /* records that are none of ours, or out of order */
    uint32_t damaged; /* places */
    uint64_t lost_after, lost_up_to;
    char path[64]; /* of the last damage */
};

void kiln_log_writer_init(struct kiln_log_writer *w, struct kiln_wal *wal);
void kiln_log_writer_done(struct kiln_log_writer *w);
/* Submits the next record; waits until all submitted ones are answered. */
void kiln_log_writer_submit(struct kiln_log_writer *w);
void kiln_log_writer_wait(struct kiln_log_writer *w);
/* Both, for `n` records at once; returns the code of the last. */
int kiln_log_writer_append(struct kiln_log_writer *w, uint32_t n);

/* An append of the caller's own, which is not remembered; returns its code. */
int kiln_log_writer_submit_foreign(struct kiln_log_writer *w, struct kiln_wal_append *append);

/* For kiln_wal_open(): `context` is a struct kiln_log_read. */
int kiln_log_read_record(void *context, const struct kiln_wal_record *record);
void kiln_log_read_damage(void *context, const struct kiln_wal_damage *damage);

/* Opens the log, in segments of a few records, reading what is there into `ret`. */
KILN_CHECK int kiln_log_open(struct kiln_io *io, uint64_t floor, struct kiln_log_read *ret,
                             struct kiln_wal **ret_wal);

/* The head of an empty segment in a format of this version. */
void kiln_log_head_of_version(uint32_t version, uint8_t ret_bytes[32]);

/* NULL, or what is wrong: an acknowledged record that is not there, or one that is there twice. */
const char *kiln_log_compare(const struct kiln_log_writer *w, const struct kiln_log_read *read);

#endif /* KILN_TESTS_LOG_WRITER_H */
