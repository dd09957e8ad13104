/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/registry.h"

const char *const kiln_signal_names[KILN_SIGNALS] = {
    [KILN_SIGNAL_PROFILES] = "profiles",
    [KILN_SIGNAL_TRACES] = "traces",
    [KILN_SIGNAL_METRICS] = "metrics",
    [KILN_SIGNAL_LOGS] = "logs",
};

const char *const kiln_component_kind_names[KILN_COMPONENT_KINDS] = {
    [KILN_EXTENSION] = "extension", [KILN_RECEIVER] = "receiver",   [KILN_PROCESSOR] = "processor",
    [KILN_EXPORTER] = "exporter",   [KILN_CONNECTOR] = "connector",
};

const char *const kiln_component_section_names[KILN_COMPONENT_KINDS] = {
    [KILN_EXTENSION] = "extensions", [KILN_RECEIVER] = "receivers",
    [KILN_PROCESSOR] = "processors", [KILN_EXPORTER] = "exporters",
    [KILN_CONNECTOR] = "connectors",
};

const struct kiln_component_type *const kiln_component_types[] = {
#define X(type) &type,
    KILN_COMPONENT_TYPES(X)
#undef X
        NULL,
};

static bool has_alias(const struct kiln_component_type *type, struct kiln_str name)
{
    struct kiln_str rest = kiln_str_of(type->aliases);

    while (rest.ptr)
        if (kiln_str_eq(kiln_str_cut(&rest, ' '), name))
            return true;
    return false;
}

const struct kiln_component_type *kiln_component_find(enum kiln_component_kind kind,
                                                      struct kiln_str name)
{
    for (const struct kiln_component_type *const *type = kiln_component_types; *type; type++)
        if ((*type)->kind == kind &&
            (kiln_str_eq(kiln_str_of((*type)->name), name) || has_alias(*type, name)))
            return *type;
    return NULL;
}
