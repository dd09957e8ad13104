/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_int - what the files of kernel share.
 *
 * Threads: as in kernel.h; `lock` guards the clocks.
 */
#ifndef KILN_HOST_KERNEL_INT_H
#define KILN_HOST_KERNEL_INT_H

#include <bpf/libbpf.h>
#include <pthread.h>

#include "host/bpf/settings.h"
#include "host/kernel.h"
#include "host/percpu.h"
#include "host/refusal.h"

/* The hook for waits: of the thread that drains. */
struct kernel_wait {
    enum kiln_wait_way way;
    uint32_t sets; /* of stamps */
    struct bpf_program *program;
    struct bpf_link *link; /* NULL: it is away */
    uint64_t since_ns;     /* that it is there */
    uint64_t there_ns;     /* in all, before */
};

struct kiln_kernel {
    struct kiln_table_memory tables; /* first: put and drop find the rest by it */
    struct bpf_object *object;
    struct ring_buffer *ring;
    int program_fd, ring_fd, directory_fd, settings_fd, filters_fd, counts_fd, contexts_fd;
    int rates_fd;
    int stats_fd; /* open: the kernel measures; -1 */
    uint32_t ring_bytes;
    uint64_t fixed_bytes;                         /* of all maps but the directory, which grows */
    uint64_t mapped_bytes;                        /* of those that are mapped here */
    uint64_t directory_bytes, directory_again_ns; /* what it took, and when to look again */
    pthread_mutex_t lock;
    struct kiln_percpu clocks;
    uint32_t hz;      /* of the clocks; 0: they stand */
    uint32_t n_rates; /* entries of the map, at most */
    _Atomic uint32_t processors;
    struct kiln_settings settings;
    struct kernel_wait wait;
    /* while draining: */
    void (*visit)(void *context, const struct kiln_record *record);
    void *context;
};

/* ---- kernel_log.c ---- */

/* What libbpf said about a load that failed. */
struct kiln_load_message {
    char program[32]; /* that the verifier refused; "": none */
    char text[160];   /* the verifier's reason; without a program: libbpf's last message */
};
/* Takes what there is in one message of libbpf's. */
void kiln_load_message_read(const char *text, struct kiln_load_message *message);
/* libbpf's messages are kept from now on instead of being printed. */
void kiln_kernel_quiet(void);
/* Of this thread, since kiln_kernel_quiet(). */
const struct kiln_load_message *kiln_kernel_message(void);

/* ---- kernel_probe.c ---- */

/* Whether this process may load programs at all: 0, or an error with its sentence. */
int kiln_kernel_probe(struct kiln_err *err);
/* The sentence for a step that failed.  Returns `code`, but never -EINVAL: no option is wrong. */
int kiln_kernel_explain(int code, enum kiln_step step, struct kiln_err *err);

/* ---- kernel.c ---- */

/* What the programs are told: `settings` as it is now. */
int kiln_kernel_tell_settings(const struct kiln_kernel *kernel);

/* What the kernel measured of a program (bpf_stats); instructions that it verified. */
uint32_t kiln_kernel_measured(int program_fd, uint64_t *ret_runs, uint64_t *ret_ns);

/* ---- kernel_wait.c ---- */

/* Before the programs are loaded: which of those for waits, and how large their map is. */
int kiln_kernel_wait_prepare(struct kiln_kernel *kernel, const struct kiln_kernel_opts *opts);
/* Fills in what is theirs in `settings`. */
void kiln_kernel_wait_settings(struct kiln_kernel *kernel, uint32_t hz);
void kiln_kernel_wait_close(struct kiln_kernel *kernel);

/* ---- kernel_filter.c ---- */

int kiln_kernel_set_filter(struct kiln_kernel *kernel, const struct kiln_host_filter *filter,
                           struct kiln_err *err);

#endif /* KILN_HOST_KERNEL_INT_H */
