/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result for each file of aside/, from JSON into lines: the same whether the answer came from a
 * server or from this process.
 */
#include "base/json.h"
#include "cli/report.h"
#include "cli/store.h"

enum { FILE_NAME, STATE, WHERE, WHY, N_TEXTS };
enum { RECOVERED, PRESENT, TOO_OLD, UNREADABLE, N_NUMBERS };

static const char *const texts[N_TEXTS] = {"file", "state", "where", "why"};
static const char *const numbers[N_NUMBERS] = {"recovered", "present", "too_old", "unreadable"};

/* An object with these numbers; a file has the rest too. */
struct said {
    struct kiln_buf text[N_TEXTS];
    uint64_t number[N_NUMBERS];
    bool removed;
};

static int read_member(struct kiln_json *r, struct kiln_str name, struct said *s)
{
    struct kiln_str text;

    for (int i = 0; i < N_NUMBERS; i++) {
        if (kiln_str_eq(name, kiln_str_of(numbers[i])))
            return kiln_json_u64(r, &s->number[i]);
    }
    for (int i = 0; i < N_TEXTS; i++) {
        if (kiln_str_eq(name, kiln_str_of(texts[i]))) {
            int n = kiln_json_string(r, &text);

            if (n == 0)
                kiln_buf_add_str(&s->text[i], text);
            return n;
        }
    }
    if (kiln_str_eq(name, KILN_STR("removed")))
        return kiln_json_bool(r, &s->removed);
    return kiln_json_skip(r);
}

/* "3 profiles recovered, 2 were there already" */
static void put_numbers(struct kiln_buf *out, const struct said *s)
{
    static const char *const after[N_NUMBERS] = {" recovered", " there already",
                                                 " too old for retention", " unreadable"};

    kiln_report_count(out, (double)s->number[RECOVERED], "profile");
    kiln_buf_puts(out, after[RECOVERED]);
    for (int i = 1; i < N_NUMBERS; i++) {
        if (s->number[i] == 0)
            continue;
        kiln_buf_puts(out, ", ");
        kiln_buf_add_u64(out, s->number[i]);
        kiln_buf_puts(out, after[i]);
    }
}

static void put_damage(struct kiln_cli *cli, const struct said *s)
{
    struct kiln_buf *out = &cli->out;

    kiln_buf_puts(out, s->removed ? "; the rest is removed: " : "; the rest is kept: ");
    for (int i = WHERE; i <= WHY; i++) {
        kiln_cli_put_safe(out, kiln_buf_str(&s->text[i]));
        if (i == WHERE && s->text[i].len)
            kiln_buf_puts(out, ": ");
    }
}

static int print_file(struct kiln_cli *cli, struct kiln_json *r)
{
    struct said s = {.removed = false};
    struct kiln_str name;
    int n = kiln_json_object(r);

    for (int i = 0; i < N_TEXTS; i++)
        kiln_buf_init(&s.text[i], 4096);
    while (n == 0 && (n = kiln_json_member(r, &name)) > 0)
        n = read_member(r, name, &s);
    kiln_cli_put_safe(&cli->out, kiln_buf_str(&s.text[FILE_NAME]));
    kiln_buf_puts(&cli->out, ": ");
    put_numbers(&cli->out, &s);
    if (!kiln_str_eq(kiln_buf_str(&s.text[STATE]), KILN_STR("whole")))
        put_damage(cli, &s);
    kiln_buf_putc(&cli->out, '\n');
    for (int i = 0; i < N_TEXTS; i++)
        kiln_buf_done(&s.text[i]);
    return n;
}

int kiln_store_print_salvage(struct kiln_cli *cli, struct kiln_str json)
{
    struct said total = {.removed = false};
    struct kiln_err err = {0};
    struct kiln_json r;
    struct kiln_str name;
    uint32_t files = 0;
    int n;

    kiln_json_init(&r, json, &err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0) {
        if (!kiln_str_eq(name, KILN_STR("files"))) {
            n = read_member(&r, name, &total);
            continue;
        }
        n = kiln_json_array(&r);
        while (n == 0 && (n = kiln_json_element(&r)) > 0) {
            n = print_file(cli, &r);
            files++;
        }
    }
    kiln_json_done(&r);
    if (n < 0) {
        kiln_err_set(&err, KILN_E_MALFORMED, NULL, "the answer is not what was asked for");
        return kiln_cli_fail(NULL, &err);
    }
    if (files == 0) {
        kiln_buf_puts(&cli->out, "nothing is set aside\n");
        return KILN_EXIT_WELL;
    }
    put_numbers(&cli->out, &total);
    kiln_buf_puts(&cli->out, cli->args.store.dry_run ? " (nothing is changed: --dry-run)\n" : "\n");
    return KILN_EXIT_WELL;
}
