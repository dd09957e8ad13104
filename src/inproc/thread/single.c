/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There may be two flags: libc.so has one, which it reads itself, and a program that was linked to
 * the variable has a copy of it, which libraries read; pthread_create() clears both.
 *
 * Privileges: with the flag set, setuid() and its relatives change the calling thread alone.  Our
 * hooks clear it first (inproc/hook/alone.c), but a library that is bound past them, or a script
 * that calls libc's functions by their address, would leave a helper behind as who the process was.
 * So a process that has something to drop keeps the locks, unless it is told otherwise.
 */
#include "inproc/thread/single.h"

#include <dlfcn.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>

/* Versions whose every use of the flag was read (docs/adr/0031). */
enum { MAJOR = 2, MINOR_FIRST = 36, MINOR_LAST = 42 };

/* Since 2.32; of the program, where that has a copy. */
extern char __libc_single_threaded;
#pragma weak __libc_single_threaded

static char *of_libc; /* NULL: helpers count */

/* ---- whether it may be done ---- */

static bool is_known(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    char *end;
    unsigned long major = strtoul(gnu_get_libc_version(), &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

    return major == MAJOR && minor >= MINOR_FIRST && minor <= MINOR_LAST;
#else
    return false; /* elsewhere the C library looks at something else */
#endif
}

static bool has_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data) != 0)
        return true;
    return data[0].permitted || data[1].permitted;
}

static bool has_privileges(void)
{
    uid_t user, effective_user, saved_user;
    gid_t group, effective_group, saved_group;

    if (getresuid(&user, &effective_user, &saved_user) != 0 ||
        getresgid(&group, &effective_group, &saved_group) != 0)
        return true;
    return user != effective_user || user != saved_user || group != effective_group ||
           group != saved_group || has_capabilities();
}

/* By libc's own handle: everybody else finds the program's copy. */
static char *find(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    char *flag = libc ? dlsym(libc, "__libc_single_threaded") : NULL;

    if (libc)
        dlclose(libc);
    return flag;
}

void kiln_in_single_decide(enum kiln_in_single_wish wish)
{
    bool may = wish != KILN_IN_SINGLE_NEVER && &__libc_single_threaded && is_known() &&
               (wish == KILN_IN_SINGLE_ALWAYS || !has_privileges());

    of_libc = may ? find() : NULL;
}

/* ---- helpers ---- */

bool kiln_in_single_begin(void)
{
    return of_libc && *of_libc && __libc_single_threaded;
}

/* Where the making has not cleared both, this is not the flag that we know. */
void kiln_in_single_end(bool was)
{
    if (!was || *of_libc || __libc_single_threaded)
        return;
    *of_libc = 1;
    __libc_single_threaded = 1;
}

void kiln_in_single_give_up(void)
{
    if (!of_libc)
        return;
    *of_libc = 0;
    __libc_single_threaded = 0;
}

#else /* another C library */

void kiln_in_single_decide(enum kiln_in_single_wish wish)
{
    (void)wish;
}

bool kiln_in_single_begin(void)
{
    return false;
}

void kiln_in_single_end(bool was)
{
    (void)was;
}

void kiln_in_single_give_up(void)
{
}
#endif
