/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processors are online says /sys/devices/system/cpu/online; where it cannot be read, it is
 * the first so many that the C library knows of.
 */
#include "host/percpu.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "host/opener.h"

enum { RESCAN_S = 10 };

/* ULONG_MAX: there is none. */
static unsigned long read_number(const char *text, char **ret_rest)
{
    *ret_rest = (char *)text;
    return *text >= '0' && *text <= '9' ? strtoul(text, ret_rest, 10) : ULONG_MAX;
}

int kiln_cpus_parse(const char *list, bool online[KILN_CPUS_MAX])
{
    unsigned long end = 0;
    memset(online, 0, KILN_CPUS_MAX);
    while (*list && *list != '\n') {
        char *rest;
        unsigned long first = read_number(list, &rest), last = first;
        if (*rest == '-')
            last = read_number(rest + 1, &rest);
        if (first > last || last >= KILN_CPUS_MAX || (*rest && *rest != ',' && *rest != '\n'))
            return KILN_E_MALFORMED;
        memset(online + first, 1, last - first + 1);
        end = last + 1 > end ? last + 1 : end;
        list = *rest == ',' ? rest + 1 : rest;
    }
    return end ? (int)end : KILN_E_MALFORMED;
}

static int find_online(bool online[KILN_CPUS_MAX])
{
    struct kiln_buf buf;
    kiln_buf_init(&buf, 65536);
    int rc = kiln_file_read("/sys/devices/system/cpu/online", &buf, NULL);
    kiln_buf_putc(&buf, '\0');
    if (rc == 0 && !buf.error)
        rc = kiln_cpus_parse(buf.ptr, online);
    kiln_buf_done(&buf);
    if (rc > 0)
        return rc;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    n = n < 1 ? 1 : n > KILN_CPUS_MAX ? KILN_CPUS_MAX : n;
    memset(online, 0, KILN_CPUS_MAX);
    memset(online, 1, (size_t)n);
    return (int)n;
}

static int grow(struct kiln_percpu *percpu, uint32_t n)
{
    uint64_t *enabled_ns;
    int *fds;
    if (n <= percpu->n)
        return 0;
    fds = kiln_realloc(percpu->fds, n * sizeof(*fds));
    if (!fds)
        return -ENOMEM;
    percpu->fds = fds;
    enabled_ns = kiln_realloc(percpu->enabled_ns, n * sizeof(*enabled_ns));
    if (!enabled_ns)
        return -ENOMEM;
    percpu->enabled_ns = enabled_ns;
    for (uint32_t cpu = percpu->n; cpu < n; cpu++)
        fds[cpu] = -1;
    percpu->n = n;
    return 0;
}

static void close_one(struct kiln_percpu *percpu, uint32_t cpu)
{
    if (percpu->fds[cpu] < 0)
        return;
    if (percpu->detach)
        percpu->detach(percpu->context, cpu, percpu->fds[cpu]);
    close(percpu->fds[cpu]);
    percpu->fds[cpu] = -1;
}

/* A processor that went away between looking and opening is none. */
static int open_one(struct kiln_percpu *percpu, uint32_t cpu)
{
    int fd = kiln_perf_open(&percpu->attr, (int)cpu);
    if (fd < 0)
        return fd == -ENODEV || fd == -ENXIO ? 0 : fd;
    int rc = percpu->attach(percpu->context, cpu, fd);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    percpu->fds[cpu] = fd;
    percpu->enabled_ns[cpu] = 0;
    return 0;
}

/* How long the event has been enabled; 0: that cannot be told. */
static uint64_t enabled_ns(int fd)
{
    struct {
        uint64_t value, enabled_ns;
    } told;
    return fd >= 0 && read(fd, &told, sizeof(told)) == sizeof(told) ? told.enabled_ns : 0;
}

/* Finds those that stood still while others went on; where all do, they are disabled. */
static void close_dead(struct kiln_percpu *percpu)
{
    bool stands[KILN_CPUS_MAX] = {false}, any_goes = false;
    for (uint32_t cpu = 0; cpu < percpu->n; cpu++) {
        uint64_t before = percpu->enabled_ns[cpu], now = enabled_ns(percpu->fds[cpu]);
        any_goes |= before && now > before;
        stands[cpu] = before && now == before;
        percpu->enabled_ns[cpu] = now;
    }
    for (uint32_t cpu = 0; any_goes && cpu < percpu->n; cpu++) {
        if (!stands[cpu])
            continue;
        close_one(percpu, cpu);
        percpu->opened_again++;
    }
}

static int look_for_processors(struct kiln_percpu *percpu)
{
    bool online[KILN_CPUS_MAX];
    uint32_t end = (uint32_t)find_online(online);
    int rc = grow(percpu, end);
    close_dead(percpu);
    for (uint32_t cpu = 0; rc == 0 && cpu < percpu->n; cpu++) {
        if (!online[cpu])
            close_one(percpu, cpu);
        else if (percpu->fds[cpu] < 0)
            rc = open_one(percpu, cpu);
    }
    return rc;
}

int kiln_percpu_rescan(struct kiln_percpu *percpu)
{
    uint64_t now = kiln_clock_mono_ns();
    if (now < percpu->rescan_ns)
        return 0;
    percpu->rescan_ns = now + RESCAN_S * KILN_NS_PER_S;
    return look_for_processors(percpu);
}

int kiln_percpu_open(struct kiln_percpu *percpu)
{
    percpu->attr.size = sizeof(percpu->attr);
    percpu->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    percpu->fds = NULL;
    percpu->enabled_ns = NULL;
    percpu->n = 0;
    percpu->rescan_ns = 0;
    int rc = kiln_percpu_rescan(percpu);
    if (rc < 0)
        kiln_percpu_close(percpu);
    return rc;
}

void kiln_percpu_close(struct kiln_percpu *percpu)
{
    for (uint32_t cpu = 0; cpu < percpu->n; cpu++)
        close_one(percpu, cpu);
    kiln_free(percpu->fds);
    kiln_free(percpu->enabled_ns);
    percpu->fds = NULL;
    percpu->enabled_ns = NULL;
    percpu->n = 0;
}

uint32_t kiln_percpu_count(const struct kiln_percpu *percpu)
{
    uint32_t n = 0;
    for (uint32_t cpu = 0; cpu < percpu->n; cpu++)
        n += percpu->fds[cpu] >= 0;
    return n;
}
