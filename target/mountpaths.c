#include "target/mountpaths.h"

#include <assert.h>

#include "common/log.h"
#include "common/mem.h"
#include "hrw/hrw.h"
#include "io/pool.h"
#include "target/reindex.h"

struct mountpaths {
    size_t count;
    struct mountpath *all[MOUNTPATHS_MAX];
    struct hrw_node nodes[MOUNTPATHS_MAX];
    bool settled;
};

enum { HRW_WEIGHT = 1024 };

size_t mountpaths_count(const struct mountpaths *m)
{
    return m->count;
}

struct mountpath *mountpaths_at(const struct mountpaths *m, size_t i)
{
    assert(i < m->count);
    return m->all[i];
}

struct mountpath *mountpaths_pick(const struct mountpaths *m, uint64_t bucket_id, const char *name)
{
    uint64_t key = hrw_key(bucket_id, name, strlen(name));
    return m->all[hrw_best(key, m->nodes, m->count)];
}

bool mountpaths_settled(const struct mountpaths *m)
{
    return m->settled;
}

const char *mountpaths_cluster(const struct mountpaths *m)
{
    return m->all[0]->format->cluster;
}

int mountpaths_set_cluster(struct mountpaths *m, const char *cluster_id, struct error *err)
{
    for (size_t i = 0; i < m->count; i++) {
        format_set_cluster(m->all[i]->format, cluster_id);
        int code = mountpath_save_format(m->all[i], err);
        if (code != 0)
            return code;
    }
    return 0;
}

static bool device_counted(const struct mountpaths *m, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (m->all[k]->device == m->all[i]->device)
            return true;
    }
    return false;
}

int mountpaths_capacity(const struct mountpaths *m, uint64_t *total_bytes,
                        uint64_t *available_bytes, struct error *err)
{
    *total_bytes = *available_bytes = 0;
    for (size_t i = 0; i < m->count; i++) {
        uint64_t total, available;
        if (device_counted(m, i))
            continue;
        int code = mountpath_capacity(m->all[i], &total, &available, err);
        if (code != 0)
            return code;
        *total_bytes += total;
        *available_bytes += available;
    }
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int open_one(struct mountpaths *m, const struct mountpaths_config *config, const char *path,
                    struct error *err)
{
    if (m->count == MOUNTPATHS_MAX)
        return error_set(err, E_INVALID, "more than %d mountpaths", MOUNTPATHS_MAX);
    struct mountpath *mp;
    int code = mountpath_open(path, config->target_id, config->moved_ok, &mp, err);
    if (code != 0)
        return code;
    m->nodes[m->count] =
        (struct hrw_node){.seed = hrw_seed(mountpath_id(mp)), .weight = HRW_WEIGHT};
    m->all[m->count++] = mp;
    return 0;
}

static int open_list(struct mountpaths *m, const struct mountpaths_config *config,
                     struct error *err)
{
    _cleanup_free_ char *list = xstrdup(config->list);
    char *rest = list;
    for (char *path; (path = strsep(&rest, ",")) != NULL;) {
        if (*path == '\0')
            continue;
        int code = open_one(m, config, path, err);
        if (code != 0)
            return code;
    }
    return m->count > 0 ? 0 : error_set(err, E_INVALID, "no mountpath is given");
}

/* Checks that they belong together and writes down on each what the set is now. */
static int join_set(struct mountpaths *m, const struct mountpaths_config *config, struct error *err)
{
    struct format *formats[MOUNTPATHS_MAX];
    bool has_objects[MOUNTPATHS_MAX];
    for (size_t i = 0; i < m->count; i++) {
        _cleanup_free_ uint64_t *ids = NULL;
        size_t buckets;
        int code = mountpath_buckets(m->all[i], &ids, &buckets, err);
        if (code != 0)
            return code;
        formats[i] = m->all[i]->format;
        has_objects[i] = buckets > 0;
    }
    const struct format *const *all = (const struct format *const *)formats;
    const char *cluster;
    int code = format_check_together(all, m->count, config->lost_ok, &cluster, err);
    if (code != 0)
        return code;
    m->settled = format_settled(all, has_objects, m->count);
    _cleanup_free_ char *cluster_id = xstrdup(cluster); /* it points into one of the formats */
    format_set_all(formats, m->count, m->settled);
    return mountpaths_set_cluster(m, cluster_id, err);
}

struct start {
    struct mountpaths *m;
    const struct mountpaths_config *config;
};

static int start_index(struct mountpath *mp, const struct mountpaths_config *config,
                       struct error *err)
{
    const char *fresh;
    _cleanup_free_ char *dir = xprintf("%s/.dfc/index", mp->path);
    int code = index_open(dir, config->index_map_size, config->reindex, &mp->index, &fresh, err);
    if (code != 0 || fresh == NULL)
        return code;
    struct reindex_report report;
    code = reindex(mp, &report, err);
    if (code == E_NO_SPACE) { /* objects can be read all the same; lists say what is wrong */
        log_error("index not rebuilt", lstr("mountpath", mp->path), lerr(err));
        index_set_stale(mp->index, err);
        return 0;
    }
    if (code == 0)
        log_info("index rebuilt", lstr("mountpath", mp->path), lstr("why", fresh),
                 lu64("objects", report.objects), lu64("lost", report.lost),
                 lu64("unreadable", report.unreadable), lu64("ms", report.ms));
    return code;
}

static int start_disk(struct mountpath *mp, const struct mountpaths_config *config,
                      struct error *err)
{
    return config->plain_io ? disk_open_plain("disk", config->disk_depth, &mp->disk, err)
                            : disk_open("disk", config->disk_depth, &mp->disk, err);
}

static int start_one(void *ctx, size_t i, struct error *err)
{
    const struct start *s = ctx;
    struct mountpath *mp = s->m->all[i];
    int code = start_index(mp, s->config, err);
    if (code == 0)
        code = start_disk(mp, s->config, err);
    return code == 0 ? 0 : error_recode(err, E_MOUNTPATH, "mountpath '%s'", mp->path);
}

int mountpaths_open(const struct mountpaths_config *config, struct mountpaths **out,
                    struct error *err)
{
    _cleanup_(mountpaths_closep)
    struct mountpaths *m = xcalloc(1, sizeof *m);
    int code = open_list(m, config, err);
    if (code == 0)
        code = join_set(m, config, err);
    struct start start = {.m = m, .config = config};
    if (code == 0)
        code = parallel_for("start", (unsigned)m->count, m->count, start_one, &start, err);
    if (code == 0)
        *out = steal(m);
    return code;
}

void mountpaths_close(struct mountpaths *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->count; i++)
        mountpath_close(m->all[i]);
    free(m);
}
