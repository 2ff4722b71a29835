/* A volume with a file, over a store and an engine in memory that can be told to fail. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "mount/volfs/volfs.h"
#include "mount/meta/meta.h"

enum { BLOCK = 256 << 10, UPLOADS = 4, OBJECTS = 4096, PATIENCE_MS = 30000 };

struct object {
    char *key, *data;
    size_t size;
};

/* Over that of the world. */
struct engine {
    struct meta meta; /* first */
    struct meta *below;
    atomic_bool full; /* its disk: commits to lists fail */
};

struct world {
    struct engine engine;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct object objects[OBJECTS];
    unsigned count, puts;
    unsigned running, most; /* puts at once; each waits until `together` have come */
    unsigned together;
    unsigned fail_from, fail_to; /* which puts fail */
    int put_error;
    struct meta *meta;
    struct volume *volume;
    struct volfs *v;
    uint64_t ino;
    bool cached;
    unsigned fetched;
};

/* For cmocka. */
int world_setup(void **state);
int world_setup_cached(void **state); /* with a disk cache */
int world_teardown(void **state);

void fail_puts(struct world *w, unsigned from, unsigned to);
struct volfs_file *open_file(struct world *w);
ssize_t write_at(struct volfs_file *f, int64_t at, const char *data, size_t size);
ssize_t read_at(struct volfs_file *f, int64_t at, char *to, size_t size);
char *random_data(size_t size, uint64_t seed); /* malloc'ed */
/* In requests as a kernel's. */
void write_all(struct volfs_file *f, const char *data, size_t size);
/* The file has these bytes, and no more. */
void assert_bytes(struct volfs_file *f, const char *data, size_t size);
