/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/sources.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/source.h"

#define SOURCE_BYTES_MAX ((size_t)16 << 20)

/* Reads `directory`/`name` if it is a regular file of a sensible size. */
static bool try_file(const char *directory, struct kiln_str name, struct kiln_buf *text)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s%s%.*s", directory, directory[0] ? "/" : "",
                     KILN_STR_ARG(name));

    if (n <= 0 || n >= (int)sizeof(path) || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    kiln_buf_clear(text);
    return kiln_file_read(path, text, NULL) == 0 && text->len > 0;
}

/* The name, and what is left of it without its first, second, ... directory. */
static bool try_directory(const char *directory, struct kiln_str name, struct kiln_buf *text)
{
    while (name.ptr && name.len) {
        if (name.ptr[0] != '/' && try_file(directory, name, text))
            return true;
        kiln_str_cut(&name, '/');
    }
    return false;
}

/* "PREFIX=DIR": the directory, and what is left of the name behind the prefix. */
static bool try_prefix(const char *place, struct kiln_str file, struct kiln_buf *text)
{
    const char *equals = strchr(place, '=');
    struct kiln_source_name name, prefix;
    const char *behind = NULL;

    if (equals && kiln_source_name_parse(file, &name) == 0 &&
        kiln_source_name_parse((struct kiln_str){place, (size_t)(equals - place)}, &prefix) == 0)
        behind = kiln_source_name_behind(&name, &prefix);
    return behind && try_file(equals + 1, kiln_str_of(behind), text);
}

/* Where it was said to be, or is by its own name. */
static bool find_exactly(struct kiln_str file, const struct kiln_list *places,
                         struct kiln_buf *text)
{
    for (uint32_t i = 0; i < places->n; i++) {
        if (try_prefix(places->items[i], file, text))
            return true;
    }
    return try_file("", file, text);
}

static bool find_by_end(struct kiln_str file, const struct kiln_list *places, struct kiln_buf *text)
{
    uint32_t directories = 0;

    for (uint32_t i = 0; i < places->n; i++) {
        bool is_directory = !strchr(places->items[i], '=');

        directories += is_directory;
        if (is_directory && try_directory(places->items[i], file, text))
            return true;
    }
    return directories == 0 && try_directory(".", file, text);
}

static int index_lines(struct kiln_source_text *source)
{
    struct kiln_str rest = kiln_buf_str(&source->text);
    uint32_t n = 1;

    for (size_t i = 0; i < rest.len; i++)
        n += rest.ptr[i] == '\n';
    source->lines = kiln_calloc(n, sizeof(*source->lines));
    if (!source->lines)
        return -ENOMEM;
    while (rest.ptr && rest.len)
        source->lines[source->n_lines++] = kiln_str_cut(&rest, '\n');
    return 0;
}

int kiln_source_text_open(struct kiln_str file, const struct kiln_list *places,
                          struct kiln_embedded *embedded, struct kiln_source_text *ret_source)
{
    struct kiln_source_text source = {0};
    bool is_name = file.len && !memchr(file.ptr, '\0', file.len);
    bool found;
    int r = 0;

    kiln_buf_init(&source.text, SOURCE_BYTES_MAX);
    found = is_name && find_exactly(file, places, &source.text);
    if (is_name && !found && embedded) {
        kiln_buf_clear(&source.text);
        found = source.is_embedded = kiln_embedded_find(embedded, file, &source.text);
    }
    if (is_name && !found)
        found = find_by_end(file, places, &source.text);
    if (found)
        r = index_lines(&source);
    if (r < 0)
        kiln_source_text_close(&source);
    else
        *ret_source = source;
    return r;
}

void kiln_source_text_close(struct kiln_source_text *source)
{
    kiln_free(source->lines);
    kiln_buf_done(&source->text);
    source->lines = NULL;
    source->n_lines = 0;
}
