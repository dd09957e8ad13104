/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of the process (OTEP 4719): a mapping that is found in /proc/PID/maps by its name,
 * "OTEL_CTX", and begins with a header:
 *
 *   bytes  0-7   "OTEL_CTX"
 *          8-11  version: 2
 *         12-15  size of the payload
 *         16-23  when it was published, CLOCK_BOOTTIME in nanoseconds; 0: it is being changed
 *         24-31  address of the payload
 *
 * The payload is protobuf, a ProcessContext: 1 Resource { 1 KeyValue attributes }, 2 KeyValue
 * attributes; a KeyValue is { 1 key, 2 AnyValue { 1 string, 5 ArrayValue } }.  It lies in memory of
 * this library, not in the mapping: a child that is forked has it too, and only makes the mapping
 * anew, which is not inherited.
 *
 * Memory is the program's and libc's alone: nothing is allocated.
 */
#include <errno.h>
#include <kiln.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum {
    PAYLOAD_MAX = 16 << 10,
    VERSION = 2,
    STRING = 2 /* a wire type, with its length before it */
};

struct header {
    char signature[8];
    uint32_t version, payload_size;
    _Atomic uint64_t published_ns;
    uint64_t payload;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct header *shown; /* NULL: nothing is published */
static uint64_t last_ns;
static uint32_t payload_size;
static uint8_t payload[PAYLOAD_MAX];

/* ---- the payload ---- */

/* Writes to `at`; with NULL it only counts. */
struct writer {
    uint8_t *at;
    size_t n;
};

static void put(struct writer *w, const void *bytes, size_t n)
{
    if (w->at)
        memcpy(w->at + w->n, bytes, n);
    w->n += n;
}

static void put_head(struct writer *w, unsigned field, size_t length)
{
    uint8_t bytes[12] = {(uint8_t)(field << 3 | STRING)};
    size_t n = 1;

    for (; length >= 0x80; length >>= 7)
        bytes[n++] = (uint8_t)(length | 0x80);
    bytes[n++] = (uint8_t)length;
    put(w, bytes, n);
}

static void put_text(struct writer *w, unsigned field, const char *text)
{
    put_head(w, field, strlen(text));
    put(w, text, strlen(text));
}

/* The value of an attribute; no text: an empty list. */
static void put_value(struct writer *w, const char *text)
{
    if (text)
        put_text(w, 1, text);
    else
        put_head(w, 5, 0);
}

static void put_pair(struct writer *w, const char *key, const char *text)
{
    struct writer value = {0};

    put_text(w, 1, key);
    put_value(&value, text);
    put_head(w, 2, value.n);
    put_value(w, text);
}

static void put_attribute(struct writer *w, unsigned field, const char *key, const char *text)
{
    struct writer pair = {0};

    put_pair(&pair, key, text);
    put_head(w, field, pair.n);
    put_pair(w, key, text);
}

static void put_resource(struct writer *w, const struct kiln_attribute *resource, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_attribute(w, 1, resource[i].key, resource[i].value);
}

static void put_context(struct writer *w, const struct kiln_attribute *resource, size_t n)
{
    struct writer inner = {0};

    put_resource(&inner, resource, n);
    put_head(w, 1, inner.n);
    put_resource(w, resource, n);
    put_attribute(w, 2, "threadlocal.schema_version", "tlsdesc_v1_dev");
    put_attribute(w, 2, "threadlocal.attribute_key_map", NULL);
}

/* ---- the mapping ---- */

/* Whoever lets a file grow beyond the limit is ended by a signal, even if it is in memory. */
static bool may_grow(size_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= size;
}

/* A file that has the name and no other; -1: then the mapping must be named itself. */
static int named_file(void)
{
    int fd = -1;

    if (!may_grow(sizeof(struct header)))
        return -1;
    fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

    if (fd < 0)
        fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, sizeof(struct header)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int name_mapping(void)
{
    return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, shown, sizeof(*shown), "OTEL_CTX");
}

static int map_header(void)
{
    int fd = named_file();
    void *at = mmap(NULL, sizeof(*shown), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return -errno;
    madvise(at, sizeof(*shown), MADV_DONTFORK);
    shown = at;
    memcpy(shown->signature, "OTEL_CTX", sizeof(shown->signature));
    shown->version = VERSION;
    shown->payload = (uint64_t)(uintptr_t)payload;
    if (fd >= 0 || name_mapping() == 0)
        return 0;
    munmap(at, sizeof(*shown));
    shown = NULL;
    return -ENOTSUP;
}

static uint64_t later_ns(void)
{
    struct timespec now = {0};
    uint64_t ns;

    clock_gettime(CLOCK_BOOTTIME, &now);
    ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    last_ns = ns > last_ns ? ns : last_ns + 1;
    return last_ns;
}

/* The name is given each time: that is what readers may be waiting for. */
static void announce(void)
{
    shown->payload_size = payload_size;
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&shown->published_ns, later_ns());
    name_mapping();
}

/* ---- forks ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Of the whole library (inproc/unwind/peek.h); not there where this file is all that is linked. */
extern bool kiln_in_peek_is_cautious(void) __attribute__((weak));

/* A child whose system calls are filtered may be ended for one of these: it publishes nothing. */
static bool may_publish(void)
{
    return !kiln_in_peek_is_cautious || !kiln_in_peek_is_cautious();
}

static void in_child(void)
{
    bool published = shown != NULL;
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    shown = NULL;
    if (published && may_publish() && map_header() == 0)
        announce();
    pthread_setcancelstate(cancel, NULL);
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

/* ---- publishing ---- */

static int check(const struct kiln_attribute *resource, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!resource[i].key || !resource[i].value)
            return -EINVAL;
    }
    return 0;
}

static int publish(const struct kiln_attribute *resource, size_t n, size_t size)
{
    struct writer writer = {.at = payload};
    int r = shown ? 0 : map_header();

    if (r < 0)
        return r;
    atomic_store(&shown->published_ns, 0);
    atomic_thread_fence(memory_order_seq_cst);
    put_context(&writer, resource, n);
    payload_size = (uint32_t)size;
    announce();
    return 0;
}

int kiln_context_publish(const struct kiln_attribute *resource, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct writer counter = {0};
    int r = check(resource, n);

    if (r < 0)
        return r;
    put_context(&counter, resource, n);
    if (counter.n > PAYLOAD_MAX)
        return -E2BIG;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    r = publish(resource, n, counter.n);
    pthread_mutex_unlock(&lock);
    return r;
}

void kiln_context_withdraw(void)
{
    pthread_mutex_lock(&lock);
    if (shown)
        munmap(shown, sizeof(*shown));
    shown = NULL;
    pthread_mutex_unlock(&lock);
}
