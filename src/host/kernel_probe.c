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

static _Thread_local char last_message[160];

static int keep_message(enum libbpf_print_level level, const char *format, va_list args)
{
    char text[sizeof(last_message)];
    if (level == LIBBPF_DEBUG)
        return 0;
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    if (text[0] && !strstr(text, "failed to load"))
        memcpy(last_message, text, sizeof(text));
    return 0;
}

void kiln_kernel_quiet(void)
{
    libbpf_set_print(keep_message);
    last_message[0] = '\0';
}

static int lacks(const char *what, struct kiln_err *err)
{
    return kiln_err_set(err, -EPERM, NULL,
                        "profiling the host needs %s: run as root, in a container with "
                        "--privileged --pid=host, or in a unit with "
                        "AmbientCapabilities=" KILN_GRANT_NAMES,
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
    return found == -EPERM ? kiln_kernel_explain(found, "loading", err) : 0;
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

int kiln_kernel_explain(int code, const char *what, struct kiln_err *err)
{
    if (code == -EPERM || code == -EACCES)
        return kiln_err_set(err, code, NULL,
                            "the kernel forbids %s the host profiler: a seccomp filter, lockdown, "
                            "a user namespace or kernel.perf_event_paranoid is in the way (run as "
                            "root, in a container with --privileged --pid=host)",
                            what);
    if (code == -ENOSYS)
        return kiln_err_set(err, code, NULL, "Linux %s was built without BPF or perf events",
                            release());
    return kiln_err_set(err, code, NULL, "%s the host profiler failed on Linux %s: %s%s%s", what,
                        release(), kiln_err_text(code), last_message[0] ? "; " : "", last_message);
}
