/* The names that this mount is writing: each has a draft until it is stored.
 *
 *     WANTED    an open that replaces the object came; the kernel looks the name up once more, and
 *               opens the draft
 *     OPEN      a handle writes it
 *     CLOSING   the last descriptor is closed, and the file is being stored
 *
 * A program that opens a name meets its draft: so two writers of one mount find each other, and
 * pages of the version before stay what they were.
 *
 * A store and an unlink of one draft take turns, each for as long as the cluster is asked:
 *     the store is first     the unlink waits, and deletes what was stored
 *     the unlink is first    the store waits, and does nothing if the name is gone
 * A turn ends when the cluster has answered or failed.  No signal ends the wait for it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mount/vfs/nodes.h"

#define DRAFTS_WANTED_MS 10000 /* a draft that nobody opens is forgotten */

struct draft;

struct drafts {
    struct nodes *nodes;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct draft *first;
};

void drafts_init(struct drafts *d, struct nodes *nodes);
void drafts_done(struct drafts *d);

/* The node of the name's draft, with a use; NULL: there is none. */
struct node *drafts_find(struct drafts *d, const char *key);
/* A draft that takes the place of the version with this tag; fine where it is WANTED already.
 * EBUSY: it is OPEN. */
int drafts_want(struct drafts *d, const struct node_is *is, const char *etag);
/* A draft of a new name: OPEN, its node with a use.  EEXIST: the name has a draft. */
int drafts_create(struct drafts *d, const struct node_is *is, atomic_bool *unlinked,
                  struct node **node);
/* The node's draft becomes OPEN; *etag is the caller's.  EBUSY: it is; ESTALE: it is no draft any
 * more. */
int drafts_open(struct drafts *d, const struct node *node, atomic_bool *unlinked, char **etag);
/* Is the node a draft still?  0, or ESTALE. */
int drafts_look(struct drafts *d, const struct node *node);
/* Is the name free to be renamed?  0, or EBUSY. */
int drafts_idle(struct drafts *d, const char *key);
/* Is a name that begins so being written? */
bool drafts_below(struct drafts *d, const char *prefix);
/* The turn of an unlink: the draft's node, with a use until the end; NULL: there is no draft. */
struct node *drafts_unlink_begin(struct drafts *d, const char *key);
/* is_gone: the draft ends, and its handle sees that in *unlinked.  Else it stays as it was. */
void drafts_unlink_end(struct drafts *d, struct node *node, bool is_gone);
/* The turn of a store, or of several by one handle.  Fine where the node is no draft any more. */
void drafts_store_begin(struct drafts *d, const struct node *node);
void drafts_store_end(struct drafts *d, const struct node *node);
void drafts_closing(struct drafts *d, const struct node *node);
void drafts_end(struct drafts *d, const struct node *node); /* fine where there is none */
