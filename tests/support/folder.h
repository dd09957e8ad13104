/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder - a temporary folder for a test, and what is in it.
 */
#ifndef KILN_TESTS_SUPPORT_FOLDER_H
#define KILN_TESTS_SUPPORT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FOLDER_NAME = 64 };

void folder_make(char ret_path[FOLDER_NAME]);
/* The same, with what a capture NAME.tar.gz holds; false: there is no such capture here. */
bool folder_unpack(char ret_path[FOLDER_NAME], const char *capture);
/* With all that is in it. */
void folder_remove(const char *path);
/* How many names end so; the path of the first in the order of names. */
uint32_t folder_list(const char *path, const char *ending, char *ret_first, size_t size);

#endif /* KILN_TESTS_SUPPORT_FOLDER_H */
