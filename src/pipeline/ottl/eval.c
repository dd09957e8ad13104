/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions and values. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "pipeline/ottl/ottl_int.h"

int kiln_ottl_fail(struct kiln_ottl_run *run, int code, const char *fmt, ...)
{
    char text[sizeof(run->err->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    run->code = code;
    return kiln_err_set(run->err, code, NULL, "%s", text);
}

int kiln_ottl_make(struct kiln_ottl_run *run, struct kiln_str text, struct kiln_ottl_value *ret)
{
    if (text.len > KILN_OTTL_MADE_MAX)
        return kiln_ottl_fail(run, KILN_E_LIMIT, "a text that is made has at most 64 KiB");
    ret->kind = KILN_OTTL_TEXT;
    ret->text = kiln_arena_copy(&run->made, text);
    return ret->text.ptr ? 0 : kiln_ottl_fail(run, -ENOMEM, "%s", kiln_err_text(-ENOMEM));
}

int kiln_ottl_eval_text(struct kiln_ottl_run *run, const struct kiln_ottl_node *node,
                        struct kiln_str *ret)
{
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, node, &value);

    if (r == 0 && value.kind != KILN_OTTL_TEXT)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a text is needed, this is something else");
    if (r == 0)
        *ret = value.text;
    return r;
}

/* ---- comparing ---- */

static bool is_number(const struct kiln_ottl_value *v)
{
    return v->kind == KILN_OTTL_INT || v->kind == KILN_OTTL_DOUBLE;
}

static int order(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* Below, equal, above; 2: they cannot be compared. */
static int compare(const struct kiln_ottl_value *a, const struct kiln_ottl_value *b)
{
    if (a->kind == KILN_OTTL_INT && b->kind == KILN_OTTL_INT)
        return a->i < b->i ? -1 : a->i > b->i;
    if (is_number(a) && is_number(b)) {
        double x = a->kind == KILN_OTTL_INT ? (double)a->i : a->d;
        double y = b->kind == KILN_OTTL_INT ? (double)b->i : b->d;

        return x != x || y != y ? 2 : order(x, y);
    }
    if (a->kind != b->kind)
        return 2;
    switch (a->kind) {
    case KILN_OTTL_NIL:
        return 0;
    case KILN_OTTL_BOOL:
        return a->flag - b->flag;
    case KILN_OTTL_TEXT:
    case KILN_OTTL_BYTES:
        return kiln_str_cmp(a->text, b->text) < 0 ? -1 : kiln_str_cmp(a->text, b->text) > 0;
    case KILN_OTTL_LIST:
    case KILN_OTTL_MAP:
        /* Equal lists of a batch are one. */
        return a->nested.n == b->nested.n && a->nested.bits == b->nested.bits ? 0 : 2;
    case KILN_OTTL_SET:
        return a->set == b->set ? 0 : 2;
    case KILN_OTTL_MOMENT:
        return a->i < b->i ? -1 : a->i > b->i;
    case KILN_OTTL_TYPE:
        return a->type.type == b->type.type && a->type.unit == b->type.unit ? 0 : 2;
    default:
        return 2;
    }
}

static bool holds(enum kiln_ottl_op op, int order)
{
    bool ordered = order != 2;

    switch (op) {
    case KILN_OTTL_EQ:
        return order == 0;
    case KILN_OTTL_NE:
        return order != 0;
    case KILN_OTTL_LT:
        return ordered && order < 0;
    case KILN_OTTL_LE:
        return ordered && order <= 0;
    case KILN_OTTL_GT:
        return ordered && order > 0;
    default:
        return ordered && order >= 0;
    }
}

static int eval_comparison(struct kiln_ottl_run *run, const struct kiln_ottl_node *node,
                           struct kiln_ottl_value *ret)
{
    struct kiln_ottl_value a, b;
    int r = kiln_ottl_eval(run, node->args[0], &a);

    if (r == 0)
        r = kiln_ottl_eval(run, node->args[1], &b);
    if (r < 0)
        return r;
    *ret =
        (struct kiln_ottl_value){.kind = KILN_OTTL_BOOL, .flag = holds(node->op, compare(&a, &b))};
    return 0;
}

/* ---- and, or, not ---- */

static int eval_truth(struct kiln_ottl_run *run, const struct kiln_ottl_node *node, bool *ret)
{
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, node, &value);

    if (r < 0)
        return r;
    if (value.kind != KILN_OTTL_BOOL)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a condition is neither true nor false");
    *ret = value.flag;
    return 0;
}

static int eval_logic(struct kiln_ottl_run *run, const struct kiln_ottl_node *node,
                      struct kiln_ottl_value *ret)
{
    bool flag;
    int r = eval_truth(run, node->args[0], &flag);

    if (r == 0 && node->kind == KILN_OTTL_NOT)
        flag = !flag;
    else if (r == 0 && flag == (node->kind == KILN_OTTL_AND))
        r = eval_truth(run, node->args[1], &flag);
    *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_BOOL, .flag = r == 0 && flag};
    return r;
}

int kiln_ottl_eval(struct kiln_ottl_run *run, const struct kiln_ottl_node *node,
                   struct kiln_ottl_value *ret)
{
    switch (node->kind) {
    case KILN_OTTL_OR:
    case KILN_OTTL_AND:
    case KILN_OTTL_NOT:
        return eval_logic(run, node, ret);
    case KILN_OTTL_COMPARE:
        return eval_comparison(run, node, ret);
    case KILN_OTTL_LITERAL:
        *ret = node->value;
        return 0;
    case KILN_OTTL_PATH:
        return kiln_ottl_path_get(run, &node->path, ret);
    case KILN_OTTL_CALL:
        return node->function->convert(run, node, ret);
    case KILN_OTTL_MATH:
        return kiln_ottl_calculate(run, node, ret);
    default:
        return kiln_ottl_list(run, node, ret);
    }
}

/* ---- from outside ---- */

static void run_begin(struct kiln_ottl_run *run)
{
    run->budget.limit = 4u << 20;
    kiln_arena_init(&run->made, &run->budget);
}

static int eval_condition(struct kiln_ottl_run *run)
{
    bool flag = true;
    int r = run->ottl->condition ? eval_truth(run, run->ottl->condition, &flag) : 0;

    return r < 0 ? r : flag;
}

int kiln_ottl_holds(struct kiln_ottl *ottl, const struct kiln_ottl_item *item, struct kiln_err *err)
{
    struct kiln_ottl_run run = {.ottl = ottl, .item = item, .err = err};
    int r;

    run_begin(&run);
    r = eval_condition(&run);
    kiln_arena_done(&run.made);
    return r;
}

int kiln_ottl_run(struct kiln_ottl *ottl, const struct kiln_ottl_item *item, struct kiln_err *err)
{
    struct kiln_ottl_run run = {.ottl = ottl, .item = item, .err = err};
    int r;

    run_begin(&run);
    r = eval_condition(&run);
    if (r > 0)
        r = ottl->edit->function->edit(&run, ottl->edit);
    kiln_arena_done(&run.made);
    return r;
}
