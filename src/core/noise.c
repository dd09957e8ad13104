/* SPDX-License-Identifier: Apache-2.0 */
#include "core/noise.h"

#include <math.h>

#define Z_95 1.959964

static double variance(const struct kiln_noise_side *side, struct kiln_measure m)
{
    double value = fabs(m.value), total = fabs(side->total);
    double weight = side->count > 0 ? total / side->count : 0;
    double result;

    if (m.count > 1)
        result = value * value / m.count;
    else
        result = fmax(weight * weight, value * value);
    if (side->against_total && total > 0 && value < total)
        result *= 1 - value / total;
    else if (side->against_total)
        result = 0;
    return result * side->scale * side->scale;
}

double kiln_noise(const struct kiln_noise_side *a, struct kiln_measure of_a,
                  const struct kiln_noise_side *b, struct kiln_measure of_b)
{
    return Z_95 * sqrt(variance(a, of_a) + variance(b, of_b));
}
