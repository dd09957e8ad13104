/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what it is told on standard input, and says "done N" after each line:
 *
 *   work MIB      keeps so much memory, from out_planted(), in a thread of the name in $THREAD
 *   label K V     labels what the main thread does from now on
 *   flush MS      N is what kiln_flush() says
 */
#include <dlfcn.h>
#include <kiln.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 << 10 };

void *volatile sink;

__attribute__((noinline)) void out_planted(unsigned long mib)
{
    for (unsigned long i = 0; i < (mib << 20) / PIECE; i++) {
        sink = malloc(PIECE);
        memset(sink, 1, PIECE);
    }
}

static void *work(void *arg)
{
    if (getenv("THREAD"))
        pthread_setname_np(pthread_self(), getenv("THREAD"));
    out_planted(*(unsigned long *)arg);
    return NULL;
}

static int label(char *words)
{
    int (*set)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "kiln_label_set");
    char *value = strchr(words, ' ');

    *value++ = '\0';
    return set(words, value);
}

int main(void)
{
    int (*flush)(uint32_t) = (int (*)(uint32_t))dlsym(RTLD_DEFAULT, "kiln_flush");
    char line[256];

    while (fgets(line, sizeof(line), stdin)) {
        unsigned long n = strtoul(strchr(line, ' '), NULL, 10);
        pthread_t thread;
        int r = 0;

        line[strcspn(line, "\n")] = '\0';
        if (line[0] == 'w') {
            pthread_create(&thread, NULL, work, &n);
            pthread_join(thread, NULL);
            out_planted(n);
        } else if (line[0] == 'l') {
            r = label(line + 6);
        } else if (flush) {
            r = flush((uint32_t)n);
        }
        printf("done %d\n", r);
        fflush(stdout);
    }
    return 0;
}
