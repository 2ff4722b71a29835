#include "proxy/primary/state_file.h"

#include <string.h>

#include "common/backup.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "io/file.h"

#define STATE_FILE_MAX ((size_t)1 << 30)

int state_file_write(const char *path, const struct cluster_state *s, struct error *err)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    _cleanup_free_ char *text = json_text(doc);
    return file_replace(path, text, strlen(text), STATE_FILE_MODE, err);
}

/* Of a backup, too. */
static int document_of(json_t *doc, json_t **state, struct error *err)
{
    *state = doc;
    return backup_is(doc) ? backup_unwrap(doc, state, err) : 0;
}

int state_file_read(const char *path, struct cluster_state **out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    int r = file_read_all(path, STATE_FILE_MAX, &text, err);
    if (r != 0)
        return r;
    json_t *state = NULL;
    if ((r = json_parse(buf_str(&text), text.len, &doc, err)) != 0 ||
        (r = document_of(doc, &state, err)) != 0 || (r = state_from_json(state, out, err)) != 0)
        error_wrap(err, "'%s'", path);
    return r;
}

int state_file_import(const char *path, struct cluster_state **out, struct error *err)
{
    int r = state_file_read(path, out, err);
    if (r == 0)
        log_info("beginning from an imported state", lstr("file", path), lu64("term", (*out)->term),
                 lu64("version", (*out)->version));
    return r;
}

int state_file_refuse(const char *path, struct error *err)
{
    struct cluster_state *s = NULL;
    int r = state_file_read(path, &s, err);
    if (r == E_NOT_FOUND)
        return 0;
    if (r == 0 && s->cluster_id[0] != '\0')
        r = error_set(err, E_EXISTS,
                      "this proxy belongs to cluster '%s' ('%s') and has no documents of its own: "
                      "start it with --metastore or --join as before, or with --import FILE. Move "
                      "'%s' away only for a new cluster",
                      s->cluster_id, path, path);
    state_unref(s);
    return r;
}
