#include "plog/plfs/shim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "plog/plfs/plfs.h"

/* --- errors ----------------------------------------------------------------------------------- */

static _Thread_local char last_message[sizeof((struct dfc_error *)NULL)->message];

const char *plfs_dfc_error(void)
{
    return last_message;
}

plfs_error_t shim_refuse(plfs_error_t error, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(last_message, sizeof last_message, fmt, ap);
    va_end(ap);
    return error;
}

plfs_error_t shim_fail(const struct dfc_error *err)
{
    static const struct {
        const char *code;
        plfs_error_t error;
    } codes[] = {{"exists", PLFS_EEXIST},    {"plog_busy", PLFS_EBUSY},
                 {"no_space", PLFS_ENOSPC},  {"quota_exceeded", PLFS_ENOSPC},
                 {"too_large", PLFS_EFBIG},  {"invalid_name", PLFS_EINVAL},
                 {"write_once", PLFS_EPERM}, {"not_supported", PLFS_ENOTSUP}};
    static const struct {
        int result;
        plfs_error_t error;
    } results[] = {{DFC_INVALID, PLFS_EINVAL},
                   {DFC_NOT_FOUND, PLFS_ENOENT},
                   {DFC_DENIED, PLFS_EACCES},
                   {DFC_CANCELLED, PLFS_EINTR}};
    shim_refuse(PLFS_EIO, "%s", err->message);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(codes[i].code, err->code) == 0)
            return codes[i].error;
    }
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i].result == err->result)
            return results[i].error;
    }
    return PLFS_EIO;
}

/* --- the client, paths ------------------------------------------------------------------------ */

/* A client of the process that this one was forked from.  It is left alone, since it has its
 * connections, and kept, so that it is not taken for a leak. */
struct inherited {
    struct dfc_client *client;
    struct inherited *next;
};

static struct {
    pthread_mutex_t lock;
    struct dfc_client *client;
    pid_t pid; /* whose it is */
    struct inherited *inherited;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock. */
static int open_client(struct dfc_error *err)
{
    if (process.client != NULL) {
        struct inherited *parent = xmalloc(sizeof *parent);
        *parent = (struct inherited){.client = process.client, .next = process.inherited};
        process.inherited = parent;
        process.client = NULL;
    }
    const int rc = dfc_client_open(NULL, &process.client, err);
    process.pid = rc == DFC_OK ? getpid() : 0;
    return rc;
}

plfs_error_t shim_client(struct dfc_client **client)
{
    struct dfc_error err;
    int rc = DFC_OK;
    pthread_mutex_lock(&process.lock);
    if (process.pid != getpid())
        rc = open_client(&err);
    *client = process.client;
    pthread_mutex_unlock(&process.lock);
    return rc == DFC_OK ? PLFS_SUCCESS : shim_fail(&err);
}

plfs_error_t shim_path(const char *path, bool may_be_bucket, struct plfs_path *out)
{
    const char *mount = getenv("DFC_PLFS_MOUNT");
    mount = mount != NULL ? mount : "/plfs";
    *out = (struct plfs_path){.key = NULL};
    if (!plfs_path_parse(path, mount, out))
        return shim_refuse(PLFS_EINVAL, "'%s' is no path below '%s' (DFC_PLFS_MOUNT), and no URL",
                           path, mount);
    if (out->key[0] == '\0' && !may_be_bucket)
        return shim_refuse(PLFS_EISDIR, "'%s' is a bucket", path);
    return PLFS_SUCCESS;
}

plfs_error_t shim_file(const char *path, struct plfs_path *p, struct dfc_client **client)
{
    const plfs_error_t error = shim_path(path, false, p);
    return error == PLFS_SUCCESS ? shim_client(client) : error;
}
