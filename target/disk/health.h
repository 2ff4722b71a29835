/* Mountpath health: a disk that fails is taken out, and the target stays.
 *
 *   I/O errors (mountpath_failed) ─▶ suspect ─▶ test: write, sync, read back, compare, in tmp/
 *     the test fails, or does not end in time, or the errors are too many all the same ─▶ disabled
 *
 * So is one whose objects' files are gone (store/lost.c), though that alone takes no disk out: a
 * mountpath that was removed as a whole does not pass the test.
 *
 * A full disk and one that is read-only are no bad disks: they are not taken out, since what they
 * have can be read.  One thread looks at all mountpaths; each test has a thread of its own, so that
 * a disk that hangs keeps nobody else waiting.  That thread also closes what nobody holds any more.
 */
#pragma once

#include <stdbool.h>

#include "common/cleanup.h"
#include "target/disk/mountpaths.h"

struct health;

struct health_config {
    struct mountpaths *mountpaths; /* outlives it */
    bool tests;                    /* false: nothing is tested or taken out */
    uint64_t interval_ms;          /* between looks */
    uint64_t test_bytes;
    uint64_t test_timeout_ms;
    uint64_t errors_max; /* so many within … */
    uint64_t window_ms;  /* … so long take a disk out that passes its tests */
};

int health_new(const struct health_config *config, struct health **out, struct error *err);
void health_free(struct health *h); /* waits for tests that are under way */
DEFINE_CLEANUP(struct health, health_free);

/* One test, waiting: 0; E_IO, E_CORRUPT with why; E_NO_SPACE and E_UNSUPPORTED (read-only) say
 * nothing against the disk. */
int health_test(struct mountpath *mp, uint64_t bytes, struct error *err);
