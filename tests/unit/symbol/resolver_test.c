/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver with a real, confined child, forked from this program. */
#include "symbol/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/metric.h"
#include "elf_maker.h"
#include "frame_maker.h"
#include "test.h"

static struct kiln_metrics *metrics;

static struct kiln_resolver *start(uint32_t file_cpu_ms)
{
    struct kiln_resolver_opts opts = {.program = "", .file_cpu_ms = file_cpu_ms};
    struct kiln_resolver *resolver = NULL;
    struct kiln_err err = {0};

    CHECK_OK(kiln_metrics_new(&metrics));
    opts.metrics = metrics;
    CHECK_OK(kiln_resolver_new(&opts, &resolver, &err));
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

/* A descriptor of a file with this content, which has no name. */
static int file_of(const void *data, size_t n)
{
    int fd = memfd_create("names", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, data, n), (ssize_t)n);
    return fd;
}

static int map_of(const char *text)
{
    return file_of(text, strlen(text));
}

static struct kiln_source source_of(enum kiln_source_kind kind, int fd, uint64_t id,
                                    uint64_t version, const char *key)
{
    return (struct kiln_source){
        .kind = kind, .fd = fd, .id = id, .version = version, .key = kiln_str_of(key)};
}

/* What is said of an address, with its innermost function. */
struct answer {
    struct kiln_str function, module;
    uint64_t begin;
};

static struct answer ask(struct kiln_resolver *resolver, struct kiln_source source,
                         uint64_t address)
{
    struct kiln_name name = {0};

    CHECK_OK(kiln_resolver_ask(resolver, &source, &address, 1, &name));
    return (struct answer){kiln_name_function(&name), name.module, name.begin};
}

/* The child of this process; 0: none. */
static pid_t child_pid(void)
{
    char path[64];
    char text[32] = "";
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    CHECK(read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    return (pid_t)strtol(text, NULL, 10);
}

/* While nobody asks it anything: it is dead when this returns. */
static void kill_child(void)
{
    pid_t pid = child_pid();
    siginfo_t info;

    CHECK_OK(kill(pid, SIGKILL));
    CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
}

/* A field of /proc/PID/status. */
static void check_status(pid_t pid, const char *field, const char *value)
{
    char path[64];
    char text[4096] = "";
    const char *line;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    CHECK(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    line = strstr(text, field);
    CHECK(line != NULL);
    line += strlen(field) + 1;
    if (strncmp(line, value, strlen(value)) != 0)
        fail_msg("%s is %.40s", field, line);
}

TEST(resolver, names_what_a_file_has)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 first thing\n2000 10 second\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");

    CHECK_STR(ask(resolver, source, 0x1000).function, "first thing");
    CHECK_STR(ask(resolver, source, 0x10ff).function, "first thing");
    CHECK_EQ(ask(resolver, source, 0x1100).function.len, 0);
    CHECK_STR(ask(resolver, source, 0x2008).function, "second");
    CHECK_EQ(counted("kiln_names_asked_total"), 4);
    CHECK_EQ(counted("kiln_names_found_total"), 3);
    CHECK_EQ(counted("kiln_names_missing_total"), 1);
    close(fd);
    stop(resolver);
}

/* A library of n functions without names, of 0x20 bytes each, from 0x1010 on. */
static int file_of_functions(uint32_t n)
{
    static struct elf_maker maker;
    static uint8_t code[0x3000];
    static struct frame_maker frames;
    size_t cie;

    frames = (struct frame_maker){.address = 0x5000};
    cie = frame_maker_cie(&frames, &(struct frame_cie){.encoding = 0x1b});
    for (uint32_t i = 0; i < n; i++)
        frame_maker_fde(&frames, cie, 0x1010 + 0x20 * (uint64_t)i, 0x20, FRAME_PROGRAM(""));
    maker = (struct elf_maker){.type = ET_DYN};
    elf_maker_add(&maker, (struct elf_part){.name = ".text",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = 0x1000,
                                            .data = code,
                                            .n = sizeof(code)});
    elf_maker_add(&maker, (struct elf_part){.name = ".eh_frame",
                                            .flags = SHF_ALLOC,
                                            .address = 0x5000,
                                            .data = frames.data,
                                            .n = frames.n});
    (void)elf_maker_bytes(&maker);
    return file_of(maker.data, maker.n);
}

TEST(resolver, tells_where_one_of_many_functions_begins)
{
    struct kiln_resolver *resolver = start(0);
    struct kiln_source source = {
        .kind = KILN_SOURCE_ELF, .fd = file_of_functions(250), .id = 1, .key = KILN_STR("a")};

    CHECK_EQ(ask(resolver, source, 0x1010 + 0x20 * 200 + 5).begin, 0x1010 + 0x20 * 200);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 0);
    close(source.fd);
    stop(resolver);
}

TEST(resolver, tells_where_a_function_without_a_name_begins)
{
    struct kiln_resolver *resolver = start(0);
    struct kiln_source source = {
        .kind = KILN_SOURCE_ELF, .fd = file_of_functions(1), .id = 1, .key = KILN_STR("a")};

    for (int again = 0; again < 2; again++) {
        CHECK_EQ(ask(resolver, source, 0x1018).begin, 0x1010);
        CHECK_EQ(ask(resolver, source, 0x102f).begin, 0x1010);
        CHECK_EQ(ask(resolver, source, 0x1030).begin, 0);
    }
    CHECK_EQ(counted("kiln_names_kept_total"), 3);
    CHECK_EQ(counted("kiln_names_found_total"), 0);
    CHECK_EQ(counted("kiln_names_missing_total"), 6);
    close(source.fd);
    stop(resolver);
}

TEST(resolver, answers_from_memory_what_it_was_asked_before)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 kept\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");

    CHECK_STR(ask(resolver, source, 0x1000).function, "kept");
    CHECK_EQ(ask(resolver, source, 0x5000).function.len, 0);
    kill_child();
    source.fd = -1;
    CHECK_STR(ask(resolver, source, 0x1000).function, "kept");
    CHECK_EQ(ask(resolver, source, 0x5000).function.len, 0);
    CHECK_EQ(counted("kiln_names_kept_total"), 2);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 0);
    close(fd);
    stop(resolver);
}

TEST(resolver, the_child_answers_of_open_files_without_a_descriptor)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 open\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");

    CHECK_STR(ask(resolver, source, 0x1000).function, "open");
    close(fd);
    source.fd = -1;
    CHECK_STR(ask(resolver, source, 0x1001).function, "open");
    source.id = 2;
    CHECK_EQ(ask(resolver, source, 0x1001).function.len, 0);
    stop(resolver);
}

TEST(resolver, sources_of_different_kinds_may_have_the_same_id)
{
    struct kiln_resolver *resolver = start(0);
    struct kiln_source map = source_of(KILN_SOURCE_PERF_MAP, map_of("1000 100 map\n"), 1, 1, "a");
    struct kiln_source kernel = source_of(KILN_SOURCE_KERNEL, map_of("1000 T kernel\n"), 1, 1, "b");

    CHECK_STR(ask(resolver, map, 0x1000).function, "map");
    CHECK_STR(ask(resolver, kernel, 0x1000).function, "kernel");
    CHECK_STR(ask(resolver, map, 0x1000).function, "map");
    close(map.fd);
    close(kernel.fd);
    stop(resolver);
}

TEST(resolver, a_new_version_is_read_again)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 old\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");

    CHECK_STR(ask(resolver, source, 0x1000).function, "old");
    CHECK(pwrite(fd, "1000 80 new\n", 12, 13) == 12);
    CHECK_STR(ask(resolver, source, 0x1004).function, "old");
    source.version = 2;
    CHECK_STR(ask(resolver, source, 0x1000).function, "new");
    CHECK_STR(ask(resolver, source, 0x1080).function, "old");
    CHECK_OK(ftruncate(fd, 0));
    CHECK(pwrite(fd, "1000 100 another\n2000 100 more\n", 31, 0) == 31);
    source.version = 3;
    CHECK_STR(ask(resolver, source, 0x1000).function, "another");
    CHECK_STR(ask(resolver, source, 0x2000).function, "more");
    close(fd);
    stop(resolver);
}

TEST(resolver, many_addresses_and_long_names_come_in_pieces)
{
    enum { N = 2000 };
    struct kiln_resolver *resolver = start(0);
    struct kiln_name *names = calloc(N, sizeof(*names));
    uint64_t *addresses = calloc(N, sizeof(*addresses));
    char *text = calloc(N + 1, 2100);
    size_t len = 0;
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, -1, 1, 1, "a");

    for (uint32_t i = 0; i < N; i++) {
        len += (size_t)snprintf(text + len, 64, "%x 10 n%u_", 0x1000 + i * 16, i);
        memset(text + len, 'x', 2000);
        len += 2000;
        text[len++] = '\n';
        addresses[i] = 0x1000 + i * 16 + 7;
    }
    source.fd = file_of(text, len);
    CHECK_OK(kiln_resolver_ask(resolver, &source, addresses, N, names));
    for (uint32_t i = 0; i < N; i++) {
        char start_of[16];

        (void)snprintf(start_of, sizeof(start_of), "n%u_x", i);
        CHECK(kiln_str_starts(kiln_name_function(names + i), kiln_str_of(start_of)));
    }
    close(source.fd);
    free(text);
    free(names);
    free(addresses);
    stop(resolver);
}

TEST(resolver, garbage_has_no_names)
{
    struct kiln_resolver *resolver = start(0);
    struct kiln_source source = source_of(KILN_SOURCE_ELF, map_of("\177ELFgarbage"), 1, 1, "g");
    int pipes[2];

    CHECK_EQ(ask(resolver, source, 0x1000).function.len, 0);
    close(source.fd);
    CHECK_OK(pipe(pipes));
    source = source_of(KILN_SOURCE_ELF, pipes[0], 2, 1, "p");
    CHECK_EQ(ask(resolver, source, 0x1000).function.len, 0);
    close(pipes[0]);
    close(pipes[1]);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 0);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 0);
    stop(resolver);
}

TEST(resolver, a_child_that_is_killed_is_started_again)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 here\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");

    CHECK_STR(ask(resolver, source, 0x1000).function, "here");
    kill_child();
    CHECK_STR(ask(resolver, source, 0x1001).function, "here");
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 1);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 0);
    close(fd);
    stop(resolver);
}

/* Whom to kill, once this thread waits for its answer. */
struct killing {
    pid_t child, asker;
    _Atomic bool answered; /* too late */
};

static void *kill_it(void *context)
{
    struct killing *killing = context;
    char wanted[16];
    char path[64];
    char text[16] = "";

    (void)snprintf(wanted, sizeof(wanted), "%d ", SYS_poll);
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", killing->asker);
    while (strncmp(text, wanted, strlen(wanted)) != 0 && !killing->answered) {
        int fd = open(path, O_RDONLY);

        if (read(fd, text, sizeof(text) - 1) < 0)
            text[0] = '\0';
        close(fd);
    }
    kill(killing->child, SIGKILL);
    return NULL;
}

/* The child dies on it: it is stopped before, and killed while it is waited for. */
static struct answer ask_and_kill(struct kiln_resolver *resolver, struct kiln_source source,
                                  uint64_t address)
{
    struct killing killing = {.child = child_pid(), .asker = gettid()};
    struct answer name;
    pthread_t thread;

    kill(killing.child, SIGSTOP);
    CHECK_OK(pthread_create(&thread, NULL, kill_it, &killing));
    name = ask(resolver, source, address);
    killing.answered = true;
    CHECK_OK(pthread_join(thread, NULL));
    return name;
}

TEST(resolver, a_child_that_is_killed_while_it_is_asked_is_asked_again)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 here\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");

    CHECK_STR(ask(resolver, source, 0x1000).function, "here");
    CHECK_STR(ask_and_kill(resolver, source, 0x1001).function, "here");
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 1);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 0);
    close(fd);
    stop(resolver);
}

TEST(resolver, a_file_on_which_the_child_dies_twice_is_set_aside)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 here\n");
    struct kiln_source bad = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "bad");
    struct kiln_source good = source_of(KILN_SOURCE_PERF_MAP, fd, 2, 1, "good");

    CHECK_STR(ask(resolver, good, 0x1000).function, "here");
    CHECK_STR(ask_and_kill(resolver, bad, 0x1000).function, "here");
    CHECK_EQ(ask_and_kill(resolver, bad, 0x1001).function.len, 0);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 1);
    CHECK_EQ(ask(resolver, bad, 0x1005).function.len, 0);
    CHECK_STR(ask(resolver, good, 0x1005).function, "here");
    close(fd);
    stop(resolver);
}

/* A perf-map that takes long to read: many pieces, each over all before. */
static int slow_map(void)
{
    enum { N = 400000 };
    char *text = malloc(N * 24 + 64);
    size_t len = 0;
    int fd;

    for (uint32_t i = 0; i < N; i++)
        len += (size_t)snprintf(text + len, 64, "%x 100000 a\n", 0x10000 + (i * 7919 % N));
    fd = file_of(text, len);
    free(text);
    return fd;
}

TEST(resolver, a_file_that_takes_too_long_is_set_aside_and_others_are_not)
{
    struct kiln_resolver *resolver = start(20);
    struct kiln_source slow = source_of(KILN_SOURCE_PERF_MAP, slow_map(), 1, 1, "slow");
    struct kiln_source good =
        source_of(KILN_SOURCE_PERF_MAP, map_of("1000 100 here\n"), 2, 1, "good");

    (void)ask(resolver, slow, 0x10000);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 1);
    CHECK_STR(ask(resolver, good, 0x1000).function, "here");
    CHECK_EQ(ask(resolver, slow, 0x10001).function.len, 0);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 1);
    close(slow.fd);
    close(good.fd);
    stop(resolver);
}

/* An ELF file of almost nothing but a promise: a symbol table of so many gigabytes of zeros. */
static int huge_table(uint64_t bytes)
{
    static struct elf_maker maker;
    static const uint8_t code[16];
    const struct elf_part text = {.name = ".text",
                                  .flags = SHF_ALLOC | SHF_EXECINSTR,
                                  .address = 0x1000,
                                  .data = code,
                                  .n = sizeof(code)};
    Elf64_Ehdr *header = (Elf64_Ehdr *)maker.data;
    Elf64_Shdr *sections;
    int fd;

    memset(&maker, 0, sizeof(maker));
    maker.type = ET_DYN;
    elf_maker_add(&maker, text);
    elf_maker_add(&maker, (struct elf_part){.name = ".strtab", .type = SHT_STRTAB});
    elf_maker_add(&maker, (struct elf_part){
                              .name = ".symtab", .type = SHT_SYMTAB, .link = 2, .entry_size = 24});
    (void)elf_maker_bytes(&maker);
    sections = (Elf64_Shdr *)(maker.data + header->e_shoff);
    sections[2].sh_offset = sections[3].sh_offset = 1 << 20;
    sections[2].sh_size = sections[3].sh_size = bytes;
    fd = file_of(maker.data, maker.n);
    CHECK_OK(ftruncate(fd, (off_t)bytes + (2 << 20)));
    return fd;
}

TEST(resolver, a_table_that_is_huge_does_no_harm)
{
    struct kiln_resolver *resolver = start(0);
    struct kiln_source huge =
        source_of(KILN_SOURCE_ELF, huge_table(UINT64_C(1) << 40), 1, 1, "huge");
    struct kiln_source good =
        source_of(KILN_SOURCE_PERF_MAP, map_of("1000 100 here\n"), 2, 1, "good");

    CHECK_EQ(ask(resolver, huge, 0x1000).function.len, 0);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 0);
    CHECK_STR(ask(resolver, good, 0x1000).function, "here");
    close(huge.fd);
    close(good.fd);
    stop(resolver);
}

TEST(resolver, a_table_that_takes_long_is_set_aside)
{
    struct kiln_resolver *resolver = start(20);
    struct kiln_source huge =
        source_of(KILN_SOURCE_ELF, huge_table(UINT64_C(600) << 20), 1, 1, "huge");
    struct kiln_source good =
        source_of(KILN_SOURCE_PERF_MAP, map_of("1000 100 here\n"), 2, 1, "good");

    CHECK_EQ(ask(resolver, huge, 0x1000).function.len, 0);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 1);
    CHECK_STR(ask(resolver, good, 0x1000).function, "here");
    close(huge.fd);
    close(good.fd);
    stop(resolver);
}

TEST(resolver, a_child_that_somebody_stopped_is_replaced_and_no_file_is_blamed)
{
    struct kiln_resolver *resolver = start(20);
    int fd = map_of("1000 100 here\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");

    CHECK_STR(ask(resolver, source, 0x1000).function, "here");
    CHECK_OK(kill(child_pid(), SIGSTOP));
    CHECK_STR(ask(resolver, source, 0x1001).function, "here");
    CHECK_EQ(counted("kiln_names_set_aside_total"), 0);
    CHECK_EQ(counted("kiln_names_child_restarts_total"), 1);
    close(fd);
    stop(resolver);
}

/* A resolver whose child is another program. */
static struct kiln_resolver *start_program(const char *program)
{
    struct kiln_resolver_opts opts = {.program = program, .file_cpu_ms = 20};
    struct kiln_resolver *resolver = NULL;

    CHECK_OK(kiln_metrics_new(&metrics));
    opts.metrics = metrics;
    CHECK_OK(kiln_resolver_new(&opts, &resolver, NULL));
    return resolver;
}

TEST(resolver, without_a_child_it_says_so)
{
    struct kiln_resolver *resolver = start_program("/nowhere/kiln");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, -1, 1, 1, "a");
    uint64_t address = 0x1000;
    struct kiln_name name;

    CHECK_EQ(kiln_resolver_ask(resolver, &source, &address, 1, &name), -ENOENT);
    CHECK_EQ(name.n, 0);
    stop(resolver);
}

/* Asks a child that answers the greeting, as if confined, and then does this; it is blamed. */
static void ask_script(const char *what)
{
    char path[] = "/tmp/kiln-child-XXXXXX", script[256];
    int script_fd = mkstemp(path);
    int fd = map_of("1000 100 here\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");
    struct kiln_resolver *resolver;

    CHECK(script_fd >= 0);
    snprintf(script, sizeof(script),
             "#!/bin/sh\ndd bs=32 count=1 <&3 >&3 2>/dev/null\n%s\nexec sleep 1000\n", what);
    CHECK_EQ(write(script_fd, script, strlen(script)), (ssize_t)strlen(script));
    CHECK_OK(fchmod(script_fd, 0700));
    close(script_fd);
    resolver = start_program(path);
    CHECK_EQ(ask(resolver, source, 0x1000).function.len, 0);
    CHECK_EQ(counted("kiln_names_set_aside_total"), 1);
    CHECK_EQ(child_pid(), 0);
    close(fd);
    CHECK_OK(unlink(path));
    stop(resolver);
}

TEST(resolver, a_child_that_says_what_it_must_not_is_not_believed)
{
    ask_script("printf '%0100d' 0 >&3");
}

TEST(resolver, a_file_on_which_two_children_hang_is_set_aside)
{
    ask_script("");
}

TEST(resolver, children_are_not_started_without_end)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 here\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");
    const uint64_t both[] = {0x1000, 0x10ff};
    struct kiln_name names[2];
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < 50; i++) {
        uint64_t address = 0x1000 + i;

        r = kiln_resolver_ask(resolver, &source, &address, 1, names);
        if (child_pid())
            kill_child();
    }
    CHECK_EQ(r, -EAGAIN);
    /* what was known before is known still */
    CHECK_EQ(kiln_resolver_ask(resolver, &source, both, 2, names), -EAGAIN);
    CHECK_STR(kiln_name_function(names), "here");
    CHECK_EQ(names[1].n, 0);
    close(fd);
    stop(resolver);
}

TEST(resolver, what_is_kept_stays_below_its_limit)
{
    enum { N = 512, ROUNDS = 200 };
    struct kiln_resolver_opts opts = {.program = "", .cache_bytes = 2 << 20};
    struct kiln_resolver *resolver = NULL;
    struct kiln_name names[N];
    uint64_t addresses[N];
    char text[] = "0 ffffff a name\n";
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, map_of(text), 1, 1, "a");

    CHECK_OK(kiln_metrics_new(&metrics));
    opts.metrics = metrics;
    CHECK_OK(kiln_resolver_new(&opts, &resolver, NULL));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < N; i++)
            addresses[i] = round * N + i;
        CHECK_OK(kiln_resolver_ask(resolver, &source, addresses, N, names));
        for (uint32_t i = 0; i < N; i++)
            CHECK_STR(kiln_name_function(names + i), "a name");
        CHECK(kiln_metric_value(kiln_metric_get(metrics, KILN_GAUGE, "kiln_names_kept_bytes", "",
                                                NULL)) <= 2 << 20);
    }
    close(source.fd);
    stop(resolver);
}

TEST(resolver, the_child_has_nothing_that_it_could_misuse)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("1000 100 here\n");
    struct kiln_source source = source_of(KILN_SOURCE_PERF_MAP, fd, 1, 1, "a");
    char path[64];
    pid_t pid;

    CHECK_STR(ask(resolver, source, 0x1000).function, "here");
    pid = child_pid();
    check_status(pid, "\nSeccomp:", "2");
    check_status(pid, "\nNoNewPrivs:", "1");
    check_status(pid, "\nCapEff:", "0000000000000000");
    check_status(pid, "\nCapPrm:", "0000000000000000");
    check_status(pid, "\nCapBnd:", "0000000000000000");
    if (geteuid() == 0)
        check_status(pid, "\nUid:", "65534\t65534\t65534\t65534");
    /* Its socket, three of /dev/null, a scratch file, two of /proc about itself, and the file it
     * keeps. */
    for (int i = 8; i < 64; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, i);
        CHECK(access(path, F_OK) != 0);
    }
    close(fd);
    stop(resolver);
}

TEST(resolver, the_kernel_has_names)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("ffffffff81000000 T _stext\nffffffff81000000 T stext\n"
                    "ffffffff81000100 t local\nffffffff81000200 D data\n"
                    "ffffffffc0000000 t nft_do_chain\t[nf_tables]\n");
    struct kiln_source source = source_of(KILN_SOURCE_KERNEL, fd, 1, 1, "kernel");
    struct answer name = ask(resolver, source, 0xffffffff81000010);

    CHECK_STR(name.function, "stext");
    CHECK_EQ(name.module.len, 0);
    CHECK_STR(ask(resolver, source, 0xffffffff810001ff).function, "local");
    CHECK_EQ(ask(resolver, source, 0xffffffff81000200).function.len, 0);
    name = ask(resolver, source, 0xffffffffc0000010);
    CHECK_STR(name.function, "nft_do_chain");
    CHECK_STR(name.module, "nf_tables");
    close(fd);
    stop(resolver);
}

TEST(resolver, a_kernel_that_hides_its_addresses_has_no_names_and_it_is_counted)
{
    struct kiln_resolver *resolver = start(0);
    int fd = map_of("0000000000000000 T _stext\n0000000000000000 T main\n");
    struct kiln_source source = source_of(KILN_SOURCE_KERNEL, fd, 1, 1, "kernel");
    struct kiln_metric *hidden;

    CHECK_EQ(ask(resolver, source, 0xffffffff81000010).function.len, 0);
    hidden = kiln_metric_get(metrics, KILN_GAUGE, "kiln_names_kernel_hidden", "", NULL);
    CHECK_EQ(kiln_metric_value(hidden), 1);
    close(fd);
    stop(resolver);
}
