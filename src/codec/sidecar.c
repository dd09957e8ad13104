/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/sidecar.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/when.h"

enum { WORD_MAX = 64, ENDINGS = 16 };

/* "2026-03-01T12:00:00.250Z", or for the name of a file "20260301T120000.250Z". */
static void write_time(uint64_t unix_ns, bool bare, char ret_text[40])
{
    struct kiln_utc utc = kiln_when_utc(unix_ns);

    snprintf(ret_text, 40,
             bare ? "%04u%02u%02uT%02u%02u%02u.%03uZ" : "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
             utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second,
             (unsigned)(unix_ns / KILN_NS_PER_MS % 1000));
}

/* Letters, digits and a few signs; whatever else becomes an underscore. */
static void write_word(struct kiln_str text, char to[WORD_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < text.len && n < WORD_MAX - 1; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        to[n] = isalnum(c) || (n && strchr("._+", c)) ? (char)c : '_';
        n++;
    }
    to[n] = '\0';
}

int kiln_sidecar_stem(const char *folder, const struct kiln_batch *part, struct kiln_str kind,
                      uint64_t number, char *to, size_t size)
{
    const struct kiln_profile *first = &part->profiles[0];
    struct kiln_str service =
        kiln_set_text(part, part->resources[0].attrs, KILN_STR("service.name"));
    char who[WORD_MAX], what[WORD_MAX], when[40];
    int n;

    write_word(service.len ? service : KILN_STR("unknown"), who);
    write_word(kind, what);
    write_time(first->time_ns + first->duration_ns, true, when);
    n = snprintf(to, size, "%s/" KILN_SIDECAR_PREFIX "%s-%s-%s-%d-%llu", folder, who, what, when,
                 (int)getpid(), (unsigned long long)number);
    return n < 0 || (size_t)n + ENDINGS > size ? -ENAMETOOLONG : 0;
}

/* A time as people and `kiln push` read it: "2026-03-01T12:00:00.250Z". */
static void put_time(struct kiln_json_out *w, const char *name, uint64_t ns)
{
    char text[40];

    write_time(ns, false, text);
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

/* Its own member for what has one, an attribute for the rest. */
static void put_attributes(struct kiln_json_out *w, const struct kiln_batch *part)
{
    static const struct {
        struct kiln_str key;
        const char *name;
    } known[] = {
        {{"service.name", 12}, "service"},
        {{"service.version", 15}, "version"},
        {{"git.commit", 10}, "commit"},
        {{"deployment.environment", 22}, "environment"},
    };
    uint32_t set = part->n_resources ? part->resources[0].attrs : 0;
    struct kiln_range range = part->dict.sets[set];

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct kiln_str value = kiln_set_text(part, set, known[i].key);

        if (!value.len)
            continue;
        kiln_json_put_name(w, known[i].name);
        kiln_json_put_str(w, value);
    }
    kiln_json_put_name(w, "attributes");
    kiln_json_put_object(w);
    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_attr *attr = &part->dict.attrs[part->dict.members[range.first + i]];

        if (attr->value.kind != KILN_VALUE_STRING)
            continue;
        kiln_json_put_name_str(w, kiln_batch_str(part, attr->key));
        kiln_json_put_str(w, kiln_batch_str(part, (uint32_t)attr->value.str));
    }
    kiln_json_end_object(w);
}

static void put_losses(struct kiln_json_out *w, const struct kiln_sidecar_loss *losses, uint32_t n)
{
    kiln_json_put_name(w, "lost");
    kiln_json_put_object(w);
    for (uint32_t i = 0; i < n; i++) {
        kiln_json_put_name(w, losses[i].name);
        kiln_json_put_u64(w, losses[i].n);
    }
    kiln_json_end_object(w);
}

void kiln_sidecar_encode(const struct kiln_batch *part, struct kiln_str kind,
                         const struct kiln_sidecar_loss *losses, uint32_t n_losses,
                         struct kiln_buf *out)
{
    const struct kiln_profile *first = &part->profiles[0];
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    put_attributes(&w, part);
    kiln_json_put_name(&w, "type");
    kiln_json_put_str(&w, kind);
    put_time(&w, "window_start", first->time_ns);
    put_time(&w, "window_end", first->time_ns + first->duration_ns);
    put_losses(&w, losses, n_losses);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}
