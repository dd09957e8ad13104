/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/hook/next_thread.h"

#include <dlfcn.h>

#include "test.h"

/* What a program that is linked today gets, whatever the function's history. */
static void *newest(const char *name, const char *version)
{
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

    return found ? found : dlsym(RTLD_NEXT, name);
}

TEST(next_thread, every_function_is_found_before_main)
{
    void *const *pointers = (void *const *)&kiln_in_next_thread;
    unsigned i = 0;

#define X(member, name, version, parameters, arguments)                                            \
    CHECK(pointers[i] == newest(#name, version));                                                  \
    i++;
    KILN_IN_NEXT_THREAD_MAP(X)
#undef X
}

/* Those of 2002 keep conditions in memory of their own, and are still there. */
TEST(next_thread, conditions_are_not_those_of_the_oldest_version)
{
    void *oldest = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.2.5");
    void *ours = *(void **)&kiln_in_next_thread.cond_wait;

    if (!oldest)
        SKIP("this C library has one version alone");
    CHECK(ours != oldest);
    CHECK(ours == dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2"));
}

/* A later version of any other one that differs would be missed without this. */
TEST(next_thread, of_all_others_every_version_is_the_same)
{
    static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.3.2", "GLIBC_2.3.3",
                                           "GLIBC_2.30",  "GLIBC_2.31",  "GLIBC_2.34"};
    void *const *pointers = (void *const *)&kiln_in_next_thread;
    unsigned i = 0;

#define X(member, name, version, parameters, arguments)                                            \
    for (unsigned v = 0;                                                                           \
         (const char *)version == NULL && v < sizeof(versions) / sizeof(versions[0]); v++) {       \
        void *found = dlvsym(RTLD_NEXT, #name, versions[v]);                                       \
                                                                                                   \
        CHECK(!found || found == pointers[i]);                                                     \
    }                                                                                              \
    i++;
    KILN_IN_NEXT_THREAD_MAP(X)
#undef X
}
