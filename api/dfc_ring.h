/* libdfc: rings of samples (docs/guide/ring.md).  Conventions are those of dfc.h. */
#pragma once

#include "dfc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* {"ring", "keeper", "cap", "keep", "fill", "lanes", "head"}: docs/design/ring.md. */
DFC_API int dfc_ring_status(struct dfc_client *client, const char *ring, char **document,
                            struct dfc_error *err);
/* The same, once the ring has a generation beyond `after`, or wait_ms later: look at its head.
 * wait_ms is at most the cluster's ring_wait_max (1 min). */
DFC_API int dfc_ring_wait(struct dfc_client *client, const char *ring, uint64_t after,
                          uint32_t wait_ms, char **document, struct dfc_error *err);
/* What is in no generation becomes one.  {"generation"} */
DFC_API int dfc_ring_swap(struct dfc_client *client, const char *ring, char **document,
                          struct dfc_error *err);
/* Full generations wait, but for those of dfc_ring_swap(), until the ring is resumed.
 * {"generation"} */
DFC_API int dfc_ring_pause(struct dfc_client *client, const char *ring, char **document,
                           struct dfc_error *err);
DFC_API int dfc_ring_resume(struct dfc_client *client, const char *ring, char **document,
                            struct dfc_error *err);
/* Drops all samples.  {"generation"} */
DFC_API int dfc_ring_clear(struct dfc_client *client, const char *ring, char **document,
                           struct dfc_error *err);
/* A group of readers joins, or stays, and has consumed all generations up to `done`.  The next
 * generation waits for each group, unless it is silent for longer than its lease_ms (0: the
 * cluster's ring_lease).  {"generation", "joined"}: joined is true if the group was not there, or
 * the ring is more than one generation beyond what it has consumed: some may have passed it by. */
DFC_API int dfc_ring_group(struct dfc_client *client, const char *ring, const char *group,
                           uint64_t done, uint64_t lease_ms, char **document,
                           struct dfc_error *err);
/* No generation waits for the group any more. */
DFC_API int dfc_ring_leave(struct dfc_client *client, const char *ring, const char *group,
                           char **document, struct dfc_error *err);
/* Frames, one behind the other.  With a producer a push that is repeated is stored once; its
 * sequence is another one in each push.  document: {"lane", "first", "count"}, or NULL. */
DFC_API int dfc_ring_push(struct dfc_client *client, const char *ring, const char *producer,
                          uint64_t sequence, const void *frames, size_t size, char **document,
                          struct dfc_error *err);
/* Samples of a lane that the head names: at most `count`, at least one.  *frames is malloc'ed. */
DFC_API int dfc_ring_read(struct dfc_client *client, const char *ring, const char *lane,
                          uint64_t from, uint64_t count, void **frames, size_t *size,
                          struct dfc_error *err);

/* The same, where some may be lost with a disk or by damage: *lost is the number of samples from
 * `from` on that are, and *size 0; else *lost is 0. */
DFC_API int dfc_ring_read_kept(struct dfc_client *client, const char *ring, const char *lane,
                               uint64_t from, uint64_t count, void **frames, size_t *size,
                               uint64_t *lost, struct dfc_error *err);

#ifdef __cplusplus
}
#endif
