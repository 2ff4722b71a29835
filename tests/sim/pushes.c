/* The texts of pushes, and what nodes read out of them.  Both are pure functions of states and
 * texts that do not change, so that each is computed once for all nodes that hold the same: as the
 * primary makes its texts (proxy/push/push_text.h), and unlike nodes of their own, which all read.
 * All nodes that have come to a state hold it once. */
#include <string.h>

#include "cluster/documents/push_body.h"
#include "tests/sim/sim.h"

enum { KEPT = 64, COMPARED_EVERY = 16 };

struct pushed {
    unsigned refs;
    const struct cluster_state *from, *to; /* from NULL: the whole */
    char *data;
};

struct reading {
    const struct cluster_state *now;
    struct pushed *text;
    int code;
    struct cluster_state *found; /* NULL: it does not lead from `now` */
};

/* The last ones, in rings. */
struct pushes {
    struct pushed *texts[KEPT];
    struct reading readings[KEPT];
    size_t next_text, next_reading;
    unsigned read; /* of which every COMPARED_EVERY-th is compared whole */
};

/* --- texts ----------------------------------------------------------------------------------- */

static struct pushed *pushed_ref(struct pushed *t)
{
    t->refs++;
    return t;
}

void pushed_drop(struct pushed *t)
{
    if (t == NULL || --t->refs > 0)
        return;
    state_unref(t->from);
    state_unref(t->to);
    free(t->data);
    free(t);
}

struct pushed *pushed_of(struct world *w, const struct cluster_state *from,
                         const struct cluster_state *to)
{
    struct pushes *p = w->pushes;
    for (size_t i = 0; i < KEPT && p->texts[i] != NULL; i++) {
        if (p->texts[i]->from == from && p->texts[i]->to == to)
            return pushed_ref(p->texts[i]);
    }
    struct pushed *t = xmalloc(sizeof *t);
    *t = (struct pushed){.refs = 1,
                         .from = from != NULL ? state_ref(from) : NULL,
                         .to = state_ref(to),
                         .data = push_body_text(from, to)};
    pushed_drop(p->texts[p->next_text]);
    p->texts[p->next_text] = pushed_ref(t);
    p->next_text = (p->next_text + 1) % KEPT;
    return t;
}

/* --- readings -------------------------------------------------------------------------------- */

static void reading_done(struct reading *r)
{
    if (r->text == NULL)
        return;
    state_unref(r->now);
    state_unref(r->found);
    pushed_drop(r->text);
}

static void compare(struct world *w, const struct cluster_state *got,
                    const struct cluster_state *wanted)
{
    char *text = push_body_text(NULL, got);
    char *whole = push_body_text(NULL, wanted);
    if (strcmp(text, whole) != 0)
        world_fail(w, "a push leads to its state: %llu.%llu was read as %s in place of %s",
                   (unsigned long long)wanted->term, (unsigned long long)wanted->version, text,
                   whole);
    free(text);
    free(whole);
}

/* The primary's own state, which others hold, too; or what was read, for the checker to judge. */
static void unite(struct world *w, struct reading *r)
{
    const struct cluster_state *to = r->text->to;
    if (w->pushes->read++ % COMPARED_EVERY == 0)
        compare(w, r->found, to);
    if (!check_same(w, r->found, to))
        return;
    state_unref(r->found);
    r->found = state_ref(to);
}

static const struct reading *reading_of(struct world *w, const struct cluster_state *now,
                                        struct pushed *text)
{
    struct pushes *p = w->pushes;
    for (size_t i = 0; i < KEPT && p->readings[i].text != NULL; i++) {
        if (p->readings[i].now == now && p->readings[i].text == text)
            return &p->readings[i];
    }
    struct reading *r = &p->readings[p->next_reading];
    p->next_reading = (p->next_reading + 1) % KEPT;
    reading_done(r);
    *r = (struct reading){.now = state_ref(now), .text = pushed_ref(text)};
    r->code = push_body_read(now, text->data, strlen(text->data), &r->found, NULL);
    if (r->code == 0 && r->found != NULL)
        unite(w, r);
    return r;
}

int pushed_read(struct world *w, const struct cluster_state *now, struct pushed *text,
                struct cluster_state **out)
{
    const struct reading *r = reading_of(w, now, text);
    *out = r->found != NULL ? state_ref(r->found) : NULL;
    return r->code;
}

/* --- beginning and end ----------------------------------------------------------------------- */

void pushes_new(struct world *w)
{
    w->pushes = xcalloc(1, sizeof *w->pushes);
}

void pushes_free(struct world *w)
{
    for (size_t i = 0; i < KEPT; i++) {
        reading_done(&w->pushes->readings[i]);
        pushed_drop(w->pushes->texts[i]);
    }
    free(w->pushes);
}
