#include "mount/volume/open_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/volume/txn.h"

enum { BATCH = 256 }; /* attributes of one read */

/* ---- the table ---- */

static struct open_inode *find(struct volume *v, uint64_t ino)
{
    for (size_t i = 0; i < v->open_count; i++) {
        if (v->open[i].ino == ino)
            return &v->open[i];
    }
    return NULL;
}

static void add_use(struct volume *v, uint64_t ino)
{
    pthread_mutex_lock(&v->lock);
    struct open_inode *o = find(v, ino);
    if (o == NULL && v->open_count == v->open_room) {
        v->open_room = v->open_room > 0 ? 2 * v->open_room : 64;
        v->open = xrealloc(v->open, v->open_room * sizeof *v->open);
    }
    if (o == NULL) {
        o = &v->open[v->open_count++];
        *o = (struct open_inode){.ino = ino};
    }
    o->uses++;
    pthread_mutex_unlock(&v->lock);
}

/* True: that was the last one, and the inode has an OPEN key. */
static bool drop_use(struct volume *v, uint64_t ino)
{
    bool kept = false;
    pthread_mutex_lock(&v->lock);
    struct open_inode *o = find(v, ino);
    if (o != NULL && --o->uses == 0) {
        kept = o->kept;
        *o = v->open[--v->open_count];
    }
    pthread_mutex_unlock(&v->lock);
    return kept;
}

static struct meta_key open_key(const struct volume *v, uint64_t ino)
{
    return meta_key_number(META_OPEN, ino, v->session);
}

/* ---- OPEN keys ---- */

/* An open that came meanwhile has the key from now on. */
static bool give_key(struct volume *v, uint64_t ino)
{
    pthread_mutex_lock(&v->lock);
    struct open_inode *o = find(v, ino);
    bool is_open = o != NULL;
    if (is_open)
        o->kept = true;
    pthread_mutex_unlock(&v->lock);
    return is_open;
}

/* The table is looked at after the read: an open that it does not show yet puts the key later than
 * that, with another stamp. */
static int decide_forget(struct txn *t, void *op)
{
    const uint64_t ino = *(const uint64_t *)op;
    struct meta_key key = open_key(t->v, ino);
    struct meta_value value;
    int rc = txn_get(t, &key, &value);
    if (rc != 0 || !value.found || give_key(t->v, ino))
        return rc;
    txn_expect(t, &key, &value);
    txn_delete(t, &key);
    return 0;
}

static void forget(struct volume *v, uint64_t ino)
{
    if (txn_run(v, decide_forget, &ino) != 0)
        log_warn("a file without a name is kept until this session ends", lu64("inode", ino));
}

struct keep {
    uint64_t ino;
    bool kept;
};

/* The attribute gets a new stamp, which who frees the inode expects. */
static int decide_keep(struct txn *t, void *op)
{
    struct keep *k = op;
    struct meta_key key = meta_key_point(META_ATTR, k->ino), open = open_key(t->v, k->ino);
    struct meta_value value;
    struct attr a;
    int rc = txn_get(t, &key, &value);
    k->kept = false;
    if (rc != 0)
        return rc;
    if (!value.found)
        return -ENOENT;
    if (!attr_decode(&value, &a))
        return -EIO;
    if (a.nlink > 0)
        return 0;
    txn_expect(t, &key, &value);
    txn_set_number(t, &key, ATTR_PARENT, (int64_t)a.parent);
    txn_put(t, &open, NULL, 0);
    k->kept = true;
    return 0;
}

static void note_kept(struct volume *v, uint64_t ino)
{
    pthread_mutex_lock(&v->lock);
    struct open_inode *o = find(v, ino);
    bool closed = o == NULL;
    if (o != NULL)
        o->kept = true;
    pthread_mutex_unlock(&v->lock);
    if (closed) /* meanwhile */
        forget(v, ino);
}

/* If it has no name.  0 or -errno. */
static int keep(struct volume *v, uint64_t ino)
{
    struct keep k = {.ino = ino};
    int rc = txn_run(v, decide_keep, &k);
    if (rc == 0 && k.kept)
        note_kept(v, ino);
    return rc;
}

/* ---- open and close ---- */

/* It is in the table before it is looked at: a heartbeat that comes between finds it. */
int volume_openfile(struct volume *v, uint64_t ino, struct attr *attr)
{
    add_use(v, ino);
    int rc = volume_getattr(v, ino, attr);
    if (rc == 0 && attr->nlink == 0) /* its grace may end before the next heartbeat */
        rc = keep(v, ino);
    if (rc != 0)
        volume_closefile(v, ino);
    return rc;
}

void volume_closefile(struct volume *v, uint64_t ino)
{
    if (drop_use(v, ino))
        forget(v, ino);
}

/* ---- heartbeat ---- */

static uint64_t *open_now(struct volume *v, size_t *count)
{
    pthread_mutex_lock(&v->lock);
    uint64_t *inodes = xmalloc((v->open_count + 1) * sizeof *inodes);
    *count = 0;
    for (size_t i = 0; i < v->open_count; i++) {
        if (!v->open[i].kept)
            inodes[(*count)++] = v->open[i].ino;
    }
    pthread_mutex_unlock(&v->lock);
    return inodes;
}

static bool has_name(const struct meta_value *value)
{
    struct attr a;
    return attr_decode(value, &a) && a.nlink > 0;
}

/* As they are at one moment: what has a name then is looked at again by the next heartbeat. */
static int read_attrs(struct volume *v, const uint64_t *inodes, size_t count, struct arena *arena,
                      struct meta_item **out)
{
    struct error err = ERROR_INIT;
    struct meta_item *items = arena_alloc(arena, count * sizeof *items);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct meta_item){.key = meta_key_point(META_ATTR, inodes[i])};
    struct meta_read r = {.arena = arena, .items = items, .count = count};
    int rc = v->meta->ops->read(v->meta, &r, &err);
    *out = items;
    return rc == 0 ? 0 : txn_engine_error("open files", &err);
}

/* One that cannot be kept does not end the walk: *failed. */
static int keep_some(struct volume *v, const uint64_t *inodes, size_t count,
                     int (*between)(struct volume *v), int *failed)
{
    _cleanup_arena_ struct arena *arena = arena_new(65536);
    struct meta_item *items;
    int rc = between(v);
    if (rc == 0)
        rc = read_attrs(v, inodes, count, arena, &items);
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (has_name(&items[i].value))
            continue;
        rc = between(v);
        int kept = rc == 0 ? keep(v, inodes[i]) : 0;
        if (kept == -ENOENT)
            log_warn("an open file was freed: the heartbeat was late", lu64("inode", inodes[i]));
        else if (kept != 0)
            *failed = kept;
    }
    return rc;
}

int open_files_keep(struct volume *v, int (*between)(struct volume *v))
{
    size_t count;
    int rc = 0, failed = 0;
    _cleanup_free_ uint64_t *inodes = open_now(v, &count);
    for (size_t at = 0; at < count && rc == 0; at += BATCH)
        rc = keep_some(v, inodes + at, count - at < BATCH ? count - at : BATCH, between, &failed);
    return rc != 0 ? rc : failed;
}
