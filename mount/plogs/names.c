#include "mount/plogs/plogs_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/bucket/change.h"
#include "mount/bucket/names.h"

int plogs_mkdir(struct plogs *p, uint64_t parent, const char *name, uint64_t *id, struct stat *st)
{
    struct plog_node *in = plog_nodes_of(&p->nodes, parent);
    int rc = plogs_check_name(p, in, name);
    if (rc == 0)
        rc = tree_mkdir(&p->tree, in->key, name);
    return rc == 0 ? plogs_lookup(p, parent, name, id, st) : rc;
}

static void forget_name(struct plogs *p, const char *key)
{
    struct plog_node *node = plog_nodes_find(&p->nodes, key);
    if (node == NULL)
        return;
    plog_nodes_remove(&p->nodes, node);
    plog_nodes_forget(&p->nodes, node, 1);
}

int plogs_rmdir(struct plogs *p, uint64_t parent, const char *name)
{
    const struct plog_node *in = plog_nodes_of(&p->nodes, parent);
    int rc = plogs_check_name(p, in, name);
    if (rc != 0)
        return rc;
    rc = tree_rmdir(&p->tree, in->key, name);
    _cleanup_free_ char *directory = name_directory(in->key, name);
    if (rc == 0)
        forget_name(p, directory);
    return rc;
}

/* ---- unlink ---- */

/* An error after which the name is gone is one of the container, which the log names. */
static int remove_object(struct plogs *p, const struct plog_node *node)
{
    struct dfc_error err, why;
    struct dfc_plog_glance g;
    if (node->is_flat)
        return tree_delete(&p->tree, node->key);
    if (dfc_plog_unlink(p->client, p->tree.bucket, node->key, &why) == DFC_OK)
        return 0;
    const int rc = plogs_told(node->key, &why);
    if (why.result == DFC_NOT_FOUND)
        return rc;
    return dfc_plog_glance(p->client, p->tree.bucket, node->key, &g, &err) == DFC_NOT_FOUND ? 0
                                                                                            : rc;
}

int plogs_unlink(struct plogs *p, uint64_t parent, const char *name)
{
    const struct plog_node *in = plog_nodes_of(&p->nodes, parent);
    struct plog_node *node;
    struct stat st;
    int rc = plogs_check_name(p, in, name);
    if (rc == 0)
        rc = plogs_find(p, in, name, &node, &st);
    if (rc != 0)
        return rc;
    pthread_rwlock_wrlock(&node->use);
    rc = node->is_directory ? -EISDIR : remove_object(p, node);
    if (rc == 0)
        plogs_end_removed(p, node); /* what was not synced is not stored: the store may be full */
    pthread_rwlock_unlock(&node->use);
    plog_nodes_forget(&p->nodes, node, 1);
    if (rc == 0)
        tree_keep(&p->tree, in->key);
    return rc;
}

/* ---- rename ---- */

/* A rename whose reply was lost is done if the new name is the file's and the old one is gone. */
static int rename_object(struct plogs *p, const struct plog_node *node, const char *key)
{
    struct dfc_error err, why;
    struct dfc_plog_glance g;
    if (dfc_plog_rename(p->client, p->tree.bucket, node->key, key, &why) == DFC_OK)
        return 0;
    const int rc = plogs_told(node->key, &why);
    if (node->is_flat || dfc_plog_glance(p->client, p->tree.bucket, key, &g, &err) != DFC_OK)
        return rc;
    const bool is_done =
        strcmp(g.id, node->version) == 0 &&
        dfc_plog_glance(p->client, p->tree.bucket, node->key, &g, &err) == DFC_NOT_FOUND;
    return is_done ? 0 : rc;
}

static int rename_node(struct plogs *p, struct plog_node *node, const char *key)
{
    pthread_rwlock_wrlock(&node->use);
    int rc = node->is_gone ? -ENOENT : rename_object(p, node, key);
    if (rc == 0) {
        plog_nodes_rename(&p->nodes, node, key);
        if (node->writer != NULL)
            dfc_plog_renamed(node->writer, key);
        plogs_rename_readers(p, node);
    }
    pthread_rwlock_unlock(&node->use);
    return rc;
}

/* The file that had the new name is gone, with what was not synced. */
static int rename_over(struct plogs *p, struct plog_node *node, const char *key)
{
    struct plog_node *before = plog_nodes_find(&p->nodes, key);
    const int rc = rename_node(p, node, key);
    if (before == NULL)
        return rc;
    if (rc == 0) {
        pthread_rwlock_wrlock(&before->use);
        plogs_end_removed(p, before);
        pthread_rwlock_unlock(&before->use);
    }
    plog_nodes_forget(&p->nodes, before, 1);
    return rc;
}

static int is_directory(struct plogs *p, const char *prefix)
{
    enum tree_begins found;
    const int rc = tree_begins(&p->tree, prefix, &found);
    if (rc != 0)
        return rc == -ENOENT ? 0 : rc;
    return found == TREE_BEGINS_UNKNOWN ? -EIO : found == TREE_BEGINS_YES;
}

int plogs_rename(struct plogs *p, uint64_t parent, const char *name, uint64_t new_parent,
                 const char *new_name)
{
    const struct plog_node *in = plog_nodes_of(&p->nodes, parent);
    const struct plog_node *to = plog_nodes_of(&p->nodes, new_parent);
    struct plog_node *node;
    struct stat st;
    int rc = plogs_check_name(p, in, name);
    if (rc == 0)
        rc = plogs_check_name(p, to, new_name);
    if (rc == 0)
        rc = plogs_find(p, in, name, &node, &st);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *key = name_file(to->key, new_name);
    _cleanup_free_ char *directory = name_directory(to->key, new_name);
    rc = node->is_directory ? -EXDEV : is_directory(p, directory);
    rc = rc > 0 ? -EISDIR : rc;
    if (rc == 0 && strcmp(node->key, key) != 0) {
        rc = rename_over(p, node, key);
        if (rc == 0)
            tree_keep(&p->tree, in->key);
    }
    plog_nodes_forget(&p->nodes, node, 1);
    return rc;
}
