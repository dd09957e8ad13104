/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/demangle.h"

#include "test.h"

static void check_short(const char *linker, const char *shown)
{
    struct kiln_demangler *d = NULL;

    CHECK_OK(kiln_demangler_new(&d));
    CHECK_STR(kiln_demangle(d, kiln_str_of(linker)), shown);
    kiln_demangler_free(d);
}

static void check_forms(const char *linker, const char *full, const char *shown)
{
    struct kiln_demangler *d = NULL;

    CHECK_OK(kiln_demangler_new(&d));
    CHECK_STR(kiln_demangle_full(d, kiln_str_of(linker)), full);
    kiln_demangler_free(d);
    check_short(linker, shown);
}

static void check_shorter(const char *text, bool cpp, const char *shown)
{
    char to[256];
    size_t n = kiln_name_shorten(kiln_str_of(text), cpp, to, sizeof(to));

    CHECK_STR(((struct kiln_str){to, n}), shown);
}

/* ---- C++ ---- */

TEST(demangle, drops_parameters_and_return_types_of_c_plus_plus)
{
    check_forms("_ZN4kiln3sumEi", "kiln::sum(int)", "kiln::sum");
    check_forms("_Z2pkIJidPKcEEvDpT_",
                "void pk<int, double, char const*>(int, double, char const*)",
                "pk<int, double, char const*>");
    check_forms("_Z3rfpIiEPFviET_", "void (*rfp<int>(int))(int)", "rfp<int>");
    check_short("_ZNK9Container4sizeEv", "Container::size");
    check_short("_ZN1BD0Ev", "B::~B");
    check_short("_ZThn8_N1C1gEv", "non-virtual thunk to C::g");
}

TEST(demangle, keeps_template_arguments_where_they_are_few)
{
    check_forms("_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
                "std::vector<int>::push_back");
    check_short("_ZN9__gnu_cxx17__normal_iteratorIPiSt6vectorIiSaIiEEEC1ERKS1_",
                "__gnu_cxx::__normal_iterator<int*, std::vector<int>>::__normal_iterator");
    check_short("_ZNKSt8_Rb_treeINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt4pairIKS5_"
                "iESt10_Select1stIS8_ESt4lessIS5_ESaIS8_EE9_M_mbeginEv",
                "std::_Rb_tree<...>::_M_mbegin");
    check_short("_Z2enILi5EENSt9enable_ifIXgtT_Li3EEiE4typeEv", "en<5>");
    check_shorter("a<(1)<(3), int>::b<((5)>(3)), int>::c", true,
                  "a<(1)<(3), int>::b<((5)>(3)), int>::c");
    check_shorter("f<(sizeof (a<int>))>>(3), (x)->y>::g", true,
                  "f<(sizeof (a<int>))>>(3), (x)->y>::g");
}

TEST(demangle, says_string_for_the_string_of_the_library)
{
    check_short("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
                "std::string::append");
    check_shorter("std::__1::basic_ostream<char, std::__1::char_traits<char> >::put", true,
                  "std::ostream::put");
    check_shorter("str[abi:cxx11](std::string)", true, "str");
}

TEST(demangle, keeps_operators_whole)
{
    check_short("_ZN1FgtEi", "F::operator>");
    check_short("_ZN1FrsEi", "F::operator>>");
    check_short("_ZN1FptEv", "F::operator->");
    check_short("_ZN1FclEv", "F::operator()");
    check_short("_ZN1FixEi", "F::operator[]");
    check_short("_ZN1FcmEi", "F::operator,");
    check_short("_ZN1FssEi", "F::operator<=>");
    check_short("_ZNK1FltIiEEbT_", "F::operator< <int>");
    check_short("_ZN1FlsIiEERS_T_", "F::operator<< <int>");
    check_short("_ZN1FclIiEEvT_", "F::operator()<int>");
    check_short("_ZN1FcvmEv", "F::operator unsigned long");
    check_short("_ZN1FcvPFviEEv", "F::operator void (*)(int)");
    check_short("_ZnwmPv", "operator new");
    check_short("_ZdaPv", "operator delete[]");
    check_short("_Zli3_kme", "operator\"\" _km");
    check_shorter("F::operator<(int) const::L::m()", true, "F::operator<::L::m");
}

TEST(demangle, keeps_lambdas_and_scopes_without_names)
{
    check_short("_ZZ4mainENKUliiE_clEii", "main::{lambda#1}::operator()");
    check_short("_ZN12_GLOBAL__N_11A1fEi", "(anonymous namespace)::A::f");
    check_short("_ZZZ4tmplIiEDaT_ENKUlS0_St6vectorIiSaIiEEE_clIiEEDaS0_S3_EN1L1mEv",
                "tmpl<int>::{lambda#1}::operator()<int>::L::m");
    check_shorter("std::function<void ((anonymous namespace)::A)>::operator()", true,
                  "std::function<...>::operator()");
    check_shorter(
        "std::enable_if<true, int>::type f<int>(int)::{lambda(int)#1}::operator()(int) const", true,
        "f<int>::{lambda#1}::operator()");
}

TEST(demangle, shortens_names_that_debug_information_has)
{
    struct kiln_demangler *d = NULL;

    CHECK_OK(kiln_demangler_new(&d));
    CHECK_STR(kiln_demangle_text(d, KILN_STR("main()::<lambda(int, a<b>)>::operator()")),
              "main::{lambda}::operator()");
    CHECK_STR(kiln_demangle_text(d, KILN_STR("std::_Function_handler<void(int), main()::<lambda("
                                             "int)> >::_M_invoke")),
              "std::_Function_handler<void(int), main()::{lambda}>::_M_invoke");
    CHECK_STR(kiln_demangle_text(d, KILN_STR("(anonymous namespace)::f")),
              "(anonymous namespace)::f");
    CHECK_STR(kiln_demangle_text(d, KILN_STR("a name of Fortran")), "a name of Fortran");
    CHECK_STR(kiln_demangle_text(d, KILN_STR_NONE), "");
    kiln_demangler_free(d);
}

/* ---- Rust ---- */

TEST(demangle, undoes_both_schemes_of_rust_without_hashes)
{
    check_forms("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
                "core::fmt::Formatter::write_str", "core::fmt::Formatter::write_str");
    check_short("_RNvC6_123foo3bar", "123foo::bar");
    check_short("_RNvCs1234_7mycrate4main", "mycrate::main");
    check_short("_RNCNvC7mycrate4main0B3_", "mycrate::main::{closure#0}");
    check_short("_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
                "std::rt::lang_start::{closure}");
}

TEST(demangle, says_of_paths_in_lists_of_rust_the_last_word)
{
    check_shorter("core::ptr::drop_in_place::<alloc::vec::Vec<alloc::string::String>>", false,
                  "core::ptr::drop_in_place::<Vec<String>>");
    check_shorter("<alloc::vec::Vec<a::B> as core::clone::Clone>::clone", false,
                  "<alloc::vec::Vec<B> as core::clone::Clone>::clone");
    check_shorter("a::f::<b::main::{closure#0}, fn(c::D) -> e::F>", false,
                  "a::f::<main::{closure#0}, fn(D) -> F>");
    check_shorter("a::f::<b::LongName, b::AnotherOne, b::AThirdOne>", false, "a::f::<...>");
}

/* ---- clones, and all else ---- */

TEST(demangle, drops_what_the_compiler_split_off)
{
    check_forms("_ZN4kiln3sumEi.cold", "kiln::sum(int) [clone .cold]", "kiln::sum");
    check_short("_ZN4kiln3sumEi.part.0.constprop.1", "kiln::sum");
    check_short("_ZN4core3fmt5write17h0123456789abcdefE.llvm.1234567", "core::fmt::write");
    check_short("_RNvC6_123foo3bar.llvm.77", "123foo::bar");
    check_short("do_sys_open.isra.0.cold", "do_sys_open");
    check_short("memcpy.avx2", "memcpy.avx2");
    check_short("inner.0", "inner.0");
    check_short(".cold", ".cold");
}

TEST(demangle, leaves_other_names_alone)
{
    check_short("main", "main");
    check_short("_Z", "_Z");
    check_short("_Z3fooGARBAGE", "_Z3fooGARBAGE");
    check_short("__libc_start_main", "__libc_start_main");
    check_short("", "");
}

/* ---- hostile names ---- */

/* f<P<int, int>, P<that, that>, P<that, that>, ...>: twice as long with each. */
static size_t grow_cpp(char *to, size_t max, bool parameters)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    int n = snprintf(to, max, parameters ? "_Z1f1PIiiE" : "_Z1fI1PIiiE");
    int first = parameters ? 0 : 1;

    for (int i = first; i < 34; i++)
        n += snprintf(to + n, max - (size_t)n, parameters ? "S_IS%c_S%c_E" : "S0_IS%c_S%c_E",
                      digits[i], digits[i]);
    return (size_t)(n + snprintf(to + n, max - (size_t)n, parameters ? "" : "Evv"));
}

static size_t grow_rust(char *to, size_t max)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    int n = snprintf(to, max, "_RINvC1a1f");
    int last = n - 2;

    n += snprintf(to + n, max - (size_t)n, "TmmE");
    for (int i = 0; i < 60; i++) {
        int at = n - 2, high = (last - 1) / 62;
        char back[8];

        if (high)
            (void)snprintf(back, sizeof(back), "B%c%c_", digits[high], digits[(last - 1) % 62]);
        else
            (void)snprintf(back, sizeof(back), "B%c_", digits[last - 1]);
        n += snprintf(to + n, max - (size_t)n, "T%s%sE", back, back);
        last = at;
    }
    return (size_t)(n + snprintf(to + n, max - (size_t)n, "E"));
}

TEST(demangle, ends_soon_whatever_a_name_expands_to)
{
    struct kiln_demangler *d = NULL;
    char name[2048];
    struct kiln_str s = {name, 0};

    CHECK_OK(kiln_demangler_new(&d));
    s.len = grow_cpp(name, sizeof(name), false);
    CHECK_STR(kiln_demangle(d, s), "f<...>");
    CHECK_EQ(kiln_demangle_full(d, s).len, KILN_DEMANGLED_MAX);
    s.len = grow_cpp(name, sizeof(name), true);
    CHECK_STR(kiln_demangle(d, s), "f");
    CHECK_EQ(kiln_demangle_full(d, s).len, KILN_DEMANGLED_MAX);
    s.len = grow_rust(name, sizeof(name));
    CHECK_STR(kiln_demangle(d, s), "a::f::<...>");
    CHECK_EQ(kiln_demangle_full(d, s).len, KILN_DEMANGLED_MAX);
    kiln_demangler_free(d);
}

TEST(demangle, shortens_what_is_no_name_without_harm)
{
    char deep[4 * KILN_DEMANGLED_MAX + 1], to[KILN_DEMANGLED_MAX];

    memset(deep, '<', sizeof(deep));
    CHECK_STR(((struct kiln_str){to, kiln_name_shorten((struct kiln_str){deep, sizeof(deep)}, true,
                                                       to, sizeof(to))}),
              "<...>");
    memset(deep, '>', sizeof(deep));
    CHECK_EQ(kiln_name_shorten((struct kiln_str){deep, sizeof(deep)}, true, to, sizeof(to)),
             sizeof(to));
    check_shorter("a<b", true, "a<...>");
    check_shorter("a{b", true, "a...");
    check_shorter("f(int", true, "f");
    check_shorter("a<(b>c", true, "a<...>");
    check_shorter("", true, "");
}
