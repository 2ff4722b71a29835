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
 * moment has forgotten as much.  Then objects that were written with durability async at `flushed`
 * or later may be torn, with their full length even, and are checked when the index is rebuilt
 * (reindex.h); and versions that somebody has seen may be gone, so that the floor rises by
 * VERSION_FLOOR_STEP: an entity tag never comes again for other bytes.
 *
 * An async commit stamps and names its file between crash_state_enter() and crash_state_leave(); a
 * flush waits for those that are inside, takes the time, and gives later ones at least this time.
 * So what a flush has not covered is known by its time, whatever the clock does.  Who names a file
 * without sync must do the same.
 *
 * Any thread may call anything between crash_state_begin() and crash_state_close(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

struct crash_state;

/* More than the writes of one name under one state of the cluster. */
#define VERSION_FLOOR_STEP (UINT64_C(1) << 32)

/* Reads it; `root` is <mountpath>/.dfc.  Without the file a mountpath that `has_objects` counts as
 * one that has lost power. */
int crash_state_open(const char *root, bool has_objects, struct crash_state **out,
                     struct error *err);
/* Flushes and writes down an orderly end, where it had begun.  False: something may not have
 * reached the disk, and the next start treats it as a loss of power. */
bool crash_state_close(struct crash_state *l);
DEFINE_CLEANUP(struct crash_state, crash_state_close);

bool crash_state_power_lost(const struct crash_state *l);
/* May an object without durability be torn, by its time of modification? */
bool crash_state_suspects(const struct crash_state *l, int64_t modified_ms);
/* Every suspect has been looked at.  Without this the next start suspects them again. */
void crash_state_set_checked(struct crash_state *l);

/* From now on a loss of power would show; once begun, only the floor rises.  Where it cannot be
 * written (a full disk) crash_state_settle() tries again. */
int crash_state_begin(struct crash_state *l, uint64_t floor, struct error *err);
/* Before each write: what is in force stands on the disk.  Costs nothing where it does. */
int crash_state_settle(struct crash_state *l, struct error *err);
uint64_t crash_state_floor(const struct crash_state *l);
/* Raises it, durably; lower ones are no change. */
int crash_state_raise(struct crash_state *l, uint64_t floor, struct error *err);

void crash_state_enter(struct crash_state *l);
/* Inside: the time that the object gets, not earlier than the last flush. */
int64_t crash_state_time(const struct crash_state *l, int64_t wall_ms);
void crash_state_leave(struct crash_state *l);
/* Flushes the file system if anything was named without sync since the last time.  Blocks. */
int crash_state_flush(struct crash_state *l, struct error *err);
