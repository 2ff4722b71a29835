/* The trash: what was removed and may come back, and clones that are being built.
 *
 *     TRASH_INO               the directory; lookups in the root find it as ".trash", lists do not
 *       2026-11-29-04         of an hour: its inode is TRASH_INO + 1 + hours since 1970
 *         12-34-notes         was "notes" in directory 12, and is inode 34
 *         clone-35            is not complete
 *
 * A name of the trash is cut where it is too long.  Then the inode has the whole name of before as
 * an extended attribute, until it leaves the trash.
 *
 * Both are made when they are needed, and belong to root alone.  Nothing is made, linked or moved
 * into them but by the calls here, and hours are removed by the cleaning alone. */
#pragma once

#include "mount/volume/attr.h"
#include "mount/volume/txn.h"

#define TRASH_INO (1ull << 48) /* no counter comes so far */
#define TRASH_NAME ".trash"
#define TRASH_HOUR_MS (3600ll * 1000)
#define TRASH_DAY_MS (24 * TRASH_HOUR_MS)
enum { TRASH_HOUR_NAME = 24 };
#define TRASH_WHOLE_NAME "trusted.dfc.trash-name" /* extended attribute: a name that was cut */

/* The trash itself, or an hour of it. */
static inline bool trash_has(uint64_t directory)
{
    return directory >= TRASH_INO;
}

/* As volume_rmdir(), also of the trash. */
int remove_directory(struct volume *v, uint64_t directory, const char *name);
/* A name and what is below it move to the hour. */
int remove_whole(struct volume *v, uint64_t directory, const char *name, uint64_t hour);

/* EPERM: no name may be made there.  ENOENT: the directory itself was moved to the trash. */
int trash_check_target(uint64_t directory, const struct attr *a, const char *name);

uint64_t trash_hour_of(int64_t now_ms);
int64_t trash_hour_end_ms(uint64_t hour);
void trash_hour_name(uint64_t hour, char out[static TRASH_HOUR_NAME]);

/* Which hour takes what is removed from the directory.  0: nothing does, as the trash is off, the
 * directory is of the trash itself, or the volume has no inode left. */
int trash_hour_for(struct volume *v, uint64_t directory, uint64_t *hour);

struct trash_name {
    uint64_t hour;      /* 0: what loses its last name is freed after the grace */
    uint64_t directory; /* where it was */
    const char *name;
    bool whole; /* a directory may have names */
};
/* An inode leaves the trash. */
void trash_leave(struct txn *t, uint64_t ino);
bool trash_is_full(const struct txn *t, const struct meta_value *use);
/* One name less; the entry itself and the counters of its directory are the caller's.  The last
 * name moves to the trash, or steps_drop_name().  use: as it was read; a volume that is full keeps
 * nothing. */
void trash_drop_name(struct txn *t, const struct trash_name *was, const struct meta_value *use,
                     uint64_t ino, const struct attr *a);

/* The directory of this hour, which is there from then on for a day at least.  ENOSPC: the volume
 * has no inode left for it. */
int trash_need_hour(struct volume *v, uint64_t *hour);
