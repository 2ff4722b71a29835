/* Writers, readers and merges of one plog, whose calls interleave in every way: sessions that a
 * merge takes for dead and that write on, writers that crash at any call, calls that are repeated
 * because their reply is lost, heads that are replaced under a writer.  At every step:
 *
 *   - what a sync or close acknowledged before a read began is read, or a write of a greater key
 *   - a phase that began after an acknowledgement has the greater key
 *   - a sync does not acknowledge for a plog whose head was gone before it began
 *
 * and while no live session is taken for dead:
 *
 *   - what one read has shown, later ones show, or a write of a greater key
 *   - in the end the head covers all segments, and there is no record
 *
 * Then the same with a store that lies: it does what programs without one of their steps would do.
 * Each lie has to be found. */
#include "plog/merge.h"
#include "plog/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"
#include "plog/testing/sim_store.h"

enum {
    CELLS = 6, /* bytes of the file */
    WRITES = 250,
    ACTORS = 6,
    SEGMENTS = 2, /* of one sync */
    TURNS = 8,    /* of an actor */
    STEPS = 20000,
    SCHEDULES = 1000,
    LIE_SCHEDULES = 5000,
};

struct key {
    uint32_t epoch;
    uint64_t writer;
    uint32_t n, position;
};

struct sim_write { /* its number is the byte that it writes */
    char id[PLOG_ID_CHARS + 1];
    uint64_t offset, length, acknowledged; /* time; 0: not yet */
    struct key key;
};

struct planned { /* segments of a sync: numbers of writes */
    size_t count;
    uint8_t first[SEGMENTS + 1];
};

struct actor {
    struct sim_program program;
    enum sim_role
        kind; /* SIM_WRITE, SIM_READ, SIM_MERGE, SIM_OTHER: replaces or removes the head */
    int turns;
    bool is_open, is_running, is_dead, wants_end;
    struct plog_session session, before;
    struct planned plan;
    uint64_t lease_ms;
    struct plog_look look; /* what a read has found */
    uint8_t floor[CELLS];  /* what had been read when the read began */
    char floor_id[PLOG_ID_CHARS + 1];
};

struct sim {
    struct sim_store store;
    struct rng rng;
    bool is_honest; /* no live session is taken for dead */
    size_t actors_count, writes_count;
    struct actor actors[ACTORS];
    struct sim_write writes[WRITES + 1];
    uint8_t shown[CELLS]; /* by the reads up to now */
    char shown_id[PLOG_ID_CHARS + 1];
    char head_id[PLOG_ID_CHARS + 1]; /* of the stored head, since when */
    uint64_t head_since;
    const char *wrong;
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

/* --- what programs do ------------------------------------------------------------------------- */

/* The planned segments, each begun and stored. */
static int put_segments(struct actor *a, const struct plog_store *st, struct sim *s)
{
    int code = 0;
    for (size_t i = 0; i < a->plan.count && code == 0; i++) {
        struct plog_segment segment = {.end = 0};
        struct plog_segment_name name;
        char text[PLOG_NAME_MAX], etag[PLOG_ETAG_MAX];
        code = plog_session_begin(st, &a->session, &name, NULL);
        for (uint8_t w = a->plan.first[i]; code == 0 && w < a->plan.first[i + 1]; w++) {
            struct sim_write *write = &s->writes[w];
            uint8_t bytes[CELLS];
            memset(bytes, w, sizeof bytes);
            plog_segment_write(&segment, bytes, write->length, write->offset);
            write->key =
                (struct key){name.epoch, name.writer, name.n, (uint32_t)(w - a->plan.first[i])};
        }
        if (code == 0) {
            plog_segment_seal(&segment, &name);
            plog_name_segment(text, a->session.id, &name);
            code = st->put(st->ctx, text, segment.bytes.data, segment.bytes.len, NULL, etag, NULL);
        }
        plog_segment_done(&segment);
    }
    return code;
}

static int run_program(struct actor *a, struct sim *s)
{
    const struct plog_store st = sim_store_of(&a->program);
    const struct plog_open create = {.create = true};
    _cleanup_plog_watch_ struct plog_watch watch = {.count = 0};
    enum plog_merge_result merged;
    a->session = a->before;
    switch (a->program.role) {
    case SIM_READ:
        return plog_look(&st, SIM_OBJECT, &a->look, NULL);
    case SIM_MERGE:
        return plog_merge(&st, SIM_OBJECT, &watch, s->store.now, a->lease_ms, &merged, NULL);
    case SIM_OTHER:
        return a->plan.count == 0 ? plog_head_replace(&st, SIM_OBJECT, NULL)
                                  : plog_unlink(&st, SIM_OBJECT, NULL);
    case SIM_WRITE:
    case SIM_CLOSE:
        break;
    }
    if (!a->is_open)
        return plog_session_open(&st, SIM_OBJECT, &create, &a->session, NULL);
    const int code = put_segments(a, &st, s);
    if (code != 0)
        return code;
    return a->program.role == SIM_WRITE ? plog_session_sync(&st, &a->session, NULL)
                                        : plog_session_close(&st, &a->session, NULL);
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
        role = a->turns <= 1 || chance(s, 3) ? SIM_CLOSE : SIM_WRITE;
        if (role == SIM_WRITE || !chance(s, 3))
            plan_writes(s, a);
    } else if (a->kind == SIM_OTHER) {
        a->plan.count = rng_below(&s->rng, 2);
    }
    a->program.id[0] = '\0';
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

/* The number of the write that the map shows at this byte; 0: none. */
static uint8_t shown_at(struct sim *s, struct actor *a, uint64_t cell)
{
    struct plog_extents e;
    uint8_t byte = 0;
    plog_map_paint(a->look.map, cell, cell + 1, &e);
    if (e.count > 0) {
        char name[PLOG_NAME_MAX];
        plog_name_segment(name, a->look.head.id,
                          &plog_map_segment(a->look.map, e.items[0].segment)->name);
        const struct sim_object *o = sim_store_find(&s->store, name);
        byte = o != NULL ? (uint8_t)o->body.data[e.items[0].physical] : 0;
    }
    plog_extents_done(&e);
    return byte;
}

/* `seen` is the write `other`, or hides it. */
static bool is_at_least(const struct sim *s, uint8_t seen, uint8_t other)
{
    return other == 0 ||
           (seen != 0 && compare_keys(&s->writes[seen].key, &s->writes[other].key) >= 0);
}

static void check_cell(struct sim *s, struct actor *a, uint64_t cell)
{
    const uint8_t seen = shown_at(s, a, cell);
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
        else if (code != E_NOT_FOUND)
            blame(s, "a read failed");
        break;
    case SIM_MERGE:
    case SIM_OTHER:
        if (code != 0 && !is_stale)
            blame(s, "a merge failed");
        break;
    case SIM_WRITE:
    case SIM_CLOSE:
        if (code == 0 && a->is_open)
            acknowledge(s, a);
        else if (code != 0 && !is_stale)
            blame(s, "a writer failed");
        a->wants_end = a->is_open && a->program.role == SIM_CLOSE;
        a->is_open = code == 0 && a->program.role == SIM_WRITE;
        break;
    }
}

/* --- a schedule ------------------------------------------------------------------------------- */

static void watch_head(struct sim *s)
{
    const struct sim_object *o = sim_store_find(&s->store, SIM_OBJECT);
    struct plog_head head = {.id = ""};
    if (o != NULL)
        assert_int_equal(plog_head_parse(o->body.data, o->body.len, &head, NULL), 0);
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

static void step(struct sim *s, struct actor *a)
{
    s->store.now++;
    if (a->kind == SIM_WRITE && chance(s, 150)) {
        crash(s, a);
        return;
    }
    if (!a->is_running) {
        begin(s, a);
    } else if (!a->program.has_landed) {
        sim_land(&a->program);
        watch_head(s);
        return;
    } else {
        sim_deliver(&a->program);
    }
    sim_rerun(&a->program);
    const int code = run_program(a, s);
    if (!a->program.is_waiting)
        end(s, a, code);
}

static bool can_step(const struct actor *a)
{
    return !a->is_dead && (a->is_running || a->turns > 0);
}

static void run_all(struct sim *s)
{
    for (int i = 0; i < STEPS && s->wrong == NULL; i++) {
        size_t ready[ACTORS], count = 0;
        for (size_t k = 0; k < s->actors_count; k++) {
            if (can_step(&s->actors[k]))
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
        code = run_program(a, s);
        if (!a->program.is_waiting)
            break;
        sim_land(&a->program);
        if (a->program.has_landed)
            sim_deliver(&a->program);
    }
    s->store.now++;
    return code;
}

/* All are closed or dead: the head has to be the truth. */
static void check_end(struct sim *s)
{
    struct actor *a = &s->actors[0];
    char prefix[PLOG_NAME_MAX];
    if (s->head_id[0] == '\0' || s->wrong != NULL)
        return;
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
    s->is_honest = chance(s, 2);
    s->actors_count = 3 + rng_below(&s->rng, ACTORS - 2);
    const bool has_other = chance(s, 4);
    for (size_t i = 0; i < s->actors_count; i++) {
        struct actor *a = &s->actors[i];
        const enum sim_role kinds[] = {SIM_WRITE, SIM_READ, SIM_MERGE, SIM_MERGE};
        a->kind = i < 2 ? kinds[i] : has_other && i == 2 ? SIM_OTHER : kinds[rng_below(&s->rng, 4)];
        a->turns = 2 + (int)rng_below(&s->rng, TURNS);
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
        /* Merges that overwrite each other are rare: begin near a schedule that has it. */
        const uint64_t from = lie == LIE_ONE_INDEX ? 3900 : 0;
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
