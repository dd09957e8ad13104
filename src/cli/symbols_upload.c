/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln symbols upload: what is found is looked at first, then the server is asked what it has, then
 * the rest goes, file by file, in parts of 8 MiB, each compressed.  An upload that was cut off goes
 * on where it ended: it is known by the SHA-256 of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/bytetext.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "cli/symbols.h"
#include "cli/walk.h"
#include "naming/debug_file.h"

#define PART       ((size_t)8 << 20)
#define TARGET_MAX ((size_t)16 << 10)
#define ANSWER_MAX ((size_t)64 << 20)
#define RETRY_NS   (UINT64_C(60) * KILN_NS_PER_S)
#define MIB        (UINT64_C(1) << 20)

/* enum suffix, name in JSON, what it says */
#define OUTCOMES(X)                                                                                \
    X(WAITING, "not_sent", "not sent")                                                             \
    X(UPLOADED, "uploaded", "uploaded")                                                            \
    X(KNOWN, "known", "there already")                                                             \
    X(SKIPPED, "skipped", "passed over")                                                           \
    X(FAILED, "failed", "failed")

enum outcome {
#define X(suffix, name, text) suffix,
    OUTCOMES(X)
#undef X
        N_OUTCOMES
};
static const char *const outcome_names[] = {
#define X(suffix, name, text) name,
    OUTCOMES(X)
#undef X
};
static const char *const outcome_texts[] = {
#define X(suffix, name, text) text,
    OUTCOMES(X)
#undef X
};

struct file {
    const char *path;
    enum outcome outcome;
    int exit_code;
    struct kiln_debug_facts facts;
    char build_id[KILN_DEBUG_ID_MAX + 1];
    char message[512];
};

struct run {
    struct kiln_cli *cli;
    struct kiln_client *client;
    struct file *files;
    uint32_t n;
    uint64_t done_bytes, all_bytes, sent_bytes;
    struct kiln_answer answer;
    struct kiln_buf part;
    char *piece;
};

/* ---- looking at files ---- */

static int fail(struct file *file, int code, const char *text)
{
    file->outcome = FAILED;
    file->exit_code = kiln_cli_exit_code(code);
    snprintf(file->message, sizeof(file->message), "%s", text);
    return code;
}

static int inspect_path(const char *path, struct kiln_debug_facts *ret_facts, struct kiln_err *err)
{
    struct kiln_bytes bytes;
    struct stat st;
    int fd = kiln_open_beneath(AT_FDCWD, path, 0, &st), r;

    if (fd < 0)
        return kiln_err_set(err, fd, NULL, "%s", kiln_err_text(fd));
    r = kiln_bytes_file(fd, &bytes);
    if (r == 0)
        r = kiln_debug_inspect(&bytes, ret_facts, err);
    close(fd);
    return r;
}

/* A dwp is of the program beside it. */
static bool find_program(struct file *file)
{
    size_t n = strlen(file->path);
    struct kiln_debug_facts program;
    char path[PATH_MAX];

    if (n < 5 || n >= sizeof(path) || strcmp(file->path + n - 4, ".dwp") != 0)
        return false;
    snprintf(path, sizeof(path), "%.*s", (int)(n - 4), file->path);
    if (inspect_path(path, &program, NULL) < 0 || !program.gnu[0])
        return false;
    snprintf(file->build_id, sizeof(file->build_id), "%s", program.gnu);
    return true;
}

/* Of what was found in a directory only what has names: others say what they want by naming it. */
static void look_at(struct file *file, bool found)
{
    struct kiln_err err = {0};
    int r = inspect_path(file->path, &file->facts, &err);
    bool names = file->facts.has_lines || file->facts.has_symtab || file->facts.go[0];

    if (r < 0 && !found) {
        fail(file, r, err.text);
    } else if (r < 0 || (found && file->facts.kind == KILN_DEBUG_EXECUTABLE && !names)) {
        file->outcome = SKIPPED;
        snprintf(file->message, sizeof(file->message), "%s",
                 r < 0 ? err.text : "it is stripped: nothing in it has a name");
    } else if (file->facts.kind == KILN_DEBUG_DWP) {
        if (!find_program(file))
            fail(file, -ENOENT, "there is no program of this name, without .dwp, beside it");
    } else if (file->facts.kind == KILN_DEBUG_INFO && !file->facts.gnu[0]) {
        fail(file, KILN_E_MALFORMED, "it has no build id, and nothing could be named by it");
    } else {
        snprintf(file->build_id, sizeof(file->build_id), "%s", kiln_debug_build_id(&file->facts));
    }
}

static bool is_same(const struct file *a, const struct file *b)
{
    return a->facts.kind == b->facts.kind && strcmp(a->build_id, b->build_id) == 0;
}

/* Of links to one file, and of copies, one goes. */
static void skip_doubles(struct run *run, uint32_t i)
{
    struct file *file = &run->files[i];

    for (uint32_t k = 0; file->outcome == WAITING && k < i; k++)
        if (run->files[k].outcome == WAITING && is_same(file, &run->files[k])) {
            file->outcome = SKIPPED;
            snprintf(file->message, sizeof(file->message), "the same build id as %.400s",
                     run->files[k].path);
        }
}

/* ---- what the server has ---- */

static void mark_known(struct run *run, const struct kiln_said *said)
{
    const struct kiln_said_row *rows = said->rows.items;

    for (uint32_t i = 0; i < run->n; i++) {
        struct file *file = &run->files[i];

        for (uint32_t k = 0; file->outcome == WAITING && k < said->rows.n; k++)
            if (kiln_str_eq(rows[k].build_id, kiln_str_of(file->build_id)) &&
                kiln_str_eq(rows[k].kind, kiln_str_of(kiln_debug_kind_name(file->facts.kind))))
                file->outcome = KNOWN;
    }
}

static int ask_known(struct run *run)
{
    bool json = run->cli->args.json;
    struct kiln_buf target;
    struct kiln_said said;
    int code;

    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/symbols");
    run->cli->args.json = false; /* which is for our own answer */
    code = kiln_query_get(run->cli, &target, false, &said);
    run->cli->args.json = json;
    if (code == 0 && !run->cli->args.symbols.force)
        mark_known(run, &said);
    kiln_said_done(&said);
    kiln_buf_done(&target);
    return code;
}

/* ---- sending ---- */

static int hash_file(struct run *run, int fd, char ret_digits[65])
{
    uint8_t digest[KILN_SHA256_BYTES];
    struct kiln_sha256_run sha;
    ssize_t n;

    kiln_sha256_begin(&sha);
    while ((n = read(fd, run->piece, PART)) > 0)
        kiln_sha256_add(&sha, (struct kiln_str){run->piece, (size_t)n});
    if (n < 0)
        return -errno;
    kiln_sha256_end(&sha, digest);
    kiln_hex_encode(digest, sizeof(digest), ret_digits);
    ret_digits[64] = '\0';
    return 0;
}

/* How far an upload is. */
struct progress {
    char digits[65];
    uint64_t offset;
    bool complete;
};

/* "received" and "complete" of an answer. */
static int read_answer(struct kiln_str body, struct progress *progress, struct kiln_err *err)
{
    struct kiln_json json;
    struct kiln_str name;
    int r;

    kiln_json_init(&json, body, err);
    r = kiln_json_object(&json);
    while (r == 0 && (r = kiln_json_member(&json, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("received")))
            r = kiln_json_u64(&json, &progress->offset);
        else if (kiln_str_eq(name, KILN_STR("complete")))
            r = kiln_json_bool(&json, &progress->complete);
        else
            r = kiln_json_skip(&json);
    }
    kiln_json_done(&json);
    return r;
}

/* One part; afterwards the progress says where to go on. */
static int send_part(struct run *run, const struct file *file, struct kiln_str bytes,
                     struct progress *progress, struct kiln_err *err)
{
    const char *name = strrchr(file->path, '/') ? strrchr(file->path, '/') + 1 : file->path;
    struct kiln_tries tries = {.give_up_ns = RETRY_NS};
    struct kiln_call call = {.method = "PUT",
                             .content_type = "application/octet-stream",
                             .encoding = bytes.len ? KILN_ZSTD : KILN_PLAIN};
    struct kiln_buf target;
    int r;

    kiln_buf_clear(&run->part);
    r = bytes.len ? kiln_compress(KILN_ZSTD, 0, bytes, &run->part) : 0;
    if (r < 0)
        return r;
    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/symbols/");
    kiln_remote_put_text(&target, kiln_str_of(file->build_id), true);
    kiln_remote_put_param(&target, "sha256", progress->digits);
    kiln_remote_put_number(&target, "offset", progress->offset);
    kiln_remote_put_number(&target, "total", file->facts.bytes);
    kiln_remote_put_param(&target, "name", name);
    kiln_buf_putc(&target, '\0');
    call.path = target.ptr;
    call.body = kiln_buf_str(&run->part);
    r = target.error ? target.error
                     : kiln_remote_call(run->client, &call, &tries, &run->answer, err);
    kiln_buf_done(&target);
    if (r == 0 && !kiln_remote_accepted(&run->answer))
        r = kiln_err_set(err, run->answer.status < 500 ? -EINVAL : -EIO, NULL, "%s",
                         run->answer.message);
    run->sent_bytes += call.body.len;
    return r < 0 ? r : read_answer(kiln_buf_str(&run->answer.body), progress, err);
}

static int send_all(struct run *run, const struct file *file, int fd, struct kiln_err *err)
{
    struct progress progress = {.offset = 0};
    int r = hash_file(run, fd, progress.digits);

    /* Without bytes: how much has come? */
    if (r == 0)
        r = send_part(run, file, KILN_STR_NONE, &progress, err);
    while (r == 0 && !progress.complete) {
        ssize_t n = pread(fd, run->piece, PART, (off_t)progress.offset);
        uint64_t before = progress.offset;

        if (n <= 0)
            return n < 0 ? -errno : kiln_err_set(err, -EIO, NULL, "the file became shorter");
        r = send_part(run, file, (struct kiln_str){run->piece, (size_t)n}, &progress, err);
        if (r == 0 && !progress.complete && progress.offset <= before)
            r = kiln_err_set(err, -EIO, NULL, "the server does not take the file");
        kiln_term_progress("uploading MiB", (uint32_t)((run->done_bytes + progress.offset) / MIB),
                           (uint32_t)(run->all_bytes / MIB + 1));
    }
    return r;
}

static void upload(struct run *run, struct file *file)
{
    struct kiln_err err = {0};
    struct stat st;
    int fd = kiln_open_beneath(AT_FDCWD, file->path, 0, &st);
    int r = fd < 0 ? fd : send_all(run, file, fd, &err);

    if (fd >= 0)
        close(fd);
    if (r < 0)
        fail(file, r, err.text[0] ? err.text : kiln_err_text(r));
    else
        file->outcome = UPLOADED;
    run->done_bytes += file->facts.bytes;
}

/* What the next file would meet as well ends it. */
static void upload_all(struct run *run)
{
    for (uint32_t i = 0; i < run->n; i++) {
        struct file *file = &run->files[i];

        if (file->outcome != WAITING)
            continue;
        upload(run, file);
        if (file->outcome == FAILED &&
            (run->answer.status == 401 || run->answer.status == 403 || run->answer.status == 0))
            break;
    }
    kiln_term_progress("uploading MiB", 1, 1);
}

/* ---- the account ---- */

static void print_file(struct run *run, const struct file *file)
{
    struct kiln_buf *out = &run->cli->out;

    if (file->outcome == SKIPPED)
        return;
    if (file->outcome == FAILED) {
        kiln_cli_note(file->path, "%s", file->message);
        return;
    }
    kiln_cli_put_safe(out, kiln_str_of(file->path));
    kiln_buf_printf(out, ": %s of %s, ", kiln_debug_kind_name(file->facts.kind), file->build_id);
    kiln_report_number(out, (double)file->facts.bytes, KILN_STR("bytes"));
    if (!run->cli->args.push.dry_run || file->outcome != WAITING)
        kiln_buf_printf(out, ", %s", outcome_texts[file->outcome]);
    kiln_buf_putc(out, '\n');
}

static void print(struct run *run, const uint32_t counts[N_OUTCOMES])
{
    bool dry = run->cli->args.push.dry_run;
    struct kiln_buf *out = &run->cli->out;

    for (uint32_t i = 0; i < run->n; i++)
        print_file(run, &run->files[i]);
    kiln_report_count(out, dry ? counts[WAITING] : counts[UPLOADED], "file");
    kiln_buf_puts(out, dry ? " would go to " : " uploaded to ");
    kiln_cli_put_safe(out, kiln_str_of(kiln_remote_address(run->cli)));
    if (run->sent_bytes) {
        kiln_buf_puts(out, " (");
        kiln_report_number(out, (double)run->sent_bytes, KILN_STR("bytes"));
        kiln_buf_puts(out, " sent)");
    }
    for (uint32_t i = KNOWN; i < N_OUTCOMES; i++)
        if (counts[i])
            kiln_buf_printf(out, ", %u %s", counts[i], outcome_texts[i]);
    if (!dry && counts[WAITING])
        kiln_buf_printf(out, ", %u not sent", counts[WAITING]);
    kiln_buf_putc(out, '\n');
}

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    if (!text[0])
        return;
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

static void put_json(struct run *run, const uint32_t counts[N_OUTCOMES])
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, &run->cli->out, 2);
    kiln_json_put_object(&w);
    put_text(&w, "server", kiln_remote_address(run->cli));
    kiln_json_put_name(&w, "files");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < run->n; i++) {
        const struct file *file = &run->files[i];

        kiln_json_put_object(&w);
        put_text(&w, "path", file->path);
        put_text(&w, "outcome", outcome_names[file->outcome]);
        put_text(&w, "build_id", file->build_id);
        if (file->build_id[0])
            put_text(&w, "kind", kiln_debug_kind_name(file->facts.kind));
        kiln_json_put_name(&w, "bytes");
        kiln_json_put_u64(&w, file->facts.bytes);
        put_text(&w, "message", file->message);
        kiln_json_end_object(&w);
    }
    kiln_json_end_array(&w);
    for (uint32_t i = 0; i < N_OUTCOMES; i++) {
        kiln_json_put_name(&w, outcome_names[i]);
        kiln_json_put_u64(&w, counts[i]);
    }
    kiln_json_put_name(&w, "sent_bytes");
    kiln_json_put_u64(&w, run->sent_bytes);
    kiln_json_end_object(&w);
    kiln_buf_putc(&run->cli->out, '\n');
}

static int tell(struct run *run)
{
    uint32_t counts[N_OUTCOMES] = {0};
    int code = KILN_EXIT_WELL;

    for (uint32_t i = 0; i < run->n; i++) {
        counts[run->files[i].outcome]++;
        if (run->files[i].exit_code > code)
            code = run->files[i].exit_code;
    }
    if (run->cli->args.json)
        put_json(run, counts);
    else
        print(run, counts);
    return code;
}

/* ---- the command ---- */

static int find_files(struct run *run, const struct kiln_operands *paths)
{
    run->files = kiln_calloc(paths->n + 1, sizeof(*run->files));
    if (!run->files)
        return -ENOMEM;
    for (run->n = 0; run->n < paths->n; run->n++) {
        struct file *file = &run->files[run->n];

        file->path = paths->items[run->n].path;
        look_at(file, paths->items[run->n].found);
        skip_doubles(run, run->n);
        kiln_term_progress("looking at", run->n + 1, paths->n);
    }
    return 0;
}

static int go(struct run *run, const struct kiln_operands *paths)
{
    struct kiln_err err = {0};
    int r = find_files(run, paths), code;

    if (r == 0)
        r = kiln_remote_open(run->cli, ANSWER_MAX, &run->client, &err);
    if (r < 0) {
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        return kiln_cli_fail(NULL, &err);
    }
    code = ask_known(run);
    if (code)
        return code;
    for (uint32_t i = 0; i < run->n; i++)
        if (run->files[i].outcome == WAITING)
            run->all_bytes += run->files[i].facts.bytes;
    if (!run->cli->args.push.dry_run)
        upload_all(run);
    return tell(run);
}

int kiln_symbols_run_upload(struct kiln_cli *cli)
{
    const struct kiln_list *operands = &cli->args.operands;
    struct run run = {.cli = cli, .piece = kiln_malloc(PART)};
    struct kiln_operands paths;
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;

    kiln_operands_init(&paths);
    paths.hidden = true; /* .build-id */
    kiln_answer_init(&run.answer);
    kiln_buf_init(&run.part, 2 * PART);
    if (!run.piece)
        code = kiln_cli_fail(NULL, &(struct kiln_err){.code = -ENOMEM, .text = "out of memory"});
    for (uint32_t i = 1; code == 0 && i < operands->n; i++)
        if (kiln_operands_add(&paths, operands->items[i], &err) < 0)
            code = kiln_cli_fail(NULL, &err);
    if (code == 0)
        code = go(&run, &paths);
    kiln_client_free(run.client);
    kiln_answer_done(&run.answer);
    kiln_buf_done(&run.part);
    kiln_operands_done(&paths);
    kiln_free(run.files);
    kiln_free(run.piece);
    return code;
}
