/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rules.h"

int kiln_rules_read(const struct kiln_server_config *config, struct kiln_redact **ret_rules,
                    struct kiln_err *err)
{
    static const struct kiln_node none = {.kind = KILN_NODE_LIST};
    const char *path = config->set.redact ? config->set.redact : config->file_name;
    struct kiln_config *file;
    int r = kiln_config_load_plain(path, &file, err);

    if (r == 0) {
        const struct kiln_node *rules = kiln_config_root(file);

        if (!config->set.redact) {
            rules = kiln_node_get(rules, "redaction");
            rules = rules ? rules : &none; /* they were taken out of the file */
        }
        r = kiln_redact_read(rules, ret_rules, err);
        kiln_config_free(file);
    }
    return r < 0 ? kiln_err_in_file(err, r, path) : 0;
}

bool kiln_rules_said(const struct kiln_server_config *config)
{
    return config->set.redact || config->set.redaction;
}
