#include "target/node/member_plan.h"

#include "common/backoff.h"
#include "common/mem.h"
#include "target/node/admit.h"

/* After a round of refusals. */
static const struct backoff after_round = {.first_ms = 100, .max_ms = 5000};

uint64_t member_plan_result(struct member_plan *p, int code, size_t candidates,
                            uint64_t keepalive_interval_ms)
{
    if (code == 0) {
        bool soon = !p->registered || p->behind;
        p->registered = true;
        p->behind = false;
        p->next = 0;
        p->rounds = 0;
        return soon ? keepalive_interval_ms / 10 : keepalive_interval_ms;
    }
    if ((code == E_NODE_NOT_FOUND || code == E_NODE_STATE) && p->registered) {
        p->registered = false;
        return 0;
    }
    if (++p->next < candidates)
        return 0;
    p->next = 0;
    p->rounds++;
    return p->registered ? keepalive_interval_ms : backoff_ms(&after_round, p->rounds);
}

struct list {
    char **urls;
    size_t count;
};

static void list_add(struct list *l, const char *url)
{
    if (*url == '\0')
        return;
    for (size_t i = 0; i < l->count; i++) {
        if (strcmp(l->urls[i], url) == 0)
            return;
    }
    l->urls = xrealloc(l->urls, (l->count + 1) * sizeof *l->urls);
    l->urls[l->count++] = xstrdup(url);
}

static void add_proxies(struct list *l, const struct cluster_state *s, const char *join)
{
    const struct node *primary = s->primary != NULL ? smap_node(&s->smap, s->primary) : NULL;
    if (primary != NULL)
        list_add(l, primary->control_url);
    for (size_t i = 0; i < s->smap.count; i++) {
        if (s->smap.nodes[i].role == NODE_PROXY)
            list_add(l, s->smap.nodes[i].control_url);
    }
    _cleanup_free_ char *copy = xstrdup(join);
    char *rest = copy;
    for (char *url; (url = strsep(&rest, ",")) != NULL;)
        list_add(l, url);
}

size_t member_candidates(const struct cluster_state *s, const char *join, char ***out)
{
    struct list l = {0};
    add_proxies(&l, s, join);
    *out = l.urls;
    return l.count;
}

size_t member_sources(const struct cluster_state *s, const char *join, const char *self,
                      char ***out)
{
    struct list l = {0};
    add_proxies(&l, s, join);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role == NODE_TARGET && n->state == NODE_ACTIVE && strcmp(n->id, self) != 0)
            list_add(&l, n->control_url);
    }
    *out = l.urls;
    return l.count;
}

char *member_take_turn(char **urls, size_t count, size_t turn)
{
    char *chosen = NULL;
    for (size_t i = 0; i < count; i++) {
        if (i == turn % count)
            chosen = urls[i];
        else
            free(urls[i]);
    }
    free(urls);
    return chosen;
}

struct member_wish member_wish(const char *dfcv, const struct cluster_state *now)
{
    struct member_wish w = {0};
    if (dfcv == NULL)
        return (struct member_wish){.term = now->term, .version = now->version + 1};
    if (admit_parse_state_version(dfcv, &w.term, &w.version, NULL) != 0)
        return (struct member_wish){0};
    return w;
}

bool member_wish_granted(const struct member_wish *w, const struct cluster_state *now)
{
    return !admit_is_newer(w->term, w->version, now);
}
