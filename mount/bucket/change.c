#include "mount/bucket/change.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "common/backoff.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "mount/bucket/errors.h"
#include "mount/bucket/names.h"
#include "mount/bucket/tree.h"

#define RENAME_TRIES 8
#define MARK_TYPE "application/x-directory" /* as programs of S3 mark directories */

static const struct backoff pauses = {.first_ms = 100, .max_ms = 2000};

/* ---- directories ---- */

static int mark_put(struct tree *t, const char *prefix)
{
    struct dfc_error err;
    const struct dfc_put_options options = {.if_absent = true, .content_type = MARK_TYPE};
    if (dfc_put_memory(t->client, t->bucket, prefix, "", 0, &options, NULL, &err) == DFC_OK)
        return 0;
    return err.result == DFC_PRECONDITION ? -EEXIST : errors_told(prefix, &err);
}

/* That the name is gone is done, whatever becomes of the mark. */
void tree_keep(struct tree *t, const char *prefix)
{
    enum tree_begins found;
    if (strcmp(prefix, t->prefix) == 0)
        return;
    int rc = tree_begins(t, prefix, &found);
    if (rc == 0 && found == TREE_BEGINS_NO)
        rc = mark_put(t, prefix);
    if (rc != 0 && rc != -EEXIST)
        log_warn("an empty directory could not be marked", lstr("directory", prefix),
                 li64("error", -rc));
}

int tree_mkdir(struct tree *t, const char *prefix, const char *name)
{
    _cleanup_free_ char *directory = name_directory(prefix, name);
    return mark_put(t, directory);
}

/* What is in the directory besides its mark: 0, -ENOTEMPTY, -ENOENT where it has no mark, too. */
static int directory_is_empty(struct tree *t, const char *directory)
{
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_entry *e;
    const struct dfc_list_options options = {.prefix = directory, .page_size = 2};
    if (dfc_list_open(t->client, t->bucket, &options, &list, &err) != DFC_OK)
        return errors_told(directory, &err);
    int rc, found = -ENOENT;
    while ((rc = dfc_list_next(list, &e, &err)) > 0 && found != -ENOTEMPTY)
        found = strcmp(e->name, directory) == 0 ? 0 : -ENOTEMPTY;
    if (rc < 0)
        found = errors_told(directory, &err);
    else if (dfc_list_incomplete(list) && found != -ENOTEMPTY)
        found = -EIO;
    dfc_list_close(list);
    return found;
}

int tree_rmdir(struct tree *t, const char *prefix, const char *name)
{
    struct dfc_error err;
    _cleanup_free_ char *directory = name_directory(prefix, name);
    int rc = directory_is_empty(t, directory);
    if (rc != 0)
        return rc;
    if (dfc_delete(t->client, t->bucket, directory, &err) != DFC_OK)
        return errors_told(directory, &err);
    tree_keep(t, prefix);
    return 0;
}

/* ---- files ---- */

int tree_delete(struct tree *t, const char *key)
{
    struct dfc_error err;
    return dfc_delete(t->client, t->bucket, key, &err) == DFC_OK ? 0 : errors_told(key, &err);
}

int tree_unlink(struct tree *t, const char *prefix, const char *name)
{
    _cleanup_free_ char *key = name_file(prefix, name);
    int rc = tree_delete(t, key);
    if (rc == 0)
        tree_keep(t, prefix);
    return rc;
}

static int rename_repeat(struct tree *t, const char *from, const char *to)
{
    struct dfc_error err;
    struct dfc_object_info *info;
    for (unsigned tries = 1;; tries++) {
        int rc = dfc_rename(t->client, t->bucket, from, to, &err);
        if (rc == DFC_OK)
            return 0;
        if (rc == DFC_NOT_FOUND && tries > 1 && tree_head(t, to, &info) == 0) {
            dfc_object_info_free(info); /* the try before has done it */
            return 0;
        }
        if ((rc != DFC_UNREACHABLE && rc != DFC_TIMED_OUT) || tries == RENAME_TRIES)
            return errors_told(from, &err);
        poll(NULL, 0, (int)backoff_ms(&pauses, tries));
    }
}

/* Is the name a directory?  1, 0 also where there is nothing, -errno. */
static int is_directory(struct tree *t, const struct tree_name *n)
{
    enum tree_begins found;
    _cleanup_free_ char *directory = name_directory(n->prefix, n->name);
    int rc = tree_begins(t, directory, &found);
    if (rc != 0)
        return rc == -ENOENT ? 0 : rc;
    return found == TREE_BEGINS_UNKNOWN ? -EIO : found == TREE_BEGINS_YES;
}

int tree_rename(struct tree *t, const struct tree_name *from, const struct tree_name *to)
{
    int rc = is_directory(t, from);
    if (rc != 0)
        return rc > 0 ? -EXDEV : rc;
    rc = is_directory(t, to);
    if (rc != 0)
        return rc > 0 ? -EISDIR : rc;
    _cleanup_free_ char *old = name_file(from->prefix, from->name);
    _cleanup_free_ char *new = name_file(to->prefix, to->name);
    rc = rename_repeat(t, old, new);
    if (rc == 0)
        tree_keep(t, from->prefix);
    return rc;
}
