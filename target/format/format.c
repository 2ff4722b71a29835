#include "target/format/format.h"

#include "common/jsonx.h"
#include "common/mem.h"

struct format *format_new(const char *target, const char *mountpath, const char *path)
{
    struct format *f = xcalloc(1, sizeof *f);
    f->cluster = xstrdup("");
    f->target = xstrdup(target);
    f->mountpath = xstrdup(mountpath);
    f->path = xstrdup(path);
    f->roster = roster_new();
    return f;
}

void format_free(struct format *f)
{
    if (f == NULL)
        return;
    roster_free(f->roster);
    free(f->cluster);
    free(f->target);
    free(f->mountpath);
    free(f->path);
    free(f);
}

json_t *format_to_json(const struct format *f)
{
    json_t *doc = json_pack("{si ss ss ss ss}", "format", FORMAT_VERSION, "cluster", f->cluster,
                            "target", f->target, "mountpath", f->mountpath, "path", f->path);
    roster_to_json(f->roster, doc);
    return doc;
}

int format_from_json(json_t *doc, struct format **out, struct error *err)
{
    uint64_t version;
    const char *cluster, *target, *mountpath, *path;
    int code = json_need_u64(doc, "", "format", &version, err);
    if (code != 0)
        return code;
    if (version < 1 || version > FORMAT_VERSION)
        return error_set(err, E_UNSUPPORTED, "its format is %llu, this release knows 1 to %d",
                         (unsigned long long)version, FORMAT_VERSION);
    if ((code = json_need_str(doc, "", "cluster", &cluster, err)) != 0 ||
        (code = json_need_str(doc, "", "target", &target, err)) != 0 ||
        (code = json_need_str(doc, "", "mountpath", &mountpath, err)) != 0 ||
        (code = json_need_str(doc, "", "path", &path, err)) != 0)
        return code;
    _cleanup_(format_freep)
    struct format *f = format_new(target, mountpath, path);
    format_set_cluster(f, cluster);
    struct roster *roster;
    if ((code = roster_from_json(doc, &roster, err)) != 0)
        return code;
    roster_free(f->roster);
    f->roster = roster;
    *out = steal(f);
    return 0;
}

int format_check(const struct format *f, const char *target, const char *path, bool moved_ok,
                 struct error *err)
{
    if (strcmp(f->target, target) != 0)
        return error_set(err, E_MOUNTPATH, "'%s' belongs to target '%s', this is '%s'", path,
                         f->target, target);
    if (strcmp(f->path, path) != 0 && !moved_ok)
        return error_set(err, E_MOUNTPATH,
                         "'%s' was made as '%s': a copy must never run beside the original; "
                         "where it was moved, start once with --mountpath-moved-ok=true",
                         path, f->path);
    return 0;
}

static const struct format *find(const struct format *const *all, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(all[i]->mountpath, id) == 0)
            return all[i];
    }
    return NULL;
}

static int check_unique(const struct format *const *all, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct format *other = find(all, i, all[i]->mountpath);
        if (other != NULL)
            return error_set(err, E_MOUNTPATH, "'%s' is a copy of '%s'", all[i]->path, other->path);
    }
    return 0;
}

static int check_cluster(const struct format *const *all, size_t n, const char **cluster,
                         struct error *err)
{
    *cluster = "";
    for (size_t i = 0; i < n; i++) {
        if (*all[i]->cluster == '\0')
            continue;
        if (**cluster != '\0' && strcmp(*cluster, all[i]->cluster) != 0)
            return error_set(err, E_MOUNTPATH,
                             "'%s' belongs to cluster '%s', others belong to '%s'", all[i]->path,
                             all[i]->cluster, *cluster);
        *cluster = all[i]->cluster;
    }
    return 0;
}

int format_check_together(const struct format *const *all, size_t n, const char **cluster,
                          struct error *err)
{
    int code = check_unique(all, n, err);
    return code != 0 ? code : check_cluster(all, n, cluster, err);
}

/* Format 1 was written on one mountpath after the other: a crash in between left some that did not
 * know of the newest yet.  That one is empty, or the set is not settled. */
static void add_unknown(struct roster *r, const struct roster *other)
{
    for (size_t i = 0; i < other->count; i++) {
        const struct roster_member *m = &other->members[i];
        if (roster_find_id(r, m->id) != SIZE_MAX)
            continue;
        r->settled = r->settled && r->count == 0;
        r->anywhere = !r->settled;
        (void)roster_attach(r, m->id, m->path, m->weight, true, m->since_ms, NULL);
    }
    r->generation = 0;
}

struct roster *format_newest_roster(const struct format *const *all, size_t n)
{
    const struct roster *newest = NULL;
    for (size_t i = 0; i < n; i++) {
        if (newest == NULL || all[i]->roster->generation > newest->generation)
            newest = all[i]->roster;
    }
    struct roster *r = newest != NULL ? roster_copy(newest) : roster_new();
    for (size_t i = 0; i < n && r->generation == 0; i++) {
        const struct roster *other = all[i]->roster;
        if (!other->settled)
            r->settled = false;
        r->anywhere = !r->settled;
        add_unknown(r, other);
    }
    return r;
}

void format_set_roster(struct format *f, const struct roster *r)
{
    roster_free(f->roster);
    f->roster = roster_copy(r);
}

void format_set_cluster(struct format *f, const char *cluster)
{
    free(f->cluster);
    f->cluster = xstrdup(cluster);
}
