/* SPDX-License-Identifier: Apache-2.0 */
/* Code that cannot be read while somebody that it has called allocates. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, TURNS = 20000 };

#define PAGE_OF_ITS_OWN(name) __attribute__((noipa, section(name), aligned(PAGE)))

static long blocks;

/* Part of who calls it: the frame behind that one is the code in question. */
static inline __attribute__((always_inline)) void churn(void)
{
    for (int i = 0; i < TURNS; i++) {
        void *volatile block = malloc(500);

        blocks += block != NULL;
        free(block);
    }
}

PAGE_OF_ITS_OWN(".text_of_caller")
static void caller(void (*called)(uintptr_t page))
{
    called((uintptr_t)caller);
    __asm__ volatile(""); /* it is a call, no jump */
}

PAGE_OF_ITS_OWN(".text_behind_caller")
static void put_away(uintptr_t page)
{
    int r = mprotect((void *)page, PAGE, PROT_NONE);

    if (r == 0)
        churn();
    r += mprotect((void *)page, PAGE, PROT_READ | PROT_EXEC);
    printf("put away: %d\n", r);
}

PAGE_OF_ITS_OWN(".text_behind_both")
static void keep_from_readers(uintptr_t page)
{
    int r = mprotect((void *)page, PAGE, PROT_EXEC);

    if (r == 0)
        churn();
    r += mprotect((void *)page, PAGE, PROT_READ | PROT_EXEC);
    printf("kept from readers: %d\n", r);
}

int main(void)
{
    caller(put_away);
    caller(keep_from_readers);
    printf("blocks %ld\n", blocks);
    return 0;
}
