/* What the files of the index share; nobody else includes this. */
#pragma once

#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>

#include "target/index/index.h"
#include "target/index/session.h"

/* One LMDB file.  The index has one, and a second one while it is made anew; a cursor keeps the one
 * that it began with. */
struct index_reader {
    MDB_txn *txn;
    MDB_cursor *at;
};

struct index_env {
    MDB_env *env;
    MDB_dbi dbi;
    unsigned refs;             /* index->lock */
    struct index_reader spare; /* index->lock: reset, so that it keeps no page; or empty */
};

struct index {
    char *dir;
    int dir_fd;
    uint64_t map_size;
    struct index_session *session;
    pthread_mutex_t write;  /* changes one after another; the order is write, session, lock */
    struct index_env *next; /* write: NULL, or what is being filled anew */
    bool next_failed;       /* write: it missed a change */
    atomic_bool clean;      /* the marker stands in the directory */
    _Atomic uint64_t pending_mark;
    pthread_mutex_t lock; /* of the fields below; nothing else is locked under it */
    struct index_env *cur;
    bool complete;
    struct error stale; /* code 0: not stale */
};

/* LMDB's error as one of ours: "doing: …". */
int index_error(const struct index *x, int rc, const char *doing, struct error *err);
/* Is this error of LMDB's the file's fault? */
bool index_rc_is_damage(int rc);
/* As index_set_stale(), where the file that is being filled has not missed anything. */
void index_mark_stale(struct index *x, const struct error *why);
/* Reading found damage: it is stale.  Returns `code`. */
int index_damaged(struct index *x, int code, const struct error *why);

enum { INDEX_DIR_MODE = 0750 };
/* The path of a file in its directory; to be freed. */
char *index_path(const struct index *x, const char *name);
void index_env_unref(struct index *x, struct index_env *e);
/* A reader of the present file, which it keeps open.  The last one that ended is used again: it has
 * its slot and its memory already.  LMDB's error: index_reader_end() all the same. */
int index_reader_begin(struct index *x, struct index_env **e, struct index_reader *r);
void index_reader_end(struct index *x, struct index_env *e, struct index_reader *r);
int index_env_open(const char *dir, uint64_t map_size, struct index_env **out); /* LMDB's error */
void index_env_close(struct index_env *e);
/* The marker goes, durably, if it stands: the file on the disk is about to be another. */
int index_make_dirty(struct index *x, struct error *err);
/* Changes one file: one transaction around fn().  LMDB's error. */
typedef int index_change_fn(MDB_txn *txn, MDB_dbi dbi, void *ctx);
int index_env_change(struct index_env *e, index_change_fn *fn, void *ctx);

/* A record as it stands beside its name: the bytes of index/record.h and a check over them, the
 * bucket and the name. */
enum { INDEX_VALUE_MAX = INDEX_RECORD_MAX + 4 };
size_t index_value_encode(uint64_t bucket_id, const char *name, const struct index_record *rec,
                          unsigned char out[static INDEX_VALUE_MAX]);
int index_value_decode(uint64_t bucket_id, const char *name, const void *data, size_t len,
                       struct index_record *rec, struct error *err);
