#include "target/jobs/object_make.h"

#include "cluster/members/location.h"
#include "net/client/client.h"
#include "target/node/header_lines.h"
#include "target/node/target.h"

int object_make(struct object_copier *c, struct target *t, const struct object_make *m,
                struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, m->bucket_id);
    const struct node *owner;
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the destination was destroyed meanwhile");
    int code = object_copy_owner(s, b, m->name, &owner, err);
    if (code != 0)
        return code;
    _cleanup_free_ char *url = location_of_copy(owner, s, b, m->name);
    struct header_lines h;
    header_lines_begin(&h);
    header_lines_add(&h, OBJECT_COPY_HEADER ": " OBJECT_COPY_MADE);
    header_lines_add(&h, object_type_line(h.arena, m->content_type));
    struct http_call call = {.method = HTTP_PUT,
                             .url = url,
                             .node = owner->id,
                             .headers = h.lines,
                             .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT,
                             .upload_length = -1,
                             .once = true};
    code = object_copier_stream(c, &call, m->feed, m->ctx, NULL, err);
    header_lines_end(&h);
    return code;
}
