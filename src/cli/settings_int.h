/* SPDX-License-Identifier: Apache-2.0 */
/* settings_int - the tables of settings.c, for settings_show.c. */
#ifndef KILN_CLI_SETTINGS_INT_H
#define KILN_CLI_SETTINGS_INT_H

#include "cli/settings.h"

enum { KILN_SETTINGS_MAPS = 6 };

/* A map of the file, and what may be in it. */
struct kiln_settings_map {
    const char *path; /* "server.tls"; "": the file */
    size_t offset;    /* of its node in struct kiln_settings */
    const struct kiln_field *fields;
    uint32_t n;
};
extern const struct kiln_settings_map kiln_settings_maps[KILN_SETTINGS_MAPS];

bool kiln_settings_said(const struct kiln_settings *set, const struct kiln_field *field);
/* The variable of a field; NULL: there is none, and no option. */
const char *kiln_settings_variable(const struct kiln_field *field);

#endif /* KILN_CLI_SETTINGS_INT_H */
