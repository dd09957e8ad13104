/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context_maker - process contexts (OTEP 4719) drawn as text, and processes that publish them.
 *
 *   "service.name=shop,replicas=3#,beta=true?,load=0.5~;keys=[method route]"
 *
 * Attributes of the resource, then behind a semicolon those of the process; "#" ends an integer,
 * "?" a boolean, "~" a double, brackets are a list of texts.
 */
#ifndef KILN_TESTS_CONTEXT_MAKER_H
#define KILN_TESTS_CONTEXT_MAKER_H

#include "base/buf.h"
#include "fake_proc.h"

/* Appends the payload. */
void context_draw(const char *text, struct kiln_buf *out);
/* A page with the header and behind it the payload, as it would be at `address`. */
void context_page(const char *text, uint64_t address, uint64_t published_ns, char page[4096]);

/* Lets a process of a fake /proc publish it: maps, mem and pagemap. */
void fake_proc_publish(struct fake_proc *fake, uint32_t pid, const char *text,
                       uint64_t published_ns);

#endif /* KILN_TESTS_CONTEXT_MAKER_H */
