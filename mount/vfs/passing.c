#include "mount/vfs/passing.h"

#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/metrics.h"

void passing_init(struct passing *p, struct tiers *tiers)
{
    *p = (struct passing){.tiers = tiers};
    pthread_mutex_init(&p->lock, NULL);
}

void passing_done(struct passing *p)
{
    pthread_mutex_destroy(&p->lock);
}

void passing_start(struct passing *p, const struct backings *backings, bool can_begin)
{
    p->backings = *backings;
    p->is_on = can_begin;
    metric_set(metric_get(M_mount_passthrough, NULL), can_begin);
}

/* Under the lock. */
static int backing_new(struct passing *p, int fd)
{
    int backing = p->backings.open(p->backings.context, fd);
    if (backing > 0)
        return backing;
    p->is_on = false;
    metric_set(metric_get(M_mount_passthrough, NULL), 0);
    log_warn("the kernel does not read cached files itself",
             lstr("error", backing < 0 ? strerror(-backing) : "no number"));
    return 0;
}

/* Later opens of the node may have another entity: its tag changes when a backend has got it. */
static void hold(struct passing *p, struct node *node, struct entity *e)
{
    node->held = entity_ref(e);
    tiers_hold(p->tiers, e, 1);
}

static void begin(struct passing *p, struct node *node, struct entity *e, int fd)
{
    node->backing = backing_new(p, fd);
    if (node->backing > 0)
        hold(p, node, e);
}

static void end(struct passing *p, struct node *node)
{
    p->backings.close(p->backings.context, node->backing);
    node->backing = 0;
    tiers_hold(p->tiers, node->held, -1);
    entity_unref(steal(node->held));
}

static bool is_on(struct passing *p)
{
    pthread_mutex_lock(&p->lock);
    bool on = p->is_on;
    pthread_mutex_unlock(&p->lock);
    return on;
}

int passing_open(struct passing *p, struct node *node, struct entity *e)
{
    /* Not under the lock: the disk may be slow. */
    _cleanup_close_ int fd = is_on(p) ? tiers_whole(p->tiers, e) : -1;
    pthread_mutex_lock(&p->lock);
    if (fd >= 0 && p->is_on && node->served == 0 && node->passed == 0)
        begin(p, node, e, fd);
    const int backing = node->served == 0 ? node->backing : 0;
    if (backing > 0)
        node->passed++;
    else
        node->served++;
    pthread_mutex_unlock(&p->lock);
    if (backing > 0)
        metric_add(metric_get(M_mount_passed_opens_total, NULL), 1);
    return backing;
}

const struct entity *passing_entity(const struct node *node, const struct entity *e, int backing)
{
    return backing > 0 ? node->held : e;
}

void passing_restore(struct passing *p, struct node *node, struct entity *e, int backing)
{
    pthread_mutex_lock(&p->lock);
    if (backing > 0 && node->passed == 0)
        hold(p, node, e);
    if (backing > 0) {
        node->backing = backing;
        node->passed++;
    } else {
        node->served++;
    }
    pthread_mutex_unlock(&p->lock);
}

void passing_close(struct passing *p, struct node *node, int backing)
{
    pthread_mutex_lock(&p->lock);
    if (backing == 0)
        node->served--;
    else if (--node->passed == 0)
        end(p, node);
    pthread_mutex_unlock(&p->lock);
}
