/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maps      START-END PERMS OFFSET MAJOR:MINOR INODE      PATH      numbers but INODE hexadecimal
 * stat      PID (NAME) STATE PPID ... 20th: threads ... 22nd: start, in clock ticks; NAME may
 *           hold anything, ")" too: the last one counts
 * status    lines "Key:\tvalue"; Uid: real, effective, saved, file; NStgid: one a PID namespace,
 *           innermost last
 * cgroup    lines ID:CONTROLLERS:PATH; the unified hierarchy is "0::PATH"
 * environ   NAME=value, each ended by NUL
 */
#include "host/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

enum { LINE_MAX_BYTES = 20 << 10, CHUNK = 64 << 10 };

/* The next word of a line, words being parted by blanks; empty: no more. */
static struct kiln_str next_word(struct kiln_str *rest)
{
    struct kiln_str word;

    while (rest->len && (*rest->ptr == ' ' || *rest->ptr == '\t')) {
        rest->ptr++;
        rest->len--;
    }
    word = (struct kiln_str){rest->ptr, 0};
    while (rest->len && *rest->ptr != ' ' && *rest->ptr != '\t') {
        rest->ptr++;
        rest->len--;
        word.len++;
    }
    return word;
}

/* Digits alone: what the kernel writes has neither signs nor prefixes. */
static int hex(struct kiln_str s, uint64_t *ret)
{
    uint64_t value = 0;

    if (!s.len || s.len > 16)
        return KILN_E_MALFORMED;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return KILN_E_MALFORMED;
    }
    *ret = value;
    return 0;
}

static int decimal(struct kiln_str s, uint64_t max, uint64_t *ret)
{
    uint64_t value;

    if (!s.len || *s.ptr == '+' || *s.ptr == '-' || kiln_str_parse_u64(s, &value) < 0 ||
        value > max)
        return KILN_E_MALFORMED;
    *ret = value;
    return 0;
}

static uint32_t decimal32(struct kiln_str s, uint32_t otherwise)
{
    uint64_t value;

    return decimal(s, UINT32_MAX, &value) < 0 ? otherwise : (uint32_t)value;
}

int kiln_procfs_parse_map(struct kiln_str line, struct kiln_procfs_map *ret_map)
{
    struct kiln_procfs_map map = {0};
    struct kiln_str range = next_word(&line), perms = next_word(&line);
    struct kiln_str offset = next_word(&line), device = next_word(&line), inode = next_word(&line);
    struct kiln_str start = kiln_str_cut(&range, '-'), major = kiln_str_cut(&device, ':');
    uint64_t high, low;

    if (hex(start, &map.start) < 0 || hex(range, &map.end) < 0 || map.start >= map.end ||
        perms.len < 4 || hex(offset, &map.offset) < 0 || hex(major, &high) < 0 ||
        hex(device, &low) < 0 || decimal(inode, UINT64_MAX, &map.inode) < 0)
        return KILN_E_MALFORMED;
    map.major = (uint32_t)high;
    map.minor = (uint32_t)low;
    map.executable = perms.ptr[2] == 'x';
    while (line.len && *line.ptr == ' ') {
        line.ptr++;
        line.len--;
    }
    map.path = line;
    *ret_map = map;
    return 0;
}

bool kiln_procfs_unescape(struct kiln_str path, char *to, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < path.len; i++) {
        bool newline = path.len - i >= 4 && memcmp(path.ptr + i, "\\012", 4) == 0;

        if (n + 1 >= size || !path.ptr[i])
            return false;
        to[n++] = newline ? '\n' : path.ptr[i];
        i += newline ? 3 : 0;
    }
    to[n] = '\0';
    return true;
}

/* "36 35 0:31 / /mnt/x rw,relatime shared:1 - fuse.sshfs source rw": fields with a tag end at "-".
 */
int kiln_procfs_parse_mount(struct kiln_str line, struct kiln_procfs_mount *ret_mount)
{
    struct kiln_procfs_mount mount = {0};

    for (int i = 0; i < 5; i++)
        mount.point = next_word(&line);
    while (line.len && !kiln_str_eq(next_word(&line), KILN_STR("-")))
        ;
    mount.type = next_word(&line);
    if (!mount.point.len || !mount.type.len)
        return KILN_E_MALFORMED;
    *ret_mount = mount;
    return 0;
}

struct kiln_str kiln_procfs_undelete(struct kiln_str path)
{
    struct kiln_str mark = KILN_STR(" (deleted)");

    if (path.len > mark.len && kiln_str_ends(path, mark))
        path.len -= mark.len;
    return path;
}

int kiln_procfs_parse_stat(struct kiln_str text, struct kiln_procfs_stat *ret_stat)
{
    const char *close = text.len ? memrchr(text.ptr, ')', text.len) : NULL;
    struct kiln_procfs_stat stat = {0};
    struct kiln_str rest, word;
    uint64_t value;

    if (!close)
        return KILN_E_MALFORMED;
    rest = (struct kiln_str){close + 1, text.len - (size_t)(close + 1 - text.ptr)};
    for (int field = 3; field <= 22; field++) {
        word = next_word(&rest);
        if (!word.len)
            return KILN_E_MALFORMED;
        if (field == 3)
            stat.state = *word.ptr;
        else if (field == 4)
            stat.parent_pid = decimal32(word, 0);
        else if (field == 20)
            stat.threads = decimal32(word, 0);
    }
    if (decimal(word, UINT64_MAX, &value) < 0)
        return KILN_E_MALFORMED;
    stat.start_ticks = value;
    *ret_stat = stat;
    return 0;
}

int kiln_procfs_stat(int dir, struct kiln_procfs_stat *ret_stat)
{
    char text[KILN_PROCFS_TEXT_MAX];
    int64_t n = kiln_procfs_read(dir, "stat", text, sizeof(text));

    return n < 0 ? (int)n : kiln_procfs_parse_stat((struct kiln_str){text, (size_t)n}, ret_stat);
}

/* What is less than a tick was cut off, and clocks are read one after the other. */
bool kiln_procfs_began(const struct kiln_procfs_stat *stat, uint64_t start_ns)
{
    uint64_t ticks = start_ns / (KILN_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));

    return !start_ns || (stat->start_ticks + 1 >= ticks && stat->start_ticks <= ticks + 1);
}

void kiln_procfs_parse_status(struct kiln_str text, struct kiln_procfs_status *ret_status)
{
    *ret_status = (struct kiln_procfs_status){.uid = UINT32_MAX};
    while (text.len) {
        struct kiln_str line = kiln_str_cut(&text, '\n');
        struct kiln_str key = kiln_str_cut(&line, ':');

        if (kiln_str_eq(key, KILN_STR("PPid"))) {
            ret_status->parent_pid = decimal32(next_word(&line), 0);
        } else if (kiln_str_eq(key, KILN_STR("Uid"))) {
            next_word(&line);
            ret_status->uid = decimal32(next_word(&line), UINT32_MAX);
        } else if (kiln_str_eq(key, KILN_STR("NStgid"))) {
            for (struct kiln_str word = next_word(&line); word.len; word = next_word(&line))
                ret_status->ns_pid = decimal32(word, 0);
        }
    }
}

struct kiln_str kiln_procfs_parse_cgroup(struct kiln_str text)
{
    struct kiln_str unified = KILN_STR_NONE, other = KILN_STR_NONE;

    while (text.len) {
        struct kiln_str line = kiln_str_cut(&text, '\n');
        struct kiln_str id = kiln_str_cut(&line, ':'), controllers = kiln_str_cut(&line, ':');

        if (kiln_str_eq(id, KILN_STR("0")) && !controllers.len)
            unified = line;
        else if (line.len > other.len)
            other = line;
    }
    return unified.len > 1 || other.len <= 1 ? unified : other;
}

static bool is_one_of(struct kiln_str name, const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (kiln_str_eq(name, kiln_str_of(names[i])))
            return true;
    return false;
}

struct kiln_str kiln_procfs_next_env(struct kiln_str *rest, const char *const *names, uint32_t n)
{
    while (rest->len) {
        struct kiln_str pair = kiln_str_cut(rest, '\0'), value = pair;
        struct kiln_str name = kiln_str_cut(&value, '=');

        if (value.ptr && is_one_of(name, names, n))
            return pair;
    }
    return KILN_STR_NONE;
}

int64_t kiln_procfs_read(int dir, const char *name, void *to, size_t size)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    ssize_t got;

    if (fd < 0)
        return -errno;
    do {
        got = read(fd, to, size);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        got = -errno;
    close(fd);
    return got;
}

int64_t kiln_procfs_link(int dir, const char *name, char *to, size_t size)
{
    ssize_t n = readlinkat(dir, name, to, size);

    if (n < 0)
        return -errno;
    if ((size_t)n >= size)
        return -ENAMETOOLONG;
    to[n] = '\0';
    return n;
}

struct lines {
    char *buf;
    size_t used;
    bool skipping; /* the rest of a line that is too long */
    bool (*visit)(void *context, struct kiln_str line);
    void *context;
};

/* Shows the whole lines of the buffer and keeps what is left.  False: no more is wanted. */
static bool show(struct lines *lines)
{
    struct kiln_str rest = {lines->buf, lines->used};
    const char *end;

    while (rest.len && (end = memchr(rest.ptr, '\n', rest.len))) {
        struct kiln_str line = {rest.ptr, (size_t)(end - rest.ptr)};

        rest.len -= line.len + 1;
        rest.ptr = end + 1;
        if (!lines->skipping && line.len <= LINE_MAX_BYTES && !lines->visit(lines->context, line))
            return false;
        lines->skipping = false;
    }
    if (rest.len > LINE_MAX_BYTES) {
        lines->skipping = true;
        rest.len = 0;
    }
    memmove(lines->buf, rest.ptr, rest.len);
    lines->used = rest.len;
    return true;
}

static int read_lines(int fd, uint64_t max, struct lines *lines)
{
    for (uint64_t total = 0; total < max;) {
        ssize_t got = read(fd, lines->buf + lines->used, CHUNK - lines->used);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        total += (uint64_t)got;
        lines->used += (size_t)got;
        if (!show(lines))
            return 0;
    }
    return KILN_E_LIMIT;
}

int kiln_procfs_lines(int dir, const char *name, uint64_t max,
                      bool (*visit)(void *context, struct kiln_str line), void *context)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct lines lines = {.visit = visit, .context = context};
    int r = -ENOMEM;

    if (fd < 0)
        return -errno;
    lines.buf = kiln_malloc(CHUNK);
    if (lines.buf)
        r = read_lines(fd, max, &lines);
    kiln_free(lines.buf);
    close(fd);
    return r;
}

struct number {
    struct kiln_str key;
    int base;
    int r;
    uint64_t value;
};

static bool look_for(void *context, struct kiln_str line)
{
    struct number *wanted = context;
    struct kiln_str key = kiln_str_cut(&line, ':'), word = next_word(&line);

    if (!kiln_str_eq(key, wanted->key))
        return true;
    wanted->r =
        wanted->base == 16 ? hex(word, &wanted->value) : decimal(word, UINT64_MAX, &wanted->value);
    return false;
}

int kiln_procfs_number(const char *path, const char *key, int base, uint64_t *ret)
{
    struct number wanted = {.key = kiln_str_of(key), .base = base, .r = -ENOENT};
    int r = kiln_procfs_lines(AT_FDCWD, path, UINT64_MAX, look_for, &wanted);

    if (r == 0)
        r = wanted.r;
    if (r == 0)
        *ret = wanted.value;
    return r;
}
