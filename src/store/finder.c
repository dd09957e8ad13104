/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the names of a book (store/book.h) say of locations: each set of attributes of a mapping is
 * looked up once.
 *
 * A location without a name takes what there is.  One that a symbol table named takes only what
 * says more than that: a file, or what was inlined.  What is there already is no improvement: so a
 * location that was given its names lacks them no more, whatever they are.
 *
 * All names that a dictionary needs are held at once.  Where that is more than half of what is kept
 * of blocks, the rest of its build ids go without: they come when blocks were rewritten with the
 * others.
 */
#include <errno.h>

#include "core/frame.h"
#include "store/book.h"

#define HELD_LEAST ((size_t)16 << 20) /* of names, whatever is kept */

struct names {
    struct kiln_symbols *symbols; /* NULL: none */
    bool asked;
};

/* The build id of a set. */
struct wanted {
    uint32_t set;
    struct kiln_str id;
};

struct kiln_finder {
    struct kiln_book *book;
    struct kiln_budget budget;
    struct names *by_set; /* of the attributes of a mapping */
    uint32_t n, cap;
    struct wanted *wanted; /* that were noted */
    uint32_t n_wanted, cap_wanted;
    size_t held, held_max; /* bytes of names */
};

int kiln_finder_new(struct kiln_book *book, struct kiln_finder **ret_finder)
{
    struct kiln_finder *f;

    *ret_finder = NULL;
    if (!book || kiln_book_count(book) == 0)
        return 0;
    f = kiln_calloc(1, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->book = book;
    f->budget.limit = SIZE_MAX;
    f->held_max = kiln_book_share(book);
    f->held_max = f->held_max > HELD_LEAST ? f->held_max : HELD_LEAST;
    *ret_finder = f;
    return 0;
}

void kiln_finder_free(struct kiln_finder *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n; i++)
        kiln_symbols_unref(f->by_set[i].symbols);
    kiln_free(f->by_set);
    kiln_free(f->wanted);
    kiln_free(f);
}

static int make_room(struct kiln_finder *f, uint32_t n)
{
    int r;

    if (n <= f->n)
        return 0;
    r = kiln_reserve(&f->budget, (void **)&f->by_set, &f->cap, n, sizeof(*f->by_set), UINT32_MAX);
    if (r < 0)
        return r;
    memset(f->by_set + f->n, 0, (n - f->n) * sizeof(*f->by_set));
    f->n = n;
    return 0;
}

static struct wanted id_of(const struct kiln_batch *batch, uint32_t set)
{
    return (struct wanted){set, kiln_frame_build_id(batch, set)};
}

static int look_up(struct kiln_finder *f, const struct wanted *wanted)
{
    struct names *to = &f->by_set[wanted->set];
    int r = 0;

    to->asked = true;
    if (wanted->id.len)
        r = kiln_book_get(f->book, wanted->id, &to->symbols);
    if (r <= 0)
        return r;
    f->held += kiln_symbols_bytes(to->symbols);
    if (f->held > f->held_max && f->held > kiln_symbols_bytes(to->symbols)) {
        f->held -= kiln_symbols_bytes(to->symbols);
        kiln_symbols_unref(to->symbols);
        to->symbols = NULL;
    }
    return 0;
}

int kiln_finder_note(struct kiln_finder *f, const struct kiln_batch *batch)
{
    int r = make_room(f, batch->dict.n_sets);

    for (uint32_t i = 1; r == 0 && i < batch->dict.n_mappings; i++) {
        uint32_t set = batch->dict.mappings[i].attrs;

        if (set == 0 || f->by_set[set].asked)
            continue;
        f->by_set[set].asked = true;
        r = kiln_grow(&f->budget, (void **)&f->wanted, &f->cap_wanted, (uint64_t)f->n_wanted + 1,
                      sizeof(*f->wanted), UINT32_MAX);
        if (r == 0)
            f->wanted[f->n_wanted++] = id_of(batch, set);
    }
    return r;
}

int kiln_finder_load(struct kiln_finder *f)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->n_wanted; i++)
        r = look_up(f, &f->wanted[i]);
    f->n_wanted = 0;
    return r;
}

/* Whether a location says already what a symbol does. */
static bool is_same(const struct kiln_dict *d, const struct kiln_location *location,
                    const struct kiln_symbol_found *found)
{
    if (location->n != 1 || found->n != 1 || found->frames[0].file.len)
        return false;
    return kiln_str_eq(d->strings[d->functions[d->lines[location->first].function].name],
                       found->frames[0].name);
}

static bool says_more(const struct kiln_symbol_found *found)
{
    return found->n > 1 || (found->n == 1 && found->frames[0].file.len);
}

int kiln_finder_get(struct kiln_finder *f, const struct kiln_batch *batch,
                    const struct kiln_location *location, struct kiln_symbol_found *ret_found)
{
    enum kiln_frame_lack lack = kiln_frame_lack(batch, location);
    uint32_t set = batch->dict.mappings[location->mapping].attrs;
    int r = 0;

    if (lack == KILN_LACKS_NOTHING)
        return 0;
    r = make_room(f, batch->dict.n_sets);
    if (r == 0 && !f->by_set[set].asked) {
        struct wanted wanted = id_of(batch, set);

        r = look_up(f, &wanted);
    }
    if (r < 0 || !f->by_set[set].symbols)
        return r;
    if (!kiln_symbols_find(f->by_set[set].symbols, kiln_frame_address(batch, location), ret_found))
        return 0;
    if (lack == KILN_LACKS_LINES)
        return says_more(ret_found);
    return ret_found->n > 0 && !is_same(&batch->dict, location, ret_found);
}

/* ---- what is remapped ---- */

static uint32_t give_lines(void *context, struct kiln_builder *b, const struct kiln_batch *from,
                           const struct kiln_location *location, struct kiln_line *lines)
{
    struct kiln_symbol_found found;
    int r = kiln_finder_get(context, from, location, &found);

    _Static_assert((int)KILN_SYMBOL_FRAMES_MAX <= (int)KILN_REMAP_LINES, "more than fit");
    if (r < 0)
        kiln_builder_fail(b, r);
    for (uint32_t i = 0; r > 0 && i < found.n; i++) {
        const struct kiln_symbol_frame *frame = &found.frames[i];
        struct kiln_function function = {.start_line = frame->start_line};

        function.name = kiln_builder_string(b, frame->name);
        function.system_name =
            frame->system_name.len ? kiln_builder_string(b, frame->system_name) : function.name;
        function.filename = kiln_builder_string(b, frame->file);
        lines[i] = (struct kiln_line){.function = kiln_builder_function(b, &function),
                                      .line = frame->line};
    }
    return r > 0 ? found.n : 0;
}

struct kiln_remap_edit kiln_finder_edit(struct kiln_finder *finder)
{
    return (struct kiln_remap_edit){.context = finder, .lines = finder ? give_lines : NULL};
}

/* Whether any location gets a better name. */
static int any_better(struct kiln_finder *f, const struct kiln_batch *batch)
{
    struct kiln_symbol_found found;
    int r = 0;

    for (uint32_t i = 1; r == 0 && i < batch->dict.n_locations; i++)
        r = kiln_finder_get(f, batch, &batch->dict.locations[i], &found);
    return r;
}

int kiln_book_apply(struct kiln_book *book, size_t memory_bytes, struct kiln_batch **batch,
                    struct kiln_err *err)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_remap_edit edit;
    struct kiln_finder *finder;
    struct kiln_batch *named;
    int r = kiln_finder_new(book, &finder);

    limits.memory_bytes = memory_bytes;
    edit = kiln_finder_edit(finder);
    if (r == 0 && finder)
        r = any_better(finder, *batch);
    if (r > 0) {
        r = kiln_remap_batch(*batch, &edit, &limits, &named, err);
        if (r == 0) {
            kiln_batch_unref(*batch);
            *batch = named;
        }
    }
    kiln_finder_free(finder);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}
