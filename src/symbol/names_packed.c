/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mini-debuginfo: .gnu_debugdata has an ELF file packed by xz.  Its sections with code have no
 * content but the addresses of the outer file's; its .symtab has the functions that .dynsym lacks.
 * Only its names are kept once it is read.
 */
#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <string.h>

#include "base/err.h"
#include "symbol/names_int.h"

enum {
    PACKED_MAX = 32 << 20,
    PLAIN_MAX = 64 << 20,
    XZ_MEMORY_MAX = 72 << 20, /* xz -9 needs 65 MiB */
    OUT_CHUNK = 1 << 18,
};

static void *xz_alloc(void *context, size_t n, size_t size)
{
    (void)context;
    return kiln_calloc(n, size);
}

static void xz_free(void *context, void *ptr)
{
    (void)context;
    kiln_free(ptr);
}

static int xz_error(lzma_ret ret)
{
    if (ret == LZMA_MEM_ERROR)
        return -ENOMEM;
    return ret == LZMA_MEMLIMIT_ERROR ? KILN_E_LIMIT : KILN_E_CORRUPT;
}

static int unpack(struct kiln_str packed, struct kiln_buf *out)
{
    const lzma_allocator allocator = {.alloc = xz_alloc, .free = xz_free};
    lzma_stream xz = LZMA_STREAM_INIT;
    lzma_ret ret;

    xz.allocator = &allocator;
    ret = lzma_stream_decoder(&xz, XZ_MEMORY_MAX, 0);
    xz.next_in = (const uint8_t *)packed.ptr;
    xz.avail_in = packed.len;
    while (ret == LZMA_OK) {
        xz.next_out = (uint8_t *)kiln_buf_reserve(out, OUT_CHUNK);
        xz.avail_out = OUT_CHUNK;
        if (!xz.next_out)
            break;
        ret = lzma_code(&xz, LZMA_FINISH);
        out->len += OUT_CHUNK - xz.avail_out;
    }
    lzma_end(&xz);
    if (out->error)
        return out->error;
    return ret == LZMA_STREAM_END ? 0 : xz_error(ret);
}

static int read_inner(struct kiln_symtab *table, struct kiln_str plain)
{
    struct kiln_bytes bytes = kiln_bytes_memory(plain.ptr, plain.len);
    uint32_t n_texts = table->n_texts;
    struct kiln_elf *elf = NULL;
    int r = kiln_elf_open(&bytes, &elf);

    if (r < 0)
        return r;
    r = kiln_names_read_elf(table, elf);
    kiln_elf_close(elf);
    for (uint32_t i = n_texts; i < table->n_texts; i++) {
        int failed = kiln_symtab_own_text(table, i);

        r = failed < 0 ? failed : r;
    }
    return r;
}

int kiln_names_read_packed(struct kiln_symtab *table, const struct kiln_elf *elf)
{
    const struct kiln_elf_section *section = kiln_elf_section(elf, ".gnu_debugdata");
    struct kiln_buf plain;
    size_t max = table->budget.limit < PLAIN_MAX ? table->budget.limit : PLAIN_MAX;
    void *packed = NULL;
    int r;

    if (!section || section->type == SHT_NOBITS)
        return 0;
    r = kiln_elf_load_plain(elf, section->offset, section->size, PACKED_MAX, &packed);
    if (r < 0)
        return r;
    kiln_buf_init(&plain, max);
    r = unpack((struct kiln_str){packed, section->size}, &plain);
    kiln_free(packed);
    if (r == 0)
        r = read_inner(table, kiln_buf_str(&plain));
    kiln_buf_done(&plain);
    return r;
}
