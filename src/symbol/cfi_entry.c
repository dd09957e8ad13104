/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of .eh_frame and .debug_frame, in memory:
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
 *
 * Nothing here takes memory or reads files, so that a walk in a handler of signals can use it.
 */
#include "symbol/cfi_entry.h"

#include <errno.h>

#include "base/err.h"
#include "symbol/cfi_int.h"

enum { AUGMENTATION_MAX = 16, PE_OMIT = 0xff, FUEL = 64 << 10 };

_Static_assert(sizeof(struct kiln_cfi_room) >= CFI_REMEMBER_MAX * sizeof(struct cfi_state),
               "it has room for what programs remember");

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

int kiln_cfi_head_take(const uint8_t *seen, size_t n, bool is_debug,
                       const struct kiln_cfi_head *where, struct kiln_cfi_head *ret_head)
{
    struct kiln_cfi_head head = {.at = where->at};
    uint64_t length, id;
    bool is_long, long_id;

    if (n < 4)
        return KILN_E_TRUNCATED;
    length = kiln_get_32(seen);
    is_long = length == UINT32_MAX;
    if (length == 0) {
        *ret_head = head;
        return 0;
    }
    long_id = is_long && is_debug;
    if (n < (is_long ? 12u : 4u) + (long_id ? 8u : 4u))
        return KILN_E_TRUNCATED;
    head.id_at = head.at + (is_long ? 12 : 4);
    length = is_long ? kiln_get_64(seen + 4) : length;
    id = long_id ? kiln_get_64(seen + 12) : kiln_get_32(seen + (is_long ? 12 : 4));
    head.body = head.id_at + (long_id ? 8 : 4);
    if (length > where->end - head.id_at || length < (long_id ? 8 : 4))
        return KILN_E_MALFORMED;
    head.end = head.id_at + length;
    head.is_cie = is_debug ? id == (long_id ? UINT64_MAX : UINT32_MAX) : id == 0;
    head.cie = is_debug ? id : head.id_at - id;
    *ret_head = head;
    return 0;
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

int cfi_cie_take(struct kiln_cursor *c, uint64_t address, struct cfi_cie *cie)
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
    if (c->bad)
        return KILN_E_TRUNCATED;
    cfi_run_initial(cie, c->at, (size_t)(c->end - c->at));
    return 0;
}

int cfi_fde_take(struct kiln_cursor *c, const struct cfi_bases *bases, struct cfi_fde *fde)
{
    const uint8_t *begin = c->at;
    uint64_t size;

    if (!cfi_pointer(c, fde->cie->encoding, bases, &fde->begin) ||
        !read_number(c, fde->cie->encoding & 0x0f, &size) ||
        __builtin_add_overflow(fde->begin, size, &fde->end))
        return KILN_E_MALFORMED;
    if (fde->cie->has_data)
        kiln_cursor_skip(c, kiln_cursor_uleb(c));
    fde->program = c->at;
    fde->n_program = (size_t)(c->end - c->at);
    fde->program_at = bases->address + (uint64_t)(c->at - begin);
    return c->bad ? KILN_E_TRUNCATED : 0;
}

int kiln_cfi_entry_row(const struct kiln_cfi_entry *entry, uint64_t address,
                       struct kiln_cfi_room *room, uint64_t *ret_begin,
                       struct kiln_cfi_row *ret_row)
{
    struct kiln_cursor c = {entry->cie, entry->cie + entry->n_cie, false};
    struct cfi_bases bases = {.address = entry->fde_at};
    struct kiln_cfi_row row = {0};
    struct cfi_out out = {.rows = &row, .max = 1, .fuel = FUEL};
    struct cfi_cie cie = {0};
    struct cfi_fde fde = {.cie = &cie};
    int r = cfi_cie_take(&c, entry->cie_at, &cie);

    if (r < 0)
        return r;
    c = (struct kiln_cursor){entry->fde, entry->fde + entry->n_fde, false};
    r = cfi_fde_take(&c, &bases, &fde);
    if (r < 0)
        return r;
    if (address < fde.begin || address >= fde.end)
        return -ENOENT;
    cfi_run((struct cfi_state *)room->words, &bases, &fde, address, address + 1, &out);
    *ret_begin = fde.begin;
    *ret_row = row;
    return 0;
}
