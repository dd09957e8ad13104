/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ottl - OpenTelemetry's language for conditions on data and changes to it, as far as profiles go:
 *
 *   set(resource.attributes["team"], "payments") where resource.attributes["service.name"] == "pay"
 *   IsMatch(profile.attributes["thread.name"], "^gc-") and not (profile.period > 0)
 *
 *   statement   editor(arguments) [where condition]
 *   condition   or, and, not, ( ), == != < <= > >=, a converter that is true or false, true, false
 *   value       "text", 42, 4.2, true, nil, [list], 0x6b696c6e, a path, Converter(arguments),
 *               + - * / of numbers
 *   path        resource.attributes["k"]   attributes, dropped_attributes_count, schema_url
 *               scope.name                 as well: version, and what a resource has; also
 *                                          instrumentation_scope
 *               profile.sample_type.type   unit; period_type.*, period, time_unix_nano, time,
 *                                          duration[_unix_nano], profile_id[.string],
 *                                          original_payload_format, original_payload, attributes,
 *                                          attribute_indices, dropped_attributes_count; sample
 *                                          (only read)
 *               sample.attributes["k"]     also profilesample; attribute_indices, link_index,
 *                                          values[0], timestamps_unix_nano[0]; timestamps[0]
 *                                          (only read)
 *               cache["k"]                 of all of them: what statements of a group tell each
 *                                          other about one item
 *   editors     set delete_key delete_matching_keys keep_keys keep_matching_keys replace_pattern
 *               replace_all_patterns limit truncate_all merge_maps
 *   converters  IsMatch IsString IsInt IsDouble IsBool IsMap IsList HasPrefix HasSuffix Concat
 *               SHA256 ConvertCase ToLowerCase ToUpperCase Substring Len String Int Double
 *               Now Unix UnixNano UnixMicro UnixMilli UnixSeconds ProfileID
 *
 * It is for one thing of a batch at a time: a resource, scope, profile or sample.  Whatever it is
 * in can be read as well.  A batch that is changed is open in a builder (core/reopen.h); entries of
 * its dictionary, which others may refer to, stay as they are.
 *
 * Limits: 16 KiB, 1,000 parts, 32 deep; a text that is made: 64 KiB.
 * Threads: one owner at a time.
 */
#ifndef KILN_PIPELINE_OTTL_OTTL_H
#define KILN_PIPELINE_OTTL_OTTL_H

#include "core/builder.h"

/* From the outermost in: whoever is in one of them is in those before it. */
enum kiln_ottl_context {
    KILN_OTTL_RESOURCE,
    KILN_OTTL_SCOPE,
    KILN_OTTL_PROFILE,
    KILN_OTTL_SAMPLE,
    KILN_OTTL_CONTEXTS
};

/* The context of this name ("scope" or "instrumentation_scope"); KILN_OTTL_CONTEXTS: none. */
enum kiln_ottl_context kiln_ottl_context_named(struct kiln_str name);

struct kiln_ottl;

/*
 * Reads a condition, or a statement.  Paths begin with the name of their context; with `context`
 * those that begin otherwise belong to that one.  With KILN_OTTL_CONTEXTS it is the innermost that
 * is named.  Returns 0, -ENOMEM or KILN_E_MALFORMED; the error quotes the text and says where.
 */
KILN_CHECK int kiln_ottl_condition(struct kiln_str text, enum kiln_ottl_context context,
                                   struct kiln_ottl **ret_ottl, struct kiln_err *err);
KILN_CHECK int kiln_ottl_statement(struct kiln_str text, enum kiln_ottl_context context,
                                   struct kiln_ottl **ret_ottl, struct kiln_err *err);
void kiln_ottl_free(struct kiln_ottl *ottl);

enum kiln_ottl_context kiln_ottl_context_of(const struct kiln_ottl *ottl);

/* Whether it may be run on items of this context: a cache belongs to one alone. */
bool kiln_ottl_fits(const struct kiln_ottl *ottl, enum kiln_ottl_context context);

/* One of them, with those that it is in; what is not reached is not looked at. */
struct kiln_ottl_item {
    const struct kiln_batch *batch;
    struct kiln_builder *b; /* that has it open; NULL: for conditions only */
    uint32_t resource, scope, profile, sample;
    uint32_t *cache; /* a set of attributes, 0 at first; NULL: there is none */
};

/* Returns 1, 0, or a code where it cannot be said (a pattern took too long, types do not fit). */
KILN_CHECK int kiln_ottl_holds(struct kiln_ottl *ottl, const struct kiln_ottl_item *item,
                               struct kiln_err *err);
/* Changes the item where the condition holds.  Returns 0 or a code, as above. */
KILN_CHECK int kiln_ottl_run(struct kiln_ottl *ottl, const struct kiln_ottl_item *item,
                             struct kiln_err *err);

#endif /* KILN_PIPELINE_OTTL_OTTL_H */
