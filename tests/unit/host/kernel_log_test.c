/* SPDX-License-Identifier: Apache-2.0 */
#include "host/kernel_int.h"

#include <errno.h>

#include "base/buf.h"
#include "test.h"

static const char head[] = "libbpf: prog 'kiln_wait': BPF program load failed: Invalid argument\n";
static const char tail[] = "libbpf: prog 'kiln_wait': failed to load: -22\n";

/* As libbpf and the verifier write it. */
static void read_log(struct kiln_load_message *message, const char *lines)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 20);
    kiln_buf_printf(
        &text, "libbpf: prog 'kiln_wait': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n",
        lines);
    kiln_buf_putc(&text, '\0');
    kiln_load_message_read(head, message);
    kiln_load_message_read(text.ptr, message);
    kiln_load_message_read(tail, message);
    kiln_load_message_read("libbpf: failed to load object 'kiln'\n", message);
    kiln_buf_done(&text);
}

TEST(kernel_log, the_reason_is_the_last_line_before_the_statistics)
{
    struct kiln_load_message message = {0};

    read_log(&message, "0: R1=ctx() R10=fp0\n; int kiln_wait()\n1015: (95) exit\n"
                       "At callback return the register R0 has smin=0 should have been in [0, 1]\n"
                       "verification time 1234 usec\nstack depth 0+8\n"
                       "processed 10939 insns (limit 1000000) max_states_per_insn 13\n\n");
    CHECK_STR(kiln_str_of(message.program), "kiln_wait");
    CHECK_STR(kiln_str_of(message.text),
              "At callback return the register R0 has smin=0 should have been in [0, 1]");
}

TEST(kernel_log, without_a_log_the_last_message_is_kept)
{
    struct kiln_load_message message = {0};

    kiln_load_message_read("libbpf: map 'kiln_words': failed to create: -1\n", &message);
    kiln_load_message_read("libbpf: failed to load object 'kiln'\n", &message);
    CHECK_STR(kiln_str_of(message.program), "");
    CHECK_STR(kiln_str_of(message.text), "libbpf: map 'kiln_words': failed to create: -1");
}

TEST(kernel_log, long_and_odd_lines_are_cut)
{
    struct kiln_load_message message = {0};
    char text[600];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    read_log(&message, text);
    CHECK_EQ(strlen(message.text), sizeof(message.text) - 1);
    message = (struct kiln_load_message){0};
    kiln_load_message_read("-- BEGIN PROG LOAD LOG --", &message);
    CHECK_STR(kiln_str_of(message.program), "?");
    CHECK_STR(kiln_str_of(message.text), "");
}

TEST(kernel_log, a_refused_program_is_not_a_wrong_option)
{
    struct kiln_err err = {0};

    CHECK_EQ(kiln_kernel_explain(-EINVAL, KILN_STEP_LOAD, &err), -EOPNOTSUPP);
    CHECK_EQ(err.code, -EOPNOTSUPP);
}
