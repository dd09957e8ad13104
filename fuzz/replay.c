/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay - gives every file of a corpus to a fuzz target, without libFuzzer: an ordinary test, also
 * where there is no clang.  usage: replay FILE|FOLDER...
 *
 * A target that leaks fails.  With KILN_TORTURE set each file is given again and again, with the
 * first, second, third... allocation failing, until a run needs no more.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t n_inputs;
static uint64_t n_runs;

/* One run; `fail_at` 0 lets every allocation succeed.  Returns true if that allocation was reached.
 */
static bool run(const char *path, const uint8_t *data, size_t size, uint64_t fail_at)
{
    bool reached;

    kiln_mem_fail_at(fail_at);
    LLVMFuzzerTestOneInput(data, size);
    reached = kiln_mem_failed();
    kiln_mem_fail_at(0);
    n_runs++;
    if (kiln_mem_live() != 0) {
        fprintf(stderr, "%s: %lld blocks leaked (allocation %llu failed)\n", path,
                (long long)kiln_mem_live(), (unsigned long long)fail_at);
        exit(1);
    }
    return reached;
}

static void replay_bytes(const char *path, const uint8_t *data, size_t size)
{
    n_inputs++;
    run(path, data, size, 0);
    if (!getenv("KILN_TORTURE"))
        return;
    for (uint64_t n = 1; run(path, data, size, n); n++)
        ;
}

static void replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    /* Exactly as large as the input, so that ASan and valgrind see a read past its end. */
    uint8_t *data = malloc(size ? size : 1);

    if (!file || !data || fread(data, 1, size, file) != size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    replay_bytes(path, data, size);
    free(data);
}

static void replay(const char *path)
{
    struct dirent **entries;
    struct stat st;
    int n;

    if (stat(path, &st) != 0) {
        perror(path);
        exit(1);
    }
    if (!S_ISDIR(st.st_mode)) {
        replay_file(path, (size_t)st.st_size);
        return;
    }
    n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char child[4096];

        snprintf(child, sizeof(child), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            replay(child);
        free(entries[i]);
    }
    free(n >= 0 ? entries : NULL);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%llu inputs, %llu runs\n", (unsigned long long)n_inputs, (unsigned long long)n_runs);
    if (n_inputs == 0)
        fprintf(stderr, "the corpus is empty\n");
    return n_inputs == 0;
}
