#include "mount/fuse/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>

#include "common/backoff.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/fuse/lock_owners.h"

struct waiter {
    struct waiter *next;
    struct locks *locks;
    fuse_req_t req;
    fuse_ino_t node;
    struct volume_lock lock;
    unsigned tries;
    uint64_t due_ms;
    bool interrupted;
};

struct locks {
    struct volume *volume;
    struct fuse_session *fuse;
    struct lock_owners *owners;
    pthread_t thread;
    pthread_mutex_t mutex; /* of all below, and of due_ms and interrupted of waiters */
    pthread_cond_t news;
    struct waiter *first;
    bool ends;
};

/* ---- one try ---- */

/* What others wrote while they had the lock must be read now, whatever pages the kernel keeps.  A
 * list of before gives the kernel no length any more. */
static void forget_pages(struct locks *l, fuse_ino_t node)
{
    volume_note_changed(l->volume, node);
    int rc = fuse_lowlevel_notify_inval_inode(l->fuse, node, 0, 0);
    if (rc != 0 && rc != -ENOENT)
        log_warn("pages stay with the kernel after a lock", li64("error", -rc));
}

/* Others of this mount that wait for the file may be lucky now. */
static void wake_waiters(struct locks *l, fuse_ino_t node)
{
    pthread_mutex_lock(&l->mutex);
    for (struct waiter *w = l->first; w != NULL; w = w->next) {
        if (w->node == node)
            w->due_ms = 0;
    }
    pthread_cond_signal(&l->news);
    pthread_mutex_unlock(&l->mutex);
}

static int set(struct locks *l, fuse_ino_t node, const struct volume_lock *lock)
{
    int rc = volume_setlock(l->volume, node, lock);
    if (rc == 0 && lock->type != VOLUME_LOCK_EXCLUSIVE)
        wake_waiters(l, node);
    if (rc == 0 && lock->type != VOLUME_LOCK_NONE)
        forget_pages(l, node);
    return rc;
}

int locks_drop(struct locks *l, fuse_ino_t node, uint64_t owner, bool flock)
{
    const struct volume_lock none = {
        .type = VOLUME_LOCK_NONE, .flock = flock, .owner = owner, .end = INT64_MAX};
    return volume_haslocks(l->volume, node) ? set(l, node, &none) : 0;
}

void locks_note(struct locks *l, uint64_t handle, uint64_t owner)
{
    lock_owners_add(l->owners, handle, owner);
}

int locks_flush(struct locks *l, fuse_ino_t node, uint64_t handle, uint64_t owner)
{
    lock_owners_remove(l->owners, handle, owner);
    return locks_drop(l, node, owner, false);
}

void locks_release(struct locks *l, fuse_ino_t node, uint64_t handle)
{
    uint64_t owner;
    while (lock_owners_take(l->owners, handle, &owner)) {
        int rc = locks_drop(l, node, owner, false);
        if (rc != 0)
            log_warn("a lock stays until the mount ends", li64("error", -rc));
    }
}

/* ---- waiting ---- */

static void interrupt(fuse_req_t req, void *data)
{
    struct waiter *w = data;
    (void)req;
    pthread_mutex_lock(&w->locks->mutex);
    w->interrupted = true;
    w->due_ms = 0;
    pthread_cond_signal(&w->locks->news);
    pthread_mutex_unlock(&w->locks->mutex);
}

static void add_waiter(struct locks *l, struct waiter *w)
{
    static const struct backoff pauses = {.first_ms = 10, .max_ms = 1000};
    pthread_mutex_lock(&l->mutex);
    w->due_ms = w->interrupted ? 0 : clock_ms() + backoff_ms(&pauses, ++w->tries);
    w->next = l->first;
    l->first = w;
    pthread_cond_signal(&l->news);
    pthread_mutex_unlock(&l->mutex);
}

static void finish(struct waiter *w, int rc)
{
    fuse_req_interrupt_func(w->req, NULL, NULL); /* no interrupt is running after it */
    fuse_reply_err(w->req, -rc);
    free(w);
}

static void try_again(struct locks *l, struct waiter *w, bool interrupted)
{
    int rc = interrupted ? -EINTR : set(l, w->node, &w->lock);
    if (rc == -EAGAIN)
        add_waiter(l, w);
    else
        finish(w, rc);
}

/* The one that is due first, if it is due; otherwise NULL, and *until. */
static struct waiter *take_due(struct locks *l, uint64_t *until)
{
    struct waiter **least = NULL;
    for (struct waiter **at = &l->first; *at != NULL; at = &(*at)->next) {
        if (least == NULL || (*at)->due_ms < (*least)->due_ms)
            least = at;
    }
    *until = least != NULL ? (*least)->due_ms : UINT64_MAX;
    if (least == NULL || *until > clock_ms())
        return NULL;
    struct waiter *w = *least;
    *least = w->next;
    return w;
}

static void wait_for_news(struct locks *l, uint64_t until)
{
    const uint64_t now = clock_ms();
    if (until == UINT64_MAX) {
        pthread_cond_wait(&l->news, &l->mutex);
    } else if (until > now) {
        const struct timespec end = clock_after(until - now);
        pthread_cond_timedwait(&l->news, &l->mutex, &end);
    }
}

static void *run(void *arg)
{
    struct locks *l = arg;
    uint64_t until;
    pthread_mutex_lock(&l->mutex);
    while (!l->ends) {
        struct waiter *w = take_due(l, &until);
        if (w == NULL) {
            wait_for_news(l, until);
            continue;
        }
        const bool interrupted = w->interrupted;
        pthread_mutex_unlock(&l->mutex);
        try_again(l, w, interrupted);
        pthread_mutex_lock(&l->mutex);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* ---- calls ---- */

void locks_set(struct locks *l, fuse_req_t req, fuse_ino_t node, const struct volume_lock *lock,
               bool waits)
{
    int rc = set(l, node, lock);
    if (rc != -EAGAIN || !waits) {
        fuse_reply_err(req, -rc);
        return;
    }
    struct waiter *w = xcalloc(1, sizeof *w);
    *w = (struct waiter){.locks = l, .req = req, .node = node, .lock = *lock};
    fuse_req_interrupt_func(req, interrupt, w); /* calls it if there was one already */
    add_waiter(l, w);
}

static short type_of(enum volume_lock_type type)
{
    return type == VOLUME_LOCK_NONE ? F_UNLCK : type == VOLUME_LOCK_SHARED ? F_RDLCK : F_WRLCK;
}

void locks_get(struct locks *l, fuse_req_t req, fuse_ino_t node, const struct volume_lock *lock)
{
    struct volume_lock found = *lock;
    int rc = volume_getlock(l->volume, node, &found);
    if (rc != 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    const struct flock range = {
        .l_type = type_of(found.type),
        .l_whence = SEEK_SET,
        .l_start = found.start,
        .l_len = found.end == INT64_MAX ? 0 : found.end - found.start + 1,
        .l_pid = (pid_t)found.pid,
    };
    fuse_reply_lock(req, &range);
}

struct volume_lock locks_of_range(const struct flock *range, uint64_t owner)
{
    return (struct volume_lock){
        .type = range->l_type == F_UNLCK   ? VOLUME_LOCK_NONE
                : range->l_type == F_RDLCK ? VOLUME_LOCK_SHARED
                                           : VOLUME_LOCK_EXCLUSIVE,
        .owner = owner,
        .start = range->l_start,
        .end = range->l_len == 0 ? INT64_MAX : range->l_start + range->l_len - 1,
        .pid = (uint32_t)range->l_pid,
    };
}

struct volume_lock locks_of_file(int operation, uint64_t owner)
{
    const int how = operation & ~LOCK_NB;
    return (struct volume_lock){
        .type = how == LOCK_UN   ? VOLUME_LOCK_NONE
                : how == LOCK_SH ? VOLUME_LOCK_SHARED
                                 : VOLUME_LOCK_EXCLUSIVE,
        .flock = true,
        .owner = owner,
        .end = INT64_MAX,
    };
}

/* ---- start and stop ---- */

static void free_locks(struct locks *l)
{
    pthread_mutex_destroy(&l->mutex);
    pthread_cond_destroy(&l->news);
    lock_owners_free(l->owners);
    free(l);
}

int locks_start(struct volume *v, struct fuse_session *fuse, struct locks **out)
{
    sigset_t all, before;
    struct locks *l = xcalloc(1, sizeof *l);
    l->volume = v;
    l->fuse = fuse;
    l->owners = lock_owners_new();
    pthread_mutex_init(&l->mutex, NULL);
    condition_init(&l->news);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(&l->thread, NULL, run, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum != 0) {
        free_locks(l);
        return -errnum;
    }
    *out = l;
    return 0;
}

void locks_stop(struct locks *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->mutex);
    l->ends = true;
    pthread_cond_signal(&l->news);
    pthread_mutex_unlock(&l->mutex);
    pthread_join(l->thread, NULL);
    while (l->first != NULL) {
        struct waiter *w = l->first;
        l->first = w->next;
        finish(w, -EINTR);
    }
    free_locks(l);
}
