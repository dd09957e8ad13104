/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start - what the library was started with, and the order its parts start in.
 *
 * Settings are written before any part starts and stay as they are until all have stopped; hook
 * paths read them without a lock.
 *
 * Each part has those of three functions that it has a use for (start.c calls them):
 *
 *   int kiln_in_X_start(void);     0, or a negative errno: the library goes on without it
 *   void kiln_in_X_stop(void);     nothing of it runs afterwards
 *   void kiln_in_X_forked(void);   in a forked child, where only the calling thread is left:
 * forgets what the parent's threads had, allocates and locks nothing. kiln_in_X_start() comes
 * later, if the child lives on.
 *
 * Threads: settings are read from anywhere.
 */
#ifndef KILN_INPROC_START_H
#define KILN_INPROC_START_H

#include <kiln.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KILN_IN_TEXT_MAX = 512,        /* bytes of a text among the settings */
    KILN_IN_REDACT_MAX = 4096,     /* of rules */
    KILN_IN_ATTRIBUTES_MAX = 64,   /* of the resource */
    KILN_IN_ATTRIBUTE_BYTES = 8192 /* of them all */
};

struct kiln_in_settings {
    /* What hook paths read. */
    uint32_t profiles; /* KILN_PROFILE_* */
    uint32_t cpu_hz;
    uint64_t alloc_bytes;                /* mean distance of two sampled bytes */
    uint32_t depth;                      /* frames of a stack, KILN_IN_DEPTH_MAX at most */
    uint32_t samples_max;                /* of one export */
    uint64_t lock_rate_ns, wait_rate_ns; /* a wait of this length is sampled once on average */
    uint64_t lag_ns;                     /* turns of an event loop from this length on */
    uint64_t alloc_rate;                 /* samples a second, at most; 0: any number */

    /* What our own threads read. */
    uint32_t export_interval_ms, cpu_window_ms, cpu_every_ms, heap_every_ms, cpu_backoff_percent,
        exit_ms,   /* that the end of the process may take longer */
        signal_ms; /* the same where a signal ends it; 0: at once */
    uint64_t seed; /* 0: none is fixed */
    bool log;
    bool stays; /* nothing is sent or written: profiles are for who asks at /debug/pprof */
    char out_dir[KILN_IN_TEXT_MAX];
    char pprof_listen[KILN_IN_TEXT_MAX]; /* "127.0.0.1:6060", "unix:/path"; "": nowhere */
    char socket[KILN_IN_TEXT_MAX];       /* of a local Kiln */
    char redact[KILN_IN_REDACT_MAX];     /* inproc/out/redact.h */
    /* OTLP: "" where nothing is said */
    char endpoint[KILN_IN_TEXT_MAX], protocol[32], headers[KILN_IN_TEXT_MAX], compression[16],
        certificate[KILN_IN_TEXT_MAX];
    bool endpoint_is_base; /* of all signals: the path of profiles is still to be added */
    uint32_t timeout_ms;

    /* The resource: keys are unique, service.name is the first. */
    struct kiln_attribute attributes[KILN_IN_ATTRIBUTES_MAX];
    uint32_t n_attributes;
    char attribute_bytes[KILN_IN_ATTRIBUTE_BYTES];
};

extern struct kiln_in_settings kiln_in_settings;

static inline bool kiln_in_wants(uint32_t profile)
{
    return (kiln_in_settings.profiles & profile) != 0;
}

/* What standard error is, once, before anything is said. */
void kiln_in_say_begin(void);
/* One line on standard error, "kiln: ..."; only with KILN_LOG=1 where it is not `important`. */
void kiln_in_say(bool important, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Starts by what variables say alone. */
void kiln_in_start_preloaded(void);

/* The keeper's, once a second: whether the operator wants it off. */
void kiln_in_start_watch(void);

/* The calling thread wants to be alone with the program's own: ours end, and come back later. */
void kiln_in_start_rest(void);

/* The process ends: what was sampled is sent, and nothing is sampled from now on.  Once. */
void kiln_in_start_end(void);

/* ---- the parts ---- */

#define KILN_IN_PART(name)                                                                         \
    int kiln_in_##name##_start(void) __attribute__((weak));                                        \
    void kiln_in_##name##_stop(void) __attribute__((weak));                                        \
    void kiln_in_##name##_forked(void) __attribute__((weak))

KILN_IN_PART(unwind);
KILN_IN_PART(alloc); /* with the live table */
KILN_IN_PART(lock);
KILN_IN_PART(threads); /* profiles of threads; blocks are inproc/thread's */
KILN_IN_PART(wait);
KILN_IN_PART(loop);
KILN_IN_PART(keep);
KILN_IN_PART(cpu);
KILN_IN_PART(out);
KILN_IN_PART(pprof);
KILN_IN_PART(ending);

/* Whether hooks are called: they are not where the C library comes before us. */
bool kiln_in_is_in_front(void) __attribute__((weak));

/* Sends what was sampled so far; waits for it, but no longer than this.  0 or a negative errno. */
int kiln_in_out_flush(uint32_t timeout_ms) __attribute__((weak));

/* Publishes who this process is, as far as KILN_REDACT lets it. */
void kiln_in_out_publish(void) __attribute__((weak));

#endif /* KILN_INPROC_START_H */
