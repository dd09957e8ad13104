/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/push.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/when.h"
#include "cli/edit.h"
#include "cli/input.h"
#include "codec/otlp.h"
#include "codec/otlp_answer.h"
#include "core/remap.h"

#define EXPORT_PATH "/v1development/profiles"
#define REQUEST_MAX ((size_t)1 << 30)
#define ATTRS_MAX   256u
#define SERVICE_KEY KILN_STR("service.name")
#define TYPE_KEY    KILN_STR("profile.type")

int kiln_pusher_init(struct kiln_pusher *pusher, const struct kiln_cli *cli, struct kiln_err *err)
{
    *pusher = (struct kiln_pusher){.cli = cli};
    kiln_answer_init(&pusher->answer);
    return cli->args.push.dry_run ? 0 : kiln_remote_open(cli, 0, &pusher->client, err);
}

void kiln_pusher_done(struct kiln_pusher *pusher)
{
    kiln_client_free(pusher->client);
    kiln_answer_done(&pusher->answer);
}

/* ---- what is known about a file ---- */

static int add_options(const struct kiln_cli *cli, struct kiln_sidecar *known)
{
    int r = 0;

    for (uint32_t i = 0; i < cli->args.labels.n && r == 0; i++) {
        struct kiln_str value = kiln_str_of(cli->args.labels.items[i]);
        struct kiln_str key = kiln_str_cut(&value, '=');

        r = kiln_sidecar_label(known, key, value);
    }
    if (cli->args.push.service)
        known->service = kiln_str_of(cli->args.push.service);
    return r;
}

static uint64_t first_time(const struct kiln_batch *batch)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        uint64_t time_ns = batch->profiles[i].time_ns;

        if (time_ns && (!first || time_ns < first))
            first = time_ns;
    }
    return first;
}

static struct kiln_str base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return kiln_str_of(slash ? slash + 1 : path);
}

/* When the profile begins, and who says so. */
static void find_time(const struct kiln_cli *cli, const char *path,
                      const struct kiln_sidecar *known, uint64_t own_ns,
                      struct kiln_push_result *result)
{
    uint64_t now = kiln_clock_unix_ns();
    struct stat st;

    result->time_ns = own_ns;
    result->time_by = KILN_PUSH_BY_PROFILE;
    if (cli->args.push.time &&
        kiln_when_parse(kiln_str_of(cli->args.push.time), now, &result->time_ns) == 0) {
        result->time_by = KILN_PUSH_BY_OPTION;
    } else if (known->time_ns) {
        result->time_ns = known->time_ns;
        result->time_by = KILN_PUSH_BY_SIDECAR;
    } else if (own_ns) {
        return;
    } else if (kiln_when_in_name(base_name(path), &result->time_ns) == 0) {
        result->time_by = KILN_PUSH_BY_NAME;
    } else if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && st.st_mtim.tv_sec > 0) {
        result->time_ns = kiln_timespec_ns(st.st_mtim);
        result->time_by = KILN_PUSH_BY_FILE;
    } else {
        result->time_ns = now;
        result->time_by = KILN_PUSH_BY_NOW;
    }
}

/* ---- putting it into the batch ---- */

struct naming {
    const struct kiln_sidecar *known;
    uint64_t time_ns;
};

/* A set with more in it. */
static uint32_t longer_set(struct kiln_builder *b, uint32_t set, const uint32_t *more, uint32_t n)
{
    const struct kiln_dict *dict = &kiln_builder_peek(b)->dict;
    struct kiln_range range = dict->sets[set];
    uint32_t attrs[ATTRS_MAX];

    if (range.n + n > ATTRS_MAX) {
        kiln_builder_fail(b, KILN_E_LIMIT);
        return set;
    }
    memcpy(attrs, dict->members + range.first, range.n * sizeof(*attrs));
    memcpy(attrs + range.n, more, n * sizeof(*attrs));
    return kiln_builder_set(b, attrs, range.n + n, NULL);
}

static void name_resources(struct kiln_builder *b, const struct kiln_sidecar *known)
{
    uint32_t more[KILN_SIDECAR_LABELS_MAX + 1], n = 0;

    for (uint32_t i = 0; i < known->n_labels; i++)
        more[n++] = kiln_builder_text_attr(b, known->labels[i].key, known->labels[i].value);
    if (known->service.len)
        more[n++] = kiln_builder_text_attr(b, SERVICE_KEY, known->service);
    for (uint32_t i = 0; n && i < kiln_builder_peek(b)->n_resources; i++) {
        uint32_t set = longer_set(b, kiln_builder_resource(b, i)->attrs, more, n);

        kiln_builder_resource(b, i)->attrs = set;
    }
}

/* Contentions and delays of a pprof are a mutex's or a block's; only metadata can tell. */
static uint32_t family_of(struct kiln_builder *b, struct kiln_str type)
{
    if (kiln_str_eq(type, KILN_STR("block")) || kiln_str_eq(type, KILN_STR("mutex")))
        return kiln_builder_text_attr(b, TYPE_KEY, type);
    return 0;
}

static void name_batch(void *context, struct kiln_builder *b)
{
    const struct naming *naming = context;
    uint32_t family = family_of(b, naming->known->type);

    name_resources(b, naming->known);
    for (uint32_t i = 0; i < kiln_builder_peek(b)->n_profiles; i++) {
        struct kiln_profile *profile = kiln_builder_profile(b, i);
        uint32_t attrs = profile->attrs;

        if (profile->time_ns == 0)
            profile->time_ns = naming->time_ns;
        if (naming->known->duration_ns && profile->duration_ns == 0)
            profile->duration_ns = naming->known->duration_ns;
        if (family)
            attrs = longer_set(b, attrs, &family, 1);
        kiln_builder_profile(b, i)->attrs = attrs;
    }
}

/* The batch with its names and its time, in the place of *batch. */
static int name_and_time(struct kiln_batch **batch, const struct kiln_sidecar *known,
                         uint64_t own_ns, uint64_t time_ns, struct kiln_err *err)
{
    struct naming naming = {known, time_ns};
    struct kiln_remap_edit how = {
        .context = &naming,
        .finish = name_batch,
        .shift_ns = own_ns ? (int64_t)(time_ns - own_ns) : 0,
    };
    struct kiln_batch *edited;
    int r = kiln_remap_batch(*batch, &how, NULL, &edited, err);

    if (r < 0)
        return r;
    kiln_batch_unref(*batch);
    *batch = edited;
    return 0;
}

static void note_service(const struct kiln_batch *batch, struct kiln_push_result *result)
{
    struct kiln_str name = KILN_STR_NONE;

    for (uint32_t i = 0; i < batch->n_resources && !name.len; i++)
        name = kiln_set_text(batch, batch->resources[i].attrs, SERVICE_KEY);
    snprintf(result->service, sizeof(result->service), "%.*s", name.len > 127 ? 127 : (int)name.len,
             name.len ? name.ptr : "");
}

/* ---- sending it ---- */

static int encode(const struct kiln_batch *batch, struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_buf plain;
    int r;

    kiln_buf_init(&plain, REQUEST_MAX);
    r = kiln_otlp_encode(batch, NULL, &plain, err);
    if (r == 0)
        r = kiln_compress(KILN_GZIP, 0, kiln_buf_str(&plain), out);
    kiln_buf_done(&plain);
    return r;
}

static void read_answer(const struct kiln_answer *answer, struct kiln_push_result *result)
{
    struct kiln_export_result said;

    if (!kiln_remote_accepted(answer)) {
        result->outcome = answer->retryable ? KILN_PUSH_FAILED : KILN_PUSH_REFUSED;
        result->final = answer->status != 400 && answer->status != 413;
        result->exit_code = result->final ? KILN_EXIT_IO : KILN_EXIT_INPUT;
        snprintf(result->message, sizeof(result->message), "the server answers %d: %.200s",
                 answer->status, answer->message);
        return;
    }
    kiln_otlp_answer_decode(kiln_buf_str(&answer->body), &said);
    result->outcome = KILN_PUSH_TAKEN;
    result->rejected = said.rejected;
    snprintf(result->message, sizeof(result->message), "%s", said.message);
    if (said.rejected)
        result->exit_code = KILN_EXIT_INPUT;
}

static int send_batch(struct kiln_pusher *pusher, const struct kiln_batch *batch,
                      struct kiln_push_result *result, struct kiln_err *err)
{
    struct kiln_tries tries = {.give_up_ns = pusher->cli->args.push.retry_ns,
                               .insist = pusher->has_sent};
    struct kiln_buf body;
    int r;

    kiln_buf_init(&body, REQUEST_MAX);
    r = encode(batch, &body, err);
    result->bytes = body.len;
    if (r == 0 && pusher->client)
        r = kiln_remote_call(pusher->client,
                             &(struct kiln_call){.path = EXPORT_PATH,
                                                 .content_type = "application/x-protobuf",
                                                 .body = kiln_buf_str(&body),
                                                 .encoding = KILN_GZIP},
                             &tries, &pusher->answer, err);
    kiln_buf_done(&body);
    result->again = tries.again;
    result->final = r < 0 && tries.last_start_ns;
    if (r < 0 || !pusher->client)
        return r;
    pusher->has_sent = true;
    read_answer(&pusher->answer, result);
    return 0;
}

static void fail(const struct kiln_err *err, bool found, struct kiln_push_result *result)
{
    bool input = err->code <= KILN_E_TRUNCATED;

    if (found && err->code == KILN_E_UNKNOWN) {
        result->outcome = KILN_PUSH_SKIPPED;
        return;
    }
    result->outcome = input ? KILN_PUSH_BAD : KILN_PUSH_FAILED;
    result->exit_code = kiln_cli_exit_code(err->code);
    snprintf(result->message, sizeof(result->message), "%s%s%s", err->where,
             err->where[0] ? ": " : "", err->text[0] ? err->text : kiln_err_text(err->code));
}

/* Edits, names and sends what was read. */
static int push_input(struct kiln_pusher *pusher, const char *path, struct kiln_input *input,
                      const struct kiln_sidecar *known, struct kiln_push_result *result,
                      struct kiln_err *err)
{
    uint64_t own_ns = first_time(input->batch);
    int r;

    result->exit_code = kiln_edit(pusher->cli, path, &input->batch);
    if (result->exit_code) { /* it has said why */
        result->outcome = KILN_PUSH_BAD;
        return 0;
    }
    find_time(pusher->cli, path, known, own_ns, result);
    r = name_and_time(&input->batch, known, own_ns, result->time_ns, err);
    result->profiles = input->batch->n_profiles;
    note_service(input->batch, result);
    return r < 0 ? r : send_batch(pusher, input->batch, result, err);
}

static int push(struct kiln_pusher *pusher, const char *path, struct kiln_push_result *result,
                struct kiln_err *err)
{
    struct kiln_sidecar known;
    struct kiln_input input;
    int r;

    kiln_sidecar_init(&known);
    r = kiln_sidecar_read(&known, path, err);
    if (r >= 0)
        r = add_options(pusher->cli, &known);
    if (r >= 0)
        r = kiln_input_load(pusher->cli, path, &input, err);
    if (r >= 0) {
        r = push_input(pusher, path, &input, &known, result, err);
        kiln_input_close(&input);
    }
    kiln_sidecar_done(&known);
    return r;
}

void kiln_push_file(struct kiln_pusher *pusher, const char *path, bool found,
                    struct kiln_push_result *ret_result)
{
    struct kiln_err err = {0};
    int r;

    *ret_result = (struct kiln_push_result){0};
    if (kiln_sidecar_is(path)) {
        ret_result->outcome = KILN_PUSH_SKIPPED;
        return;
    }
    r = push(pusher, path, ret_result, &err);
    if (r < 0) {
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        fail(&err, found, ret_result);
    }
}
