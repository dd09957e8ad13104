/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live - what `kiln live` knows of the last seconds, and what a page makes of it.
 *
 *   batches ─▶ live_book.c     names of frames and processes, each once
 *           ─▶ live_window.c   a slice a batch, the last minutes of them
 *           ─▶ live_rows.c     a question (pane, mode, focus, filter) ─▶ rows, sorted
 *           ─▶ live_page.c     rows ─▶ lines of a screen;  live_act.c: keys ─▶ another question
 *              live_once.c     rows ─▶ text or JSON, once
 *
 *   live_host.c, live_server.c   where batches come from: this host, or a server
 *
 * Time is in nanoseconds of a thread: on a processor, blocked, or ready to run and waiting for one.
 *
 * Threads: only the main thread; batches come through an inbox (live_source.h).
 */
#ifndef KILN_CLI_LIVE_H
#define KILN_CLI_LIVE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/regex.h"
#include "core/batch.h"
#include "core/intern.h"

#define KILN_LIVE_NONE UINT32_MAX

/* ---- names ---- */

struct kiln_live_frame {
    struct kiln_str name, module;
    bool kernel, unnamed;
};

struct kiln_live_process {
    uint32_t pid;     /* 0: not known */
    uint32_t service; /* a text of the book */
    struct kiln_str name, host;
};

/* Each name once.  What it holds is forgotten all at once: kiln_live_window_clear(). */
struct kiln_live_book {
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_live_frame *frames;
    struct kiln_live_process *processes;
    struct kiln_str *texts; /* services, reasons */
    uint32_t n_frames, n_processes, n_texts, frames_cap, processes_cap, texts_cap;
    struct kiln_intern by_frame, by_process, by_text;
    struct kiln_buf scratch;
};

void kiln_live_book_init(struct kiln_live_book *book, size_t memory_bytes);
void kiln_live_book_done(struct kiln_live_book *book);
KILN_CHECK int kiln_live_book_text(struct kiln_live_book *book, struct kiln_str text,
                                   uint32_t *ret_text);
KILN_CHECK int kiln_live_book_frame(struct kiln_live_book *book,
                                    const struct kiln_live_frame *frame, uint32_t *ret_frame);
KILN_CHECK int kiln_live_book_process(struct kiln_live_book *book,
                                      const struct kiln_live_process *process,
                                      uint32_t *ret_process);

/* ---- samples ---- */

enum kiln_live_kind { KILN_LIVE_CPU, KILN_LIVE_BLOCKED, KILN_LIVE_RUNNABLE, KILN_LIVE_KINDS };

struct kiln_live_sample {
    uint64_t ns;
    uint32_t process;  /* KILN_LIVE_NONE: it is about stacks alone */
    uint32_t first, n; /* of the slice's path, root first; n 0: it is about a process alone */
    uint32_t reason;   /* a text of the book: what it waits for; KILN_LIVE_NONE: not said */
    uint32_t kind;     /* enum kiln_live_kind */
    uint32_t last_ms;  /* it was spent within so long, until the slice came; 0: not long */
};

struct kiln_live_slice {
    uint64_t at_ns; /* by the clock of the window */
    struct kiln_live_sample *samples;
    uint32_t *path; /* frames of the book */
    uint32_t n_samples, n_path, samples_cap, path_cap;
};

enum { KILN_LIVE_SLICES_MAX = 600 };

/* Its clock is whatever the caller's is. */
struct kiln_live_window {
    struct kiln_live_book book;
    struct kiln_budget budget;                           /* of slices */
    struct kiln_live_slice slices[KILN_LIVE_SLICES_MAX]; /* a ring, the oldest first */
    uint32_t first, n;
    uint64_t began_ns;  /* what is older was never looked at */
    uint64_t forgotten; /* how often all was, for lack of memory */
};

/* `memory_bytes`: half for names, half for samples. */
void kiln_live_window_init(struct kiln_live_window *window, size_t memory_bytes, uint64_t now_ns);
void kiln_live_window_done(struct kiln_live_window *window);
/* Forgets all slices; names keep their numbers. */
void kiln_live_window_forget(struct kiln_live_window *window);
/* Forgets names too. */
void kiln_live_window_clear(struct kiln_live_window *window, uint64_t now_ns);
/* Adds what a batch has: where memory is short the oldest slices go, at last all of them. */
KILN_CHECK int kiln_live_window_add(struct kiln_live_window *window, const struct kiln_batch *batch,
                                    uint64_t at_ns);
static inline const struct kiln_live_slice *
kiln_live_window_at(const struct kiln_live_window *window, uint32_t i)
{
    return &window->slices[(window->first + i) % KILN_LIVE_SLICES_MAX];
}

/* ---- questions ---- */

enum kiln_live_mode { KILN_LIVE_BY_CPU, KILN_LIVE_BY_WALL, KILN_LIVE_BY_WAIT, KILN_LIVE_MODES };

enum kiln_live_pane {
    KILN_LIVE_FUNCTIONS,
    KILN_LIVE_PROCESSES,
    KILN_LIVE_SERVICES,
    KILN_LIVE_STACKS,
    KILN_LIVE_PANES,
};

enum kiln_live_order { KILN_LIVE_BY_SELF, KILN_LIVE_BY_TOTAL, KILN_LIVE_BY_NAME, KILN_LIVE_ORDERS };

/* All zero: what uses the processors, by function. */
struct kiln_live_question {
    enum kiln_live_pane pane;
    enum kiln_live_mode mode;
    enum kiln_live_order order;
    bool ascending;
    bool no_kernel;             /* frames of the kernel belong to whoever called it */
    uint64_t from_ns, until_ns; /* slices that count: from < at <= until */
    /* Only what is of these; KILN_LIVE_NONE: of all.  `frame` anywhere in the stack. */
    uint32_t process, service, frame;
    struct kiln_regex *filter; /* of the names of rows; NULL: all */
};

struct kiln_live_amount {
    uint64_t ns[KILN_LIVE_KINDS];
};
/* What counts of it. */
uint64_t kiln_live_amount(const struct kiln_live_amount *amount, enum kiln_live_mode mode);

struct kiln_live_row {
    uint32_t id; /* of a frame, a process, a text (services); STACKS: none */
    uint32_t n;  /* SERVICES: processes; STACKS: frames */
    struct kiln_live_amount self, total;
    uint32_t hottest;     /* PROCESSES, SERVICES: the frame that spends most itself; or NONE */
    uint32_t reason;      /* what most of the waiting is for; or NONE */
    const uint32_t *path; /* STACKS: `n` frames, root first */
};

/* Rows of a pane.  Borrow from the window, until it changes. */
struct kiln_live_rows {
    struct kiln_live_row *rows;
    uint32_t n;
    struct kiln_live_amount total; /* of all that is in focus, whatever the filter; by stacks */
    uint64_t span_ns;              /* time that was looked at */
    struct kiln_budget budget;
    uint32_t cap;
};

KILN_CHECK int kiln_live_rows_new(const struct kiln_live_window *window,
                                  const struct kiln_live_question *question,
                                  struct kiln_live_rows **ret_rows);
void kiln_live_rows_free(struct kiln_live_rows *rows);

/*
 * Who calls a function and what it calls, directly: rows whose `total` is the part of the
 * function's own that passes between them.  `question->frame` says which.
 */
struct kiln_live_around {
    struct kiln_live_rows *callers, *callees;
    struct kiln_live_amount self, total;
};
KILN_CHECK int kiln_live_around_new(const struct kiln_live_window *window,
                                    const struct kiln_live_question *question,
                                    struct kiln_live_around *ret_around);
void kiln_live_around_done(struct kiln_live_around *around);

#endif /* KILN_CLI_LIVE_H */
