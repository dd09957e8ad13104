/* SPDX-License-Identifier: Apache-2.0 */
/* How far files were read, as a collector left it: what is understood is written and read alike. */
#include <stdint.h>

#include "base/buf.h"
#include "collector/receivers/offsets.h"
#include "fuzz.h"

static void write_again(const struct kiln_files *files, struct kiln_buf *out)
{
    kiln_buf_init(out, 1 << 20);
    kiln_offsets_write(files, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_files files, again;
    struct kiln_buf first, second;

    if (kiln_files_init(&files, &(struct kiln_files_opts){0}, NULL) < 0)
        return 0;
    if (kiln_offsets_read(&files, (struct kiln_str){(const char *)data, size}) == 0 &&
        kiln_files_init(&again, &(struct kiln_files_opts){0}, NULL) == 0) {
        write_again(&files, &first);
        FUZZ_CHECK(files.seen->n <= KILN_FILES_MAX && !first.error);
        (void)!kiln_offsets_read(&again, kiln_buf_str(&first));
        write_again(&again, &second);
        FUZZ_CHECK(first.len == second.len && again.seen->n == files.seen->n);
        kiln_buf_done(&first);
        kiln_buf_done(&second);
        kiln_files_done(&again);
    }
    kiln_files_done(&files);
    return 0;
}
