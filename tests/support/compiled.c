/* SPDX-License-Identifier: Apache-2.0 */
#include "compiled.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { PATH_SIZE = 4096 };

void compiled_init(struct compiled *compiled)
{
    *compiled = (struct compiled){0};
    folder_make(compiled->folder);
}

void compiled_done(struct compiled *compiled)
{
    for (int i = 0; i < compiled->n; i++) {
        kiln_elf_close(compiled->elfs[i]);
        close(compiled->fds[i]);
    }
    folder_remove(compiled->folder);
}

static void path_of(const struct compiled *compiled, const char *name, char *ret_path)
{
    if (*name == '/')
        snprintf(ret_path, PATH_SIZE, "%s", name);
    else
        snprintf(ret_path, PATH_SIZE, "%s/%s", compiled->folder, name);
}

void compiled_write(struct compiled *compiled, const char *name, const char *text)
{
    char path[PATH_SIZE];
    FILE *file;

    path_of(compiled, name, path);
    file = fopen(path, "we");
    CHECK(file);
    CHECK(fputs(text, file) >= 0);
    CHECK_OK(fclose(file));
}

bool compiled_run(struct compiled *compiled, const char *command)
{
    char all[2 * PATH_SIZE];
    char *arguments[] = {"sh", "-c", all, NULL};
    int status;
    pid_t pid;

    snprintf(all, sizeof(all), "cd %s && { %s; } >>log 2>&1", compiled->folder, command);
    CHECK_OK(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ));
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const struct kiln_elf *compiled_open(struct compiled *compiled, const char *name)
{
    struct kiln_bytes bytes;
    char path[PATH_SIZE];
    int fd;

    path_of(compiled, name, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    CHECK(compiled->n < COMPILED_FILES);
    if (kiln_bytes_file(fd, &bytes) < 0 ||
        kiln_elf_open(&bytes, &compiled->elfs[compiled->n]) < 0) {
        close(fd);
        return NULL;
    }
    compiled->fds[compiled->n] = fd;
    return compiled->elfs[compiled->n++];
}
