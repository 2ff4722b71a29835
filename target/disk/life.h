/* What a mountpath must still know when power comes back: <mountpath>/.dfc/life.json.
 *
 *   {"format": 1, "boot": "3f…", "floor": 4294967296, "flushed": 1700000000000}
 *
 *   boot      the machine's boot and the mount of the file system while the mountpath is open, ""
 *             after an orderly end
 *   floor     the counter above which new versions begin (version.h)
 *   flushed   every object with an earlier time of modification has reached the disk
 *
 * Power was lost where the file has another boot, or another mount: a disk that was gone for a
 * moment has forgotten as much.  Then objects that were written
 * with durability async at `flushed` or later may be torn, with their full length even, and are
 * checked when the index is rebuilt (reindex.h); and versions that somebody has seen may be gone,
 * so that the floor rises by LIFE_STEP: an entity tag never comes again for other bytes.
 *
 * An async commit stamps and names its file between life_enter() and life_leave(); a flush waits
 * for those that are inside, takes the time, and gives later ones at least this time.  So what a
 * flush has not covered is known by its time, whatever the clock does.  Who names a file without
 * sync must do the same.
 *
 * Any thread may call anything between life_begin() and life_close(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

struct life;

/* More than the writes of one name under one state of the cluster. */
#define LIFE_STEP (UINT64_C(1) << 32)

/* Reads it; `root` is <mountpath>/.dfc.  Without the file a mountpath that `has_objects` counts as
 * one that has lost power. */
int life_open(const char *root, bool has_objects, struct life **out, struct error *err);
/* Flushes and writes down an orderly end, where it had begun.  False: something may not have
 * reached the disk, and the next start treats it as a loss of power. */
bool life_close(struct life *l);
DEFINE_CLEANUP(struct life, life_close);

bool life_power_lost(const struct life *l);
/* May an object without durability be torn, by its time of modification? */
bool life_suspects(const struct life *l, int64_t modified_ms);
/* Every suspect has been looked at.  Without this the next start suspects them again. */
void life_set_checked(struct life *l);

/* From now on a loss of power would show; once begun, only the floor rises.  Where it cannot be
 * written (a full disk) life_settle() tries again. */
int life_begin(struct life *l, uint64_t floor, struct error *err);
/* Before each write: what is in force stands on the disk.  Costs nothing where it does. */
int life_settle(struct life *l, struct error *err);
uint64_t life_floor(const struct life *l);
/* Raises it, durably; lower ones are no change. */
int life_raise(struct life *l, uint64_t floor, struct error *err);

void life_enter(struct life *l);
/* Inside: the time that the object gets, not earlier than the last flush. */
int64_t life_time(const struct life *l, int64_t wall_ms);
void life_leave(struct life *l);
/* Flushes the file system if anything was named without sync since the last time.  Blocks. */
int life_flush(struct life *l, struct error *err);
