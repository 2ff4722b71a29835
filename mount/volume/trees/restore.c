/* What is in the trash: shown, and back to its place. */
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "mount/volume/trees/place.h"
#include "mount/volume/trees/restamp.h"
#include "mount/volume/trash.h"

/* ENOENT: there is no such hour. */
static int find_hour(struct volume *v, const char *name, uint64_t *hour)
{
    struct volume_inode found;
    int rc = volume_lookup(v, TRASH_INO, name, &found);
    *hour = found.ino;
    return rc;
}

static bool may_have(const struct volume_caller *caller, const struct attr *a)
{
    return caller->uid == 0 || caller->uid == a->uid;
}

int volume_trash_hour(struct volume *v, const char *after, char hour[static META_NAME_MAX + 1])
{
    struct arena *arena = arena_new(1024);
    struct volume_name *names;
    size_t count = 0;
    bool more;
    int rc = volume_readdir(v, TRASH_INO, after, 1, arena, &names, &count, &more);
    if (rc == 0 && count == 0)
        rc = -ENOENT;
    if (rc == 0)
        snprintf(hour, META_NAME_MAX + 1, "%s", names[0].name);
    arena_free(arena);
    return rc;
}

int volume_trash_list(struct volume *v, const char *hour, const char *after, size_t limit,
                      const struct volume_caller *caller, struct arena *arena,
                      struct volume_trash_page *out)
{
    struct volume_name *names;
    size_t count = 0;
    uint64_t directory;
    *out = (struct volume_trash_page){.more = false};
    int rc = find_hour(v, hour, &directory);
    if (rc == 0)
        rc = volume_readdir(v, directory, after, limit, arena, &names, &count, &out->more);
    out->rows = arena_alloc(arena, (count + 1) * sizeof *out->rows);
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (!names[i].known || !may_have(caller, &names[i].attr))
            continue;
        out->rows[out->count++] = (struct volume_trashed){.name = names[i].name,
                                                          .type = names[i].type,
                                                          .length = names[i].attr.length,
                                                          .removed_ns = names[i].attr.ctime_ns};
    }
    if (count > 0 && rc == 0)
        snprintf(out->last, sizeof out->last, "%s", names[count - 1].name);
    return rc;
}

/* DIRECTORY-INODE-NAME.  False: it has no place, as a clone that is not complete. */
static bool parse_name(const char *text, uint64_t ino, uint64_t *directory, const char **name)
{
    char *end;
    *directory = strtoull(text, &end, 10);
    if (end == text || *end != '-')
        return false;
    const char *second = end + 1;
    const uint64_t number = strtoull(second, &end, 10);
    *name = end + 1;
    return end != second && *end == '-' && number == ino && **name != '\0';
}

/* The name of before: what `cut` is the beginning of, in the arena. */
static int whole_name(struct volume *v, uint64_t ino, const char *cut, struct arena *arena,
                      const char **out)
{
    const uint8_t *value;
    size_t size;
    int rc = volume_getxattr(v, ino, TRASH_WHOLE_NAME, arena, &value, &size);
    *out = rc == 0 ? arena_strndup(arena, (const char *)value, size) : cut;
    return rc == -ENODATA ? 0 : rc;
}

enum { TRIES = 5 };

struct back {
    uint64_t hour, ino, quota;
    const char *name; /* in the hour */
    uint64_t place;
    const char *was;
};

/* It counts for the quota of its place before it is there.  A quota that ends or begins meanwhile
 * is looked for again. */
static int move_to_place(struct restamp *to, const struct back *b)
{
    uint64_t has = b->quota;
    int rc = -EXDEV;
    for (unsigned i = 0; i < TRIES && (rc == -EXDEV || rc == -ENODATA); i++) {
        rc = volume_quota_id(to->v, b->place, &to->quota);
        if (rc == 0 && to->quota != has)
            rc = restamp_name(to, b->hour, b->name);
        if (rc != 0)
            continue;
        has = to->quota;
        rc = volume_rename(to->v, b->hour, b->name, b->place, b->was, RENAME_NOREPLACE);
    }
    return rc;
}

/* What cannot come back does not count at all. */
static int move_back(struct volume *v, const struct back *b)
{
    struct restamp to = {.v = v, .limited = true, .beat_ns = volume_now(v)};
    const int rc = move_to_place(&to, b);
    struct restamp undo = {.v = v, .quota = 0, .beat_ns = to.beat_ns};
    if (rc != 0 && to.changed > 0 && restamp_name(&undo, b->hour, b->name) != 0)
        log_warn("what did not come back counts for a quota until the trash is cleaned",
                 lstr("volume", volume_format(v)->name), lstr("name", b->name));
    return rc;
}

int volume_restore(struct volume *v, const char *hour, const char *name,
                   const struct volume_caller *caller)
{
    struct volume_inode found = {0};
    uint64_t directory, place = 0;
    const char *was = NULL;
    struct arena *arena = arena_new(1024);
    int rc = find_hour(v, hour, &directory);
    if (rc == 0)
        rc = volume_lookup(v, directory, name, &found);
    if (rc == 0 && !may_have(caller, &found.attr))
        rc = -EACCES;
    if (rc == 0 && !parse_name(name, found.ino, &place, &was))
        rc = -EINVAL;
    if (rc == 0)
        rc = whole_name(v, found.ino, was, arena, &was);
    if (rc == 0)
        rc = place_check(v, place, was, caller);
    const struct back b = {directory, found.ino, found.attr.quota, name, place, was};
    if (rc == 0)
        rc = move_back(v, &b);
    arena_free(arena);
    return rc;
}
