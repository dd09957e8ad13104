/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mounts.h"

#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "host/procfs.h"

enum { ROOTS_MAX = 64, POINTS_BYTES_MAX = 256 << 10, TEXT_BYTES_MAX = 4 << 20 };
#define FRESH_NS (10 * KILN_NS_PER_S)

struct root {
    uint64_t id, read_ns;
    struct kiln_buf points; /* where such file systems are mounted, each with its NUL */
    bool any;               /* it may be anywhere: there are too many to know */
};

struct kiln_mounts {
    struct root roots[ROOTS_MAX];
    uint32_t next; /* to be used again */
};

/* ---- reading ---- */

static bool is_served(struct kiln_str type)
{
    static const char *const types[] = {"fuse",  "virtiofs", "nfs",  "cifs",   "smb",   "9p",
                                        "ceph",  "afs",      "coda", "lustre", "gpfs",  "beegfs",
                                        "ncpfs", "orangefs", "pvfs", "ocfs2",  "panfs", "vboxsf"};

    if (kiln_str_eq(type, KILN_STR("fusectl")))
        return false;
    for (size_t i = 0; i < KILN_ARRAY_LEN(types); i++)
        if (kiln_str_starts(type, kiln_str_of(types[i])))
            return true;
    return false;
}

static bool is_octal(const char *digits)
{
    return digits[0] >= '0' && digits[0] <= '3' && digits[1] >= '0' && digits[1] <= '7' &&
           digits[2] >= '0' && digits[2] <= '7';
}

/* Adds the point as the file system has it, with NUL: blanks and the like are "\\040" there. */
static void add_point(struct kiln_buf *points, struct kiln_str point)
{
    for (size_t i = 0; i < point.len; i++) {
        const char *at = point.ptr + i;
        bool escaped = *at == '\\' && point.len - i >= 4 && is_octal(at + 1);

        kiln_buf_putc(points, escaped
                                  ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'))
                                  : *at);
        i += escaped ? 3 : 0;
    }
    kiln_buf_putc(points, '\0');
}

static bool see_line(void *context, struct kiln_str line)
{
    struct root *root = context;
    struct kiln_procfs_mount mount;

    if (kiln_procfs_parse_mount(line, &mount) == 0 && is_served(mount.type))
        add_point(&root->points, mount.point);
    return true;
}

/* Of a process that is gone nothing can be read, nor opened. */
static void read_root(struct root *root, int dir)
{
    int r;

    kiln_buf_clear(&root->points);
    r = kiln_procfs_lines(dir, "mountinfo", TEXT_BYTES_MAX, see_line, root);
    root->any = root->points.error || r == -ENOMEM;
    root->read_ns = kiln_clock_mono_ns();
}

/* ---- asking ---- */

static struct root *root_of(struct kiln_mounts *mounts, int dir, uint64_t id)
{
    struct root *root = NULL;

    for (uint32_t i = 0; id && !root && i < ROOTS_MAX; i++)
        root = mounts->roots[i].id == id ? &mounts->roots[i] : NULL;
    if (root && kiln_clock_mono_ns() - root->read_ns < FRESH_NS)
        return root;
    if (!root) {
        root = &mounts->roots[mounts->next];
        mounts->next = (mounts->next + 1) % ROOTS_MAX;
        root->id = id;
    }
    read_root(root, dir);
    return root;
}

static bool is_at_or_below(const char *path, struct kiln_str point)
{
    if (strncmp(path, point.ptr, point.len) != 0)
        return false;
    return path[point.len] == '/' || path[point.len] == '\0' || point.ptr[point.len - 1] == '/';
}

bool kiln_mounts_served(struct kiln_mounts *mounts, int dir, uint64_t root_id, const char *path)
{
    struct root *root = root_of(mounts, dir, root_id);
    struct kiln_str rest = kiln_buf_str(&root->points);

    while (rest.len) {
        struct kiln_str point = kiln_str_cut(&rest, '\0');

        if (point.len && is_at_or_below(path, point))
            return true;
    }
    return root->any;
}

int kiln_mounts_new(struct kiln_mounts **ret_mounts)
{
    struct kiln_mounts *mounts = kiln_calloc(1, sizeof(*mounts));

    if (!mounts)
        return -ENOMEM;
    for (uint32_t i = 0; i < ROOTS_MAX; i++)
        kiln_buf_init(&mounts->roots[i].points, POINTS_BYTES_MAX);
    *ret_mounts = mounts;
    return 0;
}

void kiln_mounts_free(struct kiln_mounts *mounts)
{
    for (uint32_t i = 0; mounts && i < ROOTS_MAX; i++)
        kiln_buf_done(&mounts->roots[i].points);
    kiln_free(mounts);
}
