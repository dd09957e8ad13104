/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_context - where the threads of a process keep the span they work for: the variable
 * `otel_thread_ctx_v1` (OTEP 4947) of the program or of a library that it loaded.
 *
 * What a file says of it is found once for each file; what the dynamic linker made of that is read
 * in the memory of the process.
 *
 * Threads: the reader's.
 */
#ifndef KILN_HOST_THREAD_CONTEXT_H
#define KILN_HOST_THREAD_CONTEXT_H

#include "host/peek.h"
#include "host/process.h"

/*
 * Looks through everything that the process has mapped, the program first; opens files.  -ENOENT:
 * none of them defines it; -EAGAIN: one does, and is not ready yet; -ESRCH: the process is gone.
 */
KILN_CHECK int kiln_thread_context_find(struct kiln_processes *processes,
                                        struct kiln_process *process,
                                        struct kiln_context_place *ret_place);

/*
 * What the dynamic linker made of what a file says.  `bias`: address in the process - address of
 * the file.  -EAGAIN: nothing yet, or nothing that can be.
 */
KILN_CHECK int kiln_thread_context_place(const struct kiln_tls_variable *variable, uint64_t bias,
                                         const struct kiln_peek *peek,
                                         struct kiln_context_place *ret_place);

#endif /* KILN_HOST_THREAD_CONTEXT_H */
