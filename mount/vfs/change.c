/* The names of vfs.h that come and go. */
#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "mount/bucket/change.h"
#include "mount/bucket/names.h"

/* The prefix of the directory, if names in it may change. */
static int writable_directory(struct vfs *v, uint64_t id, const char **prefix)
{
    const struct node *node = nodes_of(&v->nodes, id);
    if (v->writers == NULL)
        return -EROFS;
    *prefix = node->key;
    return node->is_directory ? 0 : -ENOTDIR;
}

int vfs_new_key(struct vfs *v, uint64_t parent, const char *name, char **key)
{
    const char *prefix;
    int rc = writable_directory(v, parent, &prefix);
    if (rc != 0)
        return rc;
    if (!name_is_shown(name, strlen(name)))
        return strlen(name) > NAME_MAX_BYTES ? -ENAMETOOLONG : -EINVAL;
    *key = name_file(prefix, name);
    rc = name_check_key(*key);
    if (rc != 0)
        free(steal(*key));
    return rc;
}

int vfs_unlink(struct vfs *v, uint64_t parent, const char *name)
{
    const char *prefix;
    int rc = writable_directory(v, parent, &prefix);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *key = name_file(prefix, name);
    struct node *draft = drafts_unlink_begin(&v->drafts, key);
    rc = tree_unlink(&v->tree, prefix, name);
    if (draft == NULL)
        return rc;
    if (rc == -ENOENT) /* the object was not stored yet */
        rc = 0;
    drafts_unlink_end(&v->drafts, draft, rc == 0);
    return rc;
}

int vfs_mkdir(struct vfs *v, uint64_t parent, const char *name, uint64_t *node)
{
    _cleanup_free_ char *key = NULL;
    int rc = vfs_new_key(v, parent, name, &key);
    if (rc != 0)
        return rc;
    const char *prefix = nodes_of(&v->nodes, parent)->key;
    rc = tree_mkdir(&v->tree, prefix, name);
    if (rc != 0)
        return rc;
    const struct entry e = {.name = (char *)name, .is_directory = true, .version = (char *)""};
    return vfs_id_of(v, prefix, &e, node);
}

int vfs_rmdir(struct vfs *v, uint64_t parent, const char *name)
{
    const char *prefix;
    int rc = writable_directory(v, parent, &prefix);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *directory = name_directory(prefix, name);
    return drafts_below(&v->drafts, directory) ? -ENOTEMPTY : tree_rmdir(&v->tree, prefix, name);
}

int vfs_rename(struct vfs *v, const struct vfs_rename *r)
{
    const char *prefix;
    _cleanup_free_ char *new_key = NULL;
    int rc = writable_directory(v, r->parent, &prefix);
    if (rc == 0)
        rc = vfs_new_key(v, r->new_parent, r->new_name, &new_key);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *key = name_file(prefix, r->name);
    rc = drafts_idle(&v->drafts, key);
    if (rc != 0)
        return rc;
    const struct tree_name from = {.prefix = prefix, .name = r->name};
    const struct tree_name to = {.prefix = nodes_of(&v->nodes, r->new_parent)->key,
                                 .name = r->new_name};
    return tree_rename(&v->tree, &from, &to);
}
