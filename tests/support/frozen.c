/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file is an ELF file: notes with registers (NT_PRSTATUS) and the files that are mapped
 * (NT_FILE: count, page size, count x {start, end, offset in pages}, names), and a segment for each
 * mapping.  Its /proc is a folder PID with `maps` written from those, and `root` leading to /.
 */
#include "frozen.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"

enum { TABLE_BYTES = 64 << 20, STOP_TRIES = 1000 };

/* ---- a stopped process ---- */

static void take_registers(struct frozen *f, const struct user_regs_struct *regs)
{
    f->registers = (struct kiln_registers){
        .r = {regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi, regs->rbp,
              regs->rsp, regs->r8, regs->r9, regs->r10, regs->r11, regs->r12, regs->r13, regs->r14,
              regs->r15},
        .pc = regs->rip,
    };
}

static int read_process(void *context, uint64_t address, void *to, size_t n)
{
    struct frozen *f = context;
    struct iovec local = {to, n}, remote = {(void *)(uintptr_t)address, n};
    return process_vm_readv(f->pid, &local, 1, &remote, 1, 0) == (ssize_t)n ? 0 : -1;
}

static int wait_stop(pid_t tid)
{
    for (int tries = 0; tries < STOP_TRIES; tries++) {
        int status = 0;
        pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got < 0 || (got == tid && !WIFSTOPPED(status)))
            return -ESRCH;
        if (got == 0)
            usleep(50);
        else if (status >> 16 == PTRACE_EVENT_STOP)
            return 0;
        /* A signal of its own on the way: hand it on. */
        else if (ptrace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : WSTOPSIG(status)) != 0)
            return -errno;
    }
    return -EAGAIN;
}

int frozen_stop(struct frozen *f, pid_t pid, pid_t tid)
{
    struct user_regs_struct regs;
    *f = (struct frozen){.pid = pid, .tid = tid};
    f->memory = (struct kiln_stack_memory){.read = read_process, .context = f};
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0)
        return -errno;
    int failed = wait_stop(tid);
    if (failed)
        return failed;
    if (ptrace(PTRACE_GETREGS, tid, 0, &regs) != 0)
        return -errno;
    take_registers(f, &regs);
    return 0;
}

int frozen_go(struct frozen *f)
{
    return ptrace(PTRACE_CONT, f->tid, 0, 0) == 0 ? 0 : -errno;
}

/* ---- a core file ---- */

struct core_notes {
    uint64_t vdso;
    uint64_t n_files;
    const uint64_t *files; /* start, end, page of each */
    const char *names;
    uint64_t page_size;
    bool has_registers;
};

static const Elf64_Phdr *core_segments(const struct frozen *f, unsigned *ret_n)
{
    const Elf64_Ehdr *head = (const void *)f->core;
    *ret_n = head->e_phnum;
    return (const void *)(f->core + head->e_phoff);
}

static int read_core(void *context, uint64_t address, void *to, size_t n)
{
    struct frozen *f = context;
    unsigned count;
    const Elf64_Phdr *s = core_segments(f, &count);
    for (unsigned i = 0; i < count; i++)
        if (s[i].p_type == PT_LOAD && address >= s[i].p_vaddr &&
            address - s[i].p_vaddr + n <= s[i].p_filesz) {
            memcpy(to, f->core + s[i].p_offset + (address - s[i].p_vaddr), n);
            return 0;
        }
    return -1;
}

static void take_note(struct frozen *f, uint32_t type, const uint8_t *body,
                      struct core_notes *notes)
{
    if (type == NT_PRSTATUS && !notes->has_registers) {
        struct elf_prstatus status;
        struct user_regs_struct regs;
        memcpy(&status, body, sizeof(status));
        memcpy(&regs, status.pr_reg, sizeof(regs));
        f->pid = f->tid = status.pr_pid;
        take_registers(f, &regs);
        notes->has_registers = true;
    } else if (type == NT_AUXV) {
        for (const Elf64_auxv_t *a = (const void *)body; a->a_type != AT_NULL; a++)
            if (a->a_type == AT_SYSINFO_EHDR)
                notes->vdso = a->a_un.a_val;
    } else if (type == NT_FILE) {
        const uint64_t *words = (const void *)body;
        notes->n_files = words[0];
        notes->page_size = words[1];
        notes->files = words + 2;
        notes->names = (const char *)(words + 2 + 3 * words[0]);
    }
}

static int read_notes(struct frozen *f, struct core_notes *notes)
{
    unsigned count;
    const Elf64_Phdr *s = core_segments(f, &count);
    for (unsigned i = 0; i < count; i++) {
        if (s[i].p_type != PT_NOTE)
            continue;
        for (uint64_t at = s[i].p_offset;
             at + sizeof(Elf64_Nhdr) <= s[i].p_offset + s[i].p_filesz;) {
            const Elf64_Nhdr *head = (const void *)(f->core + at);
            uint64_t body = at + sizeof(*head) + ((head->n_namesz + 3u) & ~3u);
            take_note(f, head->n_type, f->core + body, notes);
            at = body + ((head->n_descsz + 3u) & ~3u);
        }
    }
    return notes->has_registers ? 0 : -ENOENT;
}

struct core_map {
    uint64_t start, end, offset;
    const char *path;
};

/* Debuggers leave out what files have: a mapping of a file without a segment may well be code. */
static bool is_code(const struct frozen *f, uint64_t address)
{
    unsigned count;
    const Elf64_Phdr *s = core_segments(f, &count);
    for (unsigned i = 0; i < count; i++)
        if (s[i].p_type == PT_LOAD && address - s[i].p_vaddr < s[i].p_memsz)
            return s[i].p_flags & PF_X;
    return true;
}

static void write_map(FILE *out, const struct core_map *map)
{
    struct stat st = {0};
    if (map->path[0] == '/')
        (void)stat(map->path, &st);
    fprintf(out, "%lx-%lx r-xp %08lx %02x:%02x %lu %s\n", map->start, map->end, map->offset,
            major(st.st_dev), minor(st.st_dev), st.st_ino, map->path);
}

static void write_maps(FILE *out, const struct frozen *f, const struct core_notes *notes)
{
    const char *name = notes->names;
    unsigned count;
    const Elf64_Phdr *s = core_segments(f, &count);
    for (uint64_t i = 0; i < notes->n_files; i++, name += strlen(name) + 1) {
        const uint64_t *file = notes->files + 3 * i;
        struct core_map map = {file[0], file[1], file[2] * notes->page_size, name};
        if (is_code(f, file[0]))
            write_map(out, &map);
    }
    for (unsigned i = 0; i < count; i++)
        if (s[i].p_type == PT_LOAD && s[i].p_vaddr == notes->vdso)
            write_map(out,
                      &(struct core_map){s[i].p_vaddr, s[i].p_vaddr + s[i].p_memsz, 0, "[vdso]"});
}

static FILE *open_in(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return fopen(path, "w");
}

static int make_proc(struct frozen *f, const struct core_notes *notes)
{
    char folder[96], root[112];
    snprintf(f->proc, sizeof(f->proc), "/tmp/kiln-core-XXXXXX");
    if (!mkdtemp(f->proc))
        return -errno;
    snprintf(folder, sizeof(folder), "%s/%d", f->proc, (int)f->pid);
    snprintf(root, sizeof(root), "%s/root", folder);
    if (mkdir(folder, 0700) != 0 || symlink("/", root) != 0)
        return -errno;
    FILE *maps = open_in(folder, "maps"), *stat_file = open_in(folder, "stat");
    if (!maps || !stat_file)
        return -EIO;
    write_maps(maps, f, notes);
    fprintf(stat_file, "%d (core) T 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n", (int)f->pid);
    return fclose(maps) | fclose(stat_file) ? -EIO : 0;
}

int frozen_open_core(struct frozen *f, const char *path)
{
    struct core_notes notes = {0};
    struct stat st;
    *f = (struct frozen){.memory = {.read = read_core}};
    f->memory.context = f;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -errno;
    f->core_size = (size_t)st.st_size;
    f->core = mmap(NULL, f->core_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (f->core == MAP_FAILED)
        return -errno;
    int failed = read_notes(f, &notes);
    return failed ? failed : make_proc(f, &notes);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

void frozen_close(struct frozen *f)
{
    if (f->proc[0])
        nftw(f->proc, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    munmap(f->core, f->core_size);
}

/* ---- walking ---- */

int frozen_host_init(struct frozen_host *host, const char *proc)
{
    struct kiln_processes_opts opts = {.proc = proc};
    *host = (struct frozen_host){.proc = proc};
    int failed = kiln_table_memory_plain(TABLE_BYTES, &host->memory);
    if (failed == 0)
        failed = kiln_tables_new(host->memory, NULL, &host->tables);
    return failed ? failed : kiln_processes_new(&opts, &host->processes);
}

void frozen_host_done(struct frozen_host *host)
{
    kiln_processes_free(host->processes);
    kiln_tables_free(host->tables);
    kiln_table_memory_plain_free(host->memory);
}

/* Of the lines of /proc/PID/maps that are code. */
static uint64_t hash_maps(const struct frozen_host *host, pid_t pid)
{
    char path[128], line[4096];
    uint64_t hash = 1;
    snprintf(path, sizeof(path), "%s/%d/maps", host->proc ? host->proc : "/proc", (int)pid);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof(line), in))
        if (strstr(line, "x"))
            hash = kiln_hash(line, strlen(line)) ^ hash * 31;
    if (in)
        fclose(in);
    return hash;
}

int frozen_walk(struct frozen_host *host, struct frozen *f, struct kiln_walked *ret_walked)
{
    struct kiln_record record = {.pid = (uint32_t)f->pid, .tid = (uint32_t)f->tid, .era = 1};
    uint64_t hash = hash_maps(host, f->pid);
    if (host->maps_hash && host->maps_hash != hash) {
        const char *proc = host->proc;
        frozen_host_done(host);
        int failed = frozen_host_init(host, proc);
        if (failed)
            return failed;
    }
    host->maps_hash = hash;
    struct kiln_process *process = kiln_processes_of(host->processes, &record);
    if (!process)
        return -ESRCH;
    kiln_rewind_memory(host->tables, host->processes, process, &f->registers, &f->memory,
                       ret_walked);
    return 0;
}
