/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp - OpenTelemetry profiles as protobuf: ProfilesData, which is also the body of an
 * ExportProfilesServiceRequest.
 *
 * Reads every revision of the protocol since 1.4 and finds out by itself which one it has before
 * it; writes the newest (1.10, which 1.11 left as it was).  A file may also hold several messages,
 * each behind a 4-byte big-endian length, as the OpenTelemetry Collector writes them.
 *
 * Written bytes are canonical: ascending fields, packed numbers, no default values, resource and
 * scope attributes inline and sorted by key, only what is referred to in the string and attribute
 * tables.  Reading and writing them again gives the same bytes.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_OTLP_H
#define KILN_CODEC_OTLP_H

#include "base/buf.h"
#include "base/compress.h"
#include "base/err.h"
#include "core/builder.h"

/* Revisions whose bytes differ; 1.11 is 1.10 on the wire. */
enum kiln_otlp_revision {
    KILN_OTLP_AUTO,
    KILN_OTLP_1_4, /* 1.4 and 1.5: tables inside each profile */
    KILN_OTLP_1_6, /* tables beside the resources */
    KILN_OTLP_1_7, /* a dictionary, but several sample types a profile */
    KILN_OTLP_1_8, /* one sample type, stack table */
    KILN_OTLP_1_9, /* profile fields renumbered */
    KILN_OTLP_1_10 /* sample fields renumbered */
};

/* "1.8"; and back, where "1.5" is 1.4 and "1.11" is 1.10.  AUTO for an unknown name. */
const char *kiln_otlp_revision_name(enum kiln_otlp_revision revision);
enum kiln_otlp_revision kiln_otlp_revision_named(struct kiln_str name);

/* True if the bytes look like OTLP profiles, plain or length-prefixed, and not like pprof. */
bool kiln_otlp_detect(struct kiln_str content);

struct kiln_otlp_opts {
    enum kiln_otlp_revision revision; /* AUTO: look */
    bool drop_bad_profiles; /* from 1.8 on: keep the good profiles of a message with bad ones */
    bool copies;            /* what the batch keeps of the bytes is copied */
    bool vouched;           /* somebody did (see below): texts need no second look */
    uint32_t of; /* so many messages, this one among them, come into the builder; 0: one */
};

struct kiln_otlp_info {
    enum kiln_otlp_revision revision; /* of the (first) message */
    uint32_t dropped_profiles;        /* with drop_bad_profiles */
    struct kiln_err first_dropped;    /* why the first one was */
};

/*
 * Decodes one message or a length-prefixed file into the builder.  `bytes` must live as long as the
 * batch, unless it `copies`.  `opts` and `info` may be NULL.
 */
KILN_CHECK int kiln_otlp_decode(struct kiln_str bytes, const struct kiln_otlp_opts *opts,
                                struct kiln_builder *b, struct kiln_otlp_info *info,
                                struct kiln_err *err);

struct kiln_otlp_counts {
    uint32_t profiles, samples;
};

/*
 * Vouches for a message that nobody has decoded: it is of the newest revision, and
 * kiln_otlp_decode() takes all that is in it, memory permitting.  False says nothing: it may be
 * bad, old, or only unusual, and whoever decodes it will see.  Allocates nothing.
 */
bool kiln_otlp_vouch(struct kiln_str message, struct kiln_otlp_counts *ret_counts);

/*
 * Counts what is in a message if it is one of the newest revision, without looking at more: for who
 * will decode it anyway, and see.  False where it is no message.
 */
bool kiln_otlp_count(struct kiln_str message, struct kiln_otlp_counts *ret_counts);

struct kiln_otlp_encode_opts {
    bool string_refs; /* attributes refer to the string table: smaller, for readers that resolve it
                       */
    bool dense;       /* what may stand in any order stands where it compresses best, resources and
                         samples too: codec/otlp_order.h */
    struct kiln_joints *ret_joints; /* if not NULL: where in the message its parts begin */
};

/* Appends the message to `out`.  `opts` may be NULL. */
KILN_CHECK int kiln_otlp_encode(const struct kiln_batch *batch,
                                const struct kiln_otlp_encode_opts *opts, struct kiln_buf *out,
                                struct kiln_err *err);

#endif /* KILN_CODEC_OTLP_H */
