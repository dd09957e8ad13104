/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file header, the program headers and the section headers are read once, in three reads and
 * one for the names; all else is read when asked for.
 *
 *   file header, 64 bytes:  0 magic, class, order   16 type   18 machine   24 entry
 *     32 offset of program headers   40 of section headers   54 size and 56 number of program
 *     headers   58 size and 60 number of section headers   62 section that has the names
 *
 * Numbers that do not fit the file header are in section 0: `info` has the number of program
 * headers (where the header says 65,535), `size` that of sections (0), `link` the section with the
 * names (65,535).  A file whose section headers cannot be read has none, as one without: code is
 * run by its program headers alone.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytetext.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "symbol/elf.h"

enum { SEGMENTS_MAX = 1024, SECTIONS_MAX = 65535, NAMES_MAX = 1 << 20, PAGE = 4096 };

/* What kiln_elf_open() makes: the public part, and what it points to. */
struct opened {
    struct kiln_elf elf;
    struct kiln_elf_segment *segments;
    struct kiln_elf_section *sections;
    char *names; /* ends with NUL */
    size_t n_names;
};

static bool is_within(const struct kiln_bytes *bytes, uint64_t offset, uint64_t n)
{
    return n <= bytes->size && offset <= bytes->size - n;
}

static int read_file(const struct kiln_bytes *bytes, uint64_t offset, void *to, size_t n)
{
    char *at = to;

    if (!is_within(bytes, offset, n))
        return KILN_E_TRUNCATED;
    while (n > 0) {
        ssize_t r = pread(bytes->fd, at, n, (off_t)offset);

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : KILN_E_TRUNCATED;
        at += r;
        n -= (size_t)r;
        offset += (uint64_t)r;
    }
    return 0;
}

static int read_memory(const struct kiln_bytes *bytes, uint64_t offset, void *to, size_t n)
{
    if (!is_within(bytes, offset, n))
        return KILN_E_TRUNCATED;
    if (n > 0)
        memcpy(to, (const char *)bytes->data + offset, n);
    return 0;
}

int kiln_bytes_file(int fd, struct kiln_bytes *ret_bytes)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    *ret_bytes = (struct kiln_bytes){.read = read_file, .size = (uint64_t)st.st_size, .fd = fd};
    return 0;
}

struct kiln_bytes kiln_bytes_memory(const void *data, size_t n)
{
    return (struct kiln_bytes){.read = read_memory, .size = n, .fd = -1, .data = data};
}

/* An array of `n` headers of `size` bytes each, read whole; in memory from kiln_malloc(). */
static int read_table(const struct kiln_bytes *bytes, uint64_t offset, uint32_t n, size_t size,
                      void **ret_table)
{
    void *table;
    int r;

    if (!is_within(bytes, offset, (uint64_t)n * size))
        return KILN_E_TRUNCATED;
    table = kiln_malloc(n * size);
    if (!table)
        return -ENOMEM;
    r = bytes->read(bytes, offset, table, n * size);
    if (r < 0)
        kiln_free(table);
    else
        *ret_table = table;
    return r;
}

static int read_segments(struct opened *o, const Elf64_Ehdr *header, uint32_t n)
{
    void *table;
    int r;

    if (n == 0)
        return 0;
    if (header->e_phentsize != sizeof(Elf64_Phdr))
        return KILN_E_MALFORMED;
    if (n > SEGMENTS_MAX)
        return KILN_E_LIMIT;
    r = read_table(&o->elf.bytes, header->e_phoff, n, sizeof(Elf64_Phdr), &table);
    if (r < 0)
        return r;
    o->segments = kiln_calloc(n, sizeof(*o->segments));
    for (uint32_t i = 0; o->segments && i < n; i++) {
        const Elf64_Phdr *from = (const Elf64_Phdr *)table + i;

        o->segments[i] = (struct kiln_elf_segment){
            from->p_type,   from->p_flags, from->p_offset, from->p_vaddr,
            from->p_filesz, from->p_memsz, from->p_align,
        };
    }
    kiln_free(table);
    o->elf.segments = o->segments;
    o->elf.n_segments = o->segments ? n : 0;
    return o->segments ? 0 : -ENOMEM;
}

/* Names that cannot be had leave every section without one. */
static int read_names(struct opened *o, const Elf64_Shdr *from)
{
    int r;

    if (from->sh_type != SHT_STRTAB || from->sh_size > NAMES_MAX ||
        !is_within(&o->elf.bytes, from->sh_offset, from->sh_size))
        return 0;
    o->names = kiln_malloc(from->sh_size + 1);
    if (!o->names)
        return -ENOMEM;
    r = o->elf.bytes.read(&o->elf.bytes, from->sh_offset, o->names, from->sh_size);
    o->n_names = r < 0 ? 0 : from->sh_size;
    o->names[o->n_names] = '\0';
    return 0;
}

static void take_sections(struct opened *o, const Elf64_Shdr *table, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Elf64_Shdr *from = &table[i];

        o->sections[i] = (struct kiln_elf_section){
            .name = from->sh_name < o->n_names ? o->names + from->sh_name : "",
            .type = from->sh_type,
            .link = from->sh_link,
            .flags = from->sh_flags,
            .address = from->sh_addr,
            .offset = from->sh_offset,
            .size = from->sh_size,
            .entry_size = from->sh_entsize,
        };
    }
    o->elf.sections = o->sections;
    o->elf.n_sections = n;
}

/* Section 0, which is all zeros but for what does not fit the file header. */
static void read_section_0(const struct kiln_bytes *bytes, const Elf64_Ehdr *header,
                           Elf64_Shdr *ret_section)
{
    Elf64_Shdr section;

    memset(ret_section, 0, sizeof(*ret_section));
    if (header->e_shoff && header->e_shentsize == sizeof(section) &&
        bytes->read(bytes, header->e_shoff, &section, sizeof(section)) == 0)
        *ret_section = section;
}

static int read_sections(struct opened *o, const Elf64_Ehdr *header, const Elf64_Shdr *section_0)
{
    uint64_t n = header->e_shnum ? header->e_shnum : section_0->sh_size;
    uint32_t names = header->e_shstrndx == SHN_XINDEX ? section_0->sh_link : header->e_shstrndx;
    void *table;
    int r;

    if (!header->e_shoff || header->e_shentsize != sizeof(Elf64_Shdr) || n == 0 || n > SECTIONS_MAX)
        return 0;
    r = read_table(&o->elf.bytes, header->e_shoff, (uint32_t)n, sizeof(Elf64_Shdr), &table);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    r = names < n ? read_names(o, (const Elf64_Shdr *)table + names) : 0;
    o->sections = r == 0 ? kiln_calloc(n, sizeof(*o->sections)) : NULL;
    if (o->sections)
        take_sections(o, table, (uint32_t)n);
    kiln_free(table);
    return o->sections ? 0 : -ENOMEM;
}

static int read_headers(struct opened *o)
{
    Elf64_Ehdr header;
    Elf64_Shdr section_0;
    uint32_t n_segments;
    int r = o->elf.bytes.read(&o->elf.bytes, 0, &header, sizeof(header));

    if (r < 0)
        return r == KILN_E_TRUNCATED ? KILN_E_UNKNOWN : r;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return KILN_E_UNKNOWN;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return KILN_E_UNSUPPORTED;
    o->elf.type = header.e_type;
    o->elf.machine = header.e_machine;
    o->elf.entry = header.e_entry;
    read_section_0(&o->elf.bytes, &header, &section_0);
    n_segments = header.e_phnum == PN_XNUM ? section_0.sh_info : header.e_phnum;
    r = read_segments(o, &header, n_segments);
    return r < 0 ? r : read_sections(o, &header, &section_0);
}

int kiln_elf_open(const struct kiln_bytes *bytes, struct kiln_elf **ret_elf)
{
    struct opened *o = kiln_calloc(1, sizeof(*o));
    int r;

    if (!o)
        return -ENOMEM;
    o->elf.bytes = *bytes;
    r = read_headers(o);
    if (r < 0)
        kiln_elf_close(&o->elf);
    else
        *ret_elf = &o->elf;
    return r;
}

void kiln_elf_close(struct kiln_elf *elf)
{
    struct opened *o = (struct opened *)elf;

    if (!o)
        return;
    kiln_free(o->segments);
    kiln_free(o->sections);
    kiln_free(o->names);
    kiln_free(o);
}

size_t kiln_elf_bytes(const struct kiln_elf *elf)
{
    const struct opened *o = (const struct opened *)elf;

    return sizeof(*o) + elf->n_segments * sizeof(*o->segments) +
           elf->n_sections * sizeof(*o->sections) + o->n_names;
}

const struct kiln_elf_section *kiln_elf_section(const struct kiln_elf *elf, const char *name)
{
    for (uint32_t i = 0; i < elf->n_sections; i++) {
        if (strcmp(elf->sections[i].name, name) == 0)
            return &elf->sections[i];
    }
    return NULL;
}

int kiln_elf_read(const struct kiln_elf *elf, uint64_t address, void *to, size_t n)
{
    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];
        uint64_t into = address - s->address;
        uint64_t offset;

        if (s->type == PT_LOAD && address >= s->address && n <= s->file_size &&
            into <= s->file_size - n && !__builtin_add_overflow(s->offset, into, &offset))
            return elf->bytes.read(&elf->bytes, offset, to, n);
    }
    return -ENOENT;
}

static bool has_code(const struct kiln_elf_segment *segment)
{
    return segment->type == PT_LOAD && (segment->flags & PF_X) && segment->file_size > 0;
}

/*
 * The kernel maps whole pages: a segment begins in the middle of its first one, and a mapping of it
 * at the page's beginning.
 */
int kiln_elf_address(const struct kiln_elf *elf, uint64_t offset, uint64_t *ret_address)
{
    const struct kiln_elf_segment *found = NULL;

    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];

        if (!has_code(s) || offset < (s->offset & ~(uint64_t)(PAGE - 1)) ||
            (offset > s->offset && offset - s->offset >= s->file_size))
            continue;
        if (!found || offset >= s->offset)
            found = s;
    }
    if (!found)
        return -ENOENT;
    *ret_address = found->address + (offset - found->offset);
    return 0;
}

/* SHA-256 of the first 4,096 bytes, the last 4,096, and the length, big-endian; half of it. */
int kiln_elf_hash(const struct kiln_bytes *bytes, char ret_text[33])
{
    size_t part = bytes->size < 4096 ? (size_t)bytes->size : 4096;
    uint8_t digest[KILN_SHA256_BYTES];
    char data[2 * 4096 + 8];
    int r = bytes->read(bytes, 0, data, part);

    if (r == 0)
        r = bytes->read(bytes, bytes->size - part, data + part, part);
    if (r < 0)
        return r;
    for (int i = 0; i < 8; i++)
        data[2 * part + (size_t)i] = (char)(bytes->size >> (56 - 8 * i));
    kiln_sha256((struct kiln_str){data, 2 * part + 8}, digest);
    kiln_hex_encode(digest, 16, ret_text);
    ret_text[32] = '\0';
    return 0;
}
