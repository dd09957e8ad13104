/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small server that profiles itself: a thread for each connection, a span for each request, one
 * lock around what they share.
 *
 *   GET /search?q=...   looks through the catalogue
 *   GET /buy            takes the lock for a while
 *   GET /visit          remembers the visitor, for ever: this is the leak
 *
 * usage: server PORT        PORT 0: any; the one it has is printed
 */
#include <arpa/inet.h>
#include <kiln.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { BOOKS = 2000, VISITOR_BYTES = 4096 };

struct visitor {
    struct visitor *next;
    char about[VISITOR_BYTES];
};

static char *books[BOOKS];
static struct visitor *visitors;
static pthread_mutex_t till = PTHREAD_MUTEX_INITIALIZER;

static void fill_catalogue(void)
{
    for (int i = 0; i < BOOKS; i++) {
        char title[64];

        snprintf(title, sizeof(title), "The book of %d things, volume %d", i * 7919 % 1000, i);
        books[i] = strdup(title);
    }
}

static int search(const char *words)
{
    int found = 0;

    for (int i = 0; i < BOOKS; i++) {
        char *lower = strdup(books[i]); /* wasteful, and seen as such */

        for (char *c = lower; *c; c++)
            *c |= 0x20;
        found += strstr(lower, words) != NULL;
        free(lower);
    }
    return found;
}

static int buy(void)
{
    volatile int sum = 0;

    pthread_mutex_lock(&till);
    for (int i = 0; i < 2000000; i++)
        sum = sum + i;
    pthread_mutex_unlock(&till);
    return sum & 1;
}

static int visit(const char *line)
{
    struct visitor *visitor = malloc(sizeof(*visitor));

    snprintf(visitor->about, sizeof(visitor->about), "%s", line);
    pthread_mutex_lock(&till);
    visitor->next = visitors;
    visitors = visitor;
    pthread_mutex_unlock(&till);
    return 1;
}

static int handle(const char *line)
{
    if (strncmp(line, "GET /search", 11) == 0)
        return search("volume 7");
    if (strncmp(line, "GET /buy", 8) == 0)
        return buy();
    return visit(line);
}

/* A span of its own: a real service takes both ids from its SDK for traces. */
static void serve(int client, const char *line)
{
    uint8_t trace[16], id[8];
    struct kiln_span span;
    char answer[256];
    int n, result;

    if (getrandom(trace, sizeof(trace), 0) < 0 || getrandom(id, sizeof(id), 0) < 0)
        return;
    kiln_span_enter(&span, trace, id, 1);
    kiln_label_set("route", strncmp(line, "GET /search", 11) == 0 ? "/search" : "/other");
    result = handle(line);
    kiln_label_clear("route");
    kiln_span_leave(&span);
    n = snprintf(answer, sizeof(answer),
                 "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\n%10d\n",
                 result);
    if (write(client, answer, (size_t)n) != n)
        return;
}

static void *talk(void *arg)
{
    int client = (int)(long)arg;
    char request[4096];
    size_t n = 0;
    ssize_t got;

    while ((got = read(client, request + n, sizeof(request) - 1 - n)) > 0) {
        n += (size_t)got;
        request[n] = '\0';
        if (!strstr(request, "\r\n\r\n") && n < sizeof(request) - 1)
            continue;
        serve(client, request);
        n = 0;
    }
    close(client);
    return NULL;
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, n) < 0 || listen(fd, 64) < 0)
        return -1;
    getsockname(fd, (struct sockaddr *)&address, &n);
    printf("http://127.0.0.1:%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    struct kiln_attribute resource[] = {{"service.version", "1.0"},
                                        {"deployment.environment.name", "example"}};
    struct kiln_options options = {
        .service_name = "bookshop", .resource = resource, .n_resource = 2};
    int fd;

    if (kiln_start(&options) < 0)
        fputs("server: no profiles this time\n", stderr);
    fill_catalogue();
    fd = listen_on((uint16_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 8080));
    if (fd < 0) {
        perror("server");
        return 1;
    }
    for (;;) {
        int client = accept(fd, NULL, NULL);
        pthread_t thread;

        if (client < 0)
            continue;
        if (pthread_create(&thread, NULL, talk, (void *)(long)client) == 0)
            pthread_detach(thread);
        else
            close(client);
    }
}
