/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_json - OpenTelemetry profiles as JSON: ProfilesData, or several of them one after the other
 * (JSON lines), whose content goes into one batch.
 *
 * Reading takes what is found in the wild: lowerCamelCase or snake_case names, 64-bit numbers as
 * strings or numbers, ids in hexadecimal of any case (profileId also in base64), null for a
 * default, unknown names passed over, the dictionary before or behind the profiles, names of
 * revision 1.8 beside those of 1.9 and later.  Every index is checked; errors name the path
 * ("resourceProfiles[0].scopeProfiles[0].profiles[2].samples[5].stackIndex"), line and column.
 *
 * Writing gives what codec/otlp.h gives in protobuf, with the same indexes: lowerCamelCase, 64-bit
 * numbers as strings, ids in hexadecimal, defaults left out.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_OTLP_JSON_H
#define KILN_CODEC_OTLP_JSON_H

#include "base/buf.h"
#include "core/builder.h"

/* True for an object that has resourceProfiles or a dictionary of tables. */
bool kiln_otlp_json_detect(struct kiln_str text);

/* Keeps nothing of the text. */
KILN_CHECK int kiln_otlp_json_decode(struct kiln_str text, struct kiln_builder *b,
                                     struct kiln_err *err);
KILN_CHECK int kiln_otlp_json_encode(const struct kiln_batch *batch, struct kiln_buf *out,
                                     struct kiln_err *err);

#endif /* KILN_CODEC_OTLP_JSON_H */
