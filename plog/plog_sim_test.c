/* Writers, readers and merges of one plog, whose calls interleave in every way: sessions that a
 * merge takes for dead and that write on, writers that crash at any call, calls that are repeated
 * because their reply is lost, heads that are replaced under a writer, flattenings.  At every step:
 *
 *   - what a sync or close acknowledged before a read began is read, or a write of a greater key
 *   - a phase that began after an acknowledgement has the greater key
 *   - a sync does not acknowledge for a plog whose head was gone before it began
 *   - what was acknowledged, also during a flattening, is in the flat object
 *   - when all writers have closed, and none has died or failed, there is no record
 *
 * and while no live session is taken for dead, and who shares a record closes last:
 *
 *   - what one read has shown, later ones show, or a write of a greater key
 *   - in the end the head covers all segments, and there is no record
 *
 * In every other schedule writers open the plog by tokens, also by those of sessions that are over.
 *
 * Then the same with a store that lies: it does what programs without one of their steps would do.
 * Each lie has to be found. */
#include "plog/testing/sim_actor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

enum {
    TURNS_LEAST = 3, /* of an actor: a writer opens, closes and merges */
    TURNS = 8,
    BYTES_SLOWER = 20,
    STEPS = 20000,
    SCHEDULES = 1000,
    LIE_SCHEDULES = 5000,
};

static bool chance(struct sim *s, uint64_t one_in)
{
    return rng_below(&s->rng, one_in) == 0;
}

static void blame(struct sim *s, const char *what)
{
    s->wrong = s->wrong != NULL ? s->wrong : what;
}

static int compare_keys(const struct key *a, const struct key *b)
{
    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    if (a->writer != b->writer)
        return a->writer < b->writer ? -1 : 1;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

/* --- beginnings ------------------------------------------------------------------------------- */

static void plan_writes(struct sim *s, struct actor *a)
{
    a->plan.count = 1 + rng_below(&s->rng, SEGMENTS);
    for (size_t i = 0; i < a->plan.count; i++) {
        a->plan.first[i] = (uint8_t)(s->writes_count + 1);
        for (uint64_t k = 1 + rng_below(&s->rng, 2); k > 0 && s->writes_count < WRITES - 1; k--) {
            struct sim_write *w = &s->writes[++s->writes_count];
            w->length = 1 + rng_below(&s->rng, CELLS);
            w->offset = rng_below(&s->rng, CELLS - w->length + 1);
            memcpy(w->id, a->session.id, sizeof w->id);
        }
        a->plan.first[i + 1] = (uint8_t)(s->writes_count + 1);
    }
}

static bool writers_are_left(const struct sim *s)
{
    for (size_t i = 0; i < s->actors_count; i++) {
        const struct actor *a = &s->actors[i];
        if (a->kind == SIM_WRITE && !a->is_dead && (a->turns > 0 || a->is_running || a->is_open))
            return true;
    }
    return false;
}

/* Does another one write under the record of this writer? */
static bool has_sharers(const struct sim *s, const struct actor *a)
{
    for (size_t i = 0; i < s->actors_count; i++) {
        const struct actor *b = &s->actors[i];
        if (b != a && b->is_open && !b->is_dead && b->session.by_token &&
            b->session.session == a->session.session)
            return true;
    }
    return false;
}

/* An honest owner closes last. */
static bool waits_for_sharers(const struct sim *s, const struct actor *a)
{
    return s->is_honest && a->is_open && !a->session.by_token && has_sharers(s, a);
}

/* Honest: the record's owner has it open, or has died so. */
static bool has_token(const struct sim *s)
{
    bool is_fresh = false;
    for (size_t i = 0; i < s->actors_count; i++) {
        const struct actor *a = &s->actors[i];
        is_fresh |= a->is_open && !a->session.by_token && a->session.session == s->token.session &&
                    !(a->is_running && a->program.role == SIM_CLOSE);
    }
    return s->token.id[0] != '\0' && (is_fresh || !s->is_honest);
}

static enum sim_role next_of_writer(struct sim *s, struct actor *a)
{
    enum sim_role role = a->turns <= 1 || chance(s, 3) ? SIM_CLOSE : SIM_WRITE;
    if (role == SIM_CLOSE && waits_for_sharers(s, a))
        role = SIM_WRITE;
    if (role == SIM_WRITE && s->has_tokens &&
        (a->session.by_token ? chance(s, 8) : !a->session.is_shared))
        return SIM_SHARE;
    if (role == SIM_WRITE || !chance(s, 3))
        plan_writes(s, a);
    return role;
}

static void begin(struct sim *s, struct actor *a)
{
    enum sim_role role = a->kind;
    const bool is_patient = s->is_honest ? writers_are_left(s) : chance(s, 2);
    a->turns--;
    a->plan.count = 0;
    a->before = a->session;
    a->lease_ms = is_patient && s->store.lie != LIE_IMPATIENT ? UINT64_MAX : 0;
    if (a->kind == SIM_WRITE && a->wants_end) {
        role = SIM_MERGE; /* after a close */
        a->wants_end = false;
    } else if (a->kind == SIM_WRITE && a->is_open) {
        role = next_of_writer(s, a);
    } else if (a->kind == SIM_WRITE) {
        a->opens_token = s->has_tokens && has_token(s) && !chance(s, 4);
    } else if (a->kind == SIM_OTHER) {
        a->plan.count = rng_below(&s->rng, 2);
    }
    a->program.id[0] = '\0';
    a->program.by_token = a->is_open && a->session.by_token;
    if (a->is_open)
        memcpy(a->program.id, a->session.id, sizeof a->program.id);
    memcpy(a->floor, s->shown, sizeof a->floor);
    memcpy(a->floor_id, s->shown_id, sizeof a->floor_id);
    a->is_running = true;
    sim_begin(&a->program, role);
}

/* --- ends, and what has to hold --------------------------------------------------------------- */

static void check_order(struct sim *s, const struct actor *a)
{
    for (size_t i = 1; i <= s->writes_count && a->plan.count > 0; i++) {
        const struct sim_write *w = &s->writes[i];
        const struct sim_write *mine = &s->writes[a->plan.first[0]];
        if (w->acknowledged > 0 && w->acknowledged < a->program.begun &&
            strcmp(w->id, mine->id) == 0 && compare_keys(&w->key, &mine->key) >= 0)
            blame(s, "a later phase has the smaller key");
    }
}

static void acknowledge(struct sim *s, struct actor *a)
{
    if (a->plan.count == 0 || a->plan.first[0] == a->plan.first[a->plan.count])
        return;
    check_order(s, a);
    if (strcmp(s->head_id, a->session.id) != 0 && s->head_since < a->program.begun)
        blame(s, "a sync acknowledged for a plog that is gone");
    for (uint8_t w = a->plan.first[0]; w < a->plan.first[a->plan.count]; w++)
        s->writes[w].acknowledged = s->store.now;
}

/* `seen` is the write `other`, or hides it. */
static bool is_at_least(const struct sim *s, uint8_t seen, uint8_t other)
{
    return other == 0 ||
           (seen != 0 && compare_keys(&s->writes[seen].key, &s->writes[other].key) >= 0);
}

static void check_cell(struct sim *s, struct actor *a, uint64_t cell)
{
    const uint8_t seen = sim_shown_at(s, a, cell);
    for (size_t i = 1; i <= s->writes_count; i++) {
        const struct sim_write *w = &s->writes[i];
        if (w->acknowledged > 0 && w->acknowledged < a->program.begun &&
            strcmp(w->id, a->look.head.id) == 0 && w->offset <= cell &&
            cell < w->offset + w->length && !is_at_least(s, seen, (uint8_t)i))
            blame(s, "a read does not show what was acknowledged");
    }
    if (s->is_honest && strcmp(a->floor_id, a->look.head.id) == 0 &&
        !is_at_least(s, seen, a->floor[cell]))
        blame(s, "a read does not show what an earlier one has shown");
    if (strcmp(s->shown_id, a->look.head.id) == 0 && is_at_least(s, seen, s->shown[cell]))
        s->shown[cell] = seen;
}

static void end_read(struct sim *s, struct actor *a)
{
    /* The plog is there: else its segments may be gone, which is checked by no one. */
    if (strcmp(a->look.head.id, s->head_id) == 0) {
        if (strcmp(s->shown_id, s->head_id) != 0) {
            memset(s->shown, 0, sizeof s->shown);
            memcpy(s->shown_id, s->head_id, sizeof s->shown_id);
        }
        for (uint64_t cell = 0; cell < CELLS; cell++)
            check_cell(s, a, cell);
    }
    plog_look_done(&a->look);
}

static void end(struct sim *s, struct actor *a, int code)
{
    a->is_running = false;
    const bool is_stale = code == E_PRECONDITION || code == E_NOT_FOUND || code == E_INVALID;
    switch (a->program.role) {
    case SIM_READ:
        if (code == 0)
            end_read(s, a);
        else if (code != E_NOT_FOUND && !(code == E_INVALID && s->flat_id[0] != '\0'))
            blame(s, "a read failed");
        break;
    case SIM_MERGE:
    case SIM_OTHER:
    case SIM_FLATTEN:
        if (code != 0 && !is_stale && !(code == E_PLOG_BUSY && a->program.role == SIM_FLATTEN))
            blame(s, "a merge failed");
        break;
    case SIM_SHARE:
        if (code != 0)
            blame(s, "a writer gives no token");
        s->token = a->token;
        break;
    case SIM_WRITE:
    case SIM_CLOSE:
        if (code == 0 && a->is_open)
            acknowledge(s, a);
        else if (code != 0 && !is_stale)
            blame(s, "a writer failed");
        s->has_failed |= code != 0;
        a->wants_end = a->is_open && a->program.role == SIM_CLOSE &&
                       (a->session.must_merge || !a->session.by_token);
        a->is_open = code == 0 && a->program.role == SIM_WRITE;
        break;
    }
    if (s->has_tokens && a->kind == SIM_WRITE && !a->is_open && !a->wants_end &&
        a->turns < TURNS_LEAST)
        a->turns = 0; /* a writer that opens has to close */
}

/* --- a schedule ------------------------------------------------------------------------------- */

static void watch_head(struct sim *s)
{
    const struct sim_object *o = sim_store_find(&s->store, SIM_OBJECT);
    struct plog_head head = {.id = ""};
    const char *body = o != NULL && o->body.len > 0 ? o->body.data : "";
    if (o != NULL && plog_head_parse(body, o->body.len, &head, NULL) != 0) {
        head.id[0] = '\0';
        if (s->head_id[0] != '\0') {
            memcpy(s->flat_id, s->head_id, sizeof s->flat_id);
            memcpy(s->flat, body, o->body.len);
        }
    }
    if (strcmp(head.id, s->head_id) != 0) {
        memcpy(s->head_id, head.id, sizeof s->head_id);
        s->head_since = s->store.now;
    }
}

/* A writer dies; its call may still take place, but not much later. */
static void crash(struct sim *s, struct actor *a)
{
    if (a->is_running && a->program.is_waiting && !a->program.has_landed && chance(s, 2))
        sim_land(&a->program);
    a->is_dead = true;
    watch_head(s);
}

/* All of the file, which takes its time. */
static bool sends_bytes(const struct actor *a)
{
    const struct sim_call *c = &a->program.calls[a->program.count];
    return a->program.role == SIM_FLATTEN && a->program.is_waiting && !a->program.has_landed &&
           c->kind == SIM_PUT && strcmp(c->name, SIM_OBJECT) == 0;
}

static void step(struct sim *s, struct actor *a)
{
    s->store.now++;
    if (a->kind == SIM_WRITE && chance(s, 150)) {
        crash(s, a);
        return;
    }
    if (!a->is_running) {
        begin(s, a);
    } else if (sends_bytes(a) && !chance(s, BYTES_SLOWER)) {
        return;
    } else if (!a->program.has_landed) {
        sim_land(&a->program);
        watch_head(s);
        return;
    } else {
        sim_deliver(&a->program);
    }
    sim_rerun(&a->program);
    const int code = sim_run(a, s);
    if (!a->program.is_waiting)
        end(s, a, code);
}

static bool can_step(const struct actor *a)
{
    return !a->is_dead && (a->is_running || a->turns > 0);
}

/* For its sharers, before the turns in which it closes; or for the first token. */
static bool must_wait(const struct sim *s, const struct actor *a)
{
    const struct actor *first = &s->actors[0];
    if (a->is_running || a->kind != SIM_WRITE)
        return false;
    if (s->has_tokens && a != first && s->token.id[0] == '\0' && can_step(first))
        return true;
    return a->turns < TURNS_LEAST && waits_for_sharers(s, a);
}

static void run_all(struct sim *s)
{
    for (int i = 0; i < STEPS && s->wrong == NULL; i++) {
        size_t ready[ACTORS], count = 0;
        for (size_t k = 0; k < s->actors_count; k++) {
            if (can_step(&s->actors[k]) && !must_wait(s, &s->actors[k]))
                ready[count++] = k;
        }
        if (count == 0)
            return;
        step(s, &s->actors[ready[rng_below(&s->rng, count)]]);
    }
    if (s->wrong == NULL)
        blame(s, "it does not end");
}

/* One program alone, to its end. */
static int run_alone(struct sim *s, struct actor *a, enum sim_role role)
{
    int code;
    a->kind = role;
    a->turns = 1;
    a->is_dead = a->is_running = a->is_open = a->wants_end = false;
    s->store.now++;
    begin(s, a);
    a->lease_ms = 0;
    while (true) {
        sim_rerun(&a->program);
        code = sim_run(a, s);
        if (!a->program.is_waiting)
            break;
        sim_land(&a->program);
        if (a->program.has_landed)
            sim_deliver(&a->program);
    }
    s->store.now++;
    return code;
}

/* Whenever it was acknowledged. */
static void check_flat(struct sim *s)
{
    for (size_t i = 1; i <= s->writes_count; i++) {
        const struct sim_write *w = &s->writes[i];
        for (uint64_t cell = w->offset; cell < w->offset + w->length; cell++) {
            if (w->acknowledged > 0 && strcmp(w->id, s->flat_id) == 0 &&
                !is_at_least(s, s->flat[cell], (uint8_t)i))
                blame(s, "the flat object does not show what was acknowledged");
        }
    }
}

/* All writers have closed, and no one disturbed them: the last one has merged. */
static void check_closed(struct sim *s)
{
    char prefix[PLOG_NAME_MAX];
    for (size_t i = 0; i < s->actors_count; i++) {
        const struct actor *a = &s->actors[i];
        if (a->kind == SIM_OTHER || a->kind == SIM_FLATTEN || a->is_dead || a->is_open ||
            a->wants_end)
            return;
    }
    plog_name(prefix, s->head_id, "o/");
    if (!s->has_failed && sim_store_any(&s->store, prefix))
        blame(s, "all have closed, and a record is left");
}

/* All are closed or dead: the head has to be the truth. */
static void check_end(struct sim *s)
{
    struct actor *a = &s->actors[0];
    char prefix[PLOG_NAME_MAX];
    if (s->flat_id[0] != '\0')
        check_flat(s);
    if (s->head_id[0] == '\0' || s->wrong != NULL)
        return;
    check_closed(s);
    if (run_alone(s, a, SIM_MERGE) != 0)
        blame(s, "the last merge failed");
    plog_name(prefix, s->head_id, "o/");
    if (sim_store_any(&s->store, prefix))
        blame(s, "a record is left");
    if (run_alone(s, a, SIM_READ) != 0) {
        blame(s, "the last read failed");
        return;
    }
    for (size_t i = 0; i < s->store.count && s->is_honest; i++) {
        const struct sim_object *o = &s->store.objects[i];
        struct plog_segment_name name;
        if (o->is_there && plog_name_parse_segment(o->name, &name) &&
            strstr(o->name, s->head_id) != NULL && !plog_map_has(a->look.map, &name))
            blame(s, "the head does not cover a segment");
    }
    a->program.begun = s->store.now;
    end_read(s, a);
}

/* What is wrong with this schedule, or NULL. */
static const char *run_schedule(uint64_t seed, enum sim_lie lie)
{
    struct sim *s = xcalloc(1, sizeof *s);
    rng_seed(&s->rng, seed);
    rng_seed(&s->store.rng, seed + 1);
    s->store.now = 1;
    s->store.lie = lie;
    s->has_tokens = seed % 2 == 0;
    s->is_honest = chance(s, 2);
    s->actors_count = 3 + rng_below(&s->rng, ACTORS - 2);
    const bool has_other = chance(s, 4);
    const enum sim_role other = has_other && chance(s, 2) ? SIM_FLATTEN : SIM_OTHER;
    for (size_t i = 0; i < s->actors_count; i++) {
        struct actor *a = &s->actors[i];
        const enum sim_role kinds[] = {SIM_WRITE, SIM_READ, SIM_MERGE,
                                       s->has_tokens ? SIM_WRITE : SIM_MERGE};
        a->kind = i < 2 ? kinds[i] : has_other && i == 2 ? other : kinds[rng_below(&s->rng, 4)];
        a->turns = (s->has_tokens ? TURNS_LEAST : 2) + (int)rng_below(&s->rng, TURNS);
        a->turns *= a->kind == SIM_FLATTEN ? 4 : 1;
        a->program.sim = &s->store;
    }
    run_all(s);
    check_end(s);
    const char *wrong = s->wrong;
    for (size_t i = 0; i < s->actors_count; i++) {
        plog_look_done(&s->actors[i].look);
        sim_program_done(&s->actors[i].program);
    }
    sim_store_done(&s->store);
    free(s);
    return wrong;
}

static void test_truth(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++) {
        const char *wrong = run_schedule(seed, LIE_NONE);
        if (wrong != NULL)
            fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
    }
}

static void test_each_step_is_needed(void **state)
{
    (void)state;
    for (enum sim_lie lie = LIE_NONE + 1; lie < LIES; lie++) {
        const char *wrong = NULL;
        /* Merges that overwrite each other are rare, and so is a merge that has read a record just
         * before a sync takes it for new: begin near a schedule that has it. */
        const uint64_t from = lie == LIE_ONE_INDEX ? 3900 : lie == LIE_LOST_RACE ? 2500 : 0;
        uint64_t seed = from;
        while (wrong == NULL && seed < from + LIE_SCHEDULES)
            wrong = run_schedule(++seed, lie);
        print_message("lie %d: seed %llu: %s\n", (int)lie, (unsigned long long)seed,
                      wrong != NULL ? wrong : "it is not found");
        assert_non_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_each_step_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
