/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations to frames, each location once.
 *
 * A location with lines gives a frame for each, outermost first; one without gives a single frame
 * named by its address in its module: "libc.so.6+0x1234".  Frames that read the same at the wanted
 * granularity are one frame:
 *
 *   function   "parse"                 by name
 *   line       "parse json.c:12"       by name, whole file and line
 *   file       "src/json.c"            by file
 *   address    "0x1234 parse"          by name, address and module
 *
 * Filters look at the function's name and file, whatever the granularity, and at the module only
 * where there is no function: the way pprof's do.  show and hide take frames out here; focus and
 * ignore are about whole stacks, so that a location only remembers whether it matches.
 */
#include <errno.h>

#include "base/hash.h"
#include "core/frame.h"
#include "core/view_int.h"

#define MATCHED_ALREADY 0x80u

/*
 * The most bytes of names that are made, hashed or matched: a long name that many locations share
 * takes few bytes of the input but its length for each of them.
 */
#define NAME_BYTES_MAX  (UINT64_C(1) << 33)

static const char *const filter_names[N_FILTERS] = {"focus", "ignore", "show", "hide"};

/* ---- filters ---- */

int kiln_framer_init(struct kiln_framer *framer, struct kiln_view_box *box,
                     const struct kiln_view_opts *opts, struct kiln_err *err)
{
    const struct kiln_str patterns[N_FILTERS] = {opts->focus, opts->ignore, opts->show, opts->hide};
    const struct kiln_dict *d = &box->view.batch->dict;
    int r = 0;

    *framer = (struct kiln_framer){
        .box = box, .batch = box->view.batch, .err = err, .granularity = opts->granularity};
    kiln_buf_init(&framer->text, 1u << 24);
    for (int i = 0; i < N_FILTERS && r == 0; i++) {
        if (patterns[i].len)
            r = kiln_regex_new(patterns[i], 0, &framer->filters[i], err);
        if (r < 0)
            kiln_err_within(err, "%s", filter_names[i]);
    }
    if (r == 0)
        r = kiln_reserve(&box->budget, (void **)&framer->locations, &framer->locations_cap,
                         d->n_locations, sizeof(*framer->locations), UINT32_MAX);
    if (r == 0)
        r = kiln_reserve(&box->budget, (void **)&framer->matches, &framer->matches_cap,
                         d->n_functions, sizeof(*framer->matches), UINT32_MAX);
    if (r < 0)
        return r;
    memset(framer->locations, 0, d->n_locations * sizeof(*framer->locations));
    memset(framer->matches, 0, d->n_functions * sizeof(*framer->matches));
    return 0;
}

void kiln_framer_done(struct kiln_framer *framer)
{
    struct kiln_budget *budget = &framer->box->budget;

    for (int i = 0; i < N_FILTERS; i++)
        kiln_regex_free(framer->filters[i]);
    kiln_intern_done(&framer->names, budget);
    kiln_array_free(budget, (void **)&framer->locations, &framer->locations_cap,
                    sizeof(*framer->locations));
    kiln_array_free(budget, (void **)&framer->matches, &framer->matches_cap,
                    sizeof(*framer->matches));
    kiln_array_free(budget, (void **)&framer->pool, &framer->pool_cap, sizeof(*framer->pool));
    kiln_buf_done(&framer->text);
}

static int count_work(struct kiln_framer *framer, size_t bytes)
{
    framer->name_bytes += bytes;
    if (framer->name_bytes <= NAME_BYTES_MAX)
        return 0;
    return kiln_err_set(framer->err, KILN_E_LIMIT, NULL,
                        "its names are too long for how often they occur");
}

/* A bit for each filter that matches one of the texts, or an error. */
static int match_filters(struct kiln_framer *framer, struct kiln_str name, struct kiln_str file)
{
    int bits = 0;

    for (int i = 0; i < N_FILTERS; i++) {
        int r;

        if (!framer->filters[i])
            continue;
        r = count_work(framer, name.len + file.len);
        if (r < 0)
            return r;
        r = kiln_regex_matches(framer->filters[i], name);
        if (r == 0 && file.len)
            r = kiln_regex_matches(framer->filters[i], file);
        if (r == KILN_E_LIMIT)
            kiln_err_set(framer->err, r, filter_names[i], "the pattern takes too many steps");
        if (r < 0)
            return r;
        bits |= r << i;
    }
    return bits;
}

static int match_function(struct kiln_framer *framer, uint32_t function, struct kiln_str name,
                          struct kiln_str file)
{
    int bits = framer->matches[function];

    if (bits & MATCHED_ALREADY)
        return bits & ~(int)MATCHED_ALREADY;
    bits = match_filters(framer, name, file);
    if (bits >= 0)
        framer->matches[function] = (uint8_t)((unsigned)bits | MATCHED_ALREADY);
    return bits;
}

/* ---- names ---- */

static struct kiln_str line_name(struct kiln_framer *framer, const struct kiln_frame *frame)
{
    if (!frame->file.len || frame->unnamed)
        return frame->name;
    kiln_buf_clear(&framer->text);
    kiln_buf_add_str(&framer->text, frame->name);
    kiln_buf_putc(&framer->text, ' ');
    kiln_buf_add_str(&framer->text, kiln_frame_base(frame->file));
    if (frame->line)
        kiln_buf_printf(&framer->text, ":%lld", (long long)frame->line);
    return kiln_buf_str(&framer->text);
}

static struct kiln_str file_name(struct kiln_framer *framer, const struct kiln_frame *frame)
{
    if (frame->file.len)
        return frame->file;
    if (!frame->module.len)
        return kiln_frame_unknown;
    kiln_buf_clear(&framer->text);
    kiln_buf_printf(&framer->text, "[%.*s]", KILN_STR_ARG(kiln_frame_base(frame->module)));
    return kiln_buf_str(&framer->text);
}

static struct kiln_str full_address_name(struct kiln_framer *framer, const struct kiln_frame *frame)
{
    if (!frame->function.len || !frame->address)
        return frame->name;
    kiln_buf_clear(&framer->text);
    kiln_buf_printf(&framer->text, "0x%llx ", (unsigned long long)frame->address);
    kiln_buf_add_str(&framer->text, frame->name);
    return kiln_buf_str(&framer->text);
}

/* Gives the frame its name at the granularity, and forgets what frames of that name do not share.
 */
static void coarsen(struct kiln_framer *framer, struct kiln_frame *frame)
{
    switch (framer->granularity) {
    case KILN_BY_FUNCTION:
        frame->line = 0;
        frame->address = frame->function.len ? 0 : frame->address;
        break;
    case KILN_BY_LINE:
        frame->name = line_name(framer, frame);
        frame->address = frame->function.len ? 0 : frame->address;
        break;
    case KILN_BY_FILE:
        frame->unnamed = !frame->file.len;
        frame->name = file_name(framer, frame);
        frame->line = 0;
        frame->address = 0;
        break;
    case KILN_BY_ADDRESS:
        frame->name = full_address_name(framer, frame);
        break;
    }
}

/* ---- interning ---- */

static bool same_frame(const struct kiln_framer *framer, const struct kiln_frame *a,
                       const struct kiln_frame *b)
{
    if (!kiln_str_eq(a->name, b->name))
        return false;
    if (framer->granularity == KILN_BY_LINE)
        return kiln_str_eq(a->file, b->file) && a->line == b->line;
    if (framer->granularity == KILN_BY_ADDRESS)
        return a->address == b->address && kiln_str_eq(a->module, b->module);
    return true;
}

/* Another place of a known frame: what is not true of all of them is dropped. */
static void widen(struct kiln_frame *known, const struct kiln_frame *more)
{
    known->inlined = known->inlined && more->inlined;
    if (!kiln_str_eq(known->function, more->function))
        known->function = KILN_STR("");
    if (!known->file.len)
        known->file = more->file;
    if (!known->module.len)
        known->module = more->module;
    if (!known->kind.len)
        known->kind = more->kind;
    if (known->address != more->address)
        known->address = 0;
}

static int intern_frame(struct kiln_framer *framer, struct kiln_frame *frame, uint32_t *ret)
{
    struct kiln_view_box *box = framer->box;
    struct kiln_view *view = &box->view;
    uint64_t hash = kiln_hash(frame->name.ptr, frame->name.len);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&framer->names, hash);
         kiln_intern_next(&framer->names, &p);) {
        if (same_frame(framer, &view->frames[p.entry], frame)) {
            widen(&view->frames[p.entry], frame);
            *ret = p.entry;
            return 0;
        }
    }
    if (framer->text.error)
        return framer->text.error;
    if (frame->name.ptr == framer->text.ptr)
        frame->name = kiln_arena_copy(&box->arena, frame->name);
    if (!frame->name.ptr)
        return KILN_E_LIMIT;
    r = kiln_grow(&box->budget, (void **)&view->frames, &box->frames_cap,
                  (uint64_t)view->n_frames + 1, sizeof(*view->frames), UINT32_MAX - 1);
    if (r == 0)
        r = kiln_intern_add(&framer->names, &box->budget, hash, view->n_frames);
    if (r < 0)
        return r;
    view->frames[view->n_frames] = *frame;
    *ret = view->n_frames++;
    return 0;
}

/* ---- locations ---- */

/* Adds one frame of a location, unless the filters take it out. */
static int add_frame(struct kiln_framer *framer, struct kiln_view_location *to,
                     struct kiln_frame *frame, int bits)
{
    uint32_t index = 0;
    int r;

    to->focus |= (uint8_t)(bits >> FOCUS & 1);
    to->ignore |= (uint8_t)(bits >> IGNORE & 1);
    if ((framer->filters[SHOW] && !(bits >> SHOW & 1)) || (bits >> HIDE & 1))
        return 0;
    coarsen(framer, frame);
    r = count_work(framer, frame->name.len);
    if (r < 0)
        return r;
    r = intern_frame(framer, frame, &index);
    if (r == 0)
        r = kiln_grow(&framer->box->budget, (void **)&framer->pool, &framer->pool_cap,
                      (uint64_t)framer->n_pool + 1, sizeof(*framer->pool), UINT32_MAX);
    if (r < 0)
        return r;
    framer->pool[framer->n_pool++] = index;
    to->n++;
    return 0;
}

static int add_unnamed(struct kiln_framer *framer, struct kiln_view_location *to,
                       struct kiln_frame *frame)
{
    int bits;

    frame->name = kiln_frame_unnamed(frame->module, frame->address, &framer->text);
    frame->unnamed = true;
    bits = match_filters(framer, frame->name, frame->module);
    return bits < 0 ? bits : add_frame(framer, to, frame, bits);
}

static int add_line(struct kiln_framer *framer, struct kiln_view_location *to,
                    const struct kiln_frame *place, const struct kiln_line *line)
{
    const struct kiln_dict *d = &framer->batch->dict;
    const struct kiln_function *function = &d->functions[line->function];
    struct kiln_frame frame = *place;
    int bits;

    frame.name = kiln_frame_function(d, function);
    frame.function = frame.name;
    frame.file = d->strings[function->filename];
    frame.line = line->line;
    frame.unnamed = kiln_frame_is_made_up(d, function);
    if (!frame.name.len)
        return add_unnamed(framer, to, &frame);
    bits = match_function(framer, line->function, frame.name, frame.file);
    return bits < 0 ? bits : add_frame(framer, to, &frame, bits);
}

int kiln_framer_make(struct kiln_framer *framer, uint32_t index)
{
    const struct kiln_batch *batch = framer->batch;
    const struct kiln_location *location = &batch->dict.locations[index];
    struct kiln_view_location made = {.first = framer->n_pool, .done = 1};
    struct kiln_frame place = {
        .module = batch->dict.strings[batch->dict.mappings[location->mapping].filename],
        .kind = kiln_set_text(batch, location->attrs, KILN_STR("profile.frame.type")),
        .function = KILN_STR(""),
        .file = KILN_STR(""),
        .address = kiln_frame_address(batch, location),
    };
    int r = 0;

    if (framer->locations[index].done)
        return 0;
    if (location->n == 0)
        r = add_unnamed(framer, &made, &place);
    for (uint32_t i = location->n; i > 0 && r == 0; i--) {
        place.inlined = i != location->n;
        r = add_line(framer, &made, &place, &batch->dict.lines[location->first + i - 1]);
    }
    if (r < 0)
        return r;
    framer->locations[index] = made;
    return 0;
}
