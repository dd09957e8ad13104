/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor - what `kiln doctor` finds beside the kernel (host/survey.h): whether names can be found,
 * what is to be sent can go and wait somewhere, and what an agent that runs costs.
 *
 *   doctor_places.c   names, folders, the receiver
 *   doctor_agent.c    an agent that runs
 *   doctor_say.c      all of it, for people and for programs
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_DOCTOR_H
#define KILN_CLI_DOCTOR_H

#include "cli/cli.h"
#include "host/survey.h"

/* The child that reads names; the cache of names; the spool. */
void kiln_doctor_places(struct kiln_survey *survey, const struct kiln_server_config *config);
/* Sends it a request without profiles. */
void kiln_doctor_receiver(struct kiln_survey *survey, const struct kiln_server_config *config);

/* An agent of this host that runs. */
struct kiln_doctor_agent {
    bool found;
    char where[128]; /* that it was asked at */
    uint32_t hz;
    double cpu_cores, cpu_s; /* now; in all */
    uint64_t memory_bytes, samples, lost;
    uint64_t complete, stacks; /* of user space */
};
void kiln_doctor_agent(const struct kiln_server_config *config, struct kiln_doctor_agent *agent);
/* Reads what matters of /metrics, as far as it is there. */
void kiln_doctor_read_metrics(struct kiln_str text, struct kiln_doctor_agent *agent);

void kiln_doctor_say(const struct kiln_survey *survey, const struct kiln_doctor_agent *agent,
                     const struct kiln_term *term, struct kiln_buf *out);
void kiln_doctor_say_json(const struct kiln_survey *survey, const struct kiln_doctor_agent *agent,
                          struct kiln_buf *out);
/* Whether nothing is missing. */
bool kiln_doctor_works(const struct kiln_survey *survey);

#endif /* KILN_CLI_DOCTOR_H */
