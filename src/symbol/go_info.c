/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section .go.buildinfo:
 *
 *    0  "\xff Go buildinf:"
 *   14  u8  bytes of a pointer
 *   15  u8  flags; 2: texts follow (before Go 1.18: pointers to them)
 *   16  nothing, up to
 *   32  version of Go, then the module's text; each a varint of its length, and its bytes
 *
 * The module's text stands between 16 bytes of marks at both ends; its lines are
 *
 *   path TAB example.com/shop/cmd/shop
 *   mod TAB example.com/shop TAB v1.4.0 TAB h1:...         "(devel)": no version
 *   dep ...
 *   build TAB vcs.revision=0123...
 */
#include "symbol/go_info.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"

enum { HEAD = 32, MARK = 16, SECTION_MAX = 64 << 10, INLINE_TEXTS = 2, FLAGS_AT = 15 };

/* A length of at most four bytes, and that many bytes. */
static int cut_text(struct kiln_str *rest, struct kiln_str *ret)
{
    uint64_t len = 0;
    size_t n = 0;

    do {
        if (n == rest->len || n == 4)
            return KILN_E_MALFORMED;
        len |= (uint64_t)((unsigned char)rest->ptr[n] & 0x7f) << 7 * n;
    } while ((unsigned char)rest->ptr[n++] & 0x80);
    if (len > rest->len - n)
        return KILN_E_MALFORMED;
    *ret = (struct kiln_str){rest->ptr + n, (size_t)len};
    rest->ptr += n + len;
    rest->len -= n + len;
    return 0;
}

/* Texts that do not fit are left out: half of a version is another one. */
static void keep(struct kiln_str text, char *to, size_t size)
{
    if (text.len < size && kiln_utf8_valid(text))
        snprintf(to, size, "%.*s", KILN_STR_ARG(text));
}

static void read_line(struct kiln_str line, struct kiln_go_info *info)
{
    struct kiln_str revision = KILN_STR("vcs.revision=");
    struct kiln_str word = kiln_str_cut(&line, '\t'), value = kiln_str_cut(&line, '\t');

    if (kiln_str_eq(word, KILN_STR("mod"))) {
        keep(value, info->module, sizeof(info->module));
        value = kiln_str_cut(&line, '\t');
        if (!kiln_str_eq(value, KILN_STR("(devel)")))
            keep(value, info->module_version, sizeof(info->module_version));
    } else if (kiln_str_eq(word, KILN_STR("build")) && kiln_str_starts(value, revision)) {
        keep((struct kiln_str){value.ptr + revision.len, value.len - revision.len}, info->revision,
             sizeof(info->revision));
    }
}

int kiln_go_info_parse(struct kiln_str section, struct kiln_go_info *ret_info)
{
    struct kiln_go_info info = {0};
    struct kiln_str version, module;
    int r;

    if (section.len < HEAD || !kiln_str_starts(section, KILN_STR("\xff Go buildinf:")))
        return KILN_E_MALFORMED;
    if (!(section.ptr[FLAGS_AT] & INLINE_TEXTS))
        return -ENOENT;
    section.ptr += HEAD;
    section.len -= HEAD;
    r = cut_text(&section, &version);
    if (r == 0)
        r = cut_text(&section, &module);
    if (r < 0)
        return r;
    keep(kiln_str_cut(&version, ' '), info.version, sizeof(info.version));
    if (module.len > (size_t)2 * MARK) {
        module = (struct kiln_str){module.ptr + MARK, module.len - (size_t)2 * MARK};
        while (module.len)
            read_line(kiln_str_cut(&module, '\n'), &info);
    }
    *ret_info = info;
    return 0;
}

int kiln_go_info_read(const struct kiln_elf *elf, struct kiln_go_info *ret_info)
{
    const struct kiln_elf_section *section = kiln_elf_section(elf, ".go.buildinfo");
    size_t size;
    char *bytes;
    int r;

    if (!section)
        return -ENOENT;
    size = section->size < SECTION_MAX ? (size_t)section->size : SECTION_MAX;
    bytes = size ? kiln_malloc(size) : NULL;
    if (!bytes)
        return size ? -ENOMEM : -ENOENT;
    r = elf->bytes.read(&elf->bytes, section->offset, bytes, size);
    if (r == 0)
        r = kiln_go_info_parse((struct kiln_str){bytes, size}, ret_info);
    kiln_free(bytes);
    return r;
}
