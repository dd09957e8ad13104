/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page, web/: a few files that are part of the program, packed.  It asks our own API, and
 * nothing that is not of this server may be loaded, run or framed: names in profiles are a
 * stranger's texts.  Everybody may read it, as it holds nothing; what it asks for is guarded.
 *
 * Each view has a path, so that links are short and say what they show; all of them are the same
 * file.  Assets have the hash of their content in their names and may be kept for ever; the file
 * that names them is asked for each time.
 */
#include "api/page.h"
#include "api/api.h"

#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const char *const views[] = {
    "/",      "/overview", "/explore", "/compare", "/labels", "/memory",   "/waiting",
    "/spans", "/profiles", "/file",    "/status",  "/start",  "/symptoms",
};

static bool takes_gzip(const struct kiln_request *request)
{
    return kiln_str_contains(kiln_request_header(request, "accept-encoding"), KILN_STR("gzip"));
}

static void reply_file(struct kiln_request *request)
{
    const struct kiln_page_file *file = request->context;
    bool lasting = file != &kiln_page_files[0];
    struct kiln_str packed = {(const char *)file->gzip, file->gzip_len};
    struct kiln_buf plain;
    struct kiln_reply reply = {
        .status = 200,
        .content_type = file->content_type,
        .body = packed,
        .headers = {{KILN_STR("content-security-policy"), KILN_STR(POLICY)},
                    {KILN_STR("x-content-type-options"), KILN_STR("nosniff")},
                    {KILN_STR("referrer-policy"), KILN_STR("no-referrer")},
                    {KILN_STR("cache-control"),
                     lasting ? KILN_STR("public, max-age=31536000, immutable")
                             : KILN_STR("no-cache")},
                    {KILN_STR("vary"), KILN_STR("accept-encoding")},
                    {KILN_STR("content-encoding"), KILN_STR("gzip")}},
        .n_headers = 6,
        .as_is = true,
    };

    kiln_buf_init(&plain, file->len);
    if (!takes_gzip(request)) {
        if (kiln_decompress(KILN_GZIP, packed, &plain, NULL) < 0) {
            kiln_request_reply_text(request, 503, "no memory for the page just now");
            return;
        }
        reply.body = kiln_buf_str(&plain);
        reply.n_headers--;
    }
    kiln_request_reply(request, &reply);
    kiln_buf_done(&plain);
}

static int add(struct kiln_router *router, const char *path, const struct kiln_page_file *file)
{
    return kiln_router_add(
        router, &(struct kiln_route){
                    .method = "GET", .path = path, .handler = reply_file, .context = (void *)file});
}

int kiln_api_add_page(struct kiln_api *api, struct kiln_router *router)
{
    int r = 0;

    (void)api;
    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(views); i++)
        r = add(router, views[i], &kiln_page_files[0]);
    for (uint32_t i = 1; r == 0 && i < kiln_page_n_files; i++)
        r = add(router, kiln_page_files[i].path, &kiln_page_files[i]);
    return r;
}
