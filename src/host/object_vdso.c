/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vDSO: an ELF image that the kernel maps into every process, the same one into each, so that
 * the agent's own is as good as any.  It is copied into a file in memory and is then like any other
 * object: read with pread(), sent to whoever finds names.
 */
#include <elf.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "host/object_int.h"

enum { IMAGE_MAX = 64 << 10 };

/* The end of what its headers speak of. */
static size_t image_size(const Elf64_Ehdr *head)
{
    const Elf64_Phdr *segments = (const void *)((const char *)head + head->e_phoff);
    uint64_t size = head->e_shoff + (uint64_t)head->e_shnum * head->e_shentsize;

    for (int i = 0; i < head->e_phnum; i++) {
        uint64_t end = segments[i].p_offset + segments[i].p_filesz;

        if (segments[i].p_type == PT_LOAD && end > size)
            size = end;
    }
    return size < IMAGE_MAX ? size : IMAGE_MAX;
}

int kiln_vdso_file(int *ret_fd)
{
    const Elf64_Ehdr *head =
        (const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT(performance-no-int-to-ptr) */
    int fd, r;

    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64)
        return -ENOENT;
    fd = memfd_create("kiln-vdso", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = kiln_fd_write(fd, (struct kiln_str){(const char *)head, image_size(head)});
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}
