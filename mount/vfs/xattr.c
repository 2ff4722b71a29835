/* The extended attributes of vfs.h.  Of all: user.dfc.object, the name in the cluster.  Of a file:
 * user.dfc.etag, .version, .checksum, .cached_bytes, and its user metadata as user.meta.NAME.  Of
 * the root: user.dfc.pid, the process that serves the mount, user.dfc.supervisor, which starts
 * another one when it dies, and user.dfc.stats, the mount's metrics, which is in no list. */
#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"

#define OWN "user.dfc."
#define META "user.meta."
#define OBJECT OWN "object"
#define PID OWN "pid"
#define STATS OWN "stats"
#define CACHED OWN "cached_bytes"
#define SUPERVISOR OWN "supervisor"

static const char *const own_names[] = {OWN "etag", OWN "version", OWN "checksum"};

/* How much of the present version the disk cache has; NULL: there is no disk cache. */
static char *cached_value(struct vfs *v, const char *key, const struct dfc_object_info *info)
{
    if (v->tiers.cache == NULL)
        return NULL;
    _cleanup_(entity_unrefp)
    struct entity *e = tree_entity(key, info);
    return xprintf("%" PRIu64, tiers_cached(&v->tiers, e, 0, e->size));
}

/* NULL: the object has no such. */
static char *own_value(const struct dfc_object_info *info, const char *name)
{
    const char *const values[] = {info->etag, info->version, info->checksum};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strcmp(name, own_names[i]) != 0 || values[i][0] == '\0')
            continue;
        return values[i] == info->checksum ? xprintf("%s:%s", info->checksum_type, info->checksum)
                                           : xstrdup(values[i]);
    }
    if (strncmp(name, META, strlen(META)) != 0)
        return NULL;
    for (size_t i = 0; i < info->meta_count; i++) {
        if (strcasecmp(name + strlen(META), info->meta[i].name) == 0)
            return xstrdup(info->meta[i].value);
    }
    return NULL;
}

/* NULL: the root has no such, or the supervisor has died. */
static char *root_value(struct vfs *v, const char *name)
{
    if (strcmp(name, PID) == 0)
        return xprintf("%d", (int)getpid());
    if (strcmp(name, STATS) == 0)
        return vfs_stats(v);
    if (strcmp(name, SUPERVISOR) == 0 && v->options.supervisor == getppid())
        return xprintf("%d", (int)v->options.supervisor);
    return NULL;
}

int vfs_getxattr(struct vfs *v, uint64_t id, const char *name, char **value, size_t *size)
{
    struct dfc_object_info *info;
    const struct node *node = nodes_of(&v->nodes, id);
    *value = NULL;
    if (strcmp(name, OBJECT) == 0) {
        *value = xprintf("dfc://%s/%s", v->tree.bucket, node->key);
    } else if (node == &v->nodes.root) {
        *value = root_value(v, name);
    } else if (!node->is_directory && !node->is_draft &&
               (strncmp(name, OWN, strlen(OWN)) == 0 || strncmp(name, META, strlen(META)) == 0)) {
        int rc = tree_head(&v->tree, node->key, &info);
        if (rc != 0)
            return rc == -ENOENT ? -ESTALE : rc;
        *value =
            strcmp(name, CACHED) == 0 ? cached_value(v, node->key, info) : own_value(info, name);
        dfc_object_info_free(info);
    }
    if (*value == NULL)
        return -ENODATA;
    *size = strlen(*value);
    return 0;
}

static void put_name(struct buf *out, const char *prefix, const char *name)
{
    buf_printf(out, "%s%s", prefix, name);
    buf_append(out, "", 1);
}

int vfs_listxattr(struct vfs *v, uint64_t id, char **names, size_t *size)
{
    struct dfc_object_info *info;
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    const struct node *node = nodes_of(&v->nodes, id);
    put_name(&out, OBJECT, "");
    if (node == &v->nodes.root)
        put_name(&out, PID, "");
    if (node == &v->nodes.root && v->options.supervisor == getppid())
        put_name(&out, SUPERVISOR, "");
    if (!node->is_directory && !node->is_draft) {
        int rc = tree_head(&v->tree, node->key, &info);
        if (rc != 0)
            return rc == -ENOENT ? -ESTALE : rc;
        for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++) {
            _cleanup_free_ char *value = own_value(info, own_names[i]);
            if (value != NULL)
                put_name(&out, own_names[i], "");
        }
        if (v->tiers.cache != NULL)
            put_name(&out, CACHED, "");
        for (size_t i = 0; i < info->meta_count; i++)
            put_name(&out, META, info->meta[i].name);
        dfc_object_info_free(info);
    }
    *size = out.len;
    *names = buf_steal(&out);
    return 0;
}
