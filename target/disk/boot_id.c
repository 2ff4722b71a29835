#include "target/disk/boot_id.h"

#include <errno.h>
#include <unistd.h>

#include "cluster/documents/state.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"

enum { FILE_MODE = 0640, FORMAT = 1, FILE_MAX = 4096, BOOT_SIZE = 16 };

static char *entry_path(const struct mountpath *mp)
{
    return xprintf("%s/.dfc/docs/entry.json", mp->path);
}

static int read_down(const struct mountpath *mp, char boot[static BOOT_SIZE], struct error *err)
{
    _cleanup_free_ char *path = entry_path(mp);
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    const char *found;
    int code = file_read_all(path, FILE_MAX, &text, err);
    if (code == 0)
        code = json_parse(buf_str(&text), text.len, &doc, err);
    if (code == 0)
        code = json_need_str(doc, "", "boot", &found, err);
    if (code != 0)
        return code;
    if (node_id_check(found, NULL) != 0 || strlen(found) >= BOOT_SIZE)
        return error_set(err, E_JSON, "'%s' has no boot id", path);
    snprintf(boot, BOOT_SIZE, "%s", found);
    return 0;
}

static void write_down(struct mountpath *mp, const char *boot)
{
    _cleanup_json_ json_t *doc = json_pack("{si ss}", "format", FORMAT, "boot", boot);
    _cleanup_free_ char *text = json_text(doc);
    _cleanup_free_ char *path = entry_path(mp);
    struct error err = ERROR_INIT;
    if (file_replace(path, text, strlen(text), FILE_MODE, &err) == 0)
        return;
    mountpath_failed(mp, err.code);
    log_warn("entry not written down", lstr("mountpath", mp->path), lerr(&err));
}

void boot_id_of(struct mountpaths *m, char boot[static BOOT_SIZE])
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        struct error err = ERROR_INIT;
        int code = read_down(set->all[i], boot, &err);
        if (code == 0)
            break;
        if (code != E_NOT_FOUND)
            log_warn("entry not readable", lerr(&err));
    }
    for (size_t i = 0; i < set->count; i++)
        write_down(set->all[i], boot);
}

void boot_id_forget(struct mountpaths *m)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        _cleanup_free_ char *path = entry_path(set->all[i]);
        if (unlink(path) != 0 && errno != ENOENT) /* one that stays is not looked at again */
            log_warn("entry not removed", lstr("path", path));
    }
}
