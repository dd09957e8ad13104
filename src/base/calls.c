/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter is a program of classic BPF over struct seccomp_data, which only jumps forward: is it
 * this architecture; each rule (five instructions: is it the call, its argument, the test, refuse,
 * go on); each call of the list (one comparison, which jumps to the last instruction); two answers.
 */
#include "base/calls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

enum { RULE_STEPS = 5, OTHER_STEPS = 8 };

#define LOAD_AT(offset) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define LOAD(member)    LOAD_AT(offsetof(struct seccomp_data, member))
#define IF(test, value, yes, no)                                                                   \
    (struct sock_filter)                                                                           \
        BPF_JUMP((uint16_t)(BPF_JMP | BPF_K | (test)), (uint32_t)(value), (yes), (no))
#define RETURN(value) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (value))

static uint16_t put_head(struct sock_filter *program)
{
    uint16_t at = 0;

    program[at++] = LOAD(arch);
    program[at++] = IF(BPF_JEQ, THIS_ARCH, 1, 0);
    program[at++] = RETURN(SECCOMP_RET_KILL_PROCESS);
    program[at++] = LOAD(nr);
#if defined(__x86_64__)
    /* Calls of the x32 kind have other numbers. */
    program[at++] = IF(BPF_JGE, 0x40000000, 0, 1);
    program[at++] = RETURN(SECCOMP_RET_KILL_PROCESS);
#endif
    return at;
}

static uint16_t put_rule(struct sock_filter *program, uint16_t at,
                         const struct kiln_call_rule *rule, uint32_t refusal)
{
    const uint8_t passes = rule->test == KILN_CALL_IF_IS; /* where the test holds */

    program[at++] = IF(BPF_JEQ, rule->call, 0, 4);
    program[at++] = LOAD_AT(offsetof(struct seccomp_data, args) + (size_t)8 * rule->argument);
    program[at++] = IF(rule->test == KILN_CALL_IF_NONE ? BPF_JSET : BPF_JEQ, rule->value, passes,
                       (uint8_t)!passes);
    program[at++] = RETURN(refusal);
    program[at++] =
        rule->test == KILN_CALL_UNLESS_IS ? LOAD(nr) : RETURN((uint32_t)SECCOMP_RET_ALLOW);
    return at;
}

int kiln_calls_confine(const struct kiln_call_filter *filter)
{
    struct sock_filter program[OTHER_STEPS + RULE_STEPS * KILN_CALL_RULES_MAX + KILN_CALLS_MAX];
    struct sock_fprog all = {.filter = program};
    const uint32_t refusal = filter->refused_errno
                                 ? SECCOMP_RET_ERRNO | (uint32_t)filter->refused_errno
                                 : SECCOMP_RET_KILL_PROCESS;
    uint16_t at = put_head(program);

    if (filter->n_calls > KILN_CALLS_MAX || filter->n_rules > KILN_CALL_RULES_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < filter->n_rules; i++)
        at = put_rule(program, at, filter->rules + i, refusal);
    for (uint32_t i = 0; i < filter->n_calls; i++)
        program[at++] = IF(BPF_JEQ, filter->calls[i], (uint8_t)(filter->n_calls - i), 0);
    program[at++] = RETURN(filter->all_but ? SECCOMP_RET_ALLOW : refusal);
    program[at++] = RETURN(filter->all_but ? refusal : SECCOMP_RET_ALLOW);
    all.len = at;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                filter->all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0, &all) != 0)
        return -errno;
    return 0;
}
