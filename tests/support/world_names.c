/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs b0, b1, ... with addresses 0x2000, 0x2010, ...  What is at an address is the same
 * whenever it is told: nothing, a function as a symbol table has it, or up to three frames; so it
 * does not matter when it came, and whether blocks were rewritten meanwhile.
 */
#include <stdio.h>

#include "test.h"
#include "world.h"

#define FIRST 0x2000u
#define STEP  0x10u
#define START 0x400000u

static const char *const files[] = {"a.c", "b.c", "c.c"};

/* What is at an address of a program. */
static struct kiln_symbol symbol_of(uint32_t build, uint32_t address,
                                    struct kiln_symbol_frame frames[3], char names[3][8])
{
    uint32_t mix = build * 7 + address * 5;
    struct kiln_symbol symbol = {
        .address = FIRST + address * STEP, .size = 1, .frames = frames, .n = mix % 4};

    for (uint32_t i = 0; i < symbol.n; i++) {
        snprintf(names[i], sizeof(names[i]), "f%u", (mix + i * 3) % 8);
        frames[i] = (struct kiln_symbol_frame){.name = kiln_str_of(names[i])};
        if (symbol.n > 1 || mix % 3) {
            frames[i].file = kiln_str_of(files[i]);
            frames[i].line = 1 + i;
        }
    }
    return symbol;
}

uint32_t world_mapping(struct world *w, struct kiln_builder *b, uint64_t *ret_address)
{
    struct kiln_mapping mapping = {.start = START, .limit = 2 * START};
    char id[8];
    uint32_t attr;

    snprintf(id, sizeof(id), "b%u", world_roll(w, WORLD_BUILDS));
    attr = kiln_builder_text_attr(b, KILN_STR("process.executable.build_id.gnu"), kiln_str_of(id));
    mapping.attrs = kiln_builder_set(b, &attr, 1, NULL);
    mapping.filename = kiln_builder_string(b, KILN_STR("/bin/app"));
    *ret_address = START + FIRST + world_roll(w, WORLD_ADDRESSES) * STEP;
    return kiln_builder_mapping(b, &mapping);
}

void world_name(struct world *w)
{
    uint32_t tenant = world_roll(w, 4) == 0, build = world_roll(w, WORLD_BUILDS);
    uint32_t n = 1 + world_roll(w, WORLD_ADDRESSES);
    struct kiln_engine *engine = w->kit.engine;
    char id[8];

    snprintf(id, sizeof(id), "b%u", build);
    if (world_roll(w, 6) == 0) {
        CHECK_OK(engine->ops->drop_symbols(engine, world_tenants[tenant], kiln_str_of(id), NULL));
        memset(w->named[tenant][build], 0, sizeof(w->named[tenant][build]));
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t address = world_roll(w, WORLD_ADDRESSES);
        struct kiln_symbol_frame frames[3];
        char names[3][8];
        struct kiln_symbol symbol = symbol_of(build, address, frames, names);

        CHECK_OK(engine->ops->put_symbols(engine, world_tenants[tenant], kiln_str_of(id), &symbol,
                                          1, NULL));
        w->named[tenant][build][address] = true;
    }
}

/* ---- truth ---- */

/* Which program and address a location is of; false: none whose names come later. */
static bool place_of(const struct kiln_batch *batch, const struct kiln_location *l,
                     uint32_t *ret_build, uint32_t *ret_address)
{
    const struct kiln_mapping *mapping = &batch->dict.mappings[l->mapping];
    struct kiln_str id =
        kiln_set_text(batch, mapping->attrs, KILN_STR("process.executable.build_id.gnu"));

    if (id.len != 2)
        return false;
    *ret_build = (uint32_t)(id.ptr[1] - '0');
    *ret_address = (uint32_t)(l->address - mapping->start + mapping->offset - FIRST) / STEP;
    return true;
}

/* 2: it has no name; 1: a function without file and line; 0: all there is to know. */
static int lack_of(const struct kiln_batch *batch, const struct kiln_location *l)
{
    const struct kiln_dict *d = &batch->dict;
    const struct kiln_line *line = &d->lines[l->first];

    if (l->n != 1)
        return l->n ? 0 : 2;
    return line->line || d->functions[line->function].filename ? 0 : 1;
}

/* It has every name that it could have. */
static void check_location(struct world *w, uint32_t tenant, const struct kiln_batch *batch,
                           const struct kiln_location *l,
                           bool lacking[WORLD_BUILDS][WORLD_ADDRESSES])
{
    struct kiln_symbol_frame frames[3];
    uint32_t build, address;
    struct kiln_symbol symbol;
    char names[3][8];
    int lack = lack_of(batch, l);

    if (!place_of(batch, l, &build, &address) || lack == 0)
        return;
    if (!w->named[tenant][build][address]) {
        lacking[build][address] = true;
        return;
    }
    symbol = symbol_of(build, address, frames, names);
    CHECK(lack != 2 || symbol.n == 0);
    CHECK(lack != 1 || symbol.n == 0 || (symbol.n == 1 && !frames[0].file.len));
}

struct told {
    bool (*lacking)[WORLD_ADDRESSES];
};

static int tell(void *context, const struct kiln_unnamed *u)
{
    struct told *told = context;
    uint32_t build = (uint32_t)(u->build_id.ptr[1] - '0');

    CHECK(!u->more && u->samples > 0 && u->newest_ns > 0);
    CHECK_STR(u->file, "/bin/app");
    for (uint32_t i = 0; i < u->n; i++) {
        uint32_t address = (uint32_t)(u->addresses[i] - FIRST) / STEP;

        CHECK(told->lacking[build][address]);
        told->lacking[build][address] = false;
    }
    return 0;
}

void world_check_names(struct world *w, uint32_t tenant)
{
    bool lacking[WORLD_BUILDS][WORLD_ADDRESSES] = {0};
    struct kiln_selection all = {.tenant = world_tenants[tenant]};
    struct kiln_engine *engine = w->kit.engine;
    struct kiln_batch *batch = NULL;
    struct told told = {lacking};

    CHECK_OK(engine->ops->select(engine, &all, 0, &batch, NULL));
    for (uint32_t i = 1; i < batch->dict.n_locations; i++)
        check_location(w, tenant, batch, &batch->dict.locations[i], lacking);
    kiln_batch_unref(batch);
    CHECK_OK(engine->ops->unnamed(engine, world_tenants[tenant], tell, &told, NULL));
    for (uint32_t i = 0; i < WORLD_BUILDS; i++) {
        for (uint32_t k = 0; k < WORLD_ADDRESSES; k++)
            CHECK(!lacking[i][k]);
    }
}
