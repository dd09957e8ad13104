/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel has the list, /proc/self/task, and a name and a state for each:
 *
 *   comm      the name
 *   syscall   "running", or the number of a system call, six arguments, stack pointer and address,
 *             all but the first in hexadecimal: "202 0x7f.. 0x80 0x0 0x0 0x0 0x0 0x7ff.. 0x7f.."
 *
 * All else is in the blocks of threads (inproc/thread/thread.h).  A stack is read while its thread
 * may go on: one that sleeps at the same place before and after has not moved, or has come back.
 */
#include "inproc/keep/threads_now.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "inproc/sample/threads.h"
#include "inproc/start.h"
#include "inproc/thread/by_id.h"
#include "inproc/thread/numbers.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

enum { LINE_MAX_BYTES = 256, STACK_FIELD = 7, FRAMES_BYTES_MAX = 64 << 10 };

/* ---- what the kernel tells ---- */

const char *kiln_in_seen_word(enum kiln_in_seen seen)
{
    static const char *const words[] = {
#define X(name, word) word,
        KILN_IN_SEEN_MAP(X)
#undef X
    };

    return words[seen];
}

/* The first line of a file of the thread's, without its end.  False: it is gone. */
static bool read_line(int tasks, int32_t tid, const char *file, char line[LINE_MAX_BYTES])
{
    char path[64];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof(path), "%d/%s", (int)tid, file);
    fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, line, LINE_MAX_BYTES - 1);
        close(fd);
    }
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return n >= 0;
}

struct place {
    uint64_t sp, pc; /* 0: it does not sleep, or the kernel does not tell */
};

static struct place place_in(const char *line)
{
    struct place place = {0};
    char *end;

    for (unsigned i = 0; line && i < STACK_FIELD; i++) {
        line = strchr(line, ' ');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return place;
    place.sp = strtoull(line, &end, 16);
    place.pc = strtoull(end, NULL, 16);
    return place;
}

static struct place place_of(int tasks, int32_t tid)
{
    char line[LINE_MAX_BYTES];

    return place_in(read_line(tasks, tid, "syscall", line) ? line : NULL);
}

/* ---- what the blocks tell ---- */

struct known {
    struct kiln_in_by_id blocks;
    uint64_t pcs[KILN_IN_DEPTH_MAX];
};

/*
 * Between the stack pointer and the frame of a hook are frames of the C library alone; a thread may
 * have left the hook by a jump, and the mark behind.
 */
static bool is_above(uint64_t frame, uint64_t sp)
{
    return frame > sp && frame - sp < FRAMES_BYTES_MAX;
}

/* 0: the thread has moved meanwhile. */
static uint32_t walk(int tasks, int32_t tid, uint64_t frame, struct place place, uint64_t *pcs)
{
    unsigned depth =
        kiln_in_settings.depth < KILN_IN_DEPTH_MAX ? kiln_in_settings.depth : KILN_IN_DEPTH_MAX;
    unsigned n = is_above(frame, place.sp) ? kiln_in_unwind_above(frame, pcs, depth)
                                           : kiln_in_unwind_other(place.pc, place.sp, pcs, depth);
    struct place after = place_of(tasks, tid);

    return n && after.sp == place.sp && after.pc == place.pc ? kiln_in_stack_id(pcs, n) : 0;
}

static bool see(int tasks, struct known *known, struct kiln_in_thread_now *now)
{
    struct kiln_in_thread *thread = kiln_in_by_id_find(&known->blocks, now->tid);
    uint64_t frame = thread ? atomic_load(&thread->waits_in) : 0;
    struct place place = place_of(tasks, now->tid);
    char line[LINE_MAX_BYTES];

    if (!read_line(tasks, now->tid, "comm", line))
        return false;
    snprintf(now->name, sizeof(now->name), "%.15s", line);
    now->labels = thread ? thread->labels : 0;
    now->sleeps = place.pc != 0;
    now->stack = now->sleeps ? walk(tasks, now->tid, frame, place, known->pcs) : 0;
    now->seen = now->stack ? KILN_IN_SEEN_ASLEEP : KILN_IN_SEEN_NOWHERE;
    if (now->stack == 0 && thread) {
        now->stack = atomic_load(&thread->last_stack);
        now->seen = now->stack ? KILN_IN_SEEN_LAST : KILN_IN_SEEN_NOWHERE;
    }
    return true;
}

struct look {
    struct known *known;
    void (*tell)(const struct kiln_in_thread_now *thread, void *arg);
    void *arg;
};

static bool look_at(int tasks, int32_t tid, void *arg)
{
    struct look *look = arg;
    struct kiln_in_thread_now now = {.tid = tid};

    if (tid > 0 && !kiln_in_thread_id_is_ours(tid) && see(tasks, look->known, &now))
        look->tell(&now, look->arg);
    return true;
}

int kiln_in_threads_now(void (*tell)(const struct kiln_in_thread_now *thread, void *arg), void *arg)
{
    struct look look = {kiln_malloc(sizeof(*look.known)), tell, arg};
    int r;

    if (!look.known)
        return -ENOMEM;
    kiln_in_by_id_fill(&look.known->blocks);
    r = kiln_in_numbers_each("/proc/self/task", look_at, &look);
    kiln_free(look.known);
    return r;
}
