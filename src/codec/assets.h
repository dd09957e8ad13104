/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assets - the style sheets and the script that go into our drawings, embedded at build time from
 * the files in codec/assets/ (cmake/embed.cmake).
 *
 * Each ends in NUL, which its length does not count.  None holds "]]>", so that it may stand in a
 * CDATA section.
 * Threads: constant.
 */
#ifndef KILN_CODEC_ASSETS_H
#define KILN_CODEC_ASSETS_H

#include <stddef.h>

extern const char kiln_asset_palette_css[], kiln_asset_flamegraph_css[], kiln_asset_flamegraph_js[],
    kiln_asset_callgraph_css[], kiln_asset_callgraph_js[];
extern const size_t kiln_asset_palette_css_len, kiln_asset_flamegraph_css_len,
    kiln_asset_flamegraph_js_len, kiln_asset_callgraph_css_len, kiln_asset_callgraph_js_len;

#endif /* KILN_CODEC_ASSETS_H */
