#include "plog/plfs/directory.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "plog/plfs/plfs.h"

/* "" for the bucket, else with a slash; malloc'ed. */
static char *prefix_of(const struct plfs_path *p)
{
    return p->key[0] == '\0' ? xstrdup("") : xprintf("%s/", p->key);
}

plfs_error_t shim_directory(struct dfc_client *client, const struct plfs_path *p, bool *is_there,
                            bool *is_empty)
{
    _cleanup_free_ char *prefix = prefix_of(p);
    const struct dfc_list_options options = {.prefix = prefix, .page_size = 2};
    const struct dfc_entry *entry;
    struct dfc_list *list;
    struct dfc_error err;
    int rc = dfc_list_open(client, p->bucket, &options, &list, &err);
    if (rc != DFC_OK)
        return shim_fail(&err);
    *is_there = p->key[0] == '\0';
    *is_empty = true;
    while (*is_empty && (rc = dfc_list_next(list, &entry, &err)) > 0) {
        *is_there = true;
        *is_empty = strcmp(entry->name, prefix) == 0;
    }
    dfc_list_close(list);
    return rc >= 0 ? PLFS_SUCCESS : shim_fail(&err);
}

plfs_error_t plfs_mkdir(const char *path, mode_t mode)
{
    _cleanup_plfs_path_ struct plfs_path p;
    const struct dfc_put_options absent = {.if_absent = true};
    struct stat st;
    struct dfc_client *client;
    struct dfc_error err;
    (void)mode;
    plfs_error_t error = shim_file(path, &p, &client);
    if (error != PLFS_SUCCESS)
        return error;
    error = plfs_getattr(NULL, path, &st, 0);
    if (error == PLFS_SUCCESS)
        return shim_refuse(PLFS_EEXIST, "'%s' exists", p.key);
    if (error != PLFS_ENOENT)
        return error;
    _cleanup_free_ char *mark = prefix_of(&p);
    const int rc = dfc_put_memory(client, p.bucket, mark, "", 0, &absent, NULL, &err);
    if (rc == DFC_PRECONDITION)
        return shim_refuse(PLFS_EEXIST, "'%s' exists", p.key);
    return rc == DFC_OK ? PLFS_SUCCESS : shim_fail(&err);
}

plfs_error_t plfs_rmdir(const char *path)
{
    _cleanup_plfs_path_ struct plfs_path p;
    struct dfc_client *client;
    struct dfc_error err;
    bool is_there, is_empty;
    plfs_error_t error = shim_file(path, &p, &client);
    if (error == PLFS_SUCCESS)
        error = shim_directory(client, &p, &is_there, &is_empty);
    if (error != PLFS_SUCCESS)
        return error;
    if (!is_there)
        return shim_refuse(PLFS_ENOENT, "directory '%s' does not exist", p.key);
    if (!is_empty)
        return shim_refuse(PLFS_ENOTEMPTY, "directory '%s' is not empty", p.key);
    _cleanup_free_ char *mark = prefix_of(&p);
    return dfc_delete(client, p.bucket, mark, &err) == DFC_OK ? PLFS_SUCCESS : shim_fail(&err);
}

/* --- entries ---------------------------------------------------------------------------------- */

struct Plfs_dirp {
    struct dfc_list *list;
    char *prefix;
    char *next; /* that did not fit; NULL: none */
};

plfs_error_t plfs_opendir_c(const char *path, Plfs_dirp **dir)
{
    _cleanup_plfs_path_ struct plfs_path p;
    struct dfc_client *client;
    struct dfc_error err;
    bool is_there = false, is_empty;
    plfs_error_t error = shim_path(path, true, &p);
    if (error == PLFS_SUCCESS)
        error = shim_client(&client);
    if (error == PLFS_SUCCESS)
        error = shim_directory(client, &p, &is_there, &is_empty);
    if (error != PLFS_SUCCESS)
        return error;
    if (!is_there)
        return shim_refuse(PLFS_ENOENT, "directory '%s' does not exist", p.key);
    struct Plfs_dirp *d = xcalloc(1, sizeof *d);
    d->prefix = prefix_of(&p);
    const struct dfc_list_options options = {.prefix = d->prefix, .delimiter = "/"};
    if (dfc_list_open(client, p.bucket, &options, &d->list, &err) != DFC_OK) {
        free(d->prefix);
        free(d);
        return shim_fail(&err);
    }
    *dir = d;
    return PLFS_SUCCESS;
}

/* d->next is the next name; NULL at the end. */
static plfs_error_t find_next(Plfs_dirp *d)
{
    const struct dfc_entry *entry;
    struct dfc_error err;
    int rc = 1;
    while (d->next == NULL && (rc = dfc_list_next(d->list, &entry, &err)) > 0) {
        const char *name = entry->name + strlen(d->prefix);
        size_t len = strlen(name);
        if (entry->is_prefix && len > 0)
            len--;
        if (len > 0) /* else it is the mark */
            d->next = xstrndup(name, len);
    }
    return rc >= 0 ? PLFS_SUCCESS : shim_fail(&err);
}

plfs_error_t plfs_readdir_c(Plfs_dirp *d, char *name, size_t size)
{
    if (size == 0)
        return shim_refuse(PLFS_EINVAL, "there is no room for a name");
    name[0] = '\0';
    const plfs_error_t error = find_next(d);
    if (error != PLFS_SUCCESS || d->next == NULL)
        return error;
    if (strlen(d->next) >= size)
        return shim_refuse(PLFS_ENAMETOOLONG, "'%s' needs %zu bytes of room", d->next,
                           strlen(d->next) + 1);
    memcpy(name, d->next, strlen(d->next) + 1);
    free(d->next);
    d->next = NULL;
    return PLFS_SUCCESS;
}

plfs_error_t plfs_closedir_c(Plfs_dirp *d)
{
    if (d == NULL)
        return PLFS_SUCCESS;
    dfc_list_close(d->list);
    free(d->prefix);
    free(d->next);
    free(d);
    return PLFS_SUCCESS;
}
