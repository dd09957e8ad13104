/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/go_info.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "test.h"

/* A section with the texts that it would have; `flags` 2: they follow. */
static int parsed(char flags, const char *version, const char *module, struct kiln_go_info *ret)
{
    struct kiln_buf section;
    size_t len = strlen(module) + (module[0] ? 32 : 0);
    int r;

    kiln_buf_init(&section, 1 << 16);
    kiln_buf_puts(&section, "\xff Go buildinf:\x08");
    kiln_buf_putc(&section, flags);
    kiln_buf_add(&section, "0123456789abcdef", 16);
    kiln_buf_putc(&section, (char)strlen(version));
    kiln_buf_puts(&section, version);
    kiln_buf_putc(&section, (char)(len & 127) | (char)128);
    kiln_buf_putc(&section, (char)(len >> 7));
    if (len) {
        kiln_buf_puts(&section, "0123456789abcdef");
        kiln_buf_puts(&section, module);
        kiln_buf_puts(&section, "0123456789abcdef");
    }
    r = kiln_go_info_parse(kiln_buf_str(&section), ret);
    kiln_buf_done(&section);
    return r;
}

TEST(go_info, versions_and_commit_are_found)
{
    struct kiln_go_info info;

    CHECK_OK(parsed(2, "go1.22.1 X:rangefunc",
                    "path\texample.com/shop/cmd/shop\n"
                    "mod\texample.com/shop\tv1.4.0\th1:abc=\n"
                    "dep\texample.com/other\tv9.9.9\th1:abc=\n"
                    "build\t-ldflags=\"-X main.key=secret\"\n"
                    "build\tvcs.revision=0123456789abcdef0123456789abcdef01234567\n",
                    &info));
    CHECK_TEXT(info.version, "go1.22.1");
    CHECK_TEXT(info.module, "example.com/shop");
    CHECK_TEXT(info.module_version, "v1.4.0");
    CHECK_TEXT(info.revision, "0123456789abcdef0123456789abcdef01234567");
}

TEST(go_info, a_program_built_in_its_own_tree_has_no_version)
{
    struct kiln_go_info info;

    CHECK_OK(parsed(2, "go1.19", "mod\texample.com/shop\t(devel)\t\n", &info));
    CHECK_TEXT(info.module_version, "");
    CHECK_TEXT(info.revision, "");
    CHECK_OK(parsed(2, "go1.19", "", &info));
    CHECK_TEXT(info.version, "go1.19");
}

TEST(go_info, what_is_broken_or_old_is_refused)
{
    struct kiln_go_info info;

    CHECK_EQ(parsed(0, "go1.17", "", &info), -ENOENT);
    CHECK_EQ(kiln_go_info_parse(KILN_STR("\xff Go buildinf:"), &info), KILN_E_MALFORMED);
    CHECK_EQ(kiln_go_info_parse(KILN_STR("\xff Go buildinf:\x08\x02"
                                         "0123456789abcdef"
                                         "\x07go"),
                                &info),
             KILN_E_MALFORMED);
    CHECK_EQ(kiln_go_info_parse(KILN_STR("\xff Go buildinf:\x08\x02"
                                         "0123456789abcdef"
                                         "\xff\xff\xff\xff\xff"),
                                &info),
             KILN_E_MALFORMED);
}
