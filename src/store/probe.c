/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing else notices, while nothing comes in, that a file system became read-only or that a
 * directory was removed; and after a failure nothing else notices that writes work again.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "store/store_int.h"

#define PATH    "wal/probe" /* no name of a segment: replay passes it over */
#define BYTES   4096u       /* enough to need space */
#define REST_NS (2 * KILN_NS_PER_S)
#define SLOW_NS (10 * KILN_NS_PER_S)

static int try_file(struct kiln_io *io)
{
    static const char bytes[BYTES];
    int fd = io->open(io, PATH, O_RDWR | O_CREAT);
    int r, closed;

    if (fd < 0)
        return fd;
    r = io->pwrite(io, fd, bytes, sizeof(bytes), 0);
    if (r == 0)
        r = io->sync(io, fd);
    if (r == 0)
        r = io->has_name(io, fd, PATH);
    closed = io->close(io, fd);
    (void)!io->unlink(io, PATH);
    return r < 0 ? r : closed;
}

static void look(struct kiln_store *store)
{
    struct kiln_store_probe *probe = &store->probe;
    uint64_t now = kiln_clock_mono_ns(), ended = atomic_load(&probe->ended_ns);

    if (ended && now - ended < REST_NS)
        return;
    atomic_store(&probe->since_ns, now);
    atomic_store(&probe->code, try_file(store->io));
    atomic_store(&probe->ended_ns, kiln_clock_mono_ns());
    atomic_store(&probe->since_ns, 0);
    if (atomic_load(&probe->code) == -ENOENT)
        kiln_store_log_lost(store);
}

static bool is_slow(struct kiln_store *store)
{
    uint64_t since = atomic_load(&store->probe.since_ns);

    return since && kiln_clock_mono_ns() - since > SLOW_NS;
}

int kiln_store_probe(struct kiln_engine *engine, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    int code, cut = atomic_load(&store->cut_error);

    if (store->opts.read_only)
        return kiln_err_set(err, -EROFS, NULL, "the store is open for reading only");
    if (pthread_mutex_trylock(&store->probe.lock) == 0) { /* else the last result must do */
        look(store);
        pthread_mutex_unlock(&store->probe.lock);
    }
    code = atomic_load(&store->probe.code);
    if (is_slow(store))
        return kiln_err_set(err, -ETIMEDOUT, "wal/", "a write has taken more than 10 seconds");
    if (code == -ENOENT)
        return kiln_err_set(err, code, "wal/",
                            "the directory was removed: make it again or start the server again");
    if (code < 0)
        return kiln_err_set(err, code, "wal/", "cannot be written: %s", kiln_err_text(code));
    if (cut < 0 && cut != -ENOMEM && cut != KILN_E_LIMIT)
        return kiln_err_set(err, cut, "blocks/", "cannot be written: %s", kiln_err_text(cut));
    return 0;
}
