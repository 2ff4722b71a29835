#include "target/disk/pin_set.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/disk/mountpath.h"

enum { DIR_MODE = 0750, FIRST_SLOTS = 1024 };

#define MIXED UINT64_MAX

/* 16 bytes an object.  Two objects of one key, or two versions of one stamp, are not told apart: a
 * reader finds another size or checksum then. */
struct pin {
    uint64_t key;   /* of the object's path; 0: the slot is free */
    uint64_t stamp; /* of the version; 0: its file has had its link */
};

struct pin_set {
    struct pin_sets *all;
    uint64_t bucket_id;
    char *job_id;
    pthread_mutex_t lock; /* of what follows */
    uint64_t series;
    uint64_t generation; /* of the roster when all were added; MIXED: of several */
    struct pin *slots;
    size_t slot_count, count; /* a power of two; of pins */
    /* Of `all`, by its lock. */
    bool listed;
    struct pin_set *next;
};

struct pin_sets {
    pthread_rwlock_t lock; /* taken below the locks of names, above those of sets */
    struct pin_set *first;
    atomic_uint count; /* of those that are listed */
};

struct pin_sets *pin_sets_new(void)
{
    struct pin_sets *all = xcalloc(1, sizeof *all);
    pthread_rwlock_init(&all->lock, NULL);
    return all;
}

void pin_sets_free(struct pin_sets *all)
{
    if (all == NULL)
        return;
    assert(all->first == NULL);
    pthread_rwlock_destroy(&all->lock);
    free(all);
}

bool pin_sets_idle(const struct pin_sets *all)
{
    return atomic_load(&all->count) == 0;
}

/* --- links ------------------------------------------------------------------------------------ */

/* The path is "7/3f/3f09…". */
void pin_link_name(uint64_t series, const struct object_path *path, char out[static PIN_LINK_NAME])
{
    snprintf(out, PIN_LINK_NAME, "in-%016llx-%s", (unsigned long long)series,
             path->text + path->dir_len + 1);
}

static int make_link(const struct mountpath *mp, const struct object_path *file, const char *path)
{
    return linkat(mp->obj_fd, file->text, AT_FDCWD, path, 0) == 0 ? 0 : errno;
}

/* Makes way: the directory is nearly always there, and nothing of that name. */
static int link_prepare(int errnum, const char *dir, const char *path, struct error *err)
{
    if (errnum == ENOENT)
        return file_mkdirs(dir, DIR_MODE, err);
    if (errnum != EEXIST || unlink(path) == 0 || errno == ENOENT)
        return 0;
    return error_errno(err, errno, "remove '%s'", path);
}

int pin_link(struct mountpath *mp, const struct object_path *file, const char *job_id,
             const char *link_name, char **path, struct error *err)
{
    _cleanup_free_ char *dir = xprintf("%s/.dfc/jobs/%s", mp->path, job_id);
    _cleanup_free_ char *link = xprintf("%s/%s", dir, link_name);
    int errnum = make_link(mp, file, link);
    if (errnum == ENOENT || errnum == EEXIST) {
        int code = link_prepare(errnum, dir, link, err);
        if (code != 0)
            return code;
        errnum = make_link(mp, file, link);
    }
    if (errnum == ENOENT)
        return error_set(err, E_OBJECT_NOT_FOUND, "'%s/.dfc/obj/%s' does not exist", mp->path,
                         file->text);
    if (errnum != 0)
        return mountpath_failed(mp, error_errno(err, errnum, "link '%s'", link));
    if (path != NULL)
        *path = steal(link);
    return 0;
}

/* --- one set ---------------------------------------------------------------------------------- */

struct pin_set *pin_set_new(struct pin_sets *all, uint64_t bucket_id, const char *job_id)
{
    struct pin_set *set = xcalloc(1, sizeof *set);
    *set = (struct pin_set){.all = all, .bucket_id = bucket_id, .job_id = xstrdup(job_id)};
    pthread_mutex_init(&set->lock, NULL);
    return set;
}

void pin_set_free(struct pin_set *set)
{
    if (set == NULL)
        return;
    pin_set_end(set);
    pthread_mutex_destroy(&set->lock);
    free(set->slots);
    free(set->job_id);
    free(set);
}

static void list_set(struct pin_set *set)
{
    struct pin_sets *all = set->all;
    pthread_rwlock_wrlock(&all->lock);
    if (!set->listed) {
        set->next = all->first;
        all->first = set;
        set->listed = true;
        atomic_fetch_add(&all->count, 1);
    }
    pthread_rwlock_unlock(&all->lock);
}

static void forget_all(struct pin_set *set, uint64_t series)
{
    pthread_mutex_lock(&set->lock);
    set->series = series;
    free(steal(set->slots));
    set->slot_count = set->count = 0;
    pthread_mutex_unlock(&set->lock);
}

void pin_set_begin(struct pin_set *set, uint64_t series)
{
    forget_all(set, series);
    list_set(set);
}

void pin_set_end(struct pin_set *set)
{
    struct pin_sets *all = set->all;
    pthread_rwlock_wrlock(&all->lock);
    if (set->listed) {
        struct pin_set **at = &all->first;
        while (*at != set)
            at = &(*at)->next;
        *at = set->next;
        set->listed = false;
        atomic_fetch_sub(&all->count, 1);
    }
    pthread_rwlock_unlock(&all->lock);
    forget_all(set, 0);
}

static uint64_t key_of(const struct object_path *path)
{
    uint64_t key = XXH3_64bits(path->text, strlen(path->text));
    return key != 0 ? key : 1;
}

static uint64_t stamp_of(const struct version *v)
{
    const uint64_t numbers[] = {v->term, v->map, v->counter};
    uint64_t stamp = XXH3_64bits(numbers, sizeof numbers);
    return stamp != 0 ? stamp : 1;
}

/* The pin, or the free slot where it belongs.  There is a free one. */
static struct pin *slot_of(struct pin *slots, size_t slot_count, uint64_t key)
{
    size_t at = (size_t)key & (slot_count - 1);
    while (slots[at].key != 0 && slots[at].key != key)
        at = (at + 1) & (slot_count - 1);
    return &slots[at];
}

static void grow(struct pin_set *set)
{
    size_t count = set->slot_count > 0 ? 2 * set->slot_count : FIRST_SLOTS;
    struct pin *slots = xcalloc(count, sizeof *slots);
    for (size_t i = 0; i < set->slot_count; i++) {
        if (set->slots[i].key != 0)
            *slot_of(slots, count, set->slots[i].key) = set->slots[i];
    }
    free(set->slots);
    set->slots = slots;
    set->slot_count = count;
}

void pin_set_add(struct pin_set *set, const struct object_path *path, const struct version *version,
                 uint64_t generation)
{
    const uint64_t key = key_of(path);
    pthread_mutex_lock(&set->lock);
    if (set->count == 0)
        set->generation = generation;
    else if (set->generation != generation)
        set->generation = MIXED;
    if (set->count >= set->slot_count / 4 * 3)
        grow(set);
    struct pin *pin = slot_of(set->slots, set->slot_count, key);
    set->count += pin->key == 0;
    *pin = (struct pin){.key = key, .stamp = stamp_of(version)};
    pthread_mutex_unlock(&set->lock);
}

/* With the lock.  NULL: the object is none of the set's. */
static struct pin *find_locked(struct pin_set *set, const struct object_path *path)
{
    if (set->slot_count == 0)
        return NULL;
    struct pin *pin = slot_of(set->slots, set->slot_count, key_of(path));
    return pin->key != 0 ? pin : NULL;
}

bool pin_set_has(struct pin_set *set, const struct object_path *path, const struct version *version)
{
    pthread_mutex_lock(&set->lock);
    const struct pin *pin = find_locked(set, path);
    bool has = pin != NULL && pin->stamp == stamp_of(version);
    pthread_mutex_unlock(&set->lock);
    return has;
}

bool pin_set_trusts(struct pin_set *set, const struct object_path *path, uint64_t generation)
{
    pthread_mutex_lock(&set->lock);
    const struct pin *pin = find_locked(set, path);
    bool trusts = pin != NULL && pin->stamp != 0 && set->generation == generation;
    pthread_mutex_unlock(&set->lock);
    return trusts;
}

/* --- before a file goes ----------------------------------------------------------------------- */

/* From now on the object's own file is not looked at. */
static bool take_pin(struct pin_set *set, const struct object_path *path,
                     const struct version *version, uint64_t *series)
{
    pthread_mutex_lock(&set->lock);
    struct pin *pin = find_locked(set, path);
    bool has = pin != NULL && pin->stamp == stamp_of(version);
    if (has)
        pin->stamp = 0;
    *series = set->series;
    pthread_mutex_unlock(&set->lock);
    return has;
}

static void keep(struct pin_set *set, struct mountpath *mp, const struct object_path *path,
                 const struct version *version)
{
    char link_name[PIN_LINK_NAME];
    uint64_t series;
    struct error err = ERROR_INIT;
    if (!take_pin(set, path, version, &series))
        return;
    pin_link_name(series, path, link_name);
    if (pin_link(mp, path, set->job_id, link_name, NULL, &err) != 0)
        log_warn("pinned version lost", lstr("job", set->job_id), lerr(&err));
}

void pin_sets_keep(struct pin_sets *all, struct mountpath *mp, uint64_t bucket_id,
                   const struct object_path *path, const struct version *version)
{
    if (pin_sets_idle(all))
        return;
    pthread_rwlock_rdlock(&all->lock);
    for (struct pin_set *set = all->first; set != NULL; set = set->next) {
        if (set->bucket_id == bucket_id)
            keep(set, mp, path, version);
    }
    pthread_rwlock_unlock(&all->lock);
}
