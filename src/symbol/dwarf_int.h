/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_int - what the files of the DWARF reader share.
 *
 *   dwarf.c         open, close; a question from its address to its frames
 *   dwarf_file.c    the sections of one ELF file, seen through windows
 *   dwarf_abbrev.c  abbreviations: what an entry has, in a form that is quick to step over
 *   dwarf_die.c     an entry's attributes
 *   dwarf_value.c   what an attribute's value is: a number, an address, a text, another entry
 *   dwarf_ranges.c  lists of ranges
 *   dwarf_head.c    headers of units, and the table of them
 *   dwarf_unit.c    units that were read, and which of them stay
 *   dwarf_place.c   which unit an address belongs to
 *   dwarf_funcs.c   which function of a unit
 *   dwarf_walk.c    which scopes of a function
 *   dwarf_name.c    how an entry is called
 *   dwarf_split.c   split units: .dwo and .dwp
 *   dwarf_source.c  sources that are embedded
 *
 * "DIE" is DWARF's word for an entry.  Any read may give -EAGAIN (symbol/section.h): whatever a
 * function was about is begun anew then, so it keeps nothing half-done but what says so.
 */
#ifndef KILN_SYMBOL_DWARF_INT_H
#define KILN_SYMBOL_DWARF_INT_H

#include "symbol/cursor.h"
#include "symbol/dwarf.h"
#include "symbol/dwarf_line.h"
#include "symbol/dwarf_names.h"
#include "symbol/section.h"

/* ---- files and their sections ---- */

enum dw_section {
    DW_INFO,
    DW_TYPES,
    DW_ABBREV,
    DW_ARANGES,
    DW_STR,
    DW_LINE,
    DW_LINE_STR,
    DW_STR_OFFSETS,
    DW_ADDR,
    DW_RANGES,
    DW_RNGLISTS,
    DW_CU_INDEX,
    DW_SECTIONS,
};

enum { DW_WINDOWS = 8 };

/* A section, seen through a few pieces of it. */
struct dw_view {
    struct kiln_section section;
    struct kiln_budget *budget;
    bool is_tried;         /* it was looked for */
    uint32_t window_bytes; /* of a piece, usually */
    uint64_t clock;
    struct dw_window {
        uint64_t at, used;
        uint32_t n, cap;
        uint8_t *data;
    } windows[DW_WINDOWS], *last;
};

/* At least `need` bytes at an offset, and *ret_n of them, until the next call for this view. */
KILN_CHECK int dw_see(struct dw_view *view, uint64_t at, size_t need, const uint8_t **ret_bytes,
                      size_t *ret_n);
/* Number `index` of a table at `base`, of 4 or 8 bytes each.  -ENOENT: there is no view. */
KILN_CHECK int dw_entry(struct dw_view *view, uint64_t base, uint64_t index, uint8_t size,
                        uint64_t *ret_number);

/* What begins a unit. */
struct dw_head {
    uint64_t at, end;  /* in its section */
    uint64_t abbrevs;  /* where its abbreviations are */
    uint64_t id;       /* of a skeleton or split unit, or the signature of a type's */
    uint32_t type_die; /* of a type's unit: the type, counted from `at` */
    uint16_t version;
    uint8_t kind; /* DW_UT_* */
    uint8_t address_size, offset_size;
    uint8_t header_size;
    bool in_types;     /* it is in .debug_types */
    bool has_places;   /* .debug_aranges has its addresses */
    bool is_asked_for; /* its split unit was lacking */
};

struct dw_heads {
    struct dw_head *list; /* .debug_info's, then .debug_types', ascending each */
    uint32_t n, cap, n_info;
    uint64_t next; /* where the next is */
    bool has_info; /* all of .debug_info */
    bool is_whole;
};

struct dw_file {
    struct kiln_dwarf *dwarf;
    const struct kiln_elf *elf; /* NULL: there is none */
    bool is_dwo;                /* its sections are called .dwo */
    struct dw_view views[DW_SECTIONS];
    struct dw_heads heads;
};

/* A split file, for the unit that it was asked for. */
struct dw_dwo {
    struct dw_file file;
    uint64_t id;
    struct dw_head head;
};

void dw_file_init(struct dw_file *file, struct kiln_dwarf *dwarf, const struct kiln_elf *elf,
                  bool is_dwo);
void dw_file_done(struct dw_file *file);
/* Gives its windows back; who looks again gets new ones. */
void dw_file_rest(struct dw_file *file);
/* NULL: the file has no such section, or it is empty. */
struct dw_view *dw_file_view(struct dw_file *file, enum dw_section section);

/* ---- headers ---- */

/* The table of units, read once; -EAGAIN: it is not whole yet. */
KILN_CHECK int dw_heads_read(struct dw_file *file);
KILN_CHECK int dw_head_read(struct dw_view *view, uint64_t at, bool in_types,
                            struct dw_head *ret_head);
/* Number of the unit of .debug_info that an offset is in.  -ENOENT. */
KILN_CHECK int dw_heads_find(const struct dw_heads *heads, uint64_t at, uint32_t *ret_index);
/* Of the unit of a type.  -ENOENT. */
KILN_CHECK int dw_heads_find_type(const struct dw_heads *heads, uint64_t signature,
                                  uint32_t *ret_index);

/* ---- abbreviations ---- */

/* What is looked at of a DIE. */
enum dw_field {
    DW_F_SIBLING,
    DW_F_NAME,
    DW_F_LINKAGE,
    DW_F_LOW_PC,
    DW_F_HIGH_PC,
    DW_F_RANGES,
    DW_F_ORIGIN,
    DW_F_SPECIFICATION,
    DW_F_SIGNATURE,
    DW_F_CALL_FILE,
    DW_F_CALL_LINE,
    DW_F_CALL_COLUMN,
    DW_F_DECL_LINE,
    DW_F_STMT_LIST,
    DW_F_COMP_DIR,
    DW_F_LANGUAGE,
    DW_F_DWO_NAME,
    DW_F_DWO_ID,
    DW_F_ADDR_BASE,
    DW_F_STR_OFFSETS_BASE,
    DW_F_RNGLISTS_BASE,
    DW_F_GNU_RANGES_BASE,
    DW_F_EXPORT_SYMBOLS,
    DW_FIELDS,
    DW_F_NONE = 0xff,
};

/* One attribute, or several that are not looked at and have a fixed size together. */
struct dw_attr {
    uint16_t form; /* 0: `n` bytes to step over */
    uint8_t field;
    uint8_t n;
};

struct dw_abbrev {
    uint32_t code;
    uint32_t attrs; /* the first */
    uint32_t consts;
    uint16_t n;
    uint16_t tag;
    bool has_children;
};

/* How large what is written in forms is. */
struct dw_shape {
    uint8_t address_size, offset_size;
    bool is_v2; /* references to other units are as large as addresses */
};

/* Bytes of a form; -1: it depends. */
int dw_form_size(uint16_t form, struct dw_shape shape);

struct dw_abbrevs {
    struct dw_abbrevs *next; /* of all that are held */
    const struct dw_file *file;
    uint64_t at;
    struct dw_shape shape;
    uint32_t users; /* units that have it */
    struct dw_abbrev *list;
    struct dw_attr *attrs;
    int64_t *consts; /* values that are in the abbreviation */
    uint32_t n, cap, n_attrs, cap_attrs, n_consts, cap_consts;
    bool is_dense; /* codes are 1, 2, 3, ... */
};

/* `only`: up to the abbreviation of this code; 0: all. */
KILN_CHECK int dw_abbrevs_read(struct dw_file *file, uint64_t at, struct dw_shape shape,
                               uint64_t only, struct dw_abbrevs **ret_abbrevs);
void dw_abbrevs_free(struct dw_abbrevs *abbrevs, struct kiln_budget *budget);
/* NULL: there is none of this code. */
const struct dw_abbrev *dw_abbrevs_find(const struct dw_abbrevs *abbrevs, uint64_t code);

/* ---- DIEs ---- */

/* A value as it is written: what `u` is depends on the form. */
struct dw_value {
    uint64_t u;
    uint16_t form;
};

struct dw_die {
    uint64_t at, next;              /* in its section; next: behind its attributes */
    const struct dw_abbrev *abbrev; /* NULL: it ends a list of children */
    uint32_t has;                   /* bits of enum dw_field */
    struct dw_value values[DW_FIELDS];
};

static inline bool dw_has(const struct dw_die *die, enum dw_field field)
{
    return die->has >> field & 1;
}

static inline uint16_t dw_tag(const struct dw_die *die)
{
    return die->abbrev ? die->abbrev->tag : 0;
}

/* ---- units ---- */

struct dw_range {
    uint64_t begin, end;
    uint32_t of;     /* a unit's number, or a function's DIE counted from its unit */
    bool is_reached; /* one that begins before it ends behind its beginning */
};

struct dw_ranges {
    struct dw_range *list;
    uint32_t n, cap;
};

/* How far a walk over DIEs has come. */
struct dw_scan {
    uint64_t at; /* 0: nowhere yet */
    uint32_t depth;
    bool is_deep;     /* over everything */
    bool has_skipped; /* something was stepped over */
};

/* Where the parts of a unit in a package begin. */
struct dw_part {
    uint64_t abbrev, str_offsets, rnglists, line;
};

struct dw_unit {
    struct dw_unit *next; /* in its bucket */
    struct dw_file *file;
    struct dw_view *view; /* of its DIEs */
    struct dw_head head;
    struct dw_part part;
    struct dw_abbrevs *abbrevs;
    uint64_t used;
    uint64_t low_pc, addr_base, str_offsets_base, rnglists_base, ranges_base;
    uint64_t stmt_list, dwo_id;
    uint32_t language;
    bool has_stmt_list, is_skeleton;
    struct dw_value comp_dir, dwo_name;
    uint64_t root_end; /* behind the outermost DIE */
    bool has_children;
    struct dw_unit *skeleton; /* of a split unit; stays as long as this one */
    struct dw_unit *split;    /* of a skeleton */
    uint32_t split_tried;     /* kiln_dwarf.n_attached when it was looked for in vain */
    struct dw_ranges funcs;
    struct dw_scan scan;
    bool is_indexed, is_deep; /* all functions that are not within others; all */
    struct kiln_dwarf_lines *lines;
    bool are_lines_tried;
};

/* A place in the DIEs of a unit. */
struct dw_place {
    struct dw_unit *unit;
    uint64_t at;
};

enum { DW_CHAIN = KILN_DWARF_FRAMES };

struct dw_link {
    uint64_t die;
    uint32_t call_file, call_line, call_column;
    bool is_inlined;
};

/* The way from a function inwards to the scope around an address. */
struct dw_walk {
    uint64_t address, unit; /* whose it is; unit: offset of its header */
    const struct dw_file *file;
    bool is_begun, is_whole;
    uint64_t at;
    uint32_t skip;                  /* levels that do not matter */
    uint32_t open;                  /* levels that say nothing of addresses */
    uint64_t linked;                /* those of them that have a link, outermost in bit 0 */
    struct dw_link chain[DW_CHAIN]; /* outermost first */
    uint32_t n;
};

enum { DW_SCOPES_MAX = 16, DW_SCOPES_KEPT = 2 * KILN_DWARF_FRAMES };

/* The scopes that a DIE is in, outermost first, and how far the search for them has come. */
struct dw_scopes {
    const struct dw_file *file; /* NULL: nothing is kept here */
    uint64_t target;
    bool in_types;
    bool is_whole;
    uint64_t at;
    uint32_t depth, n;
    uint64_t dies[DW_SCOPES_MAX];
    uint32_t depths[DW_SCOPES_MAX];
};

/* A part of kiln_dwarf.texts. */
struct dw_text {
    size_t at, n;
};

/* How a function is called. */
struct dw_called {
    struct kiln_buf *texts;
    struct dw_text name, linkage, qualified, file;
    uint32_t start_line;
};

enum { DW_LACKS = 64, DW_BUCKETS = 512 };

struct kiln_dwarf {
    struct kiln_dwarf_opts opts;
    struct kiln_budget own, *budget;
    struct kiln_scratch *scratch; /* NULL: none */
    uint64_t deadline_ns;
    uint32_t steps; /* until the clock is looked at */
    uint64_t clock; /* one a question: what was used by this one stays */
    struct dw_file main, alternate, package;
    struct dw_dwo **dwos;
    uint32_t n_dwos, cap_dwos;
    struct dw_unit *units[DW_BUCKETS]; /* by file and offset */
    struct dw_abbrevs *abbrevs;
    struct dw_ranges places; /* of main's units */
    uint32_t *runs;          /* of the same unit: where they begin in `places` */
    uint32_t n_runs, cap_runs;
    uint32_t place_step; /* enum of dwarf_place.c */
    uint64_t place_at;
    struct dw_walk walk;
    struct dw_scopes scopes[DW_SCOPES_KEPT]; /* the next replaces the oldest */
    uint32_t next_scopes;
    struct kiln_buf texts;
    struct kiln_dwarf_frame frames[KILN_DWARF_FRAMES];
    struct dw_called called[KILN_DWARF_FRAMES];
    uint64_t lowest;        /* no code is below */
    struct kiln_buf wanted; /* texts of what was asked for last */
    struct kiln_buf link;   /* the name of the alternate */
    uint8_t alternate_id[KILN_BUILD_ID_MAX];
    uint8_t alternate_id_len;
    bool wants_alternate, has_asked_package;
    uint64_t asked_id;        /* of the .dwo that was asked for last */
    uint32_t lacks[DW_LACKS]; /* numbers of skeletons whose split unit is lacking */
    uint32_t n_lacks;
    uint32_t n_attached; /* how often a file came: who lacked one looks again */
    /* the source that was looked for last, and how far */
    uint64_t source_of, source_at;
};

/*
 * One step of work was done.  -EAGAIN: the deadline has passed.  Only for work that goes on where
 * it was; what would have to begin anew, and is bounded, is counted only.
 */
KILN_CHECK int dw_step(struct kiln_dwarf *dwarf);
static inline void dw_count(struct kiln_dwarf *dwarf, uint32_t steps)
{
    dwarf->steps += steps;
}

/* A unit that was read, until the question is answered. */
KILN_CHECK int dw_unit_get(struct dw_file *file, const struct dw_head *head,
                           const struct dw_part *part, struct dw_unit *skeleton,
                           struct dw_unit **ret_unit);
/* The ranges that a unit's outermost DIE has, of a unit that need not stay. */
KILN_CHECK int dw_root_ranges(struct dw_file *file, const struct dw_head *head,
                              int (*each)(void *context, uint64_t begin, uint64_t end),
                              void *context);
/* The id that a unit's outermost DIE has (before DWARF 5). */
KILN_CHECK int dw_root_id(struct dw_file *file, const struct dw_head *head, uint64_t *ret_id);
void dw_units_free(struct kiln_dwarf *dwarf);
/* Gives back what was not used for longest, as long as more than `keep` bytes are in use. */
void dw_units_trim(struct kiln_dwarf *dwarf, size_t keep);
/* Lines of a unit; NULL: none. */
KILN_CHECK int dw_unit_lines(struct dw_unit *unit, const struct kiln_dwarf_lines **ret_lines);

/* The DIE at an offset of the unit's section, with the fields that it has. */
KILN_CHECK int dw_die_read(const struct dw_unit *unit, uint64_t at, struct dw_die *ret_die);
/* Where the next DIE behind this one and its children is; 0: it does not say. */
uint64_t dw_die_sibling(const struct dw_unit *unit, const struct dw_die *die);

/* ---- values ---- */

KILN_CHECK int dw_address(const struct dw_unit *unit, const struct dw_value *value,
                          uint64_t *ret_address);
/* An entry of .debug_addr. */
KILN_CHECK int dw_address_at(const struct dw_unit *unit, uint64_t index, uint64_t *ret_address);
/* False: the form is none of a number. */
bool dw_number(const struct dw_value *value, uint64_t *ret_number);
/* Adds a text, cut at 64 KiB; -ENOENT: it is not there. */
KILN_CHECK int dw_text(const struct dw_unit *unit, const struct dw_value *value,
                       struct kiln_buf *out);
/* The DIE that is referred to, in whatever unit.  -ENOENT: its unit or its file is not there. */
KILN_CHECK int dw_reference(struct dw_unit *unit, const struct dw_value *value,
                            struct dw_place *ret_place);

/* ---- ranges ---- */

/* What a DIE covers: `each` may end it with a result other than 0. */
KILN_CHECK int dw_each_range(const struct dw_unit *unit, const struct dw_die *die,
                             int (*each)(void *context, uint64_t begin, uint64_t end),
                             void *context);
/* It says at all which addresses it covers. */
static inline bool dw_has_ranges(const struct dw_die *die)
{
    return die->has & (1u << DW_F_LOW_PC | 1u << DW_F_RANGES);
}
/* 1: it covers the address; 0: not; negative: an error. */
KILN_CHECK int dw_covers(const struct dw_unit *unit, const struct dw_die *die, uint64_t address);

KILN_CHECK int dw_ranges_add(struct dw_ranges *ranges, struct kiln_budget *budget,
                             struct dw_range range);
void dw_ranges_sort(struct dw_ranges *ranges);
/* Of the ranges around an address the one with this `of`, else the smallest.  NULL: none. */
const struct dw_range *dw_ranges_find(const struct dw_ranges *ranges, uint64_t address,
                                      uint32_t of);
void dw_ranges_done(struct dw_ranges *ranges, struct kiln_budget *budget);

/* ---- from an address to frames ---- */

/* The unit of an address.  In a gap between units it has lines at most.  -ENOENT: none. */
KILN_CHECK int dw_place_find(struct kiln_dwarf *dwarf, uint64_t address, struct dw_unit **ret_unit,
                             bool *ret_is_gap);
/* The function of an address: the offset of its DIE.  -ENOENT: none. */
KILN_CHECK int dw_func_find(struct dw_unit *unit, uint64_t address, uint64_t *ret_die);
/* The scopes around an address, in dwarf->walk. */
KILN_CHECK int dw_walk_to(struct dw_unit *unit, uint64_t die, uint64_t address);

/* How the function of a DIE is called, into what has its `texts` set. */
KILN_CHECK int dw_name(struct dw_unit *unit, uint64_t die, struct dw_called *called);

/* ---- split units ---- */

/* The split unit of a skeleton, or the unit itself where there is none. */
KILN_CHECK int dw_split_of(struct dw_unit *unit, struct dw_unit **ret_unit);
void dw_split_done(struct kiln_dwarf *dwarf);
/* Whether the file has a link to an alternate one. */
void dw_alternate_look(struct kiln_dwarf *dwarf);

#endif /* KILN_SYMBOL_DWARF_INT_H */
