/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object - files with code, each once, however many processes map it.
 *
 * A file is what was opened: device, inode, size and time of change.  A build id alone is not
 * enough to say that two files are one: anybody can write one into his file.  Only where a file
 * cannot be opened any more (its process is gone) it is taken for an object with the same path and
 * build id.  Files are opened beneath the root of a process that maps them, never executed, and
 * read with pread() and limits, never mapped: they may shrink or be rewritten meanwhile.
 *
 * How many files are open is limited; the one longest not used is closed, and opened again when a
 * process that maps it is asked for it.
 *
 * Threads: the table and its objects belong to the reader's thread; `id` .. `is_go` are constant
 * once the object is there, the count is atomic, so that others may hold and read it.  The file
 * others get by kiln_object_dup() alone.
 */
#ifndef KILN_HOST_OBJECT_H
#define KILN_HOST_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "symbol/elf.h"
#include "symbol/tls.h"

struct kiln_aside;
struct kiln_cfi;

enum kiln_object_kind {
    KILN_OBJECT_ELF,
    KILN_OBJECT_VDSO,  /* an ELF image that the kernel maps; read from memory */
    KILN_OBJECT_OTHER, /* a file that is no ELF: its code is like JIT code */
};

struct kiln_object {
    _Atomic uint32_t refs;
    uint32_t id;      /* from 1 on: kiln_dir_key.file; not used again while the agent runs */
    uint32_t kind;    /* enum kiln_object_kind */
    const char *path; /* as the first process that mapped it sees it, without " (deleted)" */
    uint64_t device, inode, size, changed_ns;
    uint8_t build_id[KILN_BUILD_ID_MAX]; /* GNU's */
    uint8_t build_id_len;
    char go_build_id[84]; /* Go's, where there is one; else "" */
    char file_hash[33];   /* OpenTelemetry's htlhash, 32 digits; where there is no build id */
    uint64_t code_address, code_offset, code_size; /* its first segment with code; 0: not known */
    bool is_go;
    int fd;                   /* -1: cannot be opened (any more) */
    struct kiln_aside *aside; /* who reads and closes the file, which may never answer; or NULL */
    struct kiln_elf *elf;     /* NULL: no ELF, or too broken to read */
    struct kiln_cfi *cfi;     /* made by host/tables.c when first needed; NULL: no unwind tables;
                                 closed with the file, here */
    bool cfi_tried;
    /* of host/thread_context.c: whether it has the variable in which threads keep their span */
    enum { KILN_SPANS_UNKNOWN, KILN_SPANS_NONE, KILN_SPANS_HERE } spans;
    struct kiln_tls_variable spans_at;
    uint64_t root;  /* of host/process_files.c: where its path was last found; 0: not known */
    uint8_t silent; /* of host/process_published.c: processes of it that published no context */
    uint8_t brief;  /* and those in a row that ended before they could be asked */
};

struct kiln_object *kiln_object_ref(struct kiln_object *object);
void kiln_object_unref(struct kiln_object *object);

/* A descriptor of its own for the file, from any thread.  -ENOENT: it is not open. */
KILN_CHECK int kiln_object_dup(struct kiln_object *object, int *ret_fd);
/* Closes a descriptor of the file. */
void kiln_object_shut(const struct kiln_object *object, int fd);

/*
 * The file's own address of what is at `offset` of it, by its program headers; -ENOENT: no segment
 * with code has it.  bias of a mapping = start - that of its offset.
 */
KILN_CHECK int kiln_object_address(const struct kiln_object *object, uint64_t offset,
                                   uint64_t *ret_address);

#endif /* KILN_HOST_OBJECT_H */
