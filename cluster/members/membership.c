#include "cluster/members/membership.h"

#include <string.h>

#include "cluster/base/document.h"
#include "cluster/members/lease.h"
#include "common/mem.h"

/* What is known of the process that has, or asks for, an id. */
struct member {
    char *id;
    char *boot;
    char *control_url;
    char *replaced_boot; /* the run before this one, or NULL */
    uint64_t heard_ms;
    unsigned given_up; /* verdicts that are given out, and not known to have ended */
    uint64_t doubted;  /* the map's version from which on one that failed is out of the way */
    bool reported;
    bool stops; /* this run has said so */
    struct keepalive last;
};

struct membership {
    char *self;
    uint64_t timeout_ms;
    uint64_t fresh_ms; /* silence counts from here at the earliest */
    uint64_t tick_ms;
    uint64_t allowed_ms; /* silence that this tick puts up with */
    bool whole;          /* the cluster stops as a whole, says this tick */
    size_t count;
    struct member *members; /* sorted by id */
};

struct membership *membership_new(const struct membership_rules *rules, uint64_t now_ms)
{
    struct membership *m = xcalloc(1, sizeof *m);
    m->self = xstrdup(rules->self);
    m->timeout_ms = rules->timeout_ms;
    m->fresh_ms = now_ms;
    m->tick_ms = now_ms;
    return m;
}

static void member_done(struct member *e)
{
    free(e->id);
    free(e->boot);
    free(e->control_url);
    free(e->replaced_boot);
}

void membership_free(struct membership *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->count; i++)
        member_done(&m->members[i]);
    free(m->members);
    free(m->self);
    free(m);
}

static size_t find(const struct membership *m, const char *id, bool *found)
{
    return document_find(m->members, m->count, sizeof m->members[0], offsetof(struct member, id),
                         id, found);
}

static struct member *member_find(const struct membership *m, const char *id)
{
    bool found;
    size_t at = find(m, id, &found);
    return found ? &m->members[at] : NULL;
}

static struct member *member_add(struct membership *m, const char *id)
{
    bool found;
    size_t at = find(m, id, &found);
    m->members = xrealloc(m->members, (m->count + 1) * sizeof m->members[0]);
    memmove(&m->members[at + 1], &m->members[at], (m->count - at) * sizeof m->members[0]);
    m->count++;
    m->members[at] = (struct member){.id = xstrdup(id)};
    return &m->members[at];
}

static void member_remove(struct membership *m, size_t at)
{
    member_done(&m->members[at]);
    m->count--;
    memmove(&m->members[at], &m->members[at + 1], (m->count - at) * sizeof m->members[0]);
}

static void replace_text(char **text, const char *with)
{
    char *copy = xstrdup(with);
    free(*text);
    *text = copy;
}

/* The member of a node that the map has but that has not been heard since the primary began: it
 * counts as heard then. */
static struct member *member_of_node(struct membership *m, const struct node *known)
{
    struct member *e = member_find(m, known->id);
    if (e != NULL)
        return e;
    e = member_add(m, known->id);
    e->boot = xstrdup(known->boot);
    e->control_url = xstrdup(known->control_url);
    e->heard_ms = m->fresh_ms;
    return e;
}

/* For how long nothing has been heard, as far as the primary may count. */
static uint64_t silence(const struct membership *m, uint64_t heard_ms, uint64_t now_ms)
{
    uint64_t from = heard_ms > m->fresh_ms ? heard_ms : m->fresh_ms;
    return now_ms > from ? now_ms - from : 0;
}

/* Another process than the one that has the id asks for it. */
static int check_takeover(const struct membership *m, const struct member *e,
                          const struct node *spec, uint64_t now_ms, struct error *err)
{
    uint64_t silent_ms = silence(m, e->heard_ms, now_ms);
    if (silent_ms > m->timeout_ms)
        return 0;
    if (e->replaced_boot != NULL && strcmp(e->replaced_boot, spec->boot) == 0)
        return error_set(err, E_EXISTS,
                         "a later process has taken the id '%s'; two nodes must not have one id",
                         spec->id);
    if (strcmp(e->control_url, spec->control_url) == 0)
        return 0;
    return error_set(err, E_EXISTS,
                     "the id '%s' belongs to the node at %s, last seen %llu ms ago; give this node "
                     "another id, or stop the other node and try again after %llu ms",
                     spec->id, e->control_url, (unsigned long long)silent_ms,
                     (unsigned long long)(m->timeout_ms - silent_ms + 1));
}

/* Proxies may share a public name, such as a balancer's. */
static bool has_url(const struct node *n, const char *url)
{
    return url[0] != '\0' && (strcmp(n->control_url, url) == 0 || strcmp(n->data_url, url) == 0 ||
                              (n->role == NODE_TARGET && strcmp(n->public_url, url) == 0));
}

static bool shares_address(const struct node *a, const struct node *b)
{
    return has_url(a, b->control_url) || has_url(a, b->data_url) || has_url(a, b->public_url);
}

/* May the node that the map has there be there still? */
static bool holds_address(const struct membership *m, const struct node *n, uint64_t now_ms)
{
    const struct member *e = member_find(m, n->id);
    return n->state == NODE_ACTIVE ||
           (n->state != NODE_UNREACHABLE &&
            silence(m, e != NULL ? e->heard_ms : 0, now_ms) <= m->timeout_ms);
}

/* A node that the map has where it says that it is, and has not given up, is there. */
static int check_address(const struct membership *m, const struct smap *map,
                         const struct node *spec, uint64_t now_ms, struct error *err)
{
    const struct node *known = smap_node(map, spec->id);
    if (known != NULL && known->state != NODE_UNREACHABLE && shares_address(known, spec))
        return 0;
    for (size_t i = 0; i < map->count; i++) {
        const struct node *n = &map->nodes[i];
        if (strcmp(n->id, spec->id) != 0 && shares_address(n, spec) && holds_address(m, n, now_ms))
            return error_set(err, E_EXISTS,
                             "the address %s of node '%s' belongs to node '%s': give this node "
                             "another address, or stop the other node and try again once it is "
                             "unreachable",
                             spec->control_url, spec->id, n->id);
    }
    return 0;
}

int membership_register(struct membership *m, const struct smap *map, const struct node *spec,
                        uint64_t now_ms, struct error *err)
{
    const struct node *known = smap_node(map, spec->id);
    struct member *e = known != NULL ? member_of_node(m, known) : member_find(m, spec->id);
    if (strcmp(spec->id, m->self) == 0)
        return error_set(err, E_EXISTS, "the id '%s' is the primary's own", spec->id);
    int r = check_address(m, map, spec, now_ms, err);
    if (r != 0)
        return r;
    if (e == NULL) {
        e = member_add(m, spec->id);
    } else if (strcmp(e->boot, spec->boot) != 0) {
        if ((r = check_takeover(m, e, spec, now_ms, err)) != 0)
            return r;
        replace_text(&e->replaced_boot, e->boot);
        e->reported = false;
        e->stops = false;
    }
    replace_text(&e->boot, spec->boot);
    replace_text(&e->control_url, spec->control_url);
    e->heard_ms = now_ms;
    return 0;
}

/* The member whose run this is, as the map has it; NULL: E_NODE_NOT_FOUND. */
static struct member *member_of_run(struct membership *m, const struct smap *map, const char *id,
                                    const char *boot, struct error *err)
{
    const struct node *known = smap_node(map, id);
    struct member *e = NULL;
    if (known == NULL || strcmp(known->boot, boot) != 0)
        error_set(err, E_NODE_NOT_FOUND, "the map has no node '%.64s' with this boot id", id);
    else if (e = member_of_node(m, known), strcmp(e->boot, boot) != 0)
        error_set(err, E_NODE_NOT_FOUND, "a later process is taking the id '%.64s'", id);
    else
        return e;
    return NULL;
}

int membership_keepalive(struct membership *m, const struct smap *map, const struct keepalive *k,
                         uint64_t now_ms, struct error *err)
{
    struct member *e = member_of_run(m, map, k->id, k->boot, err);
    if (e == NULL)
        return E_NODE_NOT_FOUND;
    if (check_address(m, map, smap_node(map, k->id), now_ms, err) != 0)
        return error_recode(err, E_NODE_NOT_FOUND, "node '%s' must register", k->id);
    e->heard_ms = now_ms;
    e->reported = true;
    e->last = *k;
    e->last.id = NULL;
    e->last.boot = NULL;
    return 0;
}

/* After a pause the sockets are full of what came meanwhile, and timers run first: a late tick
 * gives up only whom it would have given up long before, so that the next one, behind the messages,
 * decides.  After a long pause the nodes' own calls have failed, too, and all get a timeout anew.
 */
static void note_pause(struct membership *m, uint64_t now_ms)
{
    uint64_t gap_ms = now_ms - m->tick_ms;
    m->allowed_ms = gap_ms > m->timeout_ms / 8 ? 2 * m->timeout_ms : m->timeout_ms;
    if (gap_ms > m->timeout_ms / 2)
        m->fresh_ms = now_ms;
    m->tick_ms = now_ms;
}

static bool is_heard(const struct membership *m, const struct node *n, const struct member *e,
                     uint64_t now_ms)
{
    return e != NULL && !e->stops && e->heard_ms + m->timeout_ms >= now_ms &&
           strcmp(e->boot, n->boot) == 0 && e->heard_ms > m->fresh_ms;
}

static bool stops(const struct node *n, const struct member *e)
{
    return e != NULL && e->stops && strcmp(e->boot, n->boot) == 0;
}

/* Has every active target said that it stops? */
static bool stops_as_a_whole(const struct membership *m, const struct smap *map)
{
    bool whole = true;
    for (size_t i = 0; i < map->count; i++) {
        const struct node *n = &map->nodes[i];
        if (n->role == NODE_TARGET && n->state == NODE_ACTIVE)
            whole = whole && stops(n, member_find(m, n->id));
    }
    return whole;
}

static bool is_gone(const struct membership *m, const struct verdict *v)
{
    return v->stopping || v->silent_ms > m->allowed_ms;
}

/* Of a target that is not unreachable. */
static bool is_absent(const struct membership *m, const struct node *n, const struct member *e,
                      const struct verdict *v, uint64_t now_ms)
{
    bool missing = e != NULL && e->reported && e->last.mountpaths_missing > 0;
    bool silent = n->state != NODE_ACTIVE && is_gone(m, v);
    if (n->absent_since == 0)
        return missing || silent;
    return missing || silent || !e || !e->reported || !is_heard(m, n, e, now_ms);
}

static bool judge(const struct membership *m, const struct node *n, const struct member *e,
                  uint64_t now_ms, struct verdict *v)
{
    bool absent = n->absent_since != 0;
    *v = (struct verdict){.id = n->id, .state = n->state, .absent = absent};
    v->silent_ms = silence(m, e != NULL ? e->heard_ms : 0, now_ms);
    v->stopping = stops(n, e) && !(n->role == NODE_TARGET && m->whole);
    if (n->state == NODE_ACTIVE && is_gone(m, v))
        v->state = NODE_UNREACHABLE;
    /* Taken back only for a real sign of life, never because a clock started anew. */
    if (n->state == NODE_UNREACHABLE && is_heard(m, n, e, now_ms))
        v->state = NODE_ACTIVE;
    v->stays = v->state == n->state;
    if (v->stays && n->state != NODE_UNREACHABLE && n->role == NODE_TARGET)
        v->absent = is_absent(m, n, e, v, now_ms);
    return !v->stays || v->absent != absent;
}

struct command verdict_command(const struct verdict *v, int64_t wall_ms)
{
    return (struct command){.kind = v->stays ? CMD_NODE_ABSENT : CMD_NODE_STATE,
                            .name = v->id,
                            .node_state = v->state,
                            .absent = v->absent,
                            .wall_ms = wall_ms};
}

bool verdict_gives_up(const struct verdict *v)
{
    return v->stays ? v->absent : v->state == NODE_UNREACHABLE;
}

/* Whoever asked for an id and never came into the map is forgotten. */
static void forget_strangers(struct membership *m, const struct smap *map, uint64_t now_ms)
{
    for (size_t i = m->count; i-- > 0;) {
        const struct member *e = &m->members[i];
        if (smap_node(map, e->id) == NULL && silence(m, e->heard_ms, now_ms) > m->timeout_ms)
            member_remove(m, i);
    }
}

size_t membership_tick(struct membership *m, const struct smap *map, uint64_t now_ms,
                       struct verdict *out)
{
    note_pause(m, now_ms);
    m->whole = stops_as_a_whole(m, map);
    size_t count = 0;
    for (size_t i = 0; i < map->count; i++) {
        const struct node *n = &map->nodes[i];
        if (strcmp(n->id, m->self) == 0 || !judge(m, n, member_find(m, n->id), now_ms, &out[count]))
            continue;
        member_of_node(m, n)->given_up += verdict_gives_up(&out[count]);
        count++;
    }
    forget_strangers(m, map, now_ms);
    return count;
}

int membership_stop(struct membership *m, const struct smap *map, const char *id, const char *boot,
                    struct error *err)
{
    struct member *e = member_of_run(m, map, id, boot, err);
    if (e == NULL)
        return E_NODE_NOT_FOUND;
    e->stops = true;
    return 0;
}

uint64_t membership_lease_ms(const struct membership *m, const struct smap *map, const char *id)
{
    const struct node *n = smap_node(map, id);
    const struct member *e = member_find(m, id);
    bool counted_on = n != NULL && e != NULL && n->state == NODE_ACTIVE && n->absent_since == 0 &&
                      !e->stops && e->last.mountpaths_missing == 0 &&
                      strcmp(n->boot, e->boot) == 0 && e->given_up == 0 &&
                      map->version >= e->doubted;
    return counted_on ? lease_for(m->timeout_ms) : 0;
}

void membership_judged(struct membership *m, const struct smap *map, const char *id, bool failed)
{
    struct member *e = member_find(m, id);
    if (e == NULL)
        return;
    if (e->given_up > 0)
        e->given_up--;
    if (failed)
        e->doubted = map->version + 1;
}

bool membership_last(const struct membership *m, const char *id, struct keepalive *out)
{
    const struct member *e = member_find(m, id);
    if (e == NULL || !e->reported)
        return false;
    *out = e->last;
    return true;
}

uint64_t membership_silent_ms(const struct membership *m, const char *id, uint64_t now_ms)
{
    const struct member *e = member_find(m, id);
    return e != NULL && e->reported ? silence(m, e->heard_ms, now_ms) : 0;
}
