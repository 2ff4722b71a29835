/* Calls of dfc_plog.h on a plog that need not be open. */
#include "api/failure.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "plog/attributes.h"
#include "plog/client/dfc_plog_parts.h"
#include "plog/size.h"

static struct bucket_store store_of(struct dfc_client *client, const char *bucket)
{
    return (struct bucket_store){.client = client, .bucket = bucket, .parallel = PLOG_PARALLEL};
}

static struct dfc_plog_glance glance_of(const struct plog_size *s)
{
    struct dfc_plog_glance g = {.size = s->size,
                                .stored = s->bytes,
                                .sessions = s->records,
                                .mode = (uint32_t)s->head.mode,
                                .uid = (uint32_t)s->head.uid,
                                .gid = (uint32_t)s->head.gid,
                                .created_ms = s->head.created_ms,
                                .modified_ms = s->head.mtime_ms};
    snprintf(g.id, sizeof g.id, "%s", s->head.id);
    snprintf(g.version, sizeof g.version, "%s", s->etag);
    return g;
}

int dfc_plog_glance(struct dfc_client *client, const char *bucket, const char *name,
                    struct dfc_plog_glance *out, struct dfc_error *err)
{
    struct bucket_store b = store_of(client, bucket);
    const struct plog_store st = bucket_store_of(&b);
    struct error e = ERROR_INIT;
    struct plog_size s;
    const int code = plog_size(&st, name, &s, &e);
    if (code == 0)
        *out = glance_of(&s);
    return plog_result(code, &e, err);
}

/* The cluster is asked without the handle's lock: writes go on. */
int dfc_plog_look(struct dfc_plog *p, struct dfc_plog_glance *out, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct plog_size s;
    pthread_mutex_lock(&p->lock);
    struct plog_unsynced unsynced = plog_file_unsynced(p->file);
    int code = unsynced.cuts ? plog_file_sync(p->file, &e) : 0;
    pool_count(p);
    unsynced = plog_file_unsynced(p->file);
    _cleanup_free_ char *object = xstrdup(plog_file_object(p->file));
    pthread_mutex_unlock(&p->lock);
    const struct plog_store st = bucket_store_of(&p->store);
    if (code == 0)
        code = plog_size(&st, object, &s, &e);
    if (code != 0)
        return plog_result(code, &e, err);
    *out = glance_of(&s);
    out->size = unsynced.end > out->size ? unsynced.end : out->size;
    return DFC_OK;
}

const char *dfc_plog_id(struct dfc_plog *p)
{
    return p->sender != NULL ? plog_file_id(p->file) : "";
}

int dfc_plog_change(struct dfc_client *client, const char *bucket, const char *name,
                    const struct dfc_plog_change *change, struct dfc_error *err)
{
    struct bucket_store b = store_of(client, bucket);
    const struct plog_store st = bucket_store_of(&b);
    struct error e = ERROR_INIT;
    const struct plog_change c = {.sets_mode = change->sets_mode,
                                  .sets_uid = change->sets_uid,
                                  .sets_gid = change->sets_gid,
                                  .sets_mtime = change->sets_modified,
                                  .mode = change->mode & 07777,
                                  .uid = change->uid,
                                  .gid = change->gid,
                                  .mtime_ms = change->modified_ms};
    if (change->sets_modified && change->modified_ms > DFC_PLOG_MODIFIED_MAX)
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "the time of '%s', %llu ms, is beyond the year 2262", name,
                           (unsigned long long)change->modified_ms);
    return plog_result(plog_attributes(&st, name, &c, &e), &e, err);
}

/* The container of a plog that had the new name stays: its head may have moved meanwhile. */
int dfc_plog_rename(struct dfc_client *client, const char *bucket, const char *name,
                    const char *new_name, struct dfc_error *err)
{
    return dfc_rename(client, bucket, name, new_name, err);
}

void dfc_plog_renamed(struct dfc_plog *p, const char *new_name)
{
    pthread_mutex_lock(&p->lock);
    plog_file_rename(p->file, new_name);
    pthread_mutex_unlock(&p->lock);
}

int dfc_plog_replace_object(struct dfc_client *client, const char *bucket, const char *name,
                            const struct dfc_plog_options *o, struct dfc_error *err)
{
    struct bucket_store b = store_of(client, bucket);
    const struct plog_store st = bucket_store_of(&b);
    const struct plog_open how = {.mode = o->mode & 07777, .uid = o->uid, .gid = o->gid};
    struct error e = ERROR_INIT;
    return plog_result(plog_replace_object(&st, name, &how, &e), &e, err);
}
