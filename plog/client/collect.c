/* dfc_plog_list(), dfc_plog_collect().
 *
 * The containers are listed first, then the heads: a head is there before its container.  A
 * container of the first list that no head has is left of a plog that is gone. */
#include <stdlib.h>
#include <string.h>

#include "api/failure.h"
#include "common/mem.h"
#include "plog/client/dfc_plog_parts.h"
#include "plog/head.h"
#include "plog/session.h"
#include "plog/type.h"

enum { HEAD_MOST = 4096 }; /* bytes of a head that this or a later release stores */

struct container {
    char id[PLOG_ID_CHARS + 1];
    uint64_t objects, stored;
    int64_t newest_ms;
    bool has_head;
};

struct bucket_plogs {
    struct bucket_store store;
    struct plog_store st;
    size_t count, room;
    struct container *items; /* by id */
};

static void plogs_init(struct bucket_plogs *p, struct dfc_client *client, const char *bucket)
{
    *p = (struct bucket_plogs){.store = {.client = client, .bucket = bucket, .parallel = 1}};
    p->st = bucket_store_of(&p->store);
}

/* --- containers ------------------------------------------------------------------------------- */

/* Of this name; NULL: it is no object of a plog.  Names of a container are neighbours. */
static struct container *container_of(struct bucket_plogs *p, const char *name)
{
    char id[PLOG_ID_CHARS + 1];
    const char *rest = name + strlen(PLOG_ROOT);
    snprintf(id, sizeof id, "%s", rest);
    if (!plog_id_valid(id) || rest[PLOG_ID_CHARS] != '/')
        return NULL;
    if (p->count > 0 && strcmp(p->items[p->count - 1].id, id) == 0)
        return &p->items[p->count - 1];
    if (p->count == p->room) {
        p->room = p->room * 2 + 16;
        p->items = xrealloc(p->items, p->room * sizeof *p->items);
    }
    p->items[p->count] = (struct container){.objects = 0};
    memcpy(p->items[p->count].id, id, sizeof id);
    return &p->items[p->count++];
}

static int list_containers(struct bucket_plogs *p, struct dfc_error *err)
{
    const struct dfc_list_options options = {.prefix = PLOG_ROOT};
    const struct dfc_entry *entry;
    struct dfc_list *list;
    int rc = dfc_list_open(p->store.client, p->store.bucket, &options, &list, err);
    if (rc != DFC_OK)
        return rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        struct container *c = container_of(p, entry->name);
        if (c == NULL)
            continue;
        c->objects++;
        c->stored += entry->size;
        c->newest_ms = entry->modified_ms > c->newest_ms ? entry->modified_ms : c->newest_ms;
    }
    dfc_list_close(list);
    return rc;
}

static int compare_ids(const void *id, const void *item)
{
    const struct container *c = item;
    return strcmp(id, c->id);
}

/* --- heads ------------------------------------------------------------------------------------ */

typedef int head_found(void *ctx, const char *name, const struct plog_head *head,
                       const struct container *c);

/* The bytes of an object that is as small as a head. */
struct small {
    void *data;
    size_t size;
    bool is_large, is_plog; /* is_large: it has grown; is_plog: its content type says so */
};

static int begin_small(void *ctx, const struct dfc_object_info *info)
{
    struct small *s = ctx;
    s->is_large = info->size > HEAD_MOST;
    s->is_plog = strcmp(info->content_type, PLOG_TYPE) == 0;
    return s->is_large ? -1 : 0;
}

static void small_done(struct small *s)
{
    dfc_free(s->data);
}

/* Which container it has is not known: none can be said to have no head. */
static int refuse_head(const char *name, const struct error *e, struct dfc_error *err)
{
    return failure_set(err, DFC_CORRUPT, E_CORRUPT,
                       "'%s' has the content type of a plog, and cannot be read as one: %s.  "
                       "Restore the object, or remove it",
                       name, e->message);
}

/* If the object is a head, its container has one. */
static int look_at(struct bucket_plogs *p, const char *name, head_found *found, void *ctx,
                   struct dfc_error *err)
{
    struct plog_head head;
    struct error e = ERROR_INIT;
    _cleanup_(small_done)
    struct small s = {.size = 0};
    const struct dfc_get_options options = {.begin = begin_small, .begin_context = &s};
    const int rc = dfc_get_memory(p->store.client, p->store.bucket, name, &options, &s.data,
                                  &s.size, NULL, err);
    if (rc != DFC_OK)
        return rc == DFC_NOT_FOUND || s.is_large ? DFC_OK : rc;
    const int code = plog_head_parse(s.data, s.size, &head, &e);
    if (code == E_INVALID)
        return s.is_plog ? refuse_head(name, &e, err) : DFC_OK;
    if (code != 0) /* of a later release: its container cannot be told */
        return plog_result(code, &e, err);
    struct container *c =
        p->count > 0 ? bsearch(head.id, p->items, p->count, sizeof *p->items, compare_ids) : NULL;
    if (c != NULL)
        c->has_head = true;
    if (found != NULL && found(ctx, name, &head, c) != 0)
        return failure_set(err, DFC_LOCAL, E_CANCELLED, "the caller ended the list");
    return DFC_OK;
}

static int find_heads(struct bucket_plogs *p, head_found *found, void *ctx, struct dfc_error *err)
{
    const struct dfc_entry *entry;
    struct dfc_list *list;
    int rc = dfc_list_open(p->store.client, p->store.bucket, NULL, &list, err);
    if (rc != DFC_OK)
        return rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        rc = entry->size <= HEAD_MOST ? look_at(p, entry->name, found, ctx, err) : DFC_OK;
        if (rc != DFC_OK)
            break;
    }
    dfc_list_close(list);
    return rc;
}

/* --- the list --------------------------------------------------------------------------------- */

struct listing {
    int (*each)(void *context, const struct dfc_plog_entry *e);
    void *context;
};

static int tell(const struct listing *l, const char *name, const struct plog_head *head,
                const struct container *c)
{
    struct dfc_plog_entry e = {.name = name};
    e.id = head != NULL ? head->id : c->id;
    e.size = head != NULL ? head->size : 0;
    if (c != NULL) {
        e.objects = c->objects;
        e.stored = c->stored;
        e.newest_ms = c->newest_ms;
    }
    return l->each(l->context, &e);
}

static int tell_head(void *ctx, const char *name, const struct plog_head *head,
                     const struct container *c)
{
    return tell(ctx, name, head, c);
}

int dfc_plog_list(struct dfc_client *client, const char *bucket,
                  int (*each)(void *context, const struct dfc_plog_entry *e), void *context,
                  struct dfc_error *err)
{
    struct listing l = {.each = each, .context = context};
    struct bucket_plogs p;
    plogs_init(&p, client, bucket);
    int rc = list_containers(&p, err);
    if (rc == DFC_OK)
        rc = find_heads(&p, tell_head, &l, err);
    for (size_t i = 0; i < p.count && rc == DFC_OK; i++) {
        if (!p.items[i].has_head && tell(&l, NULL, NULL, &p.items[i]) != 0)
            rc = failure_set(err, DFC_LOCAL, E_CANCELLED, "the caller ended the list");
    }
    free(p.items);
    return rc;
}

/* --- collection ------------------------------------------------------------------------------- */

static int collect(struct bucket_plogs *p, int64_t before_ms, bool dry_run,
                   struct dfc_plog_collected *out, struct dfc_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct container *c = &p->items[i];
        struct error e = ERROR_INIT;
        if (c->has_head)
            continue;
        if (c->newest_ms > before_ms) {
            out->younger++;
            continue;
        }
        const int code = dry_run ? 0 : plog_drop_container(&p->st, c->id, &e);
        if (code != 0)
            return plog_result(code, &e, err);
        out->containers++;
        out->objects += c->objects;
        out->stored += c->stored;
    }
    return DFC_OK;
}

int dfc_plog_collect(struct dfc_client *client, const char *bucket, int64_t before_ms, bool dry_run,
                     struct dfc_plog_collected *out, struct dfc_error *err)
{
    struct bucket_plogs p;
    plogs_init(&p, client, bucket);
    *out = (struct dfc_plog_collected){.containers = 0};
    int rc = list_containers(&p, err);
    /* Twice: the second look finds a head that was renamed to where the first has been. */
    for (int i = 0; i < 2 && rc == DFC_OK && p.count > 0; i++)
        rc = find_heads(&p, NULL, NULL, err);
    if (rc == DFC_OK)
        rc = collect(&p, before_ms, dry_run, out, err);
    free(p.items);
    return rc;
}
