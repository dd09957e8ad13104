/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#define TESTS_MAX 512

struct group {
    struct CMUnitTest tests[TESTS_MAX];
    size_t n;
};

static struct group plain, captures;

void kiln_test_register(const char *name, CMUnitTestFunction run, bool reads_captures)
{
    struct group *group = reads_captures ? &captures : &plain;

    if (group->n == TESTS_MAX)
        abort();
    group->tests[group->n++] = (struct CMUnitTest){.name = name, .test_func = run};
}

void kiln_test_check_str(struct kiln_str s, const char *text, const char *file, int line)
{
    if (kiln_str_eq(s, kiln_str_of(text)))
        return;
    print_error("\"%.*s\" is not \"%s\"\n", KILN_STR_ARG(s), text);
    _fail(file, line);
}

const char *kiln_test_data(const char *relative)
{
    static char path[4096];
    const char *base = getenv("KILN_TEST_DATA");

    snprintf(path, sizeof(path), "%s/%s", base ? base : KILN_SOURCE_DIR "/../shared/data",
             relative);
    return access(path, R_OK) == 0 ? path : NULL;
}

char *kiln_test_read(const char *path, size_t *ret_len)
{
    FILE *file = path ? fopen(path, "rb") : NULL;
    char *data = NULL;
    long len;

    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (len = ftell(file)) >= 0) {
        rewind(file);
        data = malloc((size_t)len + 1);
        if (data && fread(data, 1, (size_t)len, file) != (size_t)len) {
            free(data);
            data = NULL;
        }
        if (data)
            data[len] = '\0';
        *ret_len = (size_t)len;
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    struct group *group = argc == 2 && strcmp(argv[1], "--captures") == 0 ? &captures : &plain;

    return _cmocka_run_group_tests("tests", group->tests, group->n, NULL, NULL);
}
