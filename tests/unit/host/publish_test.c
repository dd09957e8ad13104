/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gatherings drawn by hand, with a resolver that knows a few names: what the batch says.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/otlp_check.h"
#include "core/frame.h"
#include "core/schema.h"
#include "core/type.h"
#include "drawn.h"
#include "host/publish.h"
#include "symbol/resolver.h"
#include "test.h"

/* ---- a resolver that is asked instead of the real one ---- */

static const struct {
    uint32_t kind;
    uint64_t id, address;
    const char *function, *system_name, *file;
    uint32_t line;
    uint64_t begin;
} known[] = {
    {KILN_SOURCE_ELF, 1, 0x1010, "main", NULL, NULL, 0, 0},
    {KILN_SOURCE_ELF, 1, 0x1020, "parse", NULL, NULL, 0, 0},
    {KILN_SOURCE_ELF, 1, 0x1030, "std::fmt::write", "_ZN3std3fmt5write17h0123456789abcdefE", NULL,
     0, 0},
    {KILN_SOURCE_ELF, 1, 0x1040, "bad\xff name", NULL, NULL, 0, 0},
    {KILN_SOURCE_ELF, 1, 0x1050, "swap", NULL, "sort.h", 12, 0},
    {KILN_SOURCE_ELF, 1, 0x1050, "sort", "_Z4sortv", "sort.c", 40, 0},
    {KILN_SOURCE_ELF, 1, 0x1111, NULL, NULL, NULL, 0, 0x1100},
    {KILN_SOURCE_ELF, 1, 0x1122, NULL, NULL, NULL, 0, 0x1100},
    {KILN_SOURCE_ELF, 1, 0x1133, NULL, NULL, NULL, 0, 0x1130},
    {KILN_SOURCE_ELF, 2, 0x2010, "main.main", NULL, "/src/main.go", 7, 0},
    {KILN_SOURCE_KERNEL, 0, 0xffffffff81000010, "do_syscall_64", NULL, NULL, 0, 0},
    {KILN_SOURCE_KERNEL, 0, 0xffffffff81000020, "do_syscall_64", NULL, NULL, 0, 0},
    {KILN_SOURCE_KERNEL, 0, 0xffffffff81000030, "__schedule", NULL, NULL, 0, 0},
    {KILN_SOURCE_KERNEL, 0, 0xffffffff81000040, "schedule", NULL, NULL, 0, 0},
};
static int asked_for_perf_map;

/* Rows of one address that follow each other are its frames, innermost first. */
static struct kiln_name name_of(size_t k)
{
    static struct kiln_name_frame frames[sizeof(known) / sizeof(known[0])];
    size_t n = known[k].function != NULL;

    while (n && k >= n && known[k - n].address == known[k].address)
        n++;
    for (size_t i = 0; i < n; i++)
        frames[k - i] = (struct kiln_name_frame){
            .function = kiln_str_of(known[k - i].function),
            .system_name = kiln_str_of(known[k - i].system_name),
            .file = kiln_str_of(known[k - i].file),
            .line = known[k - i].line,
        };
    return (struct kiln_name){
        .frames = frames + k + 1 - n, .n = (uint32_t)n, .begin = known[k].begin};
}

int kiln_resolver_ask(struct kiln_resolver *resolver, const struct kiln_source *source,
                      const uint64_t *addresses, uint32_t n, struct kiln_name *names)
{
    (void)resolver;
    asked_for_perf_map += source->kind == KILN_SOURCE_PERF_MAP;
    for (uint32_t i = 0; i < n; i++) {
        names[i] = (struct kiln_name){.n = 0};
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            if (known[k].kind == source->kind && known[k].address == addresses[i] &&
                known[k].id == source->id)
                names[i] = name_of(k);
    }
    return 0;
}

/* ---- the cast ---- */

static struct kiln_object app = {.refs = 1,
                                 .id = 1,
                                 .path = "/usr/bin/app",
                                 .build_id = {0xab, 0xcd},
                                 .build_id_len = 2,
                                 .code_address = 0x1000,
                                 .code_offset = 0x800,
                                 .code_size = 0x1000,
                                 .fd = -1};
static struct kiln_object gopher = {.refs = 1,
                                    .id = 2,
                                    .path = "/usr/bin/gopher",
                                    .go_build_id = "a/b/c/d",
                                    .file_hash = "00112233445566778899aabbccddeeff",
                                    .is_go = true,
                                    .fd = -1};
static const struct kiln_identity_attr shop_attrs[] = {
    {"team", "a b"},           {"zone", "eu"},          {"service.name", "shop"},
    {"process.owner", "root"}, {"host.name", "forged"}, {"process.pid", "77"}};
static const struct kiln_identity_attr plain_attrs[] = {{"process.command", "./gopher"}};
static struct kiln_identity shop = {.refs = 1,
                                    .pid = 10,
                                    .parent_pid = 1,
                                    .uid = 0,
                                    .start_unix_ns = 1772366400 * KILN_NS_PER_S,
                                    .name = "app",
                                    .path = "/usr/bin/app",
                                    .command = "app",
                                    .owner = "root",
                                    .service = "shop",
                                    .attrs = shop_attrs,
                                    .n_attrs = 6};
static struct kiln_identity plain = {.refs = 1,
                                     .pid = 11,
                                     .name = "gopher",
                                     .path = "",
                                     .command = "./gopher",
                                     .owner = "",
                                     .attrs = plain_attrs,
                                     .n_attrs = 1};
static struct kiln_identity kernel = {
    .refs = 1, .is_kernel = true, .name = "kernel", .path = "", .command = "", .owner = ""};

static struct kiln_gframe in(struct kiln_object *object, uint64_t address)
{
    return (struct kiln_gframe){.kind = KILN_FRAME_NATIVE, .object = object, .address = address};
}

static struct kiln_gframe in_kernel(uint64_t address)
{
    return (struct kiln_gframe){.kind = KILN_FRAME_KERNEL, .address = address};
}

static struct kiln_gframe in_jit(uint32_t map, uint64_t address)
{
    return (struct kiln_gframe){.kind = KILN_FRAME_JIT, .map = map, .address = address};
}

static struct kiln_gather *gather;

static void add_sample(const struct kiln_gather_sample *sample)
{
    if (!gather)
        CHECK_OK(kiln_gather_new(0, &gather));
    CHECK_OK(kiln_gather_add(gather, sample));
}

static void add(struct kiln_identity *identity, const struct kiln_gframe *frames, uint32_t n,
                enum kiln_end end)
{
    add_sample(&(struct kiln_gather_sample){.identity = identity,
                                            .tid = identity->pid,
                                            .comm = identity->name,
                                            .frames = frames,
                                            .n_frames = n,
                                            .end = (uint8_t)end,
                                            .hz = 20,
                                            .value = 1});
}

#define ADD(identity, end, ...)                                                                    \
    do {                                                                                           \
        struct kiln_gframe frames_[] = {__VA_ARGS__};                                              \
        add(identity, frames_, (uint32_t)(sizeof(frames_) / sizeof(frames_[0])), end);             \
    } while (0)

static struct kiln_gathering *take(void)
{
    struct kiln_gathering *g;

    CHECK_OK(kiln_gather_take(gather, &g));
    kiln_gather_free(gather);
    gather = NULL;
    g->begin_unix_ns = 1772366400 * KILN_NS_PER_S;
    g->waits_begin_unix_ns = g->begin_unix_ns - 10 * KILN_NS_PER_S;
    g->end_unix_ns = g->begin_unix_ns + 5 * KILN_NS_PER_S;
    return g;
}

static bool by_container;

static struct kiln_publisher *open_publisher(bool names)
{
    static struct kiln_str configured[6];
    struct kiln_publish_opts opts = {.host_name = "box",
                                     .host_id = "0123",
                                     .resource = configured,
                                     .n_resource = 3,
                                     .by_container = by_container,
                                     .resolver = names ? (void *)&asked_for_perf_map : NULL};
    struct kiln_publisher *publisher;

    for (int i = 0; i < 6; i++)
        configured[i] = kiln_str_of(
            (const char *[]){"service.name", "agent", "zone", "us", "host.name", "renamed"}[i]);
    CHECK_OK(kiln_publisher_new(&opts, &publisher));
    return publisher;
}

/* Publishes what was added, and holds it against the rules of OTLP. */
static struct kiln_batch *publish(bool names)
{
    struct kiln_check_opts strict = {
        .dupes = true, .orphans = true, .sample_shapes = true, .strict = true};
    struct kiln_publisher *publisher = open_publisher(names);
    struct kiln_gathering *g = take();
    struct kiln_check *check;
    struct kiln_batch *batch;
    struct kiln_err err = {0};
    struct kiln_buf bytes;

    CHECK_OK(kiln_publish(publisher, g, &batch, &err));
    kiln_buf_init(&bytes, 1 << 20);
    CHECK_OK(kiln_otlp_encode(batch, NULL, &bytes, &err));
    CHECK_OK(kiln_otlp_check(kiln_buf_str(&bytes), &strict, &check, &err));
    for (uint32_t i = 0; i < check->n_findings; i++)
        print_error("%s: %s\n", check->findings[i].where, check->findings[i].text);
    CHECK_EQ(check->n_errors + check->n_warnings, 0);
    kiln_check_free(check);
    kiln_buf_done(&bytes);
    kiln_gathering_free(g);
    kiln_publisher_free(publisher);
    return batch;
}

/* The same, of a publisher that is looked at later. */
static void publish_with(struct kiln_publisher *publisher, struct kiln_batch **ret_batch)
{
    struct kiln_gathering *g = take();

    CHECK_OK(kiln_publish(publisher, g, ret_batch, NULL));
    kiln_gathering_free(g);
}

static const char *drawn(struct kiln_batch *batch)
{
    struct kiln_view *view = kiln_test_view(batch, NULL);
    const char *text = kiln_test_view_text(view);

    kiln_view_free(view);
    return text;
}

static struct kiln_str resource_text(const struct kiln_batch *batch, uint32_t i, const char *key)
{
    return kiln_set_text(batch, batch->resources[i].attrs, kiln_str_of(key));
}

/* ---- stacks: samples of 50 ms each, drawn in nanoseconds ---- */

TEST(publish, stacks_have_names_where_they_are_known)
{
    ADD(&shop, KILN_END_COMPLETE, in_kernel(0xffffffff81000010), in(&app, 0x1020),
        in(&app, 0x1010));
    ADD(&shop, KILN_END_COMPLETE, in_kernel(0xffffffff81000020), in(&app, 0x1020),
        in(&app, 0x1010));
    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1777), in(&app, 0x1010));
    CHECK_TEXT(drawn(publish(true)), "main;app+0xf77 50000000\n"
                                     "main;parse;do_syscall_64 100000000\n");
}

TEST(publish, functions_that_are_inlined_are_frames_and_lines_of_one_location)
{
    struct kiln_batch *batch;
    const struct kiln_dict *d;

    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1050), in(&app, 0x1010));
    batch = publish(true);
    d = &batch->dict;
    for (uint32_t i = 1; i < d->n_locations; i++) {
        const struct kiln_line *lines = d->lines + d->locations[i].first;

        if (d->locations[i].address != 0x1050)
            continue;
        CHECK_EQ(d->locations[i].n, 2);
        CHECK_EQ(lines[0].line, 12);
        CHECK_EQ(lines[1].line, 40);
        CHECK_STR(kiln_batch_str(batch, d->functions[lines[1].function].system_name), "_Z4sortv");
    }
    CHECK_TEXT(drawn(batch), "main;sort;swap 50000000\n");
}

TEST(publish, who_is_lean_leaves_out_what_linkers_call_functions)
{
    const struct kiln_publish_opts opts = {.resolver = (void *)&asked_for_perf_map, .lean = true};
    struct kiln_publisher *publisher;
    struct kiln_batch *batch;

    CHECK_OK(kiln_publisher_new(&opts, &publisher));
    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1050), in(&app, 0x1010));
    publish_with(publisher, &batch);
    for (uint32_t i = 0; i < batch->dict.n_functions; i++)
        CHECK_EQ(batch->dict.functions[i].system_name, 0);
    CHECK_TEXT(drawn(batch), "main;sort;swap 50000000\n");
    kiln_publisher_free(publisher);
}

TEST(publish, a_stack_that_is_not_complete_says_why_at_its_root)
{
    ADD(&shop, KILN_END_JIT, in(&app, 0x1020), in(&app, 0x1010));
    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1020), in(&app, 0x1010));
    ADD(&shop, KILN_END_COMPAT, in_kernel(0xffffffff81000010));
    CHECK_TEXT(drawn(publish(true)), "[incomplete: compat];do_syscall_64 50000000\n"
                                     "[incomplete: jit];main;parse 50000000\n"
                                     "main;parse 50000000\n");
}

TEST(publish, neighbours_in_one_mapping_of_jit_code_are_one_frame)
{
    ADD(&shop, KILN_END_COMPLETE, in_jit(7, 0x7f01), in_jit(7, 0x7f02), in_jit(8, 0x7f03),
        in(&app, 0x1010));
    ADD(&shop, KILN_END_COMPLETE, in_jit(7, 0x7f09), in_jit(8, 0x7f0a), in(&app, 0x1010));
    ADD(&shop, KILN_END_UNMAPPED, (struct kiln_gframe){.kind = KILN_FRAME_LOST, .address = 99});
    CHECK_TEXT(drawn(publish(true)), "[incomplete: unmapped];[unknown] 50000000\n"
                                     "main;[jit];[jit] 100000000\n");
}

TEST(publish, addresses_of_the_kernel_and_of_jit_code_do_not_leave)
{
    struct kiln_batch *batch;

    ADD(&shop, KILN_END_COMPLETE, in_kernel(0xffffffff81000010), in_kernel(0xffffffff81777777),
        in_kernel(0xffffffff81777778), in_jit(7, 0x7f01), in(&app, 0x1010));
    batch = publish(true);
    for (uint32_t i = 0; i < batch->dict.n_locations; i++)
        CHECK(batch->dict.locations[i].address == 0 || batch->dict.locations[i].address == 0x1010);
    CHECK_TEXT(drawn(batch), "main;[jit];[kernel];do_syscall_64 50000000\n");
}

TEST(publish, addresses_of_a_function_without_a_name_are_one_function)
{
    struct kiln_publisher *publisher;
    uint64_t asked, missing;
    struct kiln_batch *batch;
    uint32_t made_up = 0;

    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1111), in(&app, 0x1010));
    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1122), in(&app, 0x1010));
    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1133), in(&app, 0x1010));
    batch = publish(true);
    for (uint32_t i = 1; i < batch->dict.n_locations; i++) {
        const struct kiln_location *l = &batch->dict.locations[i];

        if (!kiln_frame_lacks_name(&batch->dict, l))
            continue;
        CHECK(l->mapping && l->n == 1);
        CHECK(l->address == 0x1111 || l->address == 0x1122 || l->address == 0x1133);
        made_up++;
    }
    CHECK_EQ(made_up, 3);
    CHECK_TEXT(drawn(batch), "main;app+0x900 100000000\nmain;app+0x930 50000000\n");

    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1111), in(&app, 0x1010));
    publisher = open_publisher(true);
    publish_with(publisher, &batch);
    kiln_publisher_counts(publisher, &asked, &missing);
    CHECK_EQ(asked, 2);
    CHECK_EQ(missing, 1);
    kiln_batch_unref(batch);
    kiln_publisher_free(publisher);
}

TEST(publish, without_a_resolver_there_are_addresses)
{
    ADD(&shop, KILN_END_COMPLETE, in_kernel(0xffffffff81000010), in(&app, 0x1010));
    CHECK_TEXT(drawn(publish(false)), "app+0x810;[kernel] 50000000\n");
}

TEST(publish, frames_say_what_kind_of_code_they_are)
{
    static const struct {
        const char *function, *type;
    } expected[] = {{"main", "native"},
                    {"std::fmt::write", "rust"},
                    {"main.main", "go"},
                    {"do_syscall_64", "kernel"}};
    struct kiln_batch *batch;
    uint32_t found = 0;

    ADD(&plain, KILN_END_COMPLETE, in_kernel(0xffffffff81000010), in(&app, 0x1030),
        in(&app, 0x1010), in(&gopher, 0x2010));
    batch = publish(true);
    for (uint32_t i = 1; i < batch->dict.n_locations; i++) {
        const struct kiln_location *l = &batch->dict.locations[i];
        const struct kiln_line *line = &batch->dict.lines[l->first];
        struct kiln_str name = kiln_batch_str(batch, batch->dict.functions[line->function].name);

        for (size_t k = 0; k < 4; k++) {
            if (!kiln_str_eq(name, kiln_str_of(expected[k].function)))
                continue;
            CHECK_STR(kiln_set_text(batch, l->attrs, KILN_STR("profile.frame.type")),
                      expected[k].type);
            found++;
        }
    }
    CHECK_EQ(found, 4);
    kiln_batch_unref(batch);
}

TEST(publish, places_in_code_are_no_attributes)
{
    struct kiln_batch *batch;

    ADD(&shop, KILN_END_COMPLETE, in_kernel(0xffffffff81000010), in(&app, 0x1020));
    batch = publish(true);
    for (uint32_t i = 0; i < batch->dict.n_attrs; i++)
        CHECK(!kiln_str_starts(kiln_batch_str(batch, batch->dict.attrs[i].key), KILN_STR("code.")));
    kiln_batch_unref(batch);
}

TEST(publish, a_mapping_leads_from_an_address_to_the_place_in_the_file)
{
    const struct kiln_mapping *mapping;
    struct kiln_batch *batch;

    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1010));
    batch = publish(true);
    CHECK_EQ(batch->dict.n_mappings, 2);
    mapping = &batch->dict.mappings[1];
    CHECK_EQ(mapping->start, 0x1000);
    CHECK_EQ(mapping->limit, 0x2000);
    CHECK_EQ(mapping->offset, 0x800);
    CHECK_STR(kiln_batch_str(batch, mapping->filename), "/usr/bin/app");
    CHECK_STR(kiln_set_text(batch, mapping->attrs, KILN_STR("process.executable.build_id.gnu")),
              "abcd");
    kiln_batch_unref(batch);
}

TEST(publish, names_that_are_no_text_are_mended)
{
    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1040));
    CHECK_TEXT(drawn(publish(true)), "bad\xef\xbf\xbd name 50000000\n");
}

/* ---- resources ---- */

TEST(publish, a_process_names_its_service_itself)
{
    struct kiln_batch *batch;
    struct kiln_type *types;

    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1010));
    ADD(&plain, KILN_END_COMPLETE, in(&gopher, 0x2010));
    ADD(&kernel, KILN_END_NO_USER, in_kernel(0xffffffff81000010));
    batch = publish(true);
    CHECK_EQ(batch->n_resources, 3);
    CHECK_STR(resource_text(batch, 0, "service.name"), "shop");
    CHECK_STR(resource_text(batch, 0, "team"), "a b");
    CHECK_STR(resource_text(batch, 0, "zone"), "eu");
    CHECK_STR(resource_text(batch, 0, "host.name"), "renamed");
    CHECK_STR(resource_text(batch, 0, "host.id"), "0123");
    CHECK_STR(resource_text(batch, 0, "os.type"), "linux");
    CHECK_STR(resource_text(batch, 0, "process.owner"), "root");
    CHECK_STR(resource_text(batch, 0, "process.creation.time"), "2026-03-01T12:00:00Z");
    CHECK_EQ(kiln_set_find(batch, batch->resources[0].attrs, KILN_STR("process.pid"))->value.i, 10);
    CHECK_STR(resource_text(batch, 1, "service.name"), "gopher");
    CHECK_STR(resource_text(batch, 1, "zone"), "us");
    CHECK_STR(resource_text(batch, 1, "process.command"), "./gopher");
    CHECK_STR(resource_text(batch, 2, "service.name"), "kernel");
    CHECK(!kiln_set_find(batch, batch->resources[2].attrs, KILN_STR("process.pid")));
    CHECK_OK(kiln_types_of_batch(batch, false, &types));
    CHECK_STR(types[0].name, "process_cpu");
    CHECK_EQ(types[0].scale, 50000000);
    kiln_free(types);
    kiln_batch_unref(batch);
}

/* ---- containers ---- */

#define IN(container, name_, service_)                                                             \
    {"container.id", container}, {"container.name", name_},                                        \
    {                                                                                              \
        "service.name", service_                                                                   \
    }
static const struct kiln_identity_attr nginx_attrs[] = {IN("c1", "web", "shop"),
                                                        {"process.executable.name", "nginx"}};
static const struct kiln_identity_attr sh_attrs[] = {
    IN("c1", "web", "shop"), {"process.executable.name", "sh"}, {"team", "a"}};
static const struct kiln_identity_attr cron_attrs[] = {IN("c2", "jobs", "cron")};
static const struct kiln_identity_attr mail_attrs[] = {IN("c2", "jobs", "mail")};
#define MEMBER(pid_, name_, service_, id, box, attrs_)                                             \
    {                                                                                              \
        .refs = 1, .pid = pid_, .name = name_, .path = "", .command = "", .owner = "",             \
        .service = service_, .container_id = id, .container_name = box, .attrs = attrs_,           \
        .n_attrs = KILN_ARRAY_LEN(attrs_)                                                          \
    }
static struct kiln_identity nginx = MEMBER(21, "nginx", "shop", "c1", "web", nginx_attrs),
                            sh = MEMBER(22, "sh", "shop", "c1", "web", sh_attrs),
                            cron = MEMBER(23, "cron", "cron", "c2", "jobs", cron_attrs),
                            mail = MEMBER(24, "mail", "mail", "c2", "jobs", mail_attrs);

static struct kiln_batch *publish_containers(bool each)
{
    struct kiln_batch *batch;

    ADD(&nginx, KILN_END_COMPLETE, in(&app, 0x1010));
    ADD(&cron, KILN_END_COMPLETE, in(&app, 0x1020), in(&app, 0x1010));
    ADD(&plain, KILN_END_COMPLETE, in(&gopher, 0x2010));
    ADD(&sh, KILN_END_COMPLETE, in(&app, 0x1010));
    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1010));
    ADD(&mail, KILN_END_COMPLETE, in(&app, 0x1020), in(&app, 0x1010));
    ADD(&kernel, KILN_END_NO_USER, in_kernel(0xffffffff81000010));
    by_container = each;
    batch = publish(true);
    by_container = false;
    return batch;
}

static uint32_t find_resource(const struct kiln_batch *batch, const char *key, const char *value)
{
    uint32_t found = UINT32_MAX;

    for (uint32_t i = 0; i < batch->n_resources; i++)
        if (kiln_str_eq(resource_text(batch, i, key), kiln_str_of(value))) {
            CHECK_EQ(found, UINT32_MAX);
            found = i;
        }
    CHECK(found != UINT32_MAX);
    return found;
}

static const struct kiln_profile *profiles_of(const struct kiln_batch *batch, uint32_t resource,
                                              uint32_t n)
{
    const struct kiln_scope *scope = &batch->scopes[batch->resources[resource].first_scope];

    CHECK_EQ(scope->n_profiles, n);
    return &batch->profiles[scope->first_profile];
}

static struct kiln_str own_text(const struct kiln_batch *batch, const struct kiln_profile *profile,
                                const char *key)
{
    return kiln_set_text(batch, profile->attrs, kiln_str_of(key));
}

TEST(publish, a_container_may_be_one_resource_and_totals_stay)
{
    struct kiln_batch *each = publish_containers(false), *batch = publish_containers(true);
    char before[400];

    CHECK_EQ(each->n_resources, 7);
    CHECK_EQ(batch->n_resources, 5);
    CHECK_EQ(batch->n_profiles, 7);
    snprintf(before, sizeof(before), "%s", drawn(each));
    CHECK_TEXT(drawn(batch), before);
}

TEST(publish, processes_of_a_container_keep_what_is_theirs)
{
    struct kiln_batch *batch = publish_containers(true);
    uint32_t web = find_resource(batch, "container.id", "c1");
    const struct kiln_profile *profiles = profiles_of(batch, web, 2);

    CHECK_STR(resource_text(batch, web, "service.name"), "shop");
    CHECK_STR(resource_text(batch, web, "container.name"), "web");
    CHECK_STR(resource_text(batch, web, "host.id"), "0123");
    CHECK(!kiln_set_find(batch, batch->resources[web].attrs, KILN_STR("process.pid")));
    CHECK(!kiln_set_find(batch, batch->resources[web].attrs, KILN_STR("team")));
    CHECK_EQ(kiln_set_find(batch, profiles[0].attrs, KILN_STR("process.pid"))->value.i, 21);
    CHECK_STR(own_text(batch, &profiles[0], "process.executable.name"), "nginx");
    CHECK_EQ(kiln_set_find(batch, profiles[1].attrs, KILN_STR("process.pid"))->value.i, 22);
    CHECK_STR(own_text(batch, &profiles[1], "team"), "a");
    CHECK(!own_text(batch, &profiles[1], "service.name").len);
    kiln_batch_unref(batch);
}

TEST(publish, a_container_of_several_services_has_its_own_name)
{
    struct kiln_batch *batch = publish_containers(true);
    uint32_t jobs = find_resource(batch, "container.id", "c2");
    const struct kiln_profile *profiles = profiles_of(batch, jobs, 2);

    CHECK_STR(resource_text(batch, jobs, "service.name"), "jobs");
    CHECK_STR(own_text(batch, &profiles[0], "service.name"), "cron");
    CHECK_STR(own_text(batch, &profiles[1], "service.name"), "mail");
    kiln_batch_unref(batch);
}

TEST(publish, who_is_in_no_container_is_a_resource_as_ever)
{
    struct kiln_batch *batch = publish_containers(true);
    uint32_t gopher_ = find_resource(batch, "service.name", "gopher");

    CHECK_EQ(
        kiln_set_find(batch, batch->resources[gopher_].attrs, KILN_STR("process.pid"))->value.i,
        11);
    CHECK_EQ(profiles_of(batch, gopher_, 1)->attrs, 0);
    kiln_batch_unref(batch);
}

/* ---- samples ---- */

TEST(publish, samples_carry_their_thread)
{
    const struct kiln_sample *sample;
    struct kiln_batch *batch;

    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1010));
    batch = publish(true);
    CHECK_EQ(batch->n_samples, 1);
    sample = &batch->samples[0];
    CHECK_EQ(kiln_set_find(batch, sample->attrs, KILN_STR("thread.id"))->value.i, 10);
    CHECK_STR(kiln_set_text(batch, sample->attrs, KILN_STR("thread.name")), "app");
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].name), "kiln.host");
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].version), KILN_VERSION);
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].schema_url), KILN_SCHEMA_URL);
    CHECK_STR(kiln_batch_str(batch, batch->resources[0].schema_url), KILN_SCHEMA_URL);
    CHECK_EQ(batch->profiles[0].period, 50000000);
    CHECK_EQ(batch->profiles[0].duration_ns, 5 * KILN_NS_PER_S);
    kiln_batch_unref(batch);
}

TEST(publish, who_is_lean_leaves_out_ids_of_threads_that_are_the_process)
{
    const struct kiln_publish_opts opts = {.lean = true};
    struct kiln_gather_sample other = {
        .identity = &shop, .tid = shop.pid + 1, .comm = "app", .hz = 20, .value = 2};
    struct kiln_publisher *publisher;
    struct kiln_batch *batch;

    CHECK_OK(kiln_publisher_new(&opts, &publisher));
    ADD(&shop, KILN_END_COMPLETE, in(&app, 0x1010));
    add_sample(&other);
    publish_with(publisher, &batch);
    CHECK_EQ(batch->n_samples, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct kiln_sample *sample = &batch->samples[i];
        const struct kiln_attr *id = kiln_set_find(batch, sample->attrs, KILN_STR("thread.id"));

        CHECK_EQ(id ? id->value.i : 0, kiln_sample_total(batch, sample) == 2 ? other.tid : 0);
    }
    kiln_batch_unref(batch);
    kiln_publisher_free(publisher);
}

TEST(publish, waits_and_other_rates_have_profiles_of_their_own)
{
    struct kiln_gframe frame = in(&app, 0x1010);
    struct kiln_gather_sample sample = {.identity = &shop,
                                        .tid = 7,
                                        .comm = "shop",
                                        .frames = &frame,
                                        .n_frames = 1,
                                        .hz = 20,
                                        .value = 1};
    struct kiln_batch *batch;

    add_sample(&sample);
    sample.hz = 100;
    add_sample(&sample);
    sample.hz = 0;
    sample.kind = KILN_KIND_WAIT;
    sample.value = 3000;
    add_sample(&sample);
    sample.state = KILN_STATE_RUNNABLE;
    sample.value = 500;
    add_sample(&sample);
    batch = publish(true);
    CHECK_EQ(batch->n_resources, 1);
    CHECK_EQ(batch->n_profiles, 3);
    CHECK_EQ(batch->profiles[0].period, 50000000);
    CHECK_EQ(batch->profiles[1].period, 10000000);
    CHECK_STR(kiln_batch_str(batch, batch->profiles[2].sample_type.type), "off_cpu");
    CHECK_EQ(batch->profiles[2].period_type.type, 0);
    CHECK_EQ(batch->profiles[2].n_samples, 2);
    CHECK_EQ(batch->observations[2] + batch->observations[3], 3500);
    kiln_batch_unref(batch);
}

TEST(publish, the_scheduler_is_no_place_to_wait)
{
    struct kiln_gframe frames[] = {in_kernel(0xffffffff81000030), in_kernel(0xffffffff81000040),
                                   in_kernel(0xffffffff81000010), in(&app, 0x1010)};
    struct kiln_gather_sample sample = {.identity = &shop,
                                        .tid = 7,
                                        .comm = "shop",
                                        .frames = frames,
                                        .n_frames = 4,
                                        .kind = KILN_KIND_WAIT,
                                        .value = 3000};

    add_sample(&sample);
    CHECK_TEXT(drawn(publish(true)), "main;do_syscall_64 3000\n");
    sample.n_frames = 2;
    add_sample(&sample);
    CHECK_TEXT(drawn(publish(true)), "schedule 3000\n");
    sample.kind = KILN_KIND_CPU;
    sample.hz = 20;
    sample.value = 1;
    add_sample(&sample);
    CHECK_TEXT(drawn(publish(true)), "schedule;__schedule 50000000\n");
}

TEST(publish, waits_that_are_older_than_their_batch_have_a_profile_that_begins_where_they_did)
{
    struct kiln_gframe frame = in(&app, 0x1010);
    struct kiln_gather_sample sample = {.identity = &shop,
                                        .tid = 7,
                                        .comm = "shop",
                                        .frames = &frame,
                                        .n_frames = 1,
                                        .kind = KILN_KIND_WAIT,
                                        .value = 3000};
    struct kiln_batch *batch;

    add_sample(&sample);
    sample.since_s = 4;
    add_sample(&sample);
    add_sample(&sample);
    batch = publish(true);
    CHECK_EQ(batch->n_profiles, 2);
    CHECK_EQ(batch->profiles[1].time_ns, 4 * KILN_NS_PER_S);
    CHECK_EQ(batch->profiles[1].time_ns + batch->profiles[1].duration_ns,
             batch->profiles[0].time_ns + batch->profiles[0].duration_ns);
    CHECK_EQ(batch->observations[1], 6000);
    kiln_batch_unref(batch);
}

TEST(publish, waits_stand_for_intervals_before_in_which_none_could_be_seen)
{
    struct kiln_gframe frame = in(&app, 0x1010);
    struct kiln_gather_sample sample = {.identity = &shop,
                                        .tid = 7,
                                        .comm = "shop",
                                        .frames = &frame,
                                        .n_frames = 1,
                                        .hz = 20,
                                        .value = 1};
    struct kiln_batch *batch;

    add_sample(&sample);
    sample.kind = KILN_KIND_WAIT;
    add_sample(&sample);
    batch = publish(true);
    CHECK_EQ(batch->n_profiles, 2);
    CHECK_EQ(batch->profiles[0].duration_ns, 5 * KILN_NS_PER_S);
    CHECK_EQ(batch->profiles[1].duration_ns, 15 * KILN_NS_PER_S);
    kiln_batch_unref(batch);
}

TEST(publish, samples_of_a_span_are_linked_to_it)
{
    struct kiln_gframe frame = in(&app, 0x1010);
    struct kiln_gather_sample sample = {.identity = &shop,
                                        .tid = 7,
                                        .comm = "shop",
                                        .frames = &frame,
                                        .n_frames = 1,
                                        .hz = 20,
                                        .value = 1};
    struct kiln_batch *batch;

    add_sample(&sample);
    sample.link = (struct kiln_link){.trace_id = {1, 2}, .span_id = {3}};
    add_sample(&sample);
    add_sample(&sample);
    batch = publish(true);
    CHECK_EQ(batch->n_samples, 2);
    CHECK_EQ(batch->dict.n_links, 2);
    for (uint32_t i = 0; i < 2; i++)
        CHECK_EQ(batch->observations[batch->samples[i].first], batch->samples[i].link ? 2 : 1);
    CHECK_EQ(batch->dict.links[1].span_id[0], 3);
    kiln_batch_unref(batch);
}

TEST(publish, without_memory_it_fails_and_nothing_leaks)
{
    struct kiln_publisher *publisher = open_publisher(true);
    struct kiln_gathering *g;
    int64_t before;
    int r = -1;

    ADD(&shop, KILN_END_JIT, in_kernel(0xffffffff81000010), in_jit(3, 4), in(&app, 0x1111),
        in(&app, 0x1010));
    g = take();
    before = kiln_mem_live();
    for (uint64_t n = 1; r < 0; n++) {
        struct kiln_batch *batch = NULL;

        kiln_mem_fail_at(n);
        r = kiln_publish(publisher, g, &batch, NULL);
        CHECK(r == 0 || r == -ENOMEM || r == KILN_E_LIMIT);
        kiln_mem_fail_at(0);
        kiln_batch_unref(batch);
        CHECK_EQ(kiln_mem_live(), before);
    }
    kiln_gathering_free(g);
    kiln_publisher_free(publisher);
}
