#include "target/scrub/scrub_cursor.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/disk/object_files.h"

enum { FORMAT = 1, MODE = 0640, BYTES_MAX = 4 << 20 };

static const char *const phases[] = {
    [SCRUB_FILES] = "files", [SCRUB_NAMES] = "names", [SCRUB_DONE] = "done"};
enum { PHASES = sizeof phases / sizeof *phases };

void scrub_cursor_done(struct scrub_cursor *c)
{
    for (size_t i = 0; i < c->nameless_count; i++) {
        free(c->nameless[i].path);
        free(c->nameless[i].why);
    }
    *c = (struct scrub_cursor){0};
}

static char *path_of(const struct mountpath *mp)
{
    return xprintf("%s/.dfc/scrub.json", mp->path);
}

static json_t *nameless_to_json(const struct scrub_cursor *c)
{
    json_t *all = json_array();
    for (size_t i = 0; i < c->nameless_count; i++) {
        const struct scrub_nameless *n = &c->nameless[i];
        json_array_append_new(
            all, json_pack("{s:s, s:o, s:I, s:I, s:s}", "path", n->path, "why",
                           json_string_escaped(n->why), "bucket_id", (json_int_t)n->bucket_id,
                           "inode", (json_int_t)n->inode, "what", validate_finding_name(n->what)));
    }
    return all;
}

int scrub_cursor_save(const struct scrub_cursor *c, const struct mountpath *mp, const char *job_id,
                      struct validate_part *part, struct error *err)
{
    _cleanup_free_ char *path = path_of(mp);
    _cleanup_json_ json_t *doc =
        json_pack("{s:i, s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "format", FORMAT, "job", job_id,
                  "phase", phases[c->phase], "bucket_id", (json_int_t)c->bucket_id, "fan",
                  (json_int_t)c->fan, "name", json_string_escaped(c->name), "nameless",
                  nameless_to_json(c), "report", validate_part_to_json(part));
    _cleanup_free_ char *text = json_text(doc);
    return file_replace(path, text, strlen(text), MODE, err);
}

static int get_nameless(struct scrub_cursor *c, json_t *one, struct error *err)
{
    struct scrub_nameless n = {0};
    const char *path, *why, *what;
    int code;
    if ((code = json_need_str(one, "nameless", "path", &path, err)) != 0 ||
        (code = json_need_str(one, "nameless", "why", &why, err)) != 0 ||
        (code = json_need_str(one, "nameless", "what", &what, err)) != 0 ||
        (code = json_need_u64(one, "nameless", "bucket_id", &n.bucket_id, err)) != 0 ||
        (code = json_need_u64(one, "nameless", "inode", &n.inode, err)) != 0 ||
        (code = validate_finding_from_name(what, &n.what, err)) != 0)
        return code;
    n.path = xstrdup(path);
    n.why = xstrdup(why);
    c->nameless[c->nameless_count++] = n;
    return 0;
}

static int get_all_nameless(struct scrub_cursor *c, json_t *doc, struct error *err)
{
    json_t *all = NULL, *one;
    size_t i;
    int code = json_get_array(doc, "", "nameless", &all, err);
    if (code == 0 && json_array_size(all) > SCRUB_NAMELESS_MAX)
        code = error_set(err, E_JSON, "field 'nameless' is too long");
    if (code != 0)
        return code;
    json_array_foreach(all, i, one)
    {
        if ((code = get_nameless(c, one, err)) != 0)
            return code;
    }
    return 0;
}

static int get_phase(struct scrub_cursor *c, json_t *doc, struct error *err)
{
    const char *text;
    int code = json_need_str(doc, "", "phase", &text, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < PHASES; i++) {
        if (strcmp(phases[i], text) == 0) {
            c->phase = (enum scrub_phase)i;
            return 0;
        }
    }
    return error_set(err, E_JSON, "field 'phase': '%.64s' is none", text);
}

static int get_all(struct scrub_cursor *c, json_t *doc, struct validate_part *part,
                   struct error *err)
{
    const char *name = "";
    json_t *report = NULL;
    int code;
    if ((code = get_phase(c, doc, err)) != 0 ||
        (code = json_need_u64(doc, "", "bucket_id", &c->bucket_id, err)) != 0 ||
        (code = json_need_u64(doc, "", "fan", &c->fan, err)) != 0 ||
        (code = json_need_str(doc, "", "name", &name, err)) != 0 ||
        (code = get_all_nameless(c, doc, err)) != 0 ||
        (code = json_get_object(doc, "", "report", &report, err)) != 0)
        return code;
    if (strlen(name) > ATTR_NAME_MAX || c->fan > OBJECT_FANS || report == NULL)
        return error_set(err, E_JSON, "field 'name', 'fan' or 'report' is wrong");
    snprintf(c->name, sizeof c->name, "%s", name);
    return validate_part_from_json(part, report, err);
}

/* E_NOT_FOUND: there is none of this job. */
static int read_it(const char *path, const char *job_id, json_t **doc, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    uint64_t format;
    const char *job;
    int code;
    if ((code = file_read_all(path, BYTES_MAX, &text, err)) != 0 ||
        (code = json_parse(buf_str(&text), text.len, doc, err)) != 0 ||
        (code = json_need_u64(*doc, "", "format", &format, err)) != 0 ||
        (code = json_need_str(*doc, "", "job", &job, err)) != 0)
        return code;
    bool is_ours = format == FORMAT && strcmp(job, job_id) == 0;
    return is_ours ? 0 : error_set(err, E_NOT_FOUND, "'%s' is another job's", path);
}

int scrub_cursor_load(struct scrub_cursor *c, const struct mountpath *mp, const char *job_id,
                      struct validate_part *part, struct error *err)
{
    struct error why = ERROR_INIT;
    _cleanup_free_ char *path = path_of(mp);
    _cleanup_json_ json_t *doc = NULL;
    scrub_cursor_done(c);
    validate_part_reset(part);
    int code = read_it(path, job_id, &doc, &why);
    if (code == E_NOT_FOUND)
        return 0;
    if (code == 0)
        code = get_all(c, doc, part, &why);
    if (code == 0)
        return 0;
    scrub_cursor_done(c);
    validate_part_reset(part);
    return error_set(err, code, "'%s': %s", path, why.message);
}
