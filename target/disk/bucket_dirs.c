#include "target/disk/bucket_dirs.h"

#include <pthread.h>

#include "common/id_rows.h"
#include "common/mem.h"
#include "target/format/object_path.h"

enum { WORD_BITS = 64 };

struct entry {
    uint64_t bucket_id;
    uint64_t dirs[OBJECT_FANS / WORD_BITS]; /* a bit for each */
};

struct bucket_dirs {
    pthread_rwlock_t lock;
    struct entry *entries; /* by bucket_id */
    size_t count;
};

struct bucket_dirs *bucket_dirs_new(void)
{
    struct bucket_dirs *s = xcalloc(1, sizeof *s);
    pthread_rwlock_init(&s->lock, NULL);
    return s;
}

void bucket_dirs_free(struct bucket_dirs *s)
{
    if (s == NULL)
        return;
    pthread_rwlock_destroy(&s->lock);
    free(s->entries);
    free(s);
}

/* NULL where there is none. */
static struct entry *find(const struct bucket_dirs *s, uint64_t bucket_id)
{
    bool found;
    size_t at = id_rows_place(s->entries, s->count, sizeof *s->entries, bucket_id, &found);
    return found ? &s->entries[at] : NULL;
}

static uint64_t bit_of(unsigned dir)
{
    return UINT64_C(1) << dir % WORD_BITS;
}

bool bucket_dirs_has(struct bucket_dirs *s, uint64_t bucket_id, unsigned dir)
{
    pthread_rwlock_rdlock(&s->lock);
    const struct entry *e = find(s, bucket_id);
    bool has = e != NULL && (e->dirs[dir / WORD_BITS] & bit_of(dir)) != 0;
    pthread_rwlock_unlock(&s->lock);
    return has;
}

bool bucket_dirs_has_bucket(struct bucket_dirs *s, uint64_t bucket_id)
{
    pthread_rwlock_rdlock(&s->lock);
    bool has = find(s, bucket_id) != NULL;
    pthread_rwlock_unlock(&s->lock);
    return has;
}

static struct entry *make(struct bucket_dirs *s, uint64_t bucket_id)
{
    bool found;
    size_t at = id_rows_place(s->entries, s->count, sizeof *s->entries, bucket_id, &found);
    if (!found)
        s->entries = id_rows_insert(s->entries, &s->count, sizeof *s->entries, at, bucket_id);
    return &s->entries[at];
}

void bucket_dirs_add(struct bucket_dirs *s, uint64_t bucket_id, unsigned dir)
{
    pthread_rwlock_wrlock(&s->lock);
    struct entry *e = make(s, bucket_id);
    e->dirs[dir / WORD_BITS] |= bit_of(dir);
    pthread_rwlock_unlock(&s->lock);
}

void bucket_dirs_forget(struct bucket_dirs *s, uint64_t bucket_id, unsigned dir)
{
    pthread_rwlock_wrlock(&s->lock);
    struct entry *e = find(s, bucket_id);
    if (e != NULL)
        e->dirs[dir / WORD_BITS] &= ~bit_of(dir);
    pthread_rwlock_unlock(&s->lock);
}

void bucket_dirs_remove(struct bucket_dirs *s, uint64_t bucket_id)
{
    pthread_rwlock_wrlock(&s->lock);
    struct entry *e = find(s, bucket_id);
    if (e != NULL) {
        size_t at = (size_t)(e - s->entries);
        s->count--;
        memmove(e, e + 1, (s->count - at) * sizeof *e);
    }
    pthread_rwlock_unlock(&s->lock);
}
