/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/pprof/args.h"
#include "base/params.h"

void kiln_in_args_parse(struct kiln_str query, struct kiln_in_args *ret)
{
    struct kiln_in_args args = {0};
    struct kiln_params params;
    bool has_debug = false;

    kiln_params_init(&params, query);
    while (kiln_params_next(&params) > 0) {
        if (kiln_str_eq(params.name, KILN_STR("seconds")) && !args.has_seconds) {
            args.has_seconds = params.value.len > 0;
            if (kiln_str_parse_i64(params.value, &args.seconds) < 0 || args.seconds < 0)
                args.seconds = 0;
        } else if (kiln_str_eq(params.name, KILN_STR("debug")) && !has_debug) {
            has_debug = true;
            if (kiln_str_parse_i64(params.value, &args.debug) < 0)
                args.debug = 0;
        }
    }
    kiln_params_done(&params);
    *ret = args;
}
