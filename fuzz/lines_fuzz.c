/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a function, samples in the order of time, and flames of views, of whatever profiles an
 * OTLP request in JSON holds.
 *
 * The first byte of an input chooses how many samples and nodes may stay, the rest of the first
 * line is the name of a function, and what follows is the request.
 */
#include "codec/otlp_json.h"
#include "core/flame_tree.h"
#include "core/lines.h"
#include "core/timed.h"
#include "decode_fuzz.h"

#define MEMORY_BYTES (64u << 20)

static void count_lines(struct kiln_batch *batch, struct kiln_str function)
{
    const struct kiln_lines_opts opts = {.function = function, .memory_bytes = MEMORY_BYTES};
    struct kiln_lines *lines;

    if (kiln_lines_new(batch, &opts, &lines, NULL) < 0)
        return;
    FUZZ_CHECK(lines->n_files > 0);
    for (uint32_t i = 0; i < lines->n_lines; i++) {
        FUZZ_CHECK(lines->lines[i].line >= 0);
        FUZZ_CHECK(i == 0 || lines->lines[i - 1].line < lines->lines[i].line);
    }
    kiln_lines_free(lines);
}

static void sort_by_time(struct kiln_batch *batch, uint32_t limit)
{
    const struct kiln_timed_opts opts = {.limit = limit, .memory_bytes = MEMORY_BYTES};
    struct kiln_timed *timed;

    if (kiln_timed_new(batch, &opts, &timed, NULL) < 0)
        return;
    FUZZ_CHECK(timed->n_rows <= timed->n_timed && timed->n_timed <= timed->n_all);
    FUZZ_CHECK(limit == 0 || timed->n_rows <= limit);
    for (uint32_t i = 0; i < timed->n_rows; i++) {
        FUZZ_CHECK(timed->rows[i].node < timed->n_nodes);
        FUZZ_CHECK(timed->rows[i].thread < timed->n_threads);
        FUZZ_CHECK(i == 0 || timed->rows[i - 1].time_ns <= timed->rows[i].time_ns);
    }
    for (uint32_t i = 1; i < timed->n_nodes; i++) {
        FUZZ_CHECK(timed->nodes[i].parent < i);
        FUZZ_CHECK(timed->nodes[i].name < timed->n_names);
    }
    kiln_timed_free(timed);
}

static void draw_flame(struct kiln_batch *batch, uint32_t nodes)
{
    const struct kiln_view_opts opts = {.memory_bytes = MEMORY_BYTES};
    const struct kiln_flame_wants wants = {nodes, true, MEMORY_BYTES};
    struct kiln_flame *flame;
    struct kiln_view *view;

    if (kiln_view_new(batch, &opts, &view, NULL) < 0)
        return;
    if (kiln_flame_of_view(view, &wants, &flame, NULL) == 0) {
        for (uint32_t i = 0; i < flame->n_nodes; i++) {
            FUZZ_CHECK(flame->nodes[i].name < flame->n_names);
            FUZZ_CHECK(flame->nodes[i].end > i && flame->nodes[i].end <= flame->n_nodes);
        }
        for (uint32_t i = 0; i < flame->n_functions; i++)
            FUZZ_CHECK(flame->functions[i].name < flame->n_names);
        kiln_flame_free(flame);
    }
    kiln_view_free(view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str rest = {(const char *)data, size};
    struct kiln_str line = kiln_str_cut(&rest, '\n');
    struct kiln_batch *batch;

    if (!rest.ptr || !line.len)
        return 0;
    batch = kiln_fuzz_decode(kiln_otlp_json_decode, rest);
    if (!batch)
        return 0;
    count_lines(batch, (struct kiln_str){line.ptr + 1, line.len - 1});
    sort_by_time(batch, data[0] & 7);
    draw_flame(batch, data[0] >> 3);
    kiln_batch_unref(batch);
    return 0;
}
