/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/utsname.h>

#include "base/json.h"
#include "cli/doctor.h"
#include "cli/report.h"

enum { NAME_COLUMN = 9, TEXT_COLUMN = 33 };

static uint32_t count(const struct kiln_survey *survey, enum kiln_finding_state state)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < survey->n; i++)
        n += survey->items[i].state == state;
    return n;
}

bool kiln_doctor_works(const struct kiln_survey *survey)
{
    return count(survey, KILN_FINDING_MISSING) == 0;
}

/* ---- for people ---- */

/* The names of what is so: "missing: CAP_BPF, programs". */
static void put_names(const struct kiln_survey *survey, enum kiln_finding_state state,
                      struct kiln_buf *out)
{
    struct kiln_buf names;

    if (!count(survey, state))
        return;
    kiln_buf_init(&names, 4096);
    for (uint32_t i = 0; i < survey->n; i++)
        if (survey->items[i].state == state)
            kiln_buf_printf(&names, "%s%s", names.len ? ", " : "", survey->items[i].name);
    kiln_buf_printf(out, "  %-9s", kiln_finding_word(state));
    kiln_term_wrap(out, kiln_buf_str(&names), 11, 11);
    kiln_buf_done(&names);
}

/* What is missing, and the one command that grants all capabilities. */
static void put_summary(const struct kiln_survey *survey, struct kiln_buf *out)
{
    char all[640];

    put_names(survey, KILN_FINDING_MISSING, out);
    put_names(survey, KILN_FINDING_LESS, out);
    kiln_survey_grant_all(all, sizeof(all));
    if (all[0]) {
        kiln_buf_puts(out, "All capabilities at once: ");
        kiln_term_wrap(out, kiln_str_of(all), 26, 4);
    }
}

static void put_head(const struct kiln_survey *survey, const struct kiln_term *term,
                     struct kiln_buf *out)
{
    uint32_t less = count(survey, KILN_FINDING_LESS);
    uint32_t missing = count(survey, KILN_FINDING_MISSING);
    struct utsname name;
    char text[128];

    snprintf(text, sizeof(text),
             missing ? "The profiler does not work here: %u thing%s missing"
                     : "The profiler works here",
             missing, missing == 1 ? " is" : "s are");
    kiln_term_put(term, out, missing ? KILN_STYLE_WORSE : KILN_STYLE_BETTER, kiln_str_of(text));
    if (less)
        kiln_buf_printf(out, "; %u thing%s could be better", less, less == 1 ? "" : "s");
    if (uname(&name) == 0)
        kiln_buf_printf(out, ".  (Linux %s, %s)", name.release, name.machine);
    kiln_buf_putc(out, '\n');
}

static void put_part(const char *title, const char *text, const struct kiln_term *term,
                     struct kiln_buf *out)
{
    if (!text[0])
        return;
    kiln_buf_printf(out, "%*s", TEXT_COLUMN - 9, "");
    kiln_term_put(term, out, KILN_STYLE_FAINT, kiln_str_of(title));
    kiln_term_wrap(out, kiln_str_of(text), TEXT_COLUMN, TEXT_COLUMN);
}

static void put_finding(const struct kiln_finding *f, const struct kiln_term *term,
                        struct kiln_buf *out)
{
    static const enum kiln_style styles[] = {
        [KILN_FINDING_OK] = KILN_STYLE_BETTER,
        [KILN_FINDING_LESS] = KILN_STYLE_WARM,
        [KILN_FINDING_MISSING] = KILN_STYLE_WORSE,
        [KILN_FINDING_UNKNOWN] = KILN_STYLE_FAINT,
    };
    const char *word = f->state == KILN_FINDING_UNKNOWN ? "?" : kiln_finding_word(f->state);
    char cell[40];

    snprintf(cell, sizeof(cell), "  %-8s", word);
    kiln_term_put(term, out, styles[f->state], kiln_str_of(cell));
    kiln_buf_printf(out, "%-*s ", TEXT_COLUMN - 11, f->name);
    kiln_term_wrap(out, kiln_str_of(f->found), TEXT_COLUMN, TEXT_COLUMN);
    put_part("without: ", f->without, term, out);
    put_part("to have: ", f->grant, term, out);
}

static void put_agent(const struct kiln_doctor_agent *agent, const struct kiln_term *term,
                      struct kiln_buf *out)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 12);
    kiln_buf_puts(out, "\nan agent that runs\n");
    if (agent->found) {
        kiln_buf_printf(&text, "%u Hz; costs %.2f %% of a processor and ", agent->hz,
                        agent->cpu_cores * 100);
        kiln_report_number(&text, (double)agent->memory_bytes, KILN_STR("bytes"));
        kiln_buf_puts(&text, " of memory; ");
        kiln_report_count(&text, (double)agent->samples, "sample");
        if (agent->stacks)
            kiln_buf_printf(&text, ", %.1f %% of stacks complete",
                            100 * (double)agent->complete / (double)agent->stacks);
        kiln_buf_printf(&text, ", %llu lost (%s)", (unsigned long long)agent->lost, agent->where);
    } else {
        kiln_buf_puts(&text, "none was found: nothing is profiled all the time (sudo systemctl "
                             "enable --now kiln-agent, or `kiln`, which is the server too)");
    }
    kiln_buf_puts(out, "  ");
    kiln_term_put(term, out, agent->found ? KILN_STYLE_BETTER : KILN_STYLE_FAINT,
                  agent->found ? KILN_STR("ok      ") : KILN_STR("-       "));
    kiln_buf_printf(out, "%-*s ", TEXT_COLUMN - 11, "agent");
    kiln_term_wrap(out, kiln_buf_str(&text), TEXT_COLUMN, TEXT_COLUMN);
    kiln_buf_done(&text);
}

void kiln_doctor_say(const struct kiln_survey *survey, const struct kiln_doctor_agent *agent,
                     const struct kiln_term *term, struct kiln_buf *out)
{
    const char *group = "";

    put_head(survey, term, out);
    put_summary(survey, out);
    for (uint32_t i = 0; i < survey->n; i++) {
        if (strcmp(group, survey->items[i].group) != 0)
            kiln_buf_printf(out, "\n%s\n", survey->items[i].group);
        group = survey->items[i].group;
        put_finding(&survey->items[i], term, out);
    }
    put_agent(agent, term, out);
}

/* ---- for programs ---- */

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    if (!text[0])
        return;
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

static void put_findings(struct kiln_json_out *w, const struct kiln_survey *survey)
{
    kiln_json_put_name(w, "findings");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < survey->n; i++) {
        const struct kiln_finding *f = &survey->items[i];

        kiln_json_put_object(w);
        put_text(w, "group", f->group);
        put_text(w, "name", f->name);
        put_text(w, "state", kiln_finding_word(f->state));
        put_text(w, "found", f->found);
        put_text(w, "without", f->without);
        put_text(w, "grant", f->grant);
        kiln_json_end_object(w);
    }
    kiln_json_end_array(w);
}

static void put_agent_json(struct kiln_json_out *w, const struct kiln_doctor_agent *agent)
{
    kiln_json_put_name(w, "agent");
    if (!agent->found) {
        kiln_json_put_null(w);
        return;
    }
    kiln_json_put_object(w);
    put_text(w, "address", agent->where);
    kiln_json_put_name(w, "frequency");
    kiln_json_put_u64(w, agent->hz);
    kiln_json_put_name(w, "cpu_cores");
    kiln_json_put_double(w, agent->cpu_cores);
    kiln_json_put_name(w, "memory_bytes");
    kiln_json_put_u64(w, agent->memory_bytes);
    kiln_json_put_name(w, "samples");
    kiln_json_put_u64(w, agent->samples);
    kiln_json_put_name(w, "lost");
    kiln_json_put_u64(w, agent->lost);
    kiln_json_put_name(w, "complete");
    kiln_json_put_double(w, kiln_share((double)agent->complete, (double)agent->stacks));
    kiln_json_end_object(w);
}

void kiln_doctor_say_json(const struct kiln_survey *survey, const struct kiln_doctor_agent *agent,
                          struct kiln_buf *out)
{
    struct kiln_json_out w;
    char all[640];

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "works");
    kiln_json_put_bool(&w, kiln_doctor_works(survey));
    kiln_survey_grant_all(all, sizeof(all));
    put_text(&w, "grant_all", all);
    put_findings(&w, survey);
    put_agent_json(&w, agent);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}
