#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct event {
    uint64_t at;
    uint64_t order;
    int place;
    uint64_t life;
    void (*fire)(struct world *w, void *arg);
    void (*drop)(void *arg);
    void *arg;
};

static const char *const mutant_names[] = {
#define MUTANT(name, caught, what) #name,
#include "tests/sim/mutants.def"
#undef MUTANT
};

const char *mutant_name(enum mutant m)
{
    return mutant_names[m];
}

uint64_t world_draw(struct world *w, uint64_t below)
{
    return rng_below(&w->rng, below);
}

bool world_chance(struct world *w, uint64_t one_in)
{
    return !w->calm && rng_below(&w->rng, one_in) == 0;
}

/* --- events ---------------------------------------------------------------------------------- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void heap_swap(struct world *w, size_t a, size_t b)
{
    struct event *e = w->events[a];
    w->events[a] = w->events[b];
    w->events[b] = e;
}

static void heap_put(struct world *w, struct event *e)
{
    if (w->event_count == w->event_room) {
        w->event_room = w->event_room == 0 ? 256 : 2 * w->event_room;
        w->events = xrealloc(w->events, w->event_room * sizeof w->events[0]);
    }
    size_t at = w->event_count++;
    w->events[at] = e;
    for (; at > 0 && is_before(w->events[at], w->events[(at - 1) / 2]); at = (at - 1) / 2)
        heap_swap(w, at, (at - 1) / 2);
}

static struct event *heap_take(struct world *w)
{
    struct event *first = w->events[0];
    w->events[0] = w->events[--w->event_count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < w->event_count; child++) {
            if (is_before(w->events[child], w->events[least]))
                least = child;
        }
        if (least == at)
            return first;
        heap_swap(w, at, least);
        at = least;
    }
}

void world_after(struct world *w, int place, uint64_t ms, void (*fire)(struct world *w, void *arg),
                 void *arg, void (*drop)(void *arg))
{
    struct event *e = xmalloc(sizeof *e);
    *e = (struct event){.at = w->now + ms,
                        .order = w->event_order++,
                        .place = place,
                        .life = place != NOBODY ? w->places[place].life : 0,
                        .fire = fire,
                        .drop = drop,
                        .arg = arg};
    heap_put(w, e);
}

static void event_drop(struct event *e)
{
    if (e->drop != NULL)
        e->drop(e->arg);
    free(e);
}

static bool is_dead(const struct world *w, const struct event *e)
{
    return e->place != NOBODY && (!w->places[e->place].up || w->places[e->place].life != e->life);
}

/* What comes for a process that is stopped waits until it goes on. */
static bool is_frozen(const struct world *w, const struct event *e)
{
    return e->place != NOBODY && w->places[e->place].thaw_at > w->now;
}

bool world_step(struct world *w)
{
    if (w->failure != NULL || w->event_count == 0)
        return false;
    struct event *e = heap_take(w);
    if (e->at > w->now)
        w->now = e->at;
    w->steps++;
    if (is_dead(w, e)) {
        event_drop(e);
    } else if (is_frozen(w, e)) {
        e->at = w->places[e->place].thaw_at;
        heap_put(w, e);
    } else {
        e->fire(w, e->arg);
        free(e);
    }
    return true;
}

/* --- places ---------------------------------------------------------------------------------- */

uint64_t place_ms(const struct world *w, int place)
{
    int64_t off = (int64_t)w->now * w->places[place].rate_ppm / 1000000;
    return 1000000 + w->now + (uint64_t)off;
}

int64_t place_wall_ms(const struct world *w, int place)
{
    return 1700000000000 + (int64_t)w->now + w->places[place].wall_off_ms;
}

uint64_t place_span(const struct world *w, int place, uint64_t ms)
{
    return ms * 1000000 / (uint64_t)(1000000 + w->places[place].rate_ppm) + 1;
}

int place_of_name(const struct world *w, const char *id)
{
    unsigned number;
    if (sscanf(id, "%*[pt]%u", &number) != 1 || number == 0)
        return NOBODY;
    int place = id[0] == 't' ? target_place(number - 1) : (int)number - 1;
    bool is_it = place < STORE && place_fits(w, place) && strcmp(w->places[place].name, id) == 0;
    return is_it ? place : NOBODY;
}

int place_of_url(const struct world *w, const char *url)
{
    char id[8];
    return sscanf(url, "http://%7[^:]", id) == 1 ? place_of_name(w, id) : NOBODY;
}

void place_url(const struct world *w, int place, char out[static 24])
{
    snprintf(out, 24, "http://%s:1", w->places[place].name);
}

/* --- the trace ------------------------------------------------------------------------------- */

enum { RING = sizeof((struct world *)0)->ring / sizeof(char *) };

static void ring_put(struct world *w, char *line)
{
    if (w->traced)
        puts(line);
    free(w->ring[w->ring_at]);
    w->ring[w->ring_at] = line;
    w->ring_at = (w->ring_at + 1) % RING;
}

void world_note(struct world *w, int place, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ring_put(w, xprintf("%8.3f %-6s %s", (double)w->now / 1000,
                        place == NOBODY ? "-" : w->places[place].name, text));
}

/* The trace so far goes with it. */
void world_fail(struct world *w, const char *fmt, ...)
{
    char text[600];
    va_list args;
    if (w->failure != NULL)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    w->failure = xprintf("at %.3f s: %s", (double)w->now / 1000, text);
}

/* --- beginning and end ----------------------------------------------------------------------- */

void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){.seed = seed};
    rng_seed(&w->rng, seed);
    static char names[STORE][8]; /* the same in each world */
    for (int i = 0; i < STORE; i++) {
        unsigned number = 1 + (is_target(i) ? target_index(i) : (unsigned)i);
        snprintf(names[i], sizeof names[i], "%c%u", is_target(i) ? 't' : 'p', number);
        w->places[i].name = names[i];
    }
    w->places[STORE] = (struct place){.name = "etcd", .up = true};
    w->places[CLIENT] = (struct place){.name = "client", .up = true};
}

void world_done(struct world *w)
{
    while (w->event_count > 0)
        event_drop(heap_take(w));
    free(w->events);
    for (size_t i = 0; i < RING; i++)
        free(w->ring[i]);
    free(w->failure);
}
