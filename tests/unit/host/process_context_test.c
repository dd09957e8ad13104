/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "context_maker.h"
#include "host/process_int.h"
#include "test.h"

static struct kiln_process_context *decoded(const char *text)
{
    struct kiln_process_context *context = NULL;
    struct kiln_buf payload;

    kiln_buf_init(&payload, 1 << 20);
    context_draw(text, &payload);
    CHECK_OK(kiln_process_context_decode(kiln_buf_str(&payload), &context));
    kiln_buf_done(&payload);
    return context;
}

TEST(process_context, attributes_of_resource_and_process_are_told_apart)
{
    struct kiln_process_context *c =
        decoded("service.name=shop,service.version=7.1;threadlocal.schema_version=tlsdesc_v1_dev");

    CHECK_EQ(c->n_resource, 2);
    CHECK_EQ(c->n_attributes, 1);
    CHECK_TEXT(kiln_process_context_resource(c, "service.name")->text, "shop");
    CHECK_TEXT(kiln_process_context_resource(c, "service.version")->text, "7.1");
    CHECK_TEXT(kiln_process_context_attribute(c, "threadlocal.schema_version")->text,
               "tlsdesc_v1_dev");
    CHECK(!kiln_process_context_resource(c, "threadlocal.schema_version"));
    CHECK(!kiln_process_context_attribute(c, "service.name"));
    kiln_process_context_unref(c);
}

TEST(process_context, numbers_are_texts_and_lists_keep_their_positions)
{
    struct kiln_process_context *c =
        decoded("replicas=-3#,beta=true?,old=false?,load=0.5~;keys=[method route status]");
    const struct kiln_context_attr *keys = kiln_process_context_attribute(c, "keys");

    CHECK_TEXT(kiln_process_context_resource(c, "replicas")->text, "-3");
    CHECK_TEXT(kiln_process_context_resource(c, "beta")->text, "true");
    CHECK_TEXT(kiln_process_context_resource(c, "old")->text, "false");
    CHECK_TEXT(kiln_process_context_resource(c, "load")->text, "0.5");
    CHECK(!keys->text);
    CHECK_EQ(keys->n_list, 3);
    CHECK_TEXT(keys->list[0], "method");
    CHECK_TEXT(keys->list[2], "status");
    kiln_process_context_unref(c);
}

TEST(process_context, texts_are_valid_utf8_and_too_long_ones_empty)
{
    char long_one[6000] = "b=";
    struct kiln_process_context *c = decoded("a=x\xffy");

    CHECK_TEXT(kiln_process_context_resource(c, "a")->text, "x\xef\xbf\xbdy");
    kiln_process_context_unref(c);
    memset(long_one + 2, 'x', 5000);
    c = decoded(long_one);
    CHECK_TEXT(kiln_process_context_resource(c, "b")->text, "");
    kiln_process_context_unref(c);
}

static int code_of(struct kiln_str payload)
{
    struct kiln_process_context *context = NULL;
    int r = kiln_process_context_decode(payload, &context);

    kiln_process_context_unref(context);
    return r;
}

TEST(process_context, what_breaks_the_format_is_refused)
{
    struct kiln_buf payload;

    CHECK_OK(code_of(KILN_STR("")));
    CHECK_EQ(code_of(KILN_STR("\x0a\x05")), KILN_E_TRUNCATED);
    CHECK_EQ(code_of(KILN_STR("\x0a\x02\x0b\x00")), KILN_E_MALFORMED);
    CHECK_OK(code_of(KILN_STR("\x12\x03\x0a\x01x"))); /* a key without a value */
    kiln_buf_init(&payload, 1 << 20);
    for (int i = 0; i < 257; i++)
        context_draw("a=b", &payload);
    CHECK_EQ(code_of(kiln_buf_str(&payload)), KILN_E_LIMIT);
    kiln_buf_done(&payload);
}

TEST(process_context, every_allocation_may_fail)
{
    struct kiln_buf payload;
    int64_t blocks;

    kiln_buf_init(&payload, 1 << 20);
    context_draw("a=b,c=1#;keys=[a b]", &payload);
    blocks = kiln_mem_live();
    for (uint64_t n = 1; n < 16; n++) {
        int r;

        kiln_mem_fail_at(n);
        r = code_of(kiln_buf_str(&payload));
        CHECK_EQ(r, kiln_mem_failed() ? -ENOMEM : 0);
        kiln_mem_fail_at(0);
        CHECK_EQ(kiln_mem_live(), blocks);
    }
    kiln_buf_done(&payload);
}

TEST(process_context, mappings_are_known_by_their_names)
{
    CHECK(kiln_process_context_is(KILN_STR("[anon:OTEL_CTX]")));
    CHECK(kiln_process_context_is(KILN_STR("[anon_shmem:OTEL_CTX]")));
    CHECK(kiln_process_context_is(KILN_STR("/memfd:OTEL_CTX (deleted)")));
    CHECK(!kiln_process_context_is(KILN_STR("/tmp/memfd:OTEL_CTX")));
    CHECK(!kiln_process_context_is(KILN_STR("[anon:OTEL]")));
}

/* ---- of this very process ---- */

TEST(process_context, a_process_that_publishes_is_read)
{
    int memory = memfd_create("OTEL_CTX", MFD_CLOEXEC);
    int sized = ftruncate(memory, 4096);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory, 0);
    int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct kiln_process_context *c = NULL;
    uint64_t at = 0;

    CHECK_EQ(sized, 0);
    close(memory);
    context_page("service.name=shop", (uintptr_t)page, 77, page);
    CHECK_OK(kiln_process_context_find(dir, &at));
    CHECK(at == (uintptr_t)page);
    CHECK_EQ(kiln_process_context_read(dir, at, 0, &c), 1);
    CHECK_EQ(c->published_ns, 77);
    CHECK_TEXT(kiln_process_context_resource(c, "service.name")->text, "shop");
    CHECK_EQ(kiln_process_context_read(dir, at, 77, &c), 0);
    kiln_process_context_unref(c);
    context_page("service.name=shop", (uintptr_t)page, 0, page);
    CHECK_EQ(kiln_process_context_read(dir, at, 77, &c), -EAGAIN);
    munmap(page, 4096);
    CHECK_EQ(kiln_process_context_read(dir, at, 77, &c), -EFAULT);
    CHECK_EQ(kiln_process_context_find(dir, &at), -ENOENT);
    close(dir);
}

TEST(process_context, pages_that_are_not_in_memory_are_not_waited_for)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct kiln_process_context *c = NULL;
    uint64_t elsewhere = (uintptr_t)pages + 4096, nowhere = UINT64_MAX - 3;

    context_page("service.name=shop", (uintptr_t)pages, 77, pages);
    memcpy(pages + 24, &elsewhere, sizeof(elsewhere));
    CHECK_EQ(kiln_process_context_read(dir, (uintptr_t)pages, 0, &c), -EFAULT);
    memcpy(pages + 24, &nowhere, sizeof(nowhere));
    CHECK_EQ(kiln_process_context_read(dir, (uintptr_t)pages, 0, &c), -EFAULT);
    memset(pages + 12, 0xff, 4);
    CHECK_EQ(kiln_process_context_read(dir, (uintptr_t)pages, 0, &c), KILN_E_LIMIT);
    munmap(pages, 8192);
    close(dir);
}

/* ---- of a process that is sampled ---- */

static struct fake_proc fake;
static struct kiln_processes *processes;

static void begin(void)
{
    fake_proc_init(&fake);
    fake_proc_add(&fake, 7, 3, 5000000000);
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){.proc = fake.dir}, &processes));
}

static void end(void)
{
    kiln_processes_free(processes);
    fake_proc_done(&fake);
}

/* A sample so many seconds after the first; what is published then, or "". */
static const char *service_at(double seconds)
{
    struct kiln_record record = {.pid = 7,
                                 .tid = 7,
                                 .start_ns = 5000000000,
                                 .era = 1,
                                 .time_ns = 9000000000 + (uint64_t)(seconds * 1e9)};
    struct kiln_process *p = kiln_processes_of(processes, &record);
    const struct kiln_context_attr *attr;

    CHECK(kiln_process_identity(processes, p) != NULL);
    attr = p->context ? kiln_process_context_resource(p->context, "service.name") : NULL;
    return attr ? attr->text : "";
}

TEST(process_context, it_is_there_with_the_first_sample)
{
    begin();
    fake_proc_publish(&fake, 7, "service.name=shop", 1);
    CHECK_TEXT(service_at(0), "shop");
    end();
}

TEST(process_context, one_that_comes_later_is_found_and_looked_at_every_five_seconds)
{
    begin();
    CHECK_TEXT(service_at(0), "");
    fake_proc_publish(&fake, 7, "service.name=shop", 1);
    CHECK_TEXT(service_at(0.1), "");
    CHECK_TEXT(service_at(0.25), "shop");
    fake_proc_publish(&fake, 7, "service.name=store", 2);
    CHECK_TEXT(service_at(5.0), "shop");
    CHECK_TEXT(service_at(5.5), "store");
    fake_proc_publish(&fake, 7, "service.name=half", 0);
    CHECK_TEXT(service_at(11), "store");
    fake_proc_write(&fake, 7, "mem", "", 0);
    CHECK_TEXT(service_at(17), "store");
    end();
}

TEST(process_context, one_that_is_taken_back_is_none)
{
    static const char nothing[0x6000];

    begin();
    fake_proc_publish(&fake, 7, "service.name=shop", 1);
    CHECK_TEXT(service_at(0), "shop");
    fake_proc_write(&fake, 7, "mem", nothing, sizeof(nothing));
    CHECK_TEXT(service_at(6), "");
    fake_proc_publish(&fake, 7, "service.name=again", 1);
    CHECK_TEXT(service_at(6.5), "again");
    end();
}

TEST(process_context, another_program_publishes_anew)
{
    begin();
    fake_proc_publish(&fake, 7, "service.name=shop", 1);
    CHECK_TEXT(service_at(0), "shop");
    drawn_exec(processes, 7, "other");
    fake_proc_text(&fake, 7, "maps", "");
    CHECK_TEXT(service_at(0), "");
    end();
}

TEST(process_context, it_is_looked_for_less_and_less_often)
{
    begin();
    for (int i = 0; i < 100; i++)
        CHECK_TEXT(service_at(i), "");
    fake_proc_publish(&fake, 7, "service.name=shop", 1);
    CHECK_TEXT(service_at(101), "");
    CHECK_TEXT(service_at(270), "");
    CHECK_TEXT(service_at(280), "shop");
    end();
}
