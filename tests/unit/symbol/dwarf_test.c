/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "compiled.h"
#include "symbol/dwarf.h"
#include "test.h"

/* Code of interest has a section of its own, so that tests know where it is. */
static const char *const shop_c = /* line 1 is empty */
    "\n"
    "#define HERE __attribute__((section(\"here\"), noinline))\n"
    "#define IN static inline __attribute__((always_inline))\n"
    "volatile int sold;\n"
    "IN void weigh(int n)\n"
    "{\n"
    "    sold = n * 3;\n"
    "}\n"
    "IN void sell(int n)\n"
    "{\n"
    "    weigh(n + 1);\n"
    "}\n"
    "HERE void open_shop(int n)\n"
    "{\n"
    "    sell(n);\n"
    "}\n"
    "int main(int n, char **v)\n"
    "{\n"
    "    (void)v;\n"
    "    open_shop(n);\n"
    "    return 0;\n"
    "}\n";

static const char *const shop_drawn = "weigh shop.c:7 < sell shop.c:11 < open_shop shop.c:15";

static const char *base_name(struct kiln_str path, size_t *ret_n)
{
    const char *slash = memrchr(path.ptr, '/', path.len);

    *ret_n = slash ? path.len - (size_t)(slash + 1 - path.ptr) : path.len;
    return slash ? slash + 1 : path.ptr;
}

/* Frames as text, innermost first: "weigh shop.c:7 < sell shop.c:11". */
static void draw(const struct kiln_dwarf_frame *frames, uint32_t n, char *to, size_t size)
{
    size_t at = 0;

    *to = '\0';
    for (uint32_t i = 0; i < n && at + 1 < size; i++) {
        const struct kiln_dwarf_frame *f = &frames[i];
        struct kiln_str name = f->linkage.len ? f->linkage : f->name;
        size_t n_file = 0;
        const char *file = f->file.len ? base_name(f->file, &n_file) : "?";

        if (f->qualified.len)
            name = f->qualified;
        at += (size_t)snprintf(to + at, size - at, "%s%.*s %.*s:%u", i ? " < " : "",
                               KILN_STR_ARG(name), (int)n_file, file, f->line);
    }
}

/* Whether some address of a section has these frames. */
static bool has_frames(struct kiln_dwarf *dwarf, const struct kiln_elf *elf, const char *section,
                       const char *drawn)
{
    const struct kiln_elf_section *s = kiln_elf_section(elf, section);
    static char text[16384];
    const struct kiln_dwarf_frame *frames;
    uint32_t n;

    CHECK(s);
    for (uint64_t i = 0; i < s->size; i++) {
        CHECK_OK(kiln_dwarf_find(dwarf, s->address + i, &frames, &n));
        draw(frames, n, text, sizeof(text));
        if (strcmp(text, drawn) == 0)
            return true;
    }
    printf("the last was: %s\n", text);
    return false;
}

static struct kiln_dwarf *opened(const struct kiln_elf *elf, struct kiln_budget *budget)
{
    struct kiln_dwarf_opts opts = {.budget = budget};
    struct kiln_dwarf *dwarf;

    *budget = (struct kiln_budget){.limit = 16 << 20};
    CHECK(elf);
    CHECK_OK(kiln_dwarf_open(elf, &opts, &dwarf));
    return dwarf;
}

/* Compiles the shop and looks for its innermost frames; false: the compiler cannot. */
static bool shop_has(const char *command, const char *drawn)
{
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;
    bool runs;

    compiled_init(&compiled);
    compiled_write(&compiled, "shop.c", shop_c);
    runs = compiled_run(&compiled, command);
    if (runs) {
        elf = compiled_open(&compiled, "shop");
        dwarf = opened(elf, &budget);
        CHECK(has_frames(dwarf, elf, "here", drawn));
        kiln_dwarf_close(dwarf);
        CHECK_EQ(budget.used, 0);
    }
    compiled_done(&compiled);
    return runs;
}

TEST(dwarf, inlined_functions_are_frames_at_the_lines_of_their_calls)
{
    CHECK(shop_has("gcc -O2 -g shop.c -o shop", shop_drawn));
}

TEST(dwarf, all_versions_of_the_format_say_the_same)
{
    CHECK(shop_has("gcc -O2 -g -gdwarf-2 shop.c -o shop", shop_drawn));
    CHECK(shop_has("gcc -O2 -g -gdwarf-3 shop.c -o shop", shop_drawn));
    CHECK(shop_has("gcc -O2 -g -gdwarf-4 shop.c -o shop", shop_drawn));
    CHECK(shop_has("gcc -O2 -g -gdwarf-5 shop.c -o shop", shop_drawn));
}

TEST(dwarf, offsets_may_have_64_bits)
{
    CHECK(shop_has("gcc -O2 -g -gdwarf-4 -gdwarf64 shop.c -o shop", shop_drawn));
    CHECK(shop_has("gcc -O2 -g -gdwarf-5 -gdwarf64 shop.c -o shop", shop_drawn));
}

TEST(dwarf, little_debug_information_has_inlined_functions_too)
{
    CHECK(shop_has("gcc -O2 -g1 shop.c -o shop", shop_drawn));
}

TEST(dwarf, compressed_sections_are_inflated)
{
    CHECK(shop_has("gcc -O2 -g -gz=zlib shop.c -o shop", shop_drawn));
}

TEST(dwarf, units_of_one_program_refer_to_each_other_after_link_time_optimization)
{
    CHECK(shop_has("gcc -O2 -g -flto shop.c -o shop", shop_drawn));
}

TEST(dwarf, a_compiler_that_writes_no_table_of_addresses_is_read_as_well)
{
    if (!shop_has("clang -O2 -g shop.c -o shop", shop_drawn))
        SKIP("there is no clang");
    CHECK(shop_has("clang -O2 -gdwarf-4 shop.c -o shop", shop_drawn));
}

TEST(dwarf, a_function_says_where_it_is_declared)
{
    const struct kiln_dwarf_frame *frames;
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;
    uint32_t n;

    compiled_init(&compiled);
    compiled_write(&compiled, "shop.c", shop_c);
    CHECK(compiled_run(&compiled, "gcc -O2 -g shop.c -o shop"));
    elf = compiled_open(&compiled, "shop");
    dwarf = opened(elf, &budget);
    CHECK_OK(kiln_dwarf_find(dwarf, kiln_elf_section(elf, "here")->address, &frames, &n));
    CHECK(n > 0);
    CHECK_STR(frames[n - 1].name, "open_shop");
    CHECK_EQ(frames[n - 1].start_line, 13);
    kiln_dwarf_close(dwarf);
    compiled_done(&compiled);
}

TEST(dwarf, an_address_of_nobody_has_no_frames)
{
    const struct kiln_dwarf_frame *frames;
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_dwarf *dwarf;
    uint32_t n = 7;

    compiled_init(&compiled);
    compiled_write(&compiled, "shop.c", shop_c);
    CHECK(compiled_run(&compiled, "gcc -O2 -g shop.c -o shop"));
    dwarf = opened(compiled_open(&compiled, "shop"), &budget);
    CHECK_OK(kiln_dwarf_find(dwarf, 0, &frames, &n));
    CHECK_EQ(n, 0);
    CHECK_OK(kiln_dwarf_find(dwarf, UINT64_MAX, &frames, &n));
    CHECK_EQ(n, 0);
    kiln_dwarf_close(dwarf);
    compiled_done(&compiled);
}

TEST(dwarf, a_file_without_debug_information_is_none)
{
    struct kiln_dwarf_opts opts = {0};
    struct compiled compiled;
    struct kiln_dwarf *dwarf;

    compiled_init(&compiled);
    compiled_write(&compiled, "shop.c", shop_c);
    CHECK(compiled_run(&compiled, "gcc -O2 -g shop.c -o shop && strip shop && gcc -g -c shop.c"));
    CHECK_EQ(kiln_dwarf_open(compiled_open(&compiled, "shop"), &opts, &dwarf), -ENOENT);
    CHECK_EQ(kiln_dwarf_open(compiled_open(&compiled, "shop.o"), &opts, &dwarf),
             KILN_E_UNSUPPORTED);
    compiled_done(&compiled);
}
