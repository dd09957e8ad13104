/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the library by its interface, into the folder that is its argument; pauses, goes on,
 * stops. Also built with libkiln.so, with libkiln.a and with a sanitizer, by the test.
 */
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak kiln_start
#pragma weak kiln_stop
#pragma weak kiln_flush
#pragma weak kiln_set_enabled
#pragma weak kiln_is_enabled
#pragma weak kiln_label_set
#pragma weak kiln_label_clear

/* Said by the callers, behind the call, so that they have frames. */
static volatile unsigned calls;

__attribute__((noinline)) static void allocate(void)
{
    for (unsigned i = 0; i < 2048; i++) {
        void *volatile block = malloc(64 << 10);

        memset(block, 1, 16);
        free(block);
    }
}

__attribute__((noinline)) static void allocates_at_first(void)
{
    allocate();
    calls++;
}

__attribute__((noinline)) static void allocates_in_a_pause(void)
{
    allocate();
    calls++;
}

__attribute__((noinline)) static void allocates_with_a_label(void)
{
    kiln_label_set("order", "large");
    allocate();
    kiln_label_clear(NULL);
}

int main(int argc, char **argv)
{
    struct kiln_options options = {.service_name = "asks",
                                   .out_dir = argc > 1 ? argv[1] : NULL,
                                   .alloc_bytes = 64 << 10,
                                   .profiles = KILN_PROFILE_ALLOC,
                                   .export_interval_ms = 3600000};
    int r = kiln_start(&options);

    printf("start %d, again %d, enabled %d\n", r, kiln_start(&options), kiln_is_enabled());
    allocates_at_first();
    kiln_set_enabled(false);
    allocates_in_a_pause();
    kiln_set_enabled(true);
    allocates_with_a_label();
    printf("flush %d\n", kiln_flush(10000));
    kiln_stop();
    allocates_in_a_pause();
    return 0;
}
