/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that burn, each its part of what all processors give in so many seconds; a second
 * argument says how many there are (4). */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "burn.h"

static uint64_t each_ns;

KEPT void burn_in_thread(void)
{
    spin(TURN);
}

KEPT void *thread_main(void *context)
{
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < each_ns)
        burn_in_thread();
    return context;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 4;
    pthread_t *threads = calloc((size_t)n, sizeof(*threads));
    pthread_attr_t small;
    each_ns = span_ns(argc, argv) * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) / (uint64_t)n;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < n; i++) {
        char name[16];
        if (pthread_create(&threads[i], &small, thread_main, NULL) != 0)
            return 1;
        snprintf(name, sizeof(name), "burner-%d", i);
        pthread_setname_np(threads[i], name);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return 0;
}
