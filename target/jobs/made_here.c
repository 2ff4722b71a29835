#include "target/jobs/made_here.h"

#include <string.h>

#include "common/mem.h"
#include "target/copies/earlier_owners.h"
#include "target/copies/object_copy.h"
#include "target/node/quotas.h"
#include "target/node/target.h"

struct made_here {
    const struct cluster_state *state; /* that the claim's bucket is of */
    struct quota_claim claim;
    struct object_put *put;
};

/* One copy, on one target, and nobody else has to be asked or told.  Whether the name is free in a
 * bucket that is write_once, the call looks under the name's lock. */
static bool is_plain(const struct target *t, const struct cluster_state *s, const struct bucket *b,
                     const char *name)
{
    return !bucket_has_copies(b) && b->props.backend == NULL && b->props.etag != ETAG_MD5 &&
           !b->props.write_once && !earlier_is_asked(t, s, b, name, false);
}

static int open_here(struct target *t, const struct bucket *b, const char *name,
                     const char *content_type, struct made_here *m, struct error *err)
{
    const struct object_put_spec spec = {.bucket_id = b->id,
                                         .name = name,
                                         .size = OBJECT_SIZE_UNKNOWN,
                                         .durability = b->props.durability,
                                         .checksum = b->props.checksum,
                                         .content_type = content_type};
    int code = quota_claim_begin(t->quotas, b, name, spec.size, NULL, &m->claim, err);
    return code != 0 ? code : object_put_begin(t->store, &spec, &m->put, err);
}

static void made_here_free(struct made_here *m)
{
    quota_claim_end(&m->claim);
    state_unref(m->state);
    free(m);
}

int made_here_begin(struct target *t, uint64_t bucket_id, const char *name,
                    const char *content_type, struct made_here **out, struct error *err)
{
    struct made_here *m = xcalloc(1, sizeof *m);
    const struct node *owner = NULL;
    m->state = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&m->state->bmd, bucket_id);
    *out = NULL;
    int code = b != NULL ? object_copy_owner(m->state, b, name, &owner, err)
                         : error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    bool here = code == 0 && strcmp(owner->id, t->id) == 0 && is_plain(t, m->state, b, name);
    if (here)
        code = open_here(t, b, name, content_type, m, err);
    if (here && code == 0)
        *out = m;
    else
        made_here_free(m);
    return code;
}

int made_here_write(struct made_here *m, const void *data, size_t len, struct error *err)
{
    int code = quota_claim_more(&m->claim, len, err);
    return code != 0 ? code : object_put_write(m->put, data, len, err);
}

int made_here_finish(struct made_here *m, struct error *err)
{
    int code = object_put_commit_wait(m->put, err);
    made_here_free(m);
    return code;
}

void made_here_discard(struct made_here *m)
{
    object_put_abort(m->put);
    made_here_free(m);
}
