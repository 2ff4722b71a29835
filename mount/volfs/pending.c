#include "mount/volfs/pending.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/vfs/ledger.h"
#include "mount/volfs/objects.h"

/* ---- the table ---- */

bool pendings_init(struct pendings *all, struct volume *volume, const struct volfs_store *store,
                   uint64_t limit_bytes, unsigned uploads)
{
    all->volume = volume;
    all->store = *store;
    all->limit_bytes = limit_bytes;
    atomic_init(&all->bytes, 0);
    pthread_mutex_init(&all->lock, NULL);
    all->uploads = uploads_new(store, uploads, &all->bytes);
    return all->uploads != NULL;
}

void pendings_done(struct pendings *all)
{
    uploads_free(all->uploads);
    pthread_mutex_destroy(&all->lock);
}

static struct pending **slot_of(struct pendings *all, uint64_t ino)
{
    return &all->slots[ino % (sizeof all->slots / sizeof *all->slots)];
}

struct pending *pending_take(struct pendings *all, uint64_t ino, bool make)
{
    pthread_mutex_lock(&all->lock);
    struct pending **slot = slot_of(all, ino), *p = *slot;
    while (p != NULL && p->ino != ino)
        p = p->chain;
    if (p == NULL && make) {
        p = xcalloc(1, sizeof *p);
        p->ino = ino;
        p->chain = *slot;
        pthread_mutex_init(&p->lock, NULL);
        *slot = p;
    }
    if (p != NULL)
        p->uses++;
    pthread_mutex_unlock(&all->lock);
    return p;
}

static void drop_pieces(struct pendings *all, struct pending *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct pending_piece *one = p->pieces[i];
        uploads_wait(all->uploads, &one->upload);
        if (one->upload.data != NULL)
            atomic_fetch_sub(&all->bytes, one->upload.room);
        free(one->upload.data);
        free(one->upload.key);
        free(one->sums);
        free(one);
    }
    p->count = 0;
}

/* What could not be committed is lost here. */
static void pending_free(struct pendings *all, struct pending *p)
{
    if (p->end > 0)
        log_error("written bytes are lost: they could not be stored", lu64("inode", p->ino),
                  li64("end", p->end));
    drop_pieces(all, p);
    pending_unmark(all, p);
    free(p->pieces);
    atomic_fetch_sub(&all->bytes, p->room);
    free(p->data);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void pending_give(struct pendings *all, struct pending *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&all->lock);
    bool last = --p->uses == 0;
    if (last) {
        struct pending **at = slot_of(all, p->ino);
        while (*at != p)
            at = &(*at)->chain;
        *at = p->chain;
    }
    pthread_mutex_unlock(&all->lock);
    if (last)
        pending_free(all, p);
}

/* ---- marks ---- */

int pending_mark(struct pendings *all, struct pending *p)
{
    if (p->mark != 0)
        return 0;
    const struct ledger_record r = {
        .kind = LEDGER_UNSAVED, .node = p->ino, .uses = ledger_stamp(all->ledger)};
    p->mark = ledger_add(all->ledger, &r);
    p->stamp = p->mark != 0 ? r.uses : 0;
    return p->mark != 0 ? 0 : -ENOMEM;
}

void pending_unmark(struct pendings *all, struct pending *p)
{
    if (p->mark != 0)
        ledger_remove(all->ledger, p->mark);
    p->mark = p->stamp = 0;
}

/* ---- pieces ---- */

/* The open piece is closed. */
static struct pending_piece *close_piece(struct pending *p)
{
    struct pending_piece *one = xcalloc(1, sizeof *one);
    if (p->count == p->pieces_room) {
        p->pieces_room = 2 * p->pieces_room + 8;
        p->pieces = xrealloc(p->pieces, p->pieces_room * sizeof(*p->pieces));
    }
    p->pieces[p->count++] = one;
    one->upload = (struct upload){.data = p->data, .size = p->size, .room = p->room};
    one->at = (struct volume_piece){
        .at = p->at,
        .length = (uint32_t)p->size,
        .size = (uint32_t)p->size,
        .written_ns = p->written_ns,
    };
    one->sums = objects_sums(p->data, p->size, &one->at.sums_count);
    one->at.sums = one->sums;
    p->data = NULL;
    p->size = p->room = 0;
    return one;
}

/* Each try has an object of its own: what became of the one before may be unknown. */
static int send_piece(struct pendings *all, struct pending_piece *one)
{
    int rc = volume_new_slice(all->volume, &one->at.slice);
    if (rc != 0)
        return rc;
    free(one->upload.key);
    one->upload.key =
        objects_key(volume_format(all->volume)->name, one->at.slice, 0, one->upload.size);
    one->sent = true;
    uploads_put(all->uploads, &one->upload);
    return 0;
}

/* The volume's limit has no room for it.  An engine whose disk is full gives the same error. */
static bool exceeds_limit(struct pendings *all, const struct pending *p)
{
    struct volume_use use;
    int64_t bytes = 0;
    for (size_t i = 0; i < p->count; i++)
        bytes += p->pieces[i]->at.size;
    return volume_use(all->volume, &use) == 0 && use.bytes_left < bytes;
}

static void drop_all(struct pendings *all, struct pending *p)
{
    drop_pieces(all, p);
    p->end = 0;
    pending_unmark(all, p);
}

/* There is no open piece. */
static int refuse(struct pendings *all, struct pending *p, int error)
{
    drop_all(all, p);
    p->refusals++;
    p->refused = error;
    p->full = error == ENOSPC;
    return PENDING_REFUSED;
}

/* All pieces are stored, or the first error. */
static int store_pieces(struct pendings *all, struct pending *p)
{
    int result = 0;
    if (p->size > 0)
        close_piece(p);
    if (p->full && exceeds_limit(all, p))
        return refuse(all, p, ENOSPC);
    for (size_t i = 0; i < p->count && result == 0; i++) {
        if (!p->pieces[i]->sent)
            result = send_piece(all, p->pieces[i]);
    }
    for (size_t i = 0; i < p->count; i++) {
        struct pending_piece *one = p->pieces[i];
        int rc = one->sent ? uploads_wait(all->uploads, &one->upload) : 0;
        if (rc != 0)
            one->sent = false;
        result = result != 0 ? result : rc;
    }
    return result;
}

/* The open piece is on its way.  If an earlier one has failed, all are tried, and waited for. */
static int send_open(struct pendings *all, struct pending *p)
{
    if (p->size == 0)
        return 0;
    struct pending_piece *one = close_piece(p);
    if (p->full && exceeds_limit(all, p))
        return refuse(all, p, ENOSPC);
    int rc = send_piece(all, one);
    bool failed = rc != 0 || atomic_load(&all->bytes) > all->limit_bytes;
    for (size_t i = 0; i < p->count && !failed; i++)
        failed = !p->pieces[i]->sent || uploads_has_failed(all->uploads, &p->pieces[i]->upload);
    return rc != 0 || !failed ? rc : store_pieces(all, p);
}

int pending_commit(struct pendings *all, struct pending *p)
{
    int rc = store_pieces(all, p);
    if (rc != 0 || p->count == 0)
        return rc;
    _cleanup_free_ struct volume_piece *pieces = xcalloc(p->count, sizeof *pieces);
    for (size_t i = 0; i < p->count; i++)
        pieces[i] = p->pieces[i]->at;
    const unsigned flags =
        (p->append ? VOLUME_APPEND : 0u) | (p->drops_setid ? VOLUME_DROP_SETID : 0u);
    rc = volume_write(all->volume, p->ino, pieces, p->count, flags, NULL);
    if (rc == -EDQUOT || (rc == -ENOSPC && exceeds_limit(all, p)))
        return refuse(all, p, -rc);
    if (rc == 0 || rc == -ENOENT) {
        drop_all(all, p);
        p->drops_setid = p->full = false;
    }
    return rc;
}

/* ---- write ---- */

static void make_room(struct pendings *all, struct pending *p, size_t size)
{
    size_t room = p->room > 0 ? p->room : 4096;
    while (room < size)
        room *= 2;
    if (room == p->room)
        return;
    p->data = xrealloc(p->data, room);
    atomic_fetch_add(&all->bytes, room - p->room);
    p->room = room;
}

/* Within one block. */
static int write_part(struct pendings *all, struct pending *p, int64_t at, const char *from,
                      size_t size)
{
    const int64_t block = (int64_t)volume_format(all->volume)->block_bytes;
    bool fits =
        p->size > 0 && at >= p->at && at <= p->at + (int64_t)p->size && at / block == p->at / block;
    if (!fits) {
        int rc = send_open(all, p);
        if (rc != 0)
            return rc;
        p->at = at;
    }
    size_t offset = (size_t)(at - p->at);
    make_room(all, p, offset + size);
    memcpy(p->data + offset, from, size);
    p->size = offset + size > p->size ? offset + size : p->size;
    p->end = at + (int64_t)size > p->end ? at + (int64_t)size : p->end;
    p->changed_ms = clock_ms();
    p->written_ns = volume_now(all->volume);
    bool full = (p->at + (int64_t)p->size) % block == 0;
    return full || atomic_load(&all->bytes) > all->limit_bytes ? send_open(all, p) : 0;
}

/* One commit has places of one sort. */
static int choose(struct pendings *all, struct pending *p, bool append)
{
    int rc = p->end > 0 && p->append != append ? pending_commit(all, p) : 0;
    if (rc == 0)
        p->append = append;
    return rc;
}

static int write_all(struct pendings *all, struct pending *p, int64_t at, const void *from,
                     size_t size)
{
    const size_t block = (size_t)volume_format(all->volume)->block_bytes;
    for (size_t done = 0; done < size;) {
        size_t room = block - (size_t)((uint64_t)at + done) % block;
        size_t part = size - done < room ? size - done : room;
        int rc = write_part(all, p, at + (int64_t)done, (const char *)from + done, part);
        if (rc != 0)
            return rc;
        done += part;
    }
    return p->count >= PENDING_SLICES ? pending_commit(all, p) : 0;
}

int pending_write(struct pendings *all, struct pending *p, int64_t at, const void *from,
                  size_t size)
{
    int rc = choose(all, p, false);
    return rc == 0 ? write_all(all, p, at, from, size) : rc;
}

int pending_append(struct pendings *all, struct pending *p, const void *from, size_t size)
{
    int rc = choose(all, p, true);
    return rc == 0 ? write_all(all, p, p->end, from, size) : rc;
}

void pending_show(const struct pending *p, struct attr *a)
{
    if (p->end == 0)
        return;
    if (p->append)
        a->length += p->end;
    else if (p->end > a->length)
        a->length = p->end;
    a->mode = p->drops_setid ? attr_without_setid(a->mode) : a->mode;
    a->mtime_ns = p->written_ns;
    a->ctime_ns = p->written_ns > a->ctime_ns ? p->written_ns : a->ctime_ns;
}

/* ---- all ---- */

static uint64_t *inodes_now(struct pendings *all, size_t *count)
{
    size_t room = 64;
    uint64_t *inodes = xmalloc(room * sizeof *inodes);
    *count = 0;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < sizeof all->slots / sizeof *all->slots; i++) {
        for (const struct pending *p = all->slots[i]; p != NULL; p = p->chain) {
            if (*count == room)
                inodes = xrealloc(inodes, (room *= 2) * sizeof *inodes);
            inodes[(*count)++] = p->ino;
        }
    }
    pthread_mutex_unlock(&all->lock);
    return inodes;
}

int pendings_commit(struct pendings *all, uint64_t before_ms)
{
    size_t count;
    int result = 0;
    _cleanup_free_ uint64_t *inodes = inodes_now(all, &count);
    for (size_t i = 0; i < count; i++) {
        struct pending *p = pending_take(all, inodes[i], false);
        if (p == NULL)
            continue;
        pthread_mutex_lock(&p->lock);
        int rc = p->end > 0 && p->changed_ms <= before_ms ? pending_commit(all, p) : 0;
        const int refused = p->refused;
        pthread_mutex_unlock(&p->lock);
        pending_give(all, p);
        if (rc != 0)
            log_warn("written bytes could not be stored", lu64("inode", inodes[i]),
                     li64("error", rc == PENDING_REFUSED ? refused : -rc));
        if (rc < 0 && result == 0)
            result = rc;
    }
    return result;
}

/* The next number is asked for first: pieces that come meanwhile have greater ones. */
uint64_t pendings_settled(struct pendings *all)
{
    size_t count;
    uint64_t least = volume_next_slice(all->volume);
    _cleanup_free_ uint64_t *inodes = inodes_now(all, &count);
    for (size_t i = 0; i < count; i++) {
        struct pending *p = pending_take(all, inodes[i], false);
        if (p == NULL)
            continue;
        pthread_mutex_lock(&p->lock);
        for (size_t k = 0; k < p->count; k++) {
            if (p->pieces[k]->sent && p->pieces[k]->at.slice < least)
                least = p->pieces[k]->at.slice;
        }
        pthread_mutex_unlock(&p->lock);
        pending_give(all, p);
    }
    return least;
}
