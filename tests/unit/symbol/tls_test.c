/* SPDX-License-Identifier: Apache-2.0 */
/* What real linkers make of a variable that each thread has its own of. */
#include "symbol/tls.h"

#include <elf.h>
#include <errno.h>

#include "base/err.h"
#include "compiled.h"
#include "test.h"

#define NAME "otel_thread_ctx_v1"

/* Another variable before it, so that its offset is not 0. */
static const char variable[] = "__thread char other[24];\n"
                               "__attribute__((visibility(\"default\"))) __thread void *" NAME ";\n"
                               "void set(void *p) { " NAME " = p; other[3] = 1; }\n";
static const char program[] = "void set(void *p);\n"
                              "int main(void) { set(0); return 0; }\n";

static struct compiled compiled;

/* What is found in what a command makes; KILN_E_UNKNOWN: the compiler cannot do that. */
static int find(const char *command, struct kiln_tls_variable *ret_variable)
{
    const struct kiln_elf *elf;
    int r = KILN_E_UNKNOWN;

    compiled_init(&compiled);
    compiled_write(&compiled, "variable.c", variable);
    compiled_write(&compiled, "program.c", program);
    if (compiled_run(&compiled, command)) {
        elf = compiled_open(&compiled, "made");
        CHECK(elf);
        r = kiln_tls_find(elf, NAME, elf->type == ET_EXEC || !strstr(command, "-shared"),
                          ret_variable);
    }
    compiled_done(&compiled);
    return r;
}

#define LIBRARY "gcc -shared -fPIC -O1 -o made variable.c "

TEST(tls, a_library_has_a_descriptor)
{
    struct kiln_tls_variable found;

    CHECK_OK(find(LIBRARY "-mtls-dialect=gnu2", &found));
    CHECK_EQ(found.kind, KILN_TLS_DESCRIPTOR);
    CHECK(found.word > 0);
    CHECK_EQ(found.add, 0);
}

TEST(tls, a_library_has_a_pair_of_words)
{
    struct kiln_tls_variable found;

    CHECK_OK(find(LIBRARY "-ftls-model=global-dynamic", &found));
    CHECK_EQ(found.kind, KILN_TLS_PAIR);
    CHECK(found.word > 0);
}

TEST(tls, a_library_has_an_offset)
{
    struct kiln_tls_variable found;

    CHECK_OK(find(LIBRARY "-ftls-model=initial-exec", &found));
    CHECK_EQ(found.kind, KILN_TLS_OFFSET);
    CHECK_EQ(found.add, 0);
}

/* Then relocations have no symbol: they are of the library's own block. */
TEST(tls, a_library_that_binds_its_own_symbols_is_understood)
{
    struct kiln_tls_variable found;

    CHECK_OK(find(LIBRARY "-Wl,-Bsymbolic -mtls-dialect=gnu2", &found));
    CHECK_EQ(found.kind, KILN_TLS_DESCRIPTOR);
    CHECK_OK(find(LIBRARY "-Wl,-Bsymbolic -ftls-model=global-dynamic", &found));
    CHECK(found.kind == KILN_TLS_MODULE || found.kind == KILN_TLS_PAIR);
    CHECK_OK(find(LIBRARY "-Wl,-Bsymbolic -ftls-model=initial-exec", &found));
    CHECK_EQ(found.kind, KILN_TLS_OFFSET);
}

TEST(tls, stripping_takes_nothing_away)
{
    struct kiln_tls_variable whole, stripped;

    CHECK_OK(find(LIBRARY, &whole));
    CHECK_OK(find(LIBRARY "-s", &stripped));
    CHECK_EQ(memcmp(&whole, &stripped, sizeof(whole)), 0);
}

TEST(tls, either_hash_table_will_do)
{
    struct kiln_tls_variable whole, other;

    CHECK_OK(find(LIBRARY "-Wl,--hash-style=gnu", &whole));
    CHECK_OK(find(LIBRARY "-Wl,--hash-style=sysv", &other));
    CHECK_EQ(whole.kind, other.kind);
}

/* 24 bytes, then the variable of 8 at their end or beginning: within 32 of the thread pointer. */
static void check_fixed(const char *command)
{
    struct kiln_tls_variable found = {0};
    int r = find(command, &found);

    if (r == KILN_E_UNKNOWN)
        SKIP("a compiler is not here");
    CHECK_OK(r);
    CHECK_EQ(found.kind, KILN_TLS_FIXED);
    CHECK(found.add < 0 && found.add >= -256);
    CHECK_EQ(found.add % 8, 0);
}

TEST(tls, a_program_knows_the_distance)
{
    check_fixed("gcc -o made program.c variable.c -rdynamic");
    check_fixed("gcc -s -o made program.c variable.c -rdynamic");
}

TEST(tls, a_static_program_knows_the_distance)
{
    check_fixed("gcc -static -o made program.c variable.c");
    check_fixed("gcc -static-pie -fPIE -o made program.c variable.c");
}

TEST(tls, a_program_of_another_libc_knows_the_distance)
{
    check_fixed("musl-gcc -static -o made program.c variable.c");
}

TEST(tls, who_only_uses_it_does_not_define_it)
{
    struct kiln_tls_variable found;

    CHECK_EQ(find("echo 'extern __thread void *" NAME "; void set(void *p) { " NAME
                  " = p; }' > user.c && gcc -shared -fPIC -o made user.c",
                  &found),
             -ENOENT);
}

TEST(tls, a_file_without_variables_of_threads_has_none)
{
    struct kiln_tls_variable found;

    CHECK_EQ(find("echo 'int main(void){return 0;}' > e.c && gcc -o made e.c", &found), -ENOENT);
    CHECK_EQ(find("cp /bin/true made", &found), -ENOENT);
}
