/* SPDX-License-Identifier: Apache-2.0 */
/* Makers, and stacks that were never sent before. */
#include "cli/load_make.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"

int kiln_load_maker_new(struct kiln_load *load, struct kiln_load_maker **ret_maker)
{
    struct kiln_load_maker *m = kiln_calloc(1, sizeof(*m));
    size_t rows = load->opts.samples > load->n_entries ? load->opts.samples : load->n_entries;
    int r;

    if (!m)
        return -ENOMEM;
    m->load = load;
    m->rows = kiln_calloc(rows, sizeof(*m->rows));
    m->order = kiln_calloc(rows, sizeof(*m->order));
    m->times = kiln_calloc(rows, sizeof(*m->times));
    m->values = kiln_calloc(rows, sizeof(*m->values));
    r = m->rows && m->order && m->times && m->values ? kiln_builder_new(NULL, &m->b) : -ENOMEM;
    if (r == 0)
        r = kiln_remap_new(m->b, load->base, NULL, &m->remap);
    if (r < 0) {
        kiln_load_maker_free(m);
        return r;
    }
    kiln_remap_movable(m->remap);
    *ret_maker = m;
    return 0;
}

void kiln_load_maker_free(struct kiln_load_maker *m)
{
    if (!m)
        return;
    kiln_remap_free(m->remap);
    kiln_builder_free(m->b);
    kiln_free(m->rows);
    kiln_free(m->order);
    kiln_free(m->times);
    kiln_free(m->values);
    kiln_free(m);
}

/* ---- hosts ---- */

/* Hosts are replaced one by one: host 0 in the first rounds, the last one in the last rounds. */
static uint64_t generation(const struct kiln_load *load, uint32_t host, uint64_t number)
{
    double rounds = (double)(number / kiln_load_round(load)) * load->opts.host_churn;

    return (uint64_t)(rounds + (double)host / load->opts.hosts);
}

void kiln_load_name_host(const struct kiln_load *load, uint32_t host,
                         struct kiln_load_request *request)
{
    uint64_t name = host + generation(load, host, request->number) * load->opts.hosts;

    snprintf(request->host, sizeof(request->host), "host-%03llu", (unsigned long long)name);
    if (load->opts.tenants)
        snprintf(request->tenant, sizeof(request->tenant), "tenant-%03u",
                 host % load->opts.tenants);
}

/* ---- stacks ---- */

#define GRAFT_TRIES 16u

/* A place in the code of the mapping where no frame of the base is, most likely. */
static void move_elsewhere(struct kiln_load_maker *m, struct kiln_location *l,
                           struct kiln_line *lines)
{
    const struct kiln_mapping *mapping = &m->load->base->dict.mappings[l->mapping];
    uint64_t size = mapping->limit - mapping->start;

    if (l->address == 0) { /* a frame that has only its line: another one of the file */
        if (l->n)
            lines[0].line = 1 + (int64_t)(kiln_dice_next(&m->dice) % 100000);
        return;
    }
    if (l->mapping && mapping->limit > mapping->start)
        l->address = mapping->start + kiln_dice_next(&m->dice) % size;
    else
        l->address ^= 1 + kiln_dice_next(&m->dice) % 0xfffff;
}

/* A location of the base, brought over with another address. */
static uint32_t changed_location(struct kiln_load_maker *m, uint32_t location)
{
    const struct kiln_dict *dict = &m->load->base->dict;
    struct kiln_location l = dict->locations[location];
    struct kiln_line lines[16];
    uint32_t n = l.n < KILN_ARRAY_LEN(lines) ? l.n : (uint32_t)KILN_ARRAY_LEN(lines);

    for (uint32_t i = 0; i < n; i++) {
        lines[i] = dict->lines[l.first + i];
        lines[i].function = kiln_remap_function(m->remap, lines[i].function);
    }
    move_elsewhere(m, &l, lines);
    l.mapping = kiln_remap_mapping(m->remap, l.mapping);
    l.attrs = kiln_remap_set(m->remap, l.attrs);
    return kiln_builder_location(m->b, &l, lines, n);
}

static uint32_t stack_with_address(struct kiln_load_maker *m, uint32_t service, uint32_t stack)
{
    const struct kiln_dict *dict = &m->load->base->dict;
    struct kiln_range range = dict->stacks[stack];
    uint32_t at = kiln_dice_below(&m->dice, range.n);

    for (uint32_t i = 0; i < range.n; i++) {
        uint32_t location = dict->frames[range.first + i];

        m->frames[i] =
            i == at ? changed_location(m, location) : kiln_remap_location(m->remap, location);
    }
    kiln_load_note_base(m->load, service, stack, range.n - 1 - at);
    kiln_load_note_new(m->load, at + 1);
    return kiln_builder_stack(m->b, m->frames, range.n);
}

/* Callees from elsewhere into m->other, leaf first; how many. */
static uint32_t draw_callees(struct kiln_load_maker *m, uint32_t most)
{
    const struct kiln_load *load = m->load;
    const struct kiln_dict *dict = &load->base->dict;
    uint32_t entry = kiln_dice_below(&m->dice, load->n_entries);
    struct kiln_range range = dict->stacks[load->entries[entry].stack];
    uint32_t n = 1 + kiln_dice_below(&m->dice, range.n < most ? range.n : most);

    for (uint32_t i = 0; i < n; i++)
        m->other[i] = load->opts.how == KILN_CHURN_GRAFT && i < range.n
                          ? dict->frames[range.first + i]
                          : 1 + kiln_dice_below(&m->dice, dict->n_locations - 1);
    return n;
}

/* Callers of one stack, callees of another, in m->other, leaf first; how many. */
static uint32_t draw_graft(struct kiln_load_maker *m, uint32_t stack)
{
    const struct kiln_dict *dict = &m->load->base->dict;
    struct kiln_range range = dict->stacks[stack];
    uint32_t callers = 1 + kiln_dice_below(&m->dice, range.n);
    uint32_t n = draw_callees(m, KILN_LOAD_DEPTH_MAX / 2);

    if (callers > KILN_LOAD_DEPTH_MAX - n)
        callers = KILN_LOAD_DEPTH_MAX - n;
    for (uint32_t i = range.n - callers; i < range.n; i++)
        m->other[n++] = dict->frames[range.first + i];
    return n;
}

/* A draw may give what is there already: in the base, or in this request. */
static uint32_t stack_with_callees(struct kiln_load_maker *m, uint32_t service, uint32_t stack)
{
    for (uint32_t tries = 0; tries < GRAFT_TRIES; tries++) {
        uint32_t before = kiln_builder_peek(m->b)->dict.n_stacks;
        uint32_t n = draw_graft(m, stack), made;

        if (kiln_load_in_base(m->load, m->other, n))
            continue;
        for (uint32_t i = 0; i < n; i++)
            m->frames[i] = kiln_remap_location(m->remap, m->other[i]);
        made = kiln_builder_stack(m->b, m->frames, n);
        if (made < before)
            continue;
        kiln_load_note_stack(m->load, service, m->other, n);
        return made;
    }
    return stack_with_address(m, service, stack); /* too small a base to graft from */
}

uint32_t kiln_load_stack(struct kiln_load_maker *m, uint32_t service, uint32_t stack)
{
    uint32_t n = m->load->base->dict.stacks[stack].n;

    if (n > 0 && n <= KILN_LOAD_DEPTH_MAX && kiln_dice_chance(&m->dice, m->load->opts.churn))
        return m->load->opts.how == KILN_CHURN_ADDRESS ? stack_with_address(m, service, stack)
                                                       : stack_with_callees(m, service, stack);
    kiln_load_note_base(m->load, service, stack, n);
    return kiln_remap_stack(m->remap, stack);
}

/* ---- requests ---- */

static void draw_spans(struct kiln_load_maker *m)
{
    for (uint32_t i = 0; i < KILN_LOAD_SPANS; i++) {
        uint64_t words[3] = {kiln_dice_next(&m->dice), kiln_dice_next(&m->dice),
                             kiln_dice_next(&m->dice)};
        struct kiln_link link;

        memcpy(link.trace_id, words, sizeof(link.trace_id));
        memcpy(link.span_id, &words[2], sizeof(link.span_id));
        m->spans[i] = kiln_builder_link(m->b, &link);
    }
}

uint32_t kiln_load_span(struct kiln_load_maker *m)
{
    if (m->load->opts.spans <= 0 || !kiln_dice_chance(&m->dice, m->load->opts.spans))
        return 0;
    return m->spans[kiln_dice_below(&m->dice, KILN_LOAD_SPANS)];
}

static void put_big_endian(uint8_t *at, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

void kiln_load_id(struct kiln_load_maker *m, struct kiln_profile *profile)
{
    if (m->load->opts.ids) {
        put_big_endian(profile->id, m->load->opts.seed, 4);
        put_big_endian(profile->id + 4, m->number, 8);
        put_big_endian(profile->id + 12, m->n_profiles, 4);
    }
    m->n_profiles++;
}

/* A remap leaves a builder before that is finished: the next one is there already. */
static int next_builder(struct kiln_load_maker *m, struct kiln_builder **ret_done)
{
    struct kiln_builder *next;
    int r = kiln_builder_new(NULL, &next);

    if (r < 0)
        return r;
    r = kiln_remap_move(m->remap, next);
    if (r < 0) {
        kiln_builder_free(next);
        return r;
    }
    *ret_done = m->b;
    m->b = next;
    return 0;
}

static uint64_t time_of(const struct kiln_load *load, uint64_t number)
{
    if (load->start_ns)
        return load->start_ns + number / kiln_load_round(load) * load->step_ns;
    return kiln_clock_unix_ns() - kiln_load_step_ns(load);
}

int kiln_load_make(struct kiln_load_maker *m, uint64_t number, struct kiln_batch **ret_batch,
                   struct kiln_load_request *ret_request, struct kiln_err *err)
{
    const struct kiln_load_opts *opts = &m->load->opts;
    struct kiln_load_request request = {.number = number};
    struct kiln_builder *done;
    int r;

    m->number = number;
    m->dice = kiln_dice_of(opts->seed, number);
    m->n_profiles = m->n_samples = 0;
    request.time_ns = time_of(m->load, number);
    if (opts->spans > 0)
        draw_spans(m);
    if (opts->shape == KILN_LOAD_HOST)
        kiln_load_make_host(m, &request);
    else
        kiln_load_make_pprof(m, &request);
    request.profiles = m->n_profiles;
    request.samples = m->n_samples;
    r = next_builder(m, &done);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = kiln_builder_finish(done, ret_batch, err);
    if (r == 0)
        *ret_request = request;
    return r;
}
