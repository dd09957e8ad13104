/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf event that counts nothing on each processor, for the records that come with it.
 *
 * Its buffer is a page of control (where the kernel writes next, where we read next), then a ring.
 * A record may go around its end; it is copied into one piece before it is read, so that
 * nothing changes under the reader either.
 *
 * A processor writes its records in order of time.  So the buffers are merged where they lie: the
 * one whose next record is the oldest is read until another's is older.
 */
#include "host/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/kernel_int.h"
#include "host/percpu.h"
#include "host/sideband_int.h"

enum {
    PAGES = 64,
    PAGES_MIN = 4,
    PAGES_MAX = 4096,
    RECORD_MAX = 65536,
    BUFFERS_MAX = 16 << 20 /* of all processors, where nobody says otherwise */
};

struct buffer {
    uint8_t *base;       /* NULL: none */
    uint64_t size;       /* of the ring behind the first page */
    uint64_t head, tail; /* what of it can be shown */
    uint64_t next_ns;    /* of the record at the tail; UINT64_MAX: there is none */
    uint16_t next_size;
};

struct kiln_sideband {
    struct kiln_percpu events;
    struct buffer *buffers; /* by number of processor */
    uint32_t n_buffers;
    uint32_t pages;
    size_t page_bytes;
    int epoll_fd;
    uint64_t next_ns; /* of the oldest record of all; UINT64_MAX: there is none */
    bool has_lost;    /* a processor was away, or went with records that nobody had read */
    _Alignas(8) uint8_t record[RECORD_MAX];
};

static int grow(struct kiln_sideband *sideband, uint32_t n)
{
    if (n <= sideband->n_buffers)
        return 0;
    struct buffer *buffers = kiln_realloc(sideband->buffers, n * sizeof(*buffers));
    if (!buffers)
        return -ENOMEM;
    for (uint32_t i = sideband->n_buffers; i < n; i++)
        buffers[i] = (struct buffer){.next_ns = UINT64_MAX};
    sideband->buffers = buffers;
    sideband->n_buffers = n;
    return 0;
}

/* Where the kernel does not let us lock so much memory, a smaller buffer will do. */
static int map_buffer(struct kiln_sideband *sideband, int fd, struct buffer *buffer)
{
    for (uint32_t pages = sideband->pages; pages >= PAGES_MIN; pages /= 2) {
        void *base = mmap(NULL, (pages + 1) * sideband->page_bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED, fd, 0);
        if (base != MAP_FAILED) {
            *buffer = (struct buffer){
                .base = base, .size = pages * sideband->page_bytes, .next_ns = UINT64_MAX};
            return 0;
        }
        if (errno != EPERM && errno != ENOMEM)
            break;
    }
    return -errno;
}

static void unmap_buffer(const struct kiln_sideband *sideband, struct buffer *buffer)
{
    munmap(buffer->base, buffer->size + sideband->page_bytes);
    *buffer = (struct buffer){.next_ns = UINT64_MAX};
}

static int attach(void *context, uint32_t cpu, int fd)
{
    struct kiln_sideband *sideband = context;
    struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = cpu};
    int rc = grow(sideband, cpu + 1);
    if (rc == 0)
        rc = map_buffer(sideband, fd, &sideband->buffers[cpu]);
    if (rc == 0 && epoll_ctl(sideband->epoll_fd, EPOLL_CTL_ADD, fd, &wanted) != 0) {
        rc = -errno;
        unmap_buffer(sideband, &sideband->buffers[cpu]);
    }
    return rc;
}

static void detach(void *context, uint32_t cpu, int fd)
{
    struct kiln_sideband *sideband = context;
    const struct buffer *buffer = &sideband->buffers[cpu];
    const struct perf_event_mmap_page *control = (void *)buffer->base;
    sideband->has_lost |= __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE) != buffer->tail;
    epoll_ctl(sideband->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    unmap_buffer(sideband, &sideband->buffers[cpu]);
}

static void describe(struct kiln_sideband *sideband)
{
    sideband->events = (struct kiln_percpu){
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_DUMMY,
                 .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
                 .mmap = 1,
                 .mmap2 = 1,
                 .build_id = 1,
                 .comm = 1,
                 .comm_exec = 1,
                 .task = 1,
                 .sample_id_all = 1,
                 .exclude_kernel = 1,
                 .use_clockid = 1,
                 .clockid = CLOCK_MONOTONIC,
                 .watermark = 1,
                 .wakeup_watermark = (uint32_t)(sideband->pages * sideband->page_bytes / 4)},
        .attach = attach,
        .detach = detach,
        .context = sideband,
    };
}

/* Fewer where processors are many: they do not all start processes at once. */
static uint32_t pages_by_default(size_t page_bytes)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t pages = PAGES;

    while (pages > PAGES_MIN && processors > 0 &&
           pages * page_bytes * (size_t)processors > BUFFERS_MAX)
        pages /= 2;
    return pages;
}

int kiln_sideband_open(uint32_t pages, struct kiln_sideband **ret_sideband, struct kiln_err *err)
{
    if (pages & (pages - 1) || pages > PAGES_MAX)
        return kiln_err_set(err, -EINVAL, NULL, "a buffer has 1 to %d pages, a power of two",
                            PAGES_MAX);
    struct kiln_sideband *sideband = kiln_calloc(1, sizeof(*sideband));
    if (!sideband)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    sideband->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    sideband->pages = !pages              ? pages_by_default(sideband->page_bytes)
                      : pages < PAGES_MIN ? PAGES_MIN
                                          : pages;
    sideband->next_ns = UINT64_MAX;
    sideband->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    describe(sideband);
    int rc = sideband->epoll_fd < 0 ? -errno : kiln_percpu_open(&sideband->events);
    if (rc < 0) {
        kiln_sideband_close(sideband);
        return kiln_kernel_explain(rc, rc == -EPERM ? KILN_STEP_BUFFER : KILN_STEP_EVENT, err);
    }
    *ret_sideband = sideband;
    return 0;
}

void kiln_sideband_close(struct kiln_sideband *sideband)
{
    if (!sideband)
        return;
    kiln_percpu_close(&sideband->events);
    if (sideband->epoll_fd >= 0)
        close(sideband->epoll_fd);
    kiln_free(sideband->buffers);
    kiln_free(sideband);
}

int kiln_sideband_fd(const struct kiln_sideband *sideband)
{
    return sideband->epoll_fd;
}

static const uint8_t *ring_of(const struct kiln_sideband *sideband, const struct buffer *buffer)
{
    return buffer->base + sideband->page_bytes;
}

/* How long the record at the tail is, and when it was. */
static void peek(const struct kiln_sideband *sideband, struct buffer *buffer)
{
    const uint8_t *ring = ring_of(sideband, buffer);
    struct perf_event_header header = {0};
    buffer->next_ns = UINT64_MAX;
    if (buffer->head - buffer->tail < sizeof(header))
        return;
    kiln_sideband_copy(ring, buffer->size, buffer->tail, &header, sizeof(header));
    if (header.size < sizeof(header) + KILN_SIDEBAND_TIME ||
        header.size > buffer->head - buffer->tail) {
        buffer->tail = buffer->head; /* the kernel never writes such a thing */
        return;
    }
    buffer->next_size = header.size;
    kiln_sideband_copy(ring, buffer->size, buffer->tail + header.size - KILN_SIDEBAND_TIME,
                       &buffer->next_ns, sizeof(buffer->next_ns));
}

static uint32_t show(struct kiln_sideband *sideband, struct buffer *buffer,
                     void (*visit)(void *context, const struct kiln_event *event), void *context)
{
    uint16_t size = buffer->next_size;
    struct kiln_event event;
    kiln_sideband_copy(ring_of(sideband, buffer), buffer->size, buffer->tail, sideband->record,
                       size);
    buffer->tail += size;
    peek(sideband, buffer);
    if (!kiln_sideband_parse(sideband->record, size, &event))
        return 0;
    visit(context, &event);
    return 1;
}

/* The buffer whose next record is the oldest, NULL: none has one; and the time of the second. */
static struct buffer *find_oldest(struct kiln_sideband *sideband, uint64_t *ret_second_ns)
{
    struct buffer *oldest = NULL;
    uint64_t second_ns = UINT64_MAX;
    for (uint32_t cpu = 0; cpu < sideband->n_buffers; cpu++) {
        struct buffer *buffer = &sideband->buffers[cpu];
        uint64_t oldest_ns = oldest ? oldest->next_ns : UINT64_MAX;
        if (buffer->next_ns < oldest_ns) {
            second_ns = oldest_ns;
            oldest = buffer;
        } else if (buffer->next_ns < second_ns) {
            second_ns = buffer->next_ns;
        }
    }
    sideband->next_ns = oldest ? oldest->next_ns : UINT64_MAX;
    *ret_second_ns = second_ns;
    return oldest;
}

static void let_go(const struct buffer *buffer)
{
    struct perf_event_mmap_page *control = (struct perf_event_mmap_page *)buffer->base;
    __atomic_store_n(&control->data_tail, buffer->tail, __ATOMIC_RELEASE);
}

static uint32_t tell_lost(struct kiln_sideband *sideband,
                          void (*visit)(void *context, const struct kiln_event *event),
                          void *context)
{
    const struct kiln_event lost = {.kind = KILN_EVENT_LOST, .n = 1};
    if (!sideband->has_lost)
        return 0;
    sideband->has_lost = false;
    visit(context, &lost);
    return 1;
}

uint32_t kiln_sideband_drain(struct kiln_sideband *sideband, uint64_t before_ns,
                             void (*visit)(void *context, const struct kiln_event *event),
                             void *context)
{
    uint32_t n = tell_lost(sideband, visit, context);
    struct buffer *buffer;
    uint64_t second_ns;
    if (sideband->next_ns >= before_ns)
        return n;
    while ((buffer = find_oldest(sideband, &second_ns)) && buffer->next_ns < before_ns) {
        uint64_t until_ns = second_ns < before_ns ? second_ns + 1 : before_ns;
        while (buffer->next_ns < until_ns)
            n += show(sideband, buffer, visit, context);
        let_go(buffer);
    }
    return n;
}

int kiln_sideband_look(struct kiln_sideband *sideband)
{
    uint32_t again = sideband->events.opened_again;
    int rc = kiln_percpu_rescan(&sideband->events);
    uint64_t second_ns;
    sideband->has_lost |= sideband->events.opened_again != again;
    for (uint32_t cpu = 0; cpu < sideband->n_buffers; cpu++) {
        struct buffer *buffer = &sideband->buffers[cpu];
        struct perf_event_mmap_page *control = (struct perf_event_mmap_page *)buffer->base;
        if (!control)
            continue;
        buffer->head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
        if (buffer->next_ns == UINT64_MAX)
            peek(sideband, buffer);
    }
    find_oldest(sideband, &second_ns);
    return rc;
}

void kiln_sideband_pause(struct kiln_sideband *sideband, bool pauses)
{
    for (uint32_t cpu = 0; cpu < sideband->events.n; cpu++) {
        if (sideband->events.fds[cpu] >= 0)
            (void)ioctl(sideband->events.fds[cpu],
                        pauses ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
    }
}
