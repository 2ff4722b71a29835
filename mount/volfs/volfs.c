#include "mount/volfs/volfs.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/condition.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "mount/volfs/volfs_parts.h"
#include "mount/volume/trees/trees.h"

#define STAT_BLOCK 4096

/* ---- life ---- */

int volfs_open(const struct volfs_options *options, struct volume *volume,
               const struct volfs_store *store, struct volfs **out, struct error *err)
{
    struct volfs *v = xcalloc(1, sizeof *v);
    const struct buffer_options buffer = {
        .bytes = options->buffer_bytes,
        .fetchers = options->fetchers,
    };
    v->options = *options;
    v->volume = volume;
    atomic_init(&v->cleans_from, UINT64_MAX);
    int rc = cached_open(&v->cached, &options->cache, volume_format(volume)->id, store, err);
    struct ledger *ledger = rc == 0 ? ledger_open(options->ledger) : NULL;
    if (rc == 0 && ledger == NULL) {
        cached_close(&v->cached);
        rc = error_errno(err, errno, "memory for the kernel's numbers");
    }
    if (rc != 0) {
        free(v);
        return rc;
    }
    const struct volfs_store kept = cached_store(&v->cached);
    const struct data_store compared = cached_reads(&v->cached);
    bool ready = pendings_init(&v->pendings, volume, &kept, options->write_bytes, options->uploads);
    objects_init(&v->objects);
    handles_init(&v->handles, ledger);
    v->ledger = ledger;
    v->pendings.ledger = ledger;
    pthread_mutex_init(&v->lock, NULL);
    condition_init(&v->news);
    v->buffer = ready ? buffer_new(&buffer, &compared) : NULL;
    v->has_heart = v->buffer != NULL && pthread_create(&v->heart, NULL, volfs_heart, v) == 0;
    v->has_upkeep = v->has_heart && pthread_create(&v->upkeep, NULL, volfs_upkeep, v) == 0;
    v->has_cleaner = v->has_upkeep && pthread_create(&v->cleaner, NULL, volfs_cleaner, v) == 0;
    if (!v->has_cleaner) {
        volfs_close(v);
        return error_set(err, E_OVERLOAD, "no thread could be started that moves data");
    }
    volfs_restore(v);
    *out = v;
    return 0;
}

void volfs_close(struct volfs *v)
{
    pthread_mutex_lock(&v->lock);
    v->ends = true;
    pthread_cond_broadcast(&v->news);
    pthread_mutex_unlock(&v->lock);
    if (v->has_heart)
        pthread_join(v->heart, NULL);
    if (v->has_upkeep)
        pthread_join(v->upkeep, NULL);
    if (v->has_cleaner)
        pthread_join(v->cleaner, NULL);
    handles_done(&v->handles);
    buffer_free(v->buffer);
    pendings_done(&v->pendings);
    objects_done(&v->objects);
    cached_close(&v->cached);
    ledger_close(v->ledger);
    free(v->lost);
    pthread_cond_destroy(&v->news);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

int volfs_sync(struct volfs *v)
{
    return pendings_commit(&v->pendings, UINT64_MAX);
}

const uint64_t *volfs_lost(const struct volfs *v, size_t *count)
{
    *count = v->lost_count;
    return v->lost;
}

struct volume *volfs_volume(struct volfs *v)
{
    return v->volume;
}

/* ---- attributes ---- */

static struct timespec time_of(int64_t ns)
{
    int64_t s = ns / 1000000000, rest = ns % 1000000000;
    return (struct timespec){rest < 0 ? s - 1 : s, rest < 0 ? rest + 1000000000 : rest};
}

static void fill_stat(uint64_t ino, const struct attr *a, struct stat *st)
{
    *st = (struct stat){
        .st_ino = ino,
        .st_mode = a->mode,
        .st_nlink = (nlink_t)a->nlink,
        .st_uid = a->uid,
        .st_gid = a->gid,
        .st_rdev = a->rdev,
        .st_size = attr_is_directory(a) ? STAT_BLOCK : a->length,
        .st_blksize = ENTITY_BLOCK,
        .st_blocks = attr_is_directory(a) ? STAT_BLOCK / 512 : (a->length + 511) / 512,
        .st_atim = time_of(a->atime_ns),
        .st_mtim = time_of(a->mtime_ns),
        .st_ctim = time_of(a->ctime_ns),
    };
}

void volfs_stat(struct volfs *v, const struct volume_inode *inode, struct stat *st)
{
    struct pending *p =
        S_ISREG(inode->attr.mode) ? pending_take(&v->pendings, inode->ino, false) : NULL;
    struct attr a = inode->attr;
    if (p != NULL) {
        pthread_mutex_lock(&p->lock);
        pending_show(p, &a);
        pthread_mutex_unlock(&p->lock);
    }
    pending_give(&v->pendings, p);
    fill_stat(inode->ino, &a, st);
}

/* A commit between the two would hide bytes: the lock is held. */
int volfs_getattr(struct volfs *v, uint64_t ino, struct stat *st)
{
    struct attr a = {0};
    struct pending *p = pending_take(&v->pendings, ino, false);
    if (p != NULL)
        pthread_mutex_lock(&p->lock);
    int rc = volume_getattr(v->volume, ino, &a);
    if (p != NULL) {
        pending_show(p, &a);
        pthread_mutex_unlock(&p->lock);
    }
    pending_give(&v->pendings, p);
    if (rc == 0)
        fill_stat(ino, &a, st);
    return rc;
}

/* What was written before comes before: its length, and its time. */
int volfs_setattr(struct volfs *v, uint64_t ino, const struct volume_set *set, struct stat *st)
{
    struct attr a;
    struct pending *p = pending_take(&v->pendings, ino, false);
    int rc = 0;
    if (p != NULL) {
        pthread_mutex_lock(&p->lock);
        rc = pending_commit(&v->pendings, p);
        rc = rc == PENDING_REFUSED ? 0 : rc; /* the handles are told */
    }
    if (rc == 0)
        rc = volume_setattr(v->volume, ino, set, &a);
    if (p != NULL)
        pthread_mutex_unlock(&p->lock);
    pending_give(&v->pendings, p);
    if (rc == 0)
        fill_stat(ino, &a, st);
    return rc;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What is used is that of the directory's quota, if there is one; what is left is left in both. */
static int use_of(struct volfs *v, uint64_t ino, struct volume_use *use)
{
    struct volume_quota quota;
    int rc = volume_use(v->volume, use);
    if (rc == 0)
        rc = volume_quota_of(v->volume, ino, &quota);
    if (rc != 0)
        return rc == -ENODATA ? 0 : rc;
    *use = (struct volume_use){
        .inodes = quota.inodes,
        .bytes = quota.bytes,
        .inodes_left = least(use->inodes_left, quota.inodes_left),
        .bytes_left = least(use->bytes_left, quota.bytes_left),
    };
    return 0;
}

/* Without a limit the volume shows 1 PiB, and 2^32 inodes. */
int volfs_statfs(struct volfs *v, uint64_t ino, struct statvfs *out)
{
    struct volume_use use;
    const int64_t most_inodes = 1LL << 32;
    int rc = use_of(v, ino, &use);
    if (rc != 0)
        return rc;
    int64_t bytes = use.bytes_left < VOLUME_FREE_BYTES ? use.bytes_left : VOLUME_FREE_BYTES;
    int64_t inodes = use.inodes_left < most_inodes ? use.inodes_left : most_inodes;
    bytes = bytes > 0 ? bytes : 0; /* a limit may be below what is in use */
    inodes = inodes > 0 ? inodes : 0;
    *out = (struct statvfs){
        .f_bsize = STAT_BLOCK,
        .f_frsize = STAT_BLOCK,
        .f_blocks = (fsblkcnt_t)((use.bytes + bytes) / STAT_BLOCK),
        .f_bfree = (fsblkcnt_t)(bytes / STAT_BLOCK),
        .f_bavail = (fsblkcnt_t)(bytes / STAT_BLOCK),
        .f_files = (fsfilcnt_t)(use.inodes + inodes),
        .f_ffree = (fsfilcnt_t)inodes,
        .f_favail = (fsfilcnt_t)inodes,
        .f_namemax = META_NAME_MAX,
    };
    return 0;
}

char *volfs_stats(struct volfs *v)
{
    struct buf text = BUF_INIT;
    metric_set(metric_get(M_mount_buffer_used_bytes, NULL), (int64_t)buffer_used(v->buffer));
    metrics_text_used(&text);
    return buf_steal(&text);
}
