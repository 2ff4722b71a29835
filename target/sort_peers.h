/* SortDataset's streams between targets, over the intra-data network: the peer half of struct
 * sort_env (sort/env.h).
 *
 *   POST {data url}/v1/xactions/{job}/merge?from=N     body: a sorted table
 *   POST {data url}/v1/xactions/{job}/orders?from=N    body: output shards to build
 *   POST {data url}/v1/xactions/{job}/records          body: a list of records; reply: their bytes
 *
 * The receiving half is target/sort_streams.c. */
#pragma once

#include <stddef.h>

#include "common/error.h"
#include "io/bpipe.h"
#include "net/http_client.h"
#include "sort/env.h"
#include "sort/plan.h"

struct sort_peers;

/* The peers' addresses are those of the plan: a target that moves has restarted, which ends the job
 * anyway. */
struct sort_peers *sort_peers_new(struct http_client *client, const struct sort_plan *plan,
                                  const char *job_id, unsigned self, size_t pipe_bytes);
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

/* The body of a GET comes out of *pipe, as that of a fetch. */
int sort_peers_get(struct sort_peers *p, const char *url, bool to_public, struct bpipe **pipe,
                   struct error *err);

const char *sort_channel_name(enum sort_channel channel); /* "merge", "orders": the path's word */
