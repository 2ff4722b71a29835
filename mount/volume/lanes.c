#include "mount/volume/lanes.h"

#include "common/backoff.h"
#include "common/log.h"

static const char given_up[] = "other clients gave it up";
static const char unknown_commit[] = "what became of a commit is not known";
static const char lost_commits[] = "the engine has lost commits that it acknowledged";

static struct lane *take_lane(struct volume *v)
{
    struct lane *l = NULL;
    pthread_mutex_lock(&v->lock);
    while (l == NULL) {
        for (unsigned i = 0; i < v->env.lanes && l == NULL; i++)
            l = v->lanes[i].busy ? NULL : &v->lanes[i];
        if (l == NULL)
            pthread_cond_wait(&v->free_lane, &v->lock);
    }
    l->busy = true;
    pthread_mutex_unlock(&v->lock);
    return l;
}

static void give_lane(struct volume *v, struct lane *l)
{
    pthread_mutex_lock(&v->lock);
    l->busy = false;
    pthread_cond_signal(&v->free_lane);
    pthread_mutex_unlock(&v->lock);
}

static bool is_over(struct volume *v)
{
    pthread_mutex_lock(&v->lock);
    bool over = v->over;
    pthread_mutex_unlock(&v->lock);
    return over;
}

static enum lane_result end_session(struct volume *v, const char *why)
{
    pthread_mutex_lock(&v->lock);
    bool first = !v->over;
    v->over = true;
    pthread_mutex_unlock(&v->lock);
    if (first)
        log_error("session over: mount the volume again", lstr("volume", v->format.name),
                  lu64("session", v->session), lstr("why", why));
    return LANE_OVER;
}

/* ---- one commit ---- */

static struct meta_key lane_key(const struct volume *v, const struct lane *l)
{
    return meta_key_number(META_LANE, v->session, (uint64_t)(l - v->lanes));
}

static int commit_as(struct volume *v, const struct lane *l, int64_t number,
                     struct meta_step *steps, size_t count, size_t *conflict, struct error *err)
{
    uint8_t value[8];
    meta_field_put(value, 0, number);
    steps[0] = (struct meta_step){
        .kind = META_EXPECT_EQUAL,
        .key = lane_key(v, l),
        .number = l->number,
    };
    steps[1] = (struct meta_step){
        .kind = META_PUT,
        .key = lane_key(v, l),
        .data = value,
        .size = sizeof value,
    };
    struct meta_commit c = {.steps = steps, .count = count};
    int rc = v->meta->ops->commit(v->meta, &c, err);
    *conflict = c.conflict;
    return rc;
}

static int read_number(struct volume *v, const struct lane *l, bool *found, int64_t *number,
                       struct error *err)
{
    struct arena *arena = arena_new(256);
    struct meta_item item = {.ask = META_GET, .key = lane_key(v, l)};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    int rc = v->meta->ops->read(v->meta, &r, err);
    *found = item.value.found;
    *number = meta_field(&item.value, 0);
    arena_free(arena);
    return rc;
}

/* The lane has another number than it was given. */
static enum lane_result end_by_number(struct volume *v, const struct lane *l, struct error *err)
{
    bool found;
    int64_t number;
    if (read_number(v, l, &found, &number, err) != 0)
        return LANE_FAILED; /* the next commit finds out */
    return end_session(v, found ? lost_commits : given_up);
}

/* ---- doubt ---- */

/* What became of the commit n + 1: LANE_MADE; LANE_CONFLICT: it was not made, and never will be;
 * LANE_FAILED: nothing is known now, the engine's error is in err. */
static enum lane_result ask(struct volume *v, struct lane *l, struct error *err)
{
    struct meta_step barrier[LANE_STEPS];
    bool found;
    int64_t number;
    size_t conflict;
    if (read_number(v, l, &found, &number, err) != 0)
        return LANE_FAILED;
    if (!found)
        return end_session(v, given_up);
    if (number < l->number)
        return end_session(v, lost_commits);
    if (number == l->number) {
        int rc = commit_as(v, l, l->number + 2, barrier, LANE_STEPS, &conflict, err);
        if (rc != 0)
            return LANE_FAILED; /* also where the first one arrived meanwhile */
        number = l->number + 2;
    }
    bool made = number == l->number + 1;
    l->number = number;
    return made ? LANE_MADE : LANE_CONFLICT;
}

static enum lane_result clear_doubt(struct volume *v, struct lane *l, struct error *err)
{
    static const struct backoff pauses = {.first_ms = 1, .max_ms = 1000};
    enum lane_result result = LANE_FAILED;
    for (unsigned i = 1; i <= v->env.tries; i++) {
        result = ask(v, l, err);
        if (result != LANE_FAILED)
            break;
        v->env.pause_ms(v->env.context, backoff_ms(&pauses, i));
    }
    return result;
}

static enum lane_result commit_on(struct volume *v, struct lane *l, struct meta_step *steps,
                                  size_t count, struct error *err)
{
    size_t conflict;
    int rc = commit_as(v, l, l->number + 1, steps, count, &conflict, err);
    if (rc == 0) {
        l->number++;
        return LANE_MADE;
    }
    if (rc == E_PRECONDITION)
        return conflict == 0 ? end_by_number(v, l, err) : LANE_CONFLICT;
    if (rc != E_IN_DOUBT)
        return LANE_FAILED;
    enum lane_result result = clear_doubt(v, l, err);
    /* The caller would commit the same slices once more: twice in a list, their blocks are lost. */
    return result == LANE_FAILED ? end_session(v, unknown_commit) : result;
}

enum lane_result lane_commit(struct volume *v, struct call *call, struct meta_step *steps,
                             size_t count, struct error *err)
{
    if (is_over(v))
        return LANE_OVER;
    struct lane *l = take_lane(v);
    calls_sent(call, (uint32_t)(l - v->lanes), l->number + 1);
    enum lane_result result = commit_on(v, l, steps, count, err);
    calls_ended(call, result == LANE_MADE);
    give_lane(v, l);
    return result;
}
