/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of files and of the process itself; survey_kernel.c tries out the kernel.
 */
#include "host/survey.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/err.h"
#include "base/str.h"
#include "host/grants.h"
#include "host/opener.h"
#include "host/procfs.h"
#include "host/refusal.h"

/* The number of the first PID namespace is part of the kernel's interface (PROC_PID_INIT_INO). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

enum { PROCESSES_MAX = 1000 };

const char *kiln_finding_word(enum kiln_finding_state state)
{
    static const char *const words[] = {"ok", "less", "missing", "unknown"};

    return words[state];
}

struct kiln_finding *kiln_survey_add(struct kiln_survey *survey, const char *group,
                                     const char *name, enum kiln_finding_state state)
{
    uint32_t at = survey->n < KILN_FINDINGS_MAX ? survey->n++ : KILN_FINDINGS_MAX - 1;

    survey->items[at] = (struct kiln_finding){.group = group, .name = name, .state = state};
    return &survey->items[at];
}

void kiln_finding_say(struct kiln_finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(finding->found, sizeof(finding->found), format, args);
    va_end(args);
}

void kiln_finding_lacks(struct kiln_finding *finding, enum kiln_finding_state state,
                        const char *without, const char *grant)
{
    finding->state = state;
    snprintf(finding->without, sizeof(finding->without), "%s", without);
    snprintf(finding->grant, sizeof(finding->grant), "%s", grant);
}

/* ---- privileges ---- */

static bool in_container(void)
{
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
}

/* A text in small letters, behind what is there; `to` has room. */
static void put_small(char *to, size_t size, const char *text)
{
    size_t n = strlen(to);

    for (; *text && n + 1 < size; text++)
        to[n++] = *text >= 'A' && *text <= 'Z' ? (char)(*text | 0x20) : *text;
    to[n] = '\0';
}

/*
 * All capabilities as one command, for each takes the place of what was granted before; "CAP_BPF"
 * is BPF for docker.
 */
static void put_grants(char *to, size_t size)
{
    char program[4096], names[256] = "";
    struct kiln_restraints restraints;
    bool paranoid;
    bool container = in_container();

    for (int i = 0; i < KILN_GRANTS; i++) {
        if (container)
            put_small(names, sizeof(names), " --cap-add=");
        else if (names[0])
            put_small(names, sizeof(names), ",");
        put_small(names, sizeof(names), kiln_grants[i].name + (container ? strlen("CAP_") : 0));
    }
    kiln_restraints_read(&restraints);
    paranoid = restraints.paranoid > 2;
    if (container) {
        snprintf(to, size, "docker run%s%s --pid=host ...", names,
                 paranoid ? " --cap-add=sys_admin" : "");
        return;
    }
    if (kiln_procfs_link(AT_FDCWD, "/proc/self/exe", program, sizeof(program)) < 0)
        snprintf(program, sizeof(program), "kiln");
    snprintf(to, size, "run as root, or: sudo setcap %s+ep %.200s%s", names, program,
             paranoid ? " && sudo sysctl kernel.perf_event_paranoid=2" : "");
}

void kiln_survey_grant_all(char *to, size_t size)
{
    uint64_t set = kiln_capabilities();
    bool lacks = false;

    for (int i = 0; i < KILN_GRANTS; i++)
        lacks |= !kiln_grant_held(&kiln_grants[i], set);
    to[0] = '\0';
    if (lacks)
        put_grants(to, size);
}

static void look_at_grants(struct kiln_survey *survey)
{
    uint64_t set = kiln_capabilities();

    for (int i = 0; i < KILN_GRANTS; i++) {
        const struct kiln_grant *grant = &kiln_grants[i];
        struct kiln_finding *f =
            kiln_survey_add(survey, "privileges", grant->name, KILN_FINDING_OK);
        char command[64];

        kiln_finding_say(f, "%s", grant->use);
        if (kiln_grant_held(grant, set))
            continue;
        snprintf(command, sizeof(command), "grant %s", grant->name);
        kiln_finding_lacks(f, grant->needed ? KILN_FINDING_MISSING : KILN_FINDING_LESS,
                           grant->without, command);
    }
}

static bool has_address(void *context, struct kiln_str line)
{
    bool *found = context;

    for (size_t i = 0; i < line.len && line.ptr[i] != ' '; i++)
        *found |= line.ptr[i] != '0';
    return !*found;
}

const char *kiln_survey_symbols_advice(bool held, int64_t restricted)
{
    if (restricted < 2)
        return "grant CAP_SYSLOG";
    return held ? "sudo sysctl kernel.kptr_restrict=1 (2 hides them from everybody)"
                : "grant CAP_SYSLOG, and: sudo sysctl kernel.kptr_restrict=1 (2 hides them from "
                  "everybody)";
}

static int read_number(const char *path, int64_t *ret)
{
    char text[16] = "";
    int64_t n = kiln_procfs_read(AT_FDCWD, path, text, sizeof(text) - 1);

    return n < 0 ? (int)n : kiln_str_parse_i64(kiln_str_trim(kiln_str_of(text)), ret);
}

/* The kernel shows zeros to those that it hides its addresses from. */
static void look_at_symbols(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "privileges", "kallsyms", KILN_FINDING_OK);
    bool found = false;
    int64_t restricted = 0;
    int r = kiln_procfs_lines(AT_FDCWD, "/proc/kallsyms", 1 << 20, has_address, &found);

    if (found) {
        kiln_finding_say(f, "the kernel shows the addresses of its functions");
        return;
    }
    kiln_finding_say(f, "%s",
                     r < 0 && r != KILN_E_LIMIT ? kiln_err_text(r)
                                                : "the kernel shows zeros for its addresses");
    if (read_number("/proc/sys/kernel/kptr_restrict", &restricted) < 0)
        restricted = 0;
    kiln_finding_lacks(
        f, KILN_FINDING_LESS, "functions of the kernel have no names",
        kiln_survey_symbols_advice(kiln_capabilities() & KILN_CAP(CAP_SYSLOG), restricted));
}

/* Whether an event of a processor can be opened: 0, or -errno. */
static int try_event(void)
{
    const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                         .config = PERF_COUNT_SW_DUMMY,
                                         .size = sizeof(attr),
                                         .disabled = 1};
    int fd = kiln_perf_open(&attr, 0);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

static void look_at_paranoia(struct kiln_survey *survey)
{
    struct kiln_finding *f =
        kiln_survey_add(survey, "privileges", "perf_event_paranoid", KILN_FINDING_OK);
    struct kiln_restraints restraints;
    const struct kiln_refusal *refusal;
    int64_t level = 0;
    bool held;
    int r;

    if (read_number("/proc/sys/kernel/perf_event_paranoid", &level) < 0) {
        kiln_finding_say(f, "this kernel has no perf events");
        kiln_finding_lacks(f, KILN_FINDING_MISSING, "nothing can be sampled",
                           "a kernel with CONFIG_PERF_EVENTS=y");
        return;
    }
    r = try_event();
    kiln_restraints_read(&restraints);
    held = restraints.capabilities & (KILN_CAP(CAP_PERFMON) | KILN_CAP(CAP_SYS_ADMIN));
    if (r == 0) {
        kiln_finding_say(f, "%lld%s", (long long)level,
                         !held                     ? ""
                         : kiln_opener_is_needed() ? ", which CAP_SYS_ADMIN overrules"
                                                   : ", which CAP_PERFMON overrules");
    } else if (held) {
        refusal = kiln_refusal_of(&restraints, KILN_STEP_EVENT, r);
        kiln_finding_say(f, "%lld: %s", (long long)level, refusal->why);
        kiln_finding_lacks(f, KILN_FINDING_MISSING, "see clocks, below", refusal->advice);
    } else {
        kiln_finding_say(f, "%lld: clocks are for CAP_PERFMON alone%s", (long long)level,
                         level > 2 ? "; on kernels of Debian and Ubuntu for CAP_SYS_ADMIN alone"
                                   : "");
        kiln_finding_lacks(f, KILN_FINDING_LESS, "see clocks, below",
                           level > 2 ? "grant CAP_PERFMON, and: sudo sysctl "
                                       "kernel.perf_event_paranoid=2"
                                     : "grant CAP_PERFMON");
    }
}

static void look_at_locked_memory(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "privileges", "memlock", KILN_FINDING_OK);
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        kiln_finding_say(f, "no limit of locked memory");
    else
        kiln_finding_say(
            f, "%llu kB of memory may be locked%s", (unsigned long long)limit.rlim_cur / 1024,
            kiln_capabilities() & KILN_CAP(CAP_IPC_LOCK) ? ", or any (CAP_IPC_LOCK)" : "");
}

void kiln_survey_privileges(struct kiln_survey *survey)
{
    look_at_grants(survey);
    look_at_symbols(survey);
    look_at_paranoia(survey);
    look_at_locked_memory(survey);
}

/* ---- the host ---- */

static void look_at_namespace(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "host", "processes", KILN_FINDING_OK);
    struct stat st;

    if (stat("/proc/self/ns/pid", &st) != 0) {
        kiln_finding_say(f, "/proc/self/ns/pid: %s", kiln_err_text(-errno));
        kiln_finding_lacks(f, KILN_FINDING_MISSING, "processes cannot be told apart",
                           "mount -t proc proc /proc");
    } else if (st.st_ino == FIRST_PID_NAMESPACE) {
        kiln_finding_say(f, "all processes of the host are seen");
    } else {
        kiln_finding_say(f, "only processes of this container are seen");
        kiln_finding_lacks(f, KILN_FINDING_LESS, "nothing outside of the container is profiled",
                           "docker run --pid=host ...");
    }
}

struct others {
    uint32_t seen, denied, first;
};

/* Whose maps can be read, can be walked and named. */
static void try_process(struct others *others, uint32_t pid)
{
    char path[40], byte;
    int fd;

    snprintf(path, sizeof(path), "/proc/%u/maps", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != EACCES && errno != EPERM)
        return; /* it is gone */
    others->seen++;
    if (fd >= 0 && read(fd, &byte, 1) >= 0) {
        close(fd);
        return;
    }
    if (fd >= 0)
        close(fd);
    if (others->denied++ == 0)
        others->first = pid;
}

static void try_processes(struct others *others)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    uint64_t pid;

    while (dir && others->seen < PROCESSES_MAX && (entry = readdir(dir)) != NULL)
        if (kiln_str_parse_u64(kiln_str_of(entry->d_name), &pid) == 0 && pid <= INT32_MAX)
            try_process(others, (uint32_t)pid);
    if (dir)
        closedir(dir);
}

static void look_at_others(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "host", "procfs", KILN_FINDING_OK);
    struct others others = {0};

    try_processes(&others);
    if (others.seen && !others.denied) {
        kiln_finding_say(f, "mappings of all processes can be read");
        return;
    }
    kiln_finding_say(f, "mappings of %u of %u processes cannot be read (such as process %u)",
                     others.denied, others.seen, others.first);
    kiln_finding_lacks(f, others.seen ? KILN_FINDING_LESS : KILN_FINDING_MISSING,
                       "stacks of these have no names, and may end early",
                       "grant CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, mount /proc without "
                       "hidepid; what is of another user namespace stays hidden");
}

static void look_at_cgroups(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "host", "cgroups", KILN_FINDING_OK);
    struct statfs fs, unified;
    int r = statfs("/sys/fs/cgroup", &fs);

    if (r == 0 && fs.f_type == CGROUP2_SUPER_MAGIC) {
        kiln_finding_say(f, "/sys/fs/cgroup is the unified hierarchy (version 2)");
        return;
    }
    if (statfs("/sys/fs/cgroup/unified", &unified) == 0 && unified.f_type == CGROUP2_SUPER_MAGIC) {
        kiln_finding_say(f, "version 2 is at /sys/fs/cgroup/unified, beside version 1");
        return;
    }
    kiln_finding_say(f, r == 0 ? "only version 1 is mounted" : "none are mounted");
    kiln_finding_lacks(f, KILN_FINDING_LESS,
                       "--cgroup finds no groups; containers are told by their paths alone",
                       "boot with systemd.unified_cgroup_hierarchy=1, or mount "
                       "/sys/fs/cgroup into the container");
}

static void look_at_clock(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "host", "clock", KILN_FINDING_OK);
    struct timex timex = {0};
    int state = adjtimex(&timex);

    if (state < 0) {
        kiln_finding_lacks(f, KILN_FINDING_UNKNOWN, "", "");
        kiln_finding_say(f, "the kernel does not tell: %s", kiln_err_text(-errno));
    } else if (state == TIME_ERROR || timex.status & STA_UNSYNC) {
        kiln_finding_say(f, "nobody keeps the time of this host right");
        kiln_finding_lacks(f, KILN_FINDING_LESS,
                           "profiles may be kept at another time than those of other hosts",
                           "systemctl enable --now systemd-timesyncd, or chrony");
    } else {
        kiln_finding_say(f, "kept right, to about %ld ms", timex.maxerror / 1000);
    }
}

void kiln_survey_host(struct kiln_survey *survey)
{
    look_at_namespace(survey);
    look_at_others(survey);
    look_at_cgroups(survey);
    look_at_clock(survey);
}
