/* One mountpath: a directory on a disk of its own, this target's and nobody else's.
 *
 *   <path>/.dfc/lock           held (flock) while a daemon has the mountpath open
 *   <path>/.dfc/format.json    whose it is: format.h
 *   <path>/.dfc/life.json      what must be known when power comes back: life.h
 *   <path>/.dfc/obj/<bucket id>/<xx>/<hash>    objects; directories are made for the first of them
 *   <path>/.dfc/tmp/           unfinished writes; emptied when it is opened
 *   <path>/.dfc/trash/         buckets that were destroyed, on their way out
 *   <path>/.dfc/index/         index.h
 *   <path>/.dfc/uploads/       uploads in parts: target/uploads/upload_dir.h
 *   <path>/.dfc/jobs/          jobs' work files, a directory for each
 *   <path>/.dfc/docs/          the last cluster state seen: docs.h
 *
 * Opening refuses (E_MOUNTPATH): another target's, one that was made at another path, one that
 * another process has open, one that lies inside another mountpath, one with objects but no
 * format.json, and a file system that does not keep user attributes of the size that objects need.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/metrics.h"
#include "io/disk.h"
#include "target/disk/bucket_dirs.h"
#include "target/format/format.h"
#include "target/index/index.h"
#include "target/disk/crash_state.h"
#include "target/format/object_path.h"

struct meter;
struct reader;
struct reindexer;

struct mountpath {
    char *path;            /* absolute, without symbolic links */
    struct format *format; /* with mountpath_save_format() what is on the disk */
    char *format_text;     /* what is on the disk, as it stands there */
    int lock_fd;
    int root_fd; /* <path>/.dfc */
    int obj_fd;
    int tmp_fd;
    int trash_fd;
    dev_t device;
    bool syncs_replaced; /* or a new name may outlive its bytes in a cut of power */
    atomic_ullong next_tmp;
    struct bucket_dirs *durable;     /* directories that are known to be on the disk */
    struct crash_state *crash_state; /* begins when the index is whole: floor.h */
    struct index *index;             /* mountpaths.h opens these four */
    struct reindexer *reindexer;
    struct disk *disk;
    struct reader *reader; /* reads what is not in memory */
    metric_t *errors;
    struct meter *meter;     /* what its disk does: io/meter.h */
    int space;               /* enum space_state, as it was last seen: space_watch.h's */
    atomic_ullong io_errors; /* since it was opened */
    atomic_bool suspect;     /* something was found that a test may explain: health.h */
    struct {
        uint64_t seen, window_began_ms, in_window;
    } health; /* health.h's thread's: of io_errors */
    /* mountpaths.h's: */
    size_t sets;                    /* that have it open */
    struct mountpath *next_closing; /* of those that nobody holds */
    bool erase;                     /* when it is closed */
    bool bad;                       /* its disk is; then it is closed without it */
};

int mountpath_open(const char *path, const char *target_id, bool moved_ok, struct mountpath **out,
                   struct error *err);
/* Is one of the two directories inside the other, or the same? */
bool mountpath_paths_nest(const char *a, const char *b);
/* What the directory says it is, without touching it: NULL where it has no format.json. */
int mountpath_peek(const char *path, struct format **out, struct error *err);
void mountpath_close(struct mountpath *mp); /* its reindexer has ended */
/* Takes a closed one's .dfc away. */
int mountpath_erase(const char *path, struct error *err);
DEFINE_CLEANUP(struct mountpath, mountpath_close);

const char *mountpath_id(const struct mountpath *mp);
/* Is there a file of any object or tombstone? */
int mountpath_has_objects(const struct mountpath *mp, bool *has, struct error *err);
/* Writes mp->format to the disk, durably, if it is not there already. */
int mountpath_save_format(struct mountpath *mp, struct error *err);
/* Are format.json, the objects' directory and the index where they were made?  Who removes a
 * mountpath while it is open takes them away one by one. */
bool mountpath_is_whole(const struct mountpath *mp);
int mountpath_capacity(const struct mountpath *mp, uint64_t *total_bytes, uint64_t *available_bytes,
                       struct error *err);
/* `mountpath="/d1"`: the label of this mountpath's metrics. */
void mountpath_labels(const struct mountpath *mp, struct buf *out);
void mountpath_path_label(const char *path, struct buf *out); /* of one that is not open */
/* Counts an I/O error of this disk; returns `code`. */
int mountpath_failed(struct mountpath *mp, int code);

/* A name in tmp/ that nobody else uses. */
enum { MOUNTPATH_TMP_NAME = 24 };
void mountpath_tmp_name(struct mountpath *mp, char out[static MOUNTPATH_TMP_NAME]);
/* The directory of an object, and its bucket's, where they are absent. */
int mountpath_make_dir(struct mountpath *mp, uint64_t bucket_id, const struct object_path *p,
                       struct error *err);
/* Brings the way to that directory to the disk: before anything in it counts as durable.
 * E_BUCKET_NOT_FOUND where the bucket's is gone. */
int mountpath_sync_way(struct mountpath *mp, uint64_t bucket_id, const struct object_path *p,
                       struct error *err);
/* Moves the bucket's directory into trash/, quickly.  Absent is fine. */
int mountpath_trash_bucket(struct mountpath *mp, uint64_t bucket_id, struct error *err);
/* Removes what is in trash/, which may take long; ends early when *stop becomes true. */
int mountpath_empty_trash(struct mountpath *mp, const atomic_bool *stop, struct error *err);
/* The ids of the buckets that have a directory; the caller frees *ids. */
int mountpath_buckets(const struct mountpath *mp, uint64_t **ids, size_t *count, struct error *err);
