/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/receivers/offsets.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/hash.h"

#define HEAD  "kiln-offsets 1"
#define PROOF 1000 /* bytes at the start of a file by which it is known */

/* The next word of a line as a number; false: it is none. */
static bool take_number(struct kiln_str *line, bool hex, uint64_t *ret)
{
    struct kiln_str word = kiln_str_cut(line, ' ');

    return (hex ? kiln_str_parse_hex(word, ret) : kiln_str_parse_u64(word, ret)) == 0;
}

static int read_line(struct kiln_files *files, struct kiln_str line)
{
    uint64_t dev, ino, offset, head, hash;
    struct kiln_file *file;

    if (!take_number(&line, false, &dev) || !take_number(&line, false, &ino) ||
        !take_number(&line, false, &offset) || !take_number(&line, false, &head) ||
        !take_number(&line, true, &hash) || offset > INT64_MAX || head > PROOF || head > offset)
        return 0;
    file = kiln_files_know(files, (dev_t)dev, (ino_t)ino);
    if (!file)
        return files->seen->n < KILN_FILES_MAX ? -ENOMEM : 0;
    file->is_new = false;
    file->offset = (off_t)offset;
    file->head = (uint32_t)head;
    file->head_hash = hash;
    file->unproven = true;
    return 0;
}

int kiln_offsets_read(struct kiln_files *files, struct kiln_str text)
{
    int r = 0;

    if (!kiln_str_eq(kiln_str_cut(&text, '\n'), KILN_STR(HEAD)))
        return 0;
    while (text.ptr && r == 0)
        r = read_line(files, kiln_str_cut(&text, '\n'));
    files->seen->looked = true; /* before: what is new since then is read from its start */
    return r;
}

void kiln_offsets_write(const struct kiln_files *files, struct kiln_buf *out)
{
    kiln_buf_puts(out, HEAD "\n");
    for (const struct kiln_file *file = files->seen->first; file; file = file->next)
        kiln_buf_printf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIx64 "\n",
                        (uint64_t)file->dev, (uint64_t)file->ino, (uint64_t)file->offset,
                        file->head, file->head_hash);
}

/* Whether the first `n` bytes are there, and what they hash to. */
static bool hash_head(int fd, uint32_t n, uint64_t *ret)
{
    char bytes[PROOF];

    if (pread(fd, bytes, n, 0) != (ssize_t)n)
        return false;
    *ret = kiln_hash(bytes, n);
    return true;
}

void kiln_offsets_prove(struct kiln_file *file, int fd)
{
    uint64_t hash;

    if (file->unproven && (!hash_head(fd, file->head, &hash) || hash != file->head_hash))
        file->offset = 0;
    file->unproven = false;
}

void kiln_offsets_note(struct kiln_file *file, int fd)
{
    uint32_t n = file->offset < PROOF ? (uint32_t)file->offset : PROOF;

    if (n != file->head && hash_head(fd, n, &file->head_hash))
        file->head = n;
}
