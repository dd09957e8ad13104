/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata event of a chunk describes every type that occurs in it:
 *
 *   size, 0, start, duration, id, number of strings, strings, root element
 *   element = name, number of attributes, (key, value)..., number of children, elements...
 *
 * where names, keys and values are positions in the strings.  Of the tree
 *
 *   root > metadata > class id= name= > field name= class= constantPool= dimension=
 *                                         > annotation class= value=
 *
 * classes and fields are kept.  A value of a class is its fields one after the other, in place
 * unless they are ids into a constant pool.
 *
 * A type is compiled, when it is first needed, into a flat list of ops: fields of fields are drawn
 * up into their owner, fields nobody asks for are skipped, runs of them at once.  An op reads at
 * least one byte, so the time to read a value is linear in its bytes whatever the metadata say.
 * Arrays of classes run the program of the class for each element.
 */
#include "base/hash.h"
#include "codec/jfr_int.h"

#define ELEMENT_DEPTH_MAX 32
#define VALUE_DEPTH_MAX   16
#define TYPES_MAX         (1u << 16)
#define FIELDS_MAX        (1u << 20)
#define STEPS_MAX         (1u << 14) /* fields met and ops made by compiling, in one chunk */

enum op_kind {
    OP_NONE,
    OP_BYTE,
    OP_NUMBER,
    OP_FLOAT,
    OP_DOUBLE,
    OP_TEXT,
    OP_NUMBERS, /* skips `arg` of them */
    OP_ARRAY,
    OP_TYPE, /* only as the element of an array; `arg` is the type */
};

enum span_unit { SPAN_NONE, SPAN_TICKS, SPAN_US, SPAN_MS, SPAN_S };

/* ---- reading the tree ---- */

struct reader {
    struct kiln_jfr_chunk *c;
    struct kiln_jfr_in in;
    struct kiln_str *strings;
    uint32_t n_strings;
    uint64_t timespan_type; /* the id of jdk.jfr.Timespan; known only at the end */
};

/* Attributes of an element that matter; the rest is skipped. */
struct element {
    struct kiln_str tag, name, id, class, pooled, dimension, value;
};

static struct kiln_str string_at(struct reader *r)
{
    uint64_t i = kiln_jfr_varint(&r->in);

    if (i < r->n_strings)
        return r->strings[i];
    kiln_jfr_in_fail(&r->in, KILN_E_RANGE);
    return KILN_STR("");
}

static void read_attributes(struct reader *r, struct element *e)
{
    struct {
        struct kiln_str key;
        struct kiln_str *value;
    } known[] = {
        {KILN_STR("name"), &e->name},           {KILN_STR("id"), &e->id},
        {KILN_STR("class"), &e->class},         {KILN_STR("constantPool"), &e->pooled},
        {KILN_STR("dimension"), &e->dimension}, {KILN_STR("value"), &e->value},
    };

    for (uint64_t n = kiln_jfr_count(&r->in); n && !r->in.error; n--) {
        struct kiln_str key = string_at(r), value = string_at(r);

        for (size_t i = 0; i < KILN_ARRAY_LEN(known); i++) {
            if (kiln_str_eq(known[i].key, key))
                *known[i].value = value;
        }
    }
}

static uint8_t leaf_named(struct kiln_str name)
{
    static const struct {
        struct kiln_str name;
        enum op_kind op;
    } leaves[] = {
        {{"boolean", 7}, OP_BYTE}, {{"byte", 4}, OP_BYTE},     {{"char", 4}, OP_NUMBER},
        {{"short", 5}, OP_NUMBER}, {{"int", 3}, OP_NUMBER},    {{"long", 4}, OP_NUMBER},
        {{"float", 5}, OP_FLOAT},  {{"double", 6}, OP_DOUBLE}, {{"java.lang.String", 16}, OP_TEXT},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(leaves); i++) {
        if (kiln_str_eq(leaves[i].name, name))
            return (uint8_t)leaves[i].op;
    }
    return OP_NONE;
}

static void add_type(struct reader *r, const struct element *e)
{
    struct kiln_jfr_chunk *c = r->c;
    struct kiln_jfr_type type = {.name = e->name, .first_field = c->n_fields};
    int err;

    if (kiln_str_parse_u64(e->id, &type.id) < 0 || kiln_jfr_find_type(c, type.id)) {
        kiln_jfr_in_fail(&r->in, KILN_E_MALFORMED);
        return;
    }
    type.leaf = leaf_named(e->name);
    type.event = kiln_jfr_event_named(e->name);
    type.pool = (uint8_t)((kiln_jfr_pool_named(e->name) + 1) % (KILN_JFR_POOL_COUNT + 1));
    err = kiln_grow(c->budget, (void **)&c->types, &c->cap_types, (uint64_t)c->n_types + 1,
                    sizeof(*c->types), TYPES_MAX);
    if (err == 0)
        err = kiln_intern_add(&c->type_index, c->budget, kiln_hash_mix(0, type.id), c->n_types);
    if (err < 0) {
        kiln_jfr_in_fail(&r->in, err);
        return;
    }
    if (kiln_str_eq(e->name, KILN_STR("jdk.jfr.Timespan")))
        r->timespan_type = type.id;
    if (kiln_str_eq(e->name, KILN_STR("jdk.types.StackFrame")))
        c->frame_type = c->n_types;
    c->types[c->n_types++] = type;
}

static void add_field(struct reader *r, const struct element *e)
{
    struct kiln_jfr_chunk *c = r->c;
    struct kiln_jfr_field field = {
        .name = e->name,
        .pooled = kiln_str_eq(e->pooled, KILN_STR("true")),
        .array = e->dimension.len && !kiln_str_eq(e->dimension, KILN_STR("0")),
    };
    int err;

    if (c->n_types == 0 || kiln_str_parse_u64(e->class, &field.type_id) < 0) {
        kiln_jfr_in_fail(&r->in, KILN_E_MALFORMED);
        return;
    }
    err = kiln_grow(c->budget, (void **)&c->fields, &c->cap_fields, (uint64_t)c->n_fields + 1,
                    sizeof(*c->fields), FIELDS_MAX);
    if (err < 0) {
        kiln_jfr_in_fail(&r->in, err);
        return;
    }
    c->fields[c->n_fields++] = field;
    c->types[c->n_types - 1].n_fields++;
}

/*
 * An annotation of the field read last.  Its class may be described further down: the id is parked
 * in `type` until resolve() knows which one is jdk.jfr.Timespan.
 */
static void add_annotation(struct reader *r, const struct element *e)
{
    static const struct kiln_str units[] = {{"TICKS", 5},
                                            {"NANOSECONDS", 11},
                                            {"MICROSECONDS", 12},
                                            {"MILLISECONDS", 12},
                                            {"SECONDS", 7}};
    struct kiln_jfr_field *field;
    uint64_t id;

    if (r->c->n_fields == 0)
        return;
    field = &r->c->fields[r->c->n_fields - 1];
    for (size_t i = 0; i < KILN_ARRAY_LEN(units) && !field->timespan.len; i++) {
        if (kiln_str_eq(units[i], e->value) && kiln_str_parse_u64(e->class, &id) == 0 &&
            id <= UINT32_MAX) {
            field->timespan = e->value;
            field->type = (uint32_t)id;
        }
    }
}

static void read_element(struct reader *r, struct kiln_str parent, unsigned depth)
{
    struct element e = {.tag = string_at(r)};
    uint64_t n;

    if (depth == ELEMENT_DEPTH_MAX) {
        kiln_jfr_in_fail(&r->in, KILN_E_LIMIT);
        return;
    }
    read_attributes(r, &e);
    if (kiln_str_eq(e.tag, KILN_STR("class")))
        add_type(r, &e);
    else if (kiln_str_eq(e.tag, KILN_STR("field")) && kiln_str_eq(parent, KILN_STR("class")))
        add_field(r, &e);
    else if (kiln_str_eq(e.tag, KILN_STR("annotation")) && kiln_str_eq(parent, KILN_STR("field")))
        add_annotation(r, &e);
    for (n = kiln_jfr_count(&r->in); n && !r->in.error; n--)
        read_element(r, e.tag, depth + 1);
}

/* ---- strings, and the event as a whole ---- */

static int read_strings(struct reader *r)
{
    uint64_t n = kiln_jfr_count(&r->in);
    char text[KILN_JFR_TEXT_MAX];

    if (n > UINT32_MAX / sizeof(*r->strings))
        return KILN_E_LIMIT;
    r->strings = kiln_arena_alloc(&r->c->arena, (size_t)n * sizeof(*r->strings) + 1);
    if (!r->strings)
        return KILN_E_LIMIT;
    for (; r->n_strings < n && !r->in.error; r->n_strings++) {
        struct kiln_jfr_text raw = kiln_jfr_read_text(&r->in);
        struct kiln_str s = {text,
                             raw.encoding == KILN_JFR_REF ? 0 : kiln_jfr_text_format(raw, text)};

        s = kiln_arena_copy(&r->c->arena, s);
        if (!s.ptr)
            return KILN_E_LIMIT;
        r->strings[r->n_strings] = s;
    }
    return 0;
}

/* Turns type ids of fields into positions. */
static int resolve(struct reader *r, struct kiln_err *err)
{
    struct kiln_jfr_chunk *c = r->c;

    for (uint32_t i = 0; i < c->n_fields; i++) {
        struct kiln_jfr_field *field = &c->fields[i];
        const struct kiln_jfr_type *type = kiln_jfr_find_type(c, field->type_id);

        if (!type)
            return kiln_err_set(err, KILN_E_RANGE, NULL,
                                "the field %.*s is of the unknown type %llu",
                                KILN_STR_ARG(field->name), (unsigned long long)field->type_id);
        if (field->type != r->timespan_type)
            field->timespan = KILN_STR_NONE;
        field->type = (uint32_t)(type - c->types);
    }
    return 0;
}

int kiln_jfr_read_metadata(struct kiln_jfr_chunk *c, struct kiln_err *err)
{
    struct reader r = {.c = c};
    uint64_t size;
    int code;

    r.in = (struct kiln_jfr_in){c->base + c->meta_offset, c->base + c->size, 0};
    size = kiln_jfr_varint(&r.in);
    if (!r.in.error && size <= c->size - c->meta_offset)
        r.in.end = c->base + c->meta_offset + size;
    if (r.in.end < r.in.at || kiln_jfr_varint(&r.in) != 0)
        kiln_jfr_in_fail(&r.in, KILN_E_MALFORMED);
    for (int i = 0; i < 3; i++) /* start, duration, id */
        kiln_jfr_varint(&r.in);
    c->frame_type = UINT32_MAX;
    code = read_strings(&r);
    if (code == 0) {
        read_element(&r, KILN_STR(""), 0);
        code = r.in.error;
    }
    code = code < 0 ? kiln_err_set(err, code, NULL, "%s", kiln_err_text(code)) : resolve(&r, err);
    kiln_err_within(err, "metadata at 0x%zx", c->offset + c->meta_offset);
    return code;
}

struct kiln_jfr_type *kiln_jfr_find_type(const struct kiln_jfr_chunk *c, uint64_t id)
{
    for (struct kiln_probe p = kiln_intern_probe(&c->type_index, kiln_hash_mix(0, id));
         kiln_intern_next(&c->type_index, &p);) {
        if (c->types[p.entry].id == id)
            return &c->types[p.entry];
    }
    return NULL;
}

/* ---- compiling ---- */

static uint8_t slot_named(struct kiln_str name)
{
    static const struct kiln_str names[] = {
#define X(slot, field) {field, sizeof(field) - 1},
        KILN_JFR_SLOT_MAP(X)
#undef X
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        if (kiln_str_eq(names[i], name))
            return (uint8_t)(i + 1);
    }
    return KILN_JFR_NO_SLOT;
}

static uint8_t unit_named(struct kiln_str name)
{
    if (kiln_str_eq(name, KILN_STR("TICKS")))
        return SPAN_TICKS;
    if (kiln_str_eq(name, KILN_STR("MICROSECONDS")))
        return SPAN_US;
    if (kiln_str_eq(name, KILN_STR("MILLISECONDS")))
        return SPAN_MS;
    return kiln_str_eq(name, KILN_STR("SECONDS")) ? SPAN_S : SPAN_NONE;
}

static int add_op(struct kiln_jfr_chunk *c, uint32_t first, struct kiln_jfr_op op)
{
    struct kiln_jfr_op *last = c->n_ops > first ? &c->ops[c->n_ops - 1] : NULL;
    int r;

    if (op.kind == OP_NUMBER && !op.slot) {
        op.kind = OP_NUMBERS;
        op.arg = 1;
        if (last && last->kind == OP_NUMBERS) {
            last->arg++;
            return 0;
        }
    }
    r = kiln_grow(c->budget, (void **)&c->ops, &c->cap_ops, (uint64_t)c->n_ops + 1, sizeof(op),
                  STEPS_MAX);
    if (r == 0)
        c->ops[c->n_ops++] = op;
    return r;
}

static int compile_fields(struct kiln_jfr_chunk *c, const struct kiln_jfr_type *type,
                          uint32_t first, unsigned depth)
{
    if (depth == VALUE_DEPTH_MAX)
        return KILN_E_LIMIT;
    for (uint32_t i = 0; i < type->n_fields; i++) {
        const struct kiln_jfr_field *field = &c->fields[type->first_field + i];
        const struct kiln_jfr_type *inner = &c->types[field->type];
        uint8_t kind = field->pooled ? OP_NUMBER : inner->leaf;
        struct kiln_jfr_op op = {.kind = kind, .unit = unit_named(field->timespan)};
        int r;

        if (++c->compile_steps > STEPS_MAX)
            return KILN_E_LIMIT;
        if (depth == 0)
            op.slot = slot_named(field->name);
        if (field->array) {
            op.kind = OP_ARRAY;
            op.element = kind ? kind : OP_TYPE;
            op.arg = field->type;
        }
        r = op.kind ? add_op(c, first, op) : compile_fields(c, inner, first, depth + 1);
        if (r < 0)
            return r;
    }
    return 0;
}

/* How many integers the ops read; 0 if they read anything else. */
static uint32_t count_numbers(const struct kiln_jfr_op *ops, uint32_t n)
{
    uint32_t numbers = 0;

    for (; n; n--, ops++) {
        if (ops->kind != OP_NUMBER && ops->kind != OP_NUMBERS)
            return 0;
        numbers += ops->kind == OP_NUMBER ? 1 : ops->arg;
    }
    return numbers;
}

static int compile_one(struct kiln_jfr_chunk *c, struct kiln_jfr_type *type)
{
    uint32_t first = c->n_ops;
    int r;

    if (type->leaf) {
        bool text = type->leaf == OP_TEXT;
        struct kiln_jfr_op op = {.kind = type->leaf, .slot = text ? KILN_JFR_STRING : 0};

        r = add_op(c, first, op);
    } else {
        r = compile_fields(c, type, first, 0);
    }
    if (r < 0)
        return r;
    type->first_op = first;
    type->n_ops = c->n_ops - first;
    type->numbers = type->n_ops ? count_numbers(&c->ops[first], type->n_ops) : 0;
    type->compiled = true;
    return 0;
}

int kiln_jfr_compile(struct kiln_jfr_chunk *c, struct kiln_jfr_type *type)
{
    uint32_t i = c->n_ops;
    int r = type->compiled ? 0 : compile_one(c, type);

    for (; r == 0 && i < c->n_ops; i++) {
        struct kiln_jfr_op op = c->ops[i];

        if (op.kind == OP_ARRAY && op.element == OP_TYPE && !c->types[op.arg].compiled)
            r = compile_one(c, &c->types[op.arg]);
    }
    return r;
}

/* ---- running ---- */

static uint64_t to_ns(const struct kiln_jfr_chunk *c, uint64_t span, uint8_t unit)
{
    static const uint32_t factors[] = {
        [SPAN_US] = 1000, [SPAN_MS] = 1000000, [SPAN_S] = 1000000000};
    __uint128_t ns = span;

    if (unit == SPAN_NONE)
        return span;
    if (unit == SPAN_TICKS)
        ns = ns * 1000000000u / c->ticks_per_second;
    else
        ns *= factors[unit];
    return ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

static void skip_numbers(struct kiln_jfr_in *in, uint64_t n)
{
    for (; n && !in->error; n--)
        kiln_jfr_varint(in);
}

static void run(struct kiln_jfr_chunk *c, struct kiln_jfr_in *in, const struct kiln_jfr_type *type,
                struct kiln_jfr_record *record, unsigned depth);

static void skip_array(struct kiln_jfr_chunk *c, struct kiln_jfr_in *in,
                       const struct kiln_jfr_op *op, unsigned depth)
{
    const struct kiln_jfr_type *type = &c->types[op->arg];
    uint64_t n = kiln_jfr_count(in);

    switch (op->element) {
    case OP_NUMBER:
        skip_numbers(in, n);
        break;
    case OP_BYTE:
        kiln_jfr_skip(in, n);
        break;
    case OP_FLOAT:
        kiln_jfr_skip(in, n * 4);
        break;
    case OP_DOUBLE:
        kiln_jfr_skip(in, n * 8);
        break;
    case OP_TEXT:
        for (; n && !in->error; n--)
            kiln_jfr_read_text(in);
        break;
    default:
        if (type->numbers) {
            skip_numbers(in, n * type->numbers); /* stack frames, most of a recording */
            break;
        }
        for (; n && type->n_ops && !in->error; n--)
            run(c, in, type, NULL, depth + 1);
    }
}

static void put_number(struct kiln_jfr_record *record, const struct kiln_jfr_op *op, uint64_t value)
{
    if (!record)
        return;
    record->number[op->slot] = value;
    record->numbers |= 1ull << op->slot;
}

static void put_text(struct kiln_jfr_record *record, const struct kiln_jfr_op *op,
                     struct kiln_jfr_text text)
{
    if (!record)
        return;
    record->text[op->slot] = text;
    record->texts |= 1ull << op->slot;
}

static void put_array(struct kiln_jfr_record *record, const struct kiln_jfr_op *op,
                      const uint8_t *at)
{
    if (!record)
        return;
    record->array[op->slot] = at;
    record->arrays |= 1ull << op->slot;
}

static void run(struct kiln_jfr_chunk *c, struct kiln_jfr_in *in, const struct kiln_jfr_type *type,
                struct kiln_jfr_record *record, unsigned depth)
{
    if (depth == VALUE_DEPTH_MAX) {
        kiln_jfr_in_fail(in, KILN_E_LIMIT);
        return;
    }
    for (uint32_t i = 0; i < type->n_ops; i++) {
        const struct kiln_jfr_op *op = &c->ops[type->first_op + i];

        switch (op->kind) {
        case OP_NUMBERS:
            skip_numbers(in, op->arg);
            break;
        case OP_NUMBER:
            put_number(record, op, to_ns(c, kiln_jfr_varint(in), op->unit));
            break;
        case OP_BYTE:
            kiln_jfr_skip(in, 1);
            break;
        case OP_FLOAT:
            kiln_jfr_skip(in, 4);
            break;
        case OP_DOUBLE:
            kiln_jfr_skip(in, 8);
            break;
        case OP_TEXT:
            put_text(record, op, kiln_jfr_read_text(in));
            break;
        default:
            put_array(record, op, in->at);
            skip_array(c, in, op, depth);
        }
    }
}

void kiln_jfr_run(struct kiln_jfr_chunk *c, struct kiln_jfr_in *in,
                  const struct kiln_jfr_type *type, struct kiln_jfr_record *record)
{
    if (record)
        record->numbers = record->texts = record->arrays = 0;
    run(c, in, type, record, 0);
}
