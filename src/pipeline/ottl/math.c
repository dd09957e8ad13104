/* SPDX-License-Identifier: Apache-2.0 */
/* + - * / of numbers: whole ones stay whole and wrap around, as Go has it. */
#include "pipeline/ottl/ottl_int.h"

static int of_whole(struct kiln_ottl_run *run, char sign, int64_t a, int64_t b, int64_t *ret)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;

    if (sign == '/' && b == 0)
        return kiln_ottl_fail(run, KILN_E_RANGE, "a number is divided by zero");
    switch (sign) {
    case '+':
        *ret = (int64_t)(x + y);
        return 0;
    case '-':
        *ret = (int64_t)(x - y);
        return 0;
    case '*':
        *ret = (int64_t)(x * y);
        return 0;
    default:
        *ret = b == -1 ? (int64_t)(0 - x) : a / b;
        return 0;
    }
}

static int of_doubles(struct kiln_ottl_run *run, char sign, double a, double b, double *ret)
{
    if (sign == '/' && b == 0)
        return kiln_ottl_fail(run, KILN_E_RANGE, "a number is divided by zero");
    *ret = sign == '+' ? a + b : sign == '-' ? a - b : sign == '*' ? a * b : a / b;
    return 0;
}

static bool number(const struct kiln_ottl_value *value, double *ret)
{
    *ret = value->kind == KILN_OTTL_INT ? (double)value->i : value->d;
    return value->kind == KILN_OTTL_INT || value->kind == KILN_OTTL_DOUBLE;
}

int kiln_ottl_calculate(struct kiln_ottl_run *run, const struct kiln_ottl_node *node,
                        struct kiln_ottl_value *ret)
{
    struct kiln_ottl_value a, b = {0};
    double x, y;
    int r = kiln_ottl_eval(run, node->args[0], &a);

    if (r == 0)
        r = kiln_ottl_eval(run, node->args[1], &b);
    if (r < 0)
        return r;
    if (!number(&a, &x) || !number(&b, &y))
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "only numbers can be calculated with");
    *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_INT};
    if (a.kind == KILN_OTTL_INT && b.kind == KILN_OTTL_INT)
        return of_whole(run, node->sign, a.i, b.i, &ret->i);
    ret->kind = KILN_OTTL_DOUBLE;
    return of_doubles(run, node->sign, x, y, &ret->d);
}
