/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader finds of a process that publishes itself. */
#include <errno.h>
#include <kiln.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

struct header {
    char signature[8];
    uint32_t version, payload_size;
    uint64_t published_ns, payload;
};

/* The header, by the name of its mapping; NULL: there is none. */
static const struct header *find(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    const struct header *found = NULL;
    char line[512];

    while (fgets(line, sizeof(line), maps)) {
        if (strstr(line, "/memfd:OTEL_CTX") || strstr(line, "[anon:OTEL_CTX]"))
            found = (const void *)strtoull(line, NULL, 16);
    }
    fclose(maps);
    return found;
}

static bool has(const struct header *header, const char *text)
{
    return memmem((const void *)header->payload, header->payload_size, text, strlen(text)) != NULL;
}

static void publish(const char *service)
{
    struct kiln_attribute resource[] = {{"service.name", service}, {"service.version", "1.2"}};

    CHECK_OK(kiln_context_publish(resource, 2));
}

TEST(context, is_found_by_its_name)
{
    const struct header *header;

    CHECK(!find());
    publish("shop");
    header = find();
    CHECK(header);
    CHECK_EQ(memcmp(header->signature, "OTEL_CTX", 8), 0);
    CHECK_EQ(header->version, 2);
    CHECK(header->published_ns > 0);
    CHECK(has(header, "service.name"));
    CHECK(has(header, "threadlocal.schema_version"));
    kiln_context_withdraw();
    CHECK(!find());
}

TEST(context, has_these_bytes)
{
    static const char expected[] =
        "\x0a\x09\x0a\x07\x0a\x01k\x12\x02\x0a\x00"
        "\x12\x2e\x0a\x1athreadlocal.schema_version\x12\x10\x0a\x0etlsdesc_v1_dev"
        "\x12\x23\x0a\x1dthreadlocal.attribute_key_map\x12\x02\x2a\x00";
    struct kiln_attribute one = {"k", ""};
    const struct header *header;

    CHECK_OK(kiln_context_publish(&one, 1));
    header = find();
    CHECK_EQ(header->payload_size, sizeof(expected) - 1);
    CHECK_EQ(memcmp((const void *)header->payload, expected, sizeof(expected) - 1), 0);
    kiln_context_withdraw();
}

TEST(context, changes_in_place_and_is_later_then)
{
    const struct header *header;
    uint64_t before_ns;

    publish("shop");
    header = find();
    before_ns = header->published_ns;
    publish("a shop with a longer name");
    CHECK(find() == header);
    CHECK(header->published_ns > before_ns);
    CHECK(has(header, "a shop with a longer name"));
    kiln_context_withdraw();
}

TEST(context, of_a_child_is_its_own)
{
    const struct header *header;
    int status;
    pid_t child;

    publish("shop");
    header = find();
    child = fork();
    if (child == 0)
        _exit(find() && has(find(), "shop") && find()->published_ns > 0 ? 0 : 1);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK(find() == header);
    kiln_context_withdraw();
    child = fork();
    if (child == 0)
        _exit(find() ? 1 : 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

TEST(context, that_is_too_large_or_has_holes_is_refused)
{
    static char large[16 << 10];
    struct kiln_attribute resource[] = {{"large", large}, {"hole", NULL}};

    memset(large, 'x', sizeof(large) - 1);
    CHECK_EQ(kiln_context_publish(resource, 1), -E2BIG);
    CHECK_EQ(kiln_context_publish(resource, 2), -EINVAL);
    CHECK(!find());
}
