/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope_int - what the files of the speedscope decoder share.
 *
 * Threads: a decoder belongs to one call.
 */
#ifndef KILN_CODEC_SPEEDSCOPE_INT_H
#define KILN_CODEC_SPEEDSCOPE_INT_H

#include "base/json.h"
#include "base/mem.h"
#include "codec/textframe.h"

struct speedscope {
    struct kiln_json r;
    struct kiln_str text;
    struct kiln_builder *b;
    struct kiln_err *err;
    struct kiln_budget budget;
    struct kiln_textstack stack;
    uint32_t *frames; /* shared frame -> location */
    uint32_t n_frames, cap_frames;
    uint32_t n_profiles;
    bool is_ours;     /* written by Kiln: a profile's name is its type */
    uint32_t profile; /* the one being read */
    uint32_t attrs;   /* of its samples */
};

/* The index of a shared frame, as its location. */
KILN_CHECK int speedscope_frame(struct speedscope *d, uint32_t *ret);

/* speedscope_events.c: the events of a profile, at r; times times `factor`, until `end`. */
KILN_CHECK int speedscope_events(struct speedscope *d, double factor, double end);

#endif /* KILN_CODEC_SPEEDSCOPE_INT_H */
