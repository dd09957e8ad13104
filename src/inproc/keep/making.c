/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A location's address is the file's own, as its mapping says: the same in every process that has
 * the file, and the same that the host's profiler tells.  Callers are told by the last byte of
 * their call, as everywhere.
 */
#include "inproc/keep/making.h"

#include <stdio.h>

#include "base/bytetext.h"
#include "base/hash.h"
#include "core/schema.h"
#include "inproc/keep/mappings.h"
#include "inproc/start.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"

#define BATCH_MAX   ((size_t)48 << 20)
#define SCRATCH_MAX ((size_t)8 << 20)
#define STACK_BIT   ((uint64_t)1 << 63) /* of `what`: the id of a stack */

/* ---- what was made already ---- */

static uint32_t *remembered(struct kiln_in_making *m, uint64_t what)
{
    for (struct kiln_probe p = kiln_intern_probe(&m->index, kiln_hash_mix(0, what));
         kiln_intern_next(&m->index, &p);) {
        if (m->known[p.entry].what == what)
            return &m->known[p.entry].made;
    }
    return NULL;
}

static uint32_t remember(struct kiln_in_making *m, uint64_t what, uint32_t made)
{
    int r = kiln_grow(&m->budget, (void **)&m->known, &m->cap_known, (uint64_t)m->n_known + 1,
                      sizeof(*m->known), UINT32_MAX - 1);

    if (r == 0)
        r = kiln_intern_add(&m->index, &m->budget, kiln_hash_mix(0, what), m->n_known);
    if (r < 0)
        kiln_builder_fail(m->b, r);
    else
        m->known[m->n_known++] = (struct kiln_in_known){what, made};
    return made;
}

/* ---- texts and attributes ---- */

static uint32_t text(struct kiln_in_making *m, const char *words)
{
    struct kiln_str s = kiln_str_of(words);
    struct kiln_buf clean;
    uint32_t string;

    if (kiln_utf8_valid(s))
        return kiln_builder_string(m->b, s);
    kiln_buf_init(&clean, (size_t)64 << 10);
    kiln_buf_add_utf8(&clean, s);
    string = kiln_builder_string(m->b, kiln_buf_str(&clean));
    kiln_buf_done(&clean);
    return string;
}

static uint32_t attr(struct kiln_in_making *m, const char *key, const char *value)
{
    return kiln_builder_attr(m->b, text(m, key), kiln_value_string(text(m, value)), 0);
}

uint32_t kiln_in_making_attrs(struct kiln_in_making *m, uint16_t labels,
                              const struct kiln_in_label *more, uint32_t n_more)
{
    struct kiln_in_label list[KILN_IN_LABELS_MAX];
    uint32_t attrs[KILN_IN_LABELS_MAX + 4], n_labels = kiln_in_labels_get(labels, list), n = 0;

    for (uint32_t i = 0; i < n_labels; i++)
        attrs[n++] = attr(m, list[i].key, list[i].value);
    for (uint32_t i = 0; i < n_more && i < 4; i++) {
        if (more[i].value)
            attrs[n++] = attr(m, more[i].key, more[i].value);
    }
    return n ? kiln_builder_set(m->b, attrs, n, NULL) : 0;
}

uint32_t kiln_in_making_link(struct kiln_in_making *m, const struct kiln_in_key *key)
{
    static const struct kiln_link none;
    struct kiln_link link;

    memcpy(link.trace_id, key->trace, sizeof(link.trace_id));
    memcpy(link.span_id, key->span, sizeof(link.span_id));
    return memcmp(&link, &none, sizeof(none)) == 0 ? 0 : kiln_builder_link(m->b, &link);
}

/* ---- stacks ---- */

/* OTLP wants a mapping to have a build id: without any there is none. */
static uint32_t mapping_of(struct kiln_in_making *m, struct kiln_in_mapping *found)
{
    char id[2 * KILN_BUILD_ID_MAX + 1] = "";
    struct kiln_mapping mapping = {.start = found->code_address,
                                   .limit = found->code_address + found->code_size,
                                   .offset = found->code_offset};
    uint32_t one;

    if (found->made || (!found->build_id_len && !found->file_hash[0]))
        return found->made;
    kiln_hex_encode(found->build_id, found->build_id_len, id);
    one = found->build_id_len ? attr(m, "process.executable.build_id.gnu", id)
                              : attr(m, "process.executable.build_id.htlhash", found->file_hash);
    mapping.attrs = kiln_builder_set(m->b, &one, 1, NULL);
    mapping.filename = text(m, found->path);
    found->made = kiln_builder_mapping(m->b, &mapping);
    return found->made;
}

/* UINT32_MAX: it is the library's own. */
static uint32_t location(struct kiln_in_making *m, uint64_t address)
{
    uint32_t *made = remembered(m, address);
    struct kiln_in_mapping *found;
    struct kiln_location fresh = {.address = address};

    if (made)
        return *made;
    found = kiln_in_mappings_find(address);
    if (found && found->ours)
        return remember(m, address, UINT32_MAX);
    if (found) {
        fresh.mapping = mapping_of(m, found);
        fresh.address = address + found->shift;
    }
    return remember(m, address, kiln_builder_location(m->b, &fresh, NULL, 0));
}

uint32_t kiln_in_making_stack(struct kiln_in_making *m, uint32_t id)
{
    uint64_t what = STACK_BIT | id;
    uint32_t *made = remembered(m, what), locations[KILN_IN_DEPTH_MAX], n = 0;
    const uint64_t *pcs;
    unsigned n_pcs;

    if (made)
        return *made;
    n_pcs = kiln_in_stack_get(id, &pcs);
    for (unsigned i = 0; i < n_pcs && i < KILN_IN_DEPTH_MAX; i++) {
        uint32_t next = location(m, pcs[i] - (i > 0));

        if (next != UINT32_MAX)
            locations[n++] = next;
    }
    return remember(m, what, kiln_builder_stack(m->b, locations, n));
}

/* ---- profiles ---- */

static void open_resource(struct kiln_in_making *m)
{
    uint32_t attrs[KILN_IN_ATTRIBUTES_MAX], n = 0;
    struct kiln_resource resource = {0};

    for (; n < kiln_in_settings.n_attributes; n++)
        attrs[n] =
            attr(m, kiln_in_settings.attributes[n].key, kiln_in_settings.attributes[n].value);
    resource.attrs = kiln_builder_set(m->b, attrs, n, NULL);
    resource.schema_url = text(m, KILN_SCHEMA_URL);
    kiln_builder_add_resource(m->b, &resource);
}

void kiln_in_making_scope(struct kiln_in_making *m, const char *family)
{
    struct kiln_scope scope = {.name = text(m, "kiln"),
                               .version = text(m, KILN_VERSION),
                               .schema_url = text(m, KILN_SCHEMA_URL)};
    uint32_t one = family ? attr(m, "profile.type", family) : 0;

    scope.attrs = family ? kiln_builder_set(m->b, &one, 1, NULL) : 0;
    kiln_builder_add_scope(m->b, &scope);
}

/* For whoever reads the profile: "kiln: incomplete since the start: 3 ring, 1 stacks". */
static uint32_t losses(struct kiln_in_making *m)
{
    static const char *const words[] = {
#define X(name, word) word,
        KILN_IN_LOSS_MAP(X)
#undef X
    };
    char line[512] = "kiln: incomplete since the start:";
    size_t n = strlen(line), empty = n;
    struct kiln_value value;
    uint32_t one;

    for (unsigned i = 0; i < KILN_IN_LOSSES && n < sizeof(line); i++) {
        uint64_t lost = kiln_in_lost_total((enum kiln_in_loss)i);

        if (lost)
            n += (size_t)snprintf(line + n, sizeof(line) - n, "%s %lu %s", n == empty ? "" : ",",
                                  lost, words[i]);
    }
    if (n == empty)
        return 0;
    value = kiln_value_string(text(m, line));
    value = kiln_builder_array(m->b, &value, 1);
    one = kiln_builder_attr(m->b, text(m, "pprof.profile.comment"), value, 0);
    return kiln_builder_set(m->b, &one, 1, NULL);
}

uint32_t kiln_in_making_profile(struct kiln_in_making *m, const struct kiln_in_type *type)
{
    struct kiln_profile profile = {
        .sample_type = {text(m, type->type), text(m, type->unit)},
        .period = type->period,
        .time_ns = m->since_ns,
        .duration_ns = m->until_ns > m->since_ns ? m->until_ns - m->since_ns : 0,
        .attrs = losses(m),
    };

    if (type->period_type) {
        profile.period_type.type = text(m, type->period_type);
        profile.period_type.unit = text(m, type->period_unit);
    }
    return kiln_builder_add_profile(m->b, &profile);
}

/* ---- beginning and end ---- */

int kiln_in_making_init(struct kiln_in_making *m, uint64_t since_ns, uint64_t until_ns)
{
    struct kiln_limits limits = kiln_limits_default;
    int r;

    *m = (struct kiln_in_making){
        .since_ns = since_ns, .until_ns = until_ns, .budget = {.limit = SCRATCH_MAX}};
    limits.memory_bytes = BATCH_MAX;
    r = kiln_builder_new(&limits, &m->b);
    if (r < 0)
        return r;
    kiln_in_mappings_look();
    kiln_in_mappings_lock();
    kiln_in_mappings_unmake();
    open_resource(m);
    return 0;
}

int kiln_in_making_done(struct kiln_in_making *m, struct kiln_batch **ret_batch,
                        struct kiln_err *err)
{
    kiln_in_mappings_unlock();
    kiln_array_free(&m->budget, (void **)&m->known, &m->cap_known, sizeof(*m->known));
    kiln_intern_done(&m->index, &m->budget);
    return kiln_builder_finish(m->b, ret_batch, err);
}
