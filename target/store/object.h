/* The operations on one object, on the disks of one target.  No HTTP, no cluster: what the store
 * must know of the rest comes through struct object_env.
 *
 * An object is one file with an attribute (attr.h), made visible by one rename:
 *
 *   begin ─▶ write … ─▶ commit:  attribute ─▶ fsync file ─▶ index ─▶ rename ─▶ fsync directory
 *   tmp/5    (checksum, buffer)             (sync only)                      (sync only)
 *
 * What can fail early does so before the rename; whatever fails leaves the old object and nothing
 * else.  A crash leaves at most a file in tmp/, which the next start empties, and an index without
 * its marker, which the next start fills anew.
 *
 * Versions.  Every write, tombstones included, gets a version greater than what the name has on
 * disk, decided under the name's lock.  Of two writers at once the later rename wins, and has the
 * greater version.
 *
 * Hidden objects.  A job's output carries the job's id until the job has committed: it is
 * reserved (no PUT, E_OBJECT_RESERVED) but not there (GET, HEAD, list, DELETE: not found).  It
 * becomes visible the moment env->job_committed() says so, for all names at once; object_unmark()
 * then takes the mark off, one by one, so that the job can be forgotten.
 *
 * Threads: any may call anything.  Calls with `done` never wait for the disk to sync or write: with
 * DURABILITY_SYNC, and where a PUT replaces an object, done() comes from the mountpath's disk
 * thread, otherwise before the call returns.  The others block as long as the disk does. Locks: one
 * of 1024 mutexes by name, never two; below it the index's writer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "target/format/attr.h"
#include "target/disk/mountpaths.h"
#include "target/disk/space.h"

struct buf;
struct hashers;
struct object_store;
struct pin_set;
struct pin_sets;
struct reader;

struct object_env {
    void *ctx;
    /* What versions are made of: the term and the version of the cluster's state in force. */
    void (*map)(void *ctx, uint64_t *term, uint64_t *map_version);
    /* Has the decision to commit this job been made?  Once true, always true while any object
     * carries its mark. */
    bool (*job_committed)(void *ctx, const char *job_id);
    /* Is this target the object's owner, by the state in force?  Asked under the name's lock before
     * a write: who has lost the name writes it no more.  NULL: always. */
    bool (*owns)(void *ctx, uint64_t bucket_id, const char *name);
    /* Does the bucket take objects, by the state in force?  Asked at the same place.  NULL: always.
     * E_NOT_READY: it is being destroyed; E_BUCKET_NOT_FOUND: it was. */
    int (*takes)(void *ctx, uint64_t bucket_id, struct error *err);
    /* Or NULL: an object or tombstone that the bucket's backend does not have was committed here;
     * written_ms: when it was written, by the wall. */
    void (*pending)(void *ctx, uint64_t bucket_id, const char *name, int64_t written_ms);
    /* Is it on its way to the backend just now? */
    bool (*uploading)(void *ctx, uint64_t bucket_id, const char *name);
};

struct object_store_config {
    struct mountpaths *mountpaths; /* outlives the store */
    const struct object_env *env;  /* outlives the store */
    size_t put_buffer_bytes;       /* small pieces are gathered to so much */
    uint64_t put_memory_bytes;     /* of all buffers; above it, writers go without */
    struct space_limits space;     /* of what PUT may fill */
    struct space_steps grow;       /* of what has no announced length */
    struct space_steps allocate;   /* of what has */
};

struct object_store *object_store_new(const struct object_store_config *config);
void object_store_free(struct object_store *s); /* nothing is under way */
DEFINE_CLEANUP(struct object_store, object_store_free);
/* Whoever was about to give a file its name has done so, or asks object_env anew: what follows sees
 * all that was done by an older state.  Waits for no disk but theirs. */
void object_store_settle(struct object_store *s);
struct mountpaths *object_store_mountpaths(const struct object_store *s);
/* Does this record's mark still hide it? */
bool object_job_hides(const struct object_store *s, const char *job_or_null);

/* --- reading ---------------------------------------------------------------------------------- */
struct object {
    int fd;           /* the caller's to close; -1 after object_head() */
    struct attr attr; /* borrows from raw: do not copy the struct */
    unsigned char raw[ATTR_ENCODED_MAX];
};

/* E_OBJECT_NOT_FOUND; E_CORRUPT where attribute or length are damaged; E_NO_SPACE where the bytes
 * never came, for lack of room (hollow.h).  With attr.slices the file is a manifest, and
 * object_bytes.h has the bytes. */
int object_open(struct object_store *s, uint64_t bucket_id, const char *name, struct object *o,
                struct error *err);
/* As object_open(), for who serves many: *reader is a reference to the reader of the disk that the
 * object lies on.  With `wait` false the disk is not waited for: OBJECT_WAITS where it would have
 * to be, and *reader says whose threads may. */
enum { OBJECT_WAITS = 1 };
int object_open_for(struct object_store *s, uint64_t bucket_id, const char *name, bool wait,
                    struct object *o, struct reader **reader, struct error *err);
/* The texts borrow from the new one. */
void object_clone(const struct object *from, struct object *to);
int object_head(struct object_store *s, uint64_t bucket_id, const char *name, struct object *o,
                struct error *err);

/* In the metadata of what was read from a backend: the entity tag that it had there, which is its
 * tag here, too. */
#define OBJECT_BACKEND_ETAG "backend-etag"
/* Where it had none that tells bytes apart: its Last-Modified, in seconds. */
#define OBJECT_BACKEND_MODIFIED "backend-modified"
/* "1": it was written here, and has got there; it was not read from there. */
#define OBJECT_BACKEND_SENT "backend-sent"
/* Of what a job downloaded: its URL, without the query. */
#define OBJECT_SOURCE "source"
/* Content-Encoding: of what the bytes are an encoding, as who put them, or their backend, has said.
 */
#define OBJECT_BACKEND_ENCODING "backend-encoding"
/* S3's checksum of the bytes (s3/sum_text.h), of what was written with a spec's `sum`; it stays
 * with the bytes wherever they are copied. */
#define OBJECT_SUM "entity-sum"

/* What a name has here, whatever it is; of hidden objects (but for their slices) and damaged ones
 * nothing is said. */
struct object_held {
    bool found;      /* an object or a tombstone */
    bool visible;    /* an object */
    bool damaged;    /* one that has not its bytes any more, as far as its length says */
    bool no_room;    /* damaged, too: they never came here, for there was no room (hollow.h) */
    bool unreadable; /* not found, but there is something whose attribute cannot be read */
    struct version version;
    uint64_t rank; /* attr_rank.h; 0: not known (a target of an earlier build does not say it) */
    uint64_t size;
    int64_t modified_ms;
    struct checksum_value checksum;
    uint64_t slices; /* the tag of its manifest (ec_manifest.h); 0: its bytes are here */
    uint64_t
        hidden_slices; /* the tag of one that a job hides here, of which nothing else is said */
    bool pending;      /* the bucket's backend does not have it yet (back.h) … */
    bool sent;         /* … or got it from here (OBJECT_BACKEND_SENT) */
    bool uploading;    /* of an answer of another target: it is on its way there just now */
};
/* Under the name's lock: what this target began to write before it lost the name is in it, or is
 * refused afterwards (object_env.owns). */
int object_look(struct object_store *s, uint64_t bucket_id, const char *name,
                struct object_held *out, struct error *err);
/* As object_open(), also of a tombstone.  E_OBJECT_RESERVED where a job's mark is on it. */
int object_open_held(struct object_store *s, uint64_t bucket_id, const char *name, struct object *o,
                     struct error *err);
/* Removes what the name has here, as far as its version is not greater than this one. */
int object_drop(struct object_store *s, uint64_t bucket_id, const char *name,
                const struct version *version, struct error *err);

/* Was there an object whose file somebody has removed, or can nobody say, since its mountpath has
 * just been
 * taken out?  Without a lock: a change may be under way. */
bool object_seems_lost(struct object_store *s, uint64_t bucket_id, const char *name);
/* Is what is here what was stored?  For who doubts it, and may wait: all its bytes are read.  What
 * is not is moved aside (quarantine.h).  *lacking: there should be an object, and its bytes are not
 * here (any more). */
int object_check(struct object_store *s, uint64_t bucket_id, const char *name, bool *lacking,
                 struct error *err);
/* The file of one that E_CORRUPT is said of, in quarantine or in its place, however short it is:
 * its bytes are to be doubted.  E_OBJECT_NOT_FOUND.  For who may wait. */
int object_open_left(struct object_store *s, uint64_t bucket_id, const char *name, int *fd,
                     uint64_t *size, struct reader **reader, struct error *err);
/* For who has found none and may wait: E_CORRUPT where it was lost, which counts as an error of its
 * mountpath and has that tested; E_OBJECT_NOT_FOUND; E_MOUNTPATH_DISABLED, and other failures to
 * look. */
int object_explain_miss(struct object_store *s, uint64_t bucket_id, const char *name,
                        struct error *err);

/* --- writing ---------------------------------------------------------------------------------- */
#define OBJECT_SIZE_UNKNOWN UINT64_MAX

struct object_put;

/* Asked under the name's lock, right before the rename (and once at the start, to refuse early):
 * may the write go on?  `current` is NULL where there is no visible object. */
struct object_condition {
    int (*check)(void *ctx, const struct attr *current, struct error *err);
    void (*seen)(void *ctx); /* or NULL: under the lock, too, when nothing but the rename is left */
    /* Or NULL: takes a put over that check() has refused with E_STALE_MAP, before done(). It can be
     * committed again, or aborted. */
    void (*kept)(void *ctx, struct object_put *put);
    void *ctx; /* lives until done() */
};

/* The outcome: err->code 0 and the attributes as stored, or attr NULL.  Both live until it
 * returns. */
typedef void object_done_fn(void *arg, const struct attr *attr, const struct error *err);

/* Of a copy that another target moves here: it keeps what it has. */
struct object_moved {
    struct version version;
    int64_t modified_ms;
    bool tombstone;
    bool pending;    /* as object_held's */
    bool ranks;      /* of the same version the greater rank stays (attr_rank.h) */
    bool stays;      /* object_put_commit_as() */
    uint64_t hollow; /* it has so many bytes, none of which comes: hollow.h.  The spec's `expect` is
                      * theirs */
};

/* A whole file on the disk of the name's mountpath, which becomes the object by one rename: the
 * object gets a second link to it, and the first one stays.  Nobody writes the file any more. */
struct object_file {
    const struct mountpath *mp; /* that has it; E_STALE_MAP where the name is on another one */
    const char *path;
    uint64_t size;
    struct checksum_value checksum; /* of its bytes, to be stored */
    const char *sum;                /* OBJECT_SUM, or "" */
};

struct object_put_spec {
    uint64_t bucket_id;
    const char *name;
    uint64_t size; /* or OBJECT_SIZE_UNKNOWN */
    enum durability durability;
    enum checksum_type checksum;         /* to be stored */
    const struct checksum_value *expect; /* NULL, or what the bytes must have (any type) */
    const char *content_type;            /* or NULL */
    const char *meta;                    /* "name\0value\0…", or NULL */
    size_t meta_len;
    /* NULL, or the object is hidden until this job has committed; in place of what the job has
     * hidden there before, whatever its version. */
    const char *job_id;
    struct object_condition condition; /* check may be NULL */
    /* What an earlier owner has of the name, or NULL: it is what there is where nothing greater is
     * here, and the new version is greater than its own. */
    const struct object_held *earlier;
    /* Or NULL.  Takes the name's place where it is greater than what is there, or the same and what
     * is there has lost its bytes, or less rank; else E_NOT_MODIFIED. */
    const struct object_moved *moved;
    const char *slices;  /* NULL, or a manifest (ec_manifest.h): then no bytes come */
    bool pending;        /* the bucket's backend gets it later (back.h) */
    bool yields;         /* E_PRECONDITION over what is pending: it comes from the backend */
    bool unnamed;        /* a temporary file: it is never committed, and no rule is asked */
    struct hashers *md5; /* or NULL: its threads compute ATTR_MD5 (file_md5.h) */
    const struct s3_sum_text *sum;  /* or NULL: OBJECT_SUM is computed, and must be this one */
    bool unread;                    /* nobody reads it soon: past the page cache (io/direct.h) */
    bool frees;                     /* it is small and makes room: half of the reserve is its */
    const struct object_file *file; /* or NULL: it has the bytes, and none come */
};

struct object_put;

/* Is there room for so many bytes more where the name belongs?  frees: as in the spec.  E_NO_SPACE.
 */
int object_check_room(struct object_store *s, uint64_t bucket_id, const char *name, uint64_t size,
                      bool frees, struct error *err);
/* Everything of the spec but the condition's ctx is copied.  E_NO_SPACE, E_OBJECT_RESERVED,
 * E_HASH_COLLISION; with a job E_OBJECT_EXISTS where a visible object has the name. */
int object_put_begin(struct object_store *s, const struct object_put_spec *spec,
                     struct object_put **out, struct error *err);
/* E_LENGTH beyond the announced size.  After an error only object_put_abort() is left. */
int object_put_write(struct object_put *p, const void *data, size_t len, struct error *err);
/* The same of bytes that another file has at `offset`: they are shared with it, or copied without
 * going through memory, where the file system can.  `data` has them, too. */
int object_put_copy(struct object_put *p, int fd, uint64_t offset, const void *data, size_t len,
                    struct error *err);
/* All bytes of another file at once, in place of object_put_write(): they are shared with it, if
 * its file system can do so.  *cloned false: nothing was done, and nothing is wrong.  Sums are of
 * the clone's bytes, whatever becomes of the other file; go_on() is asked meanwhile. */
int object_put_clone(struct object_put *p, int fd, int (*go_on)(void *ctx, struct error *err),
                     void *ctx, bool *cloned, struct error *err);
/* What was gathered goes into the file, too: then it has all that was given. */
int object_put_flush(struct object_put *p, struct error *err);
/* For who reads the file while it grows: a descriptor (the caller's to close) and a reference to
 * the reader of its disk.  Both stay good whatever becomes of the put. */
int object_put_share(struct object_put *p, int *fd, struct reader **reader, struct error *err);
/* All bytes were given.  Calls fn once, from this thread or one of the spec's `md5`, when their MD5
 * is known.  Of a put that has one this comes before finish, decide and commit, which have its
 * error. */
void object_put_await_md5(struct object_put *p, void (*fn)(void *arg), void *arg);
/* One more pair of metadata.  E_INVALID beyond the limits. */
int object_put_tag(struct object_put *p, const char *name, const char *value, struct error *err);
/* Ends the put in any case.  E_LENGTH, E_CHECKSUM: nothing was stored. */
void object_put_commit(struct object_put *p, object_done_fn *done, void *arg);
/* The same with another condition, and another `earlier`, than the spec's. */
void object_put_commit_over(struct object_put *p, const struct object_condition *condition,
                            const struct object_held *earlier, object_done_fn *done, void *arg);
/* The same, waiting. */
int object_put_commit_wait(struct object_put *p, struct error *err);
void object_put_abort(struct object_put *p); /* NULL is fine */
DEFINE_CLEANUP(struct object_put, object_put_abort);

/* Leaves a tombstone.  E_OBJECT_NOT_FOUND where no object is visible; `earlier` as in a put's spec.
 */
void object_delete(struct object_store *s, uint64_t bucket_id, const char *name,
                   enum durability durability, const struct object_condition *condition,
                   const struct object_held *earlier, object_done_fn *done, void *arg);

/* Writes that other owners have before this one (copies.h): what a commit does in one is decided
 * here first, then told to the others, and at last done.  Between the two the name is written by
 * nobody else.
 *
 * All bytes have come: E_LENGTH, E_CHECKSUM. */
int object_put_finish(struct object_put *p, struct error *err);
/* Size, checksum and time, once it is finished. */
const struct attr *object_put_attr(const struct object_put *p);
/* Are the mountpaths that it began on those in force? */
bool object_put_is_current(const struct object_put *p);
/* May it take the name's place, as things stand (`earlier` as in the spec, or NULL)?  The version
 * that it is to have. */
int object_put_decide(struct object_put *p, const struct object_condition *condition,
                      const struct object_held *earlier, struct version *version,
                      struct error *err);
/* Ends the put as object_put_commit() does, with what was decided here or elsewhere.
 * E_NOT_MODIFIED where something as new is there.  The condition is asked right before the rename.
 *
 * What is seen here first, and stays: where it has its name, and the disk cannot be made to keep
 * that, it is not taken back, for it may have been read, and others have it.  E_IN_DOUBT. */
void object_put_commit_as(struct object_put *p, const struct object_moved *as,
                          const struct object_condition *condition, object_done_fn *done,
                          void *arg);
int object_put_commit_as_wait(struct object_put *p, const struct object_moved *as,
                              const struct object_condition *condition, struct error *err);
/* May the object be deleted, as things stand?  The version of its tombstone. */
int object_delete_decide(struct object_store *s, uint64_t bucket_id, const char *name,
                         const struct object_condition *condition,
                         const struct object_held *earlier, struct version *version,
                         struct error *err);
/* As object_delete(), waiting. */
int object_delete_wait(struct object_store *s, uint64_t bucket_id, const char *name,
                       enum durability durability, const struct object_condition *condition,
                       const struct object_held *earlier, struct error *err);

/* As object_delete(), durable, and pending.  An object that only the backend has is deleted with an
 * `earlier` that says so.  meta: of the tombstone (back_after.h), or NULL. */
void object_bury(struct object_store *s, uint64_t bucket_id, const char *name,
                 const struct object_condition *condition, const struct object_held *earlier,
                 const struct buf *meta, object_done_fn *done, void *arg);
/* The backend has this version, under this entity tag ("": none that tells bytes apart): it is
 * pending no more, and may be evicted; on the disk when this returns.  *done: it was there still,
 * and pending. */
int object_uploaded(struct object_store *s, uint64_t bucket_id, const char *name,
                    const struct version *version, const char *etag, bool *done, struct error *err);

/* Removes the name's tombstone if it is older than this, and not pending (blocking); 0 also where
 * it stays. */
int object_forget_tombstone(struct object_store *s, uint64_t bucket_id, const char *name,
                            int64_t older_than_ms, struct error *err);

/* --- buckets with a backend (blocking) -------------------------------------------------------- */
struct mountpath;
/* When the object was used last, Unix time: told by us alone (access.h). */
void object_touch(struct object_store *s, uint64_t bucket_id, const char *name, int64_t used_s);
/* False: it is not there. */
bool object_used_at(struct mountpath *mp, uint64_t bucket_id, const char *name, int64_t *used_s);
/* Removes the object, without a tombstone, unless it was used after used_s, or is pending: *gone.
 */
int object_evict(struct object_store *s, uint64_t bucket_id, const char *name, int64_t used_s,
                 bool *gone, struct error *err);
/* The same of one that has this version, whenever it was used. */
int object_evict_version(struct object_store *s, uint64_t bucket_id, const char *name,
                         const struct version *version, bool *gone, struct error *err);

/* --- jobs (blocking) -------------------------------------------------------------------------- */
/* Takes the mark of this job off; 0 also where the object has another mark, none, or is gone. */
int object_unmark(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
                  struct error *err);
/* Removes the object if it carries the mark of this job; what the name was before (nothing, or
 * deleted) it is again: deleted under the version of what goes, the same on all owners. */
int object_discard(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
                   struct error *err);
/* The same, but what was deleted before is not known any more: for one of several owners that lags,
 * and whose tombstone, new as it would be, must not bury what the others have committed since. */
int object_forsake(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
                   struct error *err);
/* What object_unmark() and object_discard() have done is on the disks when this returns. */
int object_store_sync(struct object_store *s, struct error *err);
/* As object_open(), of what this job hides.  E_OBJECT_NOT_FOUND where the mark is not there. */
int object_open_marked(struct object_store *s, uint64_t bucket_id, const char *name,
                       const char *job_id, struct object *o, struct error *err);
/* fn() for each name of the bucket that carries the job's mark; by the index, so that names come
 * in order within a mountpath.  fn may unmark or discard. */
int object_each_marked(struct object_store *s, uint64_t bucket_id, const char *job_id,
                       int (*fn)(void *ctx, const char *name, struct error *err), void *ctx,
                       struct error *err);

/* A hard link <mountpath>/.dfc/jobs/<job id>/<link name> of the object's present file: its bytes
 * and attribute stay readable there whatever happens to the object.  A link of that name is
 * replaced.  link_name has no slash.  *path is the caller's to free; o->fd is open.
 * Of one in slices there are no bytes here to link: *path is NULL. */
int object_pin(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
               const char *link_name, char **path, struct object *o, struct error *err);
/* Pins the object's present version in a set (disk/pin_set.h), without a link.  Of *o the size, the
 * version, the checksum and the time are set.  o->fd is open where `opens` asks for it, or the
 * index alone does not tell; else it is -1.  One in slices is not pinned. */
int object_pin_in(struct object_store *s, struct pin_set *set, uint64_t bucket_id, const char *name,
                  bool opens, struct object *o, struct error *err);
/* Opens what the set has pinned, as long as it is the object.  E_OBJECT_NOT_FOUND: it is not, and
 * may have a link. */
int object_open_pinned(struct object_store *s, struct pin_set *set, uint64_t bucket_id,
                       const char *name, int *fd, struct error *err);
struct pin_sets *object_store_pins(const struct object_store *s);
/* Removes the job's directories on all mountpaths, pins and work files. */
int object_remove_job_files(struct object_store *s, const char *job_id, struct error *err);
