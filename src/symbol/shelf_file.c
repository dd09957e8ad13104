/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums are looked at once, when a file is opened; every place in it is held against its limits
 * each time, which costs a few comparisons: pages may have to be read from the disk again.
 *
 * docs/formats/symbol-cache.md has the format; struct kiln_shelf_head and the others are its bytes.
 */
#include "base/clock.h"
#include "base/crc32c.h"
#include "symbol/shelf_int.h"

static int check_head(const struct kiln_shelf_head *head, size_t size, struct kiln_str build_id)
{
    uint64_t body;

    if (memcmp(head->magic, KILN_SHELF_MAGIC, sizeof(head->magic)) != 0)
        return KILN_E_MALFORMED;
    if (head->version != KILN_SHELF_VERSION || head->reader != KILN_SHELF_READER)
        return KILN_E_UNSUPPORTED;
    if (kiln_crc32c(0, head, offsetof(struct kiln_shelf_head, head_crc)) != head->head_crc)
        return KILN_E_CORRUPT;
    if (head->size != size || head->bits > 31 || head->lists_size % 8 != 0 ||
        head->n >= 1u << head->bits)
        return KILN_E_MALFORMED;
    body = ((uint64_t)sizeof(struct kiln_shelf_slot) << head->bits) + head->lists_size +
           head->texts_size;
    if (body != size - sizeof(*head) || head->id_crc != kiln_crc32c(0, build_id.ptr, build_id.len))
        return KILN_E_MALFORMED;
    return 0;
}

int kiln_shelf_file_open(const void *data, size_t size, struct kiln_str build_id,
                         struct kiln_shelf_file *ret_file)
{
    const struct kiln_shelf_head *head = data;
    struct kiln_shelf_file file = {.data = data, .size = size};
    int r;

    if (size < sizeof(*head) || size > KILN_SHELF_FILE_MAX)
        return KILN_E_MALFORMED;
    r = check_head(head, size, build_id);
    if (r < 0)
        return r;
    if (kiln_crc32c(0, file.data + sizeof(*head), size - sizeof(*head)) != head->body_crc)
        return KILN_E_CORRUPT;
    file.seed = head->seed;
    file.mask = (1u << head->bits) - 1;
    file.n = head->n;
    file.slots = (const void *)(file.data + sizeof(*head));
    file.lists = (const char *)(file.slots + file.mask + 1);
    file.texts = file.lists + head->lists_size;
    file.lists_size = head->lists_size;
    file.texts_size = head->texts_size;
    *ret_file = file;
    return 0;
}

/* Past the end: empty, and the file is damaged. */
static struct kiln_str text_of(struct kiln_shelf_file *file, uint32_t at, uint32_t len)
{
    if (len == 0)
        return KILN_STR_NONE;
    if (at > file->texts_size || len > file->texts_size - at || len > KILN_SHELF_TEXT_MAX) {
        file->damaged = true;
        return KILN_STR_NONE;
    }
    return (struct kiln_str){file->texts + at, len};
}

static bool read_list(struct kiln_shelf_file *file, uint32_t unit, struct kiln_name_frame *frames,
                      struct kiln_name *ret_name)
{
    uint64_t at = (uint64_t)(unit - 1) * 8;
    const struct kiln_shelf_list *list = (const void *)(file->lists + at);
    const struct kiln_shelf_frame *f = (const void *)(list + 1);

    file->damaged |= at + sizeof(*list) > file->lists_size;
    if (file->damaged)
        return false;
    file->damaged |= list->n > KILN_NAME_FRAMES_MAX ||
                     at + sizeof(*list) + list->n * sizeof(*f) > file->lists_size;
    if (file->damaged)
        return false;
    for (uint32_t i = 0; i < list->n; i++, f++) {
        frames[i].function = text_of(file, f->function, f->function_len);
        frames[i].system_name = text_of(file, f->system_name, f->system_name_len);
        frames[i].file = text_of(file, f->file, f->file_len);
        frames[i].line = f->line;
        frames[i].column = f->column;
        frames[i].start_line = f->start_line;
        file->damaged |= f->function_len == 0;
    }
    *ret_name = (struct kiln_name){
        .frames = list->n ? frames : NULL,
        .n = list->n,
        .module = text_of(file, list->module, list->module_len),
        .begin = list->begin,
    };
    return !file->damaged;
}

/* Names without lines may be had with them now. */
static bool still_counts(uint32_t when, bool debug)
{
    uint64_t now;

    if (when & KILN_SHELF_LINES)
        return true;
    if (debug && !(when & KILN_SHELF_DEBUG))
        return false;
    now = kiln_clock_unix_ns() / (60 * KILN_NS_PER_S);
    return now - (when & KILN_SHELF_MINUTES) < KILN_SHELF_WEAK_MINUTES;
}

int kiln_shelf_file_find(struct kiln_shelf_file *file, uint64_t address, bool debug,
                         struct kiln_name_frame *frames, struct kiln_name *ret_name)
{
    uint32_t at = (uint32_t)kiln_shelf_hash(file->seed, address) & file->mask;
    struct kiln_name name;

    for (uint32_t i = 0; i <= file->mask; i++, at = (at + 1) & file->mask) {
        const struct kiln_shelf_slot *slot = file->slots + at;

        if (slot->list == 0)
            return 0;
        if (slot->address != address)
            continue;
        if (!still_counts(slot->when, debug) || !read_list(file, slot->list, frames, &name))
            return 0;
        *ret_name = name;
        return 1;
    }
    return 0;
}

bool kiln_shelf_file_slot(struct kiln_shelf_file *file, uint32_t i, struct kiln_name_frame *frames,
                          struct kiln_name *ret_name)
{
    const struct kiln_shelf_slot *slot = file->slots + i;

    return slot->list != 0 && still_counts(slot->when, false) &&
           read_list(file, slot->list, frames, ret_name);
}
