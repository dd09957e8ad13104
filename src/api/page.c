/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain page, web/plain: three files that are part of the program.  It asks our own API, and
 * nothing that is not of this server may be loaded, run or framed: names in profiles are a
 * stranger's texts.  Everybody may read it, as it holds nothing; what it asks for is guarded.
 */
#include "api/api.h"

#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

extern const char kiln_asset_index_html[], kiln_asset_page_css[], kiln_asset_page_js[];
extern const size_t kiln_asset_index_html_len, kiln_asset_page_css_len, kiln_asset_page_js_len;

struct file {
    const char *path, *type, *bytes;
    const size_t *len;
};

static const struct file files[] = {
    {"/", "text/html; charset=utf-8", kiln_asset_index_html, &kiln_asset_index_html_len},
    {"/plain/page.css", "text/css; charset=utf-8", kiln_asset_page_css, &kiln_asset_page_css_len},
    {"/plain/page.js", "text/javascript; charset=utf-8", kiln_asset_page_js,
     &kiln_asset_page_js_len},
};

/* "no-cache": a newer program has newer files, and they are small. */
static void reply_file(struct kiln_request *request)
{
    const struct file *file = request->context;
    const struct kiln_reply reply = {
        .status = 200,
        .content_type = file->type,
        .body = {file->bytes, *file->len},
        .headers = {{KILN_STR("content-security-policy"), KILN_STR(POLICY)},
                    {KILN_STR("x-content-type-options"), KILN_STR("nosniff")},
                    {KILN_STR("referrer-policy"), KILN_STR("no-referrer")},
                    {KILN_STR("cache-control"), KILN_STR("no-cache")}},
        .n_headers = 4,
    };

    kiln_request_reply(request, &reply);
}

int kiln_api_add_page(struct kiln_api *api, struct kiln_router *router)
{
    int r = 0;

    (void)api;
    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(files); i++)
        r = kiln_router_add(router, &(struct kiln_route){.method = "GET",
                                                         .path = files[i].path,
                                                         .handler = reply_file,
                                                         .context = (void *)&files[i]});
    return r;
}
