/* Has the rest of the mountpaths room for what one of them holds?  By its index, name by name,
 * since each goes where HRW puts it.  What stays on the same file system needs no room. */
#include "target/disk/mountpaths_parts.h"

#include "common/mem.h"
#include "common/parse.h"

enum { FILE_OVERHEAD = 4096, RESERVE_DIVISOR = 64 };

struct room {
    const struct mountpath_set *set;
    const struct mountpath *leaving;
    struct hrw_node nodes[MOUNTPATHS_MAX];
    size_t members[MOUNTPATHS_MAX];
    size_t count;
    uint64_t need[MOUNTPATHS_MAX]; /* by node */
};

static void room_add(struct room *r, uint64_t bucket_id, const char *name, uint64_t size)
{
    size_t best = hrw_best(hrw_key(bucket_id, name, strlen(name)), r->nodes, r->count);
    const struct mountpath *to = best != SIZE_MAX ? r->set->each[r->members[best]] : NULL;
    if (to != NULL && to->device != r->leaving->device)
        r->need[best] += size + FILE_OVERHEAD;
}

static int room_walk_bucket(struct room *r, struct index_cursor *c, uint64_t bucket_id,
                            struct error *err)
{
    int found = index_cursor_seek(c, bucket_id, "", false, err);
    for (; found == 1; found = index_cursor_next(c, err))
        room_add(r, bucket_id, index_cursor_name(c), index_cursor_record(c)->size);
    return found;
}

static int room_walk(struct room *r, struct error *err)
{
    struct index *x = r->leaving->index;
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    int code = index_check(x, err);
    if (code == 0)
        code = index_cursor_open(x, &c, err);
    uint64_t id = 0;
    int found = 0;
    while (code == 0 && (found = index_next_bucket(x, id, &id, err)) == 1)
        code = room_walk_bucket(r, c, id, err);
    return code == 0 && found < 0 ? found : code;
}

static int room_check(const struct room *r, size_t i, struct error *err)
{
    const struct mountpath *to = r->set->each[r->members[i]];
    uint64_t total, available;
    char need[16], left[16];
    if (to == NULL || r->need[i] == 0)
        return 0;
    int code = mountpath_capacity(to, &total, &available, err);
    if (code != 0 || r->need[i] + total / RESERVE_DIVISOR <= available)
        return code;
    return error_set(err, E_NO_SPACE,
                     "%s of '%s' belong on '%s', which has %s left: attach a disk, or delete "
                     "objects; if a disk was just attached, wait until its resilver has finished",
                     format_size(r->need[i], need), r->leaving->path, to->path,
                     format_size(available, left));
}

int mountpaths_check_room(const struct mountpath_set *set, size_t leaving, struct error *err)
{
    struct room *r = xcalloc(1, sizeof *r);
    r->set = set;
    r->leaving = set->each[leaving];
    for (size_t i = 0; i < set->roster->count; i++) {
        const struct roster_member *m = &set->roster->members[i];
        if (i == leaving || m->leaving)
            continue;
        r->members[r->count] = i;
        r->nodes[r->count++] = (struct hrw_node){.seed = hrw_seed(m->id), .weight = m->weight};
    }
    int code = room_walk(r, err);
    for (size_t i = 0; i < r->count && code == 0; i++)
        code = room_check(r, i, err);
    free(r);
    return code;
}
