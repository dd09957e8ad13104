/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a real Pyroscope was fed, fed to Kiln: the types of each service must be the ones that
 * Pyroscope named.
 */
#include <stdlib.h>

#include "base/compress.h"
#include "base/json.h"
#include "base/mem.h"
#include "codec/pprof.h"
#include "core/type.h"
#include "pipeline/receivers/tags.h"
#include "test.h"

/* Lines "service type-id", each once. */
struct lines {
    char text[64][256];
    size_t n;
};

static void add_line(struct lines *lines, const char *line)
{
    for (size_t i = 0; i < lines->n; i++) {
        if (strcmp(lines->text[i], line) == 0)
            return;
    }
    CHECK(lines->n < 64);
    snprintf(lines->text[lines->n++], 256, "%s", line);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void sort_lines(struct lines *lines)
{
    qsort(lines->text, lines->n, sizeof(lines->text[0]), by_text);
}

/* ---- what Pyroscope was told ---- */

struct push {
    char file[128];
    struct kiln_tags tags;
    char texts[16][64];
    size_t n_texts;
};

static struct kiln_str keep(struct push *push, struct kiln_str text)
{
    char *to = push->texts[push->n_texts++];

    CHECK(push->n_texts <= 16 && text.len < 64);
    memcpy(to, text.ptr, text.len);
    return (struct kiln_str){to, text.len};
}

static void read_push(struct kiln_json *r, struct push *push)
{
    struct kiln_str name, value;

    memset(push, 0, sizeof(*push));
    CHECK_OK(kiln_json_object(r));
    while (kiln_json_member(r, &name) > 0) {
        if (kiln_str_eq(name, KILN_STR("file"))) {
            CHECK_OK(kiln_json_string(r, &value));
            snprintf(push->file, sizeof(push->file), "pprof/%.*s", KILN_STR_ARG(value));
        } else if (kiln_str_eq(name, KILN_STR("labels"))) {
            CHECK_OK(kiln_json_object(r));
            while (kiln_json_member(r, &name) > 0) {
                name = keep(push, name);
                CHECK_OK(kiln_json_string(r, &value));
                CHECK_OK(kiln_tags_add(&push->tags, name, keep(push, value), NULL));
            }
        } else {
            CHECK_OK(kiln_json_skip(r));
        }
    }
}

/* Decodes the file as the receiver of pushes does, and adds what its profiles are. */
static void add_types(struct push *push, struct lines *lines)
{
    struct kiln_err err = {0};
    struct kiln_buf raw, line;
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct kiln_type *types;
    size_t len;
    char *bytes = kiln_test_read(kiln_test_data(push->file), &len);
    struct kiln_str data = {bytes, len};

    CHECK(bytes);
    kiln_buf_init(&raw, 64u << 20);
    CHECK_OK(kiln_decompress(kiln_compression_of(data), data, &raw, &err));
    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_tags_prepare(&push->tags, b);
    CHECK_OK(kiln_pprof_decode(kiln_buf_str(&raw), b, &err));
    CHECK_OK(kiln_tags_apply(&push->tags, b));
    CHECK_OK(kiln_builder_finish(b, &batch, &err));
    CHECK_OK(kiln_types_of_batch(batch, false, &types));
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        kiln_buf_init(&line, 255);
        kiln_buf_add_str(&line,
                         kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("service.name")));
        kiln_buf_putc(&line, ' ');
        kiln_type_id(&types[i], &line);
        kiln_buf_putc(&line, '\0');
        add_line(lines, line.ptr);
        kiln_buf_done(&line);
    }
    kiln_free(types);
    kiln_batch_unref(batch);
    kiln_buf_done(&raw);
    free(bytes);
}

static void feed(const char *inputs, size_t len, struct lines *lines)
{
    static struct push push;
    struct kiln_json r;
    struct kiln_str name;

    kiln_json_init(&r, (struct kiln_str){inputs, len}, NULL);
    CHECK_OK(kiln_json_object(&r));
    while (kiln_json_member(&r, &name) > 0) {
        if (!kiln_str_eq(name, KILN_STR("pushes"))) {
            CHECK_OK(kiln_json_skip(&r));
            continue;
        }
        CHECK_OK(kiln_json_array(&r));
        while (kiln_json_element(&r) > 0) {
            read_push(&r, &push);
            add_types(&push, lines);
        }
    }
    CHECK_OK(r.error);
    kiln_json_done(&r);
}

/* ---- what Pyroscope answered ---- */

/* Reads {"labels":[{"name":"__profile_type__","value":T},{"name":"service_name","value":S}]}. */
static void read_series(struct kiln_json *r, struct lines *lines)
{
    char type[128] = "", service[64] = "", line[256];
    struct kiln_str name, value, label = KILN_STR_NONE;

    CHECK_OK(kiln_json_object(r));
    CHECK_EQ(kiln_json_member(r, &name), 1);
    CHECK_OK(kiln_json_array(r));
    while (kiln_json_element(r) > 0) {
        CHECK_OK(kiln_json_object(r));
        while (kiln_json_member(r, &name) > 0) {
            bool is_value = kiln_str_eq(name, KILN_STR("value"));

            CHECK_OK(kiln_json_string(r, &value));
            if (!is_value)
                label = value;
            else if (kiln_str_eq(label, KILN_STR("service_name")))
                snprintf(service, sizeof(service), "%.*s", KILN_STR_ARG(value));
            else
                snprintf(type, sizeof(type), "%.*s", KILN_STR_ARG(value));
        }
    }
    CHECK_EQ(kiln_json_member(r, &name), 0);
    snprintf(line, sizeof(line), "%s %s", service, type);
    add_line(lines, line);
}

static void read_answer(const char *text, size_t len, struct lines *lines)
{
    struct kiln_json r;
    struct kiln_str name;

    kiln_json_init(&r, (struct kiln_str){text, len}, NULL);
    CHECK_OK(kiln_json_object(&r));
    while (kiln_json_member(&r, &name) > 0) {
        if (!kiln_str_eq(name, KILN_STR("answer"))) {
            CHECK_OK(kiln_json_skip(&r));
            continue;
        }
        CHECK_OK(kiln_json_object(&r));
        CHECK_EQ(kiln_json_member(&r, &name), 1);
        CHECK_OK(kiln_json_array(&r));
        while (kiln_json_element(&r) > 0)
            read_series(&r, lines);
        CHECK_EQ(kiln_json_member(&r, &name), 0);
    }
    CHECK_OK(r.error);
    kiln_json_done(&r);
}

CAPTURE_TEST(captures, types_are_named_as_pyroscope_names_them)
{
    static struct lines ours, theirs;
    const char *path = kiln_test_data("pyroscope/inputs.json");
    size_t len;
    char *text;

    if (!path)
        SKIP("no real captures");
    text = kiln_test_read(path, &len);
    feed(text, len, &ours);
    free(text);
    text = kiln_test_read(kiln_test_data("pyroscope/06-series.json"), &len);
    read_answer(text, len, &theirs);
    free(text);
    sort_lines(&ours);
    sort_lines(&theirs);
    CHECK_EQ(ours.n, theirs.n);
    CHECK(ours.n > 4);
    for (size_t i = 0; i < ours.n; i++)
        CHECK_TEXT(ours.text[i], theirs.text[i]);
}
