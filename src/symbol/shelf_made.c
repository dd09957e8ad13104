/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts and lists of frames are there once each.  They are found again by tables of places, with 32
 * bits of a hash beside each so that a look rarely leads to other content.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "symbol/shelf_int.h"

enum { FIRST = 64 };

void kiln_shelf_made_init(struct kiln_shelf_made *made, size_t max_bytes)
{
    *made = (struct kiln_shelf_made){.budget = {.limit = max_bytes}};
    kiln_buf_init(&made->lists, max_bytes / 2);
    kiln_buf_init(&made->texts, max_bytes / 2);
}

static void index_done(struct kiln_shelf_made *made, struct kiln_shelf_index *index)
{
    kiln_budget_give(&made->budget, index->cap * sizeof(*index->places));
    kiln_free(index->places);
}

void kiln_shelf_made_done(struct kiln_shelf_made *made)
{
    index_done(made, &made->by_address);
    index_done(made, &made->by_list);
    index_done(made, &made->by_text);
    kiln_array_free(&made->budget, (void **)&made->slots, &made->cap, sizeof(*made->slots));
    kiln_buf_done(&made->lists);
    kiln_buf_done(&made->texts);
    *made = (struct kiln_shelf_made){0};
}

size_t kiln_shelf_made_bytes(const struct kiln_shelf_made *made)
{
    return made->budget.used + made->lists.cap + made->texts.cap;
}

/* ---- what is there already ---- */

static int index_grow(struct kiln_shelf_made *made, struct kiln_shelf_index *index)
{
    uint32_t cap = index->cap ? index->cap * 2 : FIRST;
    struct kiln_shelf_place *places;
    int r = kiln_budget_take(&made->budget, cap * sizeof(*places));

    if (r < 0)
        return r;
    places = kiln_calloc(cap, sizeof(*places));
    if (!places) {
        kiln_budget_give(&made->budget, cap * sizeof(*places));
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < index->cap; i++) {
        uint32_t at = index->places[i].hash & (cap - 1);

        if (index->places[i].at == 0)
            continue;
        while (places[at].at)
            at = (at + 1) & (cap - 1);
        places[at] = index->places[i];
    }
    index_done(made, index);
    index->places = places;
    index->cap = cap;
    return 0;
}

/* The first place of this hash, from *at on; NULL: there is none. */
static struct kiln_shelf_place *index_next(const struct kiln_shelf_index *index, uint32_t hash,
                                           uint32_t *at)
{
    while (index->cap) {
        struct kiln_shelf_place *place = index->places + (*at & (index->cap - 1));

        if (place->at == 0)
            return NULL;
        ++*at;
        if (place->hash == hash)
            return place;
    }
    return NULL;
}

/* `at` is not 0. */
static int index_add(struct kiln_shelf_made *made, struct kiln_shelf_index *index, uint32_t hash,
                     uint32_t at)
{
    int r = index->n * 4 >= index->cap * 3 ? index_grow(made, index) : 0;
    uint32_t i = hash;

    if (r < 0)
        return r;
    while (index->places[i & (index->cap - 1)].at)
        i++;
    index->places[i & (index->cap - 1)] = (struct kiln_shelf_place){hash, at};
    index->n++;
    return 0;
}

/* The place of bytes in a buffer, where they are added if they are not there yet. */
static int add_bytes(struct kiln_shelf_made *made, struct kiln_shelf_index *index,
                     struct kiln_buf *buf, struct kiln_str bytes, uint32_t *ret_at)
{
    uint64_t wide = kiln_hash(bytes.ptr, bytes.len);
    uint32_t hash = (uint32_t)(wide ^ wide >> 32), i = hash, at;
    const struct kiln_shelf_place *place;

    while ((place = index_next(index, hash, &i))) {
        at = place->at - 1;
        if (buf->len - at >= bytes.len && memcmp(buf->ptr + at, bytes.ptr, bytes.len) == 0) {
            *ret_at = at;
            return 0;
        }
    }
    at = (uint32_t)buf->len;
    kiln_buf_add_str(buf, bytes);
    if (buf->error)
        return buf->error;
    *ret_at = at;
    return index_add(made, index, hash, at + 1);
}

/* ---- names ---- */

static int add_text(struct kiln_shelf_made *made, struct kiln_str text, uint32_t *ret_at,
                    uint16_t *ret_len)
{
    if (text.len > KILN_SHELF_TEXT_MAX)
        text.len = KILN_SHELF_TEXT_MAX;
    *ret_len = (uint16_t)text.len;
    *ret_at = 0;
    return text.len ? add_bytes(made, &made->by_text, &made->texts, text, ret_at) : 0;
}

static int add_frame(struct kiln_shelf_made *made, const struct kiln_name_frame *frame,
                     struct kiln_shelf_frame *to)
{
    int r = add_text(made, frame->function, &to->function, &to->function_len);

    if (r == 0)
        r = add_text(made, frame->system_name, &to->system_name, &to->system_name_len);
    if (r == 0)
        r = add_text(made, frame->file, &to->file, &to->file_len);
    to->line = frame->line;
    to->column = frame->column;
    to->start_line = frame->start_line;
    return r;
}

static int add_list(struct kiln_shelf_made *made, const struct kiln_name *name, uint32_t *ret_at)
{
    struct {
        struct kiln_shelf_list list;
        struct kiln_shelf_frame frames[KILN_NAME_FRAMES_MAX];
    } on_disk;
    size_t size = sizeof(on_disk.list) + name->n * sizeof(on_disk.frames[0]);
    int r;

    memset(&on_disk, 0, size);
    on_disk.list.n = (uint16_t)name->n;
    on_disk.list.begin = name->begin;
    r = add_text(made, name->module, &on_disk.list.module, &on_disk.list.module_len);
    for (uint32_t i = 0; i < name->n && r == 0; i++)
        r = add_frame(made, name->frames + i, on_disk.frames + i);
    if (r < 0)
        return r;
    return add_bytes(made, &made->by_list, &made->lists,
                     (struct kiln_str){(const char *)&on_disk, size}, ret_at);
}

static struct kiln_shelf_slot *slot_of(const struct kiln_shelf_made *made, uint64_t address)
{
    uint32_t hash = (uint32_t)kiln_hash_mix(0, address), i = hash;
    const struct kiln_shelf_place *place;

    while ((place = index_next(&made->by_address, hash, &i)))
        if (made->slots[place->at - 1].address == address)
            return made->slots + place->at - 1;
    return NULL;
}

static int add_slot(struct kiln_shelf_made *made, const struct kiln_shelf_slot *slot)
{
    int r = kiln_grow(&made->budget, (void **)&made->slots, &made->cap, (uint64_t)made->n + 1,
                      sizeof(*made->slots), KILN_SHELF_ADDRESSES);

    if (r == 0)
        r = index_add(made, &made->by_address, (uint32_t)kiln_hash_mix(0, slot->address),
                      made->n + 1);
    if (r == 0)
        made->slots[made->n++] = *slot;
    return r;
}

int kiln_shelf_made_add(struct kiln_shelf_made *made, uint64_t address, uint32_t when,
                        const struct kiln_name *name, bool over)
{
    struct kiln_shelf_slot slot = {.address = address, .when = when};
    struct kiln_shelf_slot *there = slot_of(made, address);
    uint32_t at;
    int r;

    if (there && (when ^ there->when) & KILN_SHELF_LINES)
        over = when & KILN_SHELF_LINES;
    if (name->n > KILN_NAME_FRAMES_MAX || (there && !over))
        return 0;
    r = add_list(made, name, &at);
    if (r < 0)
        return r;
    slot.list = at / 8 + 1;
    if (!there)
        return add_slot(made, &slot);
    *there = slot;
    return 0;
}

int kiln_shelf_made_merge(struct kiln_shelf_made *made, struct kiln_shelf_file *file)
{
    struct kiln_name_frame frames[KILN_NAME_FRAMES_MAX];
    struct kiln_name name;
    int r = 0;

    for (uint64_t i = 0; i <= file->mask && r == 0; i++) {
        const struct kiln_shelf_slot *slot = file->slots + i;

        if (kiln_shelf_file_slot(file, (uint32_t)i, frames, &name))
            r = kiln_shelf_made_add(made, slot->address, slot->when, &name, false);
    }
    return r;
}

/* ---- its bytes ---- */

static int put_table(const struct kiln_shelf_made *made, const struct kiln_shelf_head *head,
                     struct kiln_buf *out)
{
    size_t size = sizeof(struct kiln_shelf_slot) << head->bits;
    uint32_t mask = (1u << head->bits) - 1;
    struct kiln_shelf_slot *table = (void *)kiln_buf_reserve(out, size);

    if (!table)
        return out->error;
    memset(table, 0, size);
    for (uint32_t i = 0; i < made->n; i++) {
        uint32_t at = (uint32_t)kiln_shelf_hash(head->seed, made->slots[i].address) & mask;

        while (table[at].list)
            at = (at + 1) & mask;
        table[at] = made->slots[i];
    }
    out->len += size;
    return 0;
}

int kiln_shelf_made_encode(const struct kiln_shelf_made *made, struct kiln_str build_id,
                           uint64_t seed, struct kiln_buf *out)
{
    struct kiln_shelf_head head = {
        .magic = {'K', 'I', 'L', 'N', 'S', 'H', 'F', '\n'},
        .version = KILN_SHELF_VERSION,
        .reader = KILN_SHELF_READER,
        .seed = seed,
        .n = made->n,
        .lists_size = (uint32_t)made->lists.len,
        .texts_size = (uint32_t)made->texts.len,
        .id_crc = kiln_crc32c(0, build_id.ptr, build_id.len),
    };
    int r;

    while (made->n * 2ull > 1ull << head.bits)
        head.bits++;
    head.bits += head.bits == 0;
    kiln_buf_clear(out);
    kiln_buf_add(out, &head, sizeof(head));
    r = put_table(made, &head, out);
    kiln_buf_add_str(out, kiln_buf_str(&made->lists));
    kiln_buf_add_str(out, kiln_buf_str(&made->texts));
    if (r < 0 || out->error)
        return r < 0 ? r : out->error;
    head.size = out->len;
    head.body_crc = kiln_crc32c(0, out->ptr + sizeof(head), out->len - sizeof(head));
    head.head_crc = kiln_crc32c(0, &head, offsetof(struct kiln_shelf_head, head_crc));
    memcpy(out->ptr, &head, sizeof(head));
    return 0;
}
