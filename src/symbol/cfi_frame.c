/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of frames, .eh_frame and .debug_frame: cfi_entry.c has the bytes of their entries.
 */
#include <elf.h>
#include <errno.h>

#include "base/err.h"
#include "symbol/cfi_int.h"

enum {
    ENTRY_MAX = 1 << 20,
    SECTION_MAX = 256 << 20,
    LOAD_MAX = 32 << 20, /* of a compressed section, which is kept in memory */
    INDEX_BYTES = 32 << 20,
};

static const uint8_t *see(struct cfi_frames *frames, uint64_t at, size_t need, size_t want,
                          size_t *ret_n)
{
    if (need > frames->size || at > frames->size - need)
        return NULL;
    if (want > frames->size - at)
        want = (size_t)(frames->size - at);
    return kiln_window_see(&frames->window, frames->offset + at, need, want, ret_n);
}

int cfi_head_read(struct cfi_frames *frames, uint64_t at, struct kiln_cfi_head *ret_head)
{
    size_t n;
    const uint8_t *seen = see(frames, at, 4, KILN_CFI_HEAD_MAX, &n);

    if (!seen)
        return KILN_E_TRUNCATED;
    return kiln_cfi_head_take(seen, n, frames->is_debug,
                              &(struct kiln_cfi_head){.at = at, .end = frames->size}, ret_head);
}

/* The body of an entry, in the window or, where it is too large, in *ret_copy. */
static int read_body(struct cfi_frames *frames, const struct kiln_cfi_head *head,
                     struct kiln_cursor *ret_c, void **ret_copy)
{
    const struct kiln_bytes *bytes = frames->window.bytes;
    size_t size = (size_t)(head->end - head->body), n;
    const uint8_t *seen;
    int r;

    *ret_copy = NULL;
    if (size <= KILN_WINDOW_MAX) {
        seen = size ? see(frames, head->body, size, size, &n) : (const uint8_t *)"";
        if (!seen)
            return KILN_E_TRUNCATED;
        *ret_c = (struct kiln_cursor){seen, seen + size, false};
        return 0;
    }
    if (head->end - head->body > ENTRY_MAX)
        return KILN_E_LIMIT;
    *ret_copy = kiln_malloc(size);
    if (!*ret_copy)
        return -ENOMEM;
    r = bytes->read(bytes, frames->offset + head->body, *ret_copy, size);
    if (r < 0) {
        kiln_free(*ret_copy);
        *ret_copy = NULL;
    } else {
        *ret_c = (struct kiln_cursor){*ret_copy, (uint8_t *)*ret_copy + size, false};
    }
    return r;
}

static int read_cie(struct cfi_frames *frames, uint64_t at, struct cfi_cie *cie)
{
    struct kiln_cursor c;
    struct kiln_cfi_head head;
    void *copy;
    int r = cfi_head_read(frames, at, &head);

    if (r < 0)
        return r;
    if (!head.is_cie || head.end == 0)
        return KILN_E_MALFORMED;
    r = read_body(frames, &head, &c, &copy);
    if (r < 0)
        return r;
    *cie = (struct cfi_cie){.at = at};
    r = cfi_cie_take(&c, frames->address + head.body, cie);
    kiln_free(copy);
    return r;
}

/* The CIE at an offset, which few files have more than a handful of. */
static const struct cfi_cie *get_cie(struct cfi_frames *frames, uint64_t at)
{
    struct cfi_cie *cie;

    for (uint32_t i = 0; i < CFI_CIES; i++) {
        if (frames->cies[i].valid && frames->cies[i].at == at)
            return &frames->cies[i];
    }
    cie = &frames->cies[frames->next_cie++ % CFI_CIES];
    cie->valid = false;
    if (read_cie(frames, at, cie) < 0)
        return NULL;
    cie->valid = true;
    return cie;
}

int cfi_fde_read(struct cfi_frames *frames, uint64_t at, struct cfi_fde *ret_fde)
{
    struct cfi_bases bases = {.text = frames->text_base, .data = frames->data_base};
    struct cfi_fde fde = {0};
    struct kiln_cursor c;
    struct kiln_cfi_head head;
    int r = cfi_head_read(frames, at, &head);

    if (r < 0)
        return r;
    if (head.is_cie || head.end == 0)
        return KILN_E_MALFORMED;
    fde.cie = get_cie(frames, head.cie);
    if (!fde.cie)
        return KILN_E_MALFORMED;
    r = read_body(frames, &head, &c, &fde.copy);
    if (r < 0)
        return r;
    bases.address = frames->address + head.body;
    r = cfi_fde_take(&c, &bases, &fde);
    if (r < 0)
        cfi_fde_done(&fde);
    else
        *ret_fde = fde;
    return r;
}

void cfi_fde_done(struct cfi_fde *fde)
{
    kiln_free(fde->copy);
    fde->copy = NULL;
}

static void begin_frames(struct cfi_frames *frames, const struct kiln_elf *elf)
{
    const struct kiln_elf_section *text = kiln_elf_section(elf, ".text");
    const struct kiln_elf_section *got = kiln_elf_section(elf, ".got");

    *frames = (struct cfi_frames){
        .elf = elf,
        .text_base = text ? text->address : 0,
        .data_base = got ? got->address : 0,
        .budget = {.limit = INDEX_BYTES},
    };
    kiln_window_init(&frames->window, &elf->bytes);
}

static bool take_section(struct cfi_frames *frames, const struct kiln_elf_section *section)
{
    if (!section || section->type == SHT_NOBITS || section->size > SECTION_MAX ||
        section->size > frames->elf->bytes.size ||
        section->offset > frames->elf->bytes.size - section->size)
        return false;
    frames->offset = section->offset;
    frames->size = section->size;
    frames->address = section->address;
    return true;
}

/* Where no section says where the frames are: from an address to the end of its segment. */
static bool take_segment(struct cfi_frames *frames, uint64_t address)
{
    for (uint32_t i = 0; i < frames->elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &frames->elf->segments[i];
        uint64_t into = address - s->address;

        if (s->type != PT_LOAD || address < s->address || into >= s->file_size ||
            s->file_size > frames->elf->bytes.size ||
            s->offset > frames->elf->bytes.size - s->file_size)
            continue;
        frames->offset = s->offset + into;
        frames->size = s->file_size - into;
        frames->address = address;
        if (frames->size > SECTION_MAX)
            frames->size = SECTION_MAX;
        return true;
    }
    return false;
}

/* The address of the frames as .eh_frame_hdr has it; 0: it cannot be read. */
static uint64_t frames_of_header(const struct kiln_elf *elf, uint64_t address)
{
    struct cfi_bases bases = {.address = address + 4, .data = address};
    uint64_t frames = 0;
    struct kiln_cursor c;
    uint8_t head[12];

    if (kiln_elf_read(elf, address, head, sizeof(head)) < 0 || head[0] != 1)
        return 0;
    c = (struct kiln_cursor){head + 4, head + sizeof(head), false};
    return cfi_pointer(&c, head[1], &bases, &frames) ? frames : 0;
}

static bool find_header(const struct kiln_elf *elf, uint64_t *ret_address, uint64_t *ret_offset)
{
    const struct kiln_elf_section *section;

    for (uint32_t i = 0; i < elf->n_segments; i++) {
        if (elf->segments[i].type == PT_GNU_EH_FRAME) {
            *ret_address = elf->segments[i].address;
            *ret_offset = elf->segments[i].offset;
            return true;
        }
    }
    section = kiln_elf_section(elf, ".eh_frame_hdr");
    if (!section || section->type == SHT_NOBITS)
        return false;
    *ret_address = section->address;
    *ret_offset = section->offset;
    return true;
}

int cfi_frames_open_eh(struct cfi_frames *frames, const struct kiln_elf *elf)
{
    uint64_t address = 0, offset = 0;
    bool has_header = find_header(elf, &address, &offset);

    begin_frames(frames, elf);
    if (!take_section(frames, kiln_elf_section(elf, ".eh_frame")) &&
        !(has_header && take_segment(frames, frames_of_header(elf, address))))
        return -ENOENT;
    frames->is_open = true;
    if (has_header)
        cfi_index_open_table(frames, address, offset);
    return 0;
}

int cfi_frames_open_debug(struct cfi_frames *frames, const struct kiln_elf *elf)
{
    const struct kiln_elf_section *section = kiln_elf_section(elf, ".debug_frame");
    size_t size;
    int r;

    begin_frames(frames, elf);
    frames->is_debug = true;
    if (!take_section(frames, section))
        return -ENOENT;
    if (section->flags & SHF_COMPRESSED) {
        r = kiln_elf_load(elf, section, LOAD_MAX, &frames->loaded, &size);
        if (r < 0)
            return r;
        frames->memory = kiln_bytes_memory(frames->loaded, size);
        kiln_window_init(&frames->window, &frames->memory);
        frames->offset = 0;
        frames->size = size;
    }
    frames->is_open = true;
    return 0;
}

void cfi_frames_close(struct cfi_frames *frames)
{
    kiln_window_drop(&frames->window);
    kiln_array_free(&frames->budget, (void **)&frames->index, &frames->cap_index,
                    sizeof(*frames->index));
    kiln_free(frames->loaded);
    frames->loaded = NULL;
    frames->is_open = false;
}
