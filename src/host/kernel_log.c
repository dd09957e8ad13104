/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbpf's messages.  The verifier's log of a program that was refused is one of them:
 *
 *   prog 'kiln_wait': -- BEGIN PROG LOAD LOG --
 *   ...
 *   At callback return the register R0 has smin=0 smax=4294967295 should have been in [0, 1]
 *   processed 10939 insns (limit 1000000) ...
 *   -- END PROG LOAD LOG --
 *
 * Its last line before the statistics is the reason.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "host/kernel_int.h"

static _Thread_local struct kiln_load_message last;

static void keep_text(char *to, size_t size, struct kiln_str text)
{
    snprintf(to, size, "%.*s", (int)(text.len < size ? text.len : size - 1), text.ptr);
}

static bool is_reason(struct kiln_str line)
{
    static const char *const others[] = {"processed ", "verification time ", "stack depth ", "-- "};

    for (size_t i = 0; i < KILN_ARRAY_LEN(others); i++)
        if (kiln_str_starts(line, kiln_str_of(others[i])))
            return false;
    return line.len > 0;
}

void kiln_load_message_read(const char *text, struct kiln_load_message *message)
{
    const char *begin = strstr(text, "-- BEGIN PROG LOAD LOG --");
    struct kiln_str rest = kiln_str_of(begin ? begin : text), line;

    if (!begin) {
        if (!message->program[0] && !strstr(text, "failed to load"))
            keep_text(message->text, sizeof(message->text),
                      kiln_str_trim(kiln_str_cut(&rest, '\n')));
        return;
    }
    if (sscanf(text, "%*[^']'%31[^']'", message->program) != 1)
        snprintf(message->program, sizeof(message->program), "?");
    while (rest.len) {
        line = kiln_str_trim(kiln_str_cut(&rest, '\n'));
        if (is_reason(line))
            keep_text(message->text, sizeof(message->text), line);
    }
}

/* A log has up to 16 MiB. */
static int take_message(enum libbpf_print_level level, const char *format, va_list args)
{
    va_list again;
    char *text;
    int n;

    if (level == LIBBPF_DEBUG)
        return 0;
    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    text = n > 0 ? kiln_malloc((size_t)n + 1) : NULL;
    if (!text)
        return 0;
    vsnprintf(text, (size_t)n + 1, format, args);
    kiln_load_message_read(text, &last);
    kiln_free(text);
    return 0;
}

void kiln_kernel_quiet(void)
{
    libbpf_set_print(take_message);
    last = (struct kiln_load_message){0};
}

const struct kiln_load_message *kiln_kernel_message(void)
{
    return &last;
}
