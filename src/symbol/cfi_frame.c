/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of frames, .eh_frame and .debug_frame:
 *
 *   entry:  4 bytes of length, or ffffffff and 8 bytes of it; 0 ends .eh_frame
 *           4 id (8 in .debug_frame after a long length): a CIE has 0, or -1 in .debug_frame; an
 *           FDE says where its CIE is: so many bytes before this field, or from the beginning of
 *           .debug_frame
 *   CIE:    1 version (1, 3, 4)   text: augmentation   version 4: 1 size of addresses, 1 of
 *           segments   uleb code alignment   sleb data alignment
 *           uleb column of the return address (version 1: a byte)
 *           'z': uleb bytes of data, one item a letter: R encoding of addresses, L encoding of
 *           language data, P encoding and address of a routine; S a signal's frame
 *           program
 *   FDE:    first address   number of bytes of code   'z': uleb bytes of data, and these
 *           program
 *
 * Encodings: the low four bits say how a number is written, the next three what to add.
 */
#include <elf.h>
#include <errno.h>

#include "base/err.h"
#include "symbol/cfi_int.h"

enum {
    ENTRY_MAX = 1 << 20,
    SECTION_MAX = 256 << 20,
    LOAD_MAX = 32 << 20, /* of a compressed section, which is kept in memory */
    AUGMENTATION_MAX = 16,
    INDEX_BYTES = 32 << 20,
    PE_OMIT = 0xff,
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

static bool read_number(struct kiln_cursor *c, uint8_t format, uint64_t *ret_value)
{
    switch (format) {
    case 0x00:
    case 0x04:
    case 0x0c:
        *ret_value = kiln_cursor_64(c);
        break;
    case 0x01:
        *ret_value = kiln_cursor_uleb(c);
        break;
    case 0x02:
        *ret_value = kiln_cursor_16(c);
        break;
    case 0x03:
        *ret_value = kiln_cursor_32(c);
        break;
    case 0x09:
        *ret_value = (uint64_t)kiln_cursor_sleb(c);
        break;
    case 0x0a:
        *ret_value = (uint64_t)(int16_t)kiln_cursor_16(c);
        break;
    case 0x0b:
        *ret_value = (uint64_t)(int32_t)kiln_cursor_32(c);
        break;
    default:
        return false;
    }
    return !c->bad;
}

bool cfi_pointer(struct kiln_cursor *c, uint8_t encoding, const struct cfi_bases *bases,
                 uint64_t *ret_value)
{
    uint64_t value;

    if (encoding == 0x50) { /* aligned to 8 */
        kiln_cursor_skip(c, -bases->address & 7);
        encoding = 0;
    }
    if (encoding == PE_OMIT || !read_number(c, encoding & 0x0f, &value))
        return false;
    switch (encoding & 0xf0) {
    case 0x00:
        break;
    case 0x10:
        value += bases->address;
        break;
    case 0x20:
        value += bases->text;
        break;
    case 0x30:
        value += bases->data;
        break;
    default:
        return false;
    }
    *ret_value = value;
    return true;
}

int cfi_head_read(struct cfi_frames *frames, uint64_t at, struct cfi_head *ret_head)
{
    struct cfi_head head = {.at = at};
    uint64_t length, id;
    bool is_long, long_id;
    size_t n;
    const uint8_t *seen = see(frames, at, 4, 24, &n);

    if (!seen)
        return KILN_E_TRUNCATED;
    length = kiln_get_32(seen);
    is_long = length == UINT32_MAX;
    if (length == 0) {
        *ret_head = head;
        return 0;
    }
    long_id = is_long && frames->is_debug;
    if (n < (is_long ? 12u : 4u) + (long_id ? 8u : 4u))
        return KILN_E_TRUNCATED;
    head.id_at = at + (is_long ? 12 : 4);
    length = is_long ? kiln_get_64(seen + 4) : length;
    id = long_id ? kiln_get_64(seen + 12) : kiln_get_32(seen + (is_long ? 12 : 4));
    head.body = head.id_at + (long_id ? 8 : 4);
    if (length > frames->size - head.id_at || length < (long_id ? 8 : 4))
        return KILN_E_MALFORMED;
    head.end = head.id_at + length;
    head.is_cie = frames->is_debug ? id == (long_id ? UINT64_MAX : UINT32_MAX) : id == 0;
    head.cie = frames->is_debug ? id : head.id_at - id;
    *ret_head = head;
    return 0;
}

/* The body of an entry, in the window or, where it is too large, in *ret_copy. */
static int read_body(struct cfi_frames *frames, const struct cfi_head *head,
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

/* The items of augmentation data; those behind one that is not known do not matter. */
static void read_augmentation(struct kiln_cursor *c, const char *letters, uint64_t address,
                              struct cfi_cie *cie)
{
    struct cfi_bases bases = {.address = address};
    const uint8_t *begin = c->at;
    uint64_t unused;
    uint8_t encoding;

    for (; *letters && !c->bad; letters++) {
        switch (*letters) {
        case 'R':
            cie->encoding = kiln_cursor_8(c);
            break;
        case 'L':
            kiln_cursor_8(c);
            break;
        case 'P':
            encoding = kiln_cursor_8(c);
            bases.address = address + (uint64_t)(c->at - begin);
            if (!cfi_pointer(c, encoding & 0x7f, &bases, &unused))
                return;
            break;
        case 'S':
            cie->is_signal = true;
            break;
        case 'B':
            break;
        default:
            return;
        }
    }
}

/* `address` is that of c->at. */
static int take_cie(struct kiln_cursor *c, uint64_t address, struct cfi_cie *cie)
{
    const uint8_t *begin = c->at;
    const char *letters;
    const uint8_t *data;
    uint64_t n;

    cie->version = kiln_cursor_8(c);
    letters = (const char *)c->at;
    n = strnlen(letters, (size_t)(c->end - c->at));
    if (cie->version != 1 && cie->version != 3 && cie->version != 4)
        return KILN_E_UNSUPPORTED;
    if (n > AUGMENTATION_MAX || !kiln_cursor_skip(c, n + 1))
        return KILN_E_MALFORMED;
    if (cie->version == 4 && (kiln_cursor_8(c) != 8 || kiln_cursor_8(c) != 0))
        return KILN_E_UNSUPPORTED;
    if (strcmp(letters, "eh") == 0)
        kiln_cursor_skip(c, 8);
    else if (*letters && *letters != 'z')
        return KILN_E_UNSUPPORTED;
    cie->code_align = kiln_cursor_uleb(c);
    cie->data_align = kiln_cursor_sleb(c);
    cie->ra = cie->version == 1 ? kiln_cursor_8(c) : kiln_cursor_uleb(c);
    cie->has_data = *letters == 'z';
    if (cie->has_data) {
        n = kiln_cursor_uleb(c);
        data = kiln_cursor_skip(c, n);
        if (data) {
            struct kiln_cursor inner = {data, data + n, false};

            read_augmentation(&inner, letters + 1, address + (uint64_t)(data - begin), cie);
        }
    }
    return c->bad ? KILN_E_TRUNCATED : 0;
}

static int read_cie(struct cfi_frames *frames, uint64_t at, struct cfi_cie *cie)
{
    struct kiln_cursor c;
    struct cfi_head head;
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
    r = take_cie(&c, frames->address + head.body, cie);
    if (r == 0)
        cfi_run_initial(cie, c.at, (size_t)(c.end - c.at));
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

static int take_fde(const struct cfi_frames *frames, struct kiln_cursor *c, uint64_t address,
                    struct cfi_fde *fde)
{
    struct cfi_bases bases = {address, frames->text_base, frames->data_base};
    const uint8_t *begin = c->at;
    uint64_t size;

    if (!cfi_pointer(c, fde->cie->encoding, &bases, &fde->begin) ||
        !read_number(c, fde->cie->encoding & 0x0f, &size) ||
        __builtin_add_overflow(fde->begin, size, &fde->end))
        return KILN_E_MALFORMED;
    if (fde->cie->has_data)
        kiln_cursor_skip(c, kiln_cursor_uleb(c));
    fde->program = c->at;
    fde->n_program = (size_t)(c->end - c->at);
    fde->program_at = address + (uint64_t)(c->at - begin);
    return c->bad ? KILN_E_TRUNCATED : 0;
}

int cfi_fde_read(struct cfi_frames *frames, uint64_t at, struct cfi_fde *ret_fde)
{
    struct cfi_fde fde = {0};
    struct kiln_cursor c;
    struct cfi_head head;
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
    r = take_fde(frames, &c, frames->address + head.body, &fde);
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
