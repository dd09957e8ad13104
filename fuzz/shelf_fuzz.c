/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the symbol cache.  Sums would keep nearly every input out, so the input is the body,
 * and the head is made to fit; what is found in it is written again and must be found there.
 */
#include "base/crc32c.h"
#include "fuzz.h"
#include "symbol/shelf_int.h"

#define ID ((struct kiln_str){"0123456789abcdef", 16})

enum { BITS_MAX = 6, SMALL = 3 };

/* The first byte says how large the table is, the next two how large the lists are. */
static size_t put_file(const uint8_t *data, size_t size, char *to)
{
    struct kiln_shelf_head head = {
        .magic = {'K', 'I', 'L', 'N', 'S', 'H', 'F', '\n'},
        .version = KILN_SHELF_VERSION,
        .reader = KILN_SHELF_READER,
        .bits = data[0] % BITS_MAX,
        .size = sizeof(head) + size - SMALL,
        .id_crc = kiln_crc32c(0, ID.ptr, ID.len),
    };
    size_t table = sizeof(struct kiln_shelf_slot) << head.bits, left;

    if (size - SMALL < table)
        return 0;
    left = size - SMALL - table;
    head.lists_size = (uint32_t)(((data[1] | data[2] << 8) % (left + 1)) & ~7u);
    head.texts_size = (uint32_t)left - head.lists_size;
    head.body_crc = kiln_crc32c(0, data + SMALL, size - SMALL);
    head.head_crc = kiln_crc32c(0, &head, offsetof(struct kiln_shelf_head, head_crc));
    memcpy(to, &head, sizeof(head));
    memcpy(to + sizeof(head), data + SMALL, size - SMALL);
    return head.size;
}

static bool same_frame(const struct kiln_name_frame *a, const struct kiln_name_frame *b)
{
    return kiln_str_eq(a->function, b->function) && kiln_str_eq(a->system_name, b->system_name) &&
           kiln_str_eq(a->file, b->file) && a->line == b->line && a->column == b->column &&
           a->start_line == b->start_line;
}

static void check_same(const struct kiln_name *a, const struct kiln_name *b)
{
    FUZZ_CHECK(a->n == b->n && a->begin == b->begin && kiln_str_eq(a->module, b->module));
    for (uint32_t i = 0; i < a->n; i++)
        FUZZ_CHECK(same_frame(a->frames + i, b->frames + i));
}

/* All that a table has; the first of several with one address counts. */
static void check_again(struct kiln_shelf_file *file, struct kiln_shelf_made *made)
{
    struct kiln_name_frame frames[2][KILN_NAME_FRAMES_MAX];
    struct kiln_shelf_file written;
    struct kiln_name names[2];
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 24);
    if (kiln_shelf_made_encode(made, ID, 42, &out) == 0) {
        FUZZ_CHECK(kiln_shelf_file_open(out.ptr, out.len, ID, &written) == 0);
        for (uint32_t i = 0; i < made->n; i++) {
            FUZZ_CHECK(kiln_shelf_file_find(&written, made->slots[i].address, false, frames[0],
                                            &names[0]) == 1);
            if (kiln_shelf_file_find(file, made->slots[i].address, false, frames[1], &names[1]) ==
                    1 &&
                made->n == file->mask + 1)
                check_same(&names[0], &names[1]);
        }
        FUZZ_CHECK(!written.damaged);
    }
    kiln_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *file = kiln_malloc(size + sizeof(struct kiln_shelf_head));
    struct kiln_shelf_file opened;
    struct kiln_shelf_made made;
    size_t n;

    if (!file)
        return 0;
    if (size > 0)
        memcpy(file, data, size);
    FUZZ_CHECK(kiln_shelf_file_open(file, size, ID, &opened) < 0);
    n = size >= SMALL ? put_file(data, size, file) : 0;
    if (n > 0 && kiln_shelf_file_open(file, n, ID, &opened) == 0) {
        kiln_shelf_made_init(&made, 1 << 24);
        if (kiln_shelf_made_merge(&made, &opened) == 0)
            check_again(&opened, &made);
        kiln_shelf_made_done(&made);
    }
    kiln_free(file);
    return 0;
}
