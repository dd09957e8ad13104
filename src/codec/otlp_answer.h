/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_answer - what an ExportProfilesServiceResponse says.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_OTLP_ANSWER_H
#define KILN_CODEC_OTLP_ANSWER_H

#include "base/str.h"

/* How many profiles were rejected, and why; a message without any is a warning. */
struct kiln_export_result {
    uint64_t rejected;
    char message[256];
};

/* What cannot be read says nothing. */
void kiln_otlp_answer_decode(struct kiln_str response, struct kiln_export_result *ret_result);
/* Of protobuf's JSON: {"partialSuccess": {"rejectedProfiles": "1", "errorMessage": "..."}}. */
void kiln_otlp_answer_decode_json(struct kiln_str response, struct kiln_export_result *ret_result);

#endif /* KILN_CODEC_OTLP_ANSWER_H */
