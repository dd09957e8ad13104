/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last reading of each counting profile, in a file of its own:
 *
 *   kiln-scrape 1 BOOT_ID UNIX_TIME_NS \n
 *   the reading as it was fetched
 *
 * A file gets its name by a rename and is not synced, which would cost the disk more than all the
 * rest of a fetch.  After a power cut it may therefore be older than what was delivered, and its
 * difference to the next reading would count some things twice; so a reading of another boot of
 * this machine is not used.  Files of targets that are not fetched any more are removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "pipeline/receivers/scrape_int.h"

enum { BOOT_ID_BYTES = 64 };

static bool path_of(const struct kiln_scraper *scraper, const char *name, char *ret, size_t size)
{
    return snprintf(ret, size, "%s/%s", scraper->opts.state_dir, name) < (int)size;
}

/* "unknown" where the kernel does not tell. */
static void boot_id(char ret[BOOT_ID_BYTES])
{
    struct kiln_str id;
    struct kiln_buf text;

    kiln_buf_init(&text, BOOT_ID_BYTES - 1);
    if (kiln_file_read("/proc/sys/kernel/random/boot_id", &text, NULL) < 0)
        kiln_buf_clear(&text);
    id = kiln_str_trim(kiln_buf_str(&text));
    snprintf(ret, BOOT_ID_BYTES, "%.*s", (int)(id.len ? id.len : 7), id.len ? id.ptr : "unknown");
    kiln_buf_done(&text);
}

/* ---- the folder ---- */

static bool is_ours(const struct kiln_scraper *scraper, const char *name)
{
    for (uint32_t i = 0; i < scraper->n_tasks; i++) {
        if (strcmp(scraper->tasks[i].state_name, name) == 0)
            return true;
    }
    return false;
}

static bool is_state_name(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");

    return digits == 32 && (name[32] == '\0' || strcmp(name + 32, ".new") == 0);
}

static void remove_others(const struct kiln_scraper *scraper)
{
    DIR *dir = opendir(scraper->opts.state_dir);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (is_state_name(entry->d_name) && !is_ours(scraper, entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

int kiln_scrape_state_open(struct kiln_scraper *scraper, struct kiln_err *err)
{
    if (!scraper->opts.state_dir)
        return 0;
    if (mkdir(scraper->opts.state_dir, 0750) < 0 && errno != EEXIST)
        return kiln_err_set(err, -errno, scraper->opts.state_dir, "%s", kiln_err_text(-errno));
    remove_others(scraper);
    return 0;
}

/* ---- one reading ---- */

/* Cuts the head off; KILN_E_MALFORMED where it is not of this boot, or none at all. */
static int read_head(struct kiln_str *content, uint64_t *ret_time_ns)
{
    struct kiln_str rest = *content, line;
    char boot[BOOT_ID_BYTES];

    if (!memchr(content->ptr ? content->ptr : "", '\n', content->len))
        return KILN_E_MALFORMED;
    line = kiln_str_cut(&rest, '\n');
    boot_id(boot);
    if (!kiln_str_eq(kiln_str_cut(&line, ' '), KILN_STR("kiln-scrape")) ||
        !kiln_str_eq(kiln_str_cut(&line, ' '), KILN_STR("1")) ||
        !kiln_str_eq(kiln_str_cut(&line, ' '), kiln_str_of(boot)) ||
        kiln_str_parse_u64(line, ret_time_ns) < 0)
        return KILN_E_MALFORMED;
    *content = rest;
    return 0;
}

int kiln_scrape_state_get(struct kiln_scraper *scraper, const struct kiln_scrape_task *task,
                          struct kiln_buf *out, uint64_t *ret_time_ns)
{
    char path[PATH_MAX];
    struct kiln_str content;
    int r;

    if (!scraper->opts.state_dir || !path_of(scraper, task->state_name, path, sizeof(path)))
        return -ENOENT;
    r = kiln_file_read(path, out, NULL);
    if (r < 0)
        return r;
    content = kiln_buf_str(out);
    r = read_head(&content, ret_time_ns);
    if (r < 0)
        return r;
    memmove(out->ptr, content.ptr, content.len);
    out->len = content.len;
    return 0;
}

static int write_file(const char *path, struct kiln_str head, struct kiln_str reading)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    int r;

    if (fd < 0)
        return -errno;
    r = kiln_fd_write(fd, head);
    if (r == 0)
        r = kiln_fd_write(fd, reading);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

int kiln_scrape_state_put(struct kiln_scraper *scraper, const struct kiln_scrape_task *task,
                          struct kiln_str reading, uint64_t time_ns)
{
    char path[PATH_MAX], fresh[PATH_MAX], name[40], head[128], boot[BOOT_ID_BYTES];
    int n, r;

    snprintf(name, sizeof(name), "%s.new", task->state_name);
    if (!scraper->opts.state_dir || !path_of(scraper, task->state_name, path, sizeof(path)) ||
        !path_of(scraper, name, fresh, sizeof(fresh)))
        return -ENOENT;
    boot_id(boot);
    n = snprintf(head, sizeof(head), "kiln-scrape 1 %s %llu\n", boot, (unsigned long long)time_ns);
    r = write_file(fresh, (struct kiln_str){head, (size_t)n}, reading);
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(fresh);
    return r;
}
