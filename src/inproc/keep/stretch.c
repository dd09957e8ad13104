/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/keep/stretch.h"

void kiln_in_stretch_note(struct kiln_in_stretch *stretch, bool on, uint64_t now_ns)
{
    if (on == (stretch->on_ns != 0))
        return;
    if (!on)
        stretch->sum_ns += now_ns - stretch->on_ns;
    else if (!stretch->first_ns)
        stretch->first_ns = now_ns;
    stretch->on_ns = on ? now_ns : 0;
}

uint64_t kiln_in_stretch_take(struct kiln_in_stretch *stretch, uint64_t now_ns,
                              uint64_t *ret_ago_ns)
{
    bool on = stretch->on_ns != 0;
    uint64_t sum_ns;

    kiln_in_stretch_note(stretch, false, now_ns);
    sum_ns = stretch->sum_ns;
    *ret_ago_ns = stretch->first_ns ? now_ns - stretch->first_ns : 0;
    *stretch = (struct kiln_in_stretch){0};
    kiln_in_stretch_note(stretch, on, now_ns);
    return sum_ns;
}
