/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/diff: two questions on one leash, laid over each other.  A deployment that a side
 * names becomes a selector and a window; a version a selector alone.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "api/native_deployments.h"
#include "codec/svg.h"
#include "core/flame_tree.h"

static const char *const formats[] = {"json", "flamegraph", "top", "svg", NULL};
enum { FORMAT_JSON, FORMAT_FLAMEGRAPH, FORMAT_TOP, FORMAT_SVG };
/* What one side has folded and the other has not looks like a change: both are folded late. */
enum { SIDE_NODES = 65536 };

/* ---- deployments ---- */

/* The service that the common selector names, if it names one. */
static int named_service(struct kiln_native_call *call, struct kiln_str *ret)
{
    struct kiln_selector selector = {0};
    int r = kiln_selector_add(&selector, call->args.query, &call->err);

    *ret = KILN_STR("");
    if (r < 0)
        call->param = "query";
    for (uint32_t i = 0; r == 0 && i < selector.n_matchers; i++) {
        const struct kiln_matcher *m = &selector.matchers[i];

        if (m->op == KILN_MATCH_EQ && (kiln_str_eq(m->name, KILN_STR("service_name")) ||
                                       kiln_str_eq(m->name, KILN_STR("service.name"))))
            *ret = kiln_arena_copy(&call->arena, m->value);
    }
    kiln_selector_done(&selector);
    return r == 0 && !ret->ptr ? -ENOMEM : r;
}

/* Its labels, and its time, cut to what was asked for. */
static int set_deployment(struct kiln_native_call *call,
                          const struct kiln_deployment_choice *choice,
                          struct kiln_native_side *side)
{
    const struct kiln_native_args *args = &call->args;
    uint64_t start = choice->window.start_ns, end = choice->window.end_ns;

    if (end > call->now_ns)
        end = call->now_ns;
    if (args->said & KILN_NATIVE_BIT(FROM) && args->from_ns > start)
        start = args->from_ns;
    if (args->said & KILN_NATIVE_BIT(UNTIL) && args->until_ns < end)
        end = args->until_ns;
    side->from_ns = side->from_ns ? side->from_ns : start;
    side->until_ns = side->until_ns ? side->until_ns : end;
    side->selector = kiln_arena_copy(&call->arena, choice->selector);
    side->deployment = kiln_arena_copy(&call->arena, choice->deployment->id);
    return side->selector.ptr && side->deployment.ptr ? 0 : -ENOMEM;
}

/* The label that has versions is known where a deployment has it; else it is service.version. */
static int set_version(struct kiln_native_call *call, struct kiln_deployments *list,
                       struct kiln_str service, struct kiln_native_side *side)
{
    struct kiln_deployment_choice choice;
    struct kiln_buf text;

    kiln_buf_init(&text, KILN_SELECTOR_BYTES_MAX);
    if (kiln_deployments_choose(list, service, side->version, &choice, NULL) == 0 &&
        choice.deployment->label.len) {
        kiln_buf_add_str(&text, choice.selector);
    } else {
        kiln_buf_puts(&text, "{service.version=");
        kiln_selector_quote(side->version, &text);
        kiln_buf_putc(&text, '}');
    }
    side->selector =
        text.error ? KILN_STR_NONE : kiln_arena_copy(&call->arena, kiln_buf_str(&text));
    kiln_buf_done(&text);
    return side->selector.ptr ? 0 : -ENOMEM;
}

static int resolve_side(struct kiln_native_call *call, struct kiln_deployments *list,
                        struct kiln_native_side *side)
{
    const char *param = side == &call->args.left ? "left_deployment" : "right_deployment";
    struct kiln_deployment_choice choice;
    struct kiln_str service;
    int r = named_service(call, &service);

    if (r < 0 || !(side->deployment.len || side->version.len))
        return r;
    if (side->deployment.len && side->version.len)
        return kiln_native_refuse(call, param, "say a version or a deployment, not both");
    if (side->version.len)
        return set_version(call, list, service, side);
    r = kiln_deployments_choose(list, service, side->deployment, &choice, &call->err);
    if (r == 0)
        return set_deployment(call, &choice, side);
    call->param = param;
    return r == KILN_E_NOMATCH ? -ENOENT : r == KILN_E_AMBIGUOUS ? -EINVAL : r;
}

static int resolve(struct kiln_native_call *call)
{
    struct kiln_native_side *left = &call->args.left, *right = &call->args.right;
    struct kiln_deployments *list;
    int r;

    if (!left->deployment.len && !left->version.len && !right->deployment.len &&
        !right->version.len)
        return 0;
    r = kiln_native_deployments(call, &list);
    if (r < 0)
        return r;
    r = resolve_side(call, list, left);
    if (r == 0)
        r = resolve_side(call, list, right);
    kiln_deployments_free(list);
    return r;
}

/* ---- what is compared ---- */

struct comparison {
    struct kiln_ask *left_ask, *right_ask;
    struct kiln_merged *left, *right;
    struct kiln_flame_diff *diff;
    enum kiln_normalize normalized;
    double scale;
};

static enum kiln_normalize chosen(struct kiln_native_call *call, int *ret_code)
{
    static const char *const words[] = {"time", "total", "none", NULL};
    int r = 0;

    if (call->args.normalize.len)
        r = kiln_native_choose(call, "normalize", call->args.normalize, words);
    *ret_code = r < 0 ? r : 0;
    return r == 1 ? KILN_NORMALIZE_TOTAL : r == 2 ? KILN_NORMALIZE_NONE : KILN_NORMALIZE_TIME;
}

static void normalize(struct kiln_native_call *call, struct comparison *c,
                      enum kiln_normalize wanted)
{
    double left = (double)c->left->basis.covered_ns, right = (double)c->right->basis.covered_ns;

    c->normalized = KILN_NORMALIZE_NONE;
    c->scale = 1;
    if (wanted == KILN_NORMALIZE_NONE)
        return;
    if (wanted == KILN_NORMALIZE_TIME && c->right_ask->type.level)
        return; /* a level is what it is, however long one looks */
    if (wanted == KILN_NORMALIZE_TOTAL) {
        left = (double)c->left->total;
        right = (double)c->right->total;
    }
    if (left > 0 && right > 0) {
        c->normalized = wanted;
        c->scale = right / left;
        return;
    }
    kiln_native_note(call, "not_normalized", "%s of one side is not known: left is as it is",
                     wanted == KILN_NORMALIZE_TIME ? "the time covered" : "the total");
}

static int compare(struct kiln_native_call *call, struct comparison *c)
{
    size_t bytes = (c->left->flame->budget.used + c->right->flame->budget.used) * 3 + (1 << 20);
    struct kiln_flame_diff_opts opts = {
        .scale = c->scale,
        .against_total = c->normalized == KILN_NORMALIZE_TOTAL,
        .count_left = c->left->basis.count,
        .count_right = c->right->basis.count,
        .nodes_max = call->args.nodes,
        .memory_bytes = bytes,
    };
    int r = kiln_native_room(call, c->left_ask, bytes);

    return r < 0
               ? r
               : kiln_flame_diff_new(c->left->flame, c->right->flame, &opts, &c->diff, &call->err);
}

/* ---- JSON ---- */

static void put_side(struct kiln_native_call *call, const char *name, const struct kiln_ask *ask,
                     const struct kiln_merged *merged)
{
    const struct kiln_native_side *side =
        strcmp(name, "left") == 0 ? &call->args.left : &call->args.right;

    kiln_json_put_name(&call->w, name);
    kiln_json_put_object(&call->w);
    kiln_native_put_selector(call, "query", ask);
    kiln_native_put_range(call, side->from_ns ? side->from_ns : call->args.from_ns,
                          side->until_ns ? side->until_ns : call->args.until_ns);
    if (side->deployment.len)
        kiln_native_put_text(call, "deployment", side->deployment);
    kiln_native_put_i64(call, "total", merged->total);
    kiln_native_put_basis(call, &merged->basis);
    kiln_json_end_object(&call->w);
    kiln_native_note_basis(call, &merged->basis);
}

static int put_tree(struct kiln_native_call *call, const struct kiln_flame_diff *diff)
{
    const struct kiln_flame_diff_node *nodes = diff->nodes;
    const struct kiln_native_shape shape = {&nodes->name, &nodes->depth, sizeof(*nodes),
                                            diff->n_nodes};
    struct kiln_native_names names;
    int r = kiln_native_names_init(&names, diff->n_names);

    if (r < 0)
        return kiln_err_set(&call->err, r, NULL, "out of memory");
    kiln_json_put_name(&call->w, "flamegraph");
    kiln_json_put_object(&call->w);
    kiln_native_put_shape(call, &shape, &names);
    kiln_native_put_values(call, "left_self", &nodes->self.left, &shape);
    kiln_native_put_values(call, "left_total", &nodes->total.left, &shape);
    kiln_native_put_values(call, "right_self", &nodes->self.right, &shape);
    kiln_native_put_values(call, "right_total", &nodes->total.right, &shape);
    kiln_native_put_names(call, &names, diff->names);
    kiln_native_put_other(call, diff->other, &names);
    kiln_json_end_object(&call->w);
    if (diff->other)
        kiln_native_note(call, "tree_folded",
                         "the tree shows the %u largest nodes; the rest is \"other\" below its "
                         "callers (nodes=N shows more)",
                         diff->n_nodes);
    kiln_native_names_done(&names);
    return 0;
}

static void put_row(struct kiln_native_call *call, const struct kiln_flame_diff *diff,
                    const struct kiln_flame_diff_function *f)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_function(call, &diff->names[f->name]);
    kiln_native_put_i64(call, "left_self", f->self.left);
    kiln_native_put_i64(call, "right_self", f->self.right);
    kiln_native_put_i64(call, "left_total", f->total.left);
    kiln_native_put_i64(call, "right_total", f->total.right);
    kiln_native_put_number(call, "self_change", f->self_change);
    kiln_native_put_number(call, "self_noise", f->self_noise);
    kiln_native_put_flag(call, "self_is_noise", f->self_is_noise);
    kiln_native_put_number(call, "total_change", f->total_change);
    kiln_native_put_number(call, "total_noise", f->total_noise);
    kiln_native_put_flag(call, "total_is_noise", f->total_is_noise);
    kiln_json_end_object(&call->w);
}

static void put_table(struct kiln_native_call *call, const struct kiln_flame_diff *diff,
                      int64_t error_bound)
{
    uint32_t n = kiln_native_begin_top(call, diff->n_functions, call->args.limit, error_bound);

    for (uint32_t i = 0; i < n; i++)
        put_row(call, diff, &diff->functions[i]);
    kiln_native_end_top(call);
}

static int put_json(struct kiln_native_call *call, const struct comparison *c)
{
    static const char *const words[] = {[KILN_NORMALIZE_TIME] = "time",
                                        [KILN_NORMALIZE_TOTAL] = "total",
                                        [KILN_NORMALIZE_NONE] = "none"};
    const struct kiln_flame *left = c->left->flame, *right = c->right->flame;
    int64_t functions = left->functions_bound > right->functions_bound ? left->functions_bound
                                                                       : right->functions_bound;
    const struct kiln_flame_diff *diff = c->diff;
    int r = 0;

    kiln_json_put_object(&call->w);
    kiln_native_put_type(call, &c->right_ask->type);
    put_side(call, "left", c->left_ask, c->left);
    put_side(call, "right", c->right_ask, c->right);
    kiln_native_put_text(call, "normalized", kiln_str_of(words[c->normalized]));
    kiln_native_put_number(call, "scale", diff->scale);
    kiln_native_put_number(call, "change", diff->change);
    kiln_native_put_number(call, "noise", diff->noise);
    kiln_native_put_flag(call, "is_noise", fabs(diff->change) <= diff->noise);
    if (diff->nodes)
        r = put_tree(call, diff);
    if (diff->functions)
        put_table(call, diff, functions);
    if (diff->nodes)
        kiln_native_note_bounds(call,
                                fmax(kiln_flame_percent(left, left->error_bound),
                                     kiln_flame_percent(right, right->error_bound)),
                                0);
    if (diff->functions)
        kiln_native_note_bounds(call, 0,
                                fmax(kiln_flame_percent(left, left->functions_bound),
                                     kiln_flame_percent(right, right->functions_bound)));
    kiln_native_put_notes(call);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return r;
}

/* ---- a picture ---- */

static int draw_tree(struct kiln_native_call *call, const struct comparison *c,
                     const struct kiln_view *view, const struct kiln_flame_facts *facts)
{
    const struct kiln_tree_opts tree_opts = {.order = KILN_TREE_BY_NAME};
    struct kiln_svg_opts opts = {.normalized = c->normalized};
    struct kiln_tree *tree;
    struct kiln_buf title;
    int r = kiln_flame_diff_tree_new(c->diff, view, facts, &tree_opts, &tree, &call->err);

    if (r < 0)
        return r;
    kiln_buf_init(&title, 4096);
    kiln_native_title(c->right_ask, &title);
    if (!title.error && title.len > 1)
        opts.title = title.ptr;
    r = kiln_svg_encode(view, tree, &opts, &call->body, &call->err);
    kiln_buf_done(&title);
    kiln_tree_free(tree);
    return r;
}

static int draw(struct kiln_native_call *call, const struct comparison *c)
{
    const struct kiln_flame_facts facts = {
        .type = c->right_ask->type,
        .count = c->right->basis.count,
        .count_left = c->left->basis.count,
        .time_ns = c->right->basis.min_ns,
        .duration_ns = c->right->basis.covered_ns,
        .n_profiles = (uint32_t)c->right->basis.n_profiles,
    };
    struct kiln_view *view;
    int r = kiln_flame_diff_view_new(c->diff, &facts, &view, &call->err);

    if (r < 0)
        return r;
    r = draw_tree(call, c, view, &facts);
    kiln_view_free(view);
    if (r == 0)
        kiln_native_is_file(call, KILN_FORMAT_SVG);
    return r;
}

/* ---- all of it ---- */

static int answer(struct kiln_native_call *call, struct comparison *c, int format,
                  enum kiln_normalize wanted)
{
    uint32_t nodes = call->args.nodes > SIDE_NODES ? call->args.nodes : SIDE_NODES;
    const struct kiln_merge_wants wants = {
        .nodes_max = format == FORMAT_TOP ? 0 : nodes,
        .functions = format == FORMAT_JSON || format == FORMAT_TOP,
        .exact = call->args.exact,
    };
    int r = kiln_ask_merge(c->left_ask, &wants, &c->left, &call->err);

    if (r == 0)
        r = kiln_ask_merge(c->right_ask, &wants, &c->right, &call->err);
    if (r < 0)
        return r;
    normalize(call, c, wanted);
    r = compare(call, c);
    if (r < 0)
        return r;
    return format == FORMAT_SVG ? draw(call, c) : put_json(call, c);
}

static int open_asks(struct kiln_native_call *call, struct comparison *c)
{
    const struct kiln_native_wish left = {.side = &call->args.left};
    const struct kiln_native_wish right = {.side = &call->args.right};
    int r = kiln_native_ask(call, &left, &c->left_ask);

    if (r == 0)
        r = kiln_native_ask(call, &right, &c->right_ask);
    if (r < 0)
        return r;
    if (!kiln_type_equal(&c->left_ask->type, &c->right_ask->type))
        return kiln_native_refuse(call, "right_query", "the sides are of different types");
    kiln_native_share(c->left_ask, c->right_ask);
    return 0;
}

int kiln_native_run_diff(struct kiln_native_call *call)
{
    struct comparison c = {0};
    enum kiln_normalize wanted;
    int format = 0, r;

    wanted = chosen(call, &r);
    if (r == 0 && call->args.format.len)
        format = kiln_native_choose(call, "format", call->args.format, formats);
    if (r == 0)
        r = format < 0 ? format : resolve(call);
    if (r == 0)
        r = open_asks(call, &c);
    if (r == 0)
        r = answer(call, &c, format, wanted);
    kiln_flame_diff_free(c.diff);
    kiln_merged_free(c.left);
    kiln_merged_free(c.right);
    kiln_native_close(call, c.right_ask);
    kiln_native_close(call, c.left_ask);
    return r;
}
