/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rules.h"

int kiln_rules_read(const struct kiln_server_config *config, struct kiln_redact **ret_rules,
                    struct kiln_err *err)
{
    const char *path = config->set.redact ? config->set.redact : config->file_name;
    struct kiln_config *file;
    int r;

    *ret_rules = NULL;
    if (!path)
        return 0;
    r = kiln_config_load_plain(path, &file, err);
    if (r == 0) {
        const struct kiln_node *rules = kiln_config_root(file);

        if (!config->set.redact)
            rules = kiln_node_get(rules, "redaction");
        if (rules)
            r = kiln_redact_read(rules, ret_rules, err);
        kiln_config_free(file);
    }
    return r < 0 ? kiln_err_in_file(err, r, path) : 0;
}
