/* One part of an upload: its body, from the request to the disk. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/checksum.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/http/upload_routes.h"
#include "target/node/admit.h"
#include "target/node/call.h"
#include "target/node/member.h"
#include "target/node/target.h"
#include "target/store/own_meta.h"
#include "target/uploads/part_write.h"

/* A body is taken when the request begins.  It waits while the target asks for the state. */
enum part_state { PART_WAITING, PART_STORING, PART_OVER };

struct part_call {
    struct http_request *req;
    pthread_mutex_t lock; /* of what follows */
    unsigned refs;        /* the request's, and that of the wait */
    enum part_state state;
    bool body_ended;
    struct part_write *write;
};

static void part_unref(void *arg)
{
    struct part_call *p = arg;
    pthread_mutex_lock(&p->lock);
    bool last = --p->refs == 0;
    pthread_mutex_unlock(&p->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static struct part_write *part_leave(struct part_call *p)
{
    pthread_mutex_lock(&p->lock);
    p->state = PART_OVER;
    struct part_write *write = steal(p->write);
    pthread_mutex_unlock(&p->lock);
    return write;
}

static void part_cut(struct http_request *req, void *ctx)
{
    (void)req;
    part_write_abort(part_leave(ctx));
}

static size_t part_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    struct part_call *p = ctx;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    enum part_state state = p->state;
    pthread_mutex_unlock(&p->lock);
    if (state == PART_WAITING)
        return 0;
    if (state == PART_OVER || part_write_more(p->write, data, len, &err) == 0)
        return len;
    part_write_abort(part_leave(p));
    http_reply_error(req, &err);
    return len;
}

static void part_stored(void *arg, const struct part *part, const struct error *err)
{
    struct part_call *p = arg;
    struct checksum_value md5 = {.type = CHECKSUM_MD5};
    char hex[2 * CHECKSUM_MAX + 1];
    if (part == NULL) {
        http_reply_error(p->req, err);
        return;
    }
    memcpy(md5.bytes, part->md5, PART_MD5);
    checksum_hex(&md5, hex);
    _cleanup_json_ json_t *doc = json_pack("{sI ss sI}", "part", (json_int_t)part->number, "tag",
                                           hex, "size", (json_int_t)part->size);
    upload_put_sum(doc, part);
    http_reply_json(p->req, 200, doc);
}

/* With the lock.  NULL: it is not to be ended here. */
static struct part_write *part_take_end(struct part_call *p)
{
    return p->state == PART_STORING && p->body_ended ? steal(p->write) : NULL;
}

static void part_end(struct http_request *req, void *ctx)
{
    struct part_call *p = ctx;
    (void)req;
    pthread_mutex_lock(&p->lock);
    p->body_ended = true;
    struct part_write *write = part_take_end(p);
    pthread_mutex_unlock(&p->lock);
    if (write != NULL)
        part_write_end(write, part_stored, p);
}

static int parse_md5(const struct http_request *req, struct part_spec *spec,
                     struct checksum_value *md5, struct error *err)
{
    const char *text = http_header(req, "Content-MD5");
    if (text == NULL)
        return 0;
    if (!checksum_parse_base64(CHECKSUM_MD5, text, md5))
        return error_set(err, E_INVALID, "Content-MD5: '%.64s' is not the base64 of an MD5", text);
    spec->expect = md5;
    return 0;
}

static int parse_sum(const struct http_request *req, struct part_spec *spec,
                     struct s3_sum_text *sum, struct error *err)
{
    const char *text = http_header(req, OBJECT_SUM_HEADER);
    if (text == NULL)
        return 0;
    if (!s3_sum_text_parse(text, sum))
        return error_set(err, E_INVALID, OBJECT_SUM_HEADER ": '%.64s' is no checksum of S3", text);
    spec->sum = sum;
    return 0;
}

static bool is_synced(struct target *t, uint64_t bucket_id)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    return b == NULL || b->props.durability == DURABILITY_SYNC;
}

static int open_part(struct http_request *req, struct part_write **out, struct error *err)
{
    struct target *t = http_user(req);
    _cleanup_(upload_unrefp)
    struct upload *u = NULL;
    struct checksum_value md5;
    struct s3_sum_text sum;
    uint64_t number = 0;
    int64_t length = http_content_length(req);
    struct part_spec spec = {.size = length >= 0 ? (uint64_t)length : OBJECT_SIZE_UNKNOWN,
                             .md5 = t->hashers};
    int code = upload_number(req, "part", 1, PARTS_MAX, &number, err);
    if (code == 0)
        code = parse_md5(req, &spec, &md5, err);
    if (code == 0)
        code = parse_sum(req, &spec, &sum, err);
    if (code == 0)
        code = upload_of_request(req, &u, err);
    if (code != 0)
        return code;
    spec.number = (unsigned)number;
    spec.sync = is_synced(t, u->about.bucket_id);
    return part_write_begin(u, &spec, out, err);
}

static void part_refreshed_locked(struct part_call *p)
{
    struct error err = ERROR_INIT;
    int code = upload_check_known(p->req, &err);
    if (code == 0)
        code = open_part(p->req, &p->write, &err);
    p->state = code == 0 ? PART_STORING : PART_OVER;
    if (code != 0)
        http_reply_error(p->req, &err);
    else if (!p->body_ended)
        http_resume_body(p->req);
}

/* With the lock held, so that the request does not end meanwhile. */
static void part_refreshed(void *arg)
{
    struct part_call *p = arg;
    struct part_write *write = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->state == PART_WAITING) {
        log_set_request(http_request_id(p->req));
        part_refreshed_locked(p);
        write = part_take_end(p);
    }
    pthread_mutex_unlock(&p->lock);
    if (write != NULL)
        part_write_end(write, part_stored, p);
    log_set_request(NULL);
    part_unref(p);
}

void upload_part_begin(struct http_request *req)
{
    static const struct http_body_ops ops = {.data = part_data, .end = part_end, .cut = part_cut};
    const struct target *t = http_user(req);
    struct error err = ERROR_INIT;
    struct part_write *write = NULL;
    bool ahead;
    upload_set_error_form(req);
    int code = sender_is_ahead(req, &ahead, &err);
    if (code == 0 && !ahead)
        code = open_part(req, &write, &err);
    if (code != 0) {
        http_reply_error(req, &err);
        return;
    }
    struct part_call *p = xcalloc(1, sizeof *p);
    *p = (struct part_call){.req = req,
                            .refs = ahead ? 2 : 1,
                            .state = ahead ? PART_WAITING : PART_STORING,
                            .write = write};
    pthread_mutex_init(&p->lock, NULL);
    http_on_end(req, part_unref, p);
    http_take_body(req, &ops, p);
    if (ahead)
        member_refresh(t->member, http_query(req, "dfcv"), part_refreshed, p);
}
