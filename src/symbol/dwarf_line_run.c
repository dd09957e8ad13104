/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line program makes rows of a table, by a machine with registers for address, file, line and
 * column.  Opcodes:
 *
 *   from the first special one on   advance address and line by what the number says, add a row
 *   1 to 12 (standard)              1 add a row   2 uleb address   3 sleb line   4 uleb file
 *                                   5 uleb column   6 statement   7 block   8 address as opcode 255
 *                                   9 2 bytes of address   10, 11 prologue, epilogue   12 uleb isa
 *   other standard ones             as many uleb as the header says
 *   0, uleb length                  1 end of sequence   2 address   3 file   4 uleb discriminator
 *
 * Addresses advance by operations: those of an instruction that holds several are counted apart.
 *
 * A sequence is dropped where it begins below all code or at the end of memory: that is what
 * linkers write instead of the address of a function that they have discarded.
 */
#include "base/err.h"
#include "symbol/dwarf_line_int.h"

enum {
    STANDARD_COPY = 1,
    STANDARD_ADVANCE_PC,
    STANDARD_ADVANCE_LINE,
    STANDARD_SET_FILE,
    STANDARD_SET_COLUMN,
    STANDARD_NEGATE,
    STANDARD_BASIC_BLOCK,
    STANDARD_CONST_ADD_PC,
    STANDARD_FIXED_ADVANCE_PC,
    STANDARD_PROLOGUE_END,
    STANDARD_EPILOGUE_BEGIN,
    STANDARD_SET_ISA,
};

enum { EXTENDED_END = 1, EXTENDED_ADDRESS, EXTENDED_FILE };

struct registers {
    uint64_t address;
    uint32_t line;
    uint64_t file, column;
};

struct machine {
    struct kiln_dwarf_lines *lines;
    struct kiln_cursor c;
    struct registers now;
    uint32_t operation; /* of the instruction at now.address */
    bool in_sequence, is_dropped;
    uint32_t begin; /* of the sequence: its first row */
    uint8_t advance[256];
    int16_t lines_by[256]; /* of special opcodes */
};

static void reset(struct machine *m)
{
    m->now = (struct registers){.line = 1, .file = 1};
    m->operation = 0;
    m->in_sequence = false;
    m->is_dropped = false;
    m->begin = m->lines->n_rows;
}

static void prepare(struct machine *m)
{
    const struct line_head *head = &m->lines->head;

    for (int opcode = head->opcode_base; opcode < 256; opcode++) {
        int adjusted = opcode - head->opcode_base;

        m->advance[opcode] = (uint8_t)(adjusted / head->line_range);
        m->lines_by[opcode] = (int16_t)(head->line_base + adjusted % head->line_range);
    }
}

static void advance(struct machine *m, uint64_t operations)
{
    const struct line_head *head = &m->lines->head;

    if (head->max_operations == 1) {
        m->now.address += head->min_instruction * operations;
        return;
    }
    operations += m->operation;
    m->now.address += head->min_instruction * (operations / head->max_operations);
    m->operation = (uint32_t)(operations % head->max_operations);
}

static bool is_discarded(const struct machine *m)
{
    uint64_t last = m->lines->head.address_size == 4 ? UINT32_MAX : UINT64_MAX;

    return m->now.address < m->lines->ctx.lowest || m->now.address >= last - 1;
}

static int put(struct machine *m, const struct line_row *row)
{
    struct kiln_dwarf_lines *lines = m->lines;
    int r;

    if (lines->n_rows == lines->cap_rows) {
        r = kiln_grow(lines->budget, (void **)&lines->rows, &lines->cap_rows,
                      (uint64_t)lines->n_rows + 1, sizeof(*row), LINE_ROWS_MAX);
        if (r < 0)
            return r;
    }
    lines->rows[lines->n_rows++] = *row;
    return 0;
}

static struct line_row row_of(const struct registers *now)
{
    return (struct line_row){
        .address = now->address,
        .line = now->line,
        .file = (uint16_t)(now->file < LINE_FILES_MAX ? now->file : LINE_NO_FILE),
        .column = (uint16_t)(now->column < UINT16_MAX ? now->column : UINT16_MAX),
    };
}

/* Of rows with one address in a sequence the last one counts. */
static int add_row(struct machine *m, bool is_end)
{
    struct kiln_dwarf_lines *lines = m->lines;
    struct line_row row = row_of(&m->now);

    if (!m->in_sequence) {
        m->in_sequence = true;
        m->is_dropped = is_discarded(m);
    }
    if (m->is_dropped)
        return 0;
    if (is_end)
        row.file = LINE_END;
    else if (lines->n_rows > m->begin && lines->rows[lines->n_rows - 1].address == row.address)
        lines->n_rows--;
    return put(m, &row);
}

static int run_extended(struct machine *m)
{
    uint64_t n = kiln_cursor_uleb(&m->c);
    const uint8_t *at = kiln_cursor_skip(&m->c, n);
    struct kiln_cursor c;
    int r = 0;

    if (!at || n == 0)
        return m->c.bad ? KILN_E_TRUNCATED : 0;
    c = (struct kiln_cursor){at + 1, at + n, false};
    switch (*at) {
    case EXTENDED_END:
        r = add_row(m, true);
        reset(m);
        break;
    case EXTENDED_ADDRESS:
        m->now.address = n - 1 >= 8 ? kiln_cursor_64(&c) : kiln_cursor_32(&c);
        m->operation = 0;
        break;
    case EXTENDED_FILE:
        r = line_file_read(m->lines, &c);
        break;
    default:
        break;
    }
    return r < 0 ? r : c.bad ? KILN_E_TRUNCATED : 0;
}

static void skip_standard(struct machine *m, uint8_t opcode)
{
    for (unsigned i = m->lines->head.lengths[opcode - 1]; i > 0; i--)
        kiln_cursor_uleb(&m->c);
}

static int run_standard(struct machine *m, uint8_t opcode)
{
    switch (opcode) {
    case 0:
        return run_extended(m);
    case STANDARD_COPY:
        return add_row(m, false);
    case STANDARD_ADVANCE_PC:
        advance(m, kiln_cursor_uleb(&m->c));
        break;
    case STANDARD_ADVANCE_LINE:
        m->now.line += (uint32_t)kiln_cursor_sleb(&m->c);
        break;
    case STANDARD_SET_FILE:
        m->now.file = kiln_cursor_uleb(&m->c);
        break;
    case STANDARD_SET_COLUMN:
        m->now.column = kiln_cursor_uleb(&m->c);
        break;
    case STANDARD_NEGATE:
    case STANDARD_BASIC_BLOCK:
    case STANDARD_PROLOGUE_END:
    case STANDARD_EPILOGUE_BEGIN:
        break;
    case STANDARD_CONST_ADD_PC:
        advance(m, m->advance[255]);
        break;
    case STANDARD_FIXED_ADVANCE_PC:
        m->now.address += kiln_cursor_16(&m->c);
        m->operation = 0;
        break;
    case STANDARD_SET_ISA:
        kiln_cursor_uleb(&m->c);
        break;
    default:
        skip_standard(m, opcode);
        break;
    }
    return 0;
}

/* One opcode of any kind. */
static int run_one(struct machine *m)
{
    uint8_t opcode = *m->c.at++;

    if (opcode < m->lines->head.opcode_base)
        return run_standard(m, opcode);
    advance(m, m->advance[opcode]);
    m->now.line += (uint32_t)m->lines_by[opcode];
    return add_row(m, false);
}

/*
 * Opcodes that most of a program is made of, and numbers of one byte: with registers at hand, and
 * while rows have room.  Stops before what is left to run_one().  Instructions have one operation.
 */
static void run_common(struct machine *m)
{
    struct kiln_dwarf_lines *lines = m->lines;
    const uint8_t base = lines->head.opcode_base, step = lines->head.min_instruction;
    const uint8_t *at = m->c.at, *end = m->c.end;
    struct line_row *rows = lines->rows;
    uint32_t n = lines->n_rows;
    const bool is_dropped = m->is_dropped;
    struct registers now = m->now;

    for (; end - at >= 2 && (n < lines->cap_rows || is_dropped); at++) {
        if (*at >= base) {
            now.address += (uint64_t)step * m->advance[*at];
            now.line += (uint32_t)m->lines_by[*at];
        } else if (*at == STANDARD_NEGATE) {
            continue;
        } else if (*at != STANDARD_COPY) {
            if (at[1] & 0x80 || *at < STANDARD_ADVANCE_PC || *at > STANDARD_SET_COLUMN)
                break;
            if (*at == STANDARD_ADVANCE_PC)
                now.address += (uint64_t)step * at[1];
            else if (*at == STANDARD_ADVANCE_LINE)
                now.line += (uint32_t)(at[1] ^ 0x40) - 0x40;
            else if (*at == STANDARD_SET_FILE)
                now.file = at[1];
            else
                now.column = at[1];
            at++;
            continue;
        }
        if (is_dropped)
            continue;
        n -= rows[n - 1].address == now.address;
        rows[n++] = row_of(&now);
    }
    m->c.at = at;
    m->now = now;
    lines->n_rows = n;
}

int line_run(struct kiln_dwarf_lines *lines)
{
    struct machine m = {
        .lines = lines,
        .c = {lines->head.program, lines->data + lines->n_data, false},
    };
    bool is_plain = lines->head.max_operations == 1 && lines->head.opcode_base > STANDARD_NEGATE;
    int r = 0;

    prepare(&m);
    reset(&m);
    while (r == 0 && m.c.at < m.c.end) {
        r = run_one(&m);
        if (r == 0 && is_plain && (m.is_dropped || lines->n_rows > m.begin))
            run_common(&m);
    }
    return r < 0 ? r : m.c.bad ? KILN_E_TRUNCATED : 0;
}
