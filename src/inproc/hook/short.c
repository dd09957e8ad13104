/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code is put together as bytes, and written through /proc/self/mem: the kernel makes a copy of the
 * page for this process and leaves its protection alone, so that no page can ever be written and
 * executed, which some systems forbid and others report.  A hook whose allocator is out of reach
 * of a jump, or whose new code would be longer than the old, stays as it is; so do all where the
 * file cannot be written.
 *
 *   malloc:   sub %rdi, %fs:left;  jns next;  jmp slow
 *   calloc:   mov %rdi, %rax;  mul %rsi;  jo 1f;  sub %rax, %fs:left;  jns next;  1: jmp slow
 *   realloc:  sub %rsi, %fs:left;  js slow;  as free()
 *   free:     imul $factor, %edi, %eax;  mov filter, %rcx;  shr %cl, %eax;  cmpb $0, (%rax, %rcx)
 *             je next;  jmp found
 */
#include "inproc/hook/short.h"

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__)

#include <cpuid.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "inproc/environment.h"
#include "inproc/hook/next.h"
#include "inproc/sample/filter.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/status.h"

enum { LINE_OF_CODE = 64, BRANCH_MARK = 4 };

struct code {
    uintptr_t at;
    uint8_t bytes[LINE_OF_CODE];
    size_t n;
    bool reaches; /* all that it refers to */
};

/* ---- instructions ---- */

#define PUT(code, ...)                                                                             \
    put(code, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put(struct code *code, const void *bytes, size_t n)
{
    memcpy(code->bytes + code->n, bytes, n);
    code->n += n;
}

static void put_number(struct code *code, int64_t number)
{
    int32_t half = (int32_t)number;

    code->reaches &= half == number;
    put(code, &half, sizeof(half));
}

/* As a distance from the end of the instruction, which it is the end of. */
static void put_distance(struct code *code, uintptr_t to)
{
    put_number(code, (int64_t)(to - (code->at + code->n + sizeof(int32_t))));
}

#define PUT_JUMP(code, to, ...)                                                                    \
    do {                                                                                           \
        PUT(code, __VA_ARGS__);                                                                    \
        put_distance(code, (uintptr_t)(to));                                                       \
    } while (0)
#define JE  0x0f, 0x84
#define JS  0x0f, 0x88
#define JNS 0x0f, 0x89
#define JMP 0xe9

enum { RAX = 0, RSI = 6, RDI = 7 };
enum { COUNT_DOWN = 9, JUMP = 6 }; /* bytes of a conditional one */

static void put_count_down(struct code *code, uint8_t bytes)
{
    uintptr_t thread;

    __asm__("mov %%fs:0, %0" : "=r"(thread));
    PUT(code, 0x64, 0x48, 0x29, (uint8_t)(0x04 | bytes << 3), 0x25); /* sub %bytes, %fs:... */
    put_number(code, (int64_t)((uintptr_t)&kiln_in_line.alloc_left - thread));
}

/* The flags are those of a comparison with 0. */
static void put_look_at_filter(struct code *code)
{
    PUT(code, 0x69, 0xc7); /* imul $..., %edi, %eax */
    put_number(code, KILN_IN_FILTER_FACTOR);
    PUT(code, 0x48, 0x8b, 0x0d); /* mov ...(%rip), %rcx */
    put_distance(code, (uintptr_t)&kiln_in_filter);
    PUT(code, 0xd3, 0xe8);             /* shr %cl, %eax */
    PUT(code, 0x80, 0x3c, 0x08, 0x00); /* cmpb $0, (%rax, %rcx) */
}

/* ---- hooks ---- */

static void make_malloc(struct code *code)
{
    put_count_down(code, RDI);
    PUT_JUMP(code, kiln_in_next.malloc, JNS);
    PUT_JUMP(code, kiln_in_malloc_slow, JMP);
}

static void make_calloc(struct code *code)
{
    PUT(code, 0x48, 0x89, 0xf8);        /* mov %rdi, %rax */
    PUT(code, 0x48, 0xf7, 0xe6);        /* mul %rsi */
    PUT(code, 0x70, COUNT_DOWN + JUMP); /* jo, over the next two */
    put_count_down(code, RAX);
    PUT_JUMP(code, kiln_in_next.calloc, JNS);
    PUT_JUMP(code, kiln_in_calloc_slow, JMP);
}

static void make_realloc(struct code *code)
{
    put_count_down(code, RSI);
    PUT_JUMP(code, kiln_in_realloc_slow, JS);
    put_look_at_filter(code);
    PUT_JUMP(code, kiln_in_next.realloc, JE);
    PUT_JUMP(code, kiln_in_realloc_found, JMP);
}

static void make_free(struct code *code)
{
    put_look_at_filter(code);
    PUT_JUMP(code, kiln_in_next.free, JE);
    PUT_JUMP(code, kiln_in_free_found, JMP);
}

static const struct {
    void (*make)(struct code *code);
    uintptr_t hook;
} hooks[] = {
    {make_malloc, (uintptr_t)kiln_in_malloc_hook},
    {make_calloc, (uintptr_t)kiln_in_calloc_hook},
    {make_realloc, (uintptr_t)kiln_in_realloc_hook},
    {make_free, (uintptr_t)kiln_in_free_hook},
};

/* ---- writing ---- */

/* Bytes that the linker knows of; 0: it does not know the function. */
static size_t length_of(uintptr_t function)
{
    const ElfW(Sym) * symbol;
    Dl_info info;

    if (!dladdr1((const void *)function, /* NOLINT(performance-no-int-to-ptr) */
                 &info, (void **)&symbol, RTLD_DL_SYMENT) ||
        !symbol || (uintptr_t)info.dli_saddr != function)
        return 0;
    return symbol->st_size;
}

/* Where compilers mark what may be jumped to, the mark stays. */
static size_t length_of_mark(uintptr_t function)
{
    static const uint8_t endbr64[BRANCH_MARK] = {0xf3, 0x0f, 0x1e, 0xfa};

    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return memcmp((const void *)function, endbr64, BRANCH_MARK) == 0 ? BRANCH_MARK : 0;
}

/* Valgrind's request to translate code anew; rotations by 128 bits in all are nothing elsewhere. */
static void ask_valgrind_to_read_again(uintptr_t at, size_t n)
{
    const uint64_t request[] = {0x1002, at, n, 0, 0, 0};
    uint64_t answer = 0;

    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(request)
                     : "cc", "memory");
}

/* As is done by every instruction that waits for all before it, which this one is. */
static void ask_processor_to_read_again(void)
{
    unsigned a, b, c, d;

    __cpuid(0, a, b, c, d);
    (void)a, (void)b, (void)c, (void)d;
}

static void shorten(int memory, void (*make)(struct code *code), uintptr_t hook)
{
    size_t length = length_of(hook), mark = length_of_mark(hook);
    struct code code = {.at = hook + mark, .reaches = true};

    make(&code);
    if (!code.reaches || mark + code.n > length)
        return;
    if (pwrite(memory, code.bytes, code.n, (off_t)code.at) == (ssize_t)code.n)
        ask_valgrind_to_read_again(code.at, code.n);
}

/* Debuggers put code back that they have replaced. */
static bool is_watched(void)
{
    return kiln_in_status("TracerPid") != 0;
}

/* Since 2.32. */
extern char __libc_single_threaded;
#pragma weak __libc_single_threaded

void kiln_in_hooks_shorten(void)
{
    bool wanted = true;
    int memory;

    kiln_in_env_flag("KILN_SHORT_HOOKS", &wanted);
    if (!wanted || !&__libc_single_threaded || !__libc_single_threaded || is_watched())
        return;
    memory = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    if (memory < 0)
        return;
    kiln_in_next_init();
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
        shorten(memory, hooks[i].make, hooks[i].hook);
    close(memory);
    ask_processor_to_read_again();
}

#endif /* x86-64 and glibc */
