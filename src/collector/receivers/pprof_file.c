/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of profiles, in pprof or any other format that Kiln reads.
 *
 * Every collection_interval the patterns are looked up again.  A file is read when it is new and
 * when it has changed (the Collector reads all of them every time); what should be tried again is
 * read again at the next look.  What was read is known while the collector runs, whatever
 * configuration it reads meanwhile, and not beyond.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "collector/receivers/files.h"
#include "collector/receivers/pprof_int.h"

#define FILE_MAX ((size_t)64 << 20)

struct file_part {
    struct kiln_component component; /* first */
    struct kiln_poller poller;
    struct kiln_files files;
};

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    struct kiln_decode_info info;

    (void)context;
    return kiln_decode_into(content, &(struct kiln_decode_opts){0}, b, &info, err);
}

static bool is_as_it_was(const struct kiln_file *file, const struct stat *status)
{
    return !file->is_new && file->offset == status->st_size &&
           file->changed.tv_sec == status->st_mtim.tv_sec &&
           file->changed.tv_nsec == status->st_mtim.tv_nsec;
}

/* Whether it is done with. */
static bool take(struct file_part *part, const char *path)
{
    struct kiln_source source = {.keeps = true, .decode = decode};
    struct kiln_err err = {0};
    struct kiln_buf text;
    bool done = true;

    kiln_buf_init(&text, FILE_MAX);
    if (kiln_file_read(path, &text, &err) < 0) {
        kiln_log(part->poller.log, KILN_LOG_WARN, "a file cannot be read", "file", "%s", path,
                 "error", "%s", err.text, NULL);
    } else if (text.len) {
        source.data = kiln_buf_str(&text);
        source.compression = kiln_compression_of(source.data);
        done = kiln_poller_deliver(&part->poller, &source, path);
    }
    kiln_buf_done(&text);
    return done;
}

static bool visit(void *context, struct kiln_file *file, const char *path, int fd,
                  const struct stat *status)
{
    struct file_part *part = context;

    (void)fd;
    if (!is_as_it_was(file, status) && take(part, path)) {
        file->offset = status->st_size;
        file->changed = status->st_mtim;
    }
    return !atomic_load(&part->poller.stopping);
}

static void look(void *context)
{
    kiln_files_look(&((struct file_part *)context)->files, visit, context);
}

/* ---- the component ---- */

static int start(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_poller_start(&((struct file_part *)component)->poller, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    (void)deadline_ns; /* exporters let go of what it waits for */
    kiln_poller_stop(&((struct file_part *)component)->poller);
}

static void destroy(struct kiln_component *component)
{
    struct file_part *part = (struct file_part *)component;

    kiln_files_done(&part->files);
    kiln_poller_done(&part->poller);
    kiln_free(part);
}

int kiln_pprof_file_make(const struct kiln_component_env *env,
                         const struct kiln_pprof_file_settings *settings,
                         const struct kiln_component *before, struct kiln_component **ret_component,
                         struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    const struct kiln_files_opts files = {.include = settings->include, .log = env->log};
    struct file_part *part = kiln_calloc(1, sizeof(*part));
    int r = part ? kiln_files_init(&part->files, &files,
                                   before ? &((const struct file_part *)before)->files : NULL)
                 : -ENOMEM;

    r = r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r))
              : kiln_poller_init(&part->poller, env, KILN_RECEIVER_PPROF, err);
    if (r < 0) {
        if (part)
            destroy(&part->component);
        return r;
    }
    part->component.ops = &ops;
    part->poller.delay_ns = settings->poll.delay_ns;
    part->poller.interval_ns = settings->poll.interval_ns;
    part->poller.look = look;
    part->poller.context = part;
    *ret_component = &part->component;
    return 0;
}

int kiln_pprof_file_read(const struct kiln_node *node, struct kiln_pprof_file_settings *ret,
                         struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        KILN_POLL_FIELDS(struct kiln_pprof_file_settings, poll),
        {"include", KILN_FIELD_NODE, offsetof(struct kiln_pprof_file_settings, include)},
    };
    int r;

    ret->poll = kiln_poll_default;
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), ret, err);
    if (r == 0)
        r = kiln_poll_check(node, &ret->poll, err);
    if (r == 0)
        r = kiln_files_check(ret->include, err);
    if (r == 0 && !ret->include)
        return kiln_err_set(err, KILN_E_MALFORMED, "file",
                            "\"include\" is empty: say which files, as a pattern");
    return r;
}
