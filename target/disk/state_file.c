#include "target/disk/state_file.h"

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"

enum { FILE_MODE = 0600 };
static const size_t state_bytes_max = (size_t)1 << 30;

static char *state_file_path(const struct mountpath *mp)
{
    return xprintf("%s/.dfc/docs/state.json", mp->path);
}

size_t state_file_save(struct mountpaths *m, const struct cluster_state *s)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    _cleanup_free_ char *text = json_text(doc);
    size_t saved = 0;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        struct mountpath *mp = set->all[i];
        _cleanup_free_ char *path = state_file_path(mp);
        struct error why = ERROR_INIT;
        if (file_replace(path, text, strlen(text), FILE_MODE, &why) == 0) {
            saved++;
        } else {
            mountpath_failed(mp, why.code);
            log_warn("cluster state not saved", lstr("mountpath", mp->path), lerr(&why));
        }
    }
    return saved;
}

static int load_one(const struct mountpath *mp, struct cluster_state **out, struct error *err)
{
    _cleanup_free_ char *path = state_file_path(mp);
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    file_restrict(path, FILE_MODE);
    int code = file_read_all(path, state_bytes_max, &text, err);
    if (code == 0)
        code = json_parse(text.data, text.len, &doc, err);
    if (code == 0)
        code = state_from_json(doc, out, err);
    return code == 0 ? 0 : error_recode(err, code, "'%s'", path);
}

int state_file_load(struct mountpaths *m, struct cluster_state **out, struct error *err)
{
    *out = NULL;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        struct error why = ERROR_INIT;
        struct cluster_state *s = NULL;
        int code = load_one(set->all[i], &s, &why);
        if (code != 0) {
            if (code != E_NOT_FOUND)
                log_warn("saved cluster state not readable", lerr(&why));
            continue;
        }
        if (*out == NULL || state_compare(s, *out) > 0) {
            state_unref(*out);
            *out = steal(s);
        }
        state_unref(s);
    }
    const char *cluster = mountpaths_cluster(m);
    if (*out == NULL || strcmp((*out)->cluster_id, cluster) == 0)
        return 0;
    int code = error_set(err, E_MOUNTPATH,
                         "the saved state is that of cluster '%s', the mountpaths belong to '%s'",
                         (*out)->cluster_id, cluster);
    state_unref(*out);
    *out = NULL;
    return code;
}
