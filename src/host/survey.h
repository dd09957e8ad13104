/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey - everything the host profiler has a use for, tried out one by one, with what is missing
 * without it and the command that grants it: `kiln doctor`.
 *
 * Nothing is told from a version: programs are loaded, clocks started, files read, and what they
 * did is looked at.
 *
 * Threads: one at a time; a survey is plain data.
 */
#ifndef KILN_HOST_SURVEY_H
#define KILN_HOST_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum kiln_finding_state {
    KILN_FINDING_OK,
    KILN_FINDING_LESS,    /* the profiler runs, and shows less or costs more */
    KILN_FINDING_MISSING, /* the profiler does not run */
    KILN_FINDING_UNKNOWN, /* it could not be tried, because of something that is missing */
};
/* "ok", "less", "missing", "unknown" */
const char *kiln_finding_word(enum kiln_finding_state state);

struct kiln_finding {
    const char *group; /* "kernel" */
    const char *name;  /* "btf" */
    enum kiln_finding_state state;
    char found[480];   /* what was seen */
    char without[320]; /* what is lost; "": nothing */
    char grant[640];   /* a command, or what else to do; "": nothing */
};

enum { KILN_FINDINGS_MAX = 48 };

struct kiln_survey {
    struct kiln_finding items[KILN_FINDINGS_MAX];
    uint32_t n;
};

/* A new finding, to be filled in; never NULL: what is one too many is written over. */
struct kiln_finding *kiln_survey_add(struct kiln_survey *survey, const char *group,
                                     const char *name, enum kiln_finding_state state);
void kiln_finding_say(struct kiln_finding *finding, const char *format, ...) KILN_PRINTF(2, 3);
/* How it is not, and how to have it. */
void kiln_finding_lacks(struct kiln_finding *finding, enum kiln_finding_state state,
                        const char *without, const char *grant);

/* Types, programs, clocks, samples, hooks of the scheduler, events of processes. */
void kiln_survey_kernel(struct kiln_survey *survey);
/* Capabilities, and what the kernel lets somebody without them do. */
void kiln_survey_privileges(struct kiln_survey *survey);
/*
 * What to do where the kernel hides its addresses, by whether CAP_SYSLOG is held and what
 * kernel.kptr_restrict is: below 2 they are shown to who holds it, at 2 to nobody.
 */
const char *kiln_survey_symbols_advice(bool held, int64_t restricted);
/* The command that grants every capability that is missing; "": none is. */
void kiln_survey_grant_all(char *to, size_t size);
/* What is to be seen of other processes: their namespace, /proc, control groups, the clock. */
void kiln_survey_host(struct kiln_survey *survey);

#endif /* KILN_HOST_SURVEY_H */
