/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build ids, from notes: PT_NOTE segments first, which files without section headers have too, then
 * the sections that are called as the notes usually are.
 *
 *   note:  0 bytes of the name   4 bytes of the content   8 type   12 name, content, each filled up
 *          to a multiple of 4
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "symbol/elf.h"

enum {
    NOTES_MAX = 4096, /* bytes that are looked at, of one segment or section */
    NOTE_GO_BUILD_ID = 4,
};

/* The note that is looked for. */
struct wanted {
    const char *owner; /* 4 bytes with NUL */
    uint32_t type;
    const char *section;
};

static size_t padded(uint32_t n)
{
    return ((size_t)n + 3) & ~(size_t)3;
}

/* Finds it in `n` bytes of notes; what is cut off at their end is none. */
static const uint8_t *find_in(const uint8_t *at, size_t n, const struct wanted *wanted,
                              uint32_t *ret_len)
{
    while (n >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        size_t name, content;

        memcpy(&note, at, sizeof(note));
        at += sizeof(note);
        n -= sizeof(note);
        name = padded(note.n_namesz);
        content = padded(note.n_descsz);
        if (name > n || note.n_descsz > n - name)
            return NULL;
        if (note.n_type == wanted->type && note.n_namesz == 4 &&
            memcmp(at, wanted->owner, 4) == 0) {
            *ret_len = note.n_descsz;
            return at + name;
        }
        if (content > n - name)
            return NULL;
        at += name + content;
        n -= name + content;
    }
    return NULL;
}

/* Finds it in notes; its content is copied to `to`, cut at `size`. */
static int copy_from(const void *notes, size_t n, const struct wanted *wanted, void *to,
                     uint32_t *size)
{
    uint32_t len;
    const uint8_t *found = find_in(notes, n, wanted, &len);

    if (!found || len == 0)
        return -ENOENT;
    if (len < *size)
        *size = len;
    memcpy(to, found, *size);
    return 0;
}

/* Finds it in a range of the file. */
static int find_at(const struct kiln_elf *elf, uint64_t offset, uint64_t n,
                   const struct wanted *wanted, void *to, uint32_t *size)
{
    uint8_t notes[NOTES_MAX];

    if (n > sizeof(notes))
        n = sizeof(notes);
    if (elf->bytes.read(&elf->bytes, offset, notes, n) < 0)
        return -ENOENT;
    return copy_from(notes, n, wanted, to, size);
}

static int find_note(const struct kiln_elf *elf, const struct wanted *wanted, void *to,
                     uint32_t *size)
{
    const struct kiln_elf_section *section;

    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];

        if (s->type == PT_NOTE && find_at(elf, s->offset, s->file_size, wanted, to, size) == 0)
            return 0;
    }
    section = kiln_elf_section(elf, wanted->section);
    if (!section || section->type != SHT_NOTE)
        return -ENOENT;
    return find_at(elf, section->offset, section->size, wanted, to, size);
}

static const struct wanted gnu = {"GNU", NT_GNU_BUILD_ID, ".note.gnu.build-id"};

int kiln_elf_build_id(const struct kiln_elf *elf, uint8_t ret_id[KILN_BUILD_ID_MAX],
                      uint8_t *ret_len)
{
    uint32_t size = KILN_BUILD_ID_MAX;
    int r = find_note(elf, &gnu, ret_id, &size);

    if (r == 0)
        *ret_len = (uint8_t)size;
    return r;
}

int kiln_notes_build_id(const void *notes, size_t n, uint8_t ret_id[KILN_BUILD_ID_MAX],
                        uint8_t *ret_len)
{
    uint32_t size = KILN_BUILD_ID_MAX;
    int r = copy_from(notes, n, &gnu, ret_id, &size);

    if (r == 0)
        *ret_len = (uint8_t)size;
    return r;
}

int kiln_elf_go_build_id(const struct kiln_elf *elf, char *ret_text, size_t size)
{
    static const struct wanted go = {"Go\0", NOTE_GO_BUILD_ID, ".note.go.buildid"};
    uint32_t len = size > NOTES_MAX ? NOTES_MAX : (uint32_t)(size - (size > 0));
    char text[NOTES_MAX];
    int r = find_note(elf, &go, text, &len);

    if (r < 0)
        return r;
    if (size == 0)
        return KILN_E_LIMIT;
    memcpy(ret_text, text, len);
    ret_text[len] = '\0';
    return 0;
}
