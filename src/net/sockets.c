/* SPDX-License-Identifier: Apache-2.0 */
#include "net/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

struct kept {
    struct kept *next;
    char *name, *address;
    int fd;
    bool taken; /* since the last turn */
};

struct kiln_sockets {
    pthread_mutex_t lock;
    struct kept *first;
};

int kiln_sockets_new(struct kiln_sockets **ret_sockets)
{
    struct kiln_sockets *sockets = kiln_calloc(1, sizeof(*sockets));

    if (!sockets)
        return -ENOMEM;
    pthread_mutex_init(&sockets->lock, NULL);
    *ret_sockets = sockets;
    return 0;
}

static void close_kept(struct kept *kept)
{
    close(kept->fd);
    if (strncmp(kept->address, "unix:", 5) == 0)
        unlink(kept->address + 5);
    kiln_free(kept->name);
    kiln_free(kept->address);
    kiln_free(kept);
}

void kiln_sockets_free(struct kiln_sockets *sockets)
{
    if (!sockets)
        return;
    kiln_sockets_turn(sockets);
    kiln_sockets_trim(sockets);
    pthread_mutex_destroy(&sockets->lock);
    kiln_free(sockets);
}

static char *copy(const char *text)
{
    char *made = kiln_malloc(strlen(text) + 1);

    if (made)
        memcpy(made, text, strlen(text) + 1);
    return made;
}

static bool is_any_port(const char *address)
{
    const char *colon = strrchr(address, ':');

    return colon && strcmp(colon, ":0") == 0;
}

/* The one of this name; or, where a port is one and the same, of a name that nobody has any more.
 */
static struct kept *find(const struct kiln_sockets *sockets, const char *name, const char *address)
{
    struct kept *other = NULL;

    for (struct kept *kept = sockets->first; kept; kept = kept->next) {
        if (kept->taken || strcmp(kept->address, address) != 0)
            continue;
        if (strcmp(kept->name, name) == 0)
            return kept;
        if (!is_any_port(address))
            other = kept;
    }
    return other;
}

static int open_one(struct kiln_sockets *sockets, const struct kiln_socket_opts *opts,
                    struct kept **ret_kept, struct kiln_err *err)
{
    struct kept *kept = kiln_calloc(1, sizeof(*kept));
    char *address = copy(opts->address);
    int fd, r = -ENOMEM;

    if (kept && address)
        r = kiln_socket_listen(opts, &fd, err);
    if (r < 0) {
        kiln_free(kept);
        kiln_free(address);
        return kiln_err_set(err, r, opts->address, "%s", kiln_err_text(r));
    }
    *kept = (struct kept){.next = sockets->first, .address = address, .fd = fd};
    sockets->first = kept;
    *ret_kept = kept;
    return 0;
}

/* One that nobody took, at the same port of another host; the one of this name first. */
static struct kept **find_in_the_way(struct kiln_sockets *sockets, const char *name,
                                     const char *address)
{
    const char *colon = strrchr(address, ':');
    unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;
    struct kept **other = NULL;

    for (struct kept **at = &sockets->first; port && *at; at = &(*at)->next) {
        if ((*at)->taken || kiln_socket_port((*at)->fd) != port)
            continue;
        if (strcmp((*at)->name, name) == 0)
            return at;
        other = at;
    }
    return other;
}

/* What the servers before had at this port makes room: 0.0.0.0 may become 127.0.0.1. */
static int open_instead(struct kiln_sockets *sockets, const char *name,
                        const struct kiln_socket_opts *opts, struct kept **ret_kept,
                        struct kiln_err *err)
{
    int r = open_one(sockets, opts, ret_kept, err);
    struct kept **at, *old;

    while (r == -EADDRINUSE && (at = find_in_the_way(sockets, name, opts->address))) {
        old = *at;
        *at = old->next;
        close_kept(old);
        r = open_one(sockets, opts, ret_kept, err);
    }
    return r;
}

/* A descriptor for the one who listens as `name`, which is the socket's from now on. */
static int take(struct kept *kept, char *name, int *ret_fd, struct kiln_err *err)
{
    int fd = fcntl(kept->fd, F_DUPFD_CLOEXEC, 0);

    kiln_free(kept->name);
    kept->name = name;
    if (fd < 0)
        return kiln_err_set(err, -errno, kept->address, "%s", kiln_err_text(-errno));
    kept->taken = true;
    *ret_fd = fd;
    return 0;
}

int kiln_sockets_listen(struct kiln_sockets *sockets, const char *name,
                        const struct kiln_socket_opts *opts, int *ret_fd, struct kiln_err *err)
{
    char *own_name = copy(name);
    struct kept *kept;
    int r = 0;

    if (!own_name)
        return kiln_err_set(err, -ENOMEM, opts->address, "%s", kiln_err_text(-ENOMEM));
    pthread_mutex_lock(&sockets->lock);
    kept = find(sockets, name, opts->address);
    if (!kept)
        r = open_instead(sockets, name, opts, &kept, err);
    if (r == 0)
        r = take(kept, own_name, ret_fd, err);
    else
        kiln_free(own_name);
    pthread_mutex_unlock(&sockets->lock);
    return r;
}

void kiln_sockets_turn(struct kiln_sockets *sockets)
{
    pthread_mutex_lock(&sockets->lock);
    for (struct kept *kept = sockets->first; kept; kept = kept->next)
        kept->taken = false;
    pthread_mutex_unlock(&sockets->lock);
}

void kiln_sockets_trim(struct kiln_sockets *sockets)
{
    pthread_mutex_lock(&sockets->lock);
    for (struct kept **at = &sockets->first; *at;) {
        struct kept *kept = *at;

        if (kept->taken) {
            at = &kept->next;
            continue;
        }
        *at = kept->next;
        close_kept(kept);
    }
    pthread_mutex_unlock(&sockets->lock);
}

void kiln_sockets_each(struct kiln_sockets *sockets,
                       void (*each)(void *context, const char *name, const char *address,
                                    uint16_t port),
                       void *context)
{
    pthread_mutex_lock(&sockets->lock);
    for (const struct kept *kept = sockets->first; kept; kept = kept->next)
        if (kept->taken)
            each(context, kept->name, kept->address, kiln_socket_port(kept->fd));
    pthread_mutex_unlock(&sockets->lock);
}
