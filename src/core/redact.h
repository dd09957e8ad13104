/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact - takes out of a batch what must not leave the house, by rules.
 *
 * Rules are YAML (or JSON, which is YAML): a list, or a map with the one key `redaction` that holds
 * the list.
 *
 *   - match: path            # file names of functions and mappings; attributes that hold paths
 *     regex: ^/home/[^/]+    # and command lines (process.executable.path, process.command_line...)
 *     action: replace
 *     replacement: "~"       # $0 is the match, $1 a group of it, $$ a dollar
 *   - match: name            # names of functions
 *     regex: (?i)customer
 *     action: hash
 *   - match: attribute       # of resources, scopes, profiles, samples, mappings, locations
 *     attribute: ^http\.request\.header\.   # a regex for the key; left out: any key
 *     action: drop           # `regex` for the value left out: any value
 *
 * drop removes an attribute with its key and puts "[redacted]" in the place of a name or path; hash
 * puts 16 hexadecimal digits of the SHA-256 of the text there, the same everywhere, so that equal
 * things stay equal (a hash hides nothing that can be guessed); replace changes the parts that
 * match; drop and hash take the whole text where any part of it matches.  keep changes nothing, and
 * has the rules behind it leave the text alone.
 *
 * Rules apply in order, each to what the one before left.  Inside arrays and maps every value is
 * looked at by itself; a rule for a key holds for all that is inside its value.  Numbers are
 * matched as text.  Original payloads go whenever there is a rule at all: nobody knows what is in
 * them.
 *
 * Threads: rules have one owner at a time; batches are only read.
 */
#ifndef KILN_CORE_REDACT_H
#define KILN_CORE_REDACT_H

#include "base/buf.h"
#include "base/config.h"
#include "base/err.h"
#include "core/builder.h"

struct kiln_redact;

enum kiln_redact_match { KILN_REDACT_PATH, KILN_REDACT_NAME, KILN_REDACT_ATTRIBUTE };
enum kiln_redact_action {
    KILN_REDACT_DROP,
    KILN_REDACT_HASH,
    KILN_REDACT_REPLACE,
    KILN_REDACT_KEEP
};

/* Writes what is to stand in the place of a match; 0 or a code. */
typedef int kiln_redact_mask(const void *context, struct kiln_str match, struct kiln_buf *out);

/* A rule that is made and not read. */
struct kiln_redact_spec {
    enum kiln_redact_match match;
    enum kiln_redact_action action;
    struct kiln_str key, regex;  /* ptr NULL: any, one of them must be there */
    struct kiln_str replacement; /* as it stands: a dollar is one */
    kiln_redact_mask *mask;      /* in the place of the replacement, or NULL */
    const void *context;         /* of mask; lives as long as the rules */
    bool texts_only;             /* numbers and truths are not looked at */
    bool outermost;              /* keys inside maps are not asked */
    uint32_t line;               /* where it comes from */
};

KILN_CHECK int kiln_redact_new(struct kiln_redact **ret_rules);
/* Adds a rule behind the others.  Returns 0, -ENOMEM, KILN_E_LIMIT or KILN_E_PATTERN. */
KILN_CHECK int kiln_redact_add(struct kiln_redact *rules, const struct kiln_redact_spec *spec,
                               struct kiln_err *err);

/*
 * Reads rules.  Returns 0, -ENOMEM, KILN_E_LIMIT (1 MiB, 1,000 rules), KILN_E_MALFORMED or
 * KILN_E_PATTERN; the error then names line and column.
 */
KILN_CHECK int kiln_redact_parse(struct kiln_str text, struct kiln_redact **ret_rules,
                                 struct kiln_err *err);
/* The same of a node that was read without variables; NULL is an empty file. */
KILN_CHECK int kiln_redact_read(const struct kiln_node *node, struct kiln_redact **ret_rules,
                                struct kiln_err *err);
void kiln_redact_free(struct kiln_redact *rules);

/* What was taken out: distinct texts and attributes, not how often samples refer to them. */
struct kiln_redact_info {
    uint64_t texts;
    uint64_t attributes_changed;
    uint64_t attributes_dropped;
    uint64_t payloads;
};

/*
 * Makes a redacted batch.  `info` may be NULL; it is added to.  A text on which an expression takes
 * too long is an error, never a text that slips through.
 */
KILN_CHECK int kiln_redact(struct kiln_redact *rules, const struct kiln_batch *batch,
                           struct kiln_batch **ret_batch, struct kiln_redact_info *info,
                           struct kiln_err *err);

#endif /* KILN_CORE_REDACT_H */
