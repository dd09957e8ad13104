/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded below valgrind (tools/torture): PCRE2 interprets patterns, because valgrind reports the
 * machine code that it makes of them as uses of uninitialised values.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

int pcre2_jit_compile(pcre2_code *code, uint32_t options)
{
    (void)code;
    (void)options;
    return PCRE2_ERROR_JIT_BADOPTION;
}
