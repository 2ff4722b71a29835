/* What index.c and index_cursor.c share; nobody else includes this. */
#pragma once

#include <lmdb.h>
#include <pthread.h>

#include "target/index.h"

struct index {
    char *dir;
    MDB_env *env;
    MDB_dbi dbi;
    pthread_mutex_t lock; /* of the fields below; nothing else is locked under it */
    bool complete;
    struct error stale; /* code 0: not stale */
};

/* LMDB's error as one of ours: "doing: …". */
int index_error(const struct index *x, int rc, const char *doing, struct error *err);
