#include "proxy/metastore/etcd_documents.h"

#include <string.h>

#include "cluster/documents/delta.h"
#include "cluster/documents/job.h"
#include "cluster/documents/layout.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum {
    OPERATION_BYTES = 64,    /* of a request beside key and value */
    REQUEST_BYTES = 4 << 10, /* and of the rest of it */
};

/* The documents, as etcd_gather.items[] has them. */
static const struct part {
    const char *name;
    const char *document;
    const char *list; /* where the document has its items */
    const char *key;  /* the item's name; NULL: it is the member's */
} parts[ETCD_PARTS] = {
    {"smap", "smap", "nodes", "id"},      {"bmd", "bmd", "buckets", "name"},
    {"config", "config", "values", NULL}, {"jobs", "jobs", "jobs", "id"},
    {"users", "access", "users", "name"}, {"roles", "access", "roles", "name"},
};
enum { PARTS = ETCD_PARTS, CONFIG = 2, JOBS = 3 };

struct gathered_job {
    uint64_t create_revision;
    json_int_t created_ms;
    json_t *doc;
};

char *etcd_key(const char *prefix, const char *name)
{
    return xprintf("%s/%s", prefix, name);
}

/* --- a change -------------------------------------------------------------------------------- */

struct change {
    const struct etcd_fence *fence;
    json_t *operations;
    uint64_t bytes;
};

static char *item_key(const struct etcd_fence *fence, const struct part *p, const char *name)
{
    return xprintf("%s/%s/%s", fence->prefix, p->name, name);
}

/* Returns the value's length. */
static size_t change_put(struct change *c, const char *key, const json_t *value)
{
    _cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t len = strlen(text);
    json_array_append_new(c->operations, etcd_put(key, text, len, 0));
    c->bytes += strlen(key) + len + OPERATION_BYTES;
    return len;
}

static void change_drop(struct change *c, const char *key)
{
    json_array_append_new(c->operations, etcd_delete(key));
    c->bytes += strlen(key) + OPERATION_BYTES;
}

static int check_room_to_grow(const char *key, size_t len, uint64_t bytes_max, struct error *err)
{
    if (len <= bytes_max / 2)
        return 0;
    return error_set(
        err, E_TOO_LARGE,
        "'%s' would take %zu bytes; a new item may take %llu, half of etcd_request_max, "
        "which must not exceed --max-request-bytes of etcd",
        key, len, (unsigned long long)(bytes_max / 2));
}

static int put_items(struct change *c, const struct part *p, const struct cluster_state *from,
                     json_t *items, uint64_t bytes_max, struct error *err)
{
    size_t i;
    json_t *item;
    int r = 0;
    json_array_foreach(items, i, item)
    {
        const char *name = json_string_value(json_object_get(item, p->key));
        _cleanup_free_ char *key = item_key(c->fence, p, name);
        size_t len = change_put(c, key, item);
        bool is_new = p != &parts[JOBS] || jobs_find(&from->jobs, name) == NULL;
        if (is_new && (r = check_room_to_grow(key, len, bytes_max, err)) != 0)
            return r;
    }
    return 0;
}

static void put_members(struct change *c, const struct part *p, json_t *members)
{
    const char *name;
    json_t *value;
    json_object_foreach(members, name, value)
    {
        _cleanup_free_ char *key = item_key(c->fence, p, name);
        change_put(c, key, value);
    }
}

static int change_part(struct change *c, const struct part *p, const struct cluster_state *from,
                       json_t *delta, uint64_t bytes_max, struct error *err)
{
    size_t i;
    json_t *name;
    json_t *put = json_object_get(delta, "put");
    if (p->key == NULL)
        put_members(c, p, put);
    int r = p->key == NULL ? 0 : put_items(c, p, from, put, bytes_max, err);
    json_array_foreach(json_object_get(delta, "drop"), i, name)
    {
        _cleanup_free_ char *key = item_key(c->fence, p, json_string_value(name));
        change_drop(c, key);
    }
    return r;
}

static json_t *head_of(const struct cluster_state *s, uint64_t election)
{
    json_t *versions =
        json_pack("{s:I, s:I, s:I, s:I}", "smap", (json_int_t)s->smap.version, "bmd",
                  (json_int_t)s->bmd.version, "config", (json_int_t)s->config.version, "jobs",
                  (json_int_t)s->jobs.version);
    if (s->access.version > 0)
        json_object_set_new(versions, "access", json_integer((json_int_t)s->access.version));
    return json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:o, s:o}", "format",
                     state_format(s), "cluster", s->cluster_id, "term", (json_int_t)s->term,
                     "version", (json_int_t)s->version, "term_version", (json_int_t)s->term_version,
                     "next_bucket_id", (json_int_t)s->next_bucket_id, "primary", s->primary,
                     "election", (json_int_t)election, "layout", layout_to_json(&s->smap), "parts",
                     versions);
}

static int change_fill(struct change *c, const struct cluster_state *from,
                       const struct cluster_state *to, uint64_t bytes_max, struct error *err)
{
    _cleanup_json_ json_t *delta = state_delta(from, to);
    _cleanup_json_ json_t *head = head_of(to, c->fence->election);
    _cleanup_free_ char *head_key = etcd_key(c->fence->prefix, "head");
    int r = 0;
    change_put(c, head_key, head);
    for (size_t i = 0; r == 0 && i < PARTS; i++) {
        json_t *part = json_object_get(delta, parts[i].name);
        if (part != NULL)
            r = change_part(c, &parts[i], from, part, bytes_max, err);
    }
    if (r == 0 && c->bytes + REQUEST_BYTES > bytes_max)
        r = error_set(err, E_TOO_LARGE,
                      "the change takes %llu bytes, and etcd_request_max is %llu: raise it, and "
                      "--max-request-bytes of etcd with it",
                      (unsigned long long)(c->bytes + REQUEST_BYTES),
                      (unsigned long long)bytes_max);
    return r;
}

static json_t *fenced(const struct etcd_fence *fence, json_t *operations)
{
    _cleanup_free_ char *primary = etcd_key(fence->prefix, "primary");
    _cleanup_free_ char *head = etcd_key(fence->prefix, "head");
    json_t *compare = json_pack("[o, o]", etcd_if_created(primary, fence->election),
                                etcd_if_changed(head, fence->head));
    json_t *failure = json_pack("[o, o]", etcd_get(primary), etcd_get(head));
    return etcd_txn(compare, operations, failure);
}

int etcd_change(const struct etcd_fence *fence, const struct cluster_state *from,
                const struct cluster_state *to, uint64_t bytes_max, json_t **out, struct error *err)
{
    _cleanup_state_ const struct cluster_state *base =
        from != NULL ? state_ref(from) : state_new(to->cluster_id);
    struct change c = {.fence = fence, .operations = json_array()};
    int r = change_fill(&c, base, to, bytes_max, err);
    if (r != 0) {
        json_decref(c.operations);
        return r;
    }
    *out = fenced(fence, c.operations);
    return 0;
}

/* What P/head says of who wrote last; all 0 where it is not there. */
struct head_now {
    uint64_t election, version, term_version;
};

static int head_parse(const struct etcd_kvs *head, struct head_now *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int r;
    *out = (struct head_now){0};
    if (head->count == 0)
        return 0;
    struct buf *text = &head->kvs[0].value;
    if ((r = json_parse(buf_str(text), text->len, &doc, err)) != 0 ||
        (r = json_get_u64(doc, "", "election", &out->election, err)) != 0 ||
        (r = json_get_u64(doc, "", "version", &out->version, err)) != 0)
        return r;
    return json_get_u64(doc, "", "term_version", &out->term_version, err);
}

/* Only this election writes heads that carry its number, and each version once. */
static bool is_ours(const struct head_now *head, const struct etcd_fence *fence,
                    const struct cluster_state *to)
{
    return head->election == fence->election && head->version == to->version;
}

/* A later election has written.  The version with which its term began tells whether `to` can have
 * been made before it. */
static bool is_overtaken(const struct head_now *head, const struct etcd_fence *fence,
                         const struct cluster_state *to)
{
    bool began_before = head->term_version != 0 && head->term_version <= to->version;
    return head->election > fence->election && !began_before;
}

int etcd_change_verdict(json_t *reply, const struct etcd_fence *fence,
                        const struct cluster_state *to, enum etcd_verdict *verdict, uint64_t *head,
                        struct error *err)
{
    _cleanup_(etcd_kvs_done)
    struct etcd_kvs primary_now = {0};
    _cleanup_(etcd_kvs_done)
    struct etcd_kvs head_now = {0};
    struct head_now now;
    bool made;
    int r = etcd_txn_parse(reply, &made, head, err);
    *verdict = ETCD_MADE;
    if (r != 0 || made)
        return r;
    if ((r = etcd_txn_kvs_parse(reply, 0, &primary_now, err)) != 0 ||
        (r = etcd_txn_kvs_parse(reply, 1, &head_now, err)) != 0 ||
        (r = head_parse(&head_now, &now, err)) != 0)
        return r;
    if (is_ours(&now, fence, to))
        *head = head_now.kvs[0].mod_revision;
    else if (is_overtaken(&now, fence, to))
        *verdict = ETCD_OVERTAKEN;
    else if (primary_now.count == 0 || primary_now.kvs[0].create_revision != fence->election)
        *verdict = ETCD_DEPOSED;
    else
        *verdict = ETCD_FOREIGN;
    return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

void etcd_gather_done(struct etcd_gather *g)
{
    json_decref(g->head_doc);
    for (size_t i = 0; i < PARTS; i++)
        json_decref(g->items[i]);
    for (size_t i = 0; i < g->job_count; i++)
        json_decref(g->jobs[i].doc);
    free(g->jobs);
    *g = (struct etcd_gather){0};
}

static void take_job(struct etcd_gather *g, uint64_t create_revision, const json_t *doc)
{
    g->jobs = xrealloc(g->jobs, (g->job_count + 1) * sizeof g->jobs[0]);
    g->jobs[g->job_count++] = (struct gathered_job){
        .create_revision = create_revision,
        .created_ms = json_integer_value(json_object_get(doc, "created")),
        .doc = json_incref((json_t *)doc),
    };
}

static void take_item(struct etcd_gather *g, size_t part, const char *name,
                      uint64_t create_revision, json_t *value)
{
    if (g->items[part] == NULL)
        g->items[part] = part == CONFIG ? json_object() : json_array();
    if (part == CONFIG)
        json_object_set(g->items[part], name, value);
    else if (part == JOBS)
        take_job(g, create_revision, value);
    else
        json_array_append(g->items[part], value);
}

/* "smap/t1": the part, and where the item's name begins; PARTS for another key. */
static size_t part_of(const char *name, const char **item)
{
    size_t part = 0;
    for (; part < PARTS; part++) {
        size_t len = strlen(parts[part].name);
        if (strncmp(name, parts[part].name, len) == 0 && name[len] == '/') {
            *item = name + len + 1;
            break;
        }
    }
    return part;
}

static int take_kv(struct etcd_gather *g, const struct etcd_kv *kv, struct error *err)
{
    size_t len = strlen(g->prefix);
    if (strncmp(kv->key, g->prefix, len) != 0 || kv->key[len] != '/')
        return error_set(err, E_CORRUPT, "etcd gave the key '%s', which is not below '%s'", kv->key,
                         g->prefix);
    const char *name = kv->key + len + 1;
    const char *item;
    size_t part = part_of(name, &item);
    bool is_head = strcmp(name, "head") == 0;
    json_error_t why;
    if (!is_head && part == PARTS)
        return 0; /* the election's, or of a later release */
    json_t *value = json_loadb(kv->value.data != NULL ? kv->value.data : "", kv->value.len,
                               JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
    if (value == NULL)
        return error_set(err, E_CORRUPT, "etcd's key '%s' is not JSON: %s", kv->key, why.text);
    if (is_head) {
        json_decref(g->head_doc);
        g->head_doc = value;
        g->head = kv->mod_revision;
        return 0;
    }
    take_item(g, part, item, kv->create_revision, value);
    json_decref(value);
    return 0;
}

int etcd_gather_take(struct etcd_gather *g, const struct etcd_kvs *page, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < page->count; i++)
        r = take_kv(g, &page->kvs[i], err);
    return r;
}

/* Jobs that came in one transaction (an import) by their time. */
static int compare_jobs(const void *a, const void *b)
{
    const struct gathered_job *x = a;
    const struct gathered_job *y = b;
    if (x->create_revision != y->create_revision)
        return x->create_revision < y->create_revision ? -1 : 1;
    return x->created_ms < y->created_ms ? -1 : x->created_ms > y->created_ms;
}

static json_t *jobs_in_order(struct etcd_gather *g)
{
    json_t *list = json_array();
    if (g->job_count > 0)
        qsort(g->jobs, g->job_count, sizeof g->jobs[0], compare_jobs);
    for (size_t i = 0; i < g->job_count; i++)
        json_array_append(list, g->jobs[i].doc);
    return list;
}

static void put_list(json_t *state, const struct part *p, json_int_t version, json_t *list)
{
    json_t *document = json_object_get(state, p->document);
    if (document == NULL) {
        document = json_pack("{s:I}", "version", version);
        json_object_set_new(state, p->document, document);
    }
    json_object_set_new(document, p->list, list);
}

/* The state document, of which the head is all but the lists. */
static json_t *state_document(struct etcd_gather *g)
{
    json_t *doc = json_deep_copy(g->head_doc);
    json_t *versions = json_object_get(g->head_doc, "parts");
    for (size_t i = 0; i < PARTS; i++) {
        json_t *version = json_object_get(versions, parts[i].document);
        if (version == NULL && i > JOBS)
            continue; /* the cluster has no document `access` */
        json_t *list = i == JOBS ? jobs_in_order(g) : json_incref(g->items[i]);
        if (list == NULL)
            list = i == CONFIG ? json_object() : json_array();
        put_list(doc, &parts[i], json_integer_value(version), list);
    }
    json_t *layout = json_object_get(g->head_doc, "layout"); /* none by an earlier release */
    if (layout != NULL)
        json_object_update(json_object_get(doc, "smap"), layout);
    return doc;
}

int etcd_gather_state(struct etcd_gather *g, struct cluster_state **out, struct error *err)
{
    *out = NULL;
    if (g->head_doc == NULL)
        return 0;
    _cleanup_json_ json_t *doc = state_document(g);
    int r = state_from_json(doc, out, err);
    if (r != 0)
        error_recode(err, E_CORRUPT, "the documents in etcd below '%s'", g->prefix);
    return r != 0 ? E_CORRUPT : 0;
}
