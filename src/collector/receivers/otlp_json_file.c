/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of OTLP profiles in JSON, one message a line, as the file exporter writes them.
 *
 * Every poll_interval the patterns are looked up again, and of each file what came since is read,
 * as far as its lines are whole.  A line counts as read when its delivery has been accepted or can
 * never be; one that should be tried again is read again at the next look.  What was read is known
 * while the collector runs, whatever configuration it reads meanwhile, and not beyond: a file that
 * is shorter than it was, or another file by the same name, is read from its start.  One that was
 * renamed is read to its end.
 */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/otlp_json.h"
#include "collector/graph.h"
#include "collector/receivers/files.h"
#include "collector/receivers/poller.h"
#include "collector/registry.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)

struct file_settings {
    const struct kiln_node *include, *exclude;
    const char *start_at;
    uint64_t poll_interval_ns;
    const struct kiln_node *nothing; /* what is taken and means nothing */
};

struct tail {
    struct kiln_component component; /* first */
    struct kiln_poller poller;
    struct kiln_files files;
    bool from_end; /* of files that are there at the start */
};

/* ---- lines ---- */

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    (void)context;
    return kiln_otlp_json_decode(content, b, err);
}

/* All whole lines of what was read; returns how many bytes of it are done with. */
static size_t deliver_lines(struct tail *tail, struct kiln_str text, const char *path)
{
    const char *at = text.ptr, *end = text.ptr + text.len, *stop;

    while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) &&
           !atomic_load(&tail->poller.stopping)) {
        struct kiln_str line = kiln_str_trim((struct kiln_str){at, (size_t)(stop - at)});
        const struct kiln_source source = {.data = line, .decode = decode};

        if (line.len && !kiln_poller_deliver(&tail->poller, &source, path))
            break;
        at = stop + 1;
    }
    return (size_t)(at - text.ptr);
}

static void read_on(struct tail *tail, struct kiln_file *file, int fd, const char *path)
{
    struct kiln_buf text;
    ssize_t n = 1;
    size_t done;

    kiln_buf_init(&text, LINE_MAX_BYTES);
    while (n > 0 && kiln_buf_reserve(&text, 64 << 10)) {
        n = pread(fd, text.ptr + text.len, text.cap - text.len, file->offset + (off_t)text.len);
        text.len += n > 0 ? (size_t)n : 0;
    }
    done = text.len ? deliver_lines(tail, kiln_buf_str(&text), path) : 0;
    if (text.error == KILN_E_LIMIT && !memchr(text.ptr, '\n', text.len)) {
        kiln_log(tail->poller.log, KILN_LOG_ERROR, "a line of a file is too long and was left out",
                 "file", "%s", path, NULL);
        done = text.len;
    }
    file->offset += (off_t)done;
    kiln_buf_done(&text);
}

static bool visit(void *context, struct kiln_file *file, const char *path, int fd,
                  const struct stat *status)
{
    struct tail *tail = context;

    if (file->is_new && tail->from_end && !tail->files.seen->looked)
        file->offset = status->st_size;
    if (status->st_size < file->offset)
        file->offset = 0;
    if (status->st_size > file->offset)
        read_on(tail, file, fd, path);
    return !atomic_load(&tail->poller.stopping);
}

static void look(void *context)
{
    kiln_files_look(&((struct tail *)context)->files, visit, context);
}

/* ---- the receiver ---- */

static int start(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_poller_start(&((struct tail *)component)->poller, err);
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
    kiln_free(tail);
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

    r = r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r))
              : kiln_poller_init(&tail->poller, env, KILN_RECEIVER_OTLP, err);
    if (r < 0) {
        if (tail)
            destroy(&tail->component);
        return r;
    }
    tail->component.ops = &ops;
    tail->poller.interval_ns = s->poll_interval_ns;
    tail->poller.look = look;
    tail->poller.context = tail;
    tail->from_end = strcmp(s->start_at, "end") == 0;
    *ret_component = &tail->component;
    return 0;
}

static int read_settings(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct file_settings, member)                             \
    }
    static const struct kiln_field fields[] = {FIELD("include", NODE, include),
                                               FIELD("exclude", NODE, exclude),
                                               FIELD("start_at", TEXT, start_at),
                                               FIELD("poll_interval", DURATION, poll_interval_ns),
                                               FIELD("fingerprint_size", NODE, nothing),
                                               FIELD("max_concurrent_files", NODE, nothing),
                                               FIELD("replay_file", NODE, nothing)};
#undef FIELD
    static const struct kiln_refused_key refused[] = {
        {"storage", "what was read is known while the collector runs; leave this out"},
        {"compression", "files are read as they are; leave this out"},
    };
    struct file_settings *s = settings;
    int r = kiln_settings_refuse(node, refused, KILN_ARRAY_LEN(refused), err);

    *s = (struct file_settings){.start_at = "end", .poll_interval_ns = 200 * KILN_NS_PER_MS};
    if (r == 0)
        r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (r == 0)
        r = kiln_files_check(s->include, err);
    if (r == 0)
        r = kiln_files_check(s->exclude, err);
    if (r < 0)
        return r;
    if (!s->include)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "required argument `include` is empty: say which files, as patterns");
    if (strcmp(s->start_at, "end") != 0 && strcmp(s->start_at, "beginning") != 0)
        return kiln_node_fail(kiln_node_get(node, "start_at"), KILN_E_MALFORMED, err,
                              "start_at: \"%.20s\" is neither beginning nor end", s->start_at);
    return 0;
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
