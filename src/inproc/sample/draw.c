/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/draw.h"

#include "inproc/sample/rate.h"
#include "inproc/thread/thread.h"

bool kiln_in_draw(struct kiln_in_thread *thread, struct kiln_in_rate *rate, uint64_t size,
                  uint64_t now_ns, struct kiln_in_drawn *ret)
{
    uint64_t mean = kiln_in_rate_mean(rate);
    bool is_taken = size > 0 && (double)size >= kiln_in_random_unit(thread) * (double)mean;

    kiln_in_rate_note(rate, is_taken, now_ns);
    ret->count = size > 0 && size < mean ? (double)mean / (double)size : 1;
    ret->value = (double)(size < mean ? mean : size);
    return is_taken;
}
