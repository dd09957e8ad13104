/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live - sampled blocks that have not been freed.
 *
 * A block is added before its address is given to the program and removed before it is given back
 * to the allocator: nobody else can have that address in between.  What was freed behind our back
 * stays until the same address is sampled, or freed, again.
 *
 * Threads: from anywhere.  No function waits longer than for a few turns of the scheduler: what
 * cannot be had by then is given up and told by the result.
 */
#ifndef KILN_INPROC_SAMPLE_LIVE_H
#define KILN_INPROC_SAMPLE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

enum { KILN_IN_LIVE_MAX = 1 << 19 }; /* 32 MiB, touched as they are used */

struct kiln_in_live {
    uint64_t address;
    uint64_t size;  /* as it was asked for */
    double count;   /* blocks it stands for; of bytes: count * size */
    uint64_t at_ns; /* CLOCK_MONOTONIC; its age is up to now */
    uint8_t trace[16], span[8];
    uint32_t stack;
    uint16_t labels;
    uint16_t pad;
};

/* Maps the table where that has not been done; 0 or a negative errno. */
int kiln_in_live_init(void);

/* -1: no room. */
int kiln_in_live_add(const struct kiln_in_live *block);

/* Whether it was there. */
bool kiln_in_live_remove(const void *address);

/*
 * For realloc(), which may fail and keep the block: the mark of a block, 0 where there is none; and
 * its removal, unless another one has the address by now.
 */
uint64_t kiln_in_live_mark(const void *address);
bool kiln_in_live_remove_marked(const void *address, uint64_t mark);

/* A copy of each; in no order.  Blocks that come and go meanwhile may be seen or not. */
void kiln_in_live_each(void (*look)(const struct kiln_in_live *block, void *arg), void *arg);

uint32_t kiln_in_live_count(void);
/* Memory that the table and the filter may have touched. */
uint64_t kiln_in_live_bytes(void);

/* On a thread that was at work in the table and has left by a jump. */
void kiln_in_live_left(void);
/* In a forked child: whoever was at work in the table is gone. */
void kiln_in_live_forked(void);
/* Nobody may be at it. */
void kiln_in_live_forget(void);

#endif /* KILN_INPROC_SAMPLE_LIVE_H */
