#include "mount/meta/sqlite.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "common/clock.h"
#include "common/mem.h"
#include "mount/meta/group.h"
#include "mount/meta/sqlite_db.h"

struct sqlite {
    struct meta meta;
    char *path;
    struct sqlite_db *writes; /* of the group's thread */
    struct group *group;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t reader_free;
    struct sqlite_db *readers[META_SQLITE_READERS]; /* those that are free */
    unsigned free_readers, open_readers;
};

static struct sqlite *sqlite_of(struct meta *m)
{
    assert(m->ops == &meta_sqlite_ops);
    return (struct sqlite *)m;
}

/* ---- commits ---- */

static int write_group(void *context, struct group_request *const *requests, size_t count,
                       struct error *err)
{
    struct sqlite *s = context;
    struct kv kv = sqlite_db_kv(s->writes);
    uint64_t stamp;
    int rc = sqlite_db_begin_write(s->writes, &stamp, err);
    if (rc != 0)
        return rc;
    bool changes = false;
    for (size_t i = 0; i < count; i++) {
        struct group_request *r = requests[i];
        r->rc = kv_commit(&kv, r->commit, ++stamp, r->err);
        changes |= r->rc == 0;
        if (r->rc != 0 && r->rc != E_PRECONDITION) {
            sqlite_db_end(s->writes);
            return error_set(err, r->rc, "%s", r->err->message);
        }
    }
    if (changes)
        return sqlite_db_commit(s->writes, stamp, err);
    sqlite_db_end(s->writes);
    return 0;
}

static int sqlite_commit(struct meta *meta, struct meta_commit *c, struct error *err)
{
    return group_commit(sqlite_of(meta)->group, c, err);
}

static const struct group_ops group_ops = {.most = META_SQLITE_GROUP, .write = write_group};

/* ---- reads ---- */

static int take_reader(struct sqlite *s, struct sqlite_db **out, struct error *err)
{
    int rc = 0;
    *out = NULL;
    pthread_mutex_lock(&s->lock);
    while (s->free_readers == 0 && s->open_readers == META_SQLITE_READERS)
        pthread_cond_wait(&s->reader_free, &s->lock);
    if (s->free_readers > 0)
        *out = s->readers[--s->free_readers];
    else
        s->open_readers++; /* its place */
    pthread_mutex_unlock(&s->lock);
    if (*out == NULL)
        rc = sqlite_db_open(s->path, false, META_SQLITE_BUSY_MS, out, err);
    if (rc != 0) {
        pthread_mutex_lock(&s->lock);
        s->open_readers--;
        pthread_cond_signal(&s->reader_free);
        pthread_mutex_unlock(&s->lock);
    }
    return rc;
}

static void give_reader(struct sqlite *s, struct sqlite_db *db)
{
    pthread_mutex_lock(&s->lock);
    s->readers[s->free_readers++] = db;
    pthread_cond_signal(&s->reader_free);
    pthread_mutex_unlock(&s->lock);
}

static int sqlite_read(struct meta *meta, struct meta_read *r, struct error *err)
{
    struct sqlite *s = sqlite_of(meta);
    struct sqlite_db *db;
    int rc = take_reader(s, &db, err);
    if (rc != 0)
        return rc;
    struct kv kv = sqlite_db_kv(db);
    rc = sqlite_db_begin_read(db, err);
    if (rc == 0)
        rc = kv_read(&kv, r, err);
    sqlite_db_end(db);
    give_reader(s, db);
    return rc;
}

static int sqlite_queue(struct meta *meta, struct arena *arena, struct meta_item *item,
                        uint64_t until, struct error *err)
{
    struct sqlite *s = sqlite_of(meta);
    struct sqlite_db *db;
    int rc = take_reader(s, &db, err);
    if (rc != 0)
        return rc;
    struct kv kv = sqlite_db_kv(db);
    rc = sqlite_db_begin_read(db, err);
    if (rc == 0)
        rc = kv_queue(&kv, arena, item, until, err);
    sqlite_db_end(db);
    give_reader(s, db);
    return rc;
}

/* A connection of its own: readers are few, and this one is long.  The log grows meanwhile, for no
 * checkpoint passes the moment that is read. */
static int sqlite_snapshot(struct meta *meta, meta_visit *visit, void *context, struct error *err)
{
    _cleanup_(sqlite_db_closep)
    struct sqlite_db *db = NULL;
    int rc = sqlite_db_open(sqlite_of(meta)->path, false, META_SQLITE_BUSY_MS, &db, err);
    if (rc != 0)
        return rc;
    struct kv kv = sqlite_db_kv(db);
    rc = sqlite_db_begin_read(db, err);
    if (rc == 0)
        rc = kv_snapshot(&kv, visit, context, err);
    sqlite_db_end(db);
    return rc;
}

static int sqlite_now(struct meta *meta, int64_t *unix_ms, struct error *err)
{
    (void)meta;
    (void)err;
    *unix_ms = clock_wall_ms();
    return 0;
}

/* ---- open and close ---- */

/* File systems of several machines, whose locks and shared memory a write-ahead log cannot use. */
static const long shared_systems[] = {
    NFS_SUPER_MAGIC,
    SMB_SUPER_MAGIC,
    0xff534d42 /* cifs */,
    0xfe534d42 /* smb2 */,
    CEPH_SUPER_MAGIC,
    AFS_FS_MAGIC,
    V9FS_MAGIC,
    FUSE_SUPER_MAGIC,
};

static int check_place(const char *path, struct error *err)
{
    struct statfs st;
    _cleanup_free_ char *directory = xstrdup(path);
    char *slash = strrchr(directory, '/');
    slash[slash == directory ? 1 : 0] = '\0';
    if (statfs(directory, &st) != 0)
        return error_set(err, errno == ENOENT ? E_NOT_FOUND : E_IO, "directory '%s': %s", directory,
                         strerror(errno));
    for (size_t i = 0; i < sizeof shared_systems / sizeof *shared_systems; i++) {
        if ((long)(uint32_t)st.f_type == shared_systems[i])
            return error_set(err, E_UNSUPPORTED,
                             "'%s' is on a network file system or a FUSE mount: take a local disk, "
                             "or another engine",
                             path);
    }
    return 0;
}

/* Names and attributes of all files are in it: for its owner alone. */
static int make_file(const char *path, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return fd >= 0 ? 0 : error_errno(err, errno, "metadata database '%s'", path);
}

static void free_engine(struct sqlite *s)
{
    for (unsigned i = 0; i < s->free_readers; i++)
        sqlite_db_close(s->readers[i]);
    sqlite_db_close(s->writes);
    pthread_cond_destroy(&s->reader_free);
    pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}

static int sqlite_open(const char *where, bool make, struct meta **out, struct error *err)
{
    if (where[0] != '/')
        return error_set(err, E_INVALID, "sqlite3://%s: an absolute path must follow sqlite3://",
                         where);
    int rc = check_place(where, err);
    if (rc == 0 && make)
        rc = make_file(where, err);
    if (rc != 0)
        return rc;
    struct sqlite *s = xcalloc(1, sizeof *s);
    s->meta.ops = &meta_sqlite_ops;
    s->path = xstrdup(where);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->reader_free, NULL);
    rc = sqlite_db_open(where, make, META_SQLITE_BUSY_MS, &s->writes, err);
    if (rc == 0)
        rc = group_start(&group_ops, s, &s->group, err);
    if (rc != 0) {
        free_engine(s);
        return rc;
    }
    *out = &s->meta;
    return 0;
}

static void sqlite_close(struct meta *meta)
{
    struct sqlite *s = sqlite_of(meta);
    group_end(s->group);
    free_engine(s);
}

const struct meta_ops meta_sqlite_ops = {
    .scheme = "sqlite3",
    .open = sqlite_open,
    .close = sqlite_close,
    .read = sqlite_read,
    .commit = sqlite_commit,
    .queue = sqlite_queue,
    .snapshot = sqlite_snapshot,
    .now = sqlite_now,
};
