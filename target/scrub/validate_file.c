#include "target/scrub/validate_file.h"

#include <errno.h>
#include <sys/xattr.h>

#include "common/mem.h"
#include "common/path.h"
#include "target/scrub/validate_mend.h"
#include "target/store/quarantine.h"

static enum look wrong(struct file *f, enum validate_finding what)
{
    f->what = what;
    return LOOK_WRONG;
}

static enum look read_attribute(const char *path, struct file *f)
{
    int there = stat(path, &f->st);
    ssize_t len = there == 0 ? getxattr(path, ATTR_XATTR, f->raw, sizeof f->raw) : -1;
    if (len < 0 && errno == ENOENT)
        return LOOK_GONE;
    if (len < 0) {
        bool lost = errno == ENODATA || errno == ERANGE;
        error_errno(&f->why, errno, "attribute");
        return wrong(f, lost ? VALIDATE_attribute_damaged : VALIDATE_unreadable);
    }
    int code = attr_decode(f->raw, (size_t)len, &f->attr, &f->why);
    if (code != 0)
        return wrong(f, code == E_CORRUPT ? VALIDATE_attribute_damaged : VALIDATE_unknown_format);
    f->read = true;
    return LOOK_WELL;
}

/* By HRW over the mountpaths as they are now; while those are not settled it may lie anywhere. */
static bool is_elsewhere(const struct walk *w, const char *name)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(object_store_mountpaths(w->config->store));
    struct mountpath *mp;
    return set->settled && mountpath_set_pick(set, w->bucket_id, name, &mp, NULL) == 0 &&
           mp != w->mp;
}

static enum look check_place(const struct walk *w, const char *path, struct file *f)
{
    struct object_path place;
    object_path_set(&place, w->bucket_id, f->attr.name);
    if (!path_ends_with(path, place.text))
        error_set(&f->why, E_CORRUPT, "'%s' is not the place of that name", path);
    else if ((f->elsewhere = is_elsewhere(w, f->attr.name)))
        error_set(&f->why, E_CORRUPT, "the name belongs to another mountpath");
    else
        return LOOK_WELL;
    return wrong(f, VALIDATE_misplaced);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Records of earlier builds have no MD5: only lists lack it. */
static bool same_md5(const struct index_record *has, const struct index_record *wants)
{
    return has->md5.type == CHECKSUM_NONE ||
           (checksum_equal(&has->md5, &wants->md5) && has->md5_parts == wants->md5_parts);
}

static bool same_record(const struct index_record *has, const struct index_record *wants)
{
    return same_md5(has, wants) && has->size == wants->size && has->tombstone == wants->tombstone &&
           has->pending == wants->pending && has->modified_ms == wants->modified_ms &&
           version_compare(&has->version, &wants->version) == 0 &&
           checksum_equal(&has->checksum, &wants->checksum) && same_text(has->job, wants->job);
}

/* An index that cannot be asked is told of once, for all of it. */
static enum look check_index(const struct walk *w, struct file *f)
{
    struct index_record has, wants = index_record_of(&f->attr);
    char job[ATTR_JOB_MAX + 1];
    if (index_check(w->mp->index, NULL) != 0)
        return LOOK_WELL;
    int there = index_find(w->mp->index, w->bucket_id, f->attr.name, &has, job, &f->why);
    if (there < 0)
        return LOOK_WELL; /* it is stale by now */
    if (there == 0)
        return wrong(f, VALIDATE_not_indexed);
    if (same_record(&has, &wants))
        return LOOK_WELL;
    char in_index[VERSION_TEXT_MAX], in_file[VERSION_TEXT_MAX];
    error_set(&f->why, E_CORRUPT, "size %llu, version %s%s in the index; %llu, %s%s in the file",
              (unsigned long long)has.size, version_format(&has.version, in_index),
              has.tombstone ? " (deleted)" : "", (unsigned long long)wants.size,
              version_format(&wants.version, in_file), wants.tombstone ? " (deleted)" : "");
    return wrong(f, VALIDATE_index_differs);
}

static enum look check_size(struct file *f)
{
    if ((uint64_t)f->st.st_size == f->attr.size)
        return LOOK_WELL;
    error_set(&f->why, E_CORRUPT, "%llu bytes, not %llu", (unsigned long long)f->st.st_size,
              (unsigned long long)f->attr.size);
    return wrong(f, VALIDATE_size_differs);
}

static bool is_stub(const char *path)
{
    char job[ATTR_JOB_MAX + 1];
    return quarantine_look(path, job) == QUARANTINE_STUB;
}

/* A stub is no damage that anything more could be done about: the walk of the names tells of it. */
enum look walk_look(const struct walk *w, const char *path, struct file *f)
{
    f->why = ERROR_INIT;
    f->read = f->elsewhere = false;
    enum look look = read_attribute(path, f);
    if (look == LOOK_WELL)
        look = check_place(w, path, f);
    if (look == LOOK_WELL)
        look = check_size(f);
    if (look == LOOK_WELL)
        look = check_index(w, f);
    return look == LOOK_WRONG && is_stub(path) ? LOOK_GONE : look;
}

/* --- once more, and nobody changes it meanwhile ----------------------------------------------- */

void walk_report(const struct walk *w, const char *path, const struct file *f)
{
    const bool misplaced = f->what == VALIDATE_misplaced;
    /* Whose place it lies in, the walk of the names will see. */
    const struct sick s = {.path = path,
                           .name = misplaced ? "" : f->attr.name,
                           .inode = f->st.st_ino,
                           .attr = misplaced ? NULL : &f->attr,
                           .what = f->what,
                           .why = f->why.message};
    walk_found(w, f->what, f->attr.name, f->why.message);
    if (!f->elsewhere) /* nobody is given what lies there */
        walk_mend(w, &s);
}

enum look walk_look_again(const struct walk *w, const char *path, struct file *f)
{
    _cleanup_place_ struct object_place p = {0};
    if (!f->read) /* nothing changes an attribute but with its name */
        return walk_look(w, path, f);
    _cleanup_free_ char *name = xstrdup(f->attr.name);
    if (walk_lock_name(w, &p, name, &f->why) != 0)
        return LOOK_GONE;
    enum look look = walk_look(w, path, f);
    if (look == LOOK_WRONG && f->read && walk_bucket_lives(w))
        walk_report(w, path, f);
    object_unlock(&p);
    return look;
}
