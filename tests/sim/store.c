/* etcd as the proxies see it: keys and leases (proxy/testing/fake_keys.h) in virtual time.  A call
 * that gets no answer may have been done, or be done later. */
#include <string.h>

#include <jansson.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "proxy/metastore/etcd_wire.h"
#include "proxy/testing/fake_keys.h"
#include "tests/sim/sim.h"

enum { LEASE_TICK = 50 };

struct store_sim {
    struct fake_keys keys;
    uint64_t ends_at[FAKE_LEASES_MAX];
    enum store_mood mood;
};

/* --- leases ---------------------------------------------------------------------------------- */

/* Without a majority nothing ends, either. */
static void lease_tick(struct world *w, void *arg)
{
    struct store_sim *s = arg;
    for (uint64_t i = 1; i <= s->keys.last_lease && s->mood != STORE_STALLS; i++) {
        if (s->keys.ttl_s[i] != 0 && s->ends_at[i] <= w->now) {
            world_note(w, STORE, "lease %llu ends", (unsigned long long)i);
            fake_keys_expire(&s->keys, i);
        }
    }
    world_after(w, NOBODY, LEASE_TICK, lease_tick, s, NULL);
}

static void prolong(struct world *w, struct store_sim *s, uint64_t lease)
{
    if (lease < FAKE_LEASES_MAX && s->keys.ttl_s[lease] != 0)
        s->ends_at[lease] = w->now + s->keys.ttl_s[lease] * 1000;
}

static void note_leases(struct world *w, struct store_sim *s, const struct request *r)
{
    uint64_t lease = 0;
    if (strcmp(r->path, "/v3/lease/grant") == 0)
        prolong(w, s, s->keys.last_lease);
    else if (strcmp(r->path, "/v3/lease/keepalive") == 0 &&
             etcd_u64(r->body, "ID", &lease, NULL) == 0)
        prolong(w, s, lease);
}

uint64_t store_elected(struct world *w)
{
    return fake_keys_created(&w->store->keys, PREFIX "/primary");
}

void store_end_leases(struct world *w)
{
    world_note(w, STORE, "all leases end");
    w->leases_ended_ms = w->now;
    fake_keys_expire(&w->store->keys, 0);
}

/* --- calls ----------------------------------------------------------------------------------- */

static bool is_change(const struct request *r)
{
    return r->to != NULL;
}

/* As the mutants have it. */
static json_t *body_of(struct world *w, const struct request *r)
{
    json_t *body = json_deep_copy(r->body);
    json_t *operations = json_object_get(body, "success");
    if (w->mutant == MUTANT_no_fence && is_change(r))
        json_object_set_new(body, "compare", json_array());
    if (w->mutant == MUTANT_half_change && is_change(r) && json_array_size(operations) > 1 &&
        world_draw(w, 10) == 0)
        json_array_remove(operations, json_array_size(operations) - 1);
    return body;
}

static json_t *execute(struct world *w, const struct call *c, int *status)
{
    const struct request *r = call_request(c);
    struct store_sim *s = w->store;
    _cleanup_json_ json_t *body = body_of(w, r);
    json_t *reply = fake_keys_serve(&s->keys, r->path, body, status);
    bool made = json_is_true(json_object_get(reply, "succeeded"));
    note_leases(w, s, r);
    if (is_change(r) && made)
        check_durable(w, call_from(c), call_life(c), r->from, r->to);
    else if (is_change(r))
        world_note(w, STORE, "change %llu.%llu of %s is fenced off",
                   (unsigned long long)r->to->term, (unsigned long long)r->to->version,
                   w->places[call_from(c)].name);
    return reply;
}

static void execute_late(struct world *w, void *arg)
{
    struct call *c = arg;
    int status;
    json_decref(execute(w, c, &status));
    call_drop(c);
}

static void answer(struct world *w, struct call *c)
{
    int status;
    struct answer a = {.body = execute(w, c, &status)};
    if (status != 200)
        a.code = E_NOT_FOUND;
    call_reply(w, c, &a);
}

void store_serve(struct world *w, struct call *c)
{
    const struct request *r = call_request(c);
    enum store_mood mood = w->store->mood;
    bool puts = strcmp(r->path, "/v3/kv/txn") == 0;
    if (mood == STORE_WELL || (mood == STORE_FULL && !puts)) {
        answer(w, c);
    } else if (mood == STORE_FULL) {
        call_reply_code(w, c, E_NO_SPACE);
    } else if (world_draw(w, 2) == 0) { /* done, now or later; and nobody hears of it */
        world_after(w, NOBODY, world_draw(w, 2) == 0 ? 0 : world_draw(w, 4000), execute_late,
                    call_keep(c), call_release);
    } else if (mood == STORE_UNKNOWN) {
        call_reply_code(w, c, E_IN_DOUBT);
    }
}

void store_set_mood(struct world *w, enum store_mood mood)
{
    static const char *const names[] = {"is well", "stalls", "answers unknown", "is full"};
    if (w->store->mood != mood)
        world_note(w, STORE, "%s", names[mood]);
    w->store->mood = mood;
}

void store_new(struct world *w)
{
    struct store_sim *s = xcalloc(1, sizeof *s);
    s->keys.revision = 1;
    w->store = s;
    world_after(w, NOBODY, LEASE_TICK, lease_tick, s, NULL);
}

void store_free(struct world *w)
{
    fake_keys_done(&w->store->keys);
    free(w->store);
}
