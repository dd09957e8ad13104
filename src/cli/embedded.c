/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytetext.h"
#include "core/frame.h"
#include "core/lines.h"
#include "symbol/debugfile.h"
#include "symbol/elf.h"
#include "symbol/resolver.h"

enum { MAPPINGS_MAX = 8, DEBUG_FILES_MAX = 4 };

/* A program or debug file that may have the text. */
struct candidate {
    struct kiln_embedded *embedded;
    struct kiln_str file;
    const char *path;
    struct kiln_str build_id; /* as the profile has it; empty: not known */
    struct kiln_buf *text;
};

static bool has_build_id(int fd, struct kiln_str build_id)
{
    uint8_t id[KILN_BUILD_ID_MAX], len = 0;
    char text[2 * KILN_BUILD_ID_MAX + 1] = "";
    struct kiln_bytes bytes;
    struct kiln_elf *elf;

    if (build_id.len == 0)
        return true;
    if (kiln_bytes_file(fd, &bytes) < 0 || kiln_elf_open(&bytes, &elf) < 0)
        return false;
    if (kiln_elf_build_id(elf, id, &len) == 0)
        kiln_hex_encode(id, len, text);
    kiln_elf_close(elf);
    return kiln_str_eq(kiln_str_of(text), build_id);
}

static bool ask(const struct candidate *c, int fd)
{
    const struct kiln_resolver_opts opts = {.patient = true};
    struct kiln_embedded *embedded = c->embedded;
    const struct kiln_source source = {
        .kind = KILN_SOURCE_ELF, .fd = fd, .key = kiln_str_of(c->path)};

    if (!embedded->resolver && kiln_resolver_new(&opts, &embedded->resolver, NULL) < 0) {
        embedded->resolver = NULL;
        return false;
    }
    return kiln_resolver_text(embedded->resolver, &source, c->file, c->text) == 0 &&
           !memchr(c->text->ptr, '\0', c->text->len);
}

/* Takes the file. */
static bool ask_checked(const struct candidate *c, int fd)
{
    bool found = has_build_id(fd, c->build_id) && ask(c, fd);

    close(fd);
    return found;
}

static bool ask_program(const struct candidate *c)
{
    int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return false;
    }
    return ask_checked(c, fd);
}

/* The debug file that belongs to it. */
static bool ask_debug_file(const struct candidate *c)
{
    struct kiln_debugfile where = {.program = c->path, .by_id = true};
    struct kiln_wanted wanted = {.kind = KILN_WANTED_DEBUG};
    bool found = false;
    int fd;

    wanted.build_id_len = (uint8_t)(c->build_id.len / 2);
    if (c->build_id.len == 0 || c->build_id.len > sizeof(wanted.build_id) * 2 ||
        kiln_hex_decode(c->build_id, wanted.build_id, wanted.build_id_len) < 0)
        return false;
    where.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (where.root < 0)
        return false;
    for (; !found && wanted.attempt < DEBUG_FILES_MAX; wanted.attempt++) {
        if (kiln_debugfile_open(&where, &wanted, &fd) < 0)
            break;
        found = ask_checked(c, fd);
    }
    close(where.root);
    return found;
}

bool kiln_embedded_find(struct kiln_embedded *embedded, struct kiln_str file, struct kiln_buf *text)
{
    const struct kiln_dict *d = &embedded->batch->dict;
    struct candidate c = {.embedded = embedded, .file = file, .text = text};
    uint32_t mappings[MAPPINGS_MAX];
    uint32_t n = kiln_lines_mappings(embedded->batch, file, mappings, MAPPINGS_MAX);
    char path[4096];
    bool found = false;

    if (embedded->debug) {
        c.path = embedded->debug;
        found = ask_program(&c);
    }
    for (uint32_t i = 0; !found && i < n; i++) {
        const struct kiln_mapping *mapping = &d->mappings[mappings[i]];
        struct kiln_str name = d->strings[mapping->filename];

        if (name.len == 0 || name.len >= sizeof(path) || name.ptr[0] != '/')
            continue;
        memcpy(path, name.ptr, name.len);
        path[name.len] = '\0';
        c.path = path;
        c.build_id = kiln_frame_build_id(embedded->batch, mapping->attrs);
        found = ask_program(&c) || ask_debug_file(&c);
    }
    return found;
}

void kiln_embedded_done(struct kiln_embedded *embedded)
{
    kiln_resolver_free(embedded->resolver);
    embedded->resolver = NULL;
}
