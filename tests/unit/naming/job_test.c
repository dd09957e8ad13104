/* SPDX-License-Identifier: Apache-2.0 */
/* The job over a store that is not one, real files, and a real confined child. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "elf_maker.h"
#include "folder.h"
#include "naming/job.h"
#include "test.h"

#define ID "aabbccdd"

/* A store of one tenant with one build id; addresses leave when they have a symbol. */
struct store {
    struct kiln_engine engine;
    uint64_t addresses[8];
    uint32_t n;
    const char *names[8]; /* what was put; "-": nothing; NULL: not yet */
    uint32_t dropped;
    bool used; /* profiles have code of it */
};

static struct store store;

static struct store *of(struct kiln_engine *engine)
{
    return (struct store *)(void *)engine;
}

static int fake_tenants(struct kiln_engine *engine,
                        int (*each)(void *context, struct kiln_str tenant), void *context)
{
    (void)engine;
    return each(context, KILN_STR("shop"));
}

static int fake_unnamed(struct kiln_engine *engine, struct kiln_str tenant,
                        int (*each)(void *context, const struct kiln_unnamed *unnamed),
                        void *context, struct kiln_err *err)
{
    struct store *s = of(engine);
    uint64_t addresses[8];
    struct kiln_unnamed unnamed = {.build_id = KILN_STR(ID),
                                   .file = KILN_STR("/srv/prog"),
                                   .addresses = addresses,
                                   .samples = 7};

    (void)tenant;
    (void)err;
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->names[i])
            addresses[unnamed.n++] = s->addresses[i];
    return unnamed.n ? each(context, &unnamed) : 0;
}

static int fake_put(struct kiln_engine *engine, struct kiln_str tenant, struct kiln_str build_id,
                    const struct kiln_symbol *symbols, uint32_t n, struct kiln_err *err)
{
    struct store *s = of(engine);

    (void)tenant;
    (void)err;
    CHECK_STR(build_id, ID);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s->n; k++)
            if (s->addresses[k] == symbols[i].address)
                s->names[k] = symbols[i].n == 0                                           ? "-"
                              : kiln_str_eq(symbols[i].frames[0].name, KILN_STR("parse")) ? "parse"
                                                                                          : "?";
    return 0;
}

static int fake_drop(struct kiln_engine *engine, struct kiln_str tenant, struct kiln_str build_id,
                     struct kiln_err *err)
{
    struct store *s = of(engine);

    (void)tenant;
    (void)err;
    if (kiln_str_eq(build_id, KILN_STR(ID))) {
        s->dropped++;
        memset(s->names, 0, sizeof(s->names));
    }
    return 0;
}

static int fake_build_ids(struct kiln_engine *engine, struct kiln_str tenant,
                          int (*each)(void *context, struct kiln_str build_id), void *context,
                          struct kiln_err *err)
{
    (void)tenant;
    (void)err;
    return of(engine)->used ? each(context, KILN_STR(ID)) : 0;
}

static void fake_stats(struct kiln_engine *engine, struct kiln_str tenant,
                       struct kiln_engine_stats *ret_stats)
{
    (void)engine;
    (void)tenant;
    *ret_stats = (struct kiln_engine_stats){.profiles = 1};
}

static const struct kiln_engine_ops fake_ops = {
    .tenants = fake_tenants,
    .unnamed = fake_unnamed,
    .put_symbols = fake_put,
    .drop_symbols = fake_drop,
    .build_ids = fake_build_ids,
    .stats = fake_stats,
};

/* ---- files ---- */

static char folder[FOLDER_NAME];
static struct kiln_io *io;
static struct kiln_depot *depot;
static struct kiln_naming *naming;

/* Code at 0x1000 ("parse") and behind it; stripped, or with its table of symbols. */
static struct kiln_str file_with(bool symbols)
{
    static struct elf_maker maker;
    static const uint8_t code[64];
    static const uint8_t note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xaa\xbb\xcc\xdd";
    static const char strings[] = "\0parse";
    static const Elf64_Sym table[2] = {{0},
                                       {.st_name = 1,
                                        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                        .st_shndx = 2,
                                        .st_value = 0x1000,
                                        .st_size = 16}};

    memset(&maker, 0, sizeof(maker));
    maker.type = ET_DYN;
    elf_maker_add(&maker, (struct elf_part){.name = ".note.gnu.build-id",
                                            .type = SHT_NOTE,
                                            .data = note,
                                            .n = sizeof(note) - 1});
    elf_maker_add(&maker, (struct elf_part){.name = ".text",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = 0x1000,
                                            .data = code,
                                            .n = sizeof(code)});
    if (symbols) {
        elf_maker_add(&maker, (struct elf_part){.name = ".strtab",
                                                .type = SHT_STRTAB,
                                                .data = strings,
                                                .n = sizeof(strings)});
        elf_maker_add(&maker, (struct elf_part){.name = ".symtab",
                                                .type = SHT_SYMTAB,
                                                .data = table,
                                                .n = sizeof(table),
                                                .link = 3,
                                                .entry_size = sizeof(Elf64_Sym)});
    }
    elf_maker_bytes(&maker);
    return (struct kiln_str){(const char *)maker.data, maker.n};
}

static void upload(struct kiln_str file)
{
    const struct kiln_depot_part part = {
        .tenant = "shop", .build_id = KILN_STR(ID), .total = file.len, .bytes = file};
    struct kiln_depot_state state;
    struct kiln_err err = {0};

    CHECK_OK(kiln_depot_put(depot, &part, &state, &err));
    CHECK(state.complete);
}

static void start(uint64_t age_ns)
{
    struct kiln_err err = {0};
    struct kiln_depot_opts depot_opts;
    struct kiln_naming_opts opts;

    /* The child is forked from a thread, whose own arena would want calls that it may not make. */
    mallopt(M_ARENA_MAX, 1);
    store = (struct store){.engine.ops = &fake_ops,
                           .addresses = {0x1004, 0x1008, 0x1030, 0x500000},
                           .n = 4,
                           .used = true};
    folder_make(folder);
    CHECK_OK(kiln_io_open(folder, false, &io));
    depot_opts = (struct kiln_depot_opts){.io = io, .min_free_bytes = 1};
    CHECK_OK(kiln_depot_open(&depot_opts, &depot, &err));
    opts = (struct kiln_naming_opts){.engine = &store.engine,
                                     .depot = depot,
                                     .program = "",
                                     .age_ns = age_ns,
                                     .tick_ms = 3600000};
    CHECK_OK(kiln_naming_start(&opts, &naming, &err));
    kiln_naming_settle(naming);
}

static void stop(void)
{
    kiln_naming_stop(naming);
    kiln_depot_close(depot);
    kiln_io_close(io);
    folder_remove(folder);
}

/* "where: how" of what is missing, or "". */
static int take_why(void *context, const struct kiln_naming_missing *missing)
{
    snprintf(context, 400, "%u of %.*s: %.*s", (unsigned)missing->addresses,
             KILN_STR_ARG(missing->file), KILN_STR_ARG(missing->why));
    return 0;
}

static const char *missing(void)
{
    static char text[400];

    text[0] = '\0';
    CHECK_OK(kiln_naming_missing(naming, KILN_STR("shop"), take_why, text, NULL));
    return text;
}

TEST(job, what_nobody_has_is_missing_and_says_where_it_was_looked_for)
{
    start(0);
    CHECK_TEXT(missing(), "4 of /srv/prog: uploads: none; files of the server: none");
    stop();
}

TEST(job, an_upload_names_what_was_there_before)
{
    char why[400];

    start(0);
    (void)snprintf(why, sizeof(why), "%s", missing());
    /* The places of the code in the file are where the maker put them: behind the note. */
    store.addresses[0] = store.addresses[1] = 0x1004;
    upload(file_with(true));
    kiln_naming_settle(naming);
    CHECK_EQ(store.dropped, 1);
    CHECK_TEXT(store.names[0], "parse");
    CHECK_TEXT(store.names[2], "-"); /* in no function */
    CHECK_TEXT(store.names[3], "-"); /* in no code */
    CHECK_TEXT(missing(), "");
    CHECK(strlen(why) > 0);
    stop();
}

TEST(job, a_stripped_file_settles_nothing_but_a_better_one_does)
{
    start(0);
    upload(file_with(false));
    kiln_naming_settle(naming);
    CHECK(!store.names[0] && !store.names[2]);
    CHECK(strstr(missing(), "stripped"));
    upload(file_with(true));
    kiln_naming_settle(naming);
    CHECK_TEXT(store.names[0], "parse");
    CHECK_TEXT(missing(), "");
    stop();
}

TEST(job, files_go_when_no_profile_uses_them)
{
    struct kiln_depot_stats stats;

    start(1);
    upload(file_with(true));
    kiln_naming_settle(naming);
    kiln_depot_stats(depot, NULL, &stats);
    CHECK_EQ(stats.files, 1);
    stop();
}
