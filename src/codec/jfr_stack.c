/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of constant pools become entries of the batch, each once: it notes what it became.
 *
 * A function is called class.method with the class as the JVM spells it (java/lang/String.equals);
 * for code that is not Java, async-profiler gives the library as the class and no class for what
 * belongs to none, so that names are libc.so.6.read or .vtable.  This is how Pyroscope names them,
 * and profiles of one program should not differ by the way they came.
 */
#include "base/hash.h"
#include "codec/jfr_int.h"

/* ---- names ---- */

/* UTF-8 of a symbol, without what differs from run to run.  Returns its length. */
static size_t symbol_name(const struct kiln_jfr_chunk *c, uint64_t id, char *out)
{
    const struct kiln_jfr_name *symbol = kiln_jfr_find(c, KILN_JFR_SYMBOLS, id);

    return symbol ? kiln_jfr_plain_name(out, kiln_jfr_text_get(c, symbol->text, out)) : 0;
}

/* async-profiler gives everything that is not a Java method this descriptor. */
static bool is_native(const struct kiln_jfr_chunk *c, const struct kiln_jfr_method *method)
{
    const struct kiln_jfr_name *symbol = kiln_jfr_find(c, KILN_JFR_SYMBOLS, method->descriptor);
    char text[KILN_JFR_TEXT_MAX];

    return symbol && symbol->text.len < 8 &&
           kiln_str_eq((struct kiln_str){text, kiln_jfr_text_get(c, symbol->text, text)},
                       KILN_STR("()L;"));
}

static uint32_t new_function(struct kiln_jfr *j, const struct kiln_jfr_method *method)
{
    char name[2 * KILN_JFR_TEXT_MAX + 1];
    size_t len = symbol_name(&j->chunk, method->class_name, name);

    name[len++] = '.';
    len += symbol_name(&j->chunk, method->name, name + len);
    return kiln_builder_function(
        j->b, &(struct kiln_function){
                  .name = kiln_builder_string(j->b, (struct kiln_str){name, len}),
              });
}

/* Names are put together once, however many methods share them. */
static uint32_t make_function(struct kiln_jfr *j, struct kiln_jfr_method *method)
{
    struct kiln_jfr_chunk *c = &j->chunk;
    const struct kiln_jfr_method *methods = c->pools[KILN_JFR_METHODS].entries;
    const struct kiln_jfr_class *class = kiln_jfr_find(c, KILN_JFR_CLASSES, method->class);
    uint64_t hash;
    int r;

    method->class_name = class ? class->name : 0;
    method->native = is_native(c, method);
    hash = kiln_hash_mix(method->class_name, method->name);
    for (struct kiln_probe p = kiln_intern_probe(&c->functions, hash);
         kiln_intern_next(&c->functions, &p);) {
        if (methods[p.entry].class_name == method->class_name &&
            methods[p.entry].name == method->name)
            return methods[p.entry].memo - 1;
    }
    r = kiln_intern_add(&c->functions, c->budget, hash, (uint32_t)(method - methods));
    if (r < 0)
        kiln_builder_fail(j->b, r);
    return new_function(j, method);
}

/* ---- frames ---- */

static uint32_t kind_of(const struct kiln_jfr_chunk *c, uint64_t id)
{
    struct kiln_jfr_name *type = kiln_jfr_find(c, KILN_JFR_FRAME_TYPES, id);
    char text[KILN_JFR_TEXT_MAX];
    struct kiln_str s = {text, 0};

    if (!type)
        return KILN_JFR_FRAME_JVM;
    if (!type->memo) {
        s.len = kiln_jfr_text_get(c, type->text, text);
        type->memo = 1 + KILN_JFR_FRAME_JVM;
        if (kiln_str_eq(s, KILN_STR("Native")) || kiln_str_eq(s, KILN_STR("C++")))
            type->memo = 1 + KILN_JFR_FRAME_NATIVE;
        if (kiln_str_eq(s, KILN_STR("Kernel")))
            type->memo = 1 + KILN_JFR_FRAME_KERNEL;
    }
    return type->memo - 1;
}

static uint32_t frame_set(struct kiln_jfr *j, uint32_t kind)
{
    static const char *const names[] = {"jvm", "native", "kernel"};

    if (!j->frame_sets[kind]) {
        uint32_t attr =
            kiln_builder_text_attr(j->b, KILN_STR("profile.frame.type"), kiln_str_of(names[kind]));

        j->frame_sets[kind] = kiln_builder_set(j->b, &attr, 1, NULL);
    }
    return j->frame_sets[kind];
}

/* The location of a frame whose method is not in its pool. */
static uint32_t unknown_location(struct kiln_jfr *j)
{
    struct kiln_location location = {.attrs = frame_set(j, KILN_JFR_FRAME_JVM)};

    return kiln_builder_location(j->b, &location, NULL, 0);
}

/* Frames mostly repeat the call that was seen last in their method. */
static uint32_t make_location(struct kiln_jfr *j, const struct kiln_jfr_record *frame,
                              uint32_t kind)
{
    struct kiln_jfr_method *method =
        kiln_jfr_find(&j->chunk, KILN_JFR_METHODS, kiln_jfr_number(frame, KILN_JFR_METHOD));
    int32_t number = (int32_t)kiln_jfr_number(frame, KILN_JFR_LINE);

    if (!method)
        return unknown_location(j);
    if (!method->memo)
        method->memo = 1 + make_function(j, method);
    if (!method->location || method->line != number || method->kind != kind) {
        struct kiln_line line = {.function = method->memo - 1, .line = number > 0 ? number : 0};
        struct kiln_location location = {
            .attrs = frame_set(j, method->native ? kind : KILN_JFR_FRAME_JVM),
        };

        method->location = kiln_builder_location(j->b, &location, &line, 1);
        method->line = number;
        method->kind = (uint8_t)kind;
    }
    return method->location;
}

static int make_stack(struct kiln_jfr *j, const struct kiln_jfr_stack *stack, uint32_t *ret_stack)
{
    struct kiln_jfr_chunk *c = &j->chunk;
    struct kiln_jfr_in in = {stack->frames, c->base + c->size, 0};
    uint32_t max = kiln_builder_limits(j->b)->stack_depth;
    struct kiln_jfr_type *type = &c->types[c->frame_type];
    struct kiln_jfr_record frame;
    uint64_t n = kiln_jfr_count(&in), frame_type = 0;
    uint32_t kind = kind_of(c, frame_type);
    int r = kiln_grow(&j->budget, (void **)&j->frames, &j->cap_frames, n, sizeof(*j->frames), max);

    if (r == 0)
        r = kiln_jfr_compile(c, type);
    if (r < 0)
        return r;
    for (uint64_t i = 0; i < n; i++) {
        kiln_jfr_run(c, &in, type, &frame);
        if (in.error)
            return in.error;
        if (kiln_jfr_number(&frame, KILN_JFR_TYPE) != frame_type) {
            frame_type = kiln_jfr_number(&frame, KILN_JFR_TYPE);
            kind = kind_of(c, frame_type);
        }
        j->frames[i] = make_location(j, &frame, kind);
    }
    *ret_stack = kiln_builder_stack(j->b, j->frames, (uint32_t)n);
    return 0;
}

int kiln_jfr_stack(struct kiln_jfr *j, uint64_t id, uint32_t *ret_stack, struct kiln_err *err)
{
    struct kiln_jfr_stack *stack = kiln_jfr_find(&j->chunk, KILN_JFR_STACKS, id);
    uint32_t made = 0;
    int r;

    if (!stack || !stack->frames || j->chunk.frame_type == UINT32_MAX) {
        *ret_stack = 0;
        return 0;
    }
    if (!stack->memo) {
        r = make_stack(j, stack, &made);
        if (r < 0)
            return kiln_err_set(err, r, NULL, "%s, in the stack trace %llu", kiln_err_text(r),
                                (unsigned long long)id);
        stack->memo = 1 + made;
    }
    *ret_stack = stack->memo - 1;
    return 0;
}

/* ---- attributes of samples ---- */

/* A text as a string of the batch; one that many refer to is looked at once. */
static uint32_t make_string(struct kiln_jfr *j, struct kiln_jfr_text text)
{
    struct kiln_jfr_name *shared = kiln_jfr_text_entry(&j->chunk, text);
    char utf8[KILN_JFR_TEXT_MAX];
    uint32_t string;

    if (shared && shared->memo)
        return shared->memo - 1;
    string = kiln_builder_string(j->b,
                                 (struct kiln_str){utf8, kiln_jfr_text_get(&j->chunk, text, utf8)});
    if (shared)
        shared->memo = 1 + string;
    return string;
}

static uint32_t make_attr(struct kiln_jfr *j, struct kiln_str key, struct kiln_value value)
{
    return kiln_builder_attr(j->b, kiln_builder_string(j->b, key), value, 0);
}

uint32_t kiln_jfr_thread_set(struct kiln_jfr *j, uint64_t id)
{
    struct kiln_jfr_thread *thread = kiln_jfr_find(&j->chunk, KILN_JFR_THREADS, id);
    uint32_t attrs[2], n = 0, name;
    int64_t number;

    if (!thread)
        return 0;
    if (thread->memo)
        return thread->memo - 1;
    name = make_string(j, thread->java_name);
    if (!name)
        name = make_string(j, thread->os_name);
    if (name)
        attrs[n++] = make_attr(j, KILN_STR("thread.name"), kiln_value_string(name));
    /* virtual threads have no id of the system */
    number = (int64_t)(thread->os_id ? thread->os_id : thread->java_id);
    if (number)
        attrs[n++] = make_attr(j, KILN_STR("thread.id"), kiln_value_int(number));
    thread->memo = 1 + kiln_builder_set(j->b, attrs, n, NULL);
    return thread->memo - 1;
}

static uint32_t make_class_attr(struct kiln_jfr *j, uint64_t class_name)
{
    struct kiln_jfr_name *symbol = kiln_jfr_find(&j->chunk, KILN_JFR_SYMBOLS, class_name);
    char name[KILN_JFR_TEXT_MAX];
    struct kiln_str s = {name, 0};

    if (!symbol)
        return 0;
    if (!symbol->memo) {
        s.len = symbol_name(&j->chunk, class_name, name);
        symbol->memo = 1 + kiln_builder_string(j->b, s);
    }
    return make_attr(j, KILN_STR("object.class"), kiln_value_string(symbol->memo - 1));
}

uint32_t kiln_jfr_class_attr(struct kiln_jfr *j, uint64_t id)
{
    struct kiln_jfr_class *class = kiln_jfr_find(&j->chunk, KILN_JFR_CLASSES, id);

    if (!class)
        return 0;
    if (!class->memo)
        class->memo = 1 + make_class_attr(j, class->name);
    return class->memo - 1;
}
