/* The inside of a struct volfs. */
#pragma once

#include "mount/vfs/handles.h"
#include "mount/volfs/cached.h"
#include "mount/volfs/objects.h"
#include "mount/volfs/pending.h"
#include "mount/volfs/volfs.h"

struct volfs {
    struct volfs_options options;
    struct volume *volume;
    struct cached cached;
    struct buffer *buffer;
    struct pendings pendings;
    struct objects objects;
    struct ledger *ledger;
    struct handles handles;
    uint64_t *lost; /* inodes */
    size_t lost_count;
    pthread_t heart, upkeep, cleaner;
    bool has_heart, has_upkeep, has_cleaner;
    _Atomic uint64_t cleans_from; /* slices of the cleaner are not below; UINT64_MAX: it has none */
    pthread_mutex_t lock;         /* of what follows */
    pthread_cond_t news;
    bool ends;
};

/* upkeep.c: until `ends`. */
void *volfs_heart(void *v);
void *volfs_upkeep(void *v);
void *volfs_cleaner(void *v);

/* restore.c: what the process before has left in the ledger. */
void volfs_restore(struct volfs *v);
/* Handles of the process before.  lost: bytes that were written by it. */
void volfs_restore_file(struct volfs *v, uint64_t number, const struct ledger_record *r, bool lost);
void volfs_restore_directory(struct volfs *v, uint64_t number, const struct ledger_record *r);
void volfs_restore_place(struct volfs *v, uint64_t number, const struct ledger_record *r);
