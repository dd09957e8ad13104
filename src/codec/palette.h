/* SPDX-License-Identifier: Apache-2.0 */
/*
 * palette - which colour a frame has: whose code it is, and which module of it.
 *
 * Warm is the code of the program's authors, cool are libraries, grey is the runtime, slate the
 * kernel.  Within warm and cool one of six swatches is chosen by a hash of the module that is the
 * same on every machine, and one of three shades by the name, so that neighbours of one module can
 * be told apart.  A drawing writes the choice as CSS classes; assets/palette.css gives the colours.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_PALETTE_H
#define KILN_CODEC_PALETTE_H

#include "core/tree.h"

enum kiln_family { KILN_FAMILY_OWN, KILN_FAMILY_LIBRARY, KILN_FAMILY_RUNTIME, KILN_FAMILY_KERNEL };

#define KILN_SWATCHES   6
#define KILN_SHADES     3
#define KILN_DIFF_STEPS 4

/* Whose code, as far as name, file, module and kind of the frame tell. */
enum kiln_family kiln_frame_family(const struct kiln_frame *frame);
/* "your code", "library", "runtime", "kernel". */
const char *kiln_family_text(enum kiln_family family);

/* The part of the program a frame belongs to: package, namespace or class, else file or
 * binary; where nothing of that is known, the function itself. */
struct kiln_str kiln_frame_module(const struct kiln_frame *frame);

/* 0 to 5 by the module, 0 to 2 by the name. */
unsigned kiln_frame_swatch(const struct kiln_frame *frame);
unsigned kiln_frame_shade(const struct kiln_frame *frame);

/* The half-width of the 95 % interval of b - a, where each was made of so many observations. */
double kiln_diff_noise(double a, double count_a, double b, double count_b);

/* True if node `at` of a diff changed by more than noise. */
bool kiln_diff_is_real(const struct kiln_tree *tree, uint32_t at);

/* True if one callee changed by at least nine tenths of what `at` changed by: it starts there. */
bool kiln_diff_hands_on(const struct kiln_tree *tree, uint32_t at);

/*
 * How strongly node `at` of a diff is coloured: -4 (shrank most) to 4 (grew most), 0 where the
 * change is within noise or next to nothing.  A node that hands nine tenths of its change to one
 * callee is at most 1: the colour is strongest where a change starts.
 */
int kiln_diff_step(const struct kiln_tree *tree, uint32_t at);

#endif /* KILN_CODEC_PALETTE_H */
