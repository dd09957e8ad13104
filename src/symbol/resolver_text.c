/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the child does when it is asked for an embedded source: the file is read for this one
 * answer, and not kept.  Inflated sections are in memory: the scratch file has its owner.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "symbol/embedded.h"
#include "symbol/resolver_int.h"

enum { MEMORY = 48 << 20 };

static int read_text(const struct kiln_names_ask *ask, struct kiln_str name, int fd,
                     struct kiln_buf *out)
{
    struct kiln_budget budget = {.limit = MEMORY};
    uint64_t deadline_ns = kiln_clock_mono_ns() + ask->deep_ms * KILN_NS_PER_MS;
    const struct kiln_embedded_opts opts = {
        .room = {.budget = &budget, .deadline_ns = &deadline_ns},
        .deadline_ns = deadline_ns,
    };
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    int r = fd < 0 ? -ENOENT : kiln_bytes_file(fd, &bytes);

    if (r == 0)
        r = kiln_elf_open(&bytes, &elf);
    if (r < 0)
        return r;
    r = kiln_embedded_read(elf, name, &opts, out);
    kiln_elf_close(elf);
    return r;
}

int kiln_child_answer_text(const struct kiln_names_ask *ask, struct kiln_str name, int fd,
                           int (*send)(const void *data, size_t n, int flags))
{
    static char packet[KILN_WIRE_PACKET];
    struct kiln_names_said said = {.what = KILN_SAID_TEXT, .number = ask->number};
    struct kiln_buf text;
    struct kiln_str rest;
    int r, status;

    kiln_buf_init(&text, KILN_TEXT_MAX);
    status = read_text(ask, name, fd, &text);
    rest = status < 0 ? KILN_STR_NONE : kiln_buf_str(&text);
    do {
        said.n =
            (uint32_t)(rest.len < sizeof(packet) - sizeof(said) ? rest.len
                                                                : sizeof(packet) - sizeof(said));
        said.status = said.n ? 0 : status;
        memcpy(packet, &said, sizeof(said));
        if (said.n)
            memcpy(packet + sizeof(said), rest.ptr, said.n);
        r = send(packet, sizeof(said) + said.n, 0);
        if (said.n)
            rest = (struct kiln_str){rest.ptr + said.n, rest.len - said.n};
        said.first += said.n;
    } while (r == 0 && said.n > 0);
    kiln_buf_done(&text);
    return r;
}
