/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files of what was sampled: first as a process sees them that maps the program, so that
 * those of a container are found; then, by build id alone, those of the host.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/publish_int.h"
#include "symbol/debugfile.h"

enum { TRIED_MAX = 8 };

/* Some processes that the object was seen in may be gone. */
static int open_root(const struct debug_roots *roots, int *ret_root)
{
    uint32_t before = UINT32_MAX, tried = 0;
    int r = -ENOENT;

    for (uint32_t i = 0; i < roots->n && tried < TRIED_MAX; i++) {
        const struct place *place = roots->places[i];

        if (place->object != roots->object || place->seen_in == before)
            continue;
        before = place->seen_in;
        tried++;
        r = kiln_process_open_root(roots->run->g->identities[before], ret_root);
        if (r == 0)
            break;
    }
    return r;
}

static void open_roots(struct debug_roots *roots)
{
    if (roots->tried)
        return;
    roots->tried = true;
    if (open_root(roots, &roots->root) < 0)
        roots->root = -1;
    if (kiln_process_open_host_root(&roots->host) < 0)
        roots->host = -1;
}

int publish_debug_file(void *context, const struct kiln_wanted *wanted, int *ret_fd)
{
    struct debug_roots *roots = context;
    struct kiln_debugfile where = {.program = roots->object->path};
    struct kiln_wanted left = *wanted;
    struct stat program = {0};
    int r = -ENOENT;

    where.owned = true;
    (void)fstat(roots->object->fd, &program); /* or nobody but root is trusted */
    where.owner = program.st_uid;
    open_roots(roots);
    where.root = roots->root;
    if (roots->root >= 0)
        r = kiln_debugfile_open(&where, wanted, ret_fd);
    left.attempt -= where.passed;
    where.root = roots->host;
    where.by_id = true;
    if (r < 0 && roots->host >= 0)
        r = kiln_debugfile_open(&where, &left, ret_fd);
    return r;
}

void publish_debug_done(struct debug_roots *roots)
{
    if (roots->root >= 0)
        close(roots->root);
    if (roots->host >= 0)
        close(roots->host);
}
