/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver and debug information, with a real child, forked from this program, and a reader of
 * debug information that plays what it is told: each address stands for something that can happen.
 */
#include "symbol/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metric.h"
#include "elf_maker.h"
#include "symbol/dwarf.h"
#include "test.h"

enum {
    AT_ONCE = 0x1000,  /* two frames */
    SLOW = 0x1100,     /* takes SLOW_MS of work, and stops at deadlines */
    DEADLY = 0x1200,   /* kills who reads it */
    ENDLESS = 0x1300,  /* does not stop */
    SPLIT = 0x1400,    /* in a file of its own */
    ASSEMBLY = 0x1500, /* a line without a name */
    ALIAS = 0x1800,    /* a function of C that has more than one name */
    NOWHERE = 0x1600,  /* no frames */
    TIRING = 0x1700,   /* stops at deadlines, and is never done */
    SLOW_MS = 700,     /* more than an ask waits */
};

/* ---- the reader ---- */

struct kiln_dwarf {
    uint64_t deadline_ns, worked_ns;
    bool wants, wanted, attached;
};

int kiln_dwarf_open(const struct kiln_elf *elf, const struct kiln_dwarf_opts *opts,
                    struct kiln_dwarf **ret_dwarf)
{
    if (!kiln_elf_section(elf, ".debug_info"))
        return -ENOENT;
    *ret_dwarf = calloc(1, sizeof(**ret_dwarf));
    (*ret_dwarf)->deadline_ns = opts->deadline_ns;
    return 0;
}

void kiln_dwarf_close(struct kiln_dwarf *dwarf)
{
    free(dwarf);
}

void kiln_dwarf_deadline(struct kiln_dwarf *dwarf, uint64_t deadline_ns)
{
    dwarf->deadline_ns = deadline_ns;
}

size_t kiln_dwarf_bytes(const struct kiln_dwarf *dwarf)
{
    return sizeof(*dwarf);
}

bool kiln_dwarf_wants(struct kiln_dwarf *dwarf, struct kiln_wanted *ret_wanted)
{
    if (!dwarf->wants || dwarf->wanted)
        return false;
    dwarf->wanted = true;
    *ret_wanted = (struct kiln_wanted){.kind = KILN_WANTED_DWO,
                                       .name = KILN_STR("unit.dwo"),
                                       .directory = KILN_STR("/src"),
                                       .dwo_id = 7};
    return true;
}

int kiln_dwarf_attach(struct kiln_dwarf *dwarf, enum kiln_wanted_kind kind,
                      const struct kiln_elf *other)
{
    CHECK_EQ(kind, KILN_WANTED_DWO);
    if (!kiln_elf_section(other, ".debug_info.dwo"))
        return KILN_E_NOMATCH;
    dwarf->attached = true;
    return 0;
}

static int work(struct kiln_dwarf *dwarf, uint64_t for_ns)
{
    while (dwarf->worked_ns < for_ns) {
        uint64_t began_ns = kiln_clock_mono_ns();

        if (dwarf->deadline_ns && began_ns >= dwarf->deadline_ns)
            return -EAGAIN;
        while (kiln_clock_mono_ns() - began_ns < KILN_NS_PER_MS)
            ;
        dwarf->worked_ns += KILN_NS_PER_MS;
    }
    return 0;
}

int kiln_dwarf_find(struct kiln_dwarf *dwarf, uint64_t address,
                    const struct kiln_dwarf_frame **ret_frames, uint32_t *ret_n)
{
    static const struct kiln_dwarf_frame two[] = {
        {.name = {"inlined", 7}, .file = {"in.h", 4}, .line = 7, .column = 3},
        {.name = {"sum", 3},
         .linkage = {"_ZN4kiln3sumEi", 14},
         .file = {"sum.cc", 6},
         .line = 20,
         .start_line = 18},
    };
    static const struct kiln_dwarf_frame line = {.file = {"start.S", 7}, .line = 5};
    static const struct kiln_dwarf_frame alias = {
        .name = {"__sum", 5}, .linkage = {"__GI___sum", 10}, .file = {"sum.c", 5}, .line = 9};

    if (address == DEADLY)
        __builtin_trap();
    while (address == ENDLESS)
        ;
    dwarf->wants |= address == SPLIT;
    *ret_frames = address == ASSEMBLY ? &line : address == ALIAS ? &alias : two;
    *ret_n = *ret_frames == two ? 2 : 1;
    if (address == NOWHERE || (address == SPLIT && !dwarf->attached))
        *ret_n = 0;
    return work(dwarf, address == SLOW     ? SLOW_MS * KILN_NS_PER_MS
                       : address == TIRING ? UINT64_MAX
                                           : 0);
}

/* ---- files ---- */

static struct elf_maker maker;
static const char note_a[] = "\4\0\0\0\20\0\0\0\3\0\0\0GNU\0aaaabbbbccccdddd";
static const char note_b[] = "\4\0\0\0\20\0\0\0\3\0\0\0GNU\0aaaabbbbccccXXXX";

static void add_part(const char *name, const void *data, size_t n)
{
    elf_maker_add(&maker, (struct elf_part){.name = name, .data = data, .n = n});
}

static void begin_elf(void)
{
    static const uint8_t code[0x1000];

    maker = (struct elf_maker){.type = ET_DYN};
    elf_maker_add(&maker, (struct elf_part){.name = ".text",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = 0x1000,
                                            .data = code,
                                            .n = sizeof(code)});
}

static void add_note(const char *note)
{
    elf_maker_add(&maker, (struct elf_part){.name = ".note.gnu.build-id",
                                            .type = SHT_NOTE,
                                            .data = note,
                                            .n = sizeof(note_a) - 1});
}

/* One function over all of the code. */
static void add_symbols(const char *function)
{
    static Elf64_Sym symbols[2];
    static char text[32];

    text[0] = '\0';
    snprintf(text + 1, sizeof(text) - 1, "%s", function);
    symbols[1] = (Elf64_Sym){.st_name = 1,
                             .st_info = STB_GLOBAL << 4 | STT_FUNC,
                             .st_shndx = 1,
                             .st_value = 0x1000,
                             .st_size = 0x1000};
    elf_maker_add(&maker,
                  (struct elf_part){.name = ".strtab", .type = SHT_STRTAB, .data = text, .n = 32});
    elf_maker_add(&maker, (struct elf_part){.name = ".symtab",
                                            .type = SHT_SYMTAB,
                                            .data = symbols,
                                            .n = sizeof(symbols),
                                            .link = maker.n_parts,
                                            .entry_size = sizeof(Elf64_Sym)});
}

static void add_link(uint32_t crc)
{
    static char link[16] = "app.debug";

    memcpy(link + 12, &crc, 4);
    add_part(".gnu_debuglink", link, sizeof(link));
}

static int file_of_elf(void)
{
    int fd = memfd_create("elf", MFD_CLOEXEC);

    (void)elf_maker_bytes(&maker);
    CHECK_EQ(write(fd, maker.data, maker.n), (ssize_t)maker.n);
    return fd;
}

/* With everything in itself. */
static int file_with_lines(void)
{
    begin_elf();
    add_symbols("_ZN4kiln7linkageEv");
    add_part(".debug_info", "x", 1);
    return file_of_elf();
}

static int debug_file(const char *note)
{
    begin_elf();
    if (note)
        add_note(note);
    add_symbols("in_debug_file");
    add_part(".debug_info", "x", 1);
    return file_of_elf();
}

/* ---- who opens files ---- */

struct shop {
    int files[8]; /* what is given, one attempt after the other; 0: nothing */
    uint32_t asked;
    struct kiln_wanted last;
    char name[64], directory[64];
};

static struct kiln_str note_text(char to[64], struct kiln_str text)
{
    snprintf(to, 64, "%.*s", KILN_STR_ARG(text));
    return kiln_str_of(to);
}

static int open_wanted(void *context, const struct kiln_wanted *wanted, int *ret_fd)
{
    struct shop *shop = context;

    shop->asked++;
    shop->last = *wanted;
    shop->last.name = note_text(shop->name, wanted->name);
    shop->last.directory = note_text(shop->directory, wanted->directory);
    if (wanted->attempt >= 8 || !shop->files[wanted->attempt])
        return -ENOENT;
    *ret_fd = dup(shop->files[wanted->attempt]);
    return 0;
}

/* ---- asking ---- */

static struct kiln_metrics *metrics;
static struct kiln_resolver *resolver;

static void start(struct kiln_resolver_opts opts)
{
    CHECK_OK(kiln_metrics_new(&metrics));
    opts.program = "";
    opts.metrics = metrics;
    CHECK_OK(kiln_resolver_new(&opts, &resolver, NULL));
}

static void stop(void)
{
    kiln_resolver_free(resolver);
    kiln_metrics_free(metrics);
}

static double counted(const char *name)
{
    return kiln_metric_value(kiln_metric_get(metrics, KILN_COUNTER, name, "", NULL));
}

static struct kiln_source source_of(int fd, struct shop *shop)
{
    return (struct kiln_source){.kind = KILN_SOURCE_ELF,
                                .fd = fd,
                                .id = (uint64_t)fd,
                                .key = KILN_STR("key"),
                                .open = shop ? open_wanted : NULL,
                                .context = shop};
}

static struct kiln_name ask(const struct kiln_source *source, uint64_t address)
{
    struct kiln_name name = {0};

    CHECK_OK(kiln_resolver_ask(resolver, source, &address, 1, &name));
    return name;
}

/* As an agent does that publishes again and again. */
static struct kiln_name ask_until_deep(const struct kiln_source *source, uint64_t address)
{
    struct kiln_name name = ask(source, address);

    while (name.shallow)
        name = ask(source, address);
    return name;
}

static void check_two(const struct kiln_name *name)
{
    CHECK(!name->shallow);
    CHECK_EQ(name->n, 2);
    CHECK_STR(name->frames[0].function, "inlined");
    CHECK_STR(name->frames[0].file, "in.h");
    CHECK_EQ(name->frames[0].line, 7);
    CHECK_EQ(name->frames[0].column, 3);
    CHECK_STR(name->frames[1].function, "kiln::sum");
    CHECK_STR(name->frames[1].system_name, "_ZN4kiln3sumEi");
    CHECK_STR(name->frames[1].file, "sum.cc");
    CHECK_EQ(name->frames[1].line, 20);
    CHECK_EQ(name->frames[1].start_line, 18);
}

static pid_t child_pid(void)
{
    char path[64], text[32] = "";
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    fd = open(path, O_RDONLY);
    CHECK(read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    return (pid_t)strtol(text, NULL, 10);
}

static void wait_for_end_of(pid_t child)
{
    siginfo_t info;

    CHECK_OK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
}

/* ---- what is in the file itself ---- */

TEST(resolver_deep, lines_and_inlines_come_from_debug_information)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, AT_ONCE);
    check_two(&name);
    CHECK_EQ(counted("kiln_names_shallow_total"), 0);
    close(source.fd);
    stop();
}

TEST(resolver_deep, what_debug_information_does_not_name_has_the_name_of_its_symbol)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, ASSEMBLY);
    CHECK_EQ(name.n, 1);
    CHECK_STR(name.frames[0].function, "kiln::linkage");
    CHECK_STR(name.frames[0].file, "start.S");
    CHECK_EQ(name.frames[0].line, 5);
    name = ask(&source, NOWHERE);
    CHECK_EQ(name.n, 1);
    CHECK_STR(name.frames[0].function, "kiln::linkage");
    CHECK_EQ(name.frames[0].line, 0);
    close(source.fd);
    stop();
}

TEST(resolver_deep, a_function_of_c_is_called_the_same_with_lines_and_without)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, ALIAS);
    CHECK_EQ(name.n, 1);
    CHECK_STR(name.frames[0].function, "kiln::linkage");
    CHECK_STR(name.frames[0].system_name, "__GI___sum");
    CHECK_EQ(name.frames[0].line, 9);
    close(source.fd);
    stop();
}

/* ---- two speeds ---- */

/* The child goes on by itself: there is something left to do. */
static void let_it_work(void)
{
    struct kiln_resolver_cost before, now;

    kiln_resolver_cost(resolver, &before);
    do
        kiln_resolver_cost(resolver, &now);
    while (now.cpu_ns == before.cpu_ns);
}

TEST(resolver_deep, what_takes_long_is_shallow_first_and_found_between_asks)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;
    uint32_t times = 0;

    start((struct kiln_resolver_opts){.patient = false});
    name = ask(&source, SLOW);
    CHECK(name.shallow);
    CHECK_EQ(name.n, 1);
    CHECK_STR(name.frames[0].function, "kiln::linkage");
    for (times = 1; name.shallow; times++) {
        let_it_work();
        name = ask(&source, SLOW);
    }
    check_two(&name);
    CHECK_EQ(counted("kiln_names_shallow_total"), times - 1);
    CHECK_EQ(counted("kiln_names_debug_set_aside_total"), 0);
    close(source.fd);
    stop();
}

TEST(resolver_deep, what_was_found_is_kept)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    (void)ask_until_deep(&source, SLOW);
    kill(child_pid(), SIGKILL);
    name = ask(&source, SLOW);
    check_two(&name);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 0);
    close(source.fd);
    stop();
}

/* ---- files that do harm ---- */

TEST(resolver_deep, deadly_debug_information_is_set_aside_and_names_stay)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, DEADLY);
    CHECK_EQ(name.n, 1);
    CHECK(!name.shallow);
    CHECK_STR(name.frames[0].function, "kiln::linkage");
    CHECK_EQ(counted("kiln_names_debug_set_aside_total"), 1);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 0);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 2);
    name = ask(&source, AT_ONCE);
    CHECK_EQ(name.n, 1);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 2);
    close(source.fd);
    stop();
}

TEST(resolver_deep, debug_information_without_end_is_set_aside_and_names_stay)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true, .file_cpu_ms = 50});
    name = ask(&source, ENDLESS);
    CHECK_EQ(name.n, 1);
    CHECK(!name.shallow);
    CHECK_EQ(counted("kiln_names_debug_set_aside_total"), 1);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 0);
    close(source.fd);
    stop();
}

TEST(resolver_deep, debug_information_that_takes_too_much_in_all_is_given_up)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true, .deep_cpu_ms = 100});
    name = ask_until_deep(&source, TIRING);
    CHECK_EQ(name.n, 1);
    CHECK_STR(name.frames[0].function, "kiln::linkage");
    name = ask(&source, AT_ONCE);
    CHECK_EQ(name.n, 1);
    CHECK_EQ(counted("kiln_names_debug_set_aside_total"), 1);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 0);
    close(source.fd);
    stop();
}

/* ---- files that are elsewhere ---- */

static int stripped(const char *note, uint32_t crc)
{
    begin_elf();
    if (note)
        add_note(note);
    if (crc)
        add_link(crc);
    return file_of_elf();
}

TEST(resolver_deep, a_debug_file_is_found_by_build_id_and_has_symbols_too)
{
    struct shop shop = {.files = {debug_file(note_a)}};
    struct kiln_source source = source_of(stripped(note_a, 0), &shop);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, AT_ONCE);
    check_two(&name);
    CHECK_EQ(shop.asked, 1);
    CHECK_EQ(shop.last.kind, KILN_WANTED_DEBUG);
    CHECK_EQ(shop.last.build_id_len, 16);
    CHECK(memcmp(shop.last.build_id, "aaaabbbbccccdddd", 16) == 0);
    name = ask(&source, NOWHERE);
    CHECK_STR(kiln_name_function(&name), "in_debug_file");
    CHECK_EQ(shop.asked, 1);
    CHECK_EQ(counted("kiln_names_debug_files_found_total"), 1);
    close(shop.files[0]);
    close(source.fd);
    stop();
}

TEST(resolver_deep, a_debug_file_of_another_program_is_refused_and_the_next_is_tried)
{
    struct shop shop = {.files = {debug_file(note_b), debug_file(note_a)}};
    struct kiln_source source = source_of(stripped(note_a, 0), &shop);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, AT_ONCE);
    check_two(&name);
    CHECK_EQ(shop.asked, 2);
    CHECK_EQ(counted("kiln_names_debug_files_refused_total"), 1);
    stop();
}

TEST(resolver_deep, without_a_debug_file_there_are_no_lines_and_it_is_not_asked_for_again)
{
    struct shop shop = {.files = {0}};
    struct kiln_source source = source_of(stripped(note_a, 0), &shop);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, AT_ONCE);
    CHECK_EQ(name.n, 0);
    CHECK(!name.shallow);
    name = ask(&source, NOWHERE);
    CHECK_EQ(shop.asked, 1);
    CHECK_EQ(counted("kiln_names_debug_files_missing_total"), 1);
    source = source_of(stripped(note_a, 0), NULL);
    name = ask(&source, AT_ONCE);
    CHECK(!name.shallow);
    stop();
}

static uint32_t crc_of(int fd)
{
    static char data[1 << 16];
    ssize_t n = pread(fd, data, sizeof(data), 0);

    CHECK(n > 0 && n < (ssize_t)sizeof(data));
    return libdeflate_crc32(0, data, (size_t)n);
}

TEST(resolver_deep, a_debug_link_is_believed_by_its_crc)
{
    struct shop shop = {.files = {debug_file(note_b), debug_file(NULL)}};
    struct kiln_source source = source_of(stripped(NULL, crc_of(shop.files[1])), &shop);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, AT_ONCE);
    check_two(&name);
    CHECK_EQ(shop.asked, 2);
    CHECK_STR(shop.last.name, "app.debug");
    CHECK(shop.last.has_crc);
    stop();
}

TEST(resolver_deep, split_units_are_wanted_when_one_of_their_addresses_is_asked_for)
{
    struct shop shop = {.files = {0}};
    struct kiln_source source = source_of(file_with_lines(), &shop);
    struct kiln_name name;

    begin_elf();
    add_part(".debug_info.dwo", "x", 1);
    shop.files[0] = file_of_elf();
    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, AT_ONCE);
    CHECK_EQ(shop.asked, 0);
    name = ask(&source, SPLIT);
    check_two(&name);
    CHECK_EQ(shop.asked, 1);
    CHECK_EQ(shop.last.kind, KILN_WANTED_DWO);
    CHECK_STR(shop.last.name, "unit.dwo");
    CHECK_STR(shop.last.directory, "/src");
    CHECK_EQ(shop.last.dwo_id, 7);
    stop();
}

TEST(resolver_deep, what_is_no_elf_file_is_refused)
{
    struct shop shop = {.files = {memfd_create("empty", 0)}};
    struct kiln_source source = source_of(file_with_lines(), &shop);
    struct kiln_name name;

    start((struct kiln_resolver_opts){.patient = true});
    name = ask(&source, SPLIT);
    CHECK(!name.shallow);
    CHECK_EQ(name.n, 1);
    CHECK_EQ(shop.asked, 2);
    stop();
}

/* ---- rest ---- */

TEST(resolver_deep, a_child_that_is_not_asked_ends_and_is_started_again_when_needed)
{
    struct kiln_source source = source_of(file_with_lines(), NULL);
    struct kiln_name name;
    struct kiln_resolver_cost before, after;

    start((struct kiln_resolver_opts){.patient = true, .rest_ms = 300});
    name = ask(&source, NOWHERE);
    kiln_resolver_cost(resolver, &before);
    wait_for_end_of(child_pid());
    name = ask(&source, NOWHERE); /* which is known: nobody is started, and nothing is left */
    CHECK_EQ(child_pid(), 0);
    kiln_resolver_cost(resolver, &after);
    CHECK(before.child_bytes > 0 && after.child_bytes == 0);
    name = ask(&source, AT_ONCE);
    check_two(&name);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 0);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 0);
    stop();
}
