/* SortDataset's streams from peers: bodies go through bounded pipes to the task's merge and plan
 * threads; records are read from this target's disks alone, so that no two targets can ever wait
 * for each other (sort/task/task.h). */
#include "target/http/xaction_routes.h"

#include "common/mem.h"
#include "common/parse.h"
#include "io/varint.h"
#include "net/http/pipe.h"
#include "sort/task/records.h"
#include "target/sort/host.h"
#include "target/node/target.h"
#include "target/sort/records_reply.h"
#include "xaction/xaction.h"

enum {
    STREAM_PIPE_BYTES = 1 << 20,
    /* A job's hash, a form, a count, and a shard and a position for each record. */
    RECORDS_BODY_MAX = 8 + VARINT_MAX * (2 + 2 * RECORDS_MAX),
};

/* A job that is held as long as its records are read. */
struct held {
    struct xactions *xactions;
    char *job_id;
};

static void held_release(void *arg)
{
    struct held *h = arg;
    xactions_release(h->xactions, h->job_id);
    free(h->job_id);
    free(h);
}

/* 0 where it is not there. */
static int parse_number(struct http_request *req, const char *name, uint64_t *out,
                        struct error *err)
{
    const char *text = http_query(req, name);
    int code = text != NULL ? parse_u64(text, out, err) : 0;
    return code != 0 ? error_wrap(err, "parameter '%s'", name) : 0;
}

/* The task of the request's job; NULL when the request has been answered. */
static struct sort_task *hold_task(struct http_request *req)
{
    struct target *t = http_user(req);
    const char *id = http_path_param(req, "job");
    struct sort_host *host = xactions_hold(t->xactions, id, "sort");
    struct error err;
    uint64_t attempt = 0;
    int code = parse_number(req, "attempt", &attempt, &err);
    if (host != NULL && code == 0 && attempt == sort_host_attempt(host))
        return sort_host_task(host);
    if (host != NULL)
        xactions_release(t->xactions, id);
    if (code == 0)
        error_set(&err, E_JOB_NOT_FOUND, "target '%s' does not run the sort job '%s', attempt %llu",
                  t->id, id, (unsigned long long)attempt);
    http_reply_error(req, &err);
    return NULL;
}

static struct held *held_new(struct http_request *req)
{
    struct target *t = http_user(req);
    struct held *h = xcalloc(1, sizeof *h);
    *h = (struct held){.xactions = t->xactions, .job_id = xstrdup(http_path_param(req, "job"))};
    return h;
}

/* --- merge and orders ------------------------------------------------------------------------- */

/* The body's bytes are all in the pipe, or were dropped because its reader has left. */
static void stream_ended(struct http_request *req, void *ctx)
{
    struct error err = ERROR_INIT;
    if (bpipe_check(ctx, &err) != 0)
        http_reply_error(req, &err);
    else
        http_reply_empty(req, 204);
}

static int parse_from(struct http_request *req, unsigned *from, struct error *err)
{
    uint64_t number = 0;
    if (http_query(req, "from") == NULL)
        return error_set(err, E_INVALID, "parameter 'from' is missing");
    int code = parse_number(req, "from", &number, err);
    if (code != 0)
        return code;
    if (number > UINT16_MAX)
        return error_set(err, E_INVALID, "parameter 'from' is above %d", UINT16_MAX);
    *from = (unsigned)number;
    return 0;
}

/* The task knows the stream by its pipe alone: a peer that is silent in the middle of one keeps
 * nothing else. */
static int receive_into(struct http_request *req, enum sort_channel channel, struct bpipe *pipe,
                        struct sort_task *task, struct error *err)
{
    struct target *t = http_user(req);
    unsigned from = 0;
    int code = parse_from(req, &from, err);
    if (code == 0)
        code = sort_task_receive(task, from, channel, pipe, err);
    xactions_release(t->xactions, http_path_param(req, "job"));
    return code;
}

/* The sender may have nothing to say for long: it waits for others, or works on what others get. */
static bool pipe_is_read(void *ctx)
{
    return bpipe_check(ctx, NULL) == 0;
}

static void receive(struct http_request *req, enum sort_channel channel)
{
    struct error err = ERROR_INIT;
    struct sort_task *task = hold_task(req);
    if (task == NULL)
        return;
    _cleanup_(bpipe_unrefp)
    struct bpipe *pipe = bpipe_new(STREAM_PIPE_BYTES);
    if (receive_into(req, channel, pipe, task, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    http_be_patient(req, pipe_is_read, pipe);
    http_body_to_pipe(req, pipe, stream_ended, pipe);
}

static void merge_begin(struct http_request *req)
{
    receive(req, SORT_CHANNEL_MERGE);
}

static void orders_begin(struct http_request *req)
{
    receive(req, SORT_CHANNEL_ORDERS);
}

/* --- records ---------------------------------------------------------------------------------- */

static void records_body(struct http_request *req, const char *data, size_t len)
{
    struct target *t = http_user(req);
    struct error err = ERROR_INIT;
    struct sort_task *task = hold_task(req);
    if (task == NULL)
        return;
    struct held *held = held_new(req);
    struct sort_records *records = NULL;
    if (sort_task_records(task, data, len, &records, &err) == 0) {
        records_reply(req, t->sort_readers, records, held_release, held);
        return;
    }
    held_release(held);
    http_reply_error(req, &err);
}

static void records_begin(struct http_request *req)
{
    http_collect_body(req, RECORDS_BODY_MAX, records_body);
}

const struct http_route sort_stream_routes[] = {
    {.name = "sort_merge",
     .method = HTTP_POST,
     .pattern = "/v1/xactions/{job}/merge",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = merge_begin,
     .summary = "A peer's sorted table, to be merged while it arrives.",
     .query = HTTP_PARAMETERS({"from", "number of the sender among the participants"},
                              {"attempt", "of the job, from 0"}),
     .body = "a table stream (sort/rows/table.h)",
     .reply = "204 when all of it has come",
     .errors = "job_not_found job_state"},
    {.name = "sort_orders",
     .method = HTTP_POST,
     .pattern = "/v1/xactions/{job}/orders",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = orders_begin,
     .summary = "The output shards that this target must build.",
     .query = HTTP_PARAMETERS({"from", "number of the sender among the participants"},
                              {"attempt", "of the job, from 0"}),
     .body = "an order stream (sort/rows/orders.h)",
     .reply = "204 when all of it has come",
     .errors = "job_not_found job_state"},
    {.name = "sort_records",
     .method = HTTP_POST,
     .pattern = "/v1/xactions/{job}/records",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = records_begin,
     .summary = "Records of this target's input shards, as bytes of tar, in the order asked for; "
                "or their headers alone.",
     .query = HTTP_PARAMETERS({"attempt", "of the job, from 0"}),
     .body = "a list of records (sort/task/records.h)",
     .reply = "their bytes",
     .errors = "job_not_found invalid_argument"},
    {.name = NULL},
};
