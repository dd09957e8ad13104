/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf event that counts nothing on each processor, for the records that come with it.
 *
 * Its buffer is a page of control (where the kernel writes next, where we read next), then a ring.
 * A record may go around its end; it is copied into one piece before it is read, so that
 * nothing changes under the reader either.
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

#include "base/clock.h"
#include "base/mem.h"
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
    uint8_t *base; /* NULL: none */
    uint64_t size; /* of the ring behind the first page */
};

struct kiln_sideband {
    struct kiln_percpu events;
    struct buffer *buffers; /* by number of processor */
    uint32_t n_buffers;
    uint32_t pages;
    size_t page_bytes;
    int epoll_fd;
    _Alignas(8) uint8_t record[RECORD_MAX];
};

static int grow(struct kiln_sideband *sideband, uint32_t n)
{
    if (n <= sideband->n_buffers)
        return 0;
    struct buffer *buffers = kiln_realloc(sideband->buffers, n * sizeof(*buffers));
    if (!buffers)
        return -ENOMEM;
    memset(buffers + sideband->n_buffers, 0, (n - sideband->n_buffers) * sizeof(*buffers));
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
            *buffer = (struct buffer){.base = base, .size = pages * sideband->page_bytes};
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
    buffer->base = NULL;
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

static int explain(int code, struct kiln_err *err)
{
    if (code == -EPERM || code == -EACCES)
        return kiln_err_set(err, code, NULL,
                            "watching the processes of the host needs CAP_PERFMON: run as root, or "
                            "in a container with --privileged --pid=host");
    return kiln_err_set(err, code, NULL, "the processes of the host cannot be watched: %s",
                        kiln_err_text(code));
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
    sideband->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    describe(sideband);
    int rc = sideband->epoll_fd < 0 ? -errno : kiln_percpu_open(&sideband->events);
    if (rc < 0) {
        kiln_sideband_close(sideband);
        return explain(rc, err);
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

static int drain_buffer(struct kiln_sideband *sideband, const struct buffer *buffer,
                        void (*visit)(void *context, const struct kiln_event *event), void *context)
{
    struct perf_event_mmap_page *control = (struct perf_event_mmap_page *)buffer->base;
    const uint8_t *ring = buffer->base + sideband->page_bytes;
    uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = control->data_tail;
    int n = 0;
    while (head - tail >= sizeof(struct perf_event_header)) {
        struct perf_event_header header;
        struct kiln_event event;
        kiln_sideband_copy(ring, buffer->size, tail, &header, sizeof(header));
        if (header.size < sizeof(header) || header.size > head - tail) {
            tail = head; /* the kernel never writes such a thing */
            break;
        }
        kiln_sideband_copy(ring, buffer->size, tail, sideband->record, header.size);
        tail += header.size;
        if (kiln_sideband_parse(sideband->record, header.size, &event)) {
            visit(context, &event);
            n++;
        }
    }
    __atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
    return n;
}

int kiln_sideband_drain(struct kiln_sideband *sideband,
                        void (*visit)(void *context, const struct kiln_event *event), void *context)
{
    int n = 0;
    for (uint32_t cpu = 0; cpu < sideband->n_buffers; cpu++) {
        if (sideband->buffers[cpu].base)
            n += drain_buffer(sideband, &sideband->buffers[cpu], visit, context);
    }
    uint32_t again = sideband->events.opened_again;
    int rc = kiln_percpu_rescan(&sideband->events);
    if (sideband->events.opened_again != again) {
        visit(context, &(struct kiln_event){
                           .kind = KILN_EVENT_LOST, .n = 1, .time_ns = kiln_clock_mono_ns()});
        n++;
    }
    return rc < 0 ? rc : n;
}

void kiln_sideband_pause(struct kiln_sideband *sideband, bool pauses)
{
    for (uint32_t cpu = 0; cpu < sideband->events.n; cpu++) {
        if (sideband->events.fds[cpu] >= 0)
            (void)ioctl(sideband->events.fds[cpu],
                        pauses ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
    }
}
