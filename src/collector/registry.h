/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry - every component there is, a line each, in the order in which `kiln collector
 * components` shows them.
 *
 * Threads: constant.
 */
#ifndef KILN_COLLECTOR_REGISTRY_H
#define KILN_COLLECTOR_REGISTRY_H

#include "collector/component.h"

#define KILN_COMPONENT_TYPES(X)                                                                    \
    X(kiln_basicauth_extension_type)                                                               \
    X(kiln_bearertokenauth_extension_type)                                                         \
    X(kiln_file_storage_extension_type)                                                            \
    X(kiln_health_check_extension_type)                                                            \
    X(kiln_pprof_extension_type)                                                                   \
    X(kiln_zpages_extension_type)                                                                  \
    X(kiln_host_receiver_type)                                                                     \
    X(kiln_nop_receiver_type)                                                                      \
    X(kiln_otlp_receiver_type)                                                                     \
    X(kiln_otlp_json_file_receiver_type)                                                           \
    X(kiln_pprof_receiver_type)                                                                    \
    X(kiln_pyroscope_receiver_type)                                                                \
    X(kiln_attributes_processor_type)                                                              \
    X(kiln_batch_processor_type)                                                                   \
    X(kiln_filter_processor_type)                                                                  \
    X(kiln_memory_limiter_processor_type)                                                          \
    X(kiln_redaction_processor_type)                                                               \
    X(kiln_resource_processor_type)                                                                \
    X(kiln_symbolize_processor_type)                                                               \
    X(kiln_transform_processor_type)                                                               \
    X(kiln_debug_exporter_type)                                                                    \
    X(kiln_file_exporter_type)                                                                     \
    X(kiln_nop_exporter_type)                                                                      \
    X(kiln_otlp_grpc_exporter_type)                                                                \
    X(kiln_otlp_http_exporter_type)                                                                \
    X(kiln_pyroscope_exporter_type)                                                                \
    X(kiln_store_exporter_type)                                                                    \
    X(kiln_forward_connector_type)

#define X(type) extern const struct kiln_component_type type;
KILN_COMPONENT_TYPES(X)
#undef X

#endif /* KILN_COLLECTOR_REGISTRY_H */
