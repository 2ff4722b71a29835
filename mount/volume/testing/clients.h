/* Two clients of a small volume over the engine "memory", with one clock. */
#pragma once

#include "mount/volume/volume.h"

enum { CHUNK = 64, START_MS = 1000000, GRACE_MS = 900000, SESSION_MS = 60000 };

struct clients {
    struct meta *m;
    struct volume *a, *b;
    struct arena *arena;
    _Atomic int64_t now_ms; /* threads of a client read it */
};
extern struct clients f;

/* One more. */
struct volume *clients_open(struct volume_memory *memory);

/* For cmocka. */
int clients_setup(void **state);
int clients_setup_limits(void **state); /* of 3 inodes and 100 bytes */
int clients_teardown(void **state);

void advance(int64_t ms);
struct volume_format small_format(void);
uint64_t make(uint64_t directory, const char *name, uint32_t mode); /* by a */
struct attr attr_of(uint64_t ino);                                  /* as b sees it */
