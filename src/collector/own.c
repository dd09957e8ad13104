/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/own.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kiln_own_is_there(void)
{
    return dlsym(RTLD_DEFAULT, "kiln_start") != NULL;
}

int kiln_own_server(char ret_server[], size_t size, struct kiln_err *err)
{
    const char *address = getenv("KILN_PPROF_LISTEN");
    bool local = address && strncmp(address, "unix:", 5) == 0;

    if (!kiln_own_is_there() || !address || !*address)
        return kiln_err_set(err, -ENOTSUP, NULL,
                            "the collector profiles itself from its start on, with libkiln in "
                            "front of it: start it anew (or by `kiln run --pprof ADDRESS -- kiln "
                            "collector ...`, which says what is in the way)");
    snprintf(ret_server, size, "%s%s%s", local ? "" : "http://",
             address[0] == ':' ? "127.0.0.1" : "", address);
    return 0;
}
