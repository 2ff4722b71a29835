/* One target's part of one SortDataset job: the three phases, from pinned input shards to hidden
 * output shards.
 *
 *   extract   every target scans the headers of its own shards (parallel), makes rows, sorts them
 *   merge     ceil(log2 N) rounds of the salted arrangement, each a linear merge while receiving;
 *             a target that is odd in a round (counting from one) sends to the next one and is
 *             done; an unpaired last one passes on.  All rounds of a target are one pull-based
 *             merge: own run + the stream of each round, written to the next target as it comes
 *   create    the last target cuts the order into output shards, gives each to the target that
 *             costs the network least (rows/place.h) and sends everyone its orders; each builds
 *             its shards (parallel): local records by pread, remote ones from one ordered stream
 *             per (shard, source)
 *
 * sort_task_run() does all of it in the calling thread (plus threads of its own) and returns when
 * this target has nothing left to do: its outputs are stored, hidden.  Making them visible, or
 * removing them, is the host's part (the job's commit or abort).
 *
 * Incoming streams are handed in from the host's network threads at any time after
 * sort_task_new().  Every stream's content is checked for form (it comes from a network) and for
 * completeness (counts and a checksum at its end).
 *
 * Stopping: sort_task_stop() from any thread makes every wait end; run() returns E_ABORTED soon.
 *
 * Where a peer was lost, all go through the phases again: a further attempt, in which those that
 * were not lost keep what they have extracted and which output shards they have built
 * (sort/task/resume.h). Where one stays away, the job may go on without it: then its shards are
 * others' (env.h), who extract them besides. sort_task_give_way() ends run() for it, as soon as the
 * extracting at hand is done, and sort_task_again() makes the task ready to run once more. */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "io/bpipe.h"
#include "sort/base/env.h"
#include "sort/spec/spec.h"
#include "sort/task/task_types.h"

struct sort_task;

#define SORT_MEMORY_MIN (1024 * 1024)
#define SORT_THREADS_MAX 64 /* of a phase, whoever asks for more */

struct sort_task_config {
    const char *job_id;
    const struct sort_spec *spec; /* outlives the task */
    const struct sort_env *env;   /* outlives the task */
    unsigned self;                /* this target's number */
    unsigned participants;
    const bool *absent;       /* by number: the job goes on without them; NULL: all take part */
    uint64_t attempt;         /* of the job, from 0 */
    uint64_t salt;            /* of the arrangement; the primary's */
    uint64_t memory_bytes;    /* budget of the tables before they spill to work files; the
                               * request may lower it, not below SORT_MEMORY_MIN */
    uint64_t key_map_bytes;   /* limit of an external key map's memory */
    uint64_t window_max;      /* of format_input, for each thread that reads shards */
    unsigned formats;         /* of format_input */
    unsigned extract_threads; /* what the target allows; the request may lower it */
    unsigned create_threads;
    unsigned open_shards; /* files that are kept open; 0: a share of the process's limit */
    const struct sort_watch *watch; /* or NULL */
};

int sort_task_new(const struct sort_task_config *config, struct sort_task **out, struct error *err);
int sort_task_run(struct sort_task *t, struct error *err);
void sort_task_stop(struct sort_task *t);
/* True: run() has been stopped; false: it ends by itself when all shards are extracted. */
bool sort_task_give_way(struct sort_task *t);
/* run() has returned, or was not called; streams of the attempt before are ended.  Of those who
 * take part there may be fewer than before, never more: what they had the others take over. */
int sort_task_again(struct sort_task *t, uint64_t attempt, const bool *absent, struct error *err);
void sort_task_free(struct sort_task *t); /* run() has returned, streams are ended */
DEFINE_CLEANUP(struct sort_task, sort_task_free);

/* A stream from peer `from` has begun (takes a reference of the pipe).  E_JOB_STATE where the
 * arrangement does not foresee it, or it came twice. */
int sort_task_receive(struct sort_task *t, unsigned from, enum sort_channel channel,
                      struct bpipe *pipe, struct error *err);

/* A peer asks for records of this target's shards (records.h). */
struct sort_records;
int sort_task_records(struct sort_task *t, const void *request, size_t len,
                      struct sort_records **out, struct error *err);

enum sort_phase sort_task_phase(const struct sort_task *t);
const char *sort_phase_name(enum sort_phase p); /* "queued", "extracting", ... */
/* {"phase",
 *  "extract": {"shards": {"done", "total", "missing"}, "records", "bytes", "spilled_bytes"},
 *  "merge": {"rows_in", "rows_out"},
 *  "create": {"shards": {"done", "total"}, "records",
 *             "bytes": {"done", "total", "local", "remote"}},
 *  "plan": {"shards", "records", "bytes", "moved_bytes", "moved_bytes_hrw",
 *           "moved_bytes_locality"} (last target only, when it is made),
 *  "redone": {"inputs", "shards", "bytes"} (input shards extracted, output shards built and bytes
 * of them written a second time, or thrown away), "warnings": […], "seconds": {"extract", "merge",
 * "create"}} */
json_t *sort_task_status(const struct sort_task *t);
