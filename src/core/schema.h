/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema - which version of OpenTelemetry's semantic conventions names the attributes that we make:
 * resources and scopes of our own profilers say it.  What others sent keeps what it said.
 *
 * Threads: no state.
 */
#ifndef KILN_CORE_SCHEMA_H
#define KILN_CORE_SCHEMA_H

#define KILN_SCHEMA_URL "https://opentelemetry.io/schemas/1.44.0"

#endif /* KILN_CORE_SCHEMA_H */
