/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/hash.h"
#include "cli/live.h"

enum { ENTRIES_MAX = 1 << 24, NAME_BYTES_MAX = 1 << 12, NAME_SCRATCH = 1 << 16 };

void kiln_live_book_init(struct kiln_live_book *book, size_t memory_bytes)
{
    *book = (struct kiln_live_book){.budget = {.limit = memory_bytes}};
    kiln_arena_init(&book->arena, &book->budget);
    kiln_buf_init(&book->scratch, NAME_SCRATCH);
}

void kiln_live_book_done(struct kiln_live_book *book)
{
    struct kiln_budget *budget = &book->budget;

    kiln_intern_done(&book->by_frame, budget);
    kiln_intern_done(&book->by_process, budget);
    kiln_intern_done(&book->by_text, budget);
    kiln_array_free(budget, (void **)&book->frames, &book->frames_cap, sizeof(*book->frames));
    kiln_array_free(budget, (void **)&book->processes, &book->processes_cap,
                    sizeof(*book->processes));
    kiln_array_free(budget, (void **)&book->texts, &book->texts_cap, sizeof(*book->texts));
    kiln_arena_done(&book->arena);
    kiln_buf_done(&book->scratch);
}

/* A name of ten thousand letters says no more than its beginning. */
static int copy(struct kiln_live_book *book, struct kiln_str text, struct kiln_str *ret)
{
    text.len = text.len < NAME_BYTES_MAX ? text.len : NAME_BYTES_MAX;
    *ret = kiln_arena_copy(&book->arena, text);
    return ret->ptr ? 0 : -ENOMEM;
}

static bool same_text(struct kiln_str kept, struct kiln_str text)
{
    text.len = text.len < NAME_BYTES_MAX ? text.len : NAME_BYTES_MAX;
    return kiln_str_eq(kept, text);
}

static uint64_t hash_text(struct kiln_str text)
{
    return kiln_hash(text.ptr, text.len < NAME_BYTES_MAX ? text.len : NAME_BYTES_MAX);
}

int kiln_live_book_text(struct kiln_live_book *book, struct kiln_str text, uint32_t *ret_text)
{
    uint64_t hash = hash_text(text);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&book->by_text, hash);
         kiln_intern_next(&book->by_text, &p);)
        if (same_text(book->texts[p.entry], text)) {
            *ret_text = p.entry;
            return 0;
        }
    r = kiln_grow(&book->budget, (void **)&book->texts, &book->texts_cap,
                  (uint64_t)book->n_texts + 1, sizeof(*book->texts), ENTRIES_MAX);
    if (r == 0)
        r = copy(book, text, &book->texts[book->n_texts]);
    if (r == 0)
        r = kiln_intern_add(&book->by_text, &book->budget, hash, book->n_texts);
    if (r == 0)
        *ret_text = book->n_texts++;
    return r;
}

static bool same_frame(const struct kiln_live_frame *a, const struct kiln_live_frame *b)
{
    return same_text(a->name, b->name) && same_text(a->module, b->module) && a->kernel == b->kernel;
}

int kiln_live_book_frame(struct kiln_live_book *book, const struct kiln_live_frame *frame,
                         uint32_t *ret_frame)
{
    uint64_t hash = kiln_hash_mix(hash_text(frame->name), hash_text(frame->module));
    struct kiln_live_frame *kept;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&book->by_frame, hash);
         kiln_intern_next(&book->by_frame, &p);)
        if (same_frame(&book->frames[p.entry], frame)) {
            *ret_frame = p.entry;
            return 0;
        }
    r = kiln_grow(&book->budget, (void **)&book->frames, &book->frames_cap,
                  (uint64_t)book->n_frames + 1, sizeof(*book->frames), ENTRIES_MAX);
    if (r < 0)
        return r;
    kept = &book->frames[book->n_frames];
    *kept = *frame;
    r = copy(book, frame->name, &kept->name);
    if (r == 0)
        r = copy(book, frame->module, &kept->module);
    if (r == 0)
        r = kiln_intern_add(&book->by_frame, &book->budget, hash, book->n_frames);
    if (r == 0)
        *ret_frame = book->n_frames++;
    return r;
}

static bool same_process(const struct kiln_live_process *a, const struct kiln_live_process *b)
{
    return a->pid == b->pid && a->service == b->service && same_text(a->name, b->name) &&
           same_text(a->host, b->host);
}

int kiln_live_book_process(struct kiln_live_book *book, const struct kiln_live_process *process,
                           uint32_t *ret_process)
{
    uint64_t hash =
        kiln_hash_mix(kiln_hash_mix(hash_text(process->name), process->pid), process->service);
    struct kiln_live_process *kept;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&book->by_process, hash);
         kiln_intern_next(&book->by_process, &p);)
        if (same_process(&book->processes[p.entry], process)) {
            *ret_process = p.entry;
            return 0;
        }
    r = kiln_grow(&book->budget, (void **)&book->processes, &book->processes_cap,
                  (uint64_t)book->n_processes + 1, sizeof(*book->processes), ENTRIES_MAX);
    if (r < 0)
        return r;
    kept = &book->processes[book->n_processes];
    *kept = *process;
    r = copy(book, process->name, &kept->name);
    if (r == 0)
        r = copy(book, process->host, &kept->host);
    if (r == 0)
        r = kiln_intern_add(&book->by_process, &book->budget, hash, book->n_processes);
    if (r == 0)
        *ret_process = book->n_processes++;
    return r;
}
