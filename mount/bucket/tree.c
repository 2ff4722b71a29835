#include "mount/bucket/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "api/same_bytes.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "mount/bucket/errors.h"
#include "mount/bucket/names.h"

#define UNGUARDED_MS 60000 /* how long a cluster is taken to have no access control */

int tree_open(struct tree *t, struct dfc_client *client, const char *bucket, const char *prefix,
              struct dfc_error *err)
{
    _cleanup_free_ char *text = NULL;
    int rc = dfc_bucket_show(client, bucket, &text, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
    *t = (struct tree){
        .client = client,
        .bucket = xstrdup(bucket),
        .prefix = xstrdup(prefix),
        .bucket_id = (uint64_t)json_integer_value(json_object_get(doc, "id")),
        .bucket_made_ms = json_integer_value(json_object_get(doc, "created_ms")),
    };
    return DFC_OK;
}

void tree_close(struct tree *t)
{
    free(t->bucket);
    free(t->prefix);
    *t = (struct tree){0};
}

uint64_t tree_inode(const struct tree *t, const char *key)
{
    uint64_t inode = XXH3_64bits_withSeed(key, strlen(key), t->bucket_id);
    return inode > 1 ? inode : inode + 2; /* 1 is the root, 0 is none */
}

char *tree_scope(const struct tree *t)
{
    return xprintf("%" PRIu64 "/%" PRId64, t->bucket_id, t->bucket_made_ms);
}

/* ---- names ---- */

int tree_begins(struct tree *t, const char *prefix, enum tree_begins *found)
{
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_entry *e;
    const struct dfc_list_options options = {.prefix = prefix, .page_size = 1, .partial = true};
    if (dfc_list_open(t->client, t->bucket, &options, &list, &err) != DFC_OK)
        return errors_told(prefix, &err);
    int rc = dfc_list_next(list, &e, &err);
    *found = rc > 0                      ? TREE_BEGINS_YES
             : dfc_list_incomplete(list) ? TREE_BEGINS_UNKNOWN
                                         : TREE_BEGINS_NO;
    dfc_list_close(list);
    return rc < 0 ? errors_told(prefix, &err) : 0;
}

int tree_head(struct tree *t, const char *key, struct dfc_object_info **info)
{
    struct dfc_error err;
    return dfc_head(t->client, t->bucket, key, info, &err) == DFC_OK ? 0
                                                                     : errors_told(t->bucket, &err);
}

/* A program that is told at its close often does not look.  The cluster is asked for each file, as
 * rights change. */
int tree_may_write(struct tree *t, const char *key)
{
    struct dfc_error err;
    _cleanup_free_ char *url = NULL;
    const uint64_t now_ms = clock_ms(), unguarded_ms = atomic_load(&t->unguarded_ms);
    if (unguarded_ms != 0 && now_ms - unguarded_ms < UNGUARDED_MS)
        return 0;
    if (dfc_object_url(t->client, t->bucket, key, "PUT", 1, &url, &err) == DFC_OK)
        return 0;
    if (strcmp(err.code, error_name(E_UNSUPPORTED)) == 0)
        atomic_store(&t->unguarded_ms, now_ms);
    const bool is_refused = strcmp(err.code, error_name(E_ACCESS_DENIED)) == 0;
    return is_refused || err.result == DFC_CANCELLED ? errors_told(key, &err) : 0;
}

const char *tree_version(const struct dfc_object_info *info)
{
    return info->version[0] != '\0' ? info->version : info->etag;
}

int tree_lookup(struct tree *t, const char *prefix, const char *name, struct entry *out)
{
    struct dfc_object_info *info;
    if (!name_is_shown(name, strlen(name)))
        return strlen(name) > NAME_MAX_BYTES ? -ENAMETOOLONG : -ENOENT;
    _cleanup_free_ char *directory = name_directory(prefix, name);
    enum tree_begins found = TREE_BEGINS_NO;
    int rc = tree_begins(t, directory, &found);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (found == TREE_BEGINS_YES) {
        *out = (struct entry){.name = xstrdup(name), .is_directory = true, .version = xstrdup("")};
        return 0;
    }
    _cleanup_free_ char *key = name_file(prefix, name);
    rc = tree_head(t, key, &info);
    if (rc != 0)
        return rc == -ENOENT && found == TREE_BEGINS_UNKNOWN ? -EIO : rc;
    *out = (struct entry){
        .name = xstrdup(name),
        .is_known = true,
        .size = info->size,
        .modified_ms = info->modified_ms,
        .version = xstrdup(tree_version(info)),
    };
    dfc_object_info_free(info);
    return 0;
}

/* ---- bytes ---- */

struct entity *tree_entity(const char *key, const struct dfc_object_info *info)
{
    _cleanup_free_ char *checksum = xprintf("%s:%s", info->checksum_type, info->checksum);
    return entity_new(key, info->etag, info->checksum[0] != '\0' ? checksum : "", info->size);
}

static int fetch(struct tree *t, const struct entity *e, const char *etag,
                 const struct dfc_get_options *range, const struct dfc_sink *sink)
{
    struct dfc_error err;
    struct dfc_get_options options = *range;
    options.if_match = etag[0] != '\0' ? etag : NULL;
    if (dfc_get_sink(t->client, t->bucket, e->key, sink, &options, NULL, &err) == DFC_OK)
        return 0;
    int rc = errors_told(t->bucket, &err);
    return rc == -ENOENT ? -ESTALE : rc; /* an open file has gone */
}

int tree_fetch(void *tree, const struct entity *e, uint64_t offset, uint64_t length,
               const struct dfc_sink *sink)
{
    struct tree *t = tree;
    const bool whole = offset == 0 && length == e->size; /* compared with its checksum */
    const struct dfc_get_options range = {
        .offset = (int64_t)offset,
        .length = whole ? 0 : length,
    };
    int rc = fetch(t, e, e->etag, &range, sink);
    if (rc != -ESTALE)
        return rc;
    /* The upload of a bucket with a backend gives the same bytes another tag. */
    _cleanup_free_ char *etag = same_bytes_etag(t->client, t->bucket, e->key, e->size, e->checksum);
    return etag != NULL && strcmp(etag, e->etag) != 0 ? fetch(t, e, etag, &range, sink) : rc;
}

/* ---- room ---- */

static uint64_t int_at(json_t *obj, const char *field)
{
    return (uint64_t)json_integer_value(json_object_get(obj, field));
}

int tree_room(struct tree *t, struct tree_room *room)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    if (dfc_cluster_show(t->client, NULL, &text, &err) != DFC_OK)
        return errors_told(t->bucket, &err);
    _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
    size_t i;
    json_t *node;
    *room = (struct tree_room){0};
    json_array_foreach(json_object_get(doc, "nodes"), i, node)
    {
        json_t *capacity = json_object_get(node, "capacity");
        room->total_bytes += int_at(capacity, "total_bytes");
        room->available_bytes += int_at(capacity, "available_bytes");
    }
    return 0;
}
