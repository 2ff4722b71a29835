#include "target/cold/back_upload.h"

#include <string.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/mem.h"
#include "cluster/documents/layout.h"
#include "target/cold/back_after.h"
#include "target/cold/back_compare.h"
#include "target/backend/upload.h"
#include "target/cold/internal.h"
#include "target/copies/earlier_owners.h"
#include "target/copies/object_copy.h"
#include "target/store/name_queue.h"

struct work {
    struct target *target;
    const struct bucket *bucket;
    const char *name;
    struct object o; /* what is pending, a tombstone like an object */
    char etag[BACKEND_ETAG_MAX];
    uint64_t *memo;
    bool refused; /* by the backend */
};

/* Before anything is opened: what waits for somebody who is away asks again and again. */
static int check_reachable(const struct work *w, const struct cluster_state *s, struct error *err)
{
    return earlier_is_asked(w->target, s, w->bucket, w->name, false)
               ? earlier_check_reachable(w->target, s, w->bucket, w->name, err)
               : 0;
}

/* Does an earlier owner keep it from going, for now, or for good (*superseded)? */
static int ask_earlier(const struct work *w, const struct cluster_state *s, bool *superseded,
                       struct error *err)
{
    struct object_held held;
    *superseded = false;
    if (!earlier_is_asked(w->target, s, w->bucket, w->name, false))
        return 0;
    int code = earlier_ask_wait(w->target, s, w->bucket, w->name, &held, err);
    if (code != 0)
        return code;
    if (held.uploading)
        return error_set(err, E_NOT_READY, "an earlier owner of '%s' is uploading it", w->name);
    *superseded = held.found && version_compare(&held.version, &w->o.attr.version) > 0;
    return 0;
}

/* Damaged bytes never go.  What is checked is what the name has: that is what is open, and sent, as
 * long as the name has this version. */
static int check_bytes(const struct work *w, struct error *err)
{
    struct target *t = w->target;
    struct object_held held;
    bool lacking;
    int errnum = fault_errno("back.opened");
    if (errnum != 0)
        return error_errno(err, errnum, "check '%s'", w->name);
    int code = object_check(t->store, w->bucket->id, w->name, &lacking, err);
    if (code == 0 && lacking)
        return error_set(err, E_CORRUPT, "object '%s' has lost its bytes", w->name);
    if (code == 0)
        code = object_look(t->store, w->bucket->id, w->name, &held, err);
    if (code == 0 && (!held.found || version_compare(&held.version, &w->o.attr.version) != 0))
        code = error_set(err, E_NOT_READY, "'%s' was written meanwhile", w->name);
    return code;
}

static int send_object(struct work *w, struct error *err)
{
    const struct target_params *p = &w->target->params;
    const struct attr *a = &w->o.attr;
    const struct upload u = {.backend_url = w->bucket->props.backend,
                             .name = w->name,
                             .fd = w->o.fd,
                             .size = a->size,
                             .content_type = a->content_type,
                             .meta = a->meta,
                             .meta_len = a->meta_len,
                             .part_bytes = p->backend_part_size,
                             .parallel = (unsigned)p->backend_parts};
    int code = check_bytes(w, err);
    if (code != 0)
        return code;
    code = upload_object(&w->target->cold->env, &u, w->etag, err);
    w->refused = code != 0;
    return code;
}

int back_ask_owner(struct target *t, const struct cluster_state *s, const struct bucket *b,
                   const char *name, struct object_held *held, struct error *err)
{
    const struct node *owner;
    struct http_result r = {.code = 0};
    int code = object_copy_owner(s, b, name, &owner, err);
    if (code != 0)
        return code;
    _cleanup_free_ char *url = held_url(s, owner, b->id, name, true);
    const struct http_call get = {.method = HTTP_GET,
                                  .url = url,
                                  .node = owner->id,
                                  .total_timeout_ms = t->params.call_timeout};
    (void)http_call_wait(t->data_client, &get, &r, NULL); /* the result says it */
    code = held_of(&r, url, owner->id, held, err);
    http_result_done(&r);
    return code;
}

/* The old name of a rename goes when the backend has the new one (back_after.h). */
static int check_after(const struct work *w, const struct cluster_state *s, struct error *err)
{
    struct back_after after;
    struct object_held held;
    if (!back_after_get(&w->o.attr, &after))
        return 0;
    int code = back_ask_owner(w->target, s, w->bucket, after.name, &held, err);
    if (code != 0)
        return code;
    switch (back_after_step(&after, &held, layout_is_settled(&s->smap))) {
    case BACK_AFTER_GO:
        return 0;
    case BACK_AFTER_COMPARE:
        return back_compare(w->target->cold, w->bucket->props.backend, &after, w->memo, err);
    case BACK_AFTER_WAIT:
        break;
    }
    return error_set(err, E_NOT_READY, "renamed to '%s', which the backend does not have yet",
                     after.name);
}

static int delete_it(struct work *w, const struct cluster_state *s, struct error *err)
{
    int code = check_after(w, s, err);
    if (code != 0)
        return code;
    code = upload_delete(&w->target->cold->env, w->bucket->props.backend, w->name, err);
    w->refused = code != 0;
    return code;
}

static int send_it(struct work *w, const struct cluster_state *s, struct error *err)
{
    return attr_is_tombstone(&w->o.attr) ? delete_it(w, s, err) : send_object(w, err);
}

/* The backend has it.  On the disk, too: else power could bring the mark back, and it would go once
 * more over what others have written there since. */
static int settle(const struct work *w, struct error *err)
{
    struct target *t = w->target;
    bool done;
    fetch_overtake(t->cold, w->bucket->id, w->name);
    const char *etag = backend_etag_is_strong(w->etag) ? w->etag : "";
    return object_uploaded(t->store, w->bucket->id, w->name, &w->o.attr.version, etag, &done, err);
}

static int upload_open(struct work *w, const struct cluster_state *s, struct error *err)
{
    bool superseded;
    int code = ask_earlier(w, s, &superseded, err);
    if (code != 0 || superseded)
        return code;
    code = send_it(w, s, err);
    metric_add(code == 0 ? w->target->cold->written : w->target->cold->not_written, 1);
    return code != 0 ? code : settle(w, err);
}

static int upload(struct work *w, const struct cluster_state *s, struct error *err)
{
    struct target *t = w->target;
    if (!t->object_env.owns(t->object_env.ctx, w->bucket->id, w->name))
        return 0; /* it is moved to who does, and goes from there */
    if (name_queue_busy(t->cold->turns, w->bucket->id, w->name))
        return error_set(err, E_NOT_READY, "'%s' is being written through to its backend", w->name);
    int code = check_reachable(w, s, err);
    if (code != 0)
        return code;
    code = object_open_held(t->store, w->bucket->id, w->name, &w->o, err);
    if (code != 0)
        return code == E_OBJECT_NOT_FOUND ? 0 : code;
    if (attr_is_pending(&w->o.attr))
        code = upload_open(w, s, err);
    close(w->o.fd);
    return code;
}

int back_upload(struct target *t, uint64_t bucket_id, const char *name, uint64_t *memo,
                bool *of_backend, struct error *err)
{
    *of_backend = false;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    if (b == NULL || b->props.backend == NULL)
        return 0; /* it was destroyed */
    struct work w = {.target = t, .bucket = b, .name = name, .memo = memo};
    int code = upload(&w, s, err);
    *of_backend = w.refused;
    return code != 0 ? error_wrap(err, "upload '%s/%s'", b->name, name) : 0;
}
