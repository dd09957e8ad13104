/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/names_wire.h"

#include <string.h>

static size_t size_of(const struct kiln_name *name)
{
    size_t size = sizeof(struct kiln_wire_name) + name->module.len;

    for (uint32_t i = 0; i < name->n; i++) {
        const struct kiln_name_frame *f = name->frames + i;

        size += sizeof(struct kiln_wire_frame) + f->function.len + f->system_name.len + f->file.len;
    }
    return size;
}

static char *add(char *to, const void *data, size_t n)
{
    if (n)
        memcpy(to, data, n);
    return to + n;
}

static char *add_frame(char *to, const struct kiln_name_frame *f)
{
    const struct kiln_wire_frame head = {
        .function = (uint16_t)f->function.len,
        .system_name = (uint16_t)f->system_name.len,
        .file = (uint16_t)f->file.len,
        .line = f->line,
        .column = f->column,
        .start_line = f->start_line,
    };

    to = add(to, &head, sizeof(head));
    to = add(to, f->function.ptr, f->function.len);
    to = add(to, f->system_name.ptr, f->system_name.len);
    return add(to, f->file.ptr, f->file.len);
}

bool kiln_wire_add(char *packet, size_t *len, const struct kiln_name *name)
{
    const struct kiln_wire_name head = {
        .n = (uint16_t)name->n,
        .module = (uint16_t)name->module.len,
        .shallow = name->shallow,
        .begin = name->begin,
    };
    char *to = packet + *len;

    if (size_of(name) > KILN_WIRE_PACKET - *len)
        return false;
    to = add(to, &head, sizeof(head));
    to = add(to, name->module.ptr, name->module.len);
    for (uint32_t i = 0; i < name->n; i++)
        to = add_frame(to, name->frames + i);
    *len = (size_t)(to - packet);
    return true;
}

static size_t cut(struct kiln_str text)
{
    return text.len < KILN_WIRE_TEXT ? text.len : KILN_WIRE_TEXT;
}

size_t kiln_wire_add_wanted(char packet[KILN_WIRE_PACKET], uint32_t number,
                            const struct kiln_wanted *wanted)
{
    const struct kiln_names_said said = {.what = KILN_SAID_WANTED, .number = number};
    struct kiln_wire_wanted head = {
        .name = (uint16_t)cut(wanted->name),
        .directory = (uint16_t)cut(wanted->directory),
        .kind = (uint8_t)wanted->kind,
        .build_id_len = wanted->build_id_len,
        .has_crc = wanted->has_crc,
        .attempt = (uint8_t)wanted->attempt,
        .crc = wanted->crc,
        .dwo_id = wanted->dwo_id,
    };
    char *to = add(packet, &said, sizeof(said));

    memcpy(head.build_id, wanted->build_id, sizeof(head.build_id));
    to = add(to, &head, sizeof(head));
    to = add(to, wanted->name.ptr, head.name);
    return (size_t)(add(to, wanted->directory.ptr, head.directory) - packet);
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

int kiln_wire_head(struct kiln_str *packet, struct kiln_names_said *ret_said)
{
    struct kiln_names_said said;
    int r = take(packet, &said, sizeof(said));

    if (r < 0)
        return r;
    if (said.what < KILN_SAID_NAMES || said.what > KILN_SAID_TEXT)
        return KILN_E_MALFORMED;
    *ret_said = said;
    return 0;
}

int kiln_wire_begin(const struct kiln_names_said *said, const struct kiln_names_ask *ask,
                    uint32_t first)
{
    if (said->number != ask->number || said->first != first || said->n > ask->n - first ||
        said->status > 0 || (said->status == 0) != (said->n > 0))
        return KILN_E_MALFORMED;
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

int kiln_wire_wanted(struct kiln_str *packet, struct kiln_wanted *ret_wanted)
{
    struct kiln_wanted wanted = {0};
    struct kiln_wire_wanted head;
    int r = take(packet, &head, sizeof(head));

    if (r == 0 && (head.kind > KILN_WANTED_DWO || head.build_id_len > KILN_BUILD_ID_MAX))
        r = KILN_E_MALFORMED;
    if (r == 0)
        r = take_text(packet, head.name, &wanted.name);
    if (r == 0)
        r = take_text(packet, head.directory, &wanted.directory);
    if (r < 0 || packet->len > 0)
        return r < 0 ? r : KILN_E_MALFORMED;
    wanted.kind = head.kind;
    wanted.build_id_len = head.build_id_len;
    memcpy(wanted.build_id, head.build_id, sizeof(wanted.build_id));
    wanted.has_crc = head.has_crc != 0;
    wanted.crc = head.crc;
    wanted.dwo_id = head.dwo_id;
    wanted.attempt = head.attempt;
    *ret_wanted = wanted;
    return 0;
}

static int take_frame(struct kiln_str *packet, struct kiln_name_frame *ret)
{
    struct kiln_name_frame frame = {0};
    struct kiln_wire_frame head;
    int r = take(packet, &head, sizeof(head));

    if (r == 0)
        r = take_text(packet, head.function, &frame.function);
    if (r == 0)
        r = take_text(packet, head.system_name, &frame.system_name);
    if (r == 0)
        r = take_text(packet, head.file, &frame.file);
    if (r < 0)
        return r;
    if (frame.function.len == 0)
        return KILN_E_MALFORMED;
    frame.line = head.line;
    frame.column = head.column;
    frame.start_line = head.start_line;
    *ret = frame;
    return 0;
}

int kiln_wire_next(struct kiln_str *packet, struct kiln_name_frame room[KILN_NAME_FRAMES_MAX],
                   struct kiln_name *ret_name)
{
    struct kiln_name name = {.frames = room};
    struct kiln_wire_name head;
    int r = take(packet, &head, sizeof(head));

    if (r == 0 && (head.n > KILN_NAME_FRAMES_MAX || head.shallow > 1))
        r = KILN_E_MALFORMED;
    if (r == 0)
        r = take_text(packet, head.module, &name.module);
    for (; r == 0 && name.n < head.n; name.n++)
        r = take_frame(packet, room + name.n);
    if (r < 0)
        return r;
    name.shallow = head.shallow;
    name.begin = head.begin;
    *ret_name = name;
    return 0;
}

int kiln_wire_text(const struct kiln_names_said *said, const struct kiln_names_ask *ask,
                   uint64_t first, struct kiln_str packet)
{
    if (said->number != ask->number || !ask->name || said->first != first ||
        said->n != packet.len || said->status > 0 || (said->status < 0 && said->n > 0))
        return KILN_E_MALFORMED;
    return 0;
}
