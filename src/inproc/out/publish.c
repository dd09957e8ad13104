/* SPDX-License-Identifier: Apache-2.0 */
/* What others on the host read of this process leaves it, too. */
#include <kiln.h>

#include "inproc/out/redact.h"
#include "inproc/start.h"

enum { VALUES_MAX = KILN_IN_ATTRIBUTE_BYTES + KILN_IN_ATTRIBUTES_MAX * 16 };

struct redacted {
    struct kiln_attribute attributes[KILN_IN_ATTRIBUTES_MAX];
    char values[VALUES_MAX];
    size_t n, used;
};

/* One that has no room any more is left out. */
static void put(struct redacted *to, const char *key, struct kiln_str value)
{
    char *at = to->values + to->used;

    if (value.len + 1 > sizeof(to->values) - to->used)
        return;
    if (value.len)
        memcpy(at, value.ptr, value.len);
    at[value.len] = '\0';
    to->used += value.len + 1;
    to->attributes[to->n++] = (struct kiln_attribute){key, at};
}

static void redact(const struct kiln_in_redact *rules, struct redacted *to)
{
    const struct kiln_in_settings *s = &kiln_in_settings;
    struct kiln_buf value;

    kiln_buf_init(&value, KILN_IN_ATTRIBUTE_BYTES * 2);
    for (uint32_t i = 0; i < s->n_attributes; i++) {
        const struct kiln_attribute *from = &s->attributes[i];

        kiln_buf_clear(&value);
        if (kiln_in_redact_value(rules, kiln_str_of(from->key), kiln_str_of(from->value), &value))
            put(to, from->key, kiln_buf_str(&value));
    }
    kiln_buf_done(&value);
}

/* Where the rules cannot be read, nothing is told but that there is a process. */
void kiln_in_out_publish(void)
{
    static struct redacted redacted;
    struct kiln_str text = kiln_str_of(kiln_in_settings.redact);
    struct kiln_in_redact *rules = NULL;

    redacted.n = redacted.used = 0;
    if (!text.len || kiln_in_redact_parse(text, &rules, NULL) == 0)
        redact(rules, &redacted);
    kiln_context_publish(redacted.attributes, redacted.n);
    kiln_in_redact_free(rules);
}
