#include "mount/plogs/plogs_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/failure.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/internal_name.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "mount/bucket/errors.h"
#include "mount/bucket/names.h"

#define OWN "user.dfc."
#define OBJECT OWN "object"
#define PID OWN "pid"
#define SUPERVISOR OWN "supervisor"
#define STATS OWN "stats"
#define BLOCK 4096

int plogs_told(const char *key, const struct dfc_error *err)
{
    const int rc = errors_told(key, err);
    if (err->result != DFC_INVALID || rc != -ENOENT)
        return rc;
    log_warn("call failed", lstr("of", key), lstr("code", err->code), lstr("error", err->message));
    return -EOPNOTSUPP;
}

int plogs_check_name(const struct plogs *p, const struct plog_node *parent, const char *name)
{
    if (p->options.read_only)
        return -EROFS;
    if (!name_is_shown(name, strlen(name)))
        return strlen(name) > NAME_MAX_BYTES ? -ENAMETOOLONG : -EPERM;
    _cleanup_free_ char *key = name_file(parent->key, name);
    return name_is_internal(key) ? -EPERM : name_check_key(key);
}

static int open_segments(struct plogs *p, struct dfc_error *err)
{
    const struct plogs_options *o = &p->options;
    const struct segments_options how = {.buffer_bytes = o->buffer_bytes,
                                         .readahead_bytes = o->readahead_bytes,
                                         .fetchers = o->fetchers,
                                         .cache = {.directories = o->cache_directories,
                                                   .bytes = o->cache_bytes,
                                                   .free_percent = o->cache_free_percent,
                                                   .idle_ms = o->cache_idle_ms}};
    const struct data_store store = {.context = &p->tree, .fetch = segments_fetch};
    struct error told = ERROR_INIT;
    _cleanup_free_ char *scope = tree_scope(&p->tree);
    if (segments_open(&how, &store, scope, &p->segments, &told) != 0)
        return failure_common(err, DFC_LOCAL, &told);
    p->reader = (struct dfc_plog_reader){.context = p->segments, .read = segments_read};
    return DFC_OK;
}

int plogs_open(const struct plogs_options *options, struct dfc_client *client, struct plogs **out,
               struct dfc_error *err)
{
    const struct dfc_plog_pool_options pool = {.memory_bytes = options->memory_bytes,
                                               .refresh_ms = options->refresh_ms};
    struct plogs *p = xcalloc(1, sizeof *p);
    p->options = *options;
    p->client = client;
    p->opened_s = clock_wall_ms() / 1000;
    int rc = tree_open(&p->tree, client, options->bucket, options->prefix, err);
    if (rc == DFC_OK)
        rc = open_segments(p, err);
    if (rc == DFC_OK)
        rc = dfc_plog_pool_open(&pool, &p->pool, err);
    if (rc != DFC_OK) {
        segments_close(p->segments);
        tree_close(&p->tree);
        free(p);
        return rc;
    }
    plog_nodes_init(&p->nodes, options->prefix);
    pthread_mutex_init(&p->files_lock, NULL);
    *out = p;
    return DFC_OK;
}

int plogs_close(struct plogs *p)
{
    int rc = 0;
    if (p == NULL)
        return 0;
    while (p->files != NULL) {
        const int one = plogs_flush(p->files);
        rc = rc == 0 ? one : rc;
        plogs_closefile(p->files);
    }
    plog_nodes_done(&p->nodes);
    dfc_plog_pool_close(p->pool);
    dfc_client_cancel(p->client); /* all is stored: what is read ahead is not waited for */
    segments_close(p->segments);
    pthread_mutex_destroy(&p->files_lock);
    tree_close(&p->tree);
    free(p);
    return rc;
}

int plogs_statfs(struct plogs *p, struct statvfs *out)
{
    struct tree_room room;
    const int rc = tree_room(&p->tree, &room);
    if (rc != 0)
        return rc;
    *out = (struct statvfs){.f_bsize = BLOCK,
                            .f_frsize = BLOCK,
                            .f_blocks = room.total_bytes / BLOCK,
                            .f_bfree = room.available_bytes / BLOCK,
                            .f_bavail = room.available_bytes / BLOCK,
                            .f_namemax = NAME_MAX_BYTES};
    return 0;
}

static char *stats(const struct plogs *p)
{
    struct buf text = BUF_INIT;
    metric_set(metric_get(M_mount_buffer_used_bytes, NULL), (int64_t)segments_used(p->segments));
    metrics_text_used(&text);
    return buf_steal(&text);
}

/* NULL: the root has no such, or the supervisor has died. */
static char *root_value(const struct plogs *p, const char *name)
{
    if (strcmp(name, PID) == 0)
        return xprintf("%d", (int)getpid());
    if (strcmp(name, SUPERVISOR) == 0 && p->options.supervisor == getppid())
        return xprintf("%d", (int)p->options.supervisor);
    return strcmp(name, STATS) == 0 ? stats(p) : NULL;
}

int plogs_getxattr(struct plogs *p, uint64_t id, const char *name, char **value)
{
    struct plog_node *node = plog_nodes_of(&p->nodes, id);
    *value = NULL;
    if (strcmp(name, OBJECT) == 0) {
        pthread_rwlock_rdlock(&node->use);
        *value = xprintf("dfc://%s/%s", p->tree.bucket, node->key);
        pthread_rwlock_unlock(&node->use);
    } else if (node == &p->nodes.root) {
        *value = root_value(p, name);
    }
    return *value != NULL ? 0 : -ENODATA;
}

static void put_name(struct buf *out, const char *name)
{
    buf_append(out, name, strlen(name) + 1);
}

void plogs_listxattr(struct plogs *p, uint64_t id, char **names, size_t *size)
{
    struct buf out = BUF_INIT;
    put_name(&out, OBJECT);
    if (plog_nodes_of(&p->nodes, id) == &p->nodes.root) {
        put_name(&out, PID);
        if (p->options.supervisor == getppid())
            put_name(&out, SUPERVISOR);
    }
    *size = out.len;
    *names = buf_steal(&out);
}
