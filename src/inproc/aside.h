/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aside - whether this process is better left alone.
 *
 * Threads: at the start.
 */
#ifndef KILN_INPROC_ASIDE_H
#define KILN_INPROC_ASIDE_H

#include <stdbool.h>

/* Why, as the end of a sentence; NULL: there is no reason.  KILN_FORCE=1 leaves only privileges. */
const char *kiln_in_aside(void);

/* Whether the process may not be told anything by whoever started it: a setuid program. */
bool kiln_in_is_secure(void);

/*
 * The operator's switch: KILN_ENABLED=0, or a file, /run/kiln/off or $KILN_OFF_FILE.  Variables are
 * read once, because the program may change them at any time; whether the file is there may be
 * asked from any thread.
 */
void kiln_in_switch_read(void);
bool kiln_in_is_forbidden(void);

#endif /* KILN_INPROC_ASIDE_H */
