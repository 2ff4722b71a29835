/* Commands on buckets. */
#include "cluster/command/command.h"
#include "cluster/command/parts.h"

#include <string.h>

#include "cluster/props/backend.h"
#include "cluster/placement/lag.h"
#include "cluster/placement/copies_reduce.h"
#include "cluster/documents/bucket_refuse.h"
#include "cluster/documents/settings.h"

int command_bucket_create(const struct cluster_state *s, const struct command *cmd,
                          const struct cluster_state **next, struct error *err)
{
    int r;
    if ((r = bucket_name_check(cmd->name, err)) != 0 ||
        (r = bucket_props_check(cmd->props, err)) != 0)
        return r;
    if (bmd_bucket(&s->bmd, cmd->name) != NULL)
        return error_set(err, E_BUCKET_EXISTS, "bucket '%s' exists", cmd->name);
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    if (s->bmd.count >= settings.buckets_max)
        return error_set(err, E_OVERLOAD,
                         "the cluster has %zu buckets, as many as buckets_max allows",
                         s->bmd.count);
    struct bucket b = {
        .id = s->next_bucket_id,
        .name = cmd->name,
        .created_ms = cmd->wall_ms,
        .owner = cmd->actor,
        .props = *cmd->props,
        .filled = cmd->props->copies,
    };
    struct bmd m;
    bmd_with(&s->bmd, &b, &m);
    struct cluster_state *made = command_next_bmd(s, &m);
    made->next_bucket_id++;
    *next = made;
    return 0;
}

static int need_bucket(const struct cluster_state *s, const char *name, const struct bucket **out,
                       struct error *err)
{
    *out = bmd_bucket(&s->bmd, name);
    if (*out != NULL)
        return 0;
    return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%.80s' does not exist", name);
}

/* The very bucket that the command's id is of. */
static int need_same(const struct cluster_state *s, const struct command *cmd,
                     const struct bucket **out, struct error *err)
{
    int r = need_bucket(s, cmd->name, out, err);
    if (r != 0 || cmd->bucket_id == (*out)->id)
        return r;
    return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%.80s' was destroyed, and made anew",
                     cmd->name);
}

/* An object may be there if it was open meanwhile. */
static int need_closed(const struct cluster_state *s, const struct command *cmd,
                       const struct bucket **out, struct error *err)
{
    int r = need_same(s, cmd, out, err);
    if (r != 0 || state_bucket_is_closed(s, *out))
        return r;
    return error_set(err, E_NOT_READY, "bucket '%.80s' was opened meanwhile; try again", cmd->name);
}

static int set_closed(const struct cluster_state *s, const struct bucket *known, uint64_t closed,
                      const struct cluster_state **next)
{
    struct bucket b = *known;
    struct bmd m;
    b.closed = closed;
    bmd_with(&s->bmd, &b, &m);
    *next = command_next_bmd(s, &m);
    return 0;
}

int command_bucket_close(const struct cluster_state *s, const struct command *cmd,
                         const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r = need_same(s, cmd, &known, err);
    if (r != 0)
        return r;
    if (s->term == 0) /* a bucket is closed for a term */
        return error_set(err, E_NOT_READY, "the cluster has no primary yet");
    if (state_bucket_is_closed(s, known)) /* by somebody else, who may open it at any moment */
        return error_set(err, E_NOT_READY, "bucket '%.80s' is being destroyed; try again",
                         cmd->name);
    return set_closed(s, known, s->term, next);
}

int command_bucket_open(const struct cluster_state *s, const struct command *cmd,
                        const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r = need_same(s, cmd, &known, err);
    if (r != 0)
        return r;
    return known->closed == 0 ? command_keep(s, next) : set_closed(s, known, 0, next);
}

int command_bucket_destroy(const struct cluster_state *s, const struct command *cmd,
                           const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r = cmd->bucket_id == 0 ? need_bucket(s, cmd->name, &known, err)
                                : need_closed(s, cmd, &known, err);
    if (r == 0 && cmd->bucket_id == 0) /* one that was closed is empty */
        r = bucket_refuse_removal(known, "removal of the bucket", err);
    if (r != 0)
        return r;
    struct bmd m;
    bmd_without(&s->bmd, cmd->name, &m);
    *next = command_next_bmd(s, &m);
    return 0;
}

/* What is in the bucket came from its backend, or it belongs to the bucket itself; that stays so.
 */
static int check_same_backend(const struct bucket_props *old, const struct bucket_props *now,
                              struct error *err)
{
    if (old->backend == NULL && now->backend == NULL)
        return 0;
    if (old->backend != NULL && now->backend != NULL &&
        backend_same_objects(old->backend, now->backend))
        return 0;
    return error_set(err, E_INVALID,
                     "field 'backend' is set when a bucket is created; after that "
                     "only the way there (endpoint, region, style, auth, profile) can change");
}

/* What is there has been cut so. */
static int check_same_ec(const struct bucket_props *old, const struct bucket_props *now,
                         struct error *err)
{
    if (old->ec_data == now->ec_data && old->ec_parity == now->ec_parity)
        return 0;
    return error_set(err, E_INVALID,
                     "field 'ec' is set when a bucket is created; after that only min_size can "
                     "change");
}

/* Where all had to have a write nobody is asked what the others have, and who was passed over has
 * missed it: a majority proves nothing there.  With more owners a majority of them need not have
 * one of those who have it. */
static int check_same_quorum(const struct bucket_props *old, const struct bucket_props *now,
                             struct error *err)
{
    int r = bucket_props_check_change(old, now, err);
    if (r != 0)
        return r;
    if (old->copies != now->copies && old->write_quorum == WRITE_MAJORITY)
        return error_set(err, E_UNSUPPORTED,
                         "field 'copies': this release does not change it in a bucket with "
                         "write_quorum: majority; copy the objects to another one");
    return 0;
}

static int check_unused(const struct cluster_state *s, const struct bucket *b, struct error *err)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (!job_ended(job->state) && job_uses_bucket(job, b->id))
            return error_set(err, E_JOB_STATE,
                             "job '%s' works on bucket '%.80s'; wait for its end, or abort it",
                             job->id, b->name);
    }
    return 0;
}

/* Jobs make outputs for as many owners as there were when they began. */
static int check_lowers(const struct cluster_state *s, const struct bucket *known,
                        const struct bucket_props *now, struct error *err)
{
    if (now->copies >= known->props.copies)
        return 0;
    int r = copies_reduce_check(s, err);
    return r != 0 ? r : check_unused(s, known, err);
}

/* `b` has the new properties. */
static void follow_copies(const struct cluster_state *s, uint32_t before, struct bucket *b)
{
    copies_reduce_follow(s, b, before);
    if (b->props.copies > before)
        b->raised = s->bmd.version + 1;
    else if (b->filled == b->props.copies)
        b->raised = 0;
}

int command_bucket_props(const struct cluster_state *s, const struct command *cmd,
                         const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r = need_bucket(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    struct bucket b = *known;
    if ((r = bucket_props_from_json(cmd->patch, &b.props, err)) != 0 ||
        (r = bucket_props_check(&b.props, err)) != 0 ||
        (r = check_same_backend(&known->props, &b.props, err)) != 0 ||
        (r = check_same_ec(&known->props, &b.props, err)) != 0 ||
        (r = check_same_quorum(&known->props, &b.props, err)) != 0 ||
        (r = check_lowers(s, known, &b.props, err)) != 0)
        return r;
    if (bucket_props_equal(&known->props, &b.props))
        return command_keep(s, next);
    follow_copies(s, known->props.copies, &b);
    struct bmd m;
    bmd_with(&s->bmd, &b, &m);
    *next = command_next_bmd(s, &m);
    return 0;
}

/* With `b` in place of the bucket of its name. */
static int check_texts_room(const struct cluster_state *s, const struct bucket *b,
                            struct error *err)
{
    struct cluster_settings settings;
    uint64_t bytes = bucket_texts_bytes(&b->texts);
    uint64_t before = bucket_texts_bytes(&bmd_bucket(&s->bmd, b->name)->texts);
    cluster_settings_get(&s->config, &settings);
    for (size_t i = 0; i < s->bmd.count; i++) {
        if (s->bmd.buckets[i].id != b->id)
            bytes += bucket_texts_bytes(&s->bmd.buckets[i].texts);
    }
    if (bucket_texts_bytes(&b->texts) <= before || bytes <= settings.bucket_texts_max)
        return 0;
    return error_set(err, E_OVERLOAD,
                     "the S3 documents of all buckets would have %llu bytes, more than "
                     "bucket_texts_max allows (%llu)",
                     (unsigned long long)bytes, (unsigned long long)settings.bucket_texts_max);
}

int command_bucket_texts(const struct cluster_state *s, const struct command *cmd,
                         const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r = need_bucket(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    struct bucket b = *known;
    if ((r = bucket_texts_patch(cmd->patch, "texts", &b.texts, err)) != 0 ||
        (r = check_texts_room(s, &b, err)) != 0)
        return r;
    if (bucket_texts_equal(&known->texts, &b.texts))
        return command_keep(s, next);
    struct bmd m;
    bmd_with(&s->bmd, &b, &m);
    *next = command_next_bmd(s, &m);
    return 0;
}

/* All buckets that `change` changes, in one version. */
static int change_buckets(const struct cluster_state *s, const struct command *cmd,
                          bool (*change)(const struct cluster_state *s, const struct command *cmd,
                                         struct bucket *b),
                          const struct cluster_state **next)
{
    struct bmd m = s->bmd;
    document_ref(m.memory);
    for (size_t i = 0; i < s->bmd.count; i++) {
        struct bucket b = s->bmd.buckets[i];
        struct bmd changed;
        if (!change(s, cmd, &b))
            continue;
        bmd_with(&m, &b, &changed);
        document_unref(m.memory);
        m = changed;
    }
    if (m.version == s->bmd.version) {
        document_unref(m.memory);
        return command_keep(s, next);
    }
    m.version = s->bmd.version + 1;
    *next = command_next_bmd(s, &m);
    return 0;
}

static bool fill(const struct cluster_state *s, const struct command *cmd, struct bucket *b)
{
    if (b->filled == b->props.copies || b->raised > cmd->raised || !lag_spares_an_owner(s, b))
        return false;
    b->filled = b->props.copies;
    b->raised = 0;
    return true;
}

int command_copies_filled(const struct cluster_state *s, const struct command *cmd,
                          const struct cluster_state **next, struct error *err)
{
    int r = command_check_repaired(s, cmd, err);
    return r != 0 ? r : change_buckets(s, cmd, fill, next);
}

int command_copies_lowered(const struct cluster_state *s, const struct command *cmd,
                           const struct cluster_state **next, struct error *err)
{
    const struct bucket *known = bmd_bucket_by_id(&s->bmd, cmd->fence.bucket_id);
    struct bmd m;
    if (known != NULL && !bucket_has_surplus(known))
        return command_keep(s, next);
    int r = copies_reduce_check_fence(s, &cmd->fence, err);
    if (r != 0)
        return r;
    if (!copies_reduce_may_end(s, known))
        return command_keep(s, next);
    struct bucket b = *known;
    copies_reduce_end(&b);
    bmd_with(&s->bmd, &b, &m);
    *next = command_next_bmd(s, &m);
    return 0;
}

int command_bucket_rename(const struct cluster_state *s, const struct command *cmd,
                          const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r;
    if ((r = need_bucket(s, cmd->name, &known, err)) != 0 ||
        (r = bucket_name_check(cmd->text, err)) != 0)
        return r;
    if (strcmp(cmd->name, cmd->text) == 0)
        return command_keep(s, next);
    if (bmd_bucket(&s->bmd, cmd->text) != NULL)
        return error_set(err, E_BUCKET_EXISTS, "bucket '%s' exists", cmd->text);
    /* Jobs go by its id; but what their users see of them, the spec and messages, has its name. */
    if ((r = check_unused(s, known, err)) != 0)
        return r;
    struct bmd m;
    bmd_renamed(&s->bmd, cmd->name, cmd->text, &m);
    *next = command_next_bmd(s, &m);
    return 0;
}
