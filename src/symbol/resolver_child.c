/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child: takes one ask after another, opens the file that came beside it unless it has it open
 * already, and says what it finds.  It keeps the tables of the files asked last, as many as fit in
 * a third of its memory; one file may take most of it while it is read.
 *
 * Debug information is read for as long as the ask says.  What was not found by then is answered
 * without lines, and looked for afterwards, in steps between which it listens: the answers are kept
 * until they are asked for again.  Unless somebody waits for lines, all of that may take a second
 * and then a small share of the time that passes: where new programs with debug information come
 * all the time, functions have names and some have no lines.  After some time without an ask it
 * ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/confine.h"
#include "symbol/names.h"
#include "symbol/resolver_int.h"
#include "symbol/section.h"
#include "symbol/spill.h"

enum {
    KEPT_MAX = 48,
    OTHERS_MAX = 256, /* files that debug information is in, of all that are kept */
    FILES_MAX = KEPT_MAX + OTHERS_MAX + 8,
    WANTS_MAX = 64, /* of one ask */
    PENDING_MAX = 8192,
    READY_BYTES = 4 << 20,
    STEP_MS = 20,   /* of work between asks, and of the pause behind it */
    IDLE_MS = 2000, /* without an ask: then memory goes back */
};

/*
 * Of the CPU time of one processor, for debug information: so much at first and saved up at most,
 * one part of the time that passes, and the most that is owed: whatever one file took, others have
 * their lines again after a minute.
 */
#define DEEP_FIRST_NS ((int64_t)KILN_NS_PER_S)
#define DEEP_SHARE    200
#define DEEP_OWED_NS  (DEEP_FIRST_NS / 4)

struct kept {
    struct kiln_names_ask ask; /* the last one for it */
    struct kiln_names *names;
    int fd;
    int *others; /* files that it wanted */
    uint32_t n_others, cap_others;
    uint64_t used;    /* when, in asks */
    uint64_t deep_ns; /* CPU time that its debug information has taken */
    bool deep, gave_up;
};

struct child {
    struct kiln_names_greeting greeting;
    struct kiln_scratch scratch;
    struct kiln_spill spill;
    bool spills;
    struct kept kept[KEPT_MAX];
    uint32_t n_kept, n_others;
    uint64_t now;
    int64_t saved_ns;      /* CPU time that debug information may take; below 0: it has to wait */
    uint64_t counted_ns;   /* when that was counted */
    uint32_t said_working; /* the ask whose file debug information is read of, as last said */
    struct kiln_names_ask ask;
    struct kiln_name_cache ready;
    struct kiln_kept_key pending[PENDING_MAX]; /* what is still to be found: a ring */
    uint32_t first_pending, n_pending;
    uint64_t addresses[KILN_WIRE_ADDRESSES];
    char packet[KILN_WIRE_PACKET];
};

/* ---- messages ---- */

/* Returns bytes, 0 at the end, negative on error; *ret_fd is -1 where none came. */
static ssize_t receive(struct iovec *iov, size_t n_iov, int *ret_fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = iov,
                             .msg_iovlen = n_iov,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *head;
    ssize_t n;

    do
        n = recvmsg(KILN_WIRE_SOCKET, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    *ret_fd = -1;
    head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(head), sizeof(*ret_fd));
    return n < 0 ? -errno : n;
}

static int transmit(const void *data, size_t n, int flags)
{
    struct iovec iov = {(void *)(uintptr_t)data, n};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;

    do
        sent = sendmsg(KILN_WIRE_SOCKET, &message, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* Whether there is something to receive, within so long. */
static bool is_asked(uint32_t timeout_ms)
{
    struct pollfd poll_fd = {.fd = KILN_WIRE_SOCKET, .events = POLLIN};
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};

    return ppoll(&poll_fd, 1, &timeout, NULL) > 0;
}

/* So that it is known whose debug information it was, should this be the end. */
static int say_working(struct child *child, uint32_t number)
{
    const struct kiln_names_said said = {.what = KILN_SAID_WORKING, .number = number};
    int r = 0;

    if (child->said_working != number)
        r = transmit(&said, sizeof(said), MSG_DONTWAIT);
    if (r == 0)
        child->said_working = number;
    return r;
}

/* ---- files that are kept ---- */

static void drop(struct child *child, uint32_t i)
{
    struct kept *kept = child->kept + i;

    kiln_names_close(kept->names);
    for (uint32_t o = 0; o < kept->n_others; o++)
        close(kept->others[o]);
    kiln_free(kept->others);
    child->n_others -= kept->n_others;
    close(kept->fd);
    *kept = child->kept[--child->n_kept];
}

static uint32_t oldest(const struct child *child)
{
    uint32_t found = 0;

    for (uint32_t i = 1; i < child->n_kept; i++) {
        if (child->kept[i].used < child->kept[found].used)
            found = i;
    }
    return found;
}

/* Until what is kept leaves room for one more. */
static void make_room(struct child *child)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < child->n_kept; i++)
        bytes += kiln_names_bytes(child->kept[i].names);
    while (child->n_kept > 0 && (child->n_kept == KEPT_MAX || child->n_others > OTHERS_MAX / 2 ||
                                 bytes > child->greeting.memory / 3)) {
        uint32_t i = oldest(child);

        bytes -= kiln_names_bytes(child->kept[i].names);
        drop(child, i);
    }
}

static int open_names(struct child *child, int fd, struct kiln_names **ret_names)
{
    const struct kiln_names_limits limits = {.memory_bytes = child->greeting.memory / 4 * 3,
                                             .deep_bytes = child->greeting.memory / 2,
                                             .shallow = !child->ask.deep,
                                             .scratch =
                                                 child->scratch.max ? &child->scratch : NULL};
    struct kiln_bytes bytes;
    int r = kiln_bytes_file(fd, &bytes);

    if (r < 0)
        return r;
    make_room(child);
    r = kiln_names_open(child->ask.kind, &bytes, &limits, ret_names);
    if (r != -ENOMEM || child->n_kept == 0)
        return r;
    while (child->n_kept > 0)
        drop(child, 0);
    return kiln_names_open(child->ask.kind, &bytes, &limits, ret_names);
}

/* Another version of a file that is kept: true where it only has more at its end. */
static bool grow(struct kept *kept, int fd)
{
    struct kiln_bytes bytes;

    if (kiln_bytes_file(fd, &bytes) < 0 || kiln_names_grow(kept->names, &bytes) < 0)
        return false;
    close(kept->fd);
    kept->fd = fd;
    return true;
}

static struct kept *find(struct child *child, uint64_t id, uint32_t kind)
{
    for (uint32_t i = 0; i < child->n_kept; i++) {
        if (child->kept[i].ask.id == id && child->kept[i].ask.kind == kind)
            return child->kept + i;
    }
    return NULL;
}

static int add(struct child *child, int fd, struct kept **ret_kept)
{
    const struct kiln_names_ask *ask = &child->ask;
    struct kept made = {.fd = fd, .deep = ask->deep && ask->kind == KILN_SOURCE_ELF};
    int r;

    if (fd < 0)
        return -ENOENT;
    r = open_names(child, fd, &made.names);
    if (r < 0) {
        close(fd);
        return r;
    }
    child->kept[child->n_kept++] = made;
    *ret_kept = child->kept + child->n_kept - 1;
    return 0;
}

static void give_up(struct kept *kept)
{
    kiln_names_give_up(kept->names);
    kept->deep = false;
}

/* The names of what is asked; `fd` is taken.  -ENOENT: it is not kept, and there is no file. */
static int get(struct child *child, int fd, struct kept **ret_kept)
{
    const struct kiln_names_ask *ask = &child->ask;
    struct kept *kept = find(child, ask->id, ask->kind);
    int r = 0;

    if (kept && kept->ask.version != ask->version && (fd < 0 || !grow(kept, fd))) {
        drop(child, (uint32_t)(kept - child->kept));
        kept = NULL;
    } else if (kept && kept->ask.version == ask->version && fd >= 0) {
        close(fd);
    }
    if (!kept)
        r = add(child, fd, &kept);
    if (r < 0)
        return r;
    kept->ask = *ask;
    kept->used = ++child->now;
    if (!ask->deep && kept->deep)
        give_up(kept);
    *ret_kept = kept;
    return 0;
}

/* ---- files that are wanted ---- */

static int wait_for_file(struct child *child, int *ret_fd)
{
    struct kiln_names_given given;
    struct iovec iov = {&given, sizeof(given)};
    ssize_t n = receive(&iov, 1, ret_fd);

    if (n != sizeof(given) || given.number != child->ask.number)
        return -EBADMSG;
    return 0;
}

static int attach(struct child *child, struct kept *kept, int fd)
{
    struct kiln_budget any = {.limit = SIZE_MAX};
    struct kiln_bytes bytes;
    int r;

    if (fd < 0)
        return kiln_names_attach(kept->names, NULL);
    r = child->n_others < OTHERS_MAX
            ? kiln_grow(&any, (void **)&kept->others, &kept->cap_others,
                        (uint64_t)kept->n_others + 1, sizeof(*kept->others), OTHERS_MAX)
            : KILN_E_LIMIT;
    if (r == 0)
        r = kiln_bytes_file(fd, &bytes);
    if (r < 0) {
        close(fd);
        return kiln_names_attach(kept->names, NULL);
    }
    r = kiln_names_attach(kept->names, &bytes);
    if (r < 0) {
        close(fd);
        return r;
    }
    kept->others[kept->n_others++] = fd;
    child->n_others++;
    return 0;
}

/* Asks for a file that is lacking and attaches it, or that there is none.  Negative: the end. */
static int get_wanted(struct child *child, struct kept *kept, const struct kiln_wanted *wanted)
{
    size_t n = kiln_wire_add_wanted(child->packet, child->ask.number, wanted);
    int fd = -1;
    int r = transmit(child->packet, n, 0);

    if (r == 0)
        r = wait_for_file(child, &fd);
    if (r < 0)
        return r;
    r = attach(child, kept, fd);
    return r == -EINVAL ? r : 0;
}

/* ---- names ---- */

static uint64_t cpu_ns(void)
{
    struct timespec t;

    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) < 0 ? 0 : kiln_timespec_ns(t);
}

static struct kiln_kept_key key_of(const struct kept *kept, uint64_t address)
{
    return (struct kiln_kept_key){kept->ask.id, kept->ask.version, address};
}

static void save_up(struct child *child)
{
    uint64_t now = kiln_clock_mono_ns();

    child->saved_ns += (int64_t)((now - child->counted_ns) / DEEP_SHARE);
    child->counted_ns = now;
    if (child->saved_ns > DEEP_FIRST_NS)
        child->saved_ns = DEEP_FIRST_NS;
}

static void spend(struct child *child, uint64_t ns)
{
    save_up(child);
    child->saved_ns -= (int64_t)ns;
    if (child->saved_ns < -DEEP_OWED_NS)
        child->saved_ns = -DEEP_OWED_NS;
}

/* Whether lines have to wait. */
static bool is_over(struct child *child)
{
    save_up(child);
    return !child->greeting.eager && child->saved_ns < 0;
}

/* What it has taken since then; perhaps that is too much. */
static void charge(struct child *child, struct kept *kept, uint64_t since_ns)
{
    uint64_t took_ns = cpu_ns() - since_ns;

    kept->deep_ns += took_ns;
    if (kept->deep)
        spend(child, took_ns);
    if (kept->deep_ns / KILN_NS_PER_MS < child->greeting.deep_cpu_ms || !kept->deep)
        return;
    kept->gave_up = true;
    give_up(kept);
}

/* What cannot be remembered will be asked again. */
static void put_off(struct child *child, const struct kept *kept, uint64_t address)
{
    if (child->n_pending == PENDING_MAX)
        return;
    child->pending[(child->first_pending + child->n_pending++) % PENDING_MAX] =
        key_of(kept, address);
}

/* Negative: the end. */
static int find_name(struct child *child, struct kept *kept, uint64_t address, uint32_t *n_wanted,
                     struct kiln_name *ret_name)
{
    const struct kiln_kept_key key = key_of(kept, address);
    struct kiln_wanted wanted;
    int r = 0;

    if (kept->deep && kiln_name_cache_get(&child->ready, &key, ret_name) == 1)
        return 0;
    (void)kiln_names_find(kept->names, address, ret_name);
    while (ret_name->shallow && *n_wanted < WANTS_MAX && kiln_names_wants(kept->names, &wanted)) {
        ++*n_wanted;
        r = get_wanted(child, kept, &wanted);
        if (r < 0)
            return r;
        (void)kiln_names_find(kept->names, address, ret_name);
    }
    if (ret_name->shallow)
        put_off(child, kept, address);
    return 0;
}

static int refuse(const struct child *child, int status)
{
    struct kiln_names_said said = {
        .what = KILN_SAID_NAMES, .number = child->ask.number, .status = status};

    return transmit(&said, sizeof(said), 0);
}

/* An answer on its way, as many packets as it takes. */
struct answer {
    struct kiln_names_said head;
    size_t len;
    char packet[KILN_WIRE_PACKET];
};

static int send_packet(struct answer *answer, bool gave_up)
{
    answer->head.gave_up = gave_up;
    memcpy(answer->packet, &answer->head, sizeof(answer->head));
    return transmit(answer->packet, answer->len, 0);
}

static int add_name(struct answer *answer, const struct kiln_name *name)
{
    if (!kiln_wire_add(answer->packet, &answer->len, name)) {
        int r = send_packet(answer, false);

        if (r < 0)
            return r;
        answer->head.first += answer->head.n;
        answer->head.n = 0;
        answer->len = sizeof(answer->head);
        (void)kiln_wire_add(answer->packet, &answer->len, name);
    }
    answer->head.n++;
    return 0;
}

static int answer_all(struct child *child, struct kept *kept)
{
    static struct answer answer;
    uint64_t began_ns = cpu_ns();
    uint32_t n_wanted = 0;
    int r = kept->deep ? say_working(child, child->ask.number) : 0;

    answer.head = (struct kiln_names_said){.what = KILN_SAID_NAMES, .number = child->ask.number};
    answer.len = sizeof(answer.head);
    kiln_names_deadline(kept->names,
                        kiln_clock_mono_ns() +
                            (is_over(child) ? 0 : child->ask.deep_ms * KILN_NS_PER_MS));
    for (uint32_t i = 0; r == 0 && i < child->ask.n; i++) {
        struct kiln_name name = {0};

        r = find_name(child, kept, child->addresses[i], &n_wanted, &name);
        if (r == 0)
            r = add_name(&answer, &name);
    }
    charge(child, kept, began_ns);
    return r < 0 ? r : send_packet(&answer, kept->gave_up);
}

/* An embedded source; `fd` is taken. */
static int answer_text(struct child *child, int fd)
{
    const struct kiln_str name = {(const char *)child->addresses, child->ask.name};
    int r = say_working(child, child->ask.number);

    if (r == 0 || r == -EAGAIN)
        r = kiln_child_answer_text(&child->ask, name, fd, transmit);
    if (fd >= 0)
        close(fd);
    return r;
}

/* One ask.  1: go on; 0: there will be no more. */
static int serve(struct child *child)
{
    struct iovec iov[] = {{&child->ask, sizeof(child->ask)},
                          {child->addresses, sizeof(child->addresses)}};
    struct kept *kept = NULL;
    int fd;
    ssize_t n = receive(iov, 2, &fd);
    int r;

    if (n <= 0)
        return (int)n;
    if ((size_t)n < sizeof(child->ask) || child->ask.n == 0 || child->ask.n > KILN_WIRE_ADDRESSES ||
        (size_t)n != sizeof(child->ask) + child->ask.n * sizeof(uint64_t) ||
        child->ask.name > child->ask.n * sizeof(uint64_t))
        return -EBADMSG;
    kiln_name_cache_turn(&child->ready);
    r = say_working(child, 0);
    if (r < 0 && r != -EAGAIN)
        return r;
    if (child->ask.name) {
        r = answer_text(child, fd);
        return r < 0 ? r : 1;
    }
    r = get(child, fd, &kept);
    r = r < 0 ? refuse(child, r) : answer_all(child, kept);
    return r < 0 ? r : 1;
}

/* ---- between asks ---- */

static void forget_pending(struct child *child)
{
    child->first_pending = (child->first_pending + 1) % PENDING_MAX;
    child->n_pending--;
}

/* Goes on with what was put off first, for a moment. */
static void work(struct child *child)
{
    struct kiln_kept_key key = child->pending[child->first_pending];
    struct kept *kept = find(child, key.id, KILN_SOURCE_ELF);
    uint64_t began_ns = cpu_ns();
    struct kiln_wanted wanted;
    struct kiln_name name;

    /* Found meanwhile; or nobody hears what is said, or a file is lacking: then it will be asked
     * again. */
    if (kiln_name_cache_get(&child->ready, &key, &name) == 1 || !kept || !kept->deep ||
        kept->ask.version != key.version || say_working(child, kept->ask.number) < 0 ||
        kiln_names_wants(kept->names, &wanted)) {
        forget_pending(child);
        return;
    }
    kiln_names_deadline(kept->names, kiln_clock_mono_ns() + STEP_MS * KILN_NS_PER_MS);
    (void)kiln_names_find(kept->names, key.address, &name);
    charge(child, kept, began_ns);
    if (name.shallow)
        return;
    forget_pending(child);
    kiln_name_cache_turn(&child->ready);
    (void)!kiln_name_cache_put(&child->ready, &key, &name, &name);
}

/* Nothing is left to do.  Tables stay, but not in memory. */
static bool rest(struct child *child)
{
    uint32_t rest_ms = child->greeting.rest_ms;

    if (rest_ms > IDLE_MS && child->spills) {
        if (is_asked(IDLE_MS))
            return true;
        malloc_trim(0);
        (void)kiln_spill(&child->spill);
        rest_ms -= IDLE_MS;
    }
    return is_asked(rest_ms);
}

/* Works until it is asked.  False: nobody asked for so long that it can end. */
static bool wait_for_ask(struct child *child)
{
    uint32_t pause_ms = child->greeting.eager ? 0 : STEP_MS;
    uint64_t pause_ns = kiln_clock_mono_ns() + STEP_MS * KILN_NS_PER_MS;

    while (child->n_pending > 0 && !is_over(child)) {
        bool rests = kiln_clock_mono_ns() >= pause_ns;

        if (is_asked(rests ? pause_ms : 0))
            return true;
        if (rests)
            pause_ns = kiln_clock_mono_ns() + STEP_MS * KILN_NS_PER_MS;
        work(child);
    }
    (void)!say_working(child, 0);
    return rest(child);
}

/* A file of /proc about this process, at the place that it has.  False: it cannot be had. */
static bool open_at(const char *path, int at)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fd == at)
        return fd >= 0;
    return dup2(fd, at) == at && close(fd) == 0;
}

/* Tables that are not in use go to the end of the scratch file, which is kept free for them. */
static void open_spill(struct child *child)
{
    struct kiln_scratch *scratch = &child->scratch;
    const uint64_t room = 2 * child->greeting.memory, max = scratch->max - 2 * room;
    struct kiln_spill spill = {.scratch = scratch->fd,
                               .maps = KILN_WIRE_MAPS,
                               .pagemap = KILN_WIRE_PAGEMAP,
                               .next = max,
                               .end = max + room,
                               .cut = max + 2 * room};

    if (scratch->max < 4 * room || !open_at("/proc/self/maps", KILN_WIRE_MAPS) ||
        !open_at("/proc/self/pagemap", KILN_WIRE_PAGEMAP) || kiln_spill_open(&spill) < 0)
        return;
    scratch->max = max;
    scratch->shared = true;
    child->spill = spill;
    child->spills = true;
}

static int greet(struct child *child)
{
    struct iovec iov = {&child->greeting, sizeof(child->greeting)};
    int scratch;
    int r;

    if (receive(&iov, 1, &scratch) != sizeof(child->greeting))
        return -EBADMSG;
    if (scratch >= 0 && scratch != KILN_WIRE_SCRATCH &&
        (dup2(scratch, KILN_WIRE_SCRATCH) < 0 || close(scratch) < 0))
        return -errno;
    if (scratch < 0)
        child->greeting.scratch = 0;
    child->scratch.fd = KILN_WIRE_SCRATCH;
    child->scratch.max = child->greeting.scratch;
    open_spill(child);
    r = kiln_confine(&(struct kiln_confinement){
        .fd = KILN_WIRE_SOCKET,
        .scratch = child->greeting.scratch ? KILN_WIRE_SCRATCH : -1,
        .last = child->spills ? KILN_WIRE_PAGEMAP : 0,
        .scratch_bytes = child->greeting.scratch,
        .memory_bytes = child->greeting.memory,
        .files = FILES_MAX,
    });
    /* From here on the resolver's clock runs. */
    return r < 0 ? r : transmit(&child->greeting, sizeof(child->greeting), 0);
}

int kiln_resolver_child(void)
{
    struct child *child = kiln_calloc(1, sizeof(*child));
    int r;

    if (!child || greet(child) < 0)
        return 1;
    kiln_name_cache_init(&child->ready, READY_BYTES);
    child->saved_ns = DEEP_FIRST_NS;
    child->counted_ns = kiln_clock_mono_ns();
    do
        r = wait_for_ask(child) ? serve(child) : 0;
    while (r == 1);
    return r < 0;
}
