/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a file in memory, some of which somebody has changed, or locked. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/unwind/touched.h"
#include "test.h"

enum { PAGES = 64, INDEX = 16, FIRST = 24, LAST = 56, CHANGED = 40, LOOKUPS = 512 };

static size_t page;
static uint32_t n_files;

/* A file of a letter a page, privately in memory, with all of its pages there. */
static char *map_file(void)
{
    char path[] = "/tmp/kiln-touched-XXXXXX";
    int fd = mkstemp(path);
    char *text, *at;

    n_files++;
    page = (size_t)sysconf(_SC_PAGESIZE);
    text = malloc(page);
    CHECK(fd >= 0 && text);
    for (int i = 0; i < PAGES; i++) {
        memset(text, 'a' + i % 26, page);
        CHECK(write(fd, text, page) == (ssize_t)page);
    }
    at = mmap(NULL, PAGES * page, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    CHECK(at != MAP_FAILED);
    close(fd);
    unlink(path);
    free(text);
    return at;
}

static bool is_there(const char *at)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t flags = 0;

    CHECK(fd >= 0);
    CHECK(pread(fd, &flags, sizeof(flags), (off_t)((uintptr_t)at / page * sizeof(flags))) ==
          sizeof(flags));
    close(fd);
    return flags >> 63;
}

static struct kiln_in_object object_at(const char *at)
{
    uint64_t start = (uintptr_t)at;

    return (struct kiln_in_object){
        .number = n_files, .header = start, .low = start, .high = start + PAGES * page};
}

static void read_tables(const char *at)
{
    struct kiln_in_object object = object_at(at);

    for (int i = 0; i < LOOKUPS; i++)
        kiln_in_touched_see(&object, INDEX * page,
                            object.low + (FIRST + i % (LAST - FIRST + 1)) * page);
    kiln_in_touched_let_go();
}

static bool is_as_written(const char *at)
{
    for (int i = 0; i < PAGES; i++)
        if (at[i * page] != (i == CHANGED ? '!' : 'a' + i % 26))
            return false;
    return true;
}

TEST(touched, pages_of_tables_are_let_go_and_what_somebody_wrote_stays)
{
    char *at = map_file();

    CHECK_OK(mprotect(at + CHANGED * page, page, PROT_READ | PROT_WRITE));
    at[CHANGED * page] = '!';
    CHECK_OK(mprotect(at + CHANGED * page, page, PROT_READ));
    read_tables(at);
    for (int i = 0; i < PAGES; i++) {
        bool goes = i < INDEX || (i >= FIRST && i < LAST && i != CHANGED);

        CHECK(is_there(at + i * page) == !goes);
    }
    CHECK(is_as_written(at));
    CHECK_OK(munmap(at, PAGES * page));
}

TEST(touched, pages_that_are_locked_stay)
{
    char *at = map_file();

    /* The function does nothing under a sanitizer. */
    if (syscall(SYS_mlock, at, PAGES * page) == 0) {
        read_tables(at);
        for (int i = 0; i < PAGES; i++)
            CHECK(is_there(at + i * page));
        CHECK_OK(munlock(at, PAGES * page));
    }
    CHECK_OK(munmap(at, PAGES * page));
}

TEST(touched, a_few_are_not_worth_it)
{
    char *at = map_file();
    struct kiln_in_object object = object_at(at);

    kiln_in_touched_see(&object, INDEX * page, object.low + FIRST * page);
    kiln_in_touched_let_go();
    CHECK(is_there(at));
    CHECK_OK(munmap(at, PAGES * page));
}
