/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/names.h"
#include "test.h"

static void check_plain(const char *mangled, const char *plain)
{
    struct kiln_demangler *d = NULL;
    struct kiln_str text;

    CHECK_OK(kiln_demangler_new(&d));
    text = kiln_demangle(d, kiln_str_of(mangled));
    CHECK(kiln_str_eq(text, kiln_str_of(plain)));
    kiln_demangler_free(d);
}

TEST(demangle, undoes_c_plus_plus)
{
    check_plain("_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)");
}

TEST(demangle, undoes_both_schemes_of_rust)
{
    check_plain("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
                "core::fmt::Formatter::write_str");
    check_plain("_RNvC6_123foo3bar", "123foo::bar");
}

TEST(demangle, leaves_other_names_alone)
{
    check_plain("main", "main");
    check_plain("_Z", "_Z");
    check_plain("__libc_start_main", "__libc_start_main");
}
