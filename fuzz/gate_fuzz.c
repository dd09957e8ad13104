/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of requests before the gate: the first byte chooses method and access, then lines
 * "name: value", where '%' stands for a session that there is.
 * Nobody gets in without the token or the session, or from another site, and nothing is changed
 * by a cookie alone.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "pipeline/gate.h"

#define TOKEN "fuzz-secret"
enum { HEADERS = 16, TEXT = 4096 };

static char session[KILN_SESSION_TEXT + 1];

/* A file of tokens that is gone with the process. */
static const char *tokens_file(void)
{
    static const char tokens[] = "- {token: " TOKEN ", tenant: shop, access: [read, write]}\n";
    static char path[64];
    int fd;

    if (!path[0]) {
        fd = memfd_create("tokens", 0);
        if (fd < 0 || write(fd, tokens, sizeof(tokens) - 1) != (ssize_t)sizeof(tokens) - 1)
            abort();
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    return path;
}

static struct kiln_gate *open_gate(void)
{
    struct kiln_gate_opts opts = {.tokens_file = tokens_file(), .tenants = true};
    struct kiln_request nobody = {0};
    struct kiln_gate *gate = NULL;
    struct kiln_caller caller;
    int r = kiln_gate_new(&opts, &gate, NULL);

    if (r == 0)
        r = kiln_gate_sign_in(gate, &nobody, KILN_STR(TOKEN), session, &caller);
    FUZZ_CHECK(r == 0);
    if (r < 0) {
        kiln_gate_free(gate);
        return NULL;
    }
    return gate;
}

/* The input with every '%' that stands for the session; how much of it fits. */
static struct kiln_str expand(const uint8_t *data, size_t size, char *room)
{
    size_t n = 0;

    for (size_t i = 0; i < size && n + KILN_SESSION_TEXT < TEXT; i++) {
        if (data[i] == '%') {
            memcpy(room + n, session, KILN_SESSION_TEXT);
            n += KILN_SESSION_TEXT;
        } else {
            room[n++] = (char)data[i];
        }
    }
    return (struct kiln_str){room, n};
}

static bool has(struct kiln_str text, const char *word)
{
    return memmem(text.ptr, text.len, word, strlen(word)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE"};
    static const enum kiln_access accesses[] = {KILN_ACCESS_READ, KILN_ACCESS_WRITE,
                                                KILN_ACCESS_ADMIN, KILN_ACCESS_SELF};
    struct kiln_header headers[HEADERS];
    struct kiln_request request = {.headers = headers, .peer = {.address = "10.0.0.1:1"}};
    struct kiln_caller caller;
    struct kiln_gate *gate = size ? open_gate() : NULL;
    struct kiln_guard guard;
    struct kiln_reply reply;
    enum kiln_access access;
    char room[TEXT];
    struct kiln_str text, rest;
    bool known;

    if (!gate)
        return 0;
    access = accesses[data[0] / 4 % 4];
    request.method = kiln_str_of(methods[data[0] % 4]);
    rest = text = expand(data + 1, size - 1, room);
    while (rest.len && request.n_headers < HEADERS) {
        struct kiln_str line = kiln_str_cut(&rest, '\n'), name = kiln_str_cut(&line, ':');

        headers[request.n_headers++] = (struct kiln_header){name, kiln_str_trim(line)};
    }
    guard = kiln_gate_guard(gate);
    known = has(text, TOKEN) || has(text, session) || has(text, "asic "); /* base64 of it */
    if (guard.check(guard.context, &request, access, &reply) == 0) {
        FUZZ_CHECK(known && access != KILN_ACCESS_ADMIN);
        FUZZ_CHECK(strcmp(request.tenant, "shop") == 0 ||
                   (access == KILN_ACCESS_SELF && !request.tenant[0]));
        FUZZ_CHECK(
            !kiln_str_eq(kiln_request_header(&request, "sec-fetch-site"), KILN_STR("cross-site")));
        if (data[0] % 4 > 1 && !kiln_request_header(&request, "authorization").len)
            FUZZ_CHECK(kiln_str_eq(kiln_request_header(&request, "x-kiln-page"), KILN_STR("1")));
    }
    kiln_gate_caller(gate, &request, &caller);
    FUZZ_CHECK(!caller.signed_in || known);
    kiln_gate_free(gate);
    return 0;
}
