/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector becomes a program with libkiln in front of it, as `kiln run` starts others: by
 * executing itself once more, before it has started anything.  libkiln then serves /debug/pprof on
 * a socket that only this user can open, and the components ask there (collector/own.h).
 *
 * What stands in the way of that is no reason not to run: components say what is missing.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/collector.h"
#include "cli/preload.h"
#include "collector/own.h"

/* Set in the program that is executed: a second time would be no better. */
#define TRIED     "KILN_COLLECTOR_OWN"
#define WORDS_MAX (4u << 20)

static void say_no(struct kiln_log *log, const char *why)
{
    kiln_log(log, KILN_LOG_WARN, "the collector cannot profile itself", "reason", "%s", why, NULL);
}

/* The words of our command line, one after the other in `text`; NULL without memory. */
static char **own_words(struct kiln_buf *text)
{
    char **words = NULL, **grown;
    size_t n = 0;

    if (kiln_file_read("/proc/self/cmdline", text, NULL) < 0)
        return NULL;
    kiln_buf_putc(text, '\0');
    for (size_t at = 0; !text->error && at + 1 < text->len; at += strlen(text->ptr + at) + 1) {
        grown = kiln_realloc(words, (n + 2) * sizeof(*words));
        if (!grown)
            break;
        words = grown;
        words[n++] = text->ptr + at;
        words[n] = NULL;
    }
    return words;
}

static bool find_library(struct kiln_log *log, const char *self, char ret_path[PATH_MAX])
{
    struct kiln_program program;
    struct kiln_err err = {0};
    int r = kiln_program_look(self, &program, &err);

    if (r == 0 && program.bar != KILN_BAR_NONE)
        r = kiln_err_set(&err, -EINVAL, NULL, "this program %s", kiln_program_why(program.bar));
    else if (r == 0 && program.sanitizer)
        r = kiln_err_set(&err, -EINVAL, NULL, "this program is built with a sanitizer");
    else if (r == 0)
        r = kiln_preload_find(NULL, ret_path, &err);
    if (r < 0)
        say_no(log, err.text);
    return r == 0;
}

/* A folder that others cannot look into; libkiln takes its socket away, and we the folder. */
static bool make_folder(char ret_folder[], size_t size)
{
    const char *base = getenv("XDG_RUNTIME_DIR");

    snprintf(ret_folder, size, "%.60s/kiln-XXXXXX",
             base && *base == '/' && strlen(base) <= 60 ? base : "/tmp");
    return mkdtemp(ret_folder) != NULL;
}

static void set_variables(struct kiln_environment *env, const char *library, const char *folder)
{
    char address[128];

    snprintf(address, sizeof(address), "unix:%s/pprof.sock", folder);
    kiln_environment_put_before(env, "LD_PRELOAD", library, ':');
    kiln_environment_set(env, "KILN_PPROF_LISTEN", address);
    /* Variables for OTLP are those of the configuration, and of programs that the collector serves:
     * its own profiles go to whoever asks for them. */
    if (!kiln_environment_get(env, "KILN_SEND"))
        kiln_environment_set(env, "KILN_SEND", "0");
    kiln_environment_set(env, TRIED, folder);
}

static void execute(const char *self, const char *library, const char *folder,
                    const sigset_t *blocked)
{
    struct kiln_environment env;
    struct kiln_buf text;
    char **words;

    kiln_environment_init(&env);
    kiln_buf_init(&text, WORDS_MAX);
    set_variables(&env, library, folder);
    words = own_words(&text);
    pthread_sigmask(SIG_UNBLOCK, blocked, NULL); /* they would stay blocked */
    if (words && !env.error)
        execve(self, words, env.items);
    pthread_sigmask(SIG_BLOCK, blocked, NULL);
    kiln_free(words);
    kiln_buf_done(&text);
    kiln_environment_done(&env);
}

void kiln_collector_own_begin(const struct kiln_graph *graph, const sigset_t *blocked,
                              struct kiln_log *log)
{
    char self[PATH_MAX], library[PATH_MAX], folder[96];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n > 0 ? n : 0] = '\0';
    if (!kiln_graph_wants_own(graph) || kiln_own_is_there() || getenv(TRIED) ||
        !find_library(log, self, library))
        return;
    if (!make_folder(folder, sizeof(folder))) {
        say_no(log, "there is no place for a socket");
        return;
    }
    execute(self, library, folder, blocked);
    say_no(log, "it cannot be executed once more");
    rmdir(folder);
}

void kiln_collector_own_end(void)
{
    const char *folder = getenv(TRIED);
    char path[128];

    if (!folder)
        return;
    snprintf(path, sizeof(path), "%.96s/pprof.sock", folder);
    unlink(path);
    rmdir(folder);
}
