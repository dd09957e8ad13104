/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is put together in a buffer of the log's own, so that a line can be written when there is
 * no memory left, and goes out with one write.  A field whose text might not fit any more is left
 * out, and the line says `truncated=true`.
 */
#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    TEXT_MAX = 1024,
    FIELD_MAX = 6 * TEXT_MAX + 128, /* with each byte as \u00xx */
    LINE_MAX_BYTES = 4 * FIELD_MAX,
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static const char *const plain_levels[] = {"debug: ", "", "warning: ", "error: "};
static const char *const form_names[] = {"logfmt", "json", "plain"};

struct kiln_log {
    int fd;
    _Atomic int level; /* enum kiln_log_level */
    enum kiln_log_form form;
    pthread_mutex_t lock;
    struct kiln_buf line; /* has all its memory from the start */
};

/* The place of a word; `n` where it is not there. */
static uint32_t find_word(const char *word, const char *const *words, uint32_t n)
{
    uint32_t i = 0;

    while (i < n && strcmp(word, words[i]) != 0)
        i++;
    return i;
}

int kiln_log_level_parse(const char *word, enum kiln_log_level *ret_level)
{
    uint32_t i = find_word(word, level_names, KILN_ARRAY_LEN(level_names));

    if (i == KILN_ARRAY_LEN(level_names))
        return KILN_E_UNKNOWN;
    *ret_level = (enum kiln_log_level)i;
    return 0;
}

int kiln_log_form_parse(const char *word, enum kiln_log_form *ret_form)
{
    uint32_t i = find_word(word, form_names, KILN_ARRAY_LEN(form_names));

    if (i == KILN_ARRAY_LEN(form_names))
        return KILN_E_UNKNOWN;
    *ret_form = (enum kiln_log_form)i;
    return 0;
}

int kiln_log_new(int fd, enum kiln_log_level level, enum kiln_log_form form,
                 struct kiln_log **ret_log)
{
    struct kiln_log *log = kiln_calloc(1, sizeof(*log));

    if (!log)
        return -ENOMEM;
    log->fd = fd;
    atomic_init(&log->level, (int)level);
    log->form = form;
    kiln_buf_init(&log->line, LINE_MAX_BYTES);
    if (!kiln_buf_reserve(&log->line, LINE_MAX_BYTES)) {
        kiln_free(log);
        return -ENOMEM;
    }
    pthread_mutex_init(&log->lock, NULL);
    *ret_log = log;
    return 0;
}

void kiln_log_change(struct kiln_log *log, enum kiln_log_level level, enum kiln_log_form form)
{
    pthread_mutex_lock(&log->lock);
    log->form = form;
    pthread_mutex_unlock(&log->lock);
    atomic_store(&log->level, (int)level);
}

void kiln_log_free(struct kiln_log *log)
{
    if (!log)
        return;
    pthread_mutex_destroy(&log->lock);
    kiln_buf_done(&log->line);
    kiln_free(log);
}

/* ---- texts ---- */

/* `quoted`: inside double quotes. */
static void add_char(struct kiln_buf *out, struct kiln_str s, size_t len, bool quoted)
{
    uint32_t c = len ? kiln_utf8_code(s.ptr, len) : 0xfffd;

    if (quoted && (c == '"' || c == '\\'))
        kiln_buf_printf(out, "\\%c", (char)c);
    else if (c == '\n' || c == '\r' || c == '\t')
        kiln_buf_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    else if (kiln_is_control(c))
        kiln_buf_printf(out, "\\u%04x", c);
    else if (len)
        kiln_buf_add(out, s.ptr, len);
    else
        kiln_buf_puts(out, "\xef\xbf\xbd");
}

static bool is_bare(struct kiln_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] <= ' ' || s.ptr[i] == '"' || s.ptr[i] == '=' || s.ptr[i] == '\\' ||
            s.ptr[i] > '~')
            return false;
    }
    return s.len > 0;
}

static void add_text(const struct kiln_log *log, struct kiln_buf *out, struct kiln_str s)
{
    bool cut = s.len > TEXT_MAX, quoted = log->form != KILN_LOG_PLAIN;

    if (cut)
        s.len = TEXT_MAX;
    if (log->form == KILN_LOG_LOGFMT && !cut && is_bare(s)) {
        kiln_buf_add_str(out, s);
        return;
    }
    kiln_buf_puts(out, quoted ? "\"" : "");
    for (size_t at = 0, len; at < s.len; at += len ? len : 1) {
        struct kiln_str rest = {s.ptr + at, s.len - at};

        len = kiln_utf8_len(rest);
        add_char(out, rest, len, quoted);
    }
    kiln_buf_puts(out, cut ? "..." : "");
    kiln_buf_puts(out, quoted ? "\"" : "");
}

static void add_key(const struct kiln_log *log, struct kiln_buf *out, const char *key)
{
    static const char *const formats[] = {
        [KILN_LOG_LOGFMT] = " %s=", [KILN_LOG_JSON] = ",\"%s\":", [KILN_LOG_PLAIN] = "; %s: "};

    kiln_buf_printf(out, formats[log->form], key);
}

/* ---- fields ---- */

struct field {
    char number[64];
    struct kiln_str text; /* there, or the caller's */
    bool quoted;          /* in JSON */
};

/* The letter of a conversion, and whether its argument is wider than an int; NUL: not ours. */
static char conversion(const char *format, bool *ret_wide)
{
    size_t size;

    if (*format++ != '%')
        return '\0';
    format += strspn(format, "+- #0123456789.");
    size = strspn(format, "lzj");
    *ret_wide = size > 0;
    return format[size];
}

static void put_double(struct field *field, const char *format, double value)
{
    snprintf(field->number, sizeof(field->number), format, value);
    field->quoted = !isfinite(value);
}

/* All integers wider than int have the same width here: long, long long, size_t. */
static void put_integer(struct field *field, const char *format, bool wide, va_list *args)
{
    if (wide)
        snprintf(field->number, sizeof(field->number), format, va_arg(*args, unsigned long));
    else
        snprintf(field->number, sizeof(field->number), format, va_arg(*args, unsigned));
}

/* False where the format is not one of ours: the type of its argument is then not known. */
static bool read_field(struct field *field, const char *format, va_list *args)
{
    bool wide = false;
    char letter = conversion(format, &wide);
    const char *text;

    field->quoted = false;
    if (letter == 's') {
        text = va_arg(*args, const char *);
        field->text = kiln_str_of(text ? text : "(none)");
        field->quoted = true;
        return true;
    }
    if (letter && strchr("duixX", letter)) {
        put_integer(field, format, wide, args);
        field->quoted = letter == 'x' || letter == 'X';
    } else if (letter && strchr("gfe", letter)) {
        put_double(field, format, va_arg(*args, double));
    } else {
        return false;
    }
    field->text = kiln_str_of(field->number);
    return true;
}

static void add_fields(const struct kiln_log *log, struct kiln_buf *out, va_list *args)
{
    const char *key;

    while ((key = va_arg(*args, const char *))) {
        struct field field;
        bool known = read_field(&field, va_arg(*args, const char *), args);

        if (!known || out->max - out->len < FIELD_MAX + 128) {
            add_key(log, out, "truncated");
            kiln_buf_puts(out, "true");
            return;
        }
        add_key(log, out, key);
        if (log->form == KILN_LOG_JSON && !field.quoted)
            kiln_buf_add_str(out, field.text);
        else
            add_text(log, out, field.text);
    }
}

static void add_time(struct kiln_buf *out)
{
    uint64_t now = kiln_clock_unix_ns();
    time_t seconds = (time_t)(now / KILN_NS_PER_S);
    char text[32];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    kiln_buf_printf(out, "%s.%03uZ", text, (unsigned)(now % KILN_NS_PER_S / KILN_NS_PER_MS));
}

static void add_clock(struct kiln_buf *out)
{
    time_t seconds = (time_t)(kiln_clock_unix_ns() / KILN_NS_PER_S);
    char text[16];
    struct tm tm;

    localtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%H:%M:%S ", &tm);
    kiln_buf_puts(out, text);
}

static void add_head(const struct kiln_log *log, struct kiln_buf *out, enum kiln_log_level level,
                     const char *msg)
{
    bool json = log->form == KILN_LOG_JSON;

    if (log->form == KILN_LOG_PLAIN) {
        add_clock(out);
        kiln_buf_puts(out, plain_levels[level]);
    } else {
        kiln_buf_puts(out, json ? "{\"time\":\"" : "time=");
        add_time(out);
        kiln_buf_puts(out, json ? "\"" : "");
        add_key(log, out, "level");
        kiln_buf_printf(out, json ? "\"%s\"" : "%s", level_names[level]);
        add_key(log, out, "msg");
    }
    add_text(log, out, kiln_str_of(msg));
}

void kiln_log(struct kiln_log *log, enum kiln_log_level level, const char *msg, ...)
{
    int saved = errno;
    va_list args;

    if (!log || (int)level < atomic_load_explicit(&log->level, memory_order_relaxed))
        return;
    va_start(args, msg);
    pthread_mutex_lock(&log->lock);
    kiln_buf_clear(&log->line);
    add_head(log, &log->line, level, msg);
    add_fields(log, &log->line, &args);
    kiln_buf_puts(&log->line, log->form == KILN_LOG_JSON ? "}\n" : "\n");
    /* Where a log cannot be written there is nobody to tell. */
    if (kiln_fd_write(log->fd, kiln_buf_str(&log->line)) < 0)
        kiln_buf_clear(&log->line);
    pthread_mutex_unlock(&log->lock);
    va_end(args);
    errno = saved;
}

bool kiln_log_every(_Atomic uint64_t *state, uint32_t seconds)
{
    uint64_t now = kiln_clock_mono_ns();
    uint64_t last = atomic_load(state);

    if (last != 0 && now - last < seconds * KILN_NS_PER_S)
        return false;
    return atomic_compare_exchange_strong(state, &last, now);
}
