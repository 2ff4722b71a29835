#include "target/copies/object_copy.h"

#include <pthread.h>
#include <string.h>

#include "cluster/documents/bucket_refuse.h"
#include "cluster/members/location.h"
#include "common/mem.h"
#include "target/backend/meta.h"
#include "target/copies/copies.h"
#include "target/node/header_lines.h"
#include "target/node/quotas.h"
#include "target/node/reply.h"
#include "target/store/copy_rule.h"
#include "target/copies/earlier_owners.h"
#include "target/format/ec_manifest.h"
#include "target/copies/object_bytes.h"
#include "target/node/target.h"

enum {
    PIPE_BYTES = 1 << 20,
    SENT_WHOLE_MAX = 256 << 10, /* smaller objects go without a pipe */
};

struct object_copier {
    struct target *target;
    pthread_mutex_t lock; /* of what follows, and the calls */
    pthread_cond_t changed;
    struct sending *calls;
    bool stopped;
};

/* A call to the new name's owner, on the stack of who waits for it. */
struct sending {
    struct object_copier *copier;
    struct sending *next, **prev;
    uint64_t number;
    const char *url;
    struct copier_reply *reply; /* or NULL */
    bool done;
    struct error err;
};

struct object_copier *object_copier_new(struct target *t)
{
    struct object_copier *c = xcalloc(1, sizeof *c);
    c->target = t;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    return c;
}

void object_copier_stop(struct object_copier *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopped = true;
    for (struct sending *s = c->calls; s != NULL; s = s->next)
        http_call_cancel(c->target->data_client, s->number);
    pthread_mutex_unlock(&c->lock);
}

void object_copier_free(struct object_copier *c)
{
    if (c == NULL)
        return;
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

bool object_copy_may_pass(int code)
{
    return code == E_NET || code == E_TIMEOUT || code == E_STALE_MAP || code == E_NOT_READY ||
           code == E_OVERLOAD || code == E_NODE_UNREACHABLE || code == E_NO_TARGETS ||
           code == E_WRONG_OWNER || code == E_CANCELLED;
}

/* Where the bytes of what is copied come from, and what is told of it. */
struct from {
    const struct object *object;
    uint64_t bucket_id;
    struct attr attr;
    bool leaves_backend; /* it is another object's copy, and that one's bucket has a backend */
};

/* What moves goes as it lies here: of an object in slices the manifest, without bytes. */
static int from_of(const struct object_copy *copy, const struct cluster_state *s, struct from *out,
                   struct error *err)
{
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, copy->from_bucket_id);
    out->object = copy->from;
    out->bucket_id = copy->from_bucket_id;
    out->attr = copy->from->attr;
    out->leaves_backend = !copy->moves && !copy->is_new && b != NULL && b->props.backend != NULL;
    return copy->moves ? 0 : object_bytes_attr(copy->from, &out->attr, err);
}

static int check_stopped(struct object_copier *c, struct error *err)
{
    pthread_mutex_lock(&c->lock);
    bool stopped = c->stopped;
    pthread_mutex_unlock(&c->lock);
    return stopped ? error_set(err, E_ABORTED, "the copy was stopped") : 0;
}

/* --- to another target ------------------------------------------------------------------------ */

/* "Content-Type:" keeps libcurl from sending one of its own. */
const char *object_type_line(struct arena *a, const char *content_type)
{
    return content_type != NULL ? http_header_line(a, "Content-Type", content_type)
                                : "Content-Type:";
}

static bool is_of_backend(const char *name)
{
    return strcmp(name, OBJECT_BACKEND_ETAG) == 0 || strcmp(name, OBJECT_BACKEND_MODIFIED) == 0 ||
           strcmp(name, OBJECT_BACKEND_SENT) == 0;
}

/* Another object has no part in what the backend of this one has said of it. */
static bool next_carried(const struct attr *a, bool leaves_backend, size_t *pos, const char **name,
                         const char **value)
{
    while (attr_meta_next(a, pos, name, value)) {
        if (!leaves_backend || !is_of_backend(*name))
            return true;
    }
    return false;
}

static void put_meta(struct header_lines *h, const struct from *from)
{
    size_t pos = 0;
    const char *name, *value;
    while (next_carried(&from->attr, from->leaves_backend, &pos, &name, &value))
        header_lines_meta(h, name, value);
}

static void put_moved(struct header_lines *h, const struct attr *a)
{
    char version[VERSION_TEXT_MAX];
    header_lines_add(h, OBJECT_COPY_HEADER ": " OBJECT_COPY_MOVE);
    header_lines_printf(h, "Dfc-Version: %s", version_format(&a->version, version));
    header_lines_printf(h, OBJECT_MODIFIED_HEADER ": %lld", (long long)a->modified_ms);
    if (attr_is_tombstone(a))
        header_lines_add(h, OBJECT_TOMBSTONE_HEADER ": true");
    if (attr_is_pending(a))
        header_lines_add(h, OBJECT_PENDING_HEADER ": true");
}

static void put_hidden(struct header_lines *h, const struct object_copy *copy)
{
    header_lines_printf(h, HIDDEN_JOB_HEADER ": %s", copy->job_id);
    header_lines_printf(h, HIDDEN_ATTEMPT_HEADER ": %llu", (unsigned long long)copy->attempt);
}

static void put_headers(struct header_lines *h, const struct object_copy *copy,
                        const struct from *from)
{
    const struct attr *a = &from->attr;
    if (copy->moves)
        put_moved(h, a);
    else if (copy->has_rule)
        header_lines_printf(h, OBJECT_COPY_HEADER ": %llu.%llu", (unsigned long long)copy->term,
                            (unsigned long long)copy->version);
    else
        header_lines_add(h, OBJECT_COPY_HEADER ": " OBJECT_COPY_DURABLE);
    header_lines_add(h, object_type_line(h->arena, a->content_type));
    header_lines_checksum(h, &a->checksum);
    if (a->slices != NULL)
        header_lines_printf(h, EC_MANIFEST_HEADER ": %s", a->slices);
    put_meta(h, from);
    if (copy->job_id != NULL)
        put_hidden(h, copy);
}

static void sent(void *arg, struct http_result *r)
{
    struct sending *s = arg;
    struct object_copier *c = s->copier;
    pthread_mutex_lock(&c->lock);
    http_result_error(r, s->url, &s->err);
    if (r->code == 0 && r->status == 304)
        error_set(&s->err, E_NOT_MODIFIED, "the owner has these bytes already");
    if (r->code == 0 && r->status == 307)
        error_set(&s->err, E_STALE_MAP, "the owner has changed: %s", s->url);
    if (s->reply != NULL && r->code == 0) {
        s->reply->status = r->status;
        buf_append(&s->reply->body, r->body.data, r->body.len);
        snprintf(s->reply->etag, sizeof s->reply->etag, "%s", r->etag);
    }
    s->done = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static int sending_begin(struct sending *s, struct object_copier *c, const struct http_call *call,
                         struct copier_reply *reply, struct error *err)
{
    *s = (struct sending){.copier = c, .url = call->url, .reply = reply};
    pthread_mutex_lock(&c->lock);
    bool stopped = c->stopped;
    if (!stopped) {
        s->next = c->calls;
        s->prev = &c->calls;
        if (s->next != NULL)
            s->next->prev = &s->next;
        c->calls = s;
        s->number = http_call_start(c->target->data_client, call, sent, s);
    }
    pthread_mutex_unlock(&c->lock);
    return stopped ? error_set(err, E_ABORTED, "the copy was stopped") : 0;
}

static int sending_end(struct sending *s, struct error *err)
{
    struct object_copier *c = s->copier;
    pthread_mutex_lock(&c->lock);
    while (!s->done)
        pthread_cond_wait(&c->changed, &c->lock);
    *s->prev = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    bool stopped = c->stopped;
    pthread_mutex_unlock(&c->lock);
    if (s->err.code != 0 && stopped)
        return error_set(err, E_ABORTED, "the copy was stopped");
    if (s->err.code != 0 && err != NULL)
        *err = s->err;
    return s->err.code;
}

int object_copier_call(struct object_copier *c, const struct http_call *call,
                       struct copier_reply *reply, struct error *err)
{
    struct sending s;
    int code = sending_begin(&s, c, call, reply, err);
    return code != 0 ? code : sending_end(&s, err);
}

struct feeding {
    struct bpipe *pipe;
    bool refused; /* by who reads it */
};

static int take_into_pipe(void *ctx, const void *data, size_t len, struct error *err)
{
    struct feeding *f = ctx;
    int code = bpipe_write(f->pipe, data, len, err);
    f->refused = code != 0;
    return code;
}

/* What the call says counts, unless it was our reading that failed. */
int object_copier_stream(struct object_copier *c, struct http_call *call, copier_feed_fn *feed,
                         void *ctx, struct copier_reply *reply, struct error *err)
{
    struct sending s;
    struct error ours = ERROR_INIT;
    _cleanup_(bpipe_unrefp)
    struct bpipe *pipe = bpipe_new(PIPE_BYTES);
    call->upload = pipe;
    int code = sending_begin(&s, c, call, reply, err);
    if (code != 0)
        return code;
    struct feeding f = {.pipe = pipe};
    int read_code = feed(ctx, take_into_pipe, &f, &ours);
    if (f.refused)
        read_code = 0;
    bpipe_finish(pipe, read_code != 0 ? &ours : NULL);
    code = sending_end(&s, err);
    if (read_code == 0)
        return code;
    if (err != NULL)
        *err = ours;
    return read_code;
}

static int each_piece(struct object_copier *c, const struct from *from, ec_take_fn *take, void *ctx,
                      struct error *err)
{
    if (from->attr.size == 0)
        return 0;
    return object_bytes_each(c->target, from->bucket_id, from->object, take, ctx, err);
}

static int take_into_buf(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)err;
    buf_append(ctx, data, len);
    return 0;
}

static int send_whole(struct object_copier *c, const struct from *from, struct http_call *call,
                      struct error *err)
{
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    int code = each_piece(c, from, take_into_buf, &bytes, err);
    call->body = buf_str(&bytes);
    call->body_len = bytes.len;
    return code != 0 ? code : object_copier_call(c, call, NULL, err);
}

struct object_feed {
    struct object_copier *copier;
    const struct from *from;
};

static int feed_object(void *ctx, ec_take_fn *take, void *take_ctx, struct error *err)
{
    const struct object_feed *f = ctx;
    return each_piece(f->copier, f->from, take, take_ctx, err);
}

static int send_stream(struct object_copier *c, const struct from *from, struct http_call *call,
                       struct error *err)
{
    struct object_feed f = {.copier = c, .from = from};
    call->upload_length = (int64_t)from->attr.size;
    return object_copier_stream(c, call, feed_object, &f, NULL, err);
}

static int copy_to_peer(struct object_copier *c, const struct object_copy *copy,
                        const struct from *from, const struct cluster_state *s,
                        const struct bucket *b, const struct node *owner, struct error *err)
{
    _cleanup_free_ char *url = location_of_copy(owner, s, b, copy->name);
    struct header_lines h;
    header_lines_begin(&h);
    put_headers(&h, copy, from);
    struct http_call call = {.method = HTTP_PUT,
                             .url = url,
                             .node = owner->id,
                             .headers = h.lines,
                             .once =
                                 !copy->moves && !copy->has_rule}; /* else a second is refused */
    int code = from->attr.size <= SENT_WHOLE_MAX ? send_whole(c, from, &call, err)
                                                 : send_stream(c, from, &call, err);
    header_lines_end(&h);
    return code;
}

/* --- here ------------------------------------------------------------------------------------- */

struct storing {
    struct object_copier *copier;
    struct object_put *put;
};

static int take_into_put(void *ctx, const void *data, size_t len, struct error *err)
{
    struct storing *v = ctx;
    int code = check_stopped(v->copier, err);
    return code != 0 ? code : object_put_write(v->put, data, len, err);
}

static int go_on(void *ctx, struct error *err)
{
    return check_stopped(ctx, err);
}

/* By the file system, if its files can share bytes. */
static int clone_into_put(const struct storing *v, const struct from *from, bool *cloned,
                          struct error *err)
{
    *cloned = false;
    if (from->object->attr.slices != NULL || from->attr.size == 0)
        return 0;
    return object_put_clone(v->put, from->object->fd, go_on, v->copier, cloned, err);
}

static void carry_meta(const struct attr *a, bool leaves_backend, struct buf *out)
{
    size_t pos = 0;
    const char *name, *value;
    while (next_carried(a, leaves_backend, &pos, &name, &value))
        attr_meta_add(out, name, value);
}

bool object_copy_is_taken(const struct bucket *b, const struct attr *a)
{
    _cleanup_buf_ struct buf meta = BUF_INIT;
    carry_meta(a, true, &meta);
    return backend_meta_check(b->props.backend, meta.data, meta.len, NULL) == 0;
}

static int store_here(struct object_copier *c, const struct from *from,
                      const struct object_put_spec *spec, struct error *err)
{
    struct storing v = {.copier = c};
    bool cloned = false;
    int code = object_put_begin(c->target->store, spec, &v.put, err);
    if (code != 0)
        return code;
    code = clone_into_put(&v, from, &cloned, err);
    if (code == 0 && !cloned)
        code = each_piece(c, from, take_into_put, &v, err);
    if (code != 0) {
        object_put_abort(v.put);
        return code;
    }
    return object_put_commit_wait(v.put, err);
}

/* A rename, which has no rule, adds nothing to its bucket. */
static int store_claimed(struct object_copier *c, const struct object_copy *copy,
                         const struct from *from, const struct bucket *b,
                         const struct object_put_spec *spec, struct error *err)
{
    struct quota_claim claim = {0};
    int code = copy->has_rule ? quota_claim_begin(c->target->quotas, b, copy->name, spec->size,
                                                  spec->earlier, &claim, err)
                              : 0;
    if (code != 0)
        return code;
    code = store_here(c, from, spec, err);
    quota_claim_end(&claim);
    return code;
}

static int copy_here(struct object_copier *c, const struct object_copy *copy,
                     const struct from *from, const struct cluster_state *s, const struct bucket *b,
                     struct error *err)
{
    const struct attr *a = &from->attr;
    struct object_held earlier;
    bool pending = bucket_is_written_back(b);
    if (copy->moves)
        return error_set(err, E_STALE_MAP, "object '%s' belongs here", copy->name);
    _cleanup_buf_ struct buf meta = BUF_INIT;
    carry_meta(a, from->leaves_backend, &meta);
    int code = bucket_refuse_made(b, "copies", err);
    if (code == 0 && pending)
        code = backend_meta_check(b->props.backend, meta.data, meta.len, err);
    if (code == 0)
        code = earlier_ask_wait(c->target, s, b, copy->name, &earlier, err);
    if (code != 0)
        return code;
    struct copy_rule rule = {.size = a->size,
                             .checksum = a->checksum,
                             .term = copy->term,
                             .version = copy->version,
                             .write_once = b->props.write_once};
    const struct object_put_spec spec = {
        .bucket_id = b->id,
        .name = copy->name,
        .size = a->size,
        .durability = copy->has_rule && !pending ? bucket_durability(b) : DURABILITY_SYNC,
        .checksum = b->props.checksum,
        .expect = a->checksum.type != CHECKSUM_NONE ? &a->checksum : NULL,
        .content_type = a->content_type,
        .meta = meta.data,
        .meta_len = meta.len,
        .condition = {.check = copy->has_rule ? copy_rule_check : NULL, .ctx = &rule},
        .earlier = &earlier,
        .pending = pending,
    };
    return store_claimed(c, copy, from, b, &spec, err);
}

/* --- which ------------------------------------------------------------------------------------ */

static const struct node *find_node(const struct cluster_state *s, const struct bucket *b,
                                    const char *name)
{
    const struct node *node;
    struct owners o;
    if (!bucket_has_copies(b))
        return smap_owners(&s->smap, b->id, name, 1, &node) > 0 ? node : NULL;
    owners_of(s, b, name, &o);
    return o.acting;
}

static int check_node(const struct bucket *b, const char *name, const struct node *const *owner,
                      struct error *err)
{
    if (*owner == NULL)
        return error_set(err, E_NO_TARGETS, "the cluster has no target for it");
    if ((*owner)->state != NODE_ACTIVE)
        return error_set(err, E_NODE_UNREACHABLE, "target '%s', the owner of '%s/%s', is %s",
                         (*owner)->id, b->name, name, node_state_name((*owner)->state));
    return 0;
}

int object_copy_owner(const struct cluster_state *s, const struct bucket *b, const char *name,
                      const struct node **owner, struct error *err)
{
    *owner = find_node(s, b, name);
    return check_node(b, name, owner, err);
}

static int find_owner(const struct cluster_state *s, const struct bucket *b,
                      const struct object_copy *copy, const struct node **owner, struct error *err)
{
    if (copy->to == NULL)
        return object_copy_owner(s, b, copy->name, owner, err);
    *owner = smap_node(&s->smap, copy->to);
    return check_node(b, copy->name, owner, err);
}

int object_copy(struct object_copier *c, const struct object_copy *copy, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(c->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, copy->bucket_id);
    const struct node *owner;
    struct from from;
    int code = object_name_check(copy->name, strlen(copy->name), err);
    if (code == 0 && b == NULL)
        code = error_set(err, E_BUCKET_NOT_FOUND, "the destination was destroyed meanwhile");
    if (code == 0)
        code = find_owner(s, b, copy, &owner, err);
    if (code == 0)
        code = from_of(copy, s, &from, err);
    if (code != 0)
        return code;
    if (strcmp(owner->id, c->target->id) == 0 && !bucket_has_copies(b))
        return copy_here(c, copy, &from, s, b, err);
    return copy_to_peer(c, copy, &from, s, b, owner, err);
}
