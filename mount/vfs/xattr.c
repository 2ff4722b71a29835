/* The extended attributes of vfs.h.  Of a file: user.dfc.etag, .version, .checksum, and its user
 * metadata as user.meta.NAME.  Of the root: user.dfc.pid, the process that serves the mount. */
#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"

#define OWN "user.dfc."
#define META "user.meta."
#define PID OWN "pid"

static const char *const own_names[] = {OWN "etag", OWN "version", OWN "checksum"};

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

int vfs_getxattr(struct vfs *v, uint64_t id, const char *name, char **value, size_t *size)
{
    struct dfc_object_info *info;
    const struct node *node = nodes_of(&v->nodes, id);
    *value = NULL;
    if (node == &v->nodes.root && strcmp(name, PID) == 0) {
        *value = xprintf("%d", (int)getpid());
    } else if (!node->is_directory &&
               (strncmp(name, OWN, strlen(OWN)) == 0 || strncmp(name, META, strlen(META)) == 0)) {
        int rc = tree_head(&v->tree, node->key, &info);
        if (rc != 0)
            return rc;
        *value = own_value(info, name);
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
    struct buf out = BUF_INIT;
    const struct node *node = nodes_of(&v->nodes, id);
    if (node == &v->nodes.root)
        put_name(&out, PID, "");
    if (!node->is_directory) {
        int rc = tree_head(&v->tree, node->key, &info);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++) {
            _cleanup_free_ char *value = own_value(info, own_names[i]);
            if (value != NULL)
                put_name(&out, own_names[i], "");
        }
        for (size_t i = 0; i < info->meta_count; i++)
            put_name(&out, META, info->meta[i].name);
        dfc_object_info_free(info);
    }
    *size = out.len;
    *names = buf_steal(&out);
    return 0;
}
