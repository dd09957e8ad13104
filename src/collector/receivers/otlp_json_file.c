/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of OTLP profiles in JSON, one message a line, as the file exporter writes them.
 *
 * Every poll_interval the patterns are looked up again, and of each file what came since is read,
 * as far as its lines are whole; the last one may lack its end where the message is whole and
 * nobody has written for force_flush_period.  A line counts as read when its delivery has been
 * accepted or can never be; one that should be tried again is read again at the next look.
 *
 * What was read is known while the collector runs, whatever configuration it reads meanwhile, and
 * with `storage` beyond: files that came while none ran are read from their start.  So is one that
 * is shorter than it was (unless on_truncate says otherwise), or another file by the same name. One
 * that was renamed, or deleted (delete_after_read), is read to its end.  With replay_file all are
 * read at every look.
 */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/otlp_json.h"
#include "collector/extensions/file_storage.h"
#include "collector/graph.h"
#include "collector/receivers/offsets.h"
#include "collector/receivers/poller.h"
#include "collector/registry.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define STATE_MAX      ((size_t)1 << 20)

enum truncated { READ_WHOLE_FILE, IGNORE, READ_NEW };

struct file_settings {
    const struct kiln_node *include, *exclude;
    const char *start_at, *on_truncate, *storage, *encoding;
    uint64_t poll_interval_ns, force_flush_ns, older_ns, line_max;
    bool replay, delete;
    enum truncated truncated;
    const struct kiln_node *nothing; /* what is taken and means nothing */
};

struct tail {
    struct kiln_component component; /* first */
    struct kiln_poller poller;
    struct kiln_files files;
    const struct file_settings *settings;
    bool follows;  /* another receiver, which knew of files */
    bool read;     /* something, at this look */
    char *storage; /* where offsets are kept; NULL: nowhere */
};

/* ---- lines ---- */

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    (void)context;
    return kiln_otlp_json_decode(content, b, err);
}

/* Whether a text is one JSON object and all of it: braces that are no part of a string match. */
static bool is_whole(struct kiln_str text)
{
    uint32_t depth = 0;
    bool quoted = false;

    text = kiln_str_trim(text);
    if (!text.len || text.ptr[0] != '{')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '}'))
            depth += c == '{' ? 1 : (uint32_t)-1;
        if (depth == 0)
            return i + 1 == text.len;
    }
    return false;
}

/* False: it is to be tried again. */
static bool deliver_line(struct tail *tail, struct kiln_str line, const char *path)
{
    const struct kiln_source source = {.data = line, .decode = decode};

    if (line.len > tail->settings->line_max) {
        kiln_log(tail->poller.log, KILN_LOG_ERROR, "a line of a file is too long and was left out",
                 "file", "%s", path, NULL);
        return true;
    }
    return !line.len || kiln_poller_deliver(&tail->poller, &source, path);
}

/*
 * All whole lines of what was read, and, `at_end`, the rest of it where that is whole; returns how
 * many bytes of it are done with.
 */
static size_t deliver_lines(struct tail *tail, struct kiln_str text, const char *path, bool at_end)
{
    const char *at = text.ptr, *end = text.ptr + text.len;

    while (at < end && !atomic_load(&tail->poller.stopping)) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct kiln_str line = {at, (size_t)((stop ? stop : end) - at)};

        if (!stop && !(at_end && is_whole(line)))
            break;
        if (!deliver_line(tail, kiln_str_trim(line), path))
            break;
        at = stop ? stop + 1 : end;
    }
    return (size_t)(at - text.ptr);
}

static uint64_t age_ns(const struct stat *status)
{
    uint64_t now = kiln_clock_unix_ns(), then = kiln_timespec_ns(status->st_mtim);

    return then < now ? now - then : 0;
}

static void read_on(struct tail *tail, struct kiln_file *file, int fd, const char *path,
                    const struct stat *status)
{
    struct kiln_buf text;
    ssize_t n = 1;
    size_t done;

    kiln_buf_init(&text, LINE_MAX_BYTES);
    while (n > 0 && kiln_buf_reserve(&text, 64 << 10)) {
        n = pread(fd, text.ptr + text.len, text.cap - text.len, file->offset + (off_t)text.len);
        text.len += n > 0 ? (size_t)n : 0;
    }
    done = text.len ? deliver_lines(tail, kiln_buf_str(&text), path,
                                    n == 0 && age_ns(status) >= tail->settings->force_flush_ns)
                    : 0;
    if (text.error == KILN_E_LIMIT && !memchr(text.ptr, '\n', text.len)) {
        kiln_log(tail->poller.log, KILN_LOG_ERROR, "a line of a file is too long and was left out",
                 "file", "%s", path, NULL);
        done = text.len;
    }
    file->offset += (off_t)done;
    tail->read |= done > 0;
    kiln_buf_done(&text);
}

/* ---- files ---- */

/* Where to read on, before it is looked into. */
static void find_offset(const struct tail *tail, struct kiln_file *file, int fd,
                        const struct stat *status)
{
    const struct file_settings *s = tail->settings;

    kiln_offsets_prove(file, fd);
    if (file->is_new && strcmp(s->start_at, "end") == 0 && !tail->files.seen->looked)
        file->offset = status->st_size;
    if (s->replay)
        file->offset = 0;
    if (status->st_size < file->offset && s->truncated != IGNORE) {
        file->offset = s->truncated == READ_NEW ? status->st_size : 0;
        file->head = 0; /* it will begin otherwise */
    }
}

/* What is written to it from now on is still read: it is held open. */
static void delete_read(const struct tail *tail, const struct kiln_file *file, int fd,
                        const char *path)
{
    struct stat now;

    if (tail->settings->delete &&file->offset > 0 && fstat(fd, &now) == 0 &&
        now.st_size == file->offset && unlink(path) < 0 && errno != ENOENT)
        kiln_log(tail->poller.log, KILN_LOG_WARN, "a file that was read cannot be deleted", "file",
                 "%s", path, "reason", "%s", kiln_err_text(-errno), NULL);
}

static bool visit(void *context, struct kiln_file *file, const char *path, int fd,
                  const struct stat *status)
{
    struct tail *tail = context;

    if (tail->settings->older_ns && age_ns(status) > tail->settings->older_ns)
        return !atomic_load(&tail->poller.stopping);
    find_offset(tail, file, fd, status);
    if (status->st_size > file->offset)
        read_on(tail, file, fd, path, status);
    if (tail->storage)
        kiln_offsets_note(file, fd);
    delete_read(tail, file, fd, path);
    return !atomic_load(&tail->poller.stopping);
}

/* ---- what was read, on disk ---- */

static void save(struct tail *tail)
{
    struct kiln_err err = {0};
    struct kiln_buf text;

    kiln_buf_init(&text, STATE_MAX);
    kiln_offsets_write(&tail->files, &text);
    if (text.error)
        kiln_err_set(&err, text.error, NULL, "%s", kiln_err_text(text.error));
    else
        (void)!kiln_file_write(tail->storage, kiln_buf_str(&text), &err);
    if (err.code < 0)
        kiln_log(tail->poller.log, KILN_LOG_ERROR, "how far files were read cannot be written down",
                 "file", "%s", tail->storage, "reason", "%s", err.text, NULL);
    kiln_buf_done(&text);
}

static int load(struct tail *tail, struct kiln_err *err)
{
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, STATE_MAX);
    r = kiln_file_read(tail->storage, &text, NULL);
    if (r == 0)
        r = kiln_offsets_read(&tail->files, kiln_buf_str(&text));
    kiln_buf_done(&text);
    return r < 0 && r != -ENOENT
               ? kiln_err_set(err, r, tail->storage, "how far files were read cannot be known: %s",
                              kiln_err_text(r))
               : 0;
}

static void look(void *context)
{
    struct tail *tail = context;
    bool first = !tail->files.seen->looked;

    tail->read = false;
    kiln_files_look(&tail->files, visit, tail);
    if (tail->storage && (tail->read || first))
        save(tail);
}

/* ---- the receiver ---- */

static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct tail *tail = (struct tail *)component;
    int r = tail->storage && !tail->follows ? load(tail, err) : 0;

    return r < 0 ? r : kiln_poller_start(&tail->poller, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    (void)deadline_ns; /* exporters let go of what it waits for */
    kiln_poller_stop(&((struct tail *)component)->poller);
}

static void destroy(struct kiln_component *component)
{
    struct tail *tail = (struct tail *)component;

    kiln_files_done(&tail->files);
    kiln_poller_done(&tail->poller);
    kiln_free(tail->storage);
    kiln_free(tail);
}

static int find_storage(struct tail *tail, const struct kiln_component_env *env, const char *id,
                        struct kiln_err *err)
{
    const struct kiln_file_storage *storage;

    if (!id)
        return 0;
    storage = kiln_file_storage_find(env, "storage", id, err);
    if (!storage)
        return KILN_E_MALFORMED;
    tail->storage = kiln_malloc(KILN_STORAGE_PLACE_BYTES);
    if (!tail->storage)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    kiln_file_storage_place(storage, "receiver", env->id, "offsets", tail->storage);
    return 0;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    const struct file_settings *s = settings;
    const struct kiln_files_opts files = {
        .include = s->include, .exclude = s->exclude, .holds = true, .log = env->log};
    const struct tail *before = (struct tail *)kiln_graph_receiver_before(
        env->graph, env->id, &kiln_otlp_json_file_receiver_type);
    struct tail *tail = kiln_calloc(1, sizeof(*tail));
    int r = tail ? kiln_files_init(&tail->files, &files, before ? &before->files : NULL) : -ENOMEM;

    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    if (r == 0)
        r = kiln_poller_init(&tail->poller, env, KILN_RECEIVER_OTLP, err);
    if (r == 0)
        r = find_storage(tail, env, s->storage, err);
    if (r < 0) {
        if (tail)
            destroy(&tail->component);
        return r;
    }
    tail->component.ops = &ops;
    tail->poller.interval_ns = s->poll_interval_ns;
    tail->poller.look = look;
    tail->poller.context = tail;
    tail->settings = s;
    tail->follows = before != NULL;
    *ret_component = &tail->component;
    return 0;
}

/* ---- settings ---- */

/* The place of a word among several; fails where it is none of them. */
static int read_word(const struct kiln_node *node, const char *key, const char *word,
                     const char *const *words, struct kiln_err *err)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    return kiln_node_fail(kiln_node_get(node, key), KILN_E_MALFORMED, err,
                          "%s: \"%.20s\" is not known here (say %s)", key, word, words[0]);
}

static int check(const struct kiln_node *node, struct file_settings *s, struct kiln_err *err)
{
    static const char *const encodings[] = {"utf-8", "utf-8-raw", "ascii", "nop", "", NULL};
    static const char *const truncated[] = {"read_whole_file", "ignore", "read_new", NULL};
    int r;

    if (!s->include)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "required argument `include` is empty: say which files, as patterns");
    if (strcmp(s->start_at, "end") != 0 && strcmp(s->start_at, "beginning") != 0)
        return kiln_node_fail(kiln_node_get(node, "start_at"), KILN_E_MALFORMED, err,
                              "start_at: \"%.20s\" is neither beginning nor end", s->start_at);
    if (s->delete &&(strcmp(s->start_at, "end") == 0 || s->replay))
        return kiln_node_fail(kiln_node_get(node, "delete_after_read"), KILN_E_MALFORMED, err,
                              "'delete_after_read' cannot be used with 'start_at: end' or "
                              "'replay_file': what was not read would be gone");
    if (s->replay && s->storage)
        return kiln_node_fail(kiln_node_get(node, "storage"), KILN_E_MALFORMED, err,
                              "'replay_file' reads everything anew, so that there is nothing to "
                              "keep in a 'storage'");
    if (s->line_max == 0 || s->line_max > LINE_MAX_BYTES)
        return kiln_node_fail(kiln_node_get(node, "max_log_size"), KILN_E_MALFORMED, err,
                              "'max_log_size' is from 1 to 64MiB");
    r = read_word(node, "encoding", s->encoding, encodings, err);
    if (r < 0)
        return r;
    r = read_word(node, "on_truncate", s->on_truncate, truncated, err);
    s->truncated = r < 0 ? READ_WHOLE_FILE : (enum truncated)r;
    return r < 0 ? r : 0;
}

#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct file_settings, member)                             \
    }
/* Of those that mean nothing, some say what attributes records of logs get, others tune. */
static const struct kiln_field fields[] = {
    FIELD("include", NODE, include),
    FIELD("exclude", NODE, exclude),
    FIELD("exclude_older_than", DURATION, older_ns),
    FIELD("start_at", TEXT, start_at),
    FIELD("poll_interval", DURATION, poll_interval_ns),
    FIELD("force_flush_period", DURATION, force_flush_ns),
    FIELD("max_log_size", SIZE, line_max),
    FIELD("on_truncate", TEXT, on_truncate),
    FIELD("encoding", TEXT, encoding),
    FIELD("storage", TEXT, storage),
    FIELD("replay_file", BOOL, replay),
    FIELD("delete_after_read", BOOL, delete),
    FIELD("max_log_size_behavior", NODE, nothing),
    FIELD("fingerprint_size", NODE, nothing),
    FIELD("initial_buffer_size", NODE, nothing),
    FIELD("max_concurrent_files", NODE, nothing),
    FIELD("max_batches", NODE, nothing),
    FIELD("polls_to_archive", NODE, nothing),
    FIELD("acquire_fs_lock", NODE, nothing),
    FIELD("file_cache_advise", NODE, nothing),
    FIELD("skip_unmodified_files", NODE, nothing),
    FIELD("preserve_leading_whitespaces", NODE, nothing),
    FIELD("preserve_trailing_whitespaces", NODE, nothing),
    FIELD("include_file_name", NODE, nothing),
    FIELD("include_file_path", NODE, nothing),
    FIELD("include_file_name_resolved", NODE, nothing),
    FIELD("include_file_path_resolved", NODE, nothing),
    FIELD("include_file_owner_name", NODE, nothing),
    FIELD("include_file_owner_group_name", NODE, nothing),
    FIELD("include_file_permissions", NODE, nothing),
    FIELD("include_file_record_number", NODE, nothing),
    FIELD("include_file_record_offset", NODE, nothing),
};
#undef FIELD

static int read_settings(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_refused_key refused[] = {
        {"compression", "files are read as they are; leave this out"},
        {"multiline", "a message is a line; leave this out"},
        {"header", "files have no header; leave this out"},
        {"ordering_criteria", "all files are read, in the order of their names; leave this out"},
    };
    struct file_settings *s = settings;
    int r = kiln_settings_refuse(node, refused, KILN_ARRAY_LEN(refused), err);

    *s = (struct file_settings){.start_at = "end",
                                .on_truncate = "read_whole_file",
                                .encoding = "utf-8",
                                .line_max = LINE_MAX_BYTES,
                                .force_flush_ns = 500 * KILN_NS_PER_MS,
                                .poll_interval_ns = 200 * KILN_NS_PER_MS};
    if (r == 0)
        r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (r == 0)
        r = kiln_files_check(s->include, err);
    if (r == 0)
        r = kiln_files_check(s->exclude, err);
    return r < 0 ? r : check(node, s, err);
}

const struct kiln_component_type kiln_otlp_json_file_receiver_type = {
    .name = "otlp_json_file",
    .aliases = "otlpjsonfile",
    .kind = KILN_RECEIVER,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct file_settings),
    .read = read_settings,
    .make = make,
};
