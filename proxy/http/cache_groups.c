#include "proxy/http/cache_groups.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define WORD_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

struct member {
    char id[CACHE_WORD_MAX], boot[CACHE_WORD_MAX], url[CACHE_URL_MAX];
    uint32_t weight, earlier_weight;
    bool drains, left;
    uint64_t heard_ms, present_since_ms, weighed_ms;
};

struct group {
    char name[CACHE_WORD_MAX]; /* "": free */
    uint64_t began_ms, heard_ms;
    size_t count;
    struct member *members; /* CACHE_MEMBERS_MAX */
};

struct cache_groups {
    pthread_mutex_t lock;
    struct group groups[CACHE_GROUPS_MAX];
};

struct cache_groups *cache_groups_new(void)
{
    struct cache_groups *g = xcalloc(1, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

void cache_groups_free(struct cache_groups *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < CACHE_GROUPS_MAX; i++)
        free(g->groups[i].members);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* ---- what a report may say ---- */

static int check_word(const char *what, const char *text, struct error *err)
{
    size_t len = strlen(text);
    if (len > 0 && len < CACHE_WORD_MAX && strspn(text, WORD_CHARACTERS) == len)
        return 0;
    return error_set(err, E_INVALID,
                     "%s '%.64s': it must be 1 to %d letters, digits, '.', '_' or '-'", what, text,
                     CACHE_WORD_MAX - 1);
}

int cache_groups_check_name(const char *group, struct error *err)
{
    return check_word("cache group", group, err);
}

static int check(const struct cache_report *r, struct error *err)
{
    int rc;
    if ((rc = cache_groups_check_name(r->group, err)) != 0 ||
        (rc = check_word("member", r->id, err)) != 0 ||
        (rc = check_word("field 'boot'", r->boot, err)) != 0)
        return rc;
    if (strncmp(r->url, "http://", 7) != 0 || strlen(r->url) >= CACHE_URL_MAX ||
        strpbrk(r->url + 7, "/?# ") != NULL)
        return error_set(err, E_INVALID, "field 'url': '%.64s' is not http://HOST:PORT", r->url);
    return r->weight > 0 ? 0 : error_set(err, E_INVALID, "field 'weight': it must not be 0");
}

/* ---- who is there ---- */

/* Calls may come in another order than their times. */
static uint64_t since(uint64_t then_ms, uint64_t now_ms)
{
    return now_ms > then_ms ? now_ms - then_ms : 0;
}

static bool is_away(const struct member *m, const struct cache_times *times, uint64_t now)
{
    return m->left || since(m->heard_ms, now) > times->away_ms;
}

static struct group *group_find(struct cache_groups *g, const char *name)
{
    for (size_t i = 0; i < CACHE_GROUPS_MAX; i++) {
        if (strcmp(g->groups[i].name, name) == 0)
            return &g->groups[i];
    }
    return NULL;
}

/* A group without members begins. */
static void group_begin(struct group *group, const char *name, uint64_t now)
{
    if (group->members == NULL)
        group->members = xcalloc(CACHE_MEMBERS_MAX, sizeof *group->members);
    group->count = 0;
    group->began_ms = now;
    snprintf(group->name, sizeof group->name, "%s", name);
}

/* NULL: there are too many. */
static struct group *group_take(struct cache_groups *g, const char *name,
                                const struct cache_times *times, uint64_t now)
{
    struct group *group = group_find(g, name);
    for (size_t i = 0; i < CACHE_GROUPS_MAX && group == NULL; i++) {
        struct group *other = &g->groups[i];
        if (other->name[0] == '\0' || since(other->heard_ms, now) > times->settle_ms)
            group = other;
    }
    if (group == NULL)
        return NULL;
    /* After silence of all, what was known before may be of an earlier turn as the primary. */
    if (strcmp(group->name, name) != 0 || since(group->heard_ms, now) > times->away_ms)
        group_begin(group, name, now);
    return group;
}

static void forget_old(struct group *group, const struct cache_times *times, uint64_t now)
{
    for (size_t i = 0; i < group->count;) {
        if (since(group->members[i].heard_ms, now) > times->settle_ms)
            group->members[i] = group->members[--group->count];
        else
            i++;
    }
}

static struct member *member_find(struct group *group, const char *id)
{
    for (size_t i = 0; i < group->count; i++) {
        if (strcmp(group->members[i].id, id) == 0)
            return &group->members[i];
    }
    return NULL;
}

/* ---- a report ---- */

static void note(struct member *m, const struct cache_report *r, const struct cache_times *times,
                 uint64_t now)
{
    if (is_away(m, times, now))
        m->present_since_ms = now;
    if (m->weight != r->weight) {
        m->earlier_weight = m->weight;
        m->weight = r->weight;
        m->weighed_ms = now;
    }
    snprintf(m->boot, sizeof m->boot, "%s", r->boot);
    snprintf(m->url, sizeof m->url, "%s", r->url);
    m->drains = r->drains;
    m->left = r->leaves;
    m->heard_ms = now;
}

static int report(struct cache_groups *g, const struct cache_report *r,
                  const struct cache_times *times, uint64_t now, struct error *err)
{
    struct group *group = group_take(g, r->group, times, now);
    if (group == NULL)
        return error_set(err, E_OVERLOAD, "there are %d cache groups, which is the limit",
                         CACHE_GROUPS_MAX);
    forget_old(group, times, now);
    struct member *m = member_find(group, r->id);
    if (m != NULL && !is_away(m, times, now) && strcmp(m->boot, r->boot) != 0 &&
        strcmp(m->url, r->url) != 0)
        return error_set(err, E_EXISTS,
                         "cache group '%s' has a member '%s' at %s: give this one another id",
                         r->group, r->id, m->url);
    if (m == NULL && group->count == CACHE_MEMBERS_MAX)
        return error_set(err, E_OVERLOAD, "cache group '%s' has %d members, which is the limit",
                         r->group, CACHE_MEMBERS_MAX);
    if (m == NULL) {
        m = &group->members[group->count++];
        *m = (struct member){.weight = r->weight,
                             .earlier_weight = r->weight,
                             .heard_ms = now,
                             .present_since_ms = now,
                             .weighed_ms = now};
        snprintf(m->id, sizeof m->id, "%s", r->id);
    }
    note(m, r, times, now);
    group->heard_ms = now;
    return 0;
}

int cache_groups_report(struct cache_groups *g, const struct cache_report *r,
                        const struct cache_times *times, uint64_t now_ms, struct error *err)
{
    int rc = check(r, err);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&g->lock);
    rc = report(g, r, times, now_ms, err);
    pthread_mutex_unlock(&g->lock);
    return rc;
}

/* ---- the document ---- */

static json_t *show_member(const struct member *m, const struct cache_times *times, uint64_t now)
{
    bool changed = since(m->weighed_ms, now) <= times->settle_ms;
    bool away = is_away(m, times, now);
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "id", m->id, "url", m->url, "state",
                     away ? "away" : "present", "weight", (json_int_t)(m->drains ? 0 : m->weight),
                     "earlier_weight",
                     (json_int_t)(changed && !m->drains ? m->earlier_weight : m->weight),
                     "present_ms", (json_int_t)(away ? 0 : since(m->present_since_ms, now)),
                     "silent_ms", (json_int_t)(since(m->heard_ms, now)));
}

json_t *cache_groups_show(struct cache_groups *g, const char *group,
                          const struct cache_times *times, uint64_t now_ms)
{
    json_t *members = json_array();
    uint64_t age_ms = 0;
    pthread_mutex_lock(&g->lock);
    struct group *found = group[0] != '\0' ? group_find(g, group) : NULL;
    if (found != NULL) {
        forget_old(found, times, now_ms);
        age_ms = since(found->began_ms, now_ms);
        for (size_t i = 0; i < found->count; i++)
            json_array_append_new(members, show_member(&found->members[i], times, now_ms));
    }
    pthread_mutex_unlock(&g->lock);
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "group", group, "age_ms", (json_int_t)age_ms,
                     "away_ms", (json_int_t)times->away_ms, "settle_ms",
                     (json_int_t)times->settle_ms, "members", members);
}
