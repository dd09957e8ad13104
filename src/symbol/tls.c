/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A definition is found as the dynamic linker finds it, by the segment PT_DYNAMIC (pairs of tag and
 * value), which a file keeps however much it was stripped of:
 *
 *   GNU's hash table   buckets, first symbol, words of the filter, its shift: 32 bits each; the
 *                      filter's words of 64 bits; buckets and chain, 32 bits each.  A chain's
 * values are the hashes of symbols in order, the lowest bit says that it ends System V's buckets,
 * symbols; buckets and chain, all 32 bits a symbol           24 bytes: name (32), info (8), other
 * (8), section (16), value, size (64) a relocation       24 bytes: where, symbol << 32 | type,
 * addend: 64 bits each
 *
 * Then the relocations say what the linker writes where: those against the symbol itself, else
 * those against no symbol at all, which stand for this file's own block of variables.  Without any,
 * code knows the distance from the thread pointer, as only a program's own can: its block ends
 * there.
 */
#include "symbol/tls.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "symbol/cursor.h"

enum {
    DYNAMIC_MAX = 4096,    /* tags */
    CHAIN_MAX = 256,       /* symbols of one bucket; a linker makes a few */
    SYMBOLS_MAX = 1 << 20, /* of a static program */
    RELOCATIONS_MAX = 1 << 21,
    PIECE = 4096 / 24, /* entries that are read at once */
    NAME_MAX_LEN = 64,
    TYPE_DESCRIPTOR = 36, /* R_X86_64_TLSDESC */
    TYPE_MODULE = 16,     /* R_X86_64_DTPMOD64 */
    TYPE_OFFSET = 18,     /* R_X86_64_TPOFF64 */
};

struct table {
    uint64_t address, size;
};

struct dynamic {
    uint64_t symbols, gnu_hash, hash;
    struct table strings, relocations, jumps;
};

struct symbol {
    uint32_t index; /* of the dynamic symbols; 0: of others */
    uint64_t value;
};

/* ---- dynamic symbols ---- */

static void set_tag(struct dynamic *dynamic, uint64_t tag, uint64_t value)
{
    switch (tag) {
    case DT_SYMTAB:
        dynamic->symbols = value;
        break;
    case DT_GNU_HASH:
        dynamic->gnu_hash = value;
        break;
    case DT_HASH:
        dynamic->hash = value;
        break;
    case DT_STRTAB:
        dynamic->strings.address = value;
        break;
    case DT_STRSZ:
        dynamic->strings.size = value;
        break;
    case DT_RELA:
        dynamic->relocations.address = value;
        break;
    case DT_RELASZ:
        dynamic->relocations.size = value;
        break;
    case DT_JMPREL:
        dynamic->jumps.address = value;
        break;
    case DT_PLTRELSZ:
        dynamic->jumps.size = value;
        break;
    default:
        break;
    }
}

static const struct kiln_elf_segment *segment_of(const struct kiln_elf *elf, uint32_t type)
{
    for (uint32_t i = 0; i < elf->n_segments; i++) {
        if (elf->segments[i].type == type)
            return &elf->segments[i];
    }
    return NULL;
}

static int read_dynamic(const struct kiln_elf *elf, struct dynamic *ret_dynamic)
{
    const struct kiln_elf_segment *segment = segment_of(elf, PT_DYNAMIC);
    struct dynamic dynamic = {0};
    uint8_t pair[16];

    if (!segment)
        return -ENOENT;
    for (uint64_t i = 0; i < segment->file_size / sizeof(pair) && i < DYNAMIC_MAX; i++) {
        if (elf->bytes.read(&elf->bytes, segment->offset + i * sizeof(pair), pair, sizeof(pair)))
            return KILN_E_TRUNCATED;
        if (kiln_get_64(pair) == DT_NULL)
            break;
        set_tag(&dynamic, kiln_get_64(pair), kiln_get_64(pair + 8));
    }
    if (!dynamic.symbols || !dynamic.strings.address)
        return -ENOENT;
    *ret_dynamic = dynamic;
    return 0;
}

static bool is_variable(const uint8_t symbol[sizeof(Elf64_Sym)])
{
    return ELF64_ST_TYPE(symbol[4]) == STT_TLS && kiln_get_16(symbol + 6) != SHN_UNDEF;
}

/* Whether a dynamic symbol is a variable of threads, defined here, of this name. */
static bool is_wanted(const struct kiln_elf *elf, const struct dynamic *dynamic, uint32_t index,
                      const char *name, uint64_t *ret_value)
{
    uint8_t symbol[sizeof(Elf64_Sym)];
    char text[NAME_MAX_LEN];
    size_t n = strlen(name) + 1;
    uint32_t at;

    if (kiln_elf_read(elf, dynamic->symbols + (uint64_t)index * sizeof(symbol), symbol,
                      sizeof(symbol)) < 0 ||
        !is_variable(symbol))
        return false;
    at = kiln_get_32(symbol);
    if (n > sizeof(text) || at >= dynamic->strings.size || n > dynamic->strings.size - at ||
        kiln_elf_read(elf, dynamic->strings.address + at, text, n) < 0 ||
        memcmp(text, name, n) != 0)
        return false;
    *ret_value = kiln_get_64(symbol + 8);
    return true;
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t hash = 5381;

    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 0;

    for (; *name; name++) {
        hash = (hash << 4) + (uint8_t)*name;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    return hash;
}

static int word_at(const struct kiln_elf *elf, uint64_t address, uint32_t *ret_word)
{
    uint8_t word[4];
    int r = kiln_elf_read(elf, address, word, sizeof(word));

    if (r == 0)
        *ret_word = kiln_get_32(word);
    return r;
}

/* Most files are ruled out by the filter, in two reads. */
static int is_in_filter(const struct kiln_elf *elf, uint64_t filter, const uint8_t head[16],
                        uint32_t hash)
{
    uint32_t words = kiln_get_32(head + 8), shift = kiln_get_32(head + 12);
    uint8_t bytes[8];
    uint64_t word;

    if (!words)
        return -ENOENT;
    if (kiln_elf_read(elf, filter + (uint64_t)(hash / 64 % words) * 8, bytes, sizeof(bytes)) < 0)
        return KILN_E_TRUNCATED;
    word = kiln_get_64(bytes);
    return word >> (hash % 64) & word >> ((shift < 32 ? hash >> shift : 0) % 64) & 1 ? 0 : -ENOENT;
}

static int by_gnu_hash(const struct kiln_elf *elf, const struct dynamic *dynamic, const char *name,
                       struct symbol *ret_symbol)
{
    uint32_t hash = gnu_hash_of(name), buckets, first, index, link = 0;
    uint64_t filter = dynamic->gnu_hash + 16, bucket, chain;
    uint8_t head[16];
    int r = kiln_elf_read(elf, dynamic->gnu_hash, head, sizeof(head));

    if (r == 0)
        r = is_in_filter(elf, filter, head, hash);
    buckets = r == 0 ? kiln_get_32(head) : 0;
    if (r < 0 || !buckets)
        return r < 0 ? r : -ENOENT;
    first = kiln_get_32(head + 4);
    bucket = filter + (uint64_t)kiln_get_32(head + 8) * 8;
    chain = bucket + (uint64_t)buckets * 4;
    r = word_at(elf, bucket + (uint64_t)(hash % buckets) * 4, &index);
    if (r < 0 || index < first)
        return r < 0 ? r : -ENOENT;
    for (uint32_t i = 0; i < CHAIN_MAX && !(link & 1); i++, index++) {
        if (word_at(elf, chain + (uint64_t)(index - first) * 4, &link) < 0)
            return KILN_E_TRUNCATED;
        if ((link | 1) == (hash | 1) && is_wanted(elf, dynamic, index, name, &ret_symbol->value)) {
            ret_symbol->index = index;
            return 0;
        }
    }
    return link & 1 ? -ENOENT : KILN_E_LIMIT;
}

static int by_hash(const struct kiln_elf *elf, const struct dynamic *dynamic, const char *name,
                   struct symbol *ret_symbol)
{
    uint32_t buckets, index;
    int r = word_at(elf, dynamic->hash, &buckets);

    if (r < 0 || !buckets)
        return r < 0 ? r : -ENOENT;
    r = word_at(elf, dynamic->hash + 8 + (uint64_t)(hash_of(name) % buckets) * 4, &index);
    for (uint32_t i = 0; r == 0 && index != STN_UNDEF; i++) {
        if (i == CHAIN_MAX)
            return KILN_E_LIMIT;
        if (is_wanted(elf, dynamic, index, name, &ret_symbol->value)) {
            ret_symbol->index = index;
            return 0;
        }
        r = word_at(elf, dynamic->hash + 8 + ((uint64_t)buckets + index) * 4, &index);
    }
    return r < 0 ? r : -ENOENT;
}

/* ---- symbols of a program that has no dynamic ones ---- */

static bool is_named(const struct kiln_elf *elf, const struct kiln_elf_section *strings,
                     uint32_t at, const char *name)
{
    char text[NAME_MAX_LEN];
    size_t n = strlen(name) + 1;
    uint64_t offset;

    return n <= sizeof(text) && at < strings->size && n <= strings->size - at &&
           !__builtin_add_overflow(strings->offset, at, &offset) &&
           elf->bytes.read(&elf->bytes, offset, text, n) == 0 && memcmp(text, name, n) == 0;
}

static int in_section(const struct kiln_elf *elf, const struct kiln_elf_section *section,
                      const char *name, struct symbol *ret_symbol)
{
    const struct kiln_elf_section *strings =
        section->link < elf->n_sections ? &elf->sections[section->link] : NULL;
    uint8_t symbols[PIECE][sizeof(Elf64_Sym)];
    uint64_t n = section->size / sizeof(Elf64_Sym);

    if (!strings || n > SYMBOLS_MAX)
        return strings ? KILN_E_LIMIT : -ENOENT;
    for (uint64_t i = 0; i < n; i += PIECE) {
        uint64_t m = n - i < PIECE ? n - i : PIECE;

        if (elf->bytes.read(&elf->bytes, section->offset + i * sizeof(Elf64_Sym), symbols,
                            m * sizeof(Elf64_Sym)) < 0)
            return KILN_E_TRUNCATED;
        for (uint64_t j = 0; j < m; j++) {
            if (is_variable(symbols[j]) && is_named(elf, strings, kiln_get_32(symbols[j]), name)) {
                *ret_symbol = (struct symbol){.value = kiln_get_64(symbols[j] + 8)};
                return 0;
            }
        }
    }
    return -ENOENT;
}

static int by_section(const struct kiln_elf *elf, const char *name, struct symbol *ret_symbol)
{
    for (uint32_t i = 0; i < elf->n_sections; i++) {
        if (elf->sections[i].type == SHT_SYMTAB)
            return in_section(elf, &elf->sections[i], name, ret_symbol);
    }
    return -ENOENT;
}

/* ---- relocations ---- */

struct search {
    const struct symbol *symbol;
    struct kiln_tls_variable found;
    int rank; /* of what was found: 0 nothing, 1 this file's block, 2 the variable itself */
};

static void meet(struct search *search, const uint8_t relocation[sizeof(Elf64_Rela)])
{
    uint64_t info = kiln_get_64(relocation + 8);
    int64_t addend = (int64_t)kiln_get_64(relocation + 16);
    uint32_t index = (uint32_t)(info >> 32), type = (uint32_t)info;
    bool itself = index && index == search->symbol->index;
    int64_t rest = (int64_t)(itself ? 0 : search->symbol->value - (uint64_t)addend);
    struct kiln_tls_variable met = {.word = kiln_get_64(relocation), .add = rest};

    if ((index && !itself) || search->rank >= (itself ? 2 : 1))
        return;
    if (type == TYPE_DESCRIPTOR) {
        met.kind = KILN_TLS_DESCRIPTOR;
    } else if (type == TYPE_OFFSET) {
        met.kind = KILN_TLS_OFFSET;
    } else if (type == TYPE_MODULE) {
        met.kind = itself ? KILN_TLS_PAIR : KILN_TLS_MODULE;
        met.add = itself ? 0 : (int64_t)search->symbol->value;
    } else {
        return;
    }
    search->found = met;
    search->rank = itself ? 2 : 1;
}

static int search_table(const struct kiln_elf *elf, const struct table *table,
                        struct search *search)
{
    uint8_t relocations[PIECE][sizeof(Elf64_Rela)];
    uint64_t n = table->size / sizeof(Elf64_Rela);

    if (n > RELOCATIONS_MAX)
        return KILN_E_LIMIT;
    for (uint64_t i = 0; i < n && search->rank < 2; i += PIECE) {
        uint64_t m = n - i < PIECE ? n - i : PIECE;

        if (kiln_elf_read(elf, table->address + i * sizeof(Elf64_Rela), relocations,
                          m * sizeof(Elf64_Rela)) < 0)
            return KILN_E_TRUNCATED;
        for (uint64_t j = 0; j < m; j++)
            meet(search, relocations[j]);
    }
    return 0;
}

/* A program's block ends at the thread pointer, as its alignment allows. */
static int in_program(const struct kiln_elf *elf, const struct symbol *symbol,
                      struct kiln_tls_variable *ret_variable)
{
    const struct kiln_elf_segment *block = segment_of(elf, PT_TLS);
    uint64_t align = block && block->align ? block->align : 1;
    uint64_t size = block ? block->memory_size : 0;

    if (!block || (align & (align - 1)) || size > INT32_MAX || align > INT32_MAX ||
        symbol->value >= size)
        return KILN_E_UNSUPPORTED;
    size = (size + align - 1) & ~(align - 1);
    *ret_variable = (struct kiln_tls_variable){.kind = KILN_TLS_FIXED,
                                               .add = (int64_t)symbol->value - (int64_t)size};
    return 0;
}

/* ---- all of it ---- */

static int find_symbol(const struct kiln_elf *elf, const struct dynamic *dynamic, const char *name,
                       struct symbol *ret_symbol)
{
    if (dynamic->gnu_hash)
        return by_gnu_hash(elf, dynamic, name, ret_symbol);
    return dynamic->hash ? by_hash(elf, dynamic, name, ret_symbol) : -ENOENT;
}

int kiln_tls_find(const struct kiln_elf *elf, const char *name, bool is_program,
                  struct kiln_tls_variable *ret_variable)
{
    struct dynamic dynamic = {0};
    struct symbol symbol = {0};
    struct search search = {.symbol = &symbol};
    int r;

    if (elf->machine != EM_X86_64)
        return KILN_E_UNSUPPORTED;
    r = segment_of(elf, PT_TLS) ? read_dynamic(elf, &dynamic) : -ENOENT;
    if (r == 0)
        r = find_symbol(elf, &dynamic, name, &symbol);
    if (r == -ENOENT && is_program && segment_of(elf, PT_TLS) && !segment_of(elf, PT_INTERP))
        r = by_section(elf, name, &symbol);
    if (r == 0)
        r = search_table(elf, &dynamic.jumps, &search);
    if (r == 0)
        r = search_table(elf, &dynamic.relocations, &search);
    if (r < 0)
        return r;
    if (search.rank == 0)
        return is_program ? in_program(elf, &symbol, ret_variable) : KILN_E_UNSUPPORTED;
    *ret_variable = search.found;
    return 0;
}
