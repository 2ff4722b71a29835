/* The election as a proxy of the simulation takes part in it: the calls to the store, and the
 * thread of metastore_etcd.c. */
#include <string.h>

#include "common/jsonx.h"
#include "tests/sim/proxy_sim.h"

static void election_wake(struct world *w, void *arg);

struct polling {
    struct proxy_sim *proxy;
    enum election_call call;
    uint64_t sent_ms;
};

/* What the driver in metastore_etcd.c reads out of the replies. */
static void read_observed(struct proxy_sim *p, json_t *body, struct election_answer *a)
{
    _cleanup_(etcd_kvs_done)
    struct etcd_kvs kvs = {0};
    if (a->code == 0)
        a->code = etcd_kvs_parse(body, &kvs, NULL);
    a->nobody = a->code == 0 && kvs.count == 0;
    p->known = a->code != 0 ? PRIMARY_UNKNOWN : a->nobody ? PRIMARY_NONE : PRIMARY_KNOWN;
    if (p->known == PRIMARY_KNOWN) {
        const char *value = buf_str(&kvs.kvs[0].value);
        _cleanup_free_ char *name = xstrndup(value, strcspn(value, " "));
        p->known_place = place_of_name(p->w, name);
    }
}

static void read_stood(struct proxy_sim *p, json_t *body, struct election_answer *a)
{
    _cleanup_(etcd_kvs_done)
    struct etcd_kvs now = {0};
    _cleanup_free_ char *value =
        xprintf("%s %llu", p->w->places[p->place].name, (unsigned long long)p->election.lease);
    bool won;
    if (etcd_txn_parse(body, &won, &a->elected, NULL) != 0 || won)
        return;
    a->elected = 0;
    if (etcd_txn_kvs_parse(body, 0, &now, NULL) == 0 && now.count > 0 &&
        strcmp(buf_str(&now.kvs[0].value), value) == 0)
        a->elected = now.kvs[0].create_revision;
}

static void read_lease(json_t *body, struct election_answer *a, bool renewal)
{
    json_t *from = renewal ? json_object_get(body, "result") : body;
    if (etcd_u64(from, "ID", &a->lease, NULL) != 0 || etcd_u64(from, "TTL", &a->ttl_s, NULL) != 0)
        a->code = E_JSON;
    else if (renewal && a->ttl_s == 0)
        a->code = E_NOT_FOUND;
}

static void polled(void *arg, const struct answer *reply)
{
    struct polling *poll = arg;
    struct proxy_sim *p = poll->proxy;
    bool unknown = reply->code == E_NET || reply->code == E_TIMEOUT || reply->code == E_CANCELLED;
    struct election_answer a = {.code = unknown ? E_IN_DOUBT : reply->code,
                                .sent_ms = poll->sent_ms};
    if (poll->call == ELECTION_OBSERVE)
        read_observed(p, reply->body, &a);
    else if (poll->call == ELECTION_STAND && a.code == 0)
        read_stood(p, reply->body, &a);
    else if (poll->call != ELECTION_REVOKE && poll->call != ELECTION_STAND && a.code == 0)
        read_lease(reply->body, &a, poll->call == ELECTION_RENEW);
    p->calling = false;
    election_answered(&p->election, &a, place_ms(p->w, p->place));
    if (p->w->places[p->place].up)
        proxy_election_run(p->w, p);
    free(poll);
}

static json_t *lease_body(const char *field, uint64_t n)
{
    _cleanup_free_ char *text = xprintf("%llu", (unsigned long long)n);
    return json_pack("{s:s}", field, text);
}

static json_t *campaign_body(const struct proxy_sim *p, uint64_t lease)
{
    _cleanup_free_ char *value =
        xprintf("%s %llu", p->w->places[p->place].name, (unsigned long long)lease);
    json_t *compare = json_pack("[o]", etcd_if_created(PREFIX "/primary", 0));
    json_t *put = json_pack("[o]", etcd_put(PREFIX "/primary", value, strlen(value), lease));
    return etcd_txn(compare, put, json_pack("[o]", etcd_get(PREFIX "/primary")));
}

static void poll_store(struct proxy_sim *p, const struct election_step *step)
{
    struct request req = {.kind = ASK_STORE};
    struct polling *poll = xmalloc(sizeof *poll);
    *poll = (struct polling){p, step->call, place_ms(p->w, p->place)};
    if (step->call == ELECTION_OBSERVE) {
        req.path = "/v3/kv/range";
        req.body = etcd_range(PREFIX "/primary", PREFIX "/primary0", 0, 1);
    } else if (step->call == ELECTION_STAND) {
        req.path = "/v3/kv/txn";
        req.body = campaign_body(p, step->lease);
    } else {
        bool grants = step->call == ELECTION_GRANT;
        req.path = grants                         ? "/v3/lease/grant"
                   : step->call == ELECTION_RENEW ? "/v3/lease/keepalive"
                                                  : "/v3/lease/revoke";
        req.body = lease_body(grants ? "TTL" : "ID", grants ? LEASE_TTL / 1000 : step->lease);
    }
    p->calling = true;
    net_call(p->w, p->place, STORE, FOR_STORE, &req, step->timeout_ms, polled, poll);
}

/* The thread of metastore_etcd.c; woken also when it resigns. */
void proxy_election_run(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    if (p->calling)
        return;
    if (w->mutant == MUTANT_endless_lease && p->election.elected != 0)
        p->election.until_ms = UINT64_MAX;
    struct election_step step = election_next(&p->election, place_ms(w, p->place));
    if (p->told != p->election.elected) {
        p->told = p->election.elected;
        if (p->told == 0)
            p->known = PRIMARY_UNKNOWN;
        else
            world_note(w, p->place, "elected, revision %llu", (unsigned long long)p->told);
        proxy_role_changed(p);
    }
    if (step.call != ELECTION_WAIT) {
        poll_store(p, &step);
        return;
    }
    uint64_t wait = place_span(w, p->place, step.wait_ms);
    p->wake_at = w->now + wait;
    world_after(w, p->place, wait, election_wake, p, NULL);
}

/* One that an earlier wait has left is passed over. */
static void election_wake(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    if (w->now >= p->wake_at)
        proxy_election_run(w, p);
}

void proxy_resign(struct proxy_sim *p)
{
    election_resign(&p->election);
    world_after(p->w, p->place, 0, proxy_election_run, p, NULL);
}
