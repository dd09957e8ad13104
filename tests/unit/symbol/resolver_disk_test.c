/* SPDX-License-Identifier: Apache-2.0 */
/* A resolver that keeps names on disk, and its next life. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/metric.h"
#include "elf_maker.h"
#include "symbol/resolver.h"
#include "test.h"

#define ID "00112233445566778899aabbccddeeff00112233"

static char folder[64];
static struct kiln_metrics *metrics;

static struct kiln_resolver *start(void)
{
    struct kiln_resolver_opts opts = {.program = "", .shelf_directory = folder};
    struct kiln_resolver *resolver = NULL;

    CHECK_OK(kiln_metrics_new(&metrics));
    opts.metrics = metrics;
    CHECK_OK(kiln_resolver_new(&opts, &resolver, NULL));
    return resolver;
}

static void stop(struct kiln_resolver *resolver)
{
    kiln_resolver_free(resolver);
    kiln_metrics_free(metrics);
}

static double counted(const char *name)
{
    return kiln_metric_value(kiln_metric_get(metrics, KILN_COUNTER, name, "", NULL));
}

static void begin(void)
{
    (void)snprintf(folder, sizeof(folder), "%s", "/tmp/kiln-disk-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void end(void)
{
    char path[512];
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    closedir(dir);
    CHECK_OK(rmdir(folder));
}

/* A file with one function, from 0x1000 on. */
static int program(const char *function)
{
    static struct elf_maker maker;
    static const uint8_t code[16];
    Elf64_Sym symbols[2] = {{0},
                            {.st_name = 1,
                             .st_info = STB_GLOBAL << 4 | STT_FUNC,
                             .st_shndx = 1,
                             .st_value = 0x1000,
                             .st_size = sizeof(code)}};
    char names[64] = "";
    int fd = memfd_create("program", MFD_CLOEXEC);

    (void)snprintf(names + 1, sizeof(names) - 1, "%s", function);
    memset(&maker, 0, sizeof(maker));
    maker.type = ET_DYN;
    elf_maker_add(&maker, (struct elf_part){.name = ".text",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = 0x1000,
                                            .data = code,
                                            .n = sizeof(code)});
    elf_maker_add(&maker,
                  (struct elf_part){
                      .name = ".strtab", .type = SHT_STRTAB, .data = names, .n = sizeof(names)});
    elf_maker_add(&maker, (struct elf_part){.name = ".symtab",
                                            .type = SHT_SYMTAB,
                                            .data = symbols,
                                            .n = sizeof(symbols),
                                            .link = 2,
                                            .entry_size = sizeof(Elf64_Sym)});
    (void)elf_maker_bytes(&maker);
    CHECK_EQ(write(fd, maker.data, maker.n), (ssize_t)maker.n);
    return fd;
}

static const char *ask(struct kiln_resolver *resolver, const struct kiln_source *source,
                       uint64_t address)
{
    static char text[128];
    struct kiln_name name = {0};

    CHECK_OK(kiln_resolver_ask(resolver, source, &address, 1, &name));
    (void)snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(kiln_name_function(&name)));
    return text;
}

TEST(resolver_disk, names_of_a_life_before_are_found_without_reading_the_file)
{
    struct kiln_source source = {.fd = program("found"), .id = 7, .key = KILN_STR(ID)};
    struct kiln_resolver *resolver;

    begin();
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    CHECK_TEXT(ask(resolver, &source, 0x2000), "");
    CHECK_EQ(counted("kiln_names_read_total"), 2);
    CHECK_EQ(counted("kiln_names_from_disk_total"), 0);
    stop(resolver);
    close(source.fd);
    source.fd = program("read");
    source.id = 8;
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    CHECK_EQ(counted("kiln_names_from_disk_total"), 1);
    CHECK_EQ(counted("kiln_names_kept_total"), 1);
    CHECK_EQ(counted("kiln_names_read_total"), 0);
    CHECK_TEXT(ask(resolver, &source, 0x2000), ""); /* the other copy may have had a name there */
    CHECK_EQ(counted("kiln_names_read_total"), 1);
    stop(resolver);
    close(source.fd);
    end();
}

TEST(resolver_disk, names_of_a_file_are_not_those_of_another_owner)
{
    struct kiln_source source = {.fd = program("theirs"), .id = 7, .key = KILN_STR(ID)};
    struct kiln_resolver *resolver;

    if (geteuid() != 0)
        SKIP("only root can give files away");
    begin();
    CHECK_OK(fchown(source.fd, 1000, 1000));
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "theirs");
    stop(resolver);
    close(source.fd);
    source.fd = program("ours");
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "ours");
    CHECK_EQ(counted("kiln_names_from_disk_total"), 0);
    CHECK_OK(fchown(source.fd, 1000, 1000));
    source.id = 8;
    CHECK_TEXT(ask(resolver, &source, 0x1004), "theirs");
    CHECK_EQ(counted("kiln_names_from_disk_total"), 1);
    stop(resolver);
    close(source.fd);
    end();
}

TEST(resolver_disk, a_file_without_a_build_id_is_not_kept)
{
    struct kiln_source source = {.fd = program("found"), .id = 7, .key = KILN_STR("/usr/bin/x")};
    struct kiln_resolver *resolver;

    begin();
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    stop(resolver);
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    CHECK_EQ(counted("kiln_names_read_total"), 1);
    stop(resolver);
    close(source.fd);
    end();
}

/* A debug file by build id. */
static int open_debug(void *context, const struct kiln_wanted *wanted, int *ret_fd)
{
    int *asked = context;

    ++*asked;
    if (wanted->kind != KILN_WANTED_DEBUG || wanted->build_id_len != 20 ||
        wanted->build_id[1] != 0x11)
        return -ENOENT;
    *ret_fd = program("found");
    return 0;
}

TEST(resolver_disk, a_debug_file_that_came_since_is_not_hidden_by_names_without_lines)
{
    int asked = 0;
    struct kiln_source source = {.fd = program("found"), .id = 7, .key = KILN_STR(ID)};
    struct kiln_resolver *resolver;

    begin();
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    stop(resolver);
    source.open = open_debug;
    source.context = &asked;
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    CHECK(asked > 0);
    CHECK_EQ(counted("kiln_names_from_disk_total"), 0);
    CHECK_EQ(counted("kiln_names_read_total"), 1);
    stop(resolver);
    resolver = start();
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    CHECK_EQ(counted("kiln_names_from_disk_total"), 1);
    CHECK_EQ(counted("kiln_names_read_total"), 0);
    stop(resolver);
    close(source.fd);
    end();
}

TEST(resolver_disk, without_a_place_to_write_names_are_found_all_the_same)
{
    const struct kiln_resolver_opts opts = {.program = "", .shelf_directory = "/proc/none/symbols"};
    struct kiln_source source = {.fd = program("found"), .id = 7, .key = KILN_STR(ID)};
    struct kiln_resolver *resolver = NULL;

    CHECK_OK(kiln_resolver_new(&opts, &resolver, NULL));
    CHECK_TEXT(ask(resolver, &source, 0x1004), "found");
    kiln_resolver_free(resolver);
    close(source.fd);
}
