#include "target/http/object_digest.h"

#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "io/reader.h"
#include "target/archive/archive_source.h"
#include "target/archive/unpackers.h"
#include "target/copies/repair_wanted.h"
#include "target/node/call.h"
#include "target/node/read_count.h"
#include "target/node/reply.h"
#include "target/node/target.h"

enum { PIECE_BYTES = 256 << 10 };

struct digesting {
    struct object_call *call;
    struct object object; /* open */
    struct reader *reader;
    enum checksum_type type;
};

bool object_digest_is_wanted(const struct object_call *call)
{
    return http_query(call->req, "digest") != NULL;
}

static int check_query(const struct object_call *call, enum checksum_type *type, struct error *err)
{
    const struct http_request *req = call->req;
    const char *name = http_query(req, "digest");
    if (http_query(req, "offset") != NULL || http_query(req, "length") != NULL ||
        http_header(req, "Range") != NULL)
        return error_set(err, E_INVALID, "parameter 'digest' is of whole objects: give no range");
    int code = checksum_from_name(name, type, NULL);
    if (code == 0 && *type != CHECKSUM_NONE)
        return 0;
    return error_set(err, E_INVALID,
                     "parameter 'digest' is '%.40s': it must be xxh3, crc32c, md5 or sha256", name);
}

static int go_on(void *ctx, struct error *err)
{
    const struct digesting *d = ctx;
    return unpackers_are_stopping(d->call->target->unpackers)
               ? error_set(err, E_NOT_READY, "the target stops")
               : 0;
}

/* Blocks of slices are checked when they are read. */
static enum checksum_type type_of_own(const struct attr *a)
{
    return a->slices == NULL ? a->checksum.type : CHECKSUM_NONE;
}

static int compare_own(const struct digesting *d, const struct checksum_value *own,
                       struct error *err)
{
    const struct object_call *call = d->call;
    if (own->type == CHECKSUM_NONE || checksum_equal(own, &d->object.attr.checksum))
        return 0;
    metric_add(metric_get(M_checksum_errors_total, NULL), 1);
    repair_wanted(call->target, call->bucket->id, call->name);
    return error_set(err, E_CORRUPT, "object '%s' does not have its checksum any more", call->name);
}

static int read_all(struct digesting *d, struct archive_source *s, struct checksum_value *out,
                    struct error *err)
{
    const struct attr *a = &d->object.attr;
    struct checksum_value own;
    _cleanup_free_ char *piece = xmalloc(PIECE_BYTES);
    _cleanup_(checksum_freep)
    struct checksum *wanted = checksum_new(d->type);
    _cleanup_(checksum_freep)
    struct checksum *known = checksum_new(type_of_own(a));
    int code = 0;
    for (uint64_t at = 0, n; at < a->size && code == 0; at += n) {
        n = a->size - at < PIECE_BYTES ? a->size - at : PIECE_BYTES;
        if ((code = go_on(d, err)) == 0 &&
            (code = archive_source_read(s, piece, n, at, err)) == 0) {
            checksum_update(wanted, piece, n);
            checksum_update(known, piece, n);
        }
    }
    checksum_final(wanted, out);
    checksum_final(known, &own);
    return code == 0 ? compare_own(d, &own, err) : code;
}

static void reply(const struct object_call *call, const struct attr *a,
                  const struct checksum_value *sum)
{
    struct attr shown = *a;
    shown.checksum = *sum;
    object_reply_stored(call, &shown, NULL);
}

static void digest_free(struct digesting *d)
{
    close(d->object.fd);
    reader_unref(d->reader);
    free(d);
}

/* The call may be gone once it is replied to. */
static void run(void *arg)
{
    struct digesting *d = arg;
    struct object_call *call = d->call;
    struct checksum_value sum;
    struct error err = ERROR_INIT;
    struct archive_source source = {.target = call->target,
                                    .bucket_id = call->bucket->id,
                                    .object = &d->object,
                                    .reader = d->reader,
                                    .go_on = go_on,
                                    .ctx = d};
    log_set_request(http_request_id(call->req));
    int code = archive_source_open(&source, &err);
    if (code == 0)
        code = read_all(d, &source, &sum, &err);
    archive_source_close(&source);
    if (code == 0)
        reply(call, &d->object.attr, &sum);
    else
        object_call_fail(call, "digest", &err);
    log_set_request(NULL);
    digest_free(d);
}

static void begin(struct object_call *call, const struct object *o, struct reader *reader,
                  enum checksum_type type)
{
    struct error err = ERROR_INIT;
    struct digesting *d = xcalloc(1, sizeof *d);
    *d = (struct digesting){.call = call, .reader = reader_ref(reader), .type = type};
    object_clone(o, &d->object);
    d->object.fd = o->fd;
    object_read_count(call, o->attr.size, reader);
    if (unpackers_submit(call->target->unpackers, run, d, &err) == 0)
        return;
    object_call_fail(call, "digest", &err);
    digest_free(d);
}

void object_digest_reply(struct object_call *call, const struct object *o, struct reader *reader)
{
    struct error err = ERROR_INIT;
    enum checksum_type type = CHECKSUM_NONE;
    int code = check_query(call, &type, &err);
    if (code == 0)
        code = object_call_check_conditions(call, HTTP_GET, &o->attr, &err);
    if (code == 0 && o->attr.checksum.type != type) {
        begin(call, o, reader, type);
        return;
    }
    close(o->fd);
    if (code == 0)
        reply(call, &o->attr, &o->attr.checksum);
    else
        object_call_fail(call, "digest", &err);
}
