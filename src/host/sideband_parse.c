/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of perf's, in the order of their bytes (all numbers as the processor has them):
 *
 *   header   u32 type, u16 misc, u16 size (with the header)
 *   MMAP2    u32 pid, tid; u64 address, length, offset; 24 bytes: u32 major, minor, u64 inode,
 *            generation, or u8 length, 3 bytes unused, build id; u32 protection, flags; name
 *   COMM     u32 pid, tid; name
 *   FORK, EXIT   u32 pid, ppid, tid, ptid; u64 time
 *   LOST     u64 id, lost
 *   trailer  of each: u32 pid, tid; u64 time; u32 processor, unused
 *
 * Names end in NUL and are filled up with it to a multiple of 8.  A process that the agent's PID
 * namespace does not have is 0 (or -1, where it is on its way out): not ours.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "host/sideband_int.h"

enum { TRAILER = 24, MMAP2_NAME = 72, MMAP2_ID = 40, COMM_NAME = 16 };

static uint32_t u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

/* The name at `from`, if it ends in the record. */
static bool get_name(const uint8_t *record, size_t from, size_t size, const char **ret_name)
{
    size_t end = size - TRAILER;
    if (from >= end || !memchr(record + from, '\0', end - from))
        return false;
    *ret_name = (const char *)record + from;
    return true;
}

static bool parse_map(const uint8_t *at, size_t size, uint16_t misc, struct kiln_event *event)
{
    event->kind = KILN_EVENT_MAP;
    if (!get_name(at, MMAP2_NAME, size, &event->name))
        return false;
    event->start = u64(at + 16);
    event->length = u64(at + 24);
    event->offset = u64(at + 32);
    if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
        uint8_t length = at[MMAP2_ID];
        if (length > sizeof(event->build_id))
            return false;
        event->build_id_len = length;
        memcpy(event->build_id, at + MMAP2_ID + 4, length);
    } else {
        event->major = u32(at + MMAP2_ID);
        event->minor = u32(at + MMAP2_ID + 4);
        event->inode = u64(at + MMAP2_ID + 8);
        event->inode_generation = u64(at + MMAP2_ID + 16);
    }
    return event->length > 0 && event->start + event->length > event->start;
}

static bool parse_comm(const uint8_t *at, size_t size, uint16_t misc, struct kiln_event *event)
{
    event->kind = KILN_EVENT_COMM;
    event->exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    return get_name(at, COMM_NAME, size, &event->name);
}

static bool parse_task(const uint8_t *at, size_t size, uint32_t kind, struct kiln_event *event)
{
    if (size < 32 + TRAILER)
        return false;
    event->kind = kind;
    event->ppid = u32(at + 12);
    event->tid = u32(at + 16);
    event->ptid = u32(at + 20);
    return true;
}

static bool parse_lost(const uint8_t *at, size_t size, struct kiln_event *event)
{
    if (size < 24 + TRAILER)
        return false;
    event->kind = KILN_EVENT_LOST;
    event->n = u64(at + 16);
    event->pid = event->tid = 0;
    return true;
}

int kiln_sideband_parse(const void *record, size_t size, struct kiln_event *ret_event)
{
    const uint8_t *at = record;
    struct perf_event_header header;
    if (size < sizeof(header) + 8 + TRAILER)
        return 0;
    memcpy(&header, record, sizeof(header));
    struct kiln_event event = {.pid = u32(at + 8), .tid = u32(at + 12)};
    event.time_ns = u64(at + size - KILN_SIDEBAND_TIME);
    bool is_whole = false;
    if (header.type == PERF_RECORD_MMAP2)
        is_whole = parse_map(at, size, header.misc, &event);
    else if (header.type == PERF_RECORD_COMM)
        is_whole = parse_comm(at, size, header.misc, &event);
    else if (header.type == PERF_RECORD_FORK)
        is_whole = parse_task(at, size, KILN_EVENT_FORK, &event);
    else if (header.type == PERF_RECORD_EXIT)
        is_whole = parse_task(at, size, KILN_EVENT_EXIT, &event);
    else if (header.type == PERF_RECORD_LOST)
        is_whole = parse_lost(at, size, &event);
    bool is_ours = event.kind == KILN_EVENT_LOST || (int32_t)event.pid > 0;
    if (!is_whole || !is_ours)
        return 0;
    *ret_event = event;
    return 1;
}

void kiln_sideband_copy(const uint8_t *ring, uint64_t size, uint64_t position, void *to,
                        size_t length)
{
    size_t from = (size_t)(position & (size - 1));
    size_t first = size - from < length ? (size_t)(size - from) : length;
    memcpy(to, ring + from, first);
    memcpy((uint8_t *)to + first, ring, length - first);
}
