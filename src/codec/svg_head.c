/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/svg_head.h"
#include "codec/assets.h"

static void open_text(struct kiln_buf *out, const char *id, const char *class, int y)
{
    kiln_buf_printf(out, "<text id=\"%s\" class=\"%s\" x=\"%d\" y=\"%d\">", id, class,
                    KILN_SVG_EDGE, y);
}

void kiln_svg_head(const struct kiln_caption *caption, struct kiln_str css, struct kiln_buf *out)
{
    kiln_buf_puts(out, "<title>");
    kiln_caption_headline(caption, out);
    kiln_buf_puts(out, "</title>\n<style><![CDATA[\n");
    kiln_buf_add(out, kiln_asset_palette_css, kiln_asset_palette_css_len);
    kiln_buf_add_str(out, css);
    kiln_buf_puts(out, "]]></style>\n<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
    open_text(out, "headline", "h1", 36);
    kiln_caption_headline(caption, out);
    kiln_buf_puts(out, "</text>\n");
    open_text(out, "finding", "", 60);
    kiln_caption_finding(caption, out);
    kiln_buf_puts(out, "</text>\n");
    open_text(out, "facts", "small i3", 80);
    kiln_caption_source(caption, out);
    kiln_buf_puts(out, " · ");
}
