#include "target/format.h"

#include "common/jsonx.h"
#include "common/mem.h"

struct format *format_new(const char *target, const char *mountpath, const char *path)
{
    struct format *f = xcalloc(1, sizeof *f);
    f->cluster = xstrdup("");
    f->target = xstrdup(target);
    f->mountpath = xstrdup(mountpath);
    f->path = xstrdup(path);
    f->settled = true;
    return f;
}

static void set_clear(struct format *f)
{
    for (size_t i = 0; i < f->set_count; i++) {
        free(f->set[i].id);
        free(f->set[i].path);
    }
    free(f->set);
    f->set = NULL;
    f->set_count = 0;
}

void format_free(struct format *f)
{
    if (f == NULL)
        return;
    set_clear(f);
    free(f->cluster);
    free(f->target);
    free(f->mountpath);
    free(f->path);
    free(f);
}

json_t *format_to_json(const struct format *f)
{
    json_t *set = json_array();
    for (size_t i = 0; i < f->set_count; i++)
        json_array_append_new(set,
                              json_pack("{ss ss}", "id", f->set[i].id, "path", f->set[i].path));
    return json_pack("{si ss ss ss ss so sb}", "format", FORMAT_VERSION, "cluster", f->cluster,
                     "target", f->target, "mountpath", f->mountpath, "path", f->path, "set", set,
                     "settled", f->settled);
}

static void set_add(struct format *f, const char *id, const char *path)
{
    f->set = xrealloc(f->set, (f->set_count + 1) * sizeof *f->set);
    f->set[f->set_count++] = (struct format_member){.id = xstrdup(id), .path = xstrdup(path)};
}

static int set_from_json(json_t *doc, struct format *f, struct error *err)
{
    json_t *set = NULL, *member;
    int code = json_get_array(doc, "", "set", &set, err);
    size_t i;
    json_array_foreach(set, i, member)
    {
        const char *id, *path;
        if (code == 0)
            code = json_need_str(member, "set", "id", &id, err);
        if (code == 0)
            code = json_need_str(member, "set", "path", &path, err);
        if (code == 0)
            set_add(f, id, path);
    }
    return code;
}

int format_from_json(json_t *doc, struct format **out, struct error *err)
{
    uint64_t version;
    const char *cluster, *target, *mountpath, *path;
    int code = json_need_u64(doc, "", "format", &version, err);
    if (code != 0)
        return code;
    if (version != FORMAT_VERSION)
        return error_set(err, E_UNSUPPORTED, "its format is %llu, this release knows %d",
                         (unsigned long long)version, FORMAT_VERSION);
    if ((code = json_need_str(doc, "", "cluster", &cluster, err)) != 0 ||
        (code = json_need_str(doc, "", "target", &target, err)) != 0 ||
        (code = json_need_str(doc, "", "mountpath", &mountpath, err)) != 0 ||
        (code = json_need_str(doc, "", "path", &path, err)) != 0)
        return code;
    _cleanup_(format_freep)
    struct format *f = format_new(target, mountpath, path);
    format_set_cluster(f, cluster);
    if ((code = json_get_bool(doc, "", "settled", &f->settled, err)) != 0 ||
        (code = set_from_json(doc, f, err)) != 0)
        return code;
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

static int check_none_lost(const struct format *const *all, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < all[i]->set_count; k++) {
            const struct format_member *m = &all[i]->set[k];
            if (find(all, n, m->id) == NULL)
                return error_set(err, E_MOUNTPATH,
                                 "mountpath '%s' is missing: without it its objects would seem "
                                 "not to exist; where it is lost for good, start once with "
                                 "--mountpath-lost-ok=true",
                                 m->path);
        }
    }
    return 0;
}

int format_check_together(const struct format *const *all, size_t n, bool lost_ok,
                          const char **cluster, struct error *err)
{
    int code = check_unique(all, n, err);
    if (code == 0)
        code = check_cluster(all, n, cluster, err);
    if (code == 0 && !lost_ok)
        code = check_none_lost(all, n, err);
    return code;
}

static bool set_has(const struct format *f, const char *id)
{
    for (size_t i = 0; i < f->set_count; i++) {
        if (strcmp(f->set[i].id, id) == 0)
            return true;
    }
    return false;
}

bool format_settled(const struct format *const *all, const bool *has_objects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!has_objects[i])
            continue;
        if (!all[i]->settled)
            return false;
        for (size_t k = 0; k < n; k++) {
            if (!set_has(all[i], all[k]->mountpath))
                return false;
        }
    }
    return true;
}

void format_set_all(struct format *const *all, size_t n, bool settled)
{
    for (size_t i = 0; i < n; i++) {
        set_clear(all[i]);
        all[i]->settled = settled;
        for (size_t k = 0; k < n; k++)
            set_add(all[i], all[k]->mountpath, all[k]->path);
    }
}

void format_set_cluster(struct format *f, const char *cluster)
{
    free(f->cluster);
    f->cluster = xstrdup(cluster);
}
