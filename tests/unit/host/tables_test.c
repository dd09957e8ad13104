/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "host/tables.h"
#include "symbol/cfi.h"
#include "test.h"

/* ---- a directory that a test can look into, as the kernel does ---- */

enum { ENTRIES_MAX = 4096 };

struct entry {
    struct kiln_dir_key key;
    struct kiln_dir_entry entry;
    bool used;
};

static struct {
    struct kiln_table_memory *memory;
    struct kiln_tables *tables;
    struct entry entries[ENTRIES_MAX];
    uint32_t n;
    int fail; /* puts that say that the directory is full */
} host;

static struct entry *entry_of(const struct kiln_dir_key *key)
{
    for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
        if (host.entries[i].used && host.entries[i].key.file == key->file &&
            host.entries[i].key.page == key->page)
            return &host.entries[i];
    }
    return NULL;
}

static int put(struct kiln_table_memory *memory, const struct kiln_dir_key *key,
               const struct kiln_dir_entry *entry)
{
    struct entry *at = entry_of(key);

    if (host.fail > 0 && host.fail--)
        return -E2BIG;
    for (uint32_t i = 0; !at && i < memory->n_entries; i++)
        at = host.entries[i].used ? NULL : &host.entries[i];
    if (!at)
        return -E2BIG;
    /* Whatever is in the directory is whole already. */
    CHECK_EQ((uint32_t)memory->words[entry->slot], entry->generation);
    host.n += !at->used;
    *at = (struct entry){*key, *entry, true};
    return 0;
}

static int drop(struct kiln_table_memory *memory, const struct kiln_dir_key *key)
{
    struct entry *at = entry_of(key);

    (void)memory;
    if (!at)
        return -ENOENT;
    at->used = false;
    host.n--;
    return 0;
}

static void begin(size_t bytes, uint32_t n_entries)
{
    memset(&host, 0, sizeof(host));
    CHECK_OK(kiln_table_memory_plain(bytes, &host.memory));
    host.memory->put = put;
    host.memory->drop = drop;
    host.memory->n_entries = n_entries;
    CHECK_OK(kiln_tables_new(host.memory, NULL, &host.tables));
}

static void end(void)
{
    kiln_tables_free(host.tables);
    kiln_table_memory_plain_free(host.memory);
}

/* ---- objects and processes ---- */

/* This very program. */
static struct kiln_object self_object(uint32_t id)
{
    struct kiln_object object = {.id = id, .kind = KILN_OBJECT_ELF, .path = "self"};
    struct kiln_bytes bytes;

    object.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_OK(kiln_bytes_file(object.fd, &bytes));
    CHECK_OK(kiln_elf_open(&bytes, &object.elf));
    return object;
}

static void close_object(struct kiln_object *object)
{
    kiln_cfi_close(object->cfi);
    kiln_elf_close(object->elf);
    close(object->fd);
}

/* A page of its code with many functions. */
static uint32_t text_page(const struct kiln_object *object)
{
    static struct kiln_cfi_row rows[KILN_ROWS_MAX];
    uint64_t page = kiln_elf_section(object->elf, ".text")->address >> KILN_PAGE_BITS;
    struct kiln_cfi *cfi;

    CHECK_OK(kiln_cfi_open(object->elf, &cfi));
    while (kiln_cfi_rows(cfi, page << KILN_PAGE_BITS, (page + 1) << KILN_PAGE_BITS, rows,
                         KILN_ROWS_MAX) < 50)
        page++;
    kiln_cfi_close(cfi);
    return (uint32_t)page;
}

static uint64_t word(const struct kiln_dir_entry *entry, uint32_t i)
{
    return kiln_tables_word(host.tables, entry->slot + 1 + i);
}

TEST(tables, a_page_has_the_rows_of_its_code_packed)
{
    static struct kiln_cfi_row rows[KILN_ROWS_MAX];
    struct kiln_object object = self_object(7);
    struct kiln_dir_entry entry, again;
    struct kiln_tables_stats stats;
    uint32_t page = text_page(&object);
    int n;

    begin(1 << 20, 100);
    CHECK_OK(kiln_tables_page(host.tables, &object, page, &entry));
    n = kiln_cfi_rows(object.cfi, (uint64_t)page << 14, ((uint64_t)page + 1) << 14, rows,
                      KILN_ROWS_MAX);
    CHECK(n >= 50);
    CHECK(entry.n > 25 && entry.n <= (uint32_t)n);
    CHECK_EQ(kiln_row_address(word(&entry, 0)), 0);
    for (uint32_t i = 1; i < entry.n; i++)
        CHECK(kiln_row_address(word(&entry, i)) > kiln_row_address(word(&entry, i - 1)));
    for (uint32_t i = 0, j = 0; i < (uint32_t)n; i++) {
        while (j + 1 < entry.n &&
               kiln_row_address(word(&entry, j + 1)) <= (rows[i].address & 0x3fff))
            j++;
        if (rows[i].rule == KILN_RULE_REG && rows[i].reg == 7) {
            CHECK_EQ(kiln_row_cfa(word(&entry, j)), KILN_CFA_SP);
            CHECK_EQ(kiln_row_cfa_off(word(&entry, j)), rows[i].cfa_off);
        }
    }
    CHECK_OK(kiln_tables_page(host.tables, &object, page, &again));
    CHECK_EQ(memcmp(&entry, &again, sizeof(entry)), 0);
    kiln_tables_stats(host.tables, &stats);
    CHECK_EQ(stats.loaded, 1);
    CHECK_EQ(stats.pages, 1);
    CHECK(stats.used_bytes >= (uint64_t)entry.n * 8);
    CHECK_EQ(entry_of(&(struct kiln_dir_key){7, page})->entry.generation, entry.generation);
    kiln_tables_drop_object(host.tables, &object);
    CHECK_EQ(host.n, 0);
    CHECK_NE((uint32_t)host.memory->words[entry.slot], entry.generation);
    end();
    close_object(&object);
}

TEST(tables, a_file_without_tables_is_asked_once)
{
    struct kiln_object object = {.id = 3, .kind = KILN_OBJECT_OTHER, .fd = -1};
    struct kiln_dir_entry entry;
    struct entry *found;

    begin(1 << 20, 100);
    CHECK_EQ(kiln_tables_page(host.tables, &object, 5, &entry), -ENOENT);
    found = entry_of(&(struct kiln_dir_key){3, 5});
    CHECK(found && found->entry.n == 1);
    CHECK_EQ(kiln_row_cfa(word(&found->entry, 0)), KILN_CFA_NONE);
    CHECK_EQ(kiln_tables_page(host.tables, &object, 5, &entry), -ENOENT);
    end();
}

TEST(tables, nothing_is_kept_of_a_file_that_is_closed)
{
    struct kiln_object object = {.id = 3, .kind = KILN_OBJECT_ELF, .fd = -1};
    struct kiln_dir_entry entry;

    begin(1 << 20, 100);
    CHECK_EQ(kiln_tables_page(host.tables, &object, 5, &entry), -ENOENT);
    CHECK_EQ(host.n, 0);
    end();
}

TEST(tables, mappings_of_a_process_are_those_whose_nature_is_known)
{
    struct kiln_object elf = {.id = 9, .kind = KILN_OBJECT_ELF};
    struct kiln_object script = {.id = 10, .kind = KILN_OBJECT_OTHER};
    struct kiln_map maps[] = {
        {.start = 0x1000, .end = 0x2000, .kind = KILN_MAP_FILE, .object = &elf, .bias = 0x100},
        {.start = 0x2000, .end = 0x3000, .kind = KILN_MAP_FILE, .object = &elf, .bias = 0x100},
        {.start = 0x3000, .end = 0x4000, .kind = KILN_MAP_FILE, .object = &elf, .bias = 0x200},
        {.start = 0x5000, .end = 0x6000, .kind = KILN_MAP_FILE},
        {.start = 0x6000, .end = 0x7000, .kind = KILN_MAP_FILE, .tried = true},
        {.start = 0x8000, .end = 0x9000, .kind = KILN_MAP_FILE, .object = &script, .tried = true},
        {.start = 0xa000, .end = 0xb000, .kind = KILN_MAP_ANONYMOUS},
        {.start = 0xc000, .end = 0xd000, .kind = KILN_MAP_VSYSCALL},
    };
    static const uint64_t expected[][4] = {
        {0x1000, 0x3000, 0x100, 9},
        {0x3000, 0x4000, 0x200, 9},
        {0x6000, 0x7000, 0, (uint64_t)KILN_MAP_JIT << 32},
        {0x8000, 0x9000, 0, (uint64_t)KILN_MAP_JIT << 32},
        {0xa000, 0xb000, 0, (uint64_t)KILN_MAP_JIT << 32},
    };
    struct kiln_process process = {.pid = 42, .era = 5, .version = 1, .maps = maps, .n_maps = 8};
    struct kiln_dir_entry entry, again;

    begin(1 << 20, 100);
    CHECK_OK(kiln_tables_process(host.tables, &process, &entry));
    CHECK_EQ(entry.n, KILN_ARRAY_LEN(expected));
    CHECK_EQ(entry.era, 5);
    for (uint32_t i = 0; i < entry.n * 4; i++)
        CHECK_EQ(word(&entry, i), expected[i / 4][i % 4]);
    CHECK_EQ(process.installed_version, 1);
    CHECK_OK(kiln_tables_process(host.tables, &process, &again));
    CHECK_EQ(again.generation, entry.generation);
    maps[3].tried = true;
    CHECK_OK(kiln_tables_process(host.tables, &process, &again));
    CHECK_EQ(again.n, 5); /* one piece with its neighbour */
    CHECK_NE(again.generation, entry.generation);
    CHECK_NE((uint32_t)host.memory->words[entry.slot], entry.generation);
    process.version = 2;
    entry = again;
    CHECK_OK(kiln_tables_process(host.tables, &process, &again));
    CHECK_NE(again.generation, entry.generation);
    CHECK_EQ(host.n, 1);
    kiln_tables_drop_process(host.tables, &process);
    CHECK_EQ(host.n, 0);
    CHECK_EQ(process.installed_version, 0);
    end();
}

static struct kiln_process make_process(struct kiln_map *maps, uint32_t n, uint32_t pid)
{
    for (uint32_t i = 0; i < n; i++)
        maps[i] = (struct kiln_map){.start = 0x10000 + (uint64_t)i * 0x3000,
                                    .end = 0x12000 + (uint64_t)i * 0x3000,
                                    .kind = KILN_MAP_ANONYMOUS};
    return (struct kiln_process){.pid = pid, .era = pid, .version = 1, .maps = maps, .n_maps = n};
}

TEST(tables, a_process_may_have_thousands_of_mappings_but_not_more_than_there_is_room)
{
    struct kiln_map *maps = calloc(70000, sizeof(*maps));
    struct kiln_process process = make_process(maps, 70000, 1);
    struct kiln_dir_entry entry;

    begin(8 << 20, 100);
    CHECK_OK(kiln_tables_process(host.tables, &process, &entry));
    CHECK_EQ(entry.n, 65536);
    CHECK_EQ(word(&entry, 4 * 65535), maps[65535].start);
    end();
    begin(1 << 20, 100);
    CHECK_EQ(kiln_tables_process(host.tables, &process, &entry), KILN_E_LIMIT);
    process.n_maps = 10000;
    CHECK_OK(kiln_tables_process(host.tables, &process, &entry));
    CHECK_EQ(entry.n, 10000);
    end();
    free(maps);
}

/* Whatever the directory says is true: its slot has its generation, and its content. */
static void check_directory(uint32_t n_maps)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
        const struct entry *e = &host.entries[i];

        if (!e->used)
            continue;
        n++;
        CHECK_EQ((uint32_t)host.memory->words[e->entry.slot], e->entry.generation);
        CHECK_EQ(e->entry.era, e->key.page);
        CHECK(e->entry.n <= n_maps);
        for (uint32_t j = 0; j < e->entry.n; j++)
            CHECK_EQ(word(&e->entry, 4 * j), 0x10000 + (uint64_t)j * 0x3000);
    }
    CHECK_EQ(n, host.n);
}

TEST(tables, under_load_the_oldest_go_and_the_rest_is_whole)
{
    struct kiln_map *maps = calloc(2000, sizeof(*maps));
    struct kiln_tables_stats stats;
    struct kiln_dir_entry entry;
    uint32_t seed = 7;

    begin(1 << 20, 300);
    for (uint32_t i = 1; i < 3000; i++) {
        struct kiln_process process;

        seed = seed * 1664525 + 1013904223;
        process = make_process(maps, (seed >> 8) % (i % 50 ? 60 : 2000), i % 700 + 1);
        process.version = i;
        if (i % 10 == 0)
            host.fail = 2;
        CHECK_OK(kiln_tables_process(host.tables, &process, &entry));
        CHECK(host.n <= 300);
        if (i % 97 == 0)
            check_directory(2000);
    }
    check_directory(2000);
    kiln_tables_stats(host.tables, &stats);
    CHECK(stats.evicted > 1000);
    CHECK_EQ(stats.processes, host.n);
    CHECK(stats.used_bytes <= stats.bytes);
    end();
    free(maps);
}

TEST(tables, what_the_kernel_stamped_lately_stays_longer)
{
    struct kiln_map maps[10];
    struct kiln_dir_entry entry;
    uint32_t kept = 0;

    begin(64 << 10, 4000);
    for (uint32_t pid = 1; pid <= 100; pid++) {
        struct kiln_process process = make_process(maps, 10, pid);

        CHECK_OK(kiln_tables_process(host.tables, &process, &entry));
        /* All but the first ten were not used for an hour. */
        if (pid > 10)
            host.memory->words[entry.slot] -= UINT64_C(30000) << 32;
    }
    for (uint32_t pid = 101; pid <= 160; pid++) {
        struct kiln_process process = make_process(maps, 10, pid);

        CHECK_OK(kiln_tables_process(host.tables, &process, &entry));
    }
    for (uint32_t pid = 1; pid <= 10; pid++)
        kept += entry_of(&(struct kiln_dir_key){0, pid}) != NULL;
    CHECK(kept >= 9);
    end();
}

TEST(tables, no_memory_is_an_ordinary_error)
{
    int64_t before = kiln_mem_live();
    struct kiln_object object = self_object(7);
    int64_t with_object = kiln_mem_live();
    uint32_t page = text_page(&object);
    struct kiln_dir_entry entry;
    int r = -ENOMEM;

    for (uint64_t n = 1; r != 0; n++) {
        memset(&host, 0, sizeof(host));
        kiln_mem_fail_at(n);
        r = kiln_table_memory_plain(1 << 20, &host.memory);
        if (r == 0)
            r = kiln_tables_new(host.memory, NULL, &host.tables);
        if (r == 0)
            r = kiln_tables_page(host.tables, &object, page, &entry);
        if (r == 0 && kiln_mem_failed())
            r = -ENOMEM; /* it found a way without */
        kiln_mem_fail_at(0);
        end();
        kiln_cfi_close(object.cfi);
        object.cfi = NULL;
        object.cfi_tried = false;
        CHECK_EQ(kiln_mem_live(), with_object);
        CHECK(n < 100);
    }
    close_object(&object);
    CHECK_EQ(kiln_mem_live(), before);
}

/* ---- readers beside the writer ---- */

static struct {
    pthread_mutex_t lock; /* of the directory, as the kernel's hash has its own */
    struct kiln_dir_entry entries[64];
    atomic_bool over;
    atomic_ullong whole, torn;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int put_shared(struct kiln_table_memory *memory, const struct kiln_dir_key *key,
                      const struct kiln_dir_entry *entry)
{
    (void)memory;
    pthread_mutex_lock(&shared.lock);
    shared.entries[key->page % 64] = *entry;
    pthread_mutex_unlock(&shared.lock);
    return 0;
}

static int drop_nothing(struct kiln_table_memory *memory, const struct kiln_dir_key *key)
{
    (void)memory, (void)key;
    return 0;
}

/* Reads as host/walk.h does: the entry, the words, then whether it was the slot all the time. */
static void *read_all(void *context)
{
    struct kiln_tables *tables = context;
    uint32_t i = 0;

    while (!atomic_load(&shared.over)) {
        struct kiln_dir_entry entry;
        bool is_right = true;

        pthread_mutex_lock(&shared.lock);
        entry = shared.entries[i++ % 64];
        pthread_mutex_unlock(&shared.lock);
        for (uint32_t j = 0; j < entry.n; j++)
            is_right &= kiln_tables_word(tables, entry.slot + 1 + 4 * j) ==
                        0x10000 + (uint64_t)j * 0x3000 + (entry.era << 32);
        atomic_thread_fence(memory_order_seq_cst);
        if (!entry.n || (uint32_t)kiln_tables_word(tables, entry.slot) != entry.generation)
            continue;
        atomic_fetch_add(is_right ? &shared.whole : &shared.torn, 1);
    }
    return NULL;
}

TEST(tables, a_reader_never_takes_another_slots_words_for_its_own)
{
    struct kiln_map maps[40];
    uint64_t patience_ns = kiln_clock_mono_ns() + 60 * KILN_NS_PER_S;
    struct kiln_dir_entry entry;
    pthread_t reader;

    begin(32 << 10, 50);
    host.memory->put = put_shared;
    host.memory->drop = drop_nothing;
    CHECK_OK(pthread_create(&reader, NULL, read_all, host.tables));
    for (uint32_t i = 1; i < 2000 || atomic_load(&shared.whole) + atomic_load(&shared.torn) < 1000;
         i++) {
        struct kiln_process process = make_process(maps, 1 + i % 40, i % 64);

        if (kiln_clock_mono_ns() > patience_ns)
            break;
        if (i % 64 == 0)
            sched_yield(); /* there may be one processor, and others want it too */
        process.version = process.era = i;
        for (uint32_t j = 0; j < process.n_maps; j++) {
            maps[j].start += (uint64_t)i << 32;
            maps[j].end += (uint64_t)i << 32;
        }
        CHECK_OK(kiln_tables_process(host.tables, &process, &entry));
    }
    atomic_store(&shared.over, true);
    pthread_join(reader, NULL);
    CHECK(atomic_load(&shared.whole) > 0);
    CHECK_EQ(atomic_load(&shared.torn), 0);
    end();
}
