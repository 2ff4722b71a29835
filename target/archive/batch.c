#include "target/archive/batch.h"

#include "access/guard.h"
#include "ais/dialect.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "net/http/pipe.h"
#include "sort/shard/member_writer.h"
#include "target/archive/batch_fetch.h"
#include "target/archive/batch_report.h"
#include "target/archive/batch_spec.h"
#include "target/node/target.h"
#include "target/node/thread_classes.h"
#include "target/store/job_stop.h"

enum { PIECE_BYTES = 64 << 10, MODE = 0644 };

struct batches {
    struct target *target;
    struct pool *pool;
    struct job_stop stop;
};

/* One batch, in its thread. */
struct batch {
    struct batches *batches;
    struct http_request *req; /* until it is replied to */
    char *request_id;
    struct batch_spec spec;
    struct bpipe *out;
    struct member_writer *writer; /* once the reply has begun */
    struct batch_seen *seen;      /* of each entry, with a report */
    char boundary[BATCH_BOUNDARY_MAX];
    bool is_sdk; /* it finds the kind of an error by ais://BUCKET/OBJECT */
    bool replied;
    size_t ahead;                 /* fetches that may be under way */
    size_t next;                  /* the first entry that has none yet */
    struct batch_fetch **fetches; /* a ring of `ahead` */
};

/* --- the reply -------------------------------------------------------------------------------- */

static int put(void *ctx, const void *data, size_t len, struct error *err)
{
    struct batch *b = ctx;
    return bpipe_write(b->out, data, len, err);
}

static struct sink sink_of(struct batch *b)
{
    return (struct sink){.write = put, .ctx = b};
}

static void begin_parts(struct batch *b, struct buf *head)
{
    char type[sizeof "multipart/mixed; boundary=" + BATCH_BOUNDARY_MAX];
    batch_report_boundary(b->boundary);
    snprintf(type, sizeof type, "multipart/mixed; boundary=%s", b->boundary);
    http_reply_header(b->req, "Content-Type", type);
    batch_report_begin(&b->spec, b->seen, b->request_id, b->boundary, head);
}

/* From the first entry on: what is wrong with that is an error, and no reply that is cut. */
static int begin_reply(struct batch *b, struct error *err)
{
    _cleanup_buf_ struct buf head = BUF_INIT;
    if (b->replied)
        return 0;
    b->replied = true;
    if (b->spec.report)
        begin_parts(b, &head);
    else
        http_reply_constant(b->req, "Content-Type", b->spec.format->content_type);
    http_reply_pipe(b->req, 200, -1, b->out);
    int code = head.len > 0 ? put(b, head.data, head.len, err) : 0;
    return code != 0 ? code : member_writer_new(b->spec.format, sink_of(b), &b->writer, err);
}

static int end_reply(struct batch *b, struct error *err)
{
    _cleanup_buf_ struct buf tail = BUF_INIT;
    int code = begin_reply(b, err);
    if (code != 0 || (code = member_writer_finish(b->writer, err)) != 0 || !b->spec.report)
        return code;
    batch_report_end(b->boundary, &tail);
    return put(b, tail.data, tail.len, err);
}

static int put_header(struct batch *b, const struct batch_entry *e, bool missing, uint64_t size,
                      int64_t modified_s, struct error *err)
{
    _cleanup_buf_ struct buf name = BUF_INIT;
    batch_entry_name(&b->spec, e, missing, &name);
    const struct tar_made made = {.path = name.data,
                                  .path_len = name.len,
                                  .type = '0',
                                  .size = size,
                                  .mode = MODE,
                                  .mtime = modified_s};
    int code = begin_reply(b, err);
    return code != 0 ? code : member_writer_begin(b->writer, &made, err);
}

/* --- entries ---------------------------------------------------------------------------------- */

static void fetch_ahead(struct batch *b, enum batch_look look, size_t turn)
{
    for (; b->next < b->spec.count && b->next < turn + b->ahead; b->next++)
        b->fetches[b->next % b->ahead] =
            batch_fetch_begin(b->batches->target, &b->spec.entries[b->next], look, b->request_id);
}

/* A bucket that does not exist is no sample that was lost, but a name that is wrong.  AIStore's SDK
 * wants its entries to be empty, too. */
static bool is_missing(const struct batch *b, int code)
{
    return code == E_OBJECT_NOT_FOUND || code == E_MEMBER_NOT_FOUND ||
           (b->is_sdk && code == E_BUCKET_NOT_FOUND);
}

static int put_bytes(struct batch *b, struct batch_fetch *f, uint64_t size, struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE_BYTES);
    for (uint64_t left = size; left > 0;) {
        size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        ssize_t n = batch_fetch_read(f, &b->batches->stop, piece, len, err);
        if (n < 0)
            return (int)n;
        int code = member_writer_data(b->writer, piece, (size_t)n, err);
        if (code != 0)
            return code;
        left -= (uint64_t)n;
    }
    return 0;
}

/* A client that asks again for the rest counts otherwise: so the name, too. */
static int wrap_entry(bool is_sdk, const struct batch_entry *e, size_t i, struct error *err)
{
    if (is_sdk && err->code == E_BUCKET_NOT_FOUND)
        return error_wrap(err, "ais://%s: entry %zu", e->bucket, i);
    if (is_sdk)
        return error_wrap(err, "ais://%s/%s: entry %zu", e->bucket, e->object, i);
    return error_wrap(err, "entry %zu, '%s/%s'", i, e->bucket, e->object);
}

/* With a report: what it is, before the reply begins. */
static int look_at_entry(struct batch *b, size_t i, struct error *err)
{
    struct batch_seen *seen = &b->seen[i];
    int64_t modified_s = 0;
    int code = batch_fetch_head(b->fetches[i % b->ahead], &b->batches->stop, &seen->size,
                                &modified_s, err);
    if (!is_missing(b, code) || !b->spec.empty_if_missing)
        return code != 0 ? wrap_entry(b->is_sdk, &b->spec.entries[i], i, err) : 0;
    seen->size = 0;
    seen->missing = xstrdup(err->message);
    *err = ERROR_INIT;
    return 0;
}

/* The report must stay true. */
static int check_seen(const struct batch *b, size_t i, bool missing, uint64_t size,
                      struct error *err)
{
    if (!b->spec.report || (missing == (b->seen[i].missing != NULL) && size == b->seen[i].size))
        return 0;
    error_set(err, E_LENGTH, "the object was changed while the batch was read: ask again");
    return wrap_entry(b->is_sdk, &b->spec.entries[i], i, err);
}

static int put_entry(struct batch *b, size_t i, struct error *err)
{
    const struct batch_entry *e = &b->spec.entries[i];
    struct batch_fetch *f = b->fetches[i % b->ahead];
    uint64_t size = 0;
    int64_t modified_s = 0;
    int code = batch_fetch_head(f, &b->batches->stop, &size, &modified_s, err);
    if (is_missing(b, code) && b->spec.empty_if_missing) {
        *err = ERROR_INIT;
        code = check_seen(b, i, true, 0, err);
        return code != 0 ? code : put_header(b, e, true, 0, 0, err);
    }
    if (code != 0)
        return wrap_entry(b->is_sdk, e, i, err);
    if ((code = check_seen(b, i, false, size, err)) != 0)
        return code;
    code = put_header(b, e, false, size, modified_s, err);
    return code != 0 ? code : put_bytes(b, f, size, err);
}

static int each_entry(struct batch *b, enum batch_look look,
                      int (*step)(struct batch *b, size_t i, struct error *err), struct error *err)
{
    int code = 0;
    b->next = 0;
    for (size_t i = 0; i < b->spec.count && code == 0; i++) {
        fetch_ahead(b, look, i);
        code = !atomic_load(&b->batches->stop.wanted)
                   ? step(b, i, err)
                   : error_set(err, E_NOT_READY, "the target stops");
        batch_fetch_end(steal(b->fetches[i % b->ahead]));
    }
    return code;
}

static int put_all(struct batch *b, struct error *err)
{
    int code = b->spec.report ? each_entry(b, BATCH_LOOK, look_at_entry, err) : 0;
    if (code == 0)
        code = each_entry(b, BATCH_READ, put_entry, err);
    return code != 0 ? code : end_reply(b, err);
}

/* --- the call --------------------------------------------------------------------------------- */

static void batch_free(struct batch *b)
{
    for (size_t i = 0; i < b->ahead; i++)
        batch_fetch_end(b->fetches[i]);
    for (size_t i = 0; b->seen != NULL && i < b->spec.count; i++)
        free(b->seen[i].missing);
    free(b->seen);
    member_writer_free(b->writer);
    batch_spec_done(&b->spec);
    bpipe_unref(b->out);
    free(b->fetches);
    free(b->request_id);
    free(b);
}

static void assemble(void *arg)
{
    struct batch *b = arg;
    struct error err = ERROR_INIT;
    log_set_request(b->request_id);
    (void)put_all(b, &err); /* what it said is in err */
    if (!b->replied) {
        http_reply_error(b->req, &err);
    } else {
        if (err.code != 0 && err.code != E_CANCELLED)
            log_error("batch cut off", lerr(&err));
        bpipe_finish(b->out, err.code != 0 ? &err : NULL);
    }
    batch_free(b);
    log_set_request(NULL);
}

static struct batch *batch_new(struct batches *batches, struct http_request *req,
                               struct batch_spec *spec)
{
    const uint64_t ahead = batches->target->params.batch_window / BATCH_PIPE_BYTES;
    struct batch *b = xcalloc(1, sizeof *b);
    b->batches = batches;
    b->req = req;
    b->request_id = xstrdup(http_request_id(req));
    b->spec = *spec;
    b->is_sdk = ais_speaks(req);
    if (spec->report)
        b->seen = xcalloc(spec->count + 1, sizeof *b->seen);
    b->out = bpipe_new(BATCH_PIPE_BYTES);
    b->ahead = ahead > 0 ? (size_t)ahead : 1;
    b->fetches = xcalloc(b->ahead, sizeof *b->fetches);
    return b;
}

/* Each object is asked for: a batch gives no more than its entries one by one. */
static int check_rights(struct http_request *req, const struct batch_spec *spec, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < spec->count && code == 0; i++) {
        code = guard_ask(req, RIGHT_READ, spec->entries[i].bucket, spec->entries[i].object, err);
        if (code != 0)
            wrap_entry(ais_speaks(req), &spec->entries[i], i, err);
    }
    return code;
}

static void take(struct http_request *req, const char *data, size_t len)
{
    struct target *t = http_user(req);
    struct batch_spec spec;
    struct error err = ERROR_INIT;
    int code = batch_spec_parse(data, len, param_live(t->params.batch_entries_max), &spec, &err);
    if (code == 0 && (code = check_rights(req, &spec, &err)) != 0)
        batch_spec_done(&spec);
    if (code != 0) {
        http_reply_error(req, &err);
        return;
    }
    struct batch *b = batch_new(t->batches, req, &spec);
    if (pool_submit(t->batches->pool, assemble, b, &err) != 0) {
        batch_free(b);
        http_reply_error(req, &err);
    }
}

static void batch_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    http_collect_body(req, t->params.batch_body_max, take);
}

int batches_new(struct target *t, struct batches **out, struct error *err)
{
    struct batches *b = xcalloc(1, sizeof *b);
    *out = b;
    b->target = t;
    job_stop_init(&b->stop);
    return thread_class_new(THREADS_BATCH, &t->params, &b->pool, err);
}

void batches_stop(struct batches *b)
{
    if (b != NULL)
        job_stop_now(&b->stop);
}

void batches_free(struct batches *b)
{
    if (b == NULL)
        return;
    pool_free(b->pool);
    job_stop_done(&b->stop);
    free(b);
}

const struct http_route batch_routes[] = {
    {.name = "batch",
     .method = HTTP_POST,
     .pattern = "/v1/batch",
     .nets = NET_PUBLIC,
     .right = RIGHT_ANY,
     .begin = batch_begin,
     .summary =
         "Reads many objects, members and ranges: one archive, in the order asked for. Needs the "
         "right `read` on each object.",
     .query = HTTP_PARAMETERS({"dfcd", "ais: the call is of AIStore's SDK"}),
     .body = "`{\"entries\": [{\"bucket\", \"object\", \"member\", \"offset\", \"length\", "
             "\"opaque\"}, …], \"on_missing\": \"fail\"|\"empty\", \"format\": \".tar\"|…, "
             "\"names\": \"bucket\"|\"object\", \"report\": true}`; all but bucket and object may "
             "be left out; `report`: as AIStore's SDK reads it",
     .reply = "200 with an archive of the `format`: each entry is `BUCKET/OBJECT[/MEMBER]`, with "
              "`names` `object` without the bucket; with `on_missing` `empty` "
              "one that is missing is an empty file behind `__404__/`. With a report multipart: "
              "`{\"out\": [{\"objname\", \"bucket\", \"provider\", \"archpath\", \"opaque\", "
              "\"size\", \"err_msg\"}], \"uuid\"}`, then the archive",
     .errors = "of the first entry, as of GET; from the second on the reply is cut; invalid_json "
               "invalid_argument too_large overloaded"},
    {.name = NULL},
};
