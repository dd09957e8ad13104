/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/names_wire.h"

#include <string.h>

bool kiln_wire_add(char *packet, size_t *len, const struct kiln_name *name)
{
    const struct kiln_str texts[] = {name->function, name->system_name, name->file, name->module};
    struct kiln_wire_name head = {
        .function = (uint16_t)name->function.len,
        .system_name = (uint16_t)name->system_name.len,
        .file = (uint16_t)name->file.len,
        .module = (uint16_t)name->module.len,
        .line = name->line,
        .start_line = name->start_line,
        .begin = name->begin,
    };
    size_t need = sizeof(head);

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++)
        need += texts[i].len;
    if (need > KILN_WIRE_PACKET - *len)
        return false;
    memcpy(packet + *len, &head, sizeof(head));
    *len += sizeof(head);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        memcpy(packet + *len, texts[i].ptr ? texts[i].ptr : "", texts[i].len);
        *len += texts[i].len;
    }
    return true;
}

static int take(struct kiln_str *packet, void *ret, size_t n)
{
    if (packet->len < n)
        return KILN_E_TRUNCATED;
    memcpy(ret, packet->ptr, n);
    packet->ptr += n;
    packet->len -= n;
    return 0;
}

int kiln_wire_begin(struct kiln_str *packet, const struct kiln_names_ask *ask, uint32_t first,
                    struct kiln_names_answer *ret_answer)
{
    struct kiln_names_answer answer;
    int r = take(packet, &answer, sizeof(answer));

    if (r < 0)
        return r;
    if (answer.number != ask->number || answer.first != first || answer.n > ask->n - first ||
        answer.status > 0 || (answer.status == 0) != (answer.n > 0))
        return KILN_E_MALFORMED;
    *ret_answer = answer;
    return 0;
}

static int take_text(struct kiln_str *packet, size_t n, struct kiln_str *ret)
{
    if (n > KILN_WIRE_TEXT)
        return KILN_E_MALFORMED;
    if (n > packet->len)
        return KILN_E_TRUNCATED;
    *ret = n ? (struct kiln_str){packet->ptr, n} : KILN_STR_NONE;
    packet->ptr += n;
    packet->len -= n;
    return 0;
}

int kiln_wire_next(struct kiln_str *packet, struct kiln_name *ret_name)
{
    struct kiln_name name = {0};
    struct kiln_wire_name head;
    int r = take(packet, &head, sizeof(head));

    if (r == 0)
        r = take_text(packet, head.function, &name.function);
    if (r == 0)
        r = take_text(packet, head.system_name, &name.system_name);
    if (r == 0)
        r = take_text(packet, head.file, &name.file);
    if (r == 0)
        r = take_text(packet, head.module, &name.module);
    if (r < 0)
        return r;
    name.line = head.line;
    name.start_line = head.start_line;
    name.begin = head.begin;
    *ret_name = name;
    return 0;
}
