/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a range come from layers, each filling the gaps that the one before it leaves:
 *
 *   .eh_frame, Go's table, .debug_frame, the entry point, nothing
 *
 * Signal trampolines, recognised by their code, go before all of them.
 */
#include "symbol/cfi.h"

#include <elf.h>
#include <errno.h>

#include "base/err.h"
#include "symbol/cfi_int.h"

enum { FUEL = 4 << 20, FUEL_OF_FRAME = 16 };

/* Rows of one FDE, if it is what the index says it is.  Returns up to where rows are known now. */
static uint64_t fill_fde(struct kiln_cfi *cfi, struct cfi_frames *frames, const struct cfi_fde *fde,
                         uint64_t begin, uint64_t end, struct cfi_out *out)
{
    enum cfi_layer next = (frames->is_debug ? CFI_DEBUG : CFI_EH) + 1;
    const struct cfi_bases bases = {.text = frames->text_base, .data = frames->data_base};
    uint64_t from = fde->begin > begin ? fde->begin : begin;
    uint64_t to = fde->end < end ? fde->end : end;
    struct cfi_state remember[CFI_REMEMBER_MAX];

    if (from >= to)
        return begin;
    if (fde->cie->is_signal && from > begin)
        from--;
    if (from > begin)
        cfi_fill(cfi, next, begin, from, out);
    if (fde->begin == cfi->elf->entry && cfi->is_entry_outermost)
        cfi_push_rule(out, from, KILN_RULE_END);
    else
        cfi_run(remember, &bases, fde, from, to, out);
    return to;
}

/* A signal's frame that begins right behind the range holds for its last byte too. */
static void fill_before_signal(struct cfi_frames *frames, uint32_t number, uint64_t end,
                               struct cfi_out *out)
{
    uint64_t begin, at;
    struct cfi_fde fde;

    if (number >= cfi_index_count(frames) || !cfi_index_get(frames, number, &begin, &at) ||
        begin != end || cfi_fde_read(frames, at, &fde) < 0)
        return;
    if (fde.cie->is_signal)
        cfi_push_rule(out, end - 1, KILN_RULE_SIGNAL);
    cfi_fde_done(&fde);
}

/*
 * The rows of one section in a range.  An entry ends where the next begins, whatever it says.
 * False: the file's own table is wrong, and nothing was made.
 */
static bool fill_frames(struct kiln_cfi *cfi, struct cfi_frames *frames, uint64_t begin,
                        uint64_t end, struct cfi_out *out)
{
    enum cfi_layer layer = frames->is_debug ? CFI_DEBUG : CFI_EH;
    uint32_t count = cfi_index_count(frames), i = cfi_index_find(frames, begin);
    uint64_t known = begin, next = 0, next_at = 0, first, at;
    bool has_next = i < count && cfi_index_get(frames, i, &next, &next_at);
    struct cfi_fde fde;

    for (; has_next && next < end && cfi_burn(out, FUEL_OF_FRAME); i++) {
        first = next;
        at = next_at;
        has_next = i + 1 < count && cfi_index_get(frames, i + 1, &next, &next_at);
        if (cfi_fde_read(frames, at, &fde) < 0) {
            if (frames->is_indexed)
                continue;
            return false;
        }
        if (fde.begin != first && !frames->is_indexed) {
            cfi_fde_done(&fde);
            return false;
        }
        known = fill_fde(cfi, frames, &fde, known, has_next && next < end ? next : end, out);
        cfi_fde_done(&fde);
    }
    if (known < end) {
        cfi_fill(cfi, layer + 1, known, end, out);
        fill_before_signal(frames, i, end, out);
    }
    return true;
}

static void make_index(struct cfi_frames *frames)
{
    if (cfi_index_make(frames) < 0)
        frames->n_index = 0;
}

static void fill_section(struct kiln_cfi *cfi, struct cfi_frames *frames, uint64_t begin,
                         uint64_t end, struct cfi_out *out)
{
    uint32_t n = out->n;

    if (!frames->n_table && !frames->is_indexed)
        make_index(frames);
    if (fill_frames(cfi, frames, begin, end, out))
        return;
    out->n = n;
    make_index(frames);
    if (!fill_frames(cfi, frames, begin, end, out))
        cfi_push_rule(out, begin, KILN_RULE_NONE);
}

void cfi_fill(struct kiln_cfi *cfi, enum cfi_layer layer, uint64_t begin, uint64_t end,
              struct cfi_out *out)
{
    if (layer == CFI_EH && !cfi->eh.is_open)
        layer++;
    if (layer == CFI_GO && !cfi->go)
        layer++;
    if (layer == CFI_DEBUG && !cfi->debug.is_open)
        layer++;
    switch (layer) {
    case CFI_EH:
        fill_section(cfi, &cfi->eh, begin, end, out);
        break;
    case CFI_GO:
        cfi_go_fill(cfi, begin, end, out);
        break;
    case CFI_DEBUG:
        fill_section(cfi, &cfi->debug, begin, end, out);
        break;
    case CFI_ENTRY:
        cfi_entry_fill(cfi, begin, end, out);
        break;
    default:
        cfi_push_rule(out, begin, KILN_RULE_NONE);
    }
}

/* Memory that questions take is given back behind each: a host has thousands of files. */
static void rest(struct kiln_cfi *cfi)
{
    kiln_window_drop(&cfi->eh.window);
    kiln_window_drop(&cfi->debug.window);
    if (cfi->go)
        kiln_gopcln_rest(cfi->go);
}

int kiln_cfi_open(const struct kiln_elf *elf, struct kiln_cfi **ret_cfi)
{
    struct kiln_cfi *cfi;
    bool has_tables;

    if (elf->machine != EM_X86_64)
        return -ENOENT;
    cfi = kiln_calloc(1, sizeof(*cfi));
    if (!cfi)
        return -ENOMEM;
    cfi->elf = elf;
    cfi->is_entry_outermost = cfi_entry_is_outermost(elf);
    has_tables = cfi_frames_open_eh(&cfi->eh, elf) == 0;
    if (kiln_gopcln_open(elf, &cfi->go) == 0 || cfi_frames_open_debug(&cfi->debug, elf) == 0)
        has_tables = true;
    if (!has_tables && !elf->entry) {
        kiln_cfi_close(cfi);
        return -ENOENT;
    }
    rest(cfi);
    *ret_cfi = cfi;
    return 0;
}

void kiln_cfi_close(struct kiln_cfi *cfi)
{
    if (!cfi)
        return;
    cfi_frames_close(&cfi->eh);
    cfi_frames_close(&cfi->debug);
    kiln_gopcln_close(cfi->go);
    kiln_free(cfi);
}

/* Whether nothing else is said of the entry point: only then code tells that it is outermost. */
static void look_at_entry(struct kiln_cfi *cfi)
{
    struct kiln_cfi_row row = {.rule = KILN_RULE_NONE};
    struct cfi_out out = {.rows = &row, .max = 1, .fuel = FUEL};
    uint64_t entry = cfi->elf->entry;

    cfi->is_entry_known = true;
    if (!entry || entry == UINT64_MAX)
        return;
    cfi_fill(cfi, CFI_EH, entry, entry + 1, &out);
    cfi->is_entry_bare = row.rule == KILN_RULE_NONE;
}

int kiln_cfi_rows(struct kiln_cfi *cfi, uint64_t begin, uint64_t end, struct kiln_cfi_row *rows,
                  uint32_t max)
{
    struct cfi_out out = {.rows = rows, .max = max, .fuel = FUEL};
    uint64_t found[CFI_TRAMPOLINES_MAX], at = begin;
    uint32_t n = begin < end ? cfi_trampolines(cfi->elf, begin, end, found) : 0;

    if (!cfi->is_entry_known)
        look_at_entry(cfi);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t from = found[i] > at ? found[i] - 1 : at;
        uint64_t to = found[i] + CFI_TRAMPOLINE;

        if (from >= end || to <= at)
            continue;
        if (from > at)
            cfi_fill(cfi, CFI_EH, at, from, &out);
        cfi_push_rule(&out, from, KILN_RULE_SIGNAL);
        at = to < end ? to : end;
    }
    if (at < end)
        cfi_fill(cfi, CFI_EH, at, end, &out);
    rest(cfi);
    return out.full ? KILN_E_LIMIT : (int)out.n;
}

static int cover(struct cfi_frames *frames, uint64_t address, uint64_t *ret_begin,
                 uint64_t *ret_end)
{
    int r;

    if (!frames->is_open)
        return -ENOENT;
    if (!frames->n_table && !frames->is_indexed)
        make_index(frames);
    r = cfi_index_cover(frames, address, ret_begin, ret_end);
    if (r != KILN_E_MALFORMED)
        return r;
    make_index(frames);
    return cfi_index_cover(frames, address, ret_begin, ret_end);
}

int kiln_cfi_function(struct kiln_cfi *cfi, uint64_t address, uint64_t *ret_begin,
                      uint64_t *ret_end)
{
    int r = cover(&cfi->eh, address, ret_begin, ret_end);

    if (r < 0)
        r = cover(&cfi->debug, address, ret_begin, ret_end);
    rest(cfi);
    return r;
}

size_t kiln_cfi_bytes(const struct kiln_cfi *cfi)
{
    size_t loaded = cfi->debug.loaded ? (size_t)cfi->debug.size : 0;

    return sizeof(*cfi) + cfi->eh.budget.used + cfi->debug.budget.used + loaded;
}
