/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page - the files of the page, web/, as the build made them part of the program.
 *
 * Threads: constant.
 */
#ifndef KILN_API_PAGE_H
#define KILN_API_PAGE_H

#include <stddef.h>
#include <stdint.h>

struct kiln_page_file {
    const char *path, *content_type;
    const unsigned char *gzip;
    size_t gzip_len, len;
};

extern const struct kiln_page_file kiln_page_files[]; /* index.html first */
extern const uint32_t kiln_page_n_files;

#endif /* KILN_API_PAGE_H */
