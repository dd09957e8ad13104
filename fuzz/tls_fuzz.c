/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file in which a variable of threads is looked for.
 */
#include "fuzz.h"
#include "symbol/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_bytes bytes = kiln_bytes_memory(data, size);
    struct kiln_tls_variable variable = {0};
    struct kiln_elf *elf;

    if (kiln_elf_open(&bytes, &elf) < 0)
        return 0;
    if (kiln_tls_find(elf, "otel_thread_ctx_v1", true, &variable) == 0)
        FUZZ_CHECK(variable.kind <= KILN_TLS_DESCRIPTOR);
    kiln_elf_close(elf);
    return 0;
}
