/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An identity and its texts are one block of memory: the struct, the list of attributes, then the
 * texts, each ended by NUL and made valid UTF-8.
 *
 * What /proc has is read while the process is there; of one that is gone before, the events know
 * which executable was mapped and what its first thread is called, and where it ran is where the
 * process runs that it came from.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/identity_int.h"
#include "host/mounts.h"

enum {
    ENV_PAIRS_MAX = 64,
    ENV_BYTES_MAX = 16 << 10,
    TEXTS_MAX = 128 << 10,
};

#define FIRST_USERS 0xeffffffdu /* the user namespace that a system begins with */

struct kiln_identity *kiln_identity_ref(struct kiln_identity *identity)
{
    atomic_fetch_add_explicit(&identity->refs, 1, memory_order_relaxed);
    return identity;
}

void kiln_identity_unref(struct kiln_identity *identity)
{
    if (!identity || atomic_fetch_sub_explicit(&identity->refs, 1, memory_order_acq_rel) != 1)
        return;
    kiln_object_unref((struct kiln_object *)identity->executable);
    kiln_free(identity);
}

/* ---- one block ---- */

static const char *put(struct kiln_buf *texts, struct kiln_str s)
{
    size_t at = texts->len;

    kiln_buf_add_utf8(texts, s);
    kiln_buf_putc(texts, '\0');
    return (const char *)at; /* NOLINT(performance-no-int-to-ptr): an offset until it is placed */
}

/* The last part of its path, or what its first thread is called. */
static struct kiln_str name_of(const struct kiln_proc *p, const struct kiln_facts *facts)
{
    const char *slash = strrchr(facts->path, '/');

    if (facts->path[0] && slash && slash[1])
        return kiln_str_of(slash + 1);
    return p->comm[0] ? kiln_str_of(p->comm) : KILN_STR("unknown");
}

/* Copies struct and texts into one block, and makes offsets pointers. */
static int build(struct kiln_identity *draft, const struct kiln_attrs *attrs,
                 struct kiln_buf *texts, struct kiln_identity **ret_identity)
{
    const char **text[] = {&draft->name,           &draft->path,       &draft->command,
                           &draft->owner,          &draft->service,    &draft->container_id,
                           &draft->container_name, &draft->cgroup_path};
    size_t head = sizeof(*draft) + attrs->n * sizeof(*draft->attrs);
    struct kiln_identity *made;
    struct kiln_identity_attr *list;
    char *base;

    for (uint32_t i = 0; i < attrs->n; i++) {
        put(texts, kiln_str_of(kiln_attrs_key(attrs, i)));
        put(texts, kiln_str_of(kiln_attrs_value(attrs, i)));
    }
    made = texts->error || attrs->texts.error ? NULL : kiln_malloc(head + texts->len);
    if (!made)
        return -ENOMEM;
    base = (char *)made + head;
    memcpy(base, texts->ptr, texts->len);
    for (size_t i = 0; i < KILN_ARRAY_LEN(text); i++)
        *text[i] = base + (size_t)*text[i];
    list = (struct kiln_identity_attr *)(made + 1);
    base = (char *)draft->cgroup_path + strlen(draft->cgroup_path) + 1;
    for (uint32_t i = 0; i < attrs->n; i++) {
        list[i].key = base;
        list[i].value = base + strlen(base) + 1;
        base = (char *)list[i].value + strlen(list[i].value) + 1;
    }
    draft->attrs = list;
    draft->n_attrs = attrs->n;
    draft->size = (uint32_t)(head + texts->len);
    memcpy(made, draft, sizeof(*made));
    atomic_init(&made->refs, 1);
    *ret_identity = made;
    return 0;
}

/* What the kernel's threads are. */
int kiln_identity_kernel(struct kiln_identity **ret_identity)
{
    struct kiln_identity draft = {.is_kernel = true, .uid = 0};
    struct kiln_str kernel = KILN_STR("kernel"), none = KILN_STR("");
    struct kiln_attrs attrs;
    struct kiln_buf texts;
    int r;

    kiln_buf_init(&texts, TEXTS_MAX);
    kiln_attrs_init(&attrs);
    kiln_attrs_set(&attrs, KILN_STR("service.name"), kernel);
    draft.name = put(&texts, kernel);
    draft.path = put(&texts, none);
    draft.command = put(&texts, kernel);
    draft.owner = put(&texts, KILN_STR("root"));
    draft.service = put(&texts, kernel);
    draft.container_id = put(&texts, none);
    draft.container_name = put(&texts, none);
    draft.cgroup_path = put(&texts, none);
    r = build(&draft, &attrs, &texts, ret_identity);
    kiln_attrs_done(&attrs);
    kiln_buf_done(&texts);
    return r;
}

/* ---- reading ---- */

/* Whether a program says what it does, "nginx: worker process", and not how it was called. */
static bool is_title(const char *command)
{
    const char *blank = strchr(command, ' ');

    return command[0] == '[' || (blank && blank > command && blank[-1] == ':');
}

/* An option, or a setting: a title may quote them. */
static bool is_argument(const char *word)
{
    size_t len = strcspn(word, " ");

    return *word == '-' || *word == '(' || memchr(word, '=', len);
}

/* Where arguments begin behind the name of the program; NULL: there are none. */
static char *arguments_of(char *command, const char *name)
{
    size_t len = strlen(name);
    char *first = strchr(command, ' '), *blank;

    for (blank = first; blank && len; blank = strchr(blank + 1, ' '))
        if ((size_t)(blank - command) >= len && memcmp(blank - len, name, len) == 0)
            return blank;
    if (!is_title(command))
        return first;
    for (blank = first; blank && !is_argument(blank + 1); blank = strchr(blank + 1, ' '))
        ;
    return blank;
}

/*
 * The first argument.  Some programs write all of their arguments into it, parted by blanks: it is
 * cut behind the executable's own name, or where that is not there behind the first word, unless
 * it is a title.
 */
static void read_command(int dir, struct kiln_facts *facts)
{
    int64_t n = kiln_procfs_read(dir, "cmdline", facts->command, KILN_COMMAND_MAX);
    const char *slash = strrchr(facts->path, '/');
    char *rest;

    facts->command[n > 0 ? n : 0] = '\0';
    rest = arguments_of(facts->command, slash ? slash + 1 : "");
    if (!rest)
        rest = facts->command + strlen(facts->command);
    memset(rest, 0, sizeof(facts->command) - (size_t)(rest - facts->command));
}

static void read_path(int dir, struct kiln_facts *facts)
{
    struct kiln_str path;

    if (kiln_procfs_link(dir, "exe", facts->path, sizeof(facts->path)) < 0) {
        facts->path[0] = '\0';
        return;
    }
    path = kiln_procfs_undelete(kiln_str_of(facts->path));
    facts->path[path.len] = '\0';
}

uint32_t kiln_space_of(int dir, const char *name)
{
    char text[64];
    struct kiln_str number = {text, 0};
    int64_t n = kiln_procfs_link(dir, name, text, sizeof(text));
    uint64_t value;

    number.len = n > 0 ? (size_t)n : 0;
    kiln_str_cut(&number, '['); /* user:[4026531837] */
    number = kiln_str_cut(&number, ']');
    return kiln_str_parse_u64(number, &value) == 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* Whether samples told all that /proc/PID/status does: users by the numbers that we have. */
static bool is_told(const struct kiln_processes *all, const struct kiln_proc *p)
{
    return p->who.ns_pid && all->own_users == FIRST_USERS;
}

static void read_status(const struct kiln_processes *all, const struct kiln_proc *p, int dir,
                        struct kiln_facts *facts)
{
    const struct kiln_who *who = &p->who;
    char text[KILN_PROCFS_TEXT_MAX];
    int64_t n;

    if (is_told(all, p)) {
        facts->status = (struct kiln_procfs_status){who->parent_pid, who->uid, who->ns_pid};
        return;
    }
    n = dir >= 0 ? kiln_procfs_read(dir, "status", text, sizeof(text)) : 0;
    if (n > 0)
        kiln_procfs_parse_status((struct kiln_str){text, (size_t)n}, &facts->status);
}

/* Whether it has the namespaces that names of users are of: ours. */
static bool has_our_users(const struct kiln_processes *all, const struct kiln_proc *p, int dir)
{
    if (is_told(all, p))
        return p->who.user_namespace == all->own_users && p->who.mount_namespace == all->own_mounts;
    return dir >= 0 && all->own_users && all->own_mounts &&
           kiln_space_of(dir, "ns/user") == all->own_users &&
           kiln_space_of(dir, "ns/mnt") == all->own_mounts;
}

/* Names of users are the agent's own: in another namespace the number says more. */
static void read_owner(const struct kiln_processes *all, const struct kiln_proc *p, int dir,
                       struct kiln_facts *facts)
{
    if (facts->status.uid == UINT32_MAX)
        return;
    if (has_our_users(all, p, dir))
        kiln_owner_name(facts->status.uid, facts->owner, sizeof(facts->owner));
    else
        snprintf(facts->owner, sizeof(facts->owner), "%u", facts->status.uid);
}

/* Copies what is allowed; everything else is wiped as soon as it was looked at. */
static void read_env(const struct kiln_processes *all, int dir, struct kiln_facts *facts)
{
    char *text = all->environ_text;
    const char *const *names = (const char *const *)all->env_names;
    struct kiln_str rest, pair;
    int64_t n;

    if (!text || !all->n_env_names)
        return;
    n = kiln_procfs_read(dir, "environ", text, KILN_ENVIRON_MAX);
    rest = (struct kiln_str){text, n > 0 ? (size_t)n : 0};
    while (facts->n_env < ENV_PAIRS_MAX &&
           (pair = kiln_procfs_next_env(&rest, names, all->n_env_names)).ptr) {
        if (facts->env.len + pair.len + 1 > ENV_BYTES_MAX)
            break;
        kiln_buf_add(&facts->env, pair.ptr, pair.len);
        kiln_buf_putc(&facts->env, '\0');
        if (facts->env.error)
            break;
        facts->n_env++;
    }
    if (n > 0)
        explicit_bzero(text, (size_t)n);
}

/*
 * Samples are looked at a moment after they were taken: the process may run another program by now,
 * of which /proc tells.  Events know better which one it was, unless some were lost.
 */
static bool runs_another(const struct kiln_processes *all, const struct kiln_proc *p,
                         const struct kiln_facts *facts)
{
    return p->exe && p->counted == all->lost + 1 &&
           !kiln_str_ends(kiln_str_of(facts->path), kiln_str_of(p->exe));
}

static void read_there(struct kiln_processes *all, struct kiln_proc *p, int dir,
                       struct kiln_facts *facts)
{
    facts->dir = dir;
    read_path(dir, facts);
    if (!kiln_places_get(all->places, p->who.cgroups, facts))
        kiln_places_read(all->places, dir, &(struct kiln_whereabouts){p->who.cgroups, p->cgroup},
                         facts);
    if (runs_another(all, p, facts)) {
        facts->path[0] = '\0';
        return;
    }
    if (kiln_mounts_served(all->mounts, dir, p->who.root, facts->path))
        facts->aside = all->aside;
    read_command(dir, facts);
    read_env(all, dir, facts);
}

/*
 * Of a process that is gone: where the one runs that it was forked from or started by, unless that
 * is known, and if it is the same program, what that says of itself.
 */
static void read_kin(struct kiln_processes *all, struct kiln_proc *p, struct kiln_facts *facts)
{
    struct kiln_proc *twin = kiln_proc_twin(all, p);
    struct kiln_proc *kin = twin ? twin : kiln_proc_find(all, p->parent_pid);
    bool is_placed = kiln_places_get(all->places, p->who.cgroups, facts);
    int dir;

    if ((is_placed && !twin) || !kin || kin->pub.gone || !kin->pub.pid ||
        kiln_proc_open(all, kin, &dir) < 0)
        return;
    if (!is_placed)
        kiln_places_read(all->places, dir, &(struct kiln_whereabouts){0}, facts);
    if (twin)
        read_env(all, dir, facts);
    else if (kin->cgroup != p->cgroup)
        facts->place.unit[0] = '\0'; /* whoever starts services is none of them */
    kiln_proc_shut(all);
}

static void read_facts(struct kiln_processes *all, struct kiln_proc *p, struct kiln_facts *facts)
{
    int dir = -1;

    facts->status.uid = UINT32_MAX;
    kiln_proc_learn_exe(all, p);
    if (kiln_proc_open(all, p, &dir) == 0)
        read_there(all, p, dir, facts);
    else
        read_kin(all, p, facts);
    read_status(all, p, facts->dir, facts);
    read_owner(all, p, facts->dir, facts);
    if (!facts->path[0] && p->exe)
        snprintf(facts->path, sizeof(facts->path), "%s", p->exe);
    if (!facts->command[0])
        snprintf(facts->command, sizeof(facts->command), "%s", p->comm);
    if (!facts->status.parent_pid)
        facts->status.parent_pid = p->parent_pid;
}

static uint64_t unix_of(uint64_t boot_ns)
{
    struct timespec now;
    uint64_t now_ns, unix_ns = kiln_clock_unix_ns();

    if (!boot_ns || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
        return 0;
    now_ns = kiln_timespec_ns(now);
    return now_ns >= boot_ns && unix_ns > now_ns - boot_ns ? unix_ns - (now_ns - boot_ns) : 0;
}

/* The object of the mapping that has the executable's path. */
static struct kiln_object *executable_of(struct kiln_processes *all, struct kiln_proc *p,
                                         const char *path)
{
    uint32_t n = p->set ? p->set->n : 0;

    for (uint32_t i = 0; i < n && path[0]; i++) {
        if (p->set->maps[i].kind != KILN_MAP_FILE || strcmp(p->set->maps[i].path, path) != 0)
            continue;
        kiln_proc_open_map(all, p, &p->set->maps[i]);
        return p->set->maps[i].object ? kiln_object_ref(p->set->maps[i].object) : NULL;
    }
    return NULL;
}

/* All that others say of it, beside /proc. */
static void describe(struct kiln_processes *all, struct kiln_proc *p, struct kiln_facts *facts)
{
    facts->name = name_of(p, facts);
    facts->executable = executable_of(all, p, facts->path);
    if (facts->dir >= 0 && kiln_proc_open(all, p, &facts->dir) < 0)
        facts->dir = -1; /* opening files may have closed it */
    facts->context = p->pub.context;
    facts->container = kiln_containers_get(all->containers, all->proc, facts->dir, &facts->place);
    facts->shown = (const char *const *)all->env_names;
    facts->n_shown = all->n_env_shown;
    kiln_facts_describe(facts, all->rules);
}

static const char *container_name(const struct kiln_facts *facts)
{
    const char *const *known = facts->container ? facts->container->facts : NULL;

    if (known && known[KILN_CONTAINER_NAME][0])
        return known[KILN_CONTAINER_NAME];
    return known && known[KILN_CONTAINER_IN_POD][0] ? known[KILN_CONTAINER_IN_POD]
                                                    : facts->place.container_name;
}

static int make(struct kiln_proc *p, const struct kiln_facts *facts,
                struct kiln_identity **ret_identity)
{
    struct kiln_identity draft = {
        .pid = p->pub.pid,
        .parent_pid = facts->status.parent_pid,
        .ns_pid = facts->status.ns_pid ? facts->status.ns_pid : p->pub.pid,
        .uid = facts->status.uid,
        .start_ns = p->pub.start_ns,
        .start_unix_ns = unix_of(p->pub.start_ns),
        .cgroup = p->cgroup,
        .executable = facts->executable,
    };
    struct kiln_buf texts;
    int r;

    kiln_buf_init(&texts, TEXTS_MAX);
    draft.name = put(&texts, facts->name);
    draft.path = put(&texts, kiln_str_of(facts->path));
    draft.command = put(&texts, kiln_str_of(facts->command));
    draft.owner = put(&texts, kiln_str_of(facts->owner));
    draft.service = put(&texts, kiln_attrs_get(&facts->attrs, KILN_STR("service.name")));
    draft.container_id = put(&texts, kiln_str_of(facts->place.container_id));
    draft.container_name = put(&texts, kiln_str_of(container_name(facts)));
    draft.cgroup_path = put(&texts, kiln_str_of(facts->cgroup));
    r = build(&draft, &facts->attrs, &texts, ret_identity);
    if (r < 0)
        kiln_object_unref((struct kiln_object *)draft.executable);
    kiln_buf_done(&texts);
    return r;
}

int kiln_identity_read(struct kiln_processes *all, struct kiln_proc *p,
                       struct kiln_identity **ret_identity)
{
    struct kiln_facts *facts = kiln_calloc(1, sizeof(*facts));
    int r;

    if (!facts)
        return -ENOMEM;
    facts->dir = -1;
    facts->place.runtime = "";
    kiln_buf_init(&facts->env, ENV_BYTES_MAX);
    kiln_attrs_init(&facts->attrs);
    read_facts(all, p, facts);
    describe(all, p, facts);
    r = make(p, facts, ret_identity);
    kiln_attrs_done(&facts->attrs);
    kiln_buf_done(&facts->env);
    kiln_free(facts);
    return r;
}

void kiln_proc_forget_identity(struct kiln_processes *all, struct kiln_proc *p)
{
    if (!p->pub.identity)
        return;
    all->identity_bytes -= p->pub.identity->size;
    kiln_identity_unref(p->pub.identity);
    p->pub.identity = NULL;
}

/* Those of processes longest not sampled go: a quarter at once, so that it is seldom looked for. */
static void make_room(struct kiln_processes *all, const struct kiln_proc *but)
{
    uint64_t enough = all->identity_bytes_max / 4 * 3;
    struct kiln_link *at = all->alive.prev;

    for (; all->identity_bytes > enough && at != &all->alive; at = at->prev) {
        struct kiln_proc *p = KILN_OF_LINK(struct kiln_proc, use, at);

        if (p != but)
            kiln_proc_forget_identity(all, p);
    }
}

static void learn(struct kiln_processes *all, struct kiln_proc *p)
{
    struct kiln_identity *identity;

    if (kiln_identity_read(all, p, &identity) < 0)
        return;
    p->pub.identity = identity;
    all->identity_bytes += identity->size;
    if (all->identity_bytes > all->identity_bytes_max)
        make_room(all, p);
}

struct kiln_identity *kiln_process_identity(struct kiln_processes *all,
                                            struct kiln_process *process)
{
    struct kiln_proc *p = kiln_proc_of(process);

    if (kiln_proc_look_for_context(all, p))
        kiln_proc_forget_identity(all, p);
    if (!process->identity)
        learn(all, p);
    kiln_proc_sync(p);
    return process->identity;
}
