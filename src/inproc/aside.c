/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sanitizers have an allocator and locks of their own and are known by a function that their
 * run-time exports; valgrind is known by what it preloads.
 */
#include "inproc/aside.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "inproc/environment.h"

#define SOMEBODY(name) extern char name __attribute__((weak, visibility("default")))
SOMEBODY(__asan_init);
SOMEBODY(__tsan_init);
SOMEBODY(__msan_init);
SOMEBODY(__hwasan_init);
SOMEBODY(__lsan_init);

static bool is_enabled;
static char off_file[PATH_MAX];

bool kiln_in_is_secure(void)
{
    return getauxval(AT_SECURE) != 0;
}

static const char *sanitizer(void)
{
    if (&__asan_init || &__hwasan_init)
        return "AddressSanitizer is in this program";
    if (&__tsan_init)
        return "ThreadSanitizer is in this program";
    if (&__msan_init)
        return "MemorySanitizer is in this program";
    if (&__lsan_init)
        return "LeakSanitizer is in this program";
    return NULL;
}

const char *kiln_in_aside(void)
{
    bool forced = false;

    if (kiln_in_is_secure())
        return "this program has more privileges than its user";
    if (kiln_in_env_flag("KILN_FORCE", &forced) && forced)
        return NULL;
    if (kiln_in_preloads("vgpreload_"))
        return "this program runs under valgrind";
    return sanitizer();
}

void kiln_in_switch_read(void)
{
    const char *file = kiln_in_env("KILN_OFF_FILE");

    bool is_disabled = false;

    kiln_in_env_flag("OTEL_SDK_DISABLED", &is_disabled);
    is_enabled = !is_disabled;
    kiln_in_env_flag("KILN_ENABLED", &is_enabled);
    snprintf(off_file, sizeof(off_file), "%s", file ? file : "/run/kiln/off");
}

bool kiln_in_is_forbidden(void)
{
    return !is_enabled || access(off_file, F_OK) == 0;
}
