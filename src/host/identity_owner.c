/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users, out of /etc/passwd alone: the C library's own way may ask a server in the
 * network, and whoever reads samples must not wait for that.  What was found is kept for a minute.
 *
 *   NAME:PASSWORD:UID:GID:...
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "host/process_int.h"

enum { KEPT = 64, PASSWD_MAX = 4 << 20 };
#define KEEP_NS (60 * KILN_NS_PER_S)

struct wanted {
    uint32_t uid;
    char *to;
    size_t size;
};

static bool look(void *context, struct kiln_str line)
{
    struct wanted *wanted = context;
    struct kiln_str name = kiln_str_cut(&line, ':');
    uint64_t uid;

    kiln_str_cut(&line, ':');
    if (!name.len || name.len >= wanted->size ||
        kiln_str_parse_u64(kiln_str_cut(&line, ':'), &uid) < 0 || uid != wanted->uid)
        return true;
    snprintf(wanted->to, wanted->size, "%.*s", KILN_STR_ARG(name));
    return false;
}

void kiln_owner_name(uint32_t uid, char *to, size_t size)
{
    static _Thread_local struct {
        uint64_t until_ns;
        uint32_t uid;
        char name[33];
    } kept[KEPT], *k;
    uint64_t now_ns = kiln_clock_mono_ns();

    k = &kept[uid % KEPT];
    if (k->uid != uid || now_ns >= k->until_ns) {
        struct wanted wanted = {uid, k->name, sizeof(k->name)};

        k->uid = uid;
        k->until_ns = now_ns + KEEP_NS;
        snprintf(k->name, sizeof(k->name), "%u", uid);
        if (kiln_procfs_lines(AT_FDCWD, "/etc/passwd", PASSWD_MAX, look, &wanted) < 0)
            snprintf(k->name, sizeof(k->name), "%u", uid);
    }
    snprintf(to, size, "%s", k->name);
}
