/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_proc - a /proc of one's own in a temporary folder, and events and samples in a line each.
 */
#ifndef KILN_TESTS_FAKE_PROC_H
#define KILN_TESTS_FAKE_PROC_H

#include "host/process.h"

struct fake_proc {
    char dir[64];
};

void fake_proc_init(struct fake_proc *fake);
void fake_proc_done(struct fake_proc *fake);

/* /proc/PID with a stat that says so; its root is a folder of its own. */
void fake_proc_add(struct fake_proc *fake, uint32_t pid, uint32_t parent_pid, uint64_t start_ns);
void fake_proc_remove(struct fake_proc *fake, uint32_t pid);
/* Writes a file beneath /proc/PID, folders and all: "maps", "root/usr/lib/libx.so". */
void fake_proc_write(struct fake_proc *fake, uint32_t pid, const char *name, const char *text,
                     size_t len);
void fake_proc_text(struct fake_proc *fake, uint32_t pid, const char *name, const char *text);
/* A link beneath /proc/PID. */
void fake_proc_link(struct fake_proc *fake, uint32_t pid, const char *name, const char *target);
/* The path of something beneath /proc/PID, in a static buffer. */
const char *fake_proc_path(const struct fake_proc *fake, uint32_t pid, const char *name);

/* ---- events and samples; each is a microsecond later than the one before ---- */

void drawn_fork(struct kiln_processes *processes, uint32_t ppid, uint32_t pid);
void drawn_thread(struct kiln_processes *processes, uint32_t pid, uint32_t tid);
void drawn_exec(struct kiln_processes *processes, uint32_t pid, const char *comm);
void drawn_comm(struct kiln_processes *processes, uint32_t pid, const char *comm);
void drawn_exit(struct kiln_processes *processes, uint32_t pid, uint32_t tid);
void drawn_lost(struct kiln_processes *processes);
/* [start, end) of a file at an offset, or of "//anon", "[vdso]". */
void drawn_map(struct kiln_processes *processes, uint32_t pid, uint64_t start, uint64_t end,
               uint64_t offset, const char *name);
/* The same with a build id, given as text. */
void drawn_map_id(struct kiln_processes *processes, uint32_t pid, uint64_t start, uint64_t end,
                  const char *name, const char *build_id);
struct kiln_process *drawn_sample(struct kiln_processes *processes, uint32_t pid, uint64_t start_ns,
                                  uint64_t era);
/* The first sample of a process, of its first era, with which the kernel tells who it is. */
struct kiln_process *drawn_telling(struct kiln_processes *processes, uint32_t pid,
                                   uint64_t start_ns, const struct kiln_who *who);

/* "1000-2000 /bin/a, 2000-3000 //anon": the mappings of a process, in a static buffer. */
const char *drawn_maps(const struct kiln_process *process);

/* How many descriptors this process has open. */
uint32_t open_files(void);

#endif /* KILN_TESTS_FAKE_PROC_H */
