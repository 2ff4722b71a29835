/* Who reads an open file: this process, or the kernel itself, from a file of the disk cache.
 *
 * The kernel wants all opens of a node to be alike, and those that it reads itself to be of the
 * same file.  So the first open decides, and the others follow until the last one has ended.  An
 * object that is not yet in one file is read by this process. */
#pragma once

#include <pthread.h>

#include "mount/data/tiers.h"
#include "mount/vfs/backings.h"
#include "mount/vfs/nodes.h"

struct passing {
    pthread_mutex_t lock; /* guards the opens of all nodes */
    bool is_on;
    struct backings backings;
    struct tiers *tiers;
};

void passing_init(struct passing *p, struct tiers *tiers); /* borrowed */
void passing_done(struct passing *p);
/* can_begin: opens may begin to pass; those of the process before end in any case. */
void passing_start(struct passing *p, const struct backings *backings, bool can_begin);

/* One open more of the entity's node: the kernel's number of the file that it reads; 0: this
 * process reads. */
int passing_open(struct passing *p, struct node *node, struct entity *e);
/* Whose bytes the open reads, which may be an earlier entity: the ledger has it for the next
 * process.  It stays until the open ends. */
const struct entity *passing_entity(const struct node *node, const struct entity *e, int backing);
/* An open of the process before. */
void passing_restore(struct passing *p, struct node *node, struct entity *e, int backing);
/* The ledger does not have the open any more: the number may get another meaning. */
void passing_close(struct passing *p, struct node *node, int backing);
