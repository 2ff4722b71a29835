/* The inside of a handle, for the files of this folder. */
#pragma once

#include <pthread.h>

#include "common/error.h"
#include "plog/client/dfc_plog.h"
#include "plog/client/store.h"
#include "plog/file.h"

struct dfc_plog {
    pthread_mutex_t lock; /* of the file */
    char *bucket;
    struct bucket_store store;
    struct sender *sender;      /* NULL: it is open for reading */
    struct plog_file *file;     /* NULL: the handle is closed */
    struct dfc_plog_pool *pool; /* NULL: none */
    /* by the pool's lock */
    uint64_t held;   /* bytes that the pool has counted */
    uint64_t looked; /* what the keeper's last look has found held */
    struct dfc_plog *next;
    unsigned uses; /* the handle's, and the keeper's */
};

enum { PLOG_PARALLEL = 8 }; /* ends of segments that are read at once */

int plog_result(int code, const struct error *e, struct dfc_error *err);

/* --- pool.c ----------------------------------------------------------------------------------- */

uint64_t pool_refresh_ms(const struct dfc_plog_pool *pool); /* 0: the default */
/* The handle is open; the pool may be NULL. */
void pool_enter(struct dfc_plog_pool *pool, struct dfc_plog *p);
/* The file is closed: frees the handle when the keeper has left it. */
void pool_leave(struct dfc_plog *p);
/* With the handle's lock, after a call that may have stored what it holds. */
void pool_count(struct dfc_plog *p);
/* With the handle's lock, after a write or sync: stores what it holds if all hold too much. */
int pool_bound(struct dfc_plog *p, struct error *err);
void plog_free(struct dfc_plog *p); /* dfc_plog.c */
