/* SortDataset on a target: the kind `sort` of background jobs (xaction/xaction.h), and the world
 * that the sort engine sees (sort/base/env.h): shards are objects of the input bucket, pinned by
 * hard links under the job's directory; outputs are hidden objects of the output bucket; peers are
 * reached over the intra-data network.
 *
 * What run() leaves on the disks is enough to commit or undo after a restart: the outputs carry the
 * job's id, and <mountpath>/.dfc/jobs/<job id>/ holds pins and work files
 * (target/disk/job_files.h).  What is there before is enough for a further attempt to begin from
 * the same input (target/sort/pins.h). */
#pragma once

#include "sort/task/task.h"

struct sort_host;

/* Of a job that is held (xactions_hold). */
struct sort_task *sort_host_task(struct sort_host *h);
uint64_t sort_host_attempt(const struct sort_host *h);
