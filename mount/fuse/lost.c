#include "mount/fuse/lost.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/volfs/volfs.h"

enum { WAIT_MS = 200, REPLY_WAIT_MS = 2000, LOOK_MS = 5 };

struct lost {
    pthread_t thread;
    struct fuse_session *fuse;
    const uint64_t *inodes;
    size_t count;
    atomic_bool done;
};

static void *forget_pages(void *arg)
{
    struct lost *l = arg;
    for (size_t i = 0; i < l->count; i++) {
        int rc = fuse_lowlevel_notify_inval_inode(l->fuse, l->inodes[i], 0, 0);
        if (rc != 0 && rc != -ENOENT) /* it keeps none */
            log_warn("pages of lost bytes stay with the kernel", lu64("inode", l->inodes[i]),
                     li64("error", -rc));
    }
    atomic_store(&l->done, true);
    return NULL;
}

int lost_start(struct volfs *v, struct fuse_session *fuse, struct lost **out)
{
    sigset_t all, before;
    struct timespec until;
    size_t count;
    const uint64_t *inodes = volfs_lost(v, &count);
    if (count == 0)
        return 0;
    struct lost *l = xcalloc(1, sizeof *l);
    *l = (struct lost){.fuse = fuse, .inodes = inodes, .count = count};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(&l->thread, NULL, forget_pages, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum != 0) {
        free(l);
        return -errnum;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_timedjoin_np(l->thread, NULL, &until) == 0)
        free(l);
    else
        *out = l;
    return 0;
}

void lost_wait(struct lost *l)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    const uint64_t until = clock_ms() + REPLY_WAIT_MS;
    while (l != NULL && !atomic_load(&l->done) && clock_ms() < until)
        nanosleep(&look, NULL);
}

void lost_stop(struct lost *l)
{
    if (l == NULL)
        return;
    pthread_join(l->thread, NULL);
    free(l);
}
