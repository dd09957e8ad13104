/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands for entries of a damaged dictionary page, so that all others keep their numbers.
 *
 * Attributes and mappings have no placeholders: they are found by their content.  What refers to
 * one that is not there leaves it out.  Origins and moments have none either: a profile without a
 * type or a time is lost with the page of rows that has it.
 */
#include "core/bulk.h"
#include "store/block_reader.h"

#define DAMAGED_NAME KILN_STR("[damaged]")

bool kiln_reader_stands_alone(uint32_t kind)
{
    return kind == KILN_SECTION_STRINGS || kind == KILN_SECTION_STACKS ||
           kind == KILN_SECTION_RANKS || kind == KILN_SECTION_RESOURCES ||
           kind == KILN_SECTION_SCOPES;
}

static int fill_lists(struct kiln_block_reader *r, uint64_t n)
{
    int result = READER_ROOM(r, r->lists, r->cap_lists, n);

    while (result == 0 && r->n_lists < n)
        r->lists[r->n_lists++] = (struct kiln_reader_list){0};
    return result;
}

/* Room was made for as many as the section has. */
static int fill_stacks(struct kiln_block_reader *r, uint64_t n)
{
    int result = READER_ROOM(r, r->sorted, r->cap_sorted, n);

    while (result == 0 && r->n_stacks < n)
        r->sorted[r->n_stacks++] = 0;
    return result;
}

static int fill_ranks(struct kiln_block_reader *r, uint64_t n)
{
    while (r->next < n && r->next < r->n_stacks)
        r->stack_of[r->next++] = 0;
    return 0;
}

/* A table of the builder whose entry 0 is none of the section's. */
#define FILL(table, entry)                                                                         \
    while (kiln_builder_peek(r->own)->dict.n_##table <= n && !kiln_builder_error(r->own))          \
        entry;                                                                                     \
    return kiln_builder_error(r->own)

int kiln_reader_fill(struct kiln_block_reader *r, uint32_t kind, uint64_t n)
{
    switch (kind) {
    case KILN_SECTION_STRINGS:
        FILL(strings, kiln_builder_new_string(r->own, DAMAGED_NAME));
    case KILN_SECTION_SETS:
        FILL(sets, kiln_builder_new_set(r->own, NULL, 0));
    case KILN_SECTION_FUNCTIONS:
        FILL(functions, kiln_builder_new_function(r->own, &(struct kiln_function){0}));
    case KILN_SECTION_LOCATIONS:
        FILL(locations, kiln_builder_new_location(r->own, 0, 0, 0, NULL, 0));
    case KILN_SECTION_LISTS:
        return fill_lists(r, n);
    case KILN_SECTION_STACKS:
        return fill_stacks(r, n);
    case KILN_SECTION_RANKS:
        return fill_ranks(r, n);
    case KILN_SECTION_RESOURCES:
        while (kiln_builder_peek(r->own)->n_resources < n && !kiln_builder_error(r->own))
            kiln_builder_add_resource(r->own, &(struct kiln_resource){0});
        return kiln_builder_error(r->own);
    case KILN_SECTION_SCOPES:
        while (kiln_builder_peek(r->own)->n_scopes < n && !kiln_builder_error(r->own))
            kiln_builder_add_scope(r->own, &(struct kiln_scope){0});
        return kiln_builder_error(r->own);
    default:
        return 0;
    }
}
#undef FILL
