/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of OTLP profiles in JSON, one message a line, as the file exporter writes them.
 *
 * Every poll_interval the patterns are looked up again, and of each file what came since is read,
 * as far as its lines are whole.  A line counts as read when its delivery has been accepted or can
 * never be; one that should be tried again is read again at the next look.  What was read is known
 * while the collector runs, and not beyond: a file that is shorter than it was, or another file by
 * the same name, is read from its start.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "codec/otlp_json.h"
#include "collector/registry.h"
#include "collector/settings.h"
#include "pipeline/receivers/arrival.h"

enum { FILES_MAX = 4096 };
#define LINE_MAX_BYTES ((size_t)64 << 20)

struct file_settings {
    const struct kiln_node *include, *exclude;
    const char *start_at;
    uint64_t poll_interval_ns;
    const struct kiln_node *nothing; /* what is taken and means nothing */
};

struct file {
    struct file *next;
    dev_t dev;
    ino_t ino;
    off_t offset; /* up to which it was read */
    bool seen;    /* at this look */
};

struct tail {
    struct kiln_component component; /* first */
    const struct file_settings *settings;
    struct kiln_receivers *receivers;
    struct kiln_log *log;
    pthread_t thread;
    bool started;
    bool looked; /* files that come later are read from their start */
    struct file *files;
    uint32_t n_files;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    bool stopping, ended;
    int code; /* of the delivery that ended */
};

/* ---- a line ---- */

struct line {
    struct kiln_arrival arrival; /* first */
    struct kiln_request request;
    struct tail *tail;
};

static void finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    struct tail *tail = ((struct line *)arrival)->tail;

    kiln_receivers_answered(arrival->owner, KILN_RECEIVER_OTLP, outcome->code,
                            &((struct line *)arrival)->request);
    pthread_mutex_lock(&tail->lock);
    tail->ended = true;
    tail->code = outcome->code;
    pthread_cond_broadcast(&tail->changed);
    pthread_mutex_unlock(&tail->lock);
}

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    (void)context;
    return kiln_otlp_json_decode(content, b, err);
}

static bool is_worth_another_try(int code)
{
    enum kiln_outcome_kind kind = kiln_outcome_kind(code);

    return kind == KILN_OUTCOME_BUSY || kind == KILN_OUTCOME_STORAGE ||
           kind == KILN_OUTCOME_STOPPING;
}

/* Delivers a line and waits for how it went; false: it is to be read again. */
static bool deliver(struct tail *tail, struct kiln_str text, const char *path)
{
    struct line line = {.tail = tail};
    struct kiln_source source = {.data = text, .decode = decode};
    struct kiln_err err = {0};
    int r, code;

    line.request.body = text;
    line.request.received_ns = kiln_clock_unix_ns();
    tail->ended = false;
    kiln_arrival_init(&line.arrival, tail->receivers, KILN_RECEIVER_OTLP, &line.request);
    line.arrival.finish = finish;
    r = kiln_arrival_take(&line.arrival, &source, &err);
    if (r == 0 && line.arrival.n_samples)
        kiln_arrival_send(&line.arrival);
    else
        kiln_arrival_refuse(&line.arrival, r, &err);
    pthread_mutex_lock(&tail->lock);
    while (!tail->ended)
        pthread_cond_wait(&tail->changed, &tail->lock);
    code = tail->code;
    pthread_mutex_unlock(&tail->lock);
    if (code < 0 && !is_worth_another_try(code))
        kiln_log(tail->log, KILN_LOG_WARN, "a line of a file was not taken", "file", "%s", path,
                 "error", "%s", err.text[0] ? err.text : kiln_err_text(code), NULL);
    return code == 0 || !is_worth_another_try(code);
}

/* ---- files ---- */

static bool must_stop(struct tail *tail)
{
    bool stopping;

    pthread_mutex_lock(&tail->lock);
    stopping = tail->stopping;
    pthread_mutex_unlock(&tail->lock);
    return stopping;
}

static struct file *file_of(struct tail *tail, const struct stat *st)
{
    struct file *file = tail->files;

    while (file && (file->dev != st->st_dev || file->ino != st->st_ino))
        file = file->next;
    if (!file && tail->n_files < FILES_MAX) {
        file = kiln_calloc(1, sizeof(*file));
        if (!file)
            return NULL;
        file->dev = st->st_dev;
        file->ino = st->st_ino;
        if (!tail->looked && strcmp(tail->settings->start_at, "end") == 0)
            file->offset = st->st_size;
        file->next = tail->files;
        tail->files = file;
        tail->n_files++;
    }
    return file;
}

/* All whole lines of what was read; returns how many bytes of it are done with. */
static size_t deliver_lines(struct tail *tail, struct kiln_str text, const char *path)
{
    const char *at = text.ptr, *end = text.ptr + text.len, *stop;

    while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) && !must_stop(tail)) {
        struct kiln_str line = kiln_str_trim((struct kiln_str){at, (size_t)(stop - at)});

        if (line.len && !deliver(tail, line, path))
            break;
        at = stop + 1;
    }
    return (size_t)(at - text.ptr);
}

static void read_on(struct tail *tail, struct file *file, int fd, const char *path)
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
    if (!done && text.error == KILN_E_LIMIT) {
        kiln_log(tail->log, KILN_LOG_ERROR, "a line of a file is too long and was left out", "file",
                 "%s", path, NULL);
        done = text.len;
    }
    file->offset += (off_t)done;
    kiln_buf_done(&text);
}

static void look_at(struct tail *tail, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct file *file = NULL;
    struct stat st;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        file = file_of(tail, &st);
    if (file && !file->seen) {
        file->seen = true;
        if (st.st_size < file->offset)
            file->offset = 0;
        if (st.st_size > file->offset)
            read_on(tail, file, fd, path);
    }
    close(fd);
}

static bool is_excluded(const struct tail *tail, const char *path)
{
    struct kiln_str pattern;
    char text[1024];
    glob_t found;

    for (struct kiln_texts at = {.node = tail->settings->exclude};
         kiln_texts_next(&at, &pattern);) {
        bool same = false;

        snprintf(text, sizeof(text), "%.*s", (int)pattern.len, pattern.ptr);
        if (glob(text, 0, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc; i++)
            same |= strcmp(found.gl_pathv[i], path) == 0;
        globfree(&found);
        if (same)
            return true;
    }
    return false;
}

static void forget_gone(struct tail *tail)
{
    struct file **at = &tail->files, *file;

    while ((file = *at)) {
        if (file->seen) {
            file->seen = false;
            at = &file->next;
            continue;
        }
        *at = file->next;
        tail->n_files--;
        kiln_free(file);
    }
}

static void look(struct tail *tail)
{
    struct kiln_str pattern;
    char text[1024];
    glob_t found;

    for (struct kiln_texts at = {.node = tail->settings->include};
         kiln_texts_next(&at, &pattern);) {
        snprintf(text, sizeof(text), "%.*s", (int)pattern.len, pattern.ptr);
        if (glob(text, 0, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc && !must_stop(tail); i++)
            if (!is_excluded(tail, found.gl_pathv[i]))
                look_at(tail, found.gl_pathv[i]);
        globfree(&found);
    }
    forget_gone(tail);
    tail->looked = true;
}

static void *run(void *arg)
{
    struct tail *tail = arg;

    while (!must_stop(tail)) {
        struct timespec until;

        look(tail);
        until = kiln_timespec_of(kiln_clock_unix_ns() + tail->settings->poll_interval_ns);
        pthread_mutex_lock(&tail->lock);
        while (!tail->stopping &&
               pthread_cond_timedwait(&tail->changed, &tail->lock, &until) != ETIMEDOUT)
            ;
        pthread_mutex_unlock(&tail->lock);
    }
    return NULL;
}

/* ---- the receiver ---- */

static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct tail *tail = (struct tail *)component;
    int r = kiln_thread_start("kiln-files", run, tail, &tail->thread);

    tail->started = r == 0;
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    struct tail *tail = (struct tail *)component;

    (void)deadline_ns;
    pthread_mutex_lock(&tail->lock);
    tail->stopping = true;
    pthread_cond_broadcast(&tail->changed);
    pthread_mutex_unlock(&tail->lock);
    if (tail->started)
        pthread_join(tail->thread, NULL);
    tail->started = false;
}

static void destroy(struct kiln_component *component)
{
    struct tail *tail = (struct tail *)component;

    forget_gone(tail); /* nothing is seen between two looks: all of them */
    kiln_receivers_free(tail->receivers);
    pthread_cond_destroy(&tail->changed);
    pthread_mutex_destroy(&tail->lock);
    kiln_free(tail);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    struct tail *tail = kiln_calloc(1, sizeof(*tail));
    struct kiln_receivers_opts opts = {.next = env->next[KILN_SIGNAL_PROFILES],
                                       .pool = env->pool,
                                       .waits = true,
                                       .metrics = env->metrics,
                                       .log = env->log};

    if (!tail || kiln_receivers_new(&opts, &tail->receivers) < 0) {
        kiln_free(tail);
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    }
    tail->component.ops = &ops;
    tail->settings = settings;
    tail->log = env->log;
    pthread_mutex_init(&tail->lock, NULL);
    pthread_cond_init(&tail->changed, NULL);
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
        r = kiln_settings_texts(s->include, err);
    if (r == 0)
        r = kiln_settings_texts(s->exclude, err);
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
