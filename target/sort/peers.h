/* SortDataset's streams between targets, over the intra-data network: the peer half of struct
 * sort_env (sort/base/env.h).
 *
 *   POST {data url}/v1/xactions/{job}/merge?from=N&attempt=A    body: a sorted table
 *   POST {data url}/v1/xactions/{job}/orders?from=N&attempt=A   body: output shards to build
 *   POST {data url}/v1/xactions/{job}/records?attempt=A         body: a list of records;
 *                                                               reply: their bytes
 *
 * A peer that is not at that attempt of the job answers as one that does not know the job.
 * The receiving half is target/sort/streams.c. */
#pragma once

#include <stddef.h>

#include "cluster/documents/job.h"
#include "common/error.h"
#include "io/bpipe.h"
#include "net/client/client.h"
#include "sort/base/env.h"
#include "sort/task/plan.h"

struct sort_peers;

/* Of one attempt.  The peers' addresses are those of the plan, until sort_peers_find() says what is
 * so now; before the first call.  `outside` is of hosts that clients name. */
struct sort_peers *sort_peers_new(struct http_client *client, struct http_client *outside,
                                  const struct sort_plan *plan, const struct job *job,
                                  unsigned self, size_t pipe_bytes);
void sort_peers_find(struct sort_peers *p, unsigned number, const char *data_url);
/* Ends all calls, now and later.  Any thread. */
void sort_peers_stop(struct sort_peers *p);
/* Stops, and waits for the calls' end: the client is still there, and every send was ended. */
void sort_peers_free(struct sort_peers *p);

/* As struct sort_env says; E_ABORTED once stopped. */
int sort_peers_send_begin(struct sort_peers *p, unsigned to, enum sort_channel channel,
                          struct bpipe **pipe, void **handle, struct error *err);
int sort_peers_send_end(struct sort_peers *p, void *handle, struct error *err);
int sort_peers_fetch_records(struct sort_peers *p, unsigned from, const void *request, size_t len,
                             struct bpipe **pipe, struct error *err);

/* The body of a GET from this node comes out of *pipe, as that of a fetch. */
int sort_peers_get(struct sort_peers *p, const char *node, const char *url, struct bpipe **pipe,
                   struct error *err);
/* The same from a host that the job's specification names. */
int sort_peers_get_outside(struct sort_peers *p, const char *url, struct bpipe **pipe,
                           struct error *err);

const char *sort_channel_name(enum sort_channel channel); /* "merge", "orders": the path's word */
