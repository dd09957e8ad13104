/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calendar - dates.  The C library's gmtime_r() reads the local time zone first, from files and
 * into memory that would be the program's: the linker leads our own calls of it here
 * (inproc/hook/own.c).
 *
 * Threads: no state.
 */
#ifndef KILN_INPROC_THREAD_CALENDAR_H
#define KILN_INPROC_THREAD_CALENDAR_H

#include <stdbool.h>
#include <time.h>

/* In UTC, as gmtime_r().  False: there is no such year. */
bool kiln_in_calendar_date(time_t when, struct tm *ret_tm);

#endif /* KILN_INPROC_THREAD_CALENDAR_H */
