/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_own - numbers of the fields that clients know only by their JSON names.
 *
 * Threads: constant.
 */
#ifndef KILN_API_PYROSCOPE_OWN_H
#define KILN_API_PYROSCOPE_OWN_H

enum kiln_pyro_own {
    KILN_OWN_NAME = 1,
    KILN_OWN_SELF,
    KILN_OWN_TOTAL,
    KILN_OWN_LEFT_SELF,
    KILN_OWN_LEFT_TOTAL,
    KILN_OWN_RIGHT_SELF,
    KILN_OWN_RIGHT_TOTAL,
    KILN_OWN_TRUNCATED,
    KILN_OWN_LIST,
    KILN_OWN_CALLERS,
    KILN_OWN_CALLEES,
    KILN_OWN_FUNCTIONS = 60001,
    KILN_OWN_SANDWICH,
};

#endif /* KILN_API_PYROSCOPE_OWN_H */
