#include "target/jobs/job_send.h"

#include <unistd.h>

#include "io/reader.h"

int job_send_begin(struct job_base *j, uint64_t bucket_id, const char *name, uint64_t size,
                   struct object_put **put, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(j->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the destination was destroyed meanwhile");
    const struct object_put_spec spec = {.bucket_id = bucket_id,
                                         .name = name,
                                         .size = size,
                                         .durability = DURABILITY_ASYNC,
                                         .checksum = b->props.checksum,
                                         .unnamed = true};
    return object_put_begin(j->target->store, &spec, put, err);
}

int job_send_file(struct job_base *j, const struct object *o, const struct object_copy *copy,
                  struct error *err)
{
    struct object_copy with = *copy;
    int code;
    with.from = o;
    for (unsigned failures = 1;; failures++) {
        *err = ERROR_INIT;
        code = object_copy(j->copier, &with, err);
        if (!job_base_again(j, code, err, failures))
            return code;
    }
}

int job_send(struct job_base *j, struct object_put *put, const struct object_copy *copy,
             struct error *err)
{
    struct object o = {.fd = -1};
    struct reader *reader = NULL;
    int code = object_put_finish(put, err);
    if (code == 0)
        code = object_put_share(put, &o.fd, &reader, err);
    if (code == 0) {
        o.attr = *object_put_attr(put);
        code = job_send_file(j, &o, copy, err);
        close(o.fd);
    }
    reader_unref(reader);
    object_put_abort(put);
    return code;
}
