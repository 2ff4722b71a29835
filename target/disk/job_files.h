/* The directories of background jobs on a target's disks:
 *
 *   <mountpath>/.dfc/jobs/<job id>/job.json    the job's document, as it was when it was prepared
 *   <mountpath>/.dfc/jobs/<job id>/…           the kind's own: pins, work files
 *
 * A directory stands from prepare to the end of commit or undo.  One that is found when the job has
 * ended is what a crash, or a time out of the cluster, has left: job_files_settle() has it undone.
 */
#pragma once

#include "cluster/documents/job.h"
#include "common/buf.h"
#include "common/error.h"
#include "target/disk/mountpaths.h"
#include "target/disk/space.h"

struct target;

/* Makes the directories, durably.  After an error some may be there. */
int job_files_begin(struct mountpaths *m, const struct job *job, struct error *err);
/* A file of the job's directory for reading, on whichever mountpath it is.  E_NOT_FOUND. */
int job_files_open(struct mountpaths *m, const char *job_id, const char *name, int *fd,
                   struct error *err);
/* A file of the job's directory, whole and durable, on some mountpath that had been there when the
 * job began (E_MOUNTPATH_DISABLED: none is); and what is in it, E_NOT_FOUND. */
int job_files_write(struct mountpaths *m, const char *job_id, const char *name, const void *data,
                    size_t len, struct error *err);
int job_files_read(struct mountpaths *m, const char *job_id, const char *name, struct buf *out,
                   struct error *err);
/* Adds to one, which is made where there is none; not durable by itself.  Any thread: what two add
 * does not mix. */
int job_files_append(struct mountpaths *m, const char *job_id, const char *name, const void *data,
                     size_t len, struct error *err);
/* Removes those whose names begin so, on all mountpaths. */
int job_files_clear(struct mountpaths *m, const char *job_id, const char *prefix,
                    struct error *err);
/* Of mountpaths with so many bytes of room the first from the n-th on, round, that has at least
 * half as many as the roomiest: work is spread, but not on disks that are about full.  Pure. */
size_t job_files_roomy(const uint64_t *room, size_t count, unsigned n);
/* A new nameless file for reading and writing, on the n-th mountpath (modulo their number), or the
 * next one with room. */
int job_files_open_work(struct mountpaths *m, const struct space_limits *limits, const char *job_id,
                        unsigned n, int *fd, struct error *err);
/* Before the bytes from..to of such a file are written: room for them, in steps. */
int job_files_claim_work(struct mountpaths *m, const struct space_limits *limits,
                         const struct space_steps *steps, int fd, uint64_t from, uint64_t to,
                         struct error *err);

struct jobs;
struct xactions;
/* Has everything committed or undone that the cluster's documents say has ended, or goes on without
 * this target, or no longer know: jobs of this run, and directories that an earlier one has left.
 * To be called whenever documents have come from the primary, before any later ones are put in
 * force; not with those that a restarted node finds on its own disks, which may be old. */
void job_files_settle(struct mountpaths *m, struct xactions *x, const struct jobs *jobs,
                      const char *target_id);
