#include "mount/image/places.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"

struct place {
    uint64_t hash; /* of the name */
    uint64_t record;
};

enum index_state { INDEX_BEING_MADE, INDEX_READY };

struct places_index {
    uint32_t lba; /* of the directory */
    enum index_state state;
    unsigned users;
    uint64_t turn; /* of its last use */
    struct place *places;
    size_t count, room;
    struct places_index *chain;
};

void places_init(struct places *p, const struct iso_reader *reader, size_t limit)
{
    *p = (struct places){.reader = reader, .limit = limit};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->made, NULL);
}

static void index_free(struct places_index *x)
{
    free(x->places);
    free(x);
}

void places_done(struct places *p)
{
    for (size_t i = 0; i < PLACES_SLOTS; i++) {
        for (struct places_index *x = p->slots[i], *next; x != NULL; x = next) {
            next = x->chain;
            index_free(x);
        }
    }
    pthread_cond_destroy(&p->made);
    pthread_mutex_destroy(&p->lock);
}

/* --- the table, with the lock held ------------------------------------------------------------ */

static struct places_index **slot_of(struct places *p, uint32_t lba)
{
    return &p->slots[lba % PLACES_SLOTS];
}

static struct places_index *find_index(struct places *p, uint32_t lba)
{
    struct places_index *x = *slot_of(p, lba);
    while (x != NULL && x->lba != lba)
        x = x->chain;
    return x;
}

static void unlink_index(struct places *p, struct places_index *x)
{
    struct places_index **at = slot_of(p, x->lba);
    while (*at != x)
        at = &(*at)->chain;
    *at = x->chain;
}

static struct places_index *oldest(struct places *p)
{
    struct places_index *found = NULL;
    for (size_t i = 0; i < PLACES_SLOTS; i++) {
        for (struct places_index *x = p->slots[i]; x != NULL; x = x->chain) {
            if (x->users == 0 && (found == NULL || x->turn < found->turn))
                found = x;
        }
    }
    return found;
}

static void make_room(struct places *p)
{
    struct places_index *x;
    while (p->used > p->limit && (x = oldest(p)) != NULL) {
        p->used -= x->count;
        unlink_index(p, x);
        index_free(x);
    }
}

/* --- making ----------------------------------------------------------------------------------- */

static int add(void *context, const struct iso_found *e, struct error *err)
{
    struct places_index *x = context;
    (void)err;
    if (x->count == x->room) {
        x->room = x->room * 2 + 16;
        x->places = xrealloc(x->places, x->room * sizeof *x->places);
    }
    x->places[x->count++] =
        (struct place){.hash = XXH3_64bits(e->name, strlen(e->name)), .record = e->record};
    return 0;
}

static int by_hash(const void *a, const void *b)
{
    const struct place *pa = a, *pb = b;
    return (pa->hash > pb->hash) - (pa->hash < pb->hash);
}

static int make(struct places *p, struct places_index *x, const struct iso_found *directory,
                struct error *err)
{
    int rc = iso_reader_list(p->reader, directory, add, x, err);
    if (rc == 0 && x->count > 0)
        qsort(x->places, x->count, sizeof *x->places, by_hash);
    pthread_mutex_lock(&p->lock);
    x->state = INDEX_READY;
    if (rc != 0) { /* whoever waits tries for itself */
        unlink_index(p, x);
        index_free(x);
    } else {
        p->used += x->count;
        make_room(p);
    }
    pthread_cond_broadcast(&p->made);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

/* With a use, which the caller gives back. */
static int get(struct places *p, const struct iso_found *directory, struct places_index **out,
               struct error *err)
{
    struct places_index *x;
    pthread_mutex_lock(&p->lock);
    while ((x = find_index(p, directory->lba)) != NULL && x->state == INDEX_BEING_MADE)
        pthread_cond_wait(&p->made, &p->lock);
    const bool is_new = x == NULL;
    if (is_new) {
        x = xcalloc(1, sizeof *x);
        x->lba = directory->lba;
        x->chain = *slot_of(p, x->lba);
        *slot_of(p, x->lba) = x;
    }
    x->users++;
    x->turn = ++p->turn;
    pthread_mutex_unlock(&p->lock);
    *out = x;
    return is_new ? make(p, x, directory, err) : 0;
}

/* --- finding ---------------------------------------------------------------------------------- */

static size_t first_of(const struct places_index *x, uint64_t hash)
{
    size_t low = 0, high = x->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x->places[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int look(const struct places *p, const struct places_index *x, const char *name,
                struct iso_found *out, struct error *err)
{
    const uint64_t hash = XXH3_64bits(name, strlen(name));
    for (size_t i = first_of(x, hash); i < x->count && x->places[i].hash == hash; i++) {
        int rc = iso_reader_record(p->reader, x->places[i].record, out, err);
        if (rc != 0 || strcmp(out->name, name) == 0)
            return rc;
    }
    return error_set(err, E_NOT_FOUND, "the directory has no entry '%.100s'", name);
}

int places_find(struct places *p, const struct iso_found *directory, const char *name,
                struct iso_found *out, struct error *err)
{
    struct places_index *x;
    int rc = get(p, directory, &x, err);
    if (rc != 0)
        return rc;
    rc = look(p, x, name, out, err);
    pthread_mutex_lock(&p->lock);
    x->users--;
    make_room(p);
    pthread_mutex_unlock(&p->lock);
    return rc;
}
