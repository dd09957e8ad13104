/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says in one sentence what is missing.
 *
 * What a process may do is in its effective capabilities.  Everything else is found out by asking
 * the kernel for the one thing that is needed: its types (BTF), and bpf_loop(), the youngest helper
 * that we call.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/capability.h"
#include "host/grants.h"
#include "host/kernel_int.h"

static int lacks(const char *what, struct kiln_err *err)
{
    return kiln_err_set(
        err, -EPERM, NULL,
        "profiling the host needs %s (run as root; in a container with "
        "--privileged --pid=host; in a unit with AmbientCapabilities=" KILN_GRANT_NAMES ")",
        what);
}

static const char *release(void)
{
    static _Thread_local struct utsname name;
    return uname(&name) == 0 ? name.release : "this kernel";
}

static int probe_features(struct kiln_err *err)
{
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
        return kiln_err_set(err, -EOPNOTSUPP, NULL,
                            "profiling the host needs a kernel that describes its own types "
                            "(/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF), which Linux %s "
                            "does not",
                            release());
    int found = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL);
    if (found == 0)
        return kiln_err_set(err, -ENOSYS, NULL,
                            "profiling the host needs bpf_loop(), which Linux %s does not have: "
                            "6.1 or later will do",
                            release());
    return found == -EPERM ? kiln_kernel_explain(found, KILN_STEP_LOAD, err) : 0;
}

int kiln_kernel_probe(struct kiln_err *err)
{
    uint64_t set = kiln_capabilities();
    const char *first = NULL;
    char both[64];
    for (int i = 0; i < KILN_GRANTS; i++) {
        const struct kiln_grant *grant = &kiln_grants[i];
        if (!grant->needed || kiln_grant_held(grant, set))
            continue;
        snprintf(both, sizeof(both), "%s%s%s", first ? first : "", first ? " and " : "",
                 grant->name);
        if (first)
            return lacks(both, err);
        first = grant->name;
    }
    if (first)
        return lacks(first, err);
    return probe_features(err);
}

static int explain_load(int code, struct kiln_err *err)
{
    const struct kiln_load_message *message = kiln_kernel_message();

    if (message->program[0])
        return kiln_err_set(err, code, NULL,
                            "Linux %s refuses the program %s: %.110s (please report this with the "
                            "version of clang that compiled it)",
                            release(), message->program, message->text);
    return kiln_err_set(err, code, NULL, "loading the host profiler failed on Linux %s: %s%s%s",
                        release(), kiln_err_text(code), message->text[0] ? "; " : "",
                        message->text);
}

int kiln_kernel_explain(int code, enum kiln_step step, struct kiln_err *err)
{
    static const char *const steps[] = {"loading the host profiler", "perf events on processors",
                                        "buffers for events of processes"};
    const struct kiln_refusal *refusal;
    struct kiln_restraints restraints;

    if (code == -ENOSYS)
        return kiln_err_set(err, code, NULL, "Linux %s was built without BPF or perf events",
                            release());
    if (code == -EINVAL)
        code = -EOPNOTSUPP;
    if (kiln_kernel_message()->program[0] && step == KILN_STEP_LOAD)
        return explain_load(code, err);
    if (code == -EPERM || code == -EACCES) {
        kiln_restraints_read(&restraints);
        refusal = kiln_refusal_of(&restraints, step, code);
        return kiln_err_set(err, code, NULL, "the kernel forbids %s: %s (%s)", steps[step],
                            refusal->why, refusal->advice);
    }
    if (step == KILN_STEP_LOAD)
        return explain_load(code, err);
    return kiln_err_set(err, code, NULL, "%s failed on Linux %s: %s", steps[step], release(),
                        kiln_err_text(code));
}
