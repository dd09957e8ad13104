/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series - which series a profile belongs to: the one place that says it.
 *
 * A series is a service, a profile type (core/type.h) and the allow-listed attributes of the
 * resource: service.*, host.name, container.id, k8s.*, deployment.environment(.name), what tells
 * one deployment from another (version, git.commit, deployment.id, deployment_id) and what the
 * configuration adds.  process.*, thread.* and everything else filter and group, but never make a
 * series: a busy host shows a hundred new processes a minute.  A resource without service.name is
 * `unknown_service:<executable>`, or `unknown_service`.
 *
 * The key of a series is bytes: service NUL type-id NUL, then for each label, sorted by name:
 * name NUL value NUL.  Equal series have equal keys; in the order of keys the series of one
 * service stand together.  (NULs inside texts become U+FFFD; texts are cut at 1,024 bytes, labels
 * behind 16 KiB are left out, so that no sender can make a key that does not fit.)
 *
 * Threads: a series rule is constant once made; no other state.
 */
#ifndef KILN_CORE_SERIES_H
#define KILN_CORE_SERIES_H

#include "base/buf.h"
#include "base/err.h"
#include "core/batch.h"
#include "core/type.h"

struct kiln_series_rule;

/* `more` names attributes beside the default ones ("team", "cloud.*"). */
KILN_CHECK int kiln_series_rule_new(const struct kiln_str *more, uint32_t n,
                                    struct kiln_series_rule **ret_rule);
void kiln_series_rule_free(struct kiln_series_rule *rule);

/* Whether a resource's attribute of this name makes series whatever the configuration adds: a
 * profile whose series has no such label has none, whether its samples are looked at or not. */
bool kiln_series_made_by(struct kiln_str name);

/* Appends the key of a profile of this type under this resource. */
void kiln_series_key(const struct kiln_series_rule *rule, const struct kiln_batch *batch,
                     uint32_t resource, const struct kiln_type *type, struct kiln_buf *out);

/* Appends the key of the series that takes what is past a tenant's limit: service and type alone,
 * with the label `kiln.overflow` = "true". */
void kiln_series_overflow_key(struct kiln_str key, struct kiln_buf *out);
/* The same for services past the limit: `unknown_service`, whatever service it was. */
void kiln_series_last_key(struct kiln_str key, struct kiln_buf *out);
bool kiln_series_is_overflow(struct kiln_str key);

/* ---- reading keys ---- */

struct kiln_series {
    struct kiln_str service;
    struct kiln_str type;   /* the five-part id */
    struct kiln_str labels; /* the rest: name NUL value NUL ... */
};

/* KILN_E_MALFORMED for what is no key. */
KILN_CHECK int kiln_series_parse(struct kiln_str key, struct kiln_series *ret_series);
/* The next label of series->labels (a copy that the caller cuts); false at the end. */
bool kiln_series_label(struct kiln_str *labels, struct kiln_str *ret_name,
                       struct kiln_str *ret_value);
/* The value of a label: also "service.name" and "__profile_type__"; KILN_STR_NONE without it. */
struct kiln_str kiln_series_get(const struct kiln_series *series, struct kiln_str name);

/* ---- choosing series ---- */

enum kiln_match_op { KILN_MATCH_EQ, KILN_MATCH_NE, KILN_MATCH_RE, KILN_MATCH_NRE };

struct kiln_regex;
struct kiln_matcher {
    struct kiln_str name;
    struct kiln_str value; /* an absent label has the empty value */
    enum kiln_match_op op;
    struct kiln_regex *regex; /* of RE and NRE: anchored at both ends */
};

/* True if all hold. */
bool kiln_series_match(const struct kiln_series *series, const struct kiln_matcher *matchers,
                       uint32_t n);

#endif /* KILN_CORE_SERIES_H */
