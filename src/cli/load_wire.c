/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Over OTLP a request is an ExportProfilesServiceRequest; over Pyroscope's push it is
 *
 *   PushRequest       1 series (RawProfileSeries)
 *   RawProfileSeries  1 labels (repeated LabelPair: 1 name, 2 value), 2 samples (RawSample)
 *   RawSample         1 raw_profile (pprof, gzip), 2 ID (text of a UUID)
 */
#include "cli/load_wire.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/pb.h"
#include "codec/pprof.h"
#include "core/type.h"

#define BODY_MAX    ((size_t)1 << 30)
#define LEVEL       1 /* a sender that is cheap leaves more of the machine to the server */
#define EXPORT      "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define EXPORT_HTTP "/v1development/profiles"
#define PUSH        "/push.v1.PusherService/Push"

static void put_label(struct kiln_pb_out *w, const char *name, struct kiln_str value)
{
    size_t mark = kiln_pb_mark(w);

    kiln_pb_put_bytes(w, 2, value);
    kiln_pb_put_bytes(w, 1, kiln_str_of(name));
    kiln_pb_put_message(w, 1, mark);
}

/* The family of the profile's type: process_cpu, memory... */
static int family_of(const struct kiln_batch *batch, struct kiln_str *ret)
{
    struct kiln_type *types;
    int r = kiln_types_of_batch(batch, false, &types);

    if (r < 0)
        return r;
    *ret = batch->n_profiles ? types[batch->n_profiles - 1].name : KILN_STR("process_cpu");
    kiln_free(types);
    return 0;
}

static int put_push(const struct kiln_load_request *request, struct kiln_str family,
                    struct kiln_str pprof, struct kiln_buf *out)
{
    struct kiln_pb_out w;
    char id[40];
    size_t mark;
    int r;

    snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012llx",
             (unsigned long long)request->number);
    kiln_pb_out_init(&w, pprof.len + 512, BODY_MAX);
    mark = kiln_pb_mark(&w);
    kiln_pb_put_bytes(&w, 2, kiln_str_of(id));
    kiln_pb_put_bytes(&w, 1, pprof);
    kiln_pb_put_message(&w, 2, mark);
    put_label(&w, "host", kiln_str_of(request->host));
    put_label(&w, "service_name", kiln_str_of(request->service));
    put_label(&w, "__name__", family);
    kiln_pb_put_message(&w, 1, 0);
    r = kiln_pb_out_flush(&w, out);
    kiln_pb_out_done(&w);
    return r;
}

static int encode_push(const struct kiln_batch *batch, const struct kiln_load_request *request,
                       struct kiln_str plain, struct kiln_buf *out)
{
    struct kiln_str family;
    struct kiln_buf packed;
    int r;

    kiln_buf_init(&packed, BODY_MAX);
    r = kiln_compress(KILN_GZIP, LEVEL, plain, &packed);
    if (r == 0)
        r = family_of(batch, &family);
    if (r == 0)
        r = put_push(request, family, kiln_buf_str(&packed), out);
    kiln_buf_done(&packed);
    return r;
}

int kiln_load_encode(const struct kiln_load_wire *wire, const struct kiln_batch *batch,
                     const struct kiln_load_request *request, struct kiln_buf *out, size_t *ret_raw,
                     struct kiln_err *err)
{
    bool push = wire->protocol == KILN_LOAD_PYROSCOPE;
    struct kiln_buf plain;
    int r;

    kiln_buf_init(&plain, BODY_MAX);
    r = push ? kiln_pprof_encode(batch, NULL, &plain, err)
             : kiln_otlp_encode(batch, NULL, &plain, err);
    *ret_raw = plain.len;
    if (r == 0 && push)
        r = encode_push(batch, request, kiln_buf_str(&plain), out);
    else if (r == 0)
        r = kiln_compress(wire->compression, LEVEL, kiln_buf_str(&plain), out);
    kiln_buf_done(&plain);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

struct kiln_call kiln_load_call(const struct kiln_load_wire *wire, struct kiln_str body)
{
    struct kiln_call call = {.path = EXPORT_HTTP,
                             .content_type = "application/x-protobuf",
                             .body = body,
                             .encoding = wire->compression};

    if (wire->protocol == KILN_LOAD_OTLP_GRPC)
        call.path = EXPORT;
    if (wire->protocol == KILN_LOAD_PYROSCOPE) {
        call.path = PUSH;
        call.content_type = "application/proto";
        call.encoding = KILN_PLAIN; /* the profile in it is compressed */
    }
    return call;
}

const char *kiln_load_ending(const struct kiln_load_wire *wire)
{
    static const char *const endings[] = {".otlp", ".otlp.gz", ".otlp.zst"};

    return wire->protocol == KILN_LOAD_PYROSCOPE ? ".push" : endings[wire->compression];
}
