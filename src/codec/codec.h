/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec - every format Kiln reads or writes, under one roof.
 *
 * A decoder reads one buffer into a builder; it may keep pointers into the buffer, which therefore
 * has to live as long as the batch.  An encoder appends to a buffer.  Both give errors that name
 * the place.  kiln_decode() finds the format by content and undoes gzip and zstd first.
 *
 * Threads: no state; different buffers and batches may be worked on at once.
 */
#ifndef KILN_CODEC_CODEC_H
#define KILN_CODEC_CODEC_H

#include "base/buf.h"
#include "base/err.h"
#include "core/builder.h"
#include "core/view.h"

/* enum suffix, name on the command line, usual file ending, what it is, read, write */
#define KILN_FORMAT_MAP(X)                                                                         \
    X(OTLP, "otlp", ".otlp", "OpenTelemetry profiles, protobuf", 1, 1)                             \
    X(OTLP_JSON, "otlp-json", ".json", "OpenTelemetry profiles, JSON", 1, 1)                       \
    X(PPROF, "pprof", ".pb.gz", "pprof protobuf", 1, 1)                                            \
    X(COLLAPSED, "collapsed", ".folded", "one line a stack: a;b;c 42", 1, 1)                       \
    X(SPEEDSCOPE, "speedscope", ".speedscope.json", "speedscope JSON", 1, 1)                       \
    X(SVG, "svg", ".svg", "interactive flame graph", 0, 1)                                         \
    X(DOT, "dot", ".dot", "call graph for Graphviz", 0, 1)                                         \
    X(TREE, "tree", ".txt", "indented text tree", 0, 1)                                            \
    X(PERF, "perf", ".perf", "text of perf script", 1, 0)                                          \
    X(GPERFTOOLS, "gperftools", ".prof", "binary CPU profile of gperftools", 1, 0)                 \
    X(JFR, "jfr", ".jfr", "Java Flight Recorder", 1, 0)

enum kiln_format {
    KILN_FORMAT_UNKNOWN,
#define X(suffix, name, ending, text, in, out) KILN_FORMAT_##suffix,
    KILN_FORMAT_MAP(X)
#undef X
        KILN_FORMAT_COUNT
};

struct kiln_format_info {
    const char *name;
    const char *ending;
    const char *text;
    bool reads;
    bool writes;
};

const struct kiln_format_info *kiln_format_info(enum kiln_format format);
/* By its name on the command line; KILN_FORMAT_UNKNOWN if there is no such. */
enum kiln_format kiln_format_named(struct kiln_str name);
/* By the ending of a file name, KILN_FORMAT_UNKNOWN if none fits. */
enum kiln_format kiln_format_of_path(struct kiln_str path);
/* By the first bytes of uncompressed content. */
enum kiln_format kiln_format_detect(struct kiln_str content);

struct kiln_decode_opts {
    enum kiln_format format;   /* UNKNOWN: detect */
    enum kiln_format fallback; /* if the content looks like no format; UNKNOWN: fail */
    struct kiln_limits limits; /* zero: the default */
    size_t input_bytes;        /* after decompression; 0: 256 MiB */
    const char *otlp_revision; /* "1.9": trust this instead of looking; NULL: look */
};

struct kiln_decode_info {
    enum kiln_format format;
    const char *compression; /* "gzip", "zstd" or NULL */
    char revision[16];       /* of OTLP: "1.8"; else empty */
    size_t raw_bytes;        /* uncompressed */
};

/*
 * Decodes a whole file.  `data` is copied only if needed: a batch never points into it.
 * `info` may be NULL.
 */
KILN_CHECK int kiln_decode(struct kiln_str data, const struct kiln_decode_opts *opts,
                           struct kiln_batch **ret_batch, struct kiln_decode_info *info,
                           struct kiln_err *err);

/*
 * The same for uncompressed content and a builder of the caller's: the batch may point into the
 * content, which then has to live as long.  Limits and input_bytes of `opts` (not NULL) are unused.
 */
KILN_CHECK int kiln_decode_into(struct kiln_str content, const struct kiln_decode_opts *opts,
                                struct kiln_builder *b, struct kiln_decode_info *info,
                                struct kiln_err *err);

struct kiln_pprof_losses;

struct kiln_encode_opts {
    enum kiln_format format;
    struct kiln_view_opts view;       /* for formats of one sample type: which, and how */
    const char *title;                /* of a drawing; NULL: a default */
    bool no_compression;              /* pprof: plain instead of gzip */
    struct kiln_pprof_losses *losses; /* pprof: what it cannot say; filled where not NULL */
};

/* Encodes into `out`. */
KILN_CHECK int kiln_encode(struct kiln_batch *batch, const struct kiln_encode_opts *opts,
                           struct kiln_buf *out, struct kiln_err *err);

#endif /* KILN_CODEC_CODEC_H */
