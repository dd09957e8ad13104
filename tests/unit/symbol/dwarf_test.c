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

/* DWARF 2 by hand: in `outer` is `middle`, of which one byte is told, and beyond it `inner`. */
static const char pieces_s[] =
    ".text\n.globl main\nmain: ret\n"
    ".section here,\"ax\",@progbits\nbegin: .skip 4, 0x90\nin: .skip 2, 0x90\nout: .skip 2, "
    "0x90\nend:\n"
    ".section .debug_abbrev,\"\",@progbits\n"
    ".byte 1,0x11,1, 0x11,1, 0x12,1, 0,0\n" /* unit: low_pc, high_pc */
    ".byte 2,0x2e,0, 0x03,8, 0,0\n"         /* function: name */
    ".byte 3,0x2e,1, 0x03,8, 0x11,1, 0x12,1, 0,0\n"
    ".byte 4,0x1d,1, 0x31,0x13, 0x11,1, 0x12,1, 0,0\n" /* inlined: origin, low_pc, high_pc */
    ".byte 0\n"
    ".section .debug_info,\"\",@progbits\n"
    "unit: .long last - first\nfirst: .value 2\n.long 0\n.byte 8\n"
    ".byte 1\n.quad begin, end\n"
    "inner: .byte 2\n.asciz \"inner\"\n"
    "middle: .byte 2\n.asciz \"middle\"\n"
    ".byte 3\n.asciz \"outer\"\n.quad begin, end\n"
    ".byte 4\n.long middle - unit\n.quad begin, begin + 1\n"
    ".byte 4\n.long inner - unit\n.quad in, out\n"
    ".byte 0,0,0,0\nlast:\n";

TEST(dwarf, of_what_lies_in_pieces_one_may_be_told)
{
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;
    const struct kiln_dwarf_frame *frames;
    uint64_t begin;
    uint32_t n;
    char text[256];

    compiled_init(&compiled);
    compiled_write(&compiled, "pieces.s", pieces_s);
    CHECK(compiled_run(&compiled, "gcc pieces.s -o pieces"));
    elf = compiled_open(&compiled, "pieces");
    dwarf = opened(elf, &budget);
    begin = kiln_elf_section(elf, "here")->address;
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_OK(kiln_dwarf_find(dwarf, begin + i, &frames, &n));
        draw(frames, n, text, sizeof(text));
        CHECK_TEXT(text, i == 4 || i == 5 ? "inner :0 < middle :0 < outer :0"
                         : i == 0         ? "middle :0 < outer :0"
                                          : "outer :0");
    }
    kiln_dwarf_close(dwarf);
    CHECK_EQ(budget.used, 0);
    compiled_done(&compiled);
}

/* ---- what is in other files ---- */

/* Serves what is wanted from the folder; returns how many files were taken. */
static uint32_t serve(struct kiln_dwarf *dwarf, struct compiled *compiled, const char *package)
{
    struct kiln_wanted wanted;
    const struct kiln_elf *elf;
    char path[4096];
    uint32_t n = 0;

    while (kiln_dwarf_wants(dwarf, &wanted)) {
        snprintf(path, sizeof(path), "%.*s", KILN_STR_ARG(wanted.name));
        if (wanted.kind == KILN_WANTED_DWO) {
            CHECK_STR(wanted.directory, compiled->folder);
            CHECK(wanted.dwo_id != 0);
        }
        elf = wanted.kind == KILN_WANTED_DWP ? (package ? compiled_open(compiled, package) : NULL)
                                             : compiled_open(compiled, path);
        if (elf) {
            CHECK_OK(kiln_dwarf_attach(dwarf, (enum kiln_wanted_kind)wanted.kind, elf));
            n++;
        }
    }
    return n;
}

/* Asks once, so that what is lacking is known. */
static void ask(struct kiln_dwarf *dwarf, const struct kiln_elf *elf)
{
    const struct kiln_dwarf_frame *frames;
    uint32_t n;

    CHECK_OK(kiln_dwarf_find(dwarf, kiln_elf_section(elf, "here")->address, &frames, &n));
}

static bool split_shop_has(const char *command, const char *package, const char *drawn)
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
        ask(dwarf, elf);
        CHECK_EQ(serve(dwarf, &compiled, package), 1);
        CHECK(has_frames(dwarf, elf, "here", drawn));
        CHECK_EQ(serve(dwarf, &compiled, package), 0);
        kiln_dwarf_close(dwarf);
        CHECK_EQ(budget.used, 0);
    }
    compiled_done(&compiled);
    return runs;
}

TEST(dwarf, a_split_unit_is_wanted_once_and_read_when_it_comes)
{
    CHECK(split_shop_has("gcc -O2 -g -gsplit-dwarf -c shop.c && gcc shop.o -o shop", NULL,
                         shop_drawn));
    CHECK(split_shop_has("gcc -O2 -gdwarf-4 -gsplit-dwarf -c shop.c && gcc shop.o -o shop", NULL,
                         shop_drawn));
}

TEST(dwarf, a_package_has_split_units_by_their_ids)
{
    CHECK(split_shop_has("gcc -O2 -gdwarf-4 -gsplit-dwarf -c shop.c && gcc shop.o -o shop && "
                         "llvm-dwp -e shop -o shop.dwp && rm *.dwo",
                         "shop.dwp", shop_drawn));
    CHECK(split_shop_has("clang -O2 -gdwarf-5 -gsplit-dwarf -c shop.c && clang shop.o -o shop && "
                         "llvm-dwp -e shop -o shop.dwp && rm *.dwo",
                         "shop.dwp", shop_drawn));
}

TEST(dwarf, without_its_split_unit_an_address_has_a_line)
{
    const struct kiln_dwarf_frame *frames;
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_wanted wanted;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;
    uint32_t n;

    compiled_init(&compiled);
    compiled_write(&compiled, "shop.c", shop_c);
    CHECK(compiled_run(&compiled, "gcc -O2 -g -gsplit-dwarf -c shop.c && gcc shop.o -o shop"));
    elf = compiled_open(&compiled, "shop");
    dwarf = opened(elf, &budget);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(kiln_dwarf_find(dwarf, kiln_elf_section(elf, "here")->address, &frames, &n));
        CHECK_EQ(n, 1);
        CHECK_STR(frames[0].name, "");
        CHECK(frames[0].line > 0 && frames[0].file.len > 0);
        while (kiln_dwarf_wants(dwarf, &wanted))
            CHECK_EQ(i, 0); /* nothing is asked for twice */
    }
    kiln_dwarf_close(dwarf);
    compiled_done(&compiled);
}

TEST(dwarf, another_programs_split_unit_is_refused)
{
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_wanted wanted;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;

    compiled_init(&compiled);
    compiled_write(&compiled, "shop.c", shop_c);
    compiled_write(&compiled, "other.c", "int other(int n)\n{\n    return n * 2;\n}\n");
    CHECK(compiled_run(&compiled, "gcc -O2 -g -gsplit-dwarf -c shop.c && gcc shop.o -o shop && "
                                  "gcc -O2 -g -gsplit-dwarf -c other.c"));
    elf = compiled_open(&compiled, "shop");
    dwarf = opened(elf, &budget);
    ask(dwarf, elf);
    CHECK(kiln_dwarf_wants(dwarf, &wanted));
    CHECK_EQ(wanted.kind, KILN_WANTED_DWP);
    CHECK(kiln_dwarf_wants(dwarf, &wanted));
    CHECK_EQ(wanted.kind, KILN_WANTED_DWO);
    CHECK_EQ(kiln_dwarf_attach(dwarf, KILN_WANTED_DWO, compiled_open(&compiled, "other.dwo")),
             KILN_E_NOMATCH);
    CHECK_EQ(kiln_dwarf_attach(dwarf, KILN_WANTED_DWP, elf), KILN_E_NOMATCH);
    CHECK_EQ(kiln_dwarf_attach(dwarf, KILN_WANTED_ALTERNATE, elf), KILN_E_NOMATCH);
    kiln_dwarf_close(dwarf);
    CHECK_EQ(budget.used, 0);
    compiled_done(&compiled);
}

/* dwz moves what two programs have in common into a third file. */
static bool dwz_shop_has(const char *flags)
{
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;
    char command[512];
    bool runs;

    compiled_init(&compiled);
    compiled_write(&compiled, "shop.c", shop_c);
    snprintf(command, sizeof(command),
             "gcc -O2 -g shop.c -o shop && cp shop twin && dwz %s -m common shop twin", flags);
    runs = compiled_run(&compiled, command);
    if (runs) {
        elf = compiled_open(&compiled, "shop");
        dwarf = opened(elf, &budget);
        CHECK_EQ(serve(dwarf, &compiled, NULL), 1);
        CHECK(has_frames(dwarf, elf, "here", shop_drawn));
        kiln_dwarf_close(dwarf);
        CHECK_EQ(budget.used, 0);
    }
    compiled_done(&compiled);
    return runs;
}

TEST(dwarf, what_several_programs_have_in_common_is_read_from_the_alternate)
{
    if (!dwz_shop_has(""))
        SKIP("there is no dwz");
    CHECK(dwz_shop_has("--dwarf-5"));
}

/* ---- names ---- */

static bool program_has(const char *name, const char *source, const char *section,
                        const char *drawn)
{
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;
    char command[128];
    bool has;

    compiled_init(&compiled);
    compiled_write(&compiled, name, source);
    snprintf(command, sizeof(command), "g%s -O1 -g %s -o shop", strchr(name, '+') ? "++" : "cc",
             name);
    CHECK(compiled_run(&compiled, command));
    elf = compiled_open(&compiled, "shop");
    dwarf = opened(elf, &budget);
    has = has_frames(dwarf, elf, section, drawn);
    kiln_dwarf_close(dwarf);
    CHECK_EQ(budget.used, 0);
    compiled_done(&compiled);
    return has;
}

static const char *const hidden_cc = "#define HERE __attribute__((section(\"here\"), noinline))\n"
                                     "volatile int sold;\n"
                                     "namespace shop { namespace {\n"
                                     "struct Scale {\n"
                                     "    int n;\n"
                                     "    HERE void weigh() { sold = n; }\n"
                                     "};\n"
                                     "} void open(int n) { Scale{n}.weigh(); } }\n"
                                     "int main(int n, char **) { shop::open(n); return 0; }\n";

TEST(dwarf, a_function_that_no_linker_sees_is_called_by_its_scopes)
{
    CHECK(program_has("hidden.c++", hidden_cc, "here",
                      "shop::(anonymous namespace)::Scale::weigh hidden.c++:6"));
}

TEST(dwarf, one_that_a_linker_sees_has_the_linkers_name)
{
    CHECK(
        program_has("seen.c++",
                    "volatile int sold;\n"
                    "namespace shop {\n"
                    "__attribute__((section(\"here\"), noinline)) void weigh(int n) { sold = n; }\n"
                    "}\n"
                    "int main(int n, char **) { shop::weigh(n); return 0; }\n",
                    "here", "_ZN4shop5weighEi seen.c++:3"));
}

TEST(dwarf, a_function_within_a_function_is_found)
{
    CHECK(program_has("nested.c",
                      "volatile int sold;\n"
                      "int main(int n, char **v)\n"
                      "{\n"
                      "    __attribute__((noinline)) void weigh(int by)\n"
                      "    {\n"
                      "        sold = n * by;\n"
                      "    }\n"
                      "    weigh(n + 1);\n"
                      "    return v == 0;\n"
                      "}\n",
                      ".text", "weigh nested.c:6"));
}

/* ---- limits ---- */

TEST(dwarf, past_its_deadline_it_goes_on_where_it_was)
{
    const struct kiln_dwarf_frame *frames;
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;
    uint32_t n, again = 0;
    char text[256];
    char *source;
    size_t at = 0;
    int r;

    source = malloc(1 << 20);
    CHECK(source);
    for (int i = 0; i < 6000; i++)
        at += (size_t)snprintf(source + at, (1 << 20) - at,
                               "struct s%d { int a; };\nint f%d(void)"
                               "{ struct s%d s = {%d}; return s.a; }\n",
                               i, i, i, i);
    snprintf(source + at, (1 << 20) - at,
             "__attribute__((section(\"here\"))) int main(void) { return 0; }\n");
    compiled_init(&compiled);
    compiled_write(&compiled, "long.c", source);
    free(source);
    CHECK(compiled_run(&compiled, "gcc -g long.c -o shop"));
    elf = compiled_open(&compiled, "shop");
    dwarf = opened(elf, &budget);
    kiln_dwarf_deadline(dwarf, 1); /* long ago */
    do {
        r = kiln_dwarf_find(dwarf, kiln_elf_section(elf, "here")->address, &frames, &n);
        again += r == -EAGAIN;
    } while (r == -EAGAIN && again < 1000);
    CHECK_OK(r);
    CHECK(again > 0);
    draw(frames, n, text, sizeof(text));
    CHECK_TEXT(text, "main long.c:12001");
    kiln_dwarf_close(dwarf);
    CHECK_EQ(budget.used, 0);
    compiled_done(&compiled);
}

TEST(dwarf, of_too_deep_a_chain_the_outermost_and_the_innermost_stay)
{
    const struct kiln_dwarf_frame *frames;
    struct compiled compiled;
    struct kiln_budget budget;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;
    static char source[65536];
    size_t at;
    uint32_t n;

    at = (size_t)snprintf(source, sizeof(source),
                          "#define IN static inline __attribute__((always_inline)) void\n"
                          "volatile int sold;\nIN f0(int n) { sold = n; }\n");
    for (int i = 1; i < 100; i++)
        at += (size_t)snprintf(source + at, sizeof(source) - at, "IN f%d(int n) { f%d(n + 1); }\n",
                               i, i - 1);
    snprintf(source + at, sizeof(source) - at,
             "__attribute__((section(\"here\"))) int main(int n, char **v)"
             "{ (void)v; f99(n); return 0; }\n");
    compiled_init(&compiled);
    compiled_write(&compiled, "deep.c", source);
    CHECK(compiled_run(&compiled, "gcc -g -O1 deep.c -o shop"));
    elf = compiled_open(&compiled, "shop");
    dwarf = opened(elf, &budget);
    n = 0;
    for (uint64_t i = 0; i < 64 && (n == 0 || !kiln_str_eq(frames[0].name, KILN_STR("f0"))); i++)
        CHECK_OK(kiln_dwarf_find(dwarf, kiln_elf_section(elf, "here")->address + i, &frames, &n));
    CHECK_EQ(n, KILN_DWARF_FRAMES);
    CHECK_STR(frames[0].name, "f0");
    CHECK_STR(frames[62].name, "f62");
    CHECK_STR(frames[63].name, "main");
    kiln_dwarf_close(dwarf);
    compiled_done(&compiled);
}

TEST(dwarf, little_memory_costs_time_and_not_answers)
{
    struct kiln_dwarf_opts opts = {0};
    struct kiln_budget budget = {.limit = 256 << 10};
    struct compiled compiled;
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf;

    compiled_init(&compiled);
    compiled_write(&compiled, "shop.c", shop_c);
    CHECK(compiled_run(&compiled, "gcc -O2 -g shop.c -o shop"));
    elf = compiled_open(&compiled, "shop");
    opts.budget = &budget;
    CHECK_OK(kiln_dwarf_open(elf, &opts, &dwarf));
    CHECK(has_frames(dwarf, elf, "here", shop_drawn));
    CHECK(budget.peak <= budget.limit);
    kiln_dwarf_close(dwarf);
    CHECK_EQ(budget.used, 0);
    compiled_done(&compiled);
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
