/* SPDX-License-Identifier: Apache-2.0 */
/* settings_int - the tables of settings.c, for settings_show.c. */
#ifndef KILN_CLI_SETTINGS_INT_H
#define KILN_CLI_SETTINGS_INT_H

#include <stddef.h>

#include "cli/settings.h"

enum {
    KILN_SETTINGS_MAPS = 12,
    KILN_AGENT_FIELDS = 22,
    KILN_WHOM_FIELDS = 3,
    KILN_EXPORT_FIELDS = 10,
    KILN_SPOOL_FIELDS = 2,
    KILN_AGENT_VARIABLES = 48
};

#define KILN_SETTING(key, kind, member)                                                            \
    {                                                                                              \
        (key), KILN_FIELD_##kind, offsetof(struct kiln_settings, member)                           \
    }

/* A map of the file, and what may be in it. */
struct kiln_settings_map {
    const char *path; /* "server.tls"; "": the file */
    size_t offset;    /* of its node in struct kiln_settings */
    const struct kiln_field *fields;
    uint32_t n;
};
extern const struct kiln_settings_map kiln_settings_maps[KILN_SETTINGS_MAPS];

bool kiln_settings_said(const struct kiln_settings *set, const struct kiln_field *field);
/* Of the host profiler and the agent: host_settings.c, agent_settings.c. */
extern const struct kiln_field kiln_agent_fields[KILN_AGENT_FIELDS],
    kiln_only_fields[KILN_WHOM_FIELDS], kiln_except_fields[KILN_WHOM_FIELDS],
    kiln_export_fields[KILN_EXPORT_FIELDS], kiln_spool_fields[KILN_SPOOL_FIELDS],
    kiln_agent_variables[KILN_AGENT_VARIABLES];

/* Joins what an option said each time, as its variable has it; lists what holds in the end. */
KILN_CHECK int kiln_settings_join_words(struct kiln_server_config *config, struct kiln_err *err);
KILN_CHECK int kiln_settings_list_words(struct kiln_server_config *config, struct kiln_err *err);
void kiln_settings_free_words(struct kiln_server_config *config);

/* The variable of a field, the first of several, or the first that is set; NULL: there is none, and
 * no option. */
const char *kiln_settings_variable(const struct kiln_field *field, bool set);

#endif /* KILN_CLI_SETTINGS_INT_H */
