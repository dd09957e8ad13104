/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ready.h"

#include <unistd.h>

#include "base/file.h"
#include "base/keeper.h"

void kiln_ready_begin(struct kiln_ready *ready)
{
    kiln_buf_init(&ready->text, 1 << 16);
    kiln_json_out_init(&ready->w, &ready->text, 0);
    kiln_json_put_object(&ready->w);
    kiln_json_put_name(&ready->w, "pid");
    kiln_json_put_u64(&ready->w, (uint64_t)getpid());
}

int kiln_ready_end(struct kiln_ready *ready, const char *path, struct kiln_err *err)
{
    struct kiln_buf *text = &ready->text;
    int r = 0;

    kiln_json_end_object(&ready->w);
    kiln_buf_putc(text, '\n');
    if (text->error)
        r = kiln_err_set(err, text->error, path, "%s", kiln_err_text(text->error));
    else if (path && kiln_keeper_write(path, kiln_buf_str(text)) < 0)
        r = kiln_file_write(path, kiln_buf_str(text), err);
    kiln_buf_done(text);
    return r;
}
