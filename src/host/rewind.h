/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewind - walks on in user space where the kernel met something new: the same walk (host/walk.h)
 * over the registers and the slice of stack that a raw record brings, loading the tables that it
 * needs, so that the next sample is walked in the kernel.
 *
 * Threads: one owner, the reader's thread.
 */
#ifndef KILN_HOST_REWIND_H
#define KILN_HOST_REWIND_H

#include "host/process.h"
#include "host/tables.h"

/* A stack as far as it is known: `n` user frames, leaf first, adjusted like those of records. */
struct kiln_walked {
    uint64_t frames[KILN_USER_FRAMES_MAX];
    uint32_t n;
    uint8_t end; /* enum kiln_end */
};

/*
 * The user stack of a record.  One that was complete is copied; a miss is made known to the tables
 * and, where the record is raw, walked on.
 */
void kiln_rewind(struct kiln_tables *tables, struct kiln_processes *processes,
                 struct kiln_process *process, const struct kiln_record *record,
                 struct kiln_walked *ret_walked);

/* Memory of a process that stands still.  Returns 0, or else it cannot be read. */
struct kiln_stack_memory {
    int (*read)(void *context, uint64_t address, void *to, size_t n);
    void *context;
};

/* The user stack of a process that stands still, from the registers of a leaf. */
void kiln_rewind_memory(struct kiln_tables *tables, struct kiln_processes *processes,
                        struct kiln_process *process, const struct kiln_registers *registers,
                        const struct kiln_stack_memory *memory, struct kiln_walked *ret_walked);

#endif /* KILN_HOST_REWIND_H */
