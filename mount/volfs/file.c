/* Open files of a volume. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/data/readahead.h"
#include "mount/volfs/reading.h"
#include "mount/volfs/volfs_parts.h"
#include "mount/volfs/warm.h"

struct volfs_file {
    struct handle handle; /* first */
    struct volfs *v;
    struct pending *pending; /* a use */
    bool append;
    bool is_dead;         /* the inode could not be opened again */
    bool is_fenced;       /* its locks are lost */
    uint64_t stamp;       /* of its last bytes; the pending's lock */
    uint64_t refusals;    /* of the pending, as far as a flush has told; the same lock */
    uint64_t told_writes; /* the same, of writes, which are told apart: see volfs_is_lost() */
    atomic_bool lost;     /* bytes of it are, and no fsync has told it; the same lock to clear it */
    atomic_bool refuses;  /* the next write, to tell the same */
    pthread_mutex_t lock; /* of readahead */
    struct readahead readahead;
};

/* ---- open and close ---- */

/* EDQUOT or ENOSPC once for what was refused since: the caller holds the pending's lock. */
static int tell_refusals(struct volfs_file *f)
{
    const bool told = f->refusals == f->pending->refusals;
    f->refusals = f->told_writes = f->pending->refusals;
    return told ? 0 : -f->pending->refused;
}

static int tell_write_refusals(struct volfs_file *f)
{
    const bool told = f->told_writes == f->pending->refusals;
    f->told_writes = f->pending->refusals;
    return told ? 0 : -f->pending->refused;
}

/* Errors but refusals.  *refused: one that no flush of the handle has told. */
static int commit(struct volfs_file *f, int *refused)
{
    pthread_mutex_lock(&f->pending->lock);
    int rc = pending_commit(&f->v->pendings, f->pending);
    *refused = tell_refusals(f);
    pthread_mutex_unlock(&f->pending->lock);
    return rc == PENDING_REFUSED ? 0 : rc;
}

int volfs_settle(struct volfs_file *f)
{
    pthread_mutex_lock(&f->pending->lock);
    int rc = pending_commit(&f->v->pendings, f->pending);
    pthread_mutex_unlock(&f->pending->lock);
    return rc == PENDING_REFUSED ? 0 : rc;
}

static void file_close(struct handle *h)
{
    struct volfs_file *f = (struct volfs_file *)h;
    struct volfs *v = f->v;
    uint64_t ino = f->pending->ino;
    int refused;
    commit(f, &refused); /* of its errors pending_give() logs what is lost */
    if (refused != 0)
        log_error("written bytes are lost: a quota or the volume is full", lu64("inode", ino));
    pending_give(&v->pendings, f->pending);
    if (!f->is_dead)
        volume_closefile(v->volume, ino);
    buffer_readers(v->buffer, -1);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static struct volfs_file *file_new(struct volfs *v, uint64_t ino, bool append)
{
    struct volfs_file *f = xcalloc(1, sizeof *f);
    f->v = v;
    f->append = append;
    f->pending = pending_take(&v->pendings, ino, true);
    pthread_mutex_lock(&f->pending->lock);
    f->refusals = f->told_writes = f->pending->refusals;
    pthread_mutex_unlock(&f->pending->lock);
    pthread_mutex_init(&f->lock, NULL);
    atomic_init(&f->lost, false);
    atomic_init(&f->refuses, false);
    buffer_readers(v->buffer, 1);
    return f;
}

int volfs_openfile(struct volfs *v, uint64_t ino, bool append, struct volfs_file **file)
{
    struct attr a;
    int rc = volume_openfile(v->volume, ino, &a);
    if (rc != 0)
        return rc;
    struct volfs_file *f = file_new(v, ino, append);
    const struct ledger_record r = {.kind = LEDGER_FILE, .node = ino, .size = append};
    rc = handles_add(&v->handles, &f->handle, &r, file_close);
    if (rc != 0)
        file_close(&f->handle);
    else
        *file = f;
    return rc;
}

/* The inode may be gone: after its session had ended nobody kept it. */
void volfs_restore_file(struct volfs *v, uint64_t number, const struct ledger_record *r, bool lost)
{
    struct attr a;
    struct volfs_file *f = file_new(v, r->node, r->size != 0);
    int rc = volume_openfile(v->volume, r->node, &a);
    f->is_dead = rc != 0;
    f->is_fenced = volume_is_fenced(v->volume);
    atomic_store(&f->lost, lost);
    atomic_store(&f->refuses, lost);
    if (rc != 0)
        log_warn("an open file cannot go on", lu64("inode", r->node), li64("error", -rc));
    handles_restore(&v->handles, &f->handle, number, r->inode, file_close);
}

uint64_t volfs_file_id(const struct volfs_file *f)
{
    return f->handle.id;
}

struct volfs_file *volfs_file_of(struct volfs *v, uint64_t id)
{
    return (struct volfs_file *)handles_of(&v->handles, id);
}

int volfs_check_locks(const struct volfs_file *f)
{
    return f->is_dead || f->is_fenced ? -EIO : 0;
}

int volfs_check_write(struct volfs_file *f)
{
    return volfs_check_locks(f) != 0 || atomic_exchange(&f->refuses, false) ? -EIO : 0;
}

bool volfs_is_lost(const struct volfs_file *f)
{
    return atomic_load(&f->lost);
}

/* The lock keeps a close, which frees the handle, behind the end of this.  The program goes on as
 * soon as it is told, so its next call may come before the end: the flags are cleared first.  The
 * ledger says it until then, for a process that dies in between. */
bool volfs_tell_lost(struct volfs_file *f, void (*tell)(void *context), void *context)
{
    if (!volfs_is_lost(f))
        return false;
    pthread_mutex_lock(&f->pending->lock);
    const bool tells = volfs_is_lost(f);
    if (tells) {
        atomic_store(&f->lost, false);
        atomic_store(&f->refuses, false);
        tell(context);
        ledger_uses(f->v->ledger, handles_number(&f->handle), f->stamp);
    }
    pthread_mutex_unlock(&f->pending->lock);
    return tells;
}

bool volfs_appends(const struct volfs_file *f)
{
    return f->append;
}

void volfs_closefile(struct volfs_file *f)
{
    handles_remove(&f->v->handles, &f->handle);
    file_close(&f->handle);
}

int volfs_flush(struct volfs_file *f)
{
    int refused;
    int rc = commit(f, &refused);
    return rc != 0 ? rc : refused;
}

int volfs_warm(struct volfs_file *f, struct volfs_warm *w)
{
    int rc = volfs_settle(f);
    return rc == 0 ? warm_inode(f->v, f->pending->ino, w) : rc;
}

/* ---- write ---- */

/* The handle has bytes of this mark.  Of one that has lost others the ledger says so already. */
static void note_stamp(struct volfs_file *f)
{
    if (f->stamp == f->pending->stamp)
        return;
    f->stamp = f->pending->stamp;
    if (!volfs_is_lost(f))
        ledger_uses(f->v->ledger, handles_number(&f->handle), f->stamp);
}

/* The write has ended with rc.  If a commit has ended the mark meanwhile, there
 * is another one. */
static int note_written(struct volfs_file *f, int rc)
{
    if (rc == PENDING_REFUSED) /* the write tells it */
        rc = tell_write_refusals(f);
    if (f->pending->end == 0) {
        pending_unmark(&f->v->pendings, f->pending);
        return rc;
    }
    int marked = pending_mark(&f->v->pendings, f->pending);
    note_stamp(f);
    return rc != 0 ? rc : marked;
}

ssize_t volfs_write(struct volfs_file *f, const struct volfs_range *r, const void *from)
{
    if (r->offset > INT64_MAX / 2 - (int64_t)r->size)
        return -EFBIG;
    pthread_mutex_lock(&f->pending->lock);
    int rc = tell_write_refusals(f);
    if (rc == 0)
        rc = pending_mark(&f->v->pendings, f->pending);
    if (rc == 0)
        rc = pending_write(&f->v->pendings, f->pending, r->offset, from, r->size);
    rc = note_written(f, rc);
    pthread_mutex_unlock(&f->pending->lock);
    return rc != 0 ? rc : (ssize_t)r->size;
}

/* ---- read ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct span plan_ahead(struct volfs_file *f, const struct volfs_range *r)
{
    uint64_t most = least(buffer_share(f->v->buffer), f->v->options.readahead_bytes);
    pthread_mutex_lock(&f->lock);
    struct span ahead =
        readahead_read(&f->readahead, (uint64_t)r->offset, r->size, INT64_MAX / 2, most);
    pthread_mutex_unlock(&f->lock);
    return ahead;
}

ssize_t volfs_append(struct volfs_file *f, const void *from, size_t size)
{
    pthread_mutex_lock(&f->pending->lock);
    int rc = tell_write_refusals(f);
    if (rc == 0)
        rc = pending_mark(&f->v->pendings, f->pending);
    note_stamp(f); /* before: if it comes again after a crash, it must not append
                    twice */
    if (rc == 0)
        rc = pending_append(&f->v->pendings, f->pending, from, size);
    rc = note_written(f, rc);
    pthread_mutex_unlock(&f->pending->lock);
    return rc != 0 ? rc : (ssize_t)size;
}

void volfs_drop_setid(struct volfs_file *f)
{
    pthread_mutex_lock(&f->pending->lock);
    f->pending->drops_setid = true;
    pthread_mutex_unlock(&f->pending->lock);
}

ssize_t volfs_read(struct volfs_file *f, const struct volfs_range *r, void *to)
{
    struct arena *arena = arena_new(4096);
    struct volume_extent *extents;
    size_t count = 0, done = 0;
    int rc = volfs_settle(f);
    const struct span wanted = {(uint64_t)r->offset, (uint64_t)r->offset + r->size};
    const struct span ahead = plan_ahead(f, r);
    const uint64_t end = ahead.from != ahead.to && ahead.to > wanted.to ? ahead.to : wanted.to;
    if (rc == 0)
        rc = volume_extents(f->v->volume, f->pending->ino, r->offset, end - wanted.from, arena,
                            &extents, &count);
    if (rc == 0 && (count > 1 || ahead.from != ahead.to))
        reading_request(f->v, extents, count, wanted, ahead);
    for (size_t i = 0; rc == 0 && i < count && done < r->size; i++) {
        uint64_t length = least(extents[i].length, r->size - done);
        rc = reading_extent(f->v, r, &extents[i], length, (char *)to + done);
        done += length;
    }
    arena_free(arena);
    return rc != 0 ? rc : (ssize_t)done;
}

/* ---- holes ---- */

/* What was written before comes before: a later commit would undo it. */
int volfs_allocate(struct volfs_file *f, unsigned mode, int64_t at, uint64_t length)
{
    pthread_mutex_lock(&f->pending->lock);
    int rc = pending_commit(&f->v->pendings, f->pending);
    rc = rc == PENDING_REFUSED ? 0 : rc;
    if (rc == 0)
        rc = volume_allocate(f->v->volume, f->pending->ino, mode, at, length);
    pthread_mutex_unlock(&f->pending->lock);
    return rc;
}

int volfs_seek(struct volfs_file *f, int64_t at, bool hole, int64_t *out)
{
    int rc = volfs_settle(f);
    return rc != 0 ? rc : volume_seek(f->v->volume, f->pending->ino, at, hole, out);
}
