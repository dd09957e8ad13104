/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks and rows in plain memory.  The process has a program (file 1) at PROGRAM, a library
 * without tables (file 2) at BARE, code made at run time at JIT, and a stack at STACK.
 */
#include "test.h"

#include "host/bpf/record.h"

enum {
    PROGRAM = 0x400000,
    BARE = 0x500000,
    JIT = 0x600000,
    STACK = 0x7f0000,
    LENGTH = 0x8000,
    PID = 7,
    ERA = 3,
    STACK_WORDS = 128,
    DIR_MAX = 8,
};

struct kiln_walk_env {
    uint64_t words[256];
    uint32_t n_words;
    struct kiln_dir_key keys[DIR_MAX];
    struct kiln_dir_entry entries[DIR_MAX];
    uint32_t n_entries;
    uint64_t stack[STACK_WORDS];
    uint64_t frames[KILN_USER_FRAMES_MAX];
    uint32_t stamps;
    uint32_t spoil; /* the generation of this slot changes while it is read; 0: of none */
};

static int kiln_walk_read(struct kiln_walk_env *env, uint64_t address, void *to, uint32_t size)
{
    if (address < STACK || address + size > STACK + sizeof(env->stack))
        return -1;
    memcpy(to, (const char *)env->stack + (address - STACK), size);
    return 0;
}

static int kiln_walk_find(struct kiln_walk_env *env, const struct kiln_dir_key *key,
                          struct kiln_dir_entry *ret_entry)
{
    for (uint32_t i = 0; i < env->n_entries; i++) {
        if (env->keys[i].file == key->file && env->keys[i].page == key->page) {
            *ret_entry = env->entries[i];
            return 0;
        }
    }
    return -1;
}

static uint64_t kiln_walk_word(struct kiln_walk_env *env, uint32_t index)
{
    if (env->spoil && index == env->spoil + 1)
        env->words[env->spoil]++;
    return index < env->n_words ? env->words[index] : 0;
}

static void kiln_walk_stamp(struct kiln_walk_env *env, uint32_t index, uint32_t tick)
{
    env->words[index] = (uint32_t)env->words[index] | (uint64_t)tick << 32;
    env->stamps++;
}

static void kiln_walk_frame(struct kiln_walk_env *env, uint32_t n, uint64_t address)
{
    env->frames[n] = address;
}

#include "host/walk.h"

static struct kiln_walk_env env;
static struct kiln_walk walk;
static struct kiln_registers regs;

static void put_entry(uint32_t file, uint32_t page, const uint64_t *words, uint32_t n, uint32_t per)
{
    env.keys[env.n_entries] = (struct kiln_dir_key){.file = file, .page = page};
    env.entries[env.n_entries++] = (struct kiln_dir_entry){
        .slot = env.n_words, .n = n / per, .generation = 40 + file, .era = file ? 0 : ERA};
    env.words[env.n_words++] = 40 + file;
    memcpy(env.words + env.n_words, words, n * 8);
    env.n_words += n;
}

static void put_rows(uint32_t file, uint32_t page, const uint64_t *rows, uint32_t n)
{
    put_entry(file, page, rows, n, 1);
}

/* The process with its three mappings; the program's rows are the test's. */
static void begin(const uint64_t *rows, uint32_t n)
{
    const uint64_t maps[] = {
        PROGRAM, PROGRAM + LENGTH, PROGRAM, 1,                            /* */
        BARE,    BARE + LENGTH,    BARE,    2,                            /* */
        JIT,     JIT + LENGTH,     0,       (uint64_t)KILN_MAP_JIT << 32, /* */
    };
    memset(&env, 0, sizeof(env));
    memset(&regs, 0, sizeof(regs));
    env.n_words = 8; /* slot 0 is none */
    put_entry(0, PID, maps, KILN_ARRAY_LEN(maps), KILN_MAP_WORDS);
    put_rows(1, 0, rows, n);
    put_rows(2, 0, (const uint64_t[]){0}, 1);
}

static void start(void)
{
    memset(&walk, 0xee, sizeof(walk));
    walk.pid = PID;
    walk.era = ERA;
    walk.tick = 9;
    kiln_walk_begin(&walk, &regs, 1);
}

/* "400010 400123 complete": frames, then how it ended. */
static const char *run(void)
{
    static const char *const ends[KILN_ENDS] = {
        "complete", "no_user", "compat", "jit",         "no_table",    "unmapped", "read",
        "stuck",    "depth",   "rule",   "new process", "new mapping", "new page", "slice"};
    static char text[512];
    int steps = 0;
    while (!kiln_walk_step(&env, &walk))
        CHECK(++steps <= KILN_USER_FRAMES_MAX);
    size_t at = 0;
    for (uint32_t i = 0; i < walk.n && i < 16; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%llx ",
                               (unsigned long long)env.frames[i]);
    snprintf(text + at, sizeof(text) - at, "%s", ends[walk.end]);
    return text;
}

static const char *walked(void)
{
    start();
    return run();
}

static uint64_t row(uint32_t address, uint32_t cfa, int cfa_off, uint32_t fp, int fp_off)
{
    return kiln_row_pack(address, cfa, fp, cfa_off, fp_off);
}

/* A program of leaf() called by main() called by _start, without frame pointers. */
static void begin_plain(void)
{
    const uint64_t rows[] = {
        row(0, KILN_CFA_END, 0, 0, 0),         /* _start */
        row(0x100, KILN_CFA_SP, 8, 0, 0),      /* main: */
        row(0x104, KILN_CFA_SP, 32, 0, 0),     /* sub $24, %rsp */
        row(0x200, KILN_CFA_SP, 8, 0, 0),      /* leaf: */
        row(0x201, KILN_CFA_SP, 16, 1, -16),   /* push %rbp */
        row(0x204, KILN_CFA_FP, 16, 1, -16),   /* mov %rsp, %rbp */
        row(0x300, KILN_CFA_NONE, 0, 0, 0),    /* assembler */
        row(0x400, KILN_CFA_REG + 10, 8, 0, 0) /* a stack realigned by r10 */
    };
    begin(rows, KILN_ARRAY_LEN(rows));
    regs.r[7] = STACK;
}

TEST(walk, rows_lead_from_the_leaf_to_the_entry_point)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    env.stack[0] = PROGRAM + 0x120; /* into main */
    env.stack[4] = PROGRAM + 0x20;  /* into _start */
    CHECK_TEXT(walked(), "400200 40011f 40001f complete");
    CHECK_EQ(env.stamps, 2);
}

TEST(walk, a_saved_frame_pointer_comes_back)
{
    begin_plain();
    regs.pc = PROGRAM + 0x210;
    regs.r[6] = STACK + 0x40;
    env.stack[8] = 0x1234567;
    env.stack[9] = PROGRAM + 0x120;
    env.stack[13] = PROGRAM + 0x20;
    CHECK_TEXT(walked(), "400210 40011f 40001f complete");
    CHECK_EQ(walk.fp, 0x1234567);
}

TEST(walk, every_cfa_of_the_format_is_computed)
{
    const struct {
        uint64_t row;
        uint64_t cfa;
    } cases[] = {
        {row(0, KILN_CFA_SP, 0x10, 0, 0), STACK + 0x10},
        {row(0, KILN_CFA_FP, -0x10, 0, 0), STACK + 0x70},
        {row(0, KILN_CFA_SP_DEREF, 8, 0, 0), STACK + 0x40},
        {row(0, KILN_CFA_SP_DEREF8, 8, 0, 0), STACK + 0x48},
        {row(0, KILN_CFA_FP_DEREF, -8, 0, 0), STACK + 0x50},
        {row(0, KILN_CFA_FP_DEREF8, -8, 0, 0), STACK + 0x58},
        {row(0, KILN_CFA_PLT, 0, 0, 0), STACK + 8},
        {row(0, KILN_CFA_FRAME, 0, 0, 0), STACK + 0x90},
        {row(0, KILN_CFA_REG + 11, 8, 0, 0), STACK + 0x28},
    };
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        begin(&cases[i].row, 1);
        regs.pc = PROGRAM + 0x20;
        regs.r[7] = STACK;
        regs.r[6] = STACK + 0x80;
        regs.r[11] = STACK + 0x20;
        env.stack[1] = STACK + 0x40;
        env.stack[15] = STACK + 0x50;
        start();
        kiln_walk_step(&env, &walk);
        CHECK_EQ(walk.sp, cases[i].cfa);
    }
    begin(&cases[6].row, 1);
    regs.pc = PROGRAM + 0x2b; /* the stub has pushed its number */
    regs.r[7] = STACK;
    start();
    kiln_walk_step(&env, &walk);
    CHECK_EQ(walk.sp, STACK + 16);
}

TEST(walk, a_register_of_the_leaf_is_no_register_of_a_caller)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    regs.r[10] = STACK + 0x20;
    env.stack[0] = PROGRAM + 0x410;
    CHECK_TEXT(walked(), "400200 40040f rule");
}

TEST(walk, a_return_address_may_be_in_a_register_of_the_leaf)
{
    const uint64_t rows[] = {row(0, KILN_CFA_END, 0, 0, 0),
                             row(0x100, KILN_CFA_SP, 0, KILN_FP_RA_REG, 5)};
    begin(rows, 2);
    regs.pc = PROGRAM + 0x104;
    regs.r[7] = STACK;
    regs.r[5] = PROGRAM + 0x30;
    CHECK_TEXT(walked(), "400104 40002f complete");
}

TEST(walk, a_signal_gives_all_registers_back_and_an_exact_address)
{
    const uint64_t rows[] = {row(0, KILN_CFA_END, 0, 0, 0),
                             row(0x100, KILN_CFA_REG + 10, 0, 0, 0), /* what was interrupted */
                             row(0x1ff, KILN_CFA_SIGNAL, 0, 0, 0),
                             row(0x210, KILN_CFA_SP, 8, 0, 0)};
    begin(rows, 4);
    regs.pc = PROGRAM + 0x210; /* the handler, on an alternate stack above */
    regs.r[7] = STACK + 0x100;
    env.stack[0x20] = PROGRAM + 0x200;
    uint64_t *saved = env.stack + 0x21 + 5;
    saved[2] = STACK + 0x18;     /* r10 */
    saved[10] = 0x55;            /* rbp */
    saved[15] = STACK;           /* rsp */
    saved[16] = PROGRAM + 0x100; /* rip: the first byte of a function */
    env.stack[2] = PROGRAM + 0x10;
    CHECK_TEXT(walked(), "400210 400200 400100 40000f complete");
    CHECK_EQ(walk.fp, 0x55);
}

TEST(walk, a_stack_that_does_not_rise_is_stuck)
{
    begin_plain();
    regs.pc = PROGRAM + 0x210;
    regs.r[7] = STACK + 0x80;
    regs.r[6] = STACK + 0x10;
    CHECK_TEXT(walked(), "400210 stuck");
}

TEST(walk, frame_pointers_that_run_in_a_circle_end)
{
    const uint64_t rows[] = {row(0, KILN_CFA_FRAME, 0, 0, 0)};
    begin(rows, 1);
    regs.pc = PROGRAM + 0x20;
    regs.r[7] = STACK;
    regs.r[6] = STACK + 0x10;
    env.stack[2] = STACK + 0x20;
    env.stack[3] = PROGRAM + 0x40;
    env.stack[4] = STACK + 0x10;
    env.stack[5] = PROGRAM + 0x40;
    walked();
    CHECK_EQ(walk.end, KILN_END_STUCK);
    CHECK(walk.n < 64);
}

TEST(walk, a_stack_deeper_than_all_frames_ends_with_depth)
{
    const uint64_t rows[] = {row(0, KILN_CFA_FRAME, 0, 0, 0)};
    begin(rows, 1);
    start();
    walk.n = KILN_USER_FRAMES_MAX;
    CHECK_EQ(kiln_walk_step(&env, &walk), 1);
    CHECK_EQ(walk.end, KILN_END_DEPTH);
    CHECK_EQ(walk.n, KILN_USER_FRAMES_MAX);
}

TEST(walk, jit_code_is_crossed_by_frame_pointers)
{
    begin_plain();
    regs.pc = JIT + 0x50;
    regs.r[6] = STACK + 0x20;
    env.stack[4] = STACK + 0x40;
    env.stack[5] = JIT + 0x123;
    env.stack[8] = 0x99; /* the program uses rbp for other things */
    env.stack[9] = PROGRAM + 0x120;
    env.stack[13] = PROGRAM + 0x20;
    CHECK_TEXT(walked(), "600050 600122 40011f 40001f complete");
}

TEST(walk, jit_code_with_a_frame_pointer_that_is_none_ends_there)
{
    const uint64_t bad[] = {0, 4, STACK + 0x21, STACK - 0x20, STACK + 0x200000, STACK + 0x400};
    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        begin_plain();
        regs.pc = JIT + 0x50;
        regs.r[6] = bad[i];
        CHECK_TEXT(walked(), "600050 jit");
    }
}

TEST(walk, a_zero_at_the_end_of_a_chain_of_frame_pointers_is_complete)
{
    begin_plain();
    regs.pc = JIT + 0x50;
    regs.r[6] = STACK + 0x20;
    env.stack[4] = 0;
    env.stack[5] = JIT + 0x123;
    CHECK_TEXT(walked(), "600050 600122 complete");
}

TEST(walk, a_leaf_of_a_file_without_tables_may_have_pushed_nothing)
{
    begin_plain();
    regs.pc = BARE + 0x50;
    regs.r[6] = 0x31; /* no frame pointer */
    env.stack[0] = PROGRAM + 0x120;
    env.stack[4] = PROGRAM + 0x20;
    CHECK_TEXT(walked(), "500050 40011f 40001f complete");
}

TEST(walk, an_outermost_frame_without_tables_is_marked_by_a_frame_pointer_of_zero)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    env.stack[0] = BARE + 0x10;
    CHECK_TEXT(walked(), "400200 50000f complete");
}

TEST(walk, a_return_address_of_zero_is_the_end)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    CHECK_TEXT(walked(), "400200 complete");
}

TEST(walk, a_stack_that_cannot_be_read_says_so)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    regs.r[7] = 0x1000;
    CHECK_TEXT(walked(), "400200 read");
}

TEST(walk, an_unknown_process_is_a_miss_before_the_first_frame)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    env.keys[0].page = PID + 1;
    CHECK_TEXT(walked(), "new process");
    env.keys[0].page = PID;
    env.entries[0].era = ERA + 1; /* it runs another program meanwhile */
    CHECK_TEXT(walked(), "new process");
}

TEST(walk, an_unknown_page_is_a_miss_and_the_walk_goes_on_once_it_is_there)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    env.stack[0] = PROGRAM + 0x4010;
    env.stack[1] = PROGRAM + 0x20;
    CHECK_TEXT(walked(), "400200 new page");
    CHECK_EQ(walk.miss, PROGRAM + 0x400f);
    put_rows(1, 1, (const uint64_t[]){row(0, KILN_CFA_SP, 8, 0, 0)}, 1);
    kiln_walk_again(&walk);
    CHECK_TEXT(run(), "400200 40400f 40001f complete");
}

TEST(walk, a_mapping_that_does_not_exist_ends_the_walk_once_that_is_sure)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    env.stack[0] = 0x12345678;
    CHECK_TEXT(walked(), "400200 new mapping");
    CHECK_EQ(walk.miss, 0x12345677);
    kiln_walk_without(&walk);
    CHECK_TEXT(run(), "400200 unmapped");
}

TEST(walk, of_a_leaf_without_tables_both_return_addresses_may_be_unknown)
{
    begin_plain();
    regs.pc = BARE + 0x50;
    regs.r[6] = STACK + 0x20;
    env.stack[0] = 0x22222222;
    env.stack[5] = 0x11111111;
    CHECK_TEXT(walked(), "new mapping");
    CHECK_EQ(walk.miss, 0x11111111);
    kiln_walk_without(&walk);
    CHECK_TEXT(run(), "new mapping");
    CHECK_EQ(walk.miss, 0x22222222);
    kiln_walk_without(&walk);
    CHECK_TEXT(run(), "500050 no_table");
}

TEST(walk, a_slot_that_was_given_away_while_it_was_read_is_a_miss)
{
    begin_plain();
    regs.pc = PROGRAM + 0x200;
    env.spoil = env.entries[0].slot;
    CHECK_TEXT(walked(), "new process");
    begin_plain();
    regs.pc = PROGRAM + 0;
    env.spoil = env.entries[1].slot;
    CHECK_TEXT(walked(), "new page");
}

TEST(walk, rbx_is_followed_to_callers_that_keep_their_cfa_in_it)
{
    const uint64_t rows[] = {
        row(0, KILN_CFA_END, 0, 0, 0),                                    /* _start */
        row(0x100, KILN_CFA_REG + 3, 16, 0, 0),                           /* the resolver */
        kiln_row_with_bx(row(0x200, KILN_CFA_SP, 0x20, 0, 0), 1),         /* push %rbx */
        row(0x300, KILN_CFA_SP, 8, 0, 0),                                 /* not saved yet */
        kiln_row_with_bx(row(0x400, KILN_CFA_SP, 8, 0, 0), 2),            /* popped again */
        kiln_row_with_bx(row(0x500, KILN_CFA_SP, 8, 0, 0), KILN_BX_LOST), /* */
    };
    static const struct {
        uint64_t pc;
        const char *text;
    } cases[] = {{0x210, "400210 40010f 40000f complete"},
                 {0x310, "400310 40010f 40000f complete"},
                 {0x410, "400410 40010f 40000f complete"},
                 {0x510, "400510 40010f rule"}};
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        begin(rows, KILN_ARRAY_LEN(rows));
        regs.pc = PROGRAM + cases[i].pc;
        regs.r[7] = STACK + (cases[i].pc == 0x210 ? 0 : 0x18);
        regs.r[3] = cases[i].pc == 0x210 ? 0x77 : STACK + 0x40;
        env.stack[2] = STACK + 0x40;    /* rbx, where 0x200 saved it */
        env.stack[3] = PROGRAM + 0x110; /* into the resolver */
        env.stack[9] = PROGRAM + 0x10;  /* into _start: CFA - 8 */
        CHECK_TEXT(walked(), cases[i].text);
    }
}

TEST(walk, a_frame_pointer_that_was_popped_is_not_read_below_the_stack)
{
    const uint64_t rows[] = {row(0, KILN_CFA_END, 0, 0, 0),
                             row(0x100, KILN_CFA_SP, 8, KILN_FP_AT_CFA, -16)}; /* ret */
    begin(rows, 2);
    regs.pc = PROGRAM + 0x110;
    regs.r[7] = STACK; /* and below it nothing can be read */
    regs.r[6] = 0x1234;
    env.stack[0] = PROGRAM + 0x10;
    CHECK_TEXT(walked(), "400110 40000f complete");
    CHECK_EQ(walk.fp, 0x1234);
}

TEST(walk, a_program_at_its_first_code_is_complete)
{
    begin_plain();
    regs.pc = BARE + 0x10;
    env.stack[0] = 2; /* argc; then argv, and 0 */
    env.stack[1] = STACK + 0x100;
    env.stack[2] = STACK + 0x110;
    CHECK_TEXT(walked(), "500010 complete");
    env.stack[3] = 5;
    CHECK_TEXT(walked(), "500010 no_table");
}

TEST(walk, a_thread_that_was_just_made_is_complete)
{
    begin_plain();
    regs.r[7] = STACK + 0x200;
    regs.r[6] = 8;
    regs.pc = STACK + 0x12; /* the test can read code there alone */
    env.stack[2] = 0x050f;
    env.stack[0x40] = 0x12; /* what was left at the new stack's end is no return address */
    const uint64_t maps[] = {PROGRAM, PROGRAM + LENGTH, PROGRAM,       1,
                             STACK,   STACK + LENGTH,   STACK - 0x200, 1};
    env.n_entries = 0;
    put_entry(0, PID, maps, KILN_ARRAY_LEN(maps), KILN_MAP_WORDS);
    put_rows(1, 0, (const uint64_t[]){row(0, KILN_CFA_SP, 8, 0, 0)}, 1);
    CHECK_TEXT(walked(), "7f0012 complete");
    regs.r[0] = 77; /* in its maker */
    CHECK_TEXT(walked(), "7f0012 unmapped");
}
