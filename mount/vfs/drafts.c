#include "mount/vfs/drafts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"

enum draft_state { WANTED, OPEN, CLOSING };

struct draft {
    struct draft *next;
    struct node *node; /* a use */
    char *etag;        /* of the version that it replaces; NULL: a new name */
    enum draft_state state;
    uint64_t wanted_ms;
    atomic_bool *unlinked; /* of its handle */
    unsigned stores;       /* that run */
    bool unlinks;          /* the cluster is asked to delete it */
};

void drafts_init(struct drafts *d, struct nodes *nodes)
{
    *d = (struct drafts){.nodes = nodes};
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->ended, NULL);
}

/* *at is the draft. */
static void draft_take_out(struct drafts *d, struct draft **at)
{
    struct draft *draft = *at;
    *at = draft->next;
    nodes_forget(d->nodes, draft->node, 1);
    free(draft->etag);
    free(draft);
    pthread_cond_broadcast(&d->ended);
}

void drafts_done(struct drafts *d)
{
    while (d->first != NULL)
        draft_take_out(d, &d->first);
    pthread_cond_destroy(&d->ended);
    pthread_mutex_destroy(&d->lock);
}

static void expire(struct drafts *d)
{
    const uint64_t now = clock_ms();
    for (struct draft **at = &d->first; *at != NULL;) {
        if ((*at)->state == WANTED && now - (*at)->wanted_ms > DRAFTS_WANTED_MS)
            draft_take_out(d, at);
        else
            at = &(*at)->next;
    }
}

static struct draft **place_of_key(struct drafts *d, const char *key)
{
    struct draft **at = &d->first;
    expire(d);
    while (*at != NULL && strcmp((*at)->node->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static struct draft **place_of_node(struct drafts *d, const struct node *node)
{
    struct draft **at = &d->first;
    while (*at != NULL && (*at)->node != node)
        at = &(*at)->next;
    return at;
}

/* The name's draft; one that is being stored is waited for. */
static struct draft *draft_settled(struct drafts *d, const char *key)
{
    struct draft *draft;
    while ((draft = *place_of_key(d, key)) != NULL && draft->state == CLOSING)
        pthread_cond_wait(&d->ended, &d->lock);
    return draft;
}

/* NULL: the ledger has no room. */
static struct draft *draft_add(struct drafts *d, const struct node_is *is)
{
    struct node *node = nodes_draft(d->nodes, is);
    if (node == NULL)
        return NULL;
    struct draft *draft = xcalloc(1, sizeof *draft);
    draft->node = node;
    draft->next = d->first;
    d->first = draft;
    return draft;
}

struct node *drafts_find(struct drafts *d, const char *key)
{
    struct node *node = NULL;
    pthread_mutex_lock(&d->lock);
    struct draft *draft = *place_of_key(d, key);
    if (draft != NULL) {
        node = draft->node;
        nodes_use(d->nodes, node);
    }
    pthread_mutex_unlock(&d->lock);
    return node;
}

int drafts_want(struct drafts *d, const struct node_is *is, const char *etag)
{
    int rc = 0;
    pthread_mutex_lock(&d->lock);
    struct draft *draft = draft_settled(d, is->key);
    if (draft == NULL)
        draft = draft_add(d, is);
    if (draft == NULL) {
        rc = -ENOMEM;
    } else if (draft->state == WANTED) {
        free(draft->etag);
        draft->etag = xstrdup(etag);
        draft->wanted_ms = clock_ms();
    } else {
        rc = -EBUSY;
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

int drafts_create(struct drafts *d, const struct node_is *is, atomic_bool *unlinked,
                  struct node **node)
{
    int rc = -EEXIST;
    struct draft *draft = NULL;
    pthread_mutex_lock(&d->lock);
    if (draft_settled(d, is->key) == NULL) {
        rc = -ENOMEM;
        draft = draft_add(d, is);
    }
    if (draft != NULL) {
        draft->state = OPEN;
        draft->unlinked = unlinked;
        *node = draft->node;
        nodes_use(d->nodes, *node);
        rc = 0;
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

/* What waited may belong to another draft of the name by now. */
static struct draft *draft_of_node(struct drafts *d, const struct node *node)
{
    struct draft *draft = draft_settled(d, node->key);
    return draft != NULL && draft->node == node ? draft : NULL;
}

int drafts_open(struct drafts *d, const struct node *node, atomic_bool *unlinked, char **etag)
{
    int rc = 0;
    pthread_mutex_lock(&d->lock);
    struct draft *draft = draft_of_node(d, node);
    if (draft == NULL) {
        rc = -ESTALE;
    } else if (draft->state == OPEN) {
        rc = -EBUSY;
    } else {
        draft->state = OPEN;
        draft->unlinked = unlinked;
        *etag = steal(draft->etag);
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

int drafts_look(struct drafts *d, const struct node *node)
{
    pthread_mutex_lock(&d->lock);
    int rc = draft_of_node(d, node) != NULL ? 0 : -ESTALE;
    pthread_mutex_unlock(&d->lock);
    return rc;
}

int drafts_idle(struct drafts *d, const char *key)
{
    pthread_mutex_lock(&d->lock);
    int rc = draft_settled(d, key) == NULL ? 0 : -EBUSY;
    pthread_mutex_unlock(&d->lock);
    return rc;
}

bool drafts_below(struct drafts *d, const char *prefix)
{
    bool found = false;
    pthread_mutex_lock(&d->lock);
    for (struct draft *at = d->first; !found && at != NULL; at = at->next)
        found = at->state != WANTED && strncmp(at->node->key, prefix, strlen(prefix)) == 0;
    pthread_mutex_unlock(&d->lock);
    return found;
}

struct node *drafts_unlink_begin(struct drafts *d, const char *key)
{
    struct node *node = NULL;
    struct draft *draft;
    pthread_mutex_lock(&d->lock);
    while ((draft = draft_settled(d, key)) != NULL && (draft->stores > 0 || draft->unlinks))
        pthread_cond_wait(&d->ended, &d->lock);
    if (draft != NULL) {
        draft->unlinks = true;
        node = draft->node;
        nodes_use(d->nodes, node);
    }
    pthread_mutex_unlock(&d->lock);
    return node;
}

void drafts_unlink_end(struct drafts *d, struct node *node, bool is_gone)
{
    pthread_mutex_lock(&d->lock);
    struct draft **at = place_of_node(d, node);
    if (is_gone && *at != NULL) {
        if ((*at)->unlinked != NULL)
            atomic_store((*at)->unlinked, true);
        draft_take_out(d, at);
    } else if (*at != NULL) {
        (*at)->unlinks = false;
        pthread_cond_broadcast(&d->ended);
    }
    pthread_mutex_unlock(&d->lock);
    nodes_forget(d->nodes, node, 1);
}

/* The node's draft, when no unlink of it runs. */
static struct draft *draft_kept(struct drafts *d, const struct node *node)
{
    struct draft *draft;
    while ((draft = *place_of_node(d, node)) != NULL && draft->unlinks)
        pthread_cond_wait(&d->ended, &d->lock);
    return draft;
}

void drafts_store_begin(struct drafts *d, const struct node *node)
{
    pthread_mutex_lock(&d->lock);
    struct draft *draft = draft_kept(d, node);
    if (draft != NULL)
        draft->stores++;
    pthread_mutex_unlock(&d->lock);
}

void drafts_store_end(struct drafts *d, const struct node *node)
{
    pthread_mutex_lock(&d->lock);
    struct draft *draft = *place_of_node(d, node);
    if (draft != NULL) {
        draft->stores--;
        pthread_cond_broadcast(&d->ended);
    }
    pthread_mutex_unlock(&d->lock);
}

void drafts_closing(struct drafts *d, const struct node *node)
{
    pthread_mutex_lock(&d->lock);
    struct draft *draft = draft_kept(d, node);
    if (draft != NULL) {
        draft->state = CLOSING;
        draft->unlinked = NULL;
    }
    pthread_mutex_unlock(&d->lock);
}

void drafts_end(struct drafts *d, const struct node *node)
{
    pthread_mutex_lock(&d->lock);
    struct draft **at = place_of_node(d, node);
    if (*at != NULL)
        draft_take_out(d, at);
    pthread_mutex_unlock(&d->lock);
}
