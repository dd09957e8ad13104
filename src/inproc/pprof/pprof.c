/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server as a part of the library: where it listens is among the settings, KILN_PPROF_TOKEN is
 * what clients have to know, and KILN_PPROF_ADDRESS_FILE a file that gets the real address, for
 * port 0.
 *
 * An address belongs to one process.  A forked child serves only where the address makes it another
 * one: port 0, or a path with %p, which stands for the process' id.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inproc/environment.h"
#include "inproc/keep/pace.h"
#include "inproc/pprof/server.h"
#include "inproc/start.h"
#include "inproc/thread/visit.h"

static struct kiln_in_server *server;
static bool is_child;
static char token[256];

/* Whether every process that listens there gets an address of its own. */
static bool is_shared_by_many(const char *address)
{
    size_t len = strlen(address);

    return strstr(address, "%p") || (len >= 2 && strcmp(address + len - 2, ":0") == 0);
}

static void fill_pid(const char *address, char *ret, size_t size)
{
    const char *mark = strstr(address, "%p");

    if (mark)
        snprintf(ret, size, "%.*s%d%s", (int)(mark - address), address, (int)getpid(), mark + 2);
    else
        snprintf(ret, size, "%s", address);
}

/*
 * Replaces the file in one step, because readers wait for it to appear.  The new file has a random
 * name: in a folder such as /tmp, another user could have a link at a name that can be guessed.
 */
static void write_address(const char *path, const char *address)
{
    char fresh[PATH_MAX], line[300];
    int n = snprintf(line, sizeof(line), "%s\n", address), fd = -1;
    bool done;

    if (snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path) < (int)sizeof(fresh))
        fd = mkostemp(fresh, O_CLOEXEC);
    done = fd >= 0 && write(fd, line, (size_t)n) == n && fchmod(fd, 0644) == 0 &&
           rename(fresh, path) == 0;
    if (!done)
        kiln_in_say(true, "KILN_PPROF_ADDRESS_FILE %s cannot be written", path);
    if (fd >= 0 && !done)
        unlink(fresh);
    if (fd >= 0)
        close(fd);
}

static void start_server(void)
{
    const char *file = kiln_in_env("KILN_PPROF_ADDRESS_FILE");
    const char *secret = kiln_in_env("KILN_PPROF_TOKEN");
    char address[KILN_IN_TEXT_MAX];
    struct kiln_in_server_opts opts = {.address = address};
    struct kiln_err err = {0};

    fill_pid(kiln_in_settings.pprof_listen, address, sizeof(address));
    snprintf(token, sizeof(token), "%s", secret ? secret : "");
    opts.pages = (struct kiln_in_pages){&kiln_in_source_own, secret ? token : NULL};
    if (kiln_in_server_start(&opts, &server, &err) < 0) {
        kiln_in_say(true, "/debug/pprof is not served: %s: %s", err.where, err.text);
        return;
    }
    kiln_in_say(false, "/debug/pprof/ is at %s", kiln_in_server_address(server));
    if (file)
        write_address(file, kiln_in_server_address(server));
}

int kiln_in_pprof_start(void)
{
    const char *address = kiln_in_settings.pprof_listen;

    if (server || !address[0] || (is_child && !is_shared_by_many(address)))
        return 0;
    kiln_in_hush();
    start_server();
    kiln_in_unhush();
    return 0;
}

void kiln_in_pprof_stop(void)
{
    kiln_in_hush();
    if (server)
        kiln_in_server_stop(server);
    server = NULL;
    kiln_in_source_forget();
    kiln_in_unhush();
}

/* The thread goes on until the process is gone; the file of a socket would stay behind. */
__attribute__((destructor)) static void at_exit(void)
{
    if (server)
        kiln_in_server_unlink(server);
}

void kiln_in_pprof_forked(void)
{
    server = NULL;
    is_child = true;
    kiln_in_pace_forked();
}
