/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script is followed to what runs it, by its first line:
 *
 *   #!/usr/bin/python3 -u
 *   #!/usr/bin/env -S NODE_ENV=test node --flag
 *
 * where `env` looks for the program in PATH.  A text without such a line is run by /bin/sh.
 */
#include "cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "symbol/elf.h"

enum { HEAD_BYTES = 256, SCRIPTS_MAX = 5 /* the kernel's own limit */ };

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

/* ---- finding it ---- */

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int find_in_path(struct kiln_str name, char ret_path[PATH_MAX])
{
    const char *variable = getenv("PATH");
    struct kiln_str rest = kiln_str_of(variable ? variable : "/bin:/usr/bin");

    while (rest.ptr) {
        struct kiln_str folder = kiln_str_cut(&rest, ':');
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%.*s/%.*s", (int)folder.len,
                         folder.len ? folder.ptr : ".", (int)name.len, name.ptr);

        if (folder.len == 0)
            n = snprintf(path, sizeof(path), "./%.*s", (int)name.len, name.ptr);
        if (n > 0 && n < (int)sizeof(path) && is_program(path)) {
            memcpy(ret_path, path, (size_t)n + 1);
            return 0;
        }
    }
    return -ENOENT;
}

static int find_program(struct kiln_str name, char ret_path[PATH_MAX])
{
    if (name.len == 0 || name.len >= PATH_MAX)
        return -ENOENT;
    if (!memchr(name.ptr, '/', name.len))
        return find_in_path(name, ret_path);
    snprintf(ret_path, PATH_MAX, "%.*s", (int)name.len, name.ptr);
    return access(ret_path, F_OK) == 0 ? 0 : -ENOENT;
}

/* ---- scripts ---- */

static struct kiln_str next_word(struct kiln_str *rest)
{
    struct kiln_str word = KILN_STR_NONE;

    while (rest->ptr && word.len == 0)
        word = kiln_str_trim(kiln_str_cut(rest, ' '));
    return word;
}

static struct kiln_str base_of(struct kiln_str path)
{
    for (size_t i = path.len; i > 0; i--)
        if (path.ptr[i - 1] == '/')
            return (struct kiln_str){path.ptr + i, path.len - i};
    return path;
}

/* What `env` would start: behind its options and what it sets. */
static struct kiln_str behind_env(struct kiln_str rest)
{
    struct kiln_str word;

    do
        word = next_word(&rest);
    while (word.len && (word.ptr[0] == '-' || memchr(word.ptr, '=', word.len)));
    return word;
}

static struct kiln_str interpreter(struct kiln_str head)
{
    struct kiln_str line = kiln_str_cut(&head, '\n'), word;

    if (line.len < 2 || memcmp(line.ptr, "#!", 2) != 0)
        return KILN_STR("/bin/sh");
    line = kiln_str_trim((struct kiln_str){line.ptr + 2, line.len - 2});
    word = next_word(&line);
    return kiln_str_eq(base_of(word), KILN_STR("env")) ? behind_env(line) : word;
}

/* ---- the file that runs ---- */

static bool begins(struct kiln_str text, const char *with)
{
    size_t n = strlen(with);

    return text.len >= n && memcmp(text.ptr, with, n) == 0;
}

/* By the name of the file that links lead to: /usr/bin/nodejs, python3.11. */
static uint32_t kind_of(const char *path)
{
    static const char *const shells[] = {"sh", "dash", "bash", "zsh", "ksh", "busybox"};
    char real[PATH_MAX];
    struct kiln_str base;

    base = base_of(kiln_str_of(realpath(path, real) ? real : path));
    if (kiln_str_eq(base, KILN_STR("node")) || kiln_str_eq(base, KILN_STR("nodejs")))
        return KILN_PROGRAM_NODE;
    if (begins(base, "python"))
        return KILN_PROGRAM_PYTHON;
    for (size_t i = 0; i < KILN_ARRAY_LEN(shells); i++)
        if (kiln_str_eq(base, kiln_str_of(shells[i])))
            return KILN_PROGRAM_SHELL;
    return KILN_PROGRAM_PLAIN;
}

/* Where the loader will see AT_SECURE: more rights come with the file than we have. */
static bool is_secure(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return false;
    if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
        return true;
    if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
        return true;
    return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static uint32_t bar_of_loader(const struct kiln_elf *elf)
{
    char name[64] = "";

    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];
        size_t n = s->file_size < sizeof(name) - 1 ? s->file_size : sizeof(name) - 1;

        if (s->type != PT_INTERP)
            continue;
        if (elf->bytes.read(&elf->bytes, s->offset, name, n) < 0)
            return KILN_BAR_NONE;
        return strstr(name, "ld-musl") ? KILN_BAR_MUSL : KILN_BAR_NONE;
    }
    return KILN_BAR_STATIC;
}

static uint32_t bar_of_elf(const struct kiln_elf *elf)
{
    if (elf->machine != MACHINE)
        return KILN_BAR_FOREIGN;
    if (kiln_elf_section(elf, ".go.buildinfo"))
        return KILN_BAR_GO;
    return bar_of_loader(elf);
}

/* ---- what it is linked with ---- */

enum { DYNAMIC_BYTES_MAX = 1 << 16, NAMES_BYTES_MAX = 16 << 20 };

static bool is_sanitizer(const char *library)
{
    return strncmp(library, "libasan.", 8) == 0 || strncmp(library, "libtsan.", 8) == 0 ||
           strncmp(library, "libhwasan.", 10) == 0 || strstr(library, "libclang_rt.");
}

static void look_at_needs(const Elf64_Dyn *entries, size_t n, const char *names, size_t n_names,
                          struct kiln_program *program)
{
    for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++) {
        const char *name = names + entries[i].d_un.d_val;

        if (entries[i].d_tag != DT_NEEDED || entries[i].d_un.d_val >= n_names ||
            !memchr(name, '\0', n_names - entries[i].d_un.d_val))
            continue;
        program->sanitizer |= is_sanitizer(name);
    }
}

static void read_needs(const struct kiln_elf *elf, struct kiln_program *program)
{
    const struct kiln_elf_section *dynamic = kiln_elf_section(elf, ".dynamic");
    const struct kiln_elf_section *strings = kiln_elf_section(elf, ".dynstr");
    void *entries, *names;
    size_t n, n_names;

    if (!dynamic || !strings || kiln_elf_load(elf, dynamic, DYNAMIC_BYTES_MAX, &entries, &n) < 0)
        return;
    if (kiln_elf_load(elf, strings, NAMES_BYTES_MAX, &names, &n_names) == 0) {
        look_at_needs(entries, n / sizeof(Elf64_Dyn), names, n_names, program);
        kiln_free(names);
    }
    kiln_free(entries);
}

static uint32_t bar_of_file(int fd, struct kiln_program *program)
{
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    uint32_t bar;
    int r = kiln_bytes_file(fd, &bytes);

    if (r == 0)
        r = kiln_elf_open(&bytes, &elf);
    if (r == KILN_E_UNSUPPORTED)
        return KILN_BAR_FOREIGN;
    if (r < 0)
        return KILN_BAR_NONE;
    bar = bar_of_elf(elf);
    read_needs(elf, program);
    kiln_elf_close(elf);
    return bar == KILN_BAR_NONE && is_secure(fd) ? KILN_BAR_SECURE : bar;
}

/* 1: the path is that of another file now, which runs this one. */
static int look_at_file(int fd, struct kiln_program *program)
{
    char head[HEAD_BYTES];
    ssize_t n = pread(fd, head, sizeof(head), 0);

    if (n >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0) {
        program->bar = bar_of_file(fd, program);
        return 0;
    }
    if (n < 0)
        return 0;
    return find_program(interpreter((struct kiln_str){head, (size_t)n}), program->path) < 0 ? 0 : 1;
}

int kiln_program_look(const char *command, struct kiln_program *ret_program, struct kiln_err *err)
{
    struct kiln_program program = {.bar = KILN_BAR_NONE};
    int again = 1;

    if (find_program(kiln_str_of(command), program.path) < 0)
        return kiln_err_set(err, -EINVAL, command, "there is no such program");
    for (int i = 0; i < SCRIPTS_MAX && again; i++) {
        int fd = open(program.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        again = fd >= 0 ? look_at_file(fd, &program) : 0;
        if (fd >= 0)
            close(fd);
    }
    program.kind = kind_of(program.path);
    *ret_program = program;
    return 0;
}

const char *kiln_program_why(uint32_t bar)
{
    switch ((enum kiln_program_bar)bar) {
    case KILN_BAR_NONE:
        return NULL;
    case KILN_BAR_GO:
        return "is written in Go, whose runtime does not use the C library: import net/http/pprof "
               "and let a source of `kiln server` fetch it, or sample its CPU time from outside "
               "(kiln record, kiln agent)";
    case KILN_BAR_STATIC:
        return "is linked statically, so that no library can be put in front of its C library: "
               "link it without -static, or sample its CPU time from outside (kiln record, kiln "
               "agent); libkiln-context.a tells its spans";
    case KILN_BAR_FOREIGN:
        return "is not a 64-bit program of this machine, and libkiln is: sample its CPU time from "
               "outside (kiln record, kiln agent)";
    case KILN_BAR_MUSL:
        return "is linked with musl, and libkiln with glibc: sample its CPU time from outside "
               "(kiln "
               "record, kiln agent); libkiln-context.a tells its spans";
    case KILN_BAR_SECURE:
        return "is setuid, setgid or has capabilities of its own, for which the loader preloads "
               "nothing: run it as its owner (root: sudo kiln run ...), or sample its CPU time "
               "from outside (kiln record, kiln agent)";
    }
    return NULL;
}
