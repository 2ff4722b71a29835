#include "proxy/primary/primary.h"

#include "access/exposure_gate.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "proxy/primary/job_glue.h"
#include "proxy/primary/members.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/publish.h"
#include "proxy/primary/reseal.h"
#include "proxy/primary/term.h"

/* --- beginning ------------------------------------------------------------------------------- */

static int begin_term(struct proxy *p, const struct primary_base *base, uint64_t revision,
                      struct error *err)
{
    const struct node self = {
        .id = p->id,
        .role = NODE_PROXY,
        .public_url = p->public_url,
        .control_url = p->control_url,
        .data_url = "",
        .boot = p->boot,
    };
    const struct command cmd =
        term_begin(base->state, &self, revision, base->next_epoch, clock_wall_ms());
    int r = proxy_commit_term(p, &cmd, base->state, base->is_first, err);
    if (r != 0)
        error_wrap(err, "begin as primary");
    return r;
}

struct start {
    struct proxy *proxy;
    const struct cluster_state *before; /* what the last term has left; NULL: it may differ */
};

static void start_parts(void *arg)
{
    const struct start *start = arg;
    struct proxy *p = start->proxy;
    pthread_rwlock_wrlock(&p->role_lock);
    p->members = members_start(p);
    p->publisher = publisher_start(p, start->before);
    p->job_glue = job_glue_start(p);
    pthread_rwlock_unlock(&p->role_lock);
    atomic_store(&p->is_primary, true);
    exposure_gate_hear(p->gate, 0); /* the others follow this proxy */
    publisher_state_changed(p->publisher);
}

/* Refused, it serves nobody what it has. */
static int check_users(struct proxy *p, const struct cluster_state *s, struct error *err)
{
    int r = exposure_check_users(p->exposure, p->id, s->access.user_count, err);
    if (r != 0)
        exposure_gate_hear(p->gate, r);
    return r;
}

int primary_begin(struct proxy *p, const struct primary_base *base, uint64_t revision,
                  struct error *err)
{
    int errnum = fault_errno("primary.begin");
    if (errnum != 0)
        return error_errno(err, errnum, "begin as primary");
    int r = check_users(p, base->state, err);
    if (r == 0)
        r = proxy_client_new(p, p->loop, PROXY_CONNECTIONS_PER_HOST, &p->primary_client, err);
    if (r != 0)
        return r;
    if ((r = begin_term(p, base, revision, err)) != 0) {
        http_client_free(p->primary_client);
        p->primary_client = NULL;
        return r;
    }
    struct start start = {p, base->next_epoch ? NULL : base->state};
    loop_call(p->loop, start_parts, &start);
    reseal_soon(p);
    return 0;
}

/* --- ending ---------------------------------------------------------------------------------- */

struct parts {
    struct proxy *proxy;
    struct members *members;
    struct publisher *publisher;
    struct job_glue *job_glue;
};

/* From here on nothing new is begun by them; what was begun ends by itself. */
static void take_parts(void *arg)
{
    struct parts *parts = arg;
    struct proxy *p = parts->proxy;
    pthread_rwlock_wrlock(&p->role_lock);
    parts->members = p->members;
    parts->publisher = p->publisher;
    parts->job_glue = p->job_glue;
    p->members = NULL;
    p->publisher = NULL;
    p->job_glue = NULL;
    pthread_rwlock_unlock(&p->role_lock);
    members_close(parts->members);
    job_glue_close(parts->job_glue);
    publisher_close(parts->publisher);
}

static void stop_parts(void *arg)
{
    const struct parts *parts = arg;
    job_glue_stop(parts->job_glue);
    publisher_stop(parts->publisher);
    members_stop(parts->members);
}

/* Commits first, then calls to other nodes: both tell the parts how they ended.  What these commit
 * upon that is refused, by a message that runs before stop_parts(). */
void primary_end(struct proxy *p)
{
    if (!atomic_exchange(&p->is_primary, false))
        return;
    struct parts parts = {.proxy = p};
    loop_call(p->loop, take_parts, &parts);
    proxy_commit_barrier(p);
    http_client_free(p->primary_client);
    p->primary_client = NULL;
    loop_call(p->loop, stop_parts, &parts);
}
