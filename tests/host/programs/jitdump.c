/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code made at run time that tells of itself in a jitdump: jit-PID.dump in the folder of the second
 * argument (the current one), mapped as code so that profilers see it.  hot <- outer <- main, three
 * quarters, at lines 12 (half of that) and 15 of made.k; cold <- outer <- main, the rest, told only
 * after it has run for a while, so that the file grows.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "burn.h"

/* push rbp; mov rbp, rsp; two loops: mov ecx, 100000; again: dec ecx; jnz again; pop rbp; ret */
static const unsigned char code[] = {
    0x55, 0x48, 0x89, 0xe5,                               /* line 12 from here on */
    0xb9, 0xa0, 0x86, 0x01, 0x00, 0xff, 0xc9, 0x75, 0xfc, /* at 4 */
    0xb9, 0xa0, 0x86, 0x01, 0x00, 0xff, 0xc9, 0x75, 0xfc, /* at 13: line 15 */
    0x5d, 0xc3,
};
enum { SECOND = 13, APART = 128 };

static char *room;
static FILE *dump;

static void put(const void *data, size_t n)
{
    if (fwrite(data, 1, n, dump) != n)
        abort();
}

static void put_32(uint32_t value)
{
    put(&value, sizeof(value));
}

static void put_64(uint64_t value)
{
    put(&value, sizeof(value));
}

static void put_head(uint32_t kind, size_t size)
{
    put_32(kind);
    put_32((uint32_t)(16 + size));
    put_64(now_ns());
}

static void put_line(uint64_t address, uint32_t line, const char *file)
{
    put_64(address);
    put_32(line);
    put_32(1);
    put(file, strlen(file) + 1);
}

static void tell(const char *name, uint64_t address, uint64_t number)
{
    put_head(2, 16 + 2 * 16 + sizeof("/src/made.k") + sizeof("\xff"));
    put_64(address);
    put_64(2);
    put_line(address, 12, "/src/made.k");
    put_line(address + SECOND, 15, "\xff");
    put_head(0, 40 + strlen(name) + 1 + sizeof(code));
    put_32((uint32_t)getpid());
    put_32((uint32_t)getpid());
    put_64(address);
    put_64(address);
    put_64(sizeof(code));
    put_64(number);
    put(name, strlen(name) + 1);
    put(code, sizeof(code));
    fflush(dump);
}

static void begin(const char *folder)
{
    static const uint32_t head[] = {0x4a695444, 1, 40, 62, 0};
    char path[4096];

    snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, (int)getpid());
    dump = fopen(path, "w+");
    if (!dump)
        abort();
    put(head, sizeof(head));
    put_32((uint32_t)getpid());
    put_64(now_ns());
    put_64(0);
    fflush(dump);
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
        abort();
}

static void *made(int i)
{
    return room + (size_t)i * APART;
}

KEPT void outer(void *jitted)
{
    ((void (*)(void))(uintptr_t)jitted)();
    STAY;
}

int main(int argc, char **argv)
{
    uint64_t start = cpu_ns(), end = end_ns(argc, argv);
    int told = 1;

    room = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return 1;
    memcpy(made(0), code, sizeof(code));
    memcpy(made(1), code, sizeof(code));
    if (mprotect(room, 4096, PROT_READ | PROT_EXEC) != 0)
        return 1;
    begin(argc > 2 ? argv[2] : ".");
    tell("hot", (uintptr_t)made(0), 1);
    while (cpu_ns() < end) {
        for (int i = 0; i < 4; i++)
            outer(made(i == 3));
        if (told == 1 && cpu_ns() > start + (end - start) / 2)
            tell("cold", (uintptr_t)made(1), ++told);
    }
    return 0;
}
