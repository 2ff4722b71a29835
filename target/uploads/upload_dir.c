#include "target/uploads/upload_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base64url.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "io/file.h"

enum { FILE_MODE = 0640, DIR_MODE = 0750, ABOUT_MAX = 1 << 20 };

static const char root_name[] = "uploads";

void upload_about_clear(struct upload_about *about)
{
    free(about->object);
    free(about->headers);
    *about = (struct upload_about){.object = NULL};
}

const char *upload_about_header(const struct upload_about *about, const char *name)
{
    size_t len = strlen(name);
    for (size_t at = 0; at < about->headers_len; at += strlen(about->headers + at) + 1) {
        const char *line = about->headers + at;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1 + strspn(line + len + 1, " ");
    }
    return NULL;
}

void upload_about_sums(const struct upload_about *about, struct s3_sum_kind *out)
{
    const char *text = upload_about_header(about, UPLOAD_SUMS_HEADER);
    if (text == NULL || !s3_sum_kind_parse(text, out))
        *out = (struct s3_sum_kind){.is_asked = false};
}

/* A named place of a test, where the disk fails or the target dies. */
static int pass(const char *point, const char *id, struct error *err)
{
    int errnum = fault_errno(point);
    return errnum == 0 ? 0 : error_errno(err, errnum, "upload '%s'", id);
}

static char *root_of(const struct mountpath *mp)
{
    return xprintf("%s/.dfc/%s", mp->path, root_name);
}

static char *dir_of(const struct mountpath *mp, const char *id)
{
    return xprintf("%s/.dfc/%s/%s", mp->path, root_name, id);
}

char *upload_dir_file(const struct mountpath *mp, const char *id, const char *file)
{
    return xprintf("%s/.dfc/%s/%s/%s", mp->path, root_name, id, file);
}

bool upload_dir_has(const struct mountpath *mp, const char *id, const char *file)
{
    _cleanup_free_ char *path = upload_dir_file(mp, id, file);
    return access(path, F_OK) == 0;
}

bool upload_dir_is_open(const struct mountpath *mp, const char *id)
{
    return upload_dir_has(mp, id, "about.json") && !upload_dir_has(mp, id, "done.json");
}

/* --- beginning -------------------------------------------------------------------------------- */

static int make_empty(const struct mountpath *mp, const char *id, const char *file,
                      struct error *err)
{
    _cleanup_free_ char *path = upload_dir_file(mp, id, file);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    return fd >= 0 ? 0 : error_errno(err, errno, "create '%s'", path);
}

/* The lines may have bytes that are no UTF-8, which JSON cannot have. */
static char *about_text(const struct upload_about *about)
{
    _cleanup_free_ char *headers = xcalloc(1, BASE64URL_CHARS(about->headers_len) + 1);
    base64url_encode(about->headers, about->headers_len, headers);
    _cleanup_json_ json_t *doc = json_pack("{sI ss ss}", "bucket_id", (json_int_t)about->bucket_id,
                                           "object", about->object, "headers", headers);
    return json_text(doc);
}

static int make_files(const struct mountpath *mp, const char *id, const struct upload_about *about,
                      struct error *err)
{
    _cleanup_free_ char *path = upload_dir_file(mp, id, "about.json");
    _cleanup_free_ char *root = root_of(mp);
    _cleanup_free_ char *text = about_text(about);
    int code = make_empty(mp, id, "body", err);
    if (code == 0)
        code = make_empty(mp, id, "parts", err);
    if (code == 0)
        code = pass("upload.made", id, err);
    if (code == 0)
        code = file_replace(path, text, strlen(text), FILE_MODE, err); /* and syncs the directory */
    if (code == 0)
        code = file_fsync_dir(root, err);
    return code != 0 ? code : pass("upload.begun", id, err);
}

int upload_dir_make(const struct mountpath *mp, const char *id, const struct upload_about *about,
                    struct error *err)
{
    _cleanup_free_ char *dir = dir_of(mp, id);
    if (mkdir(dir, DIR_MODE) != 0)
        return error_errno(err, errno, "create '%s'", dir);
    int code = make_files(mp, id, about, err);
    if (code != 0)
        (void)file_remove_tree(dir, NULL); /* else the sweep does */
    return code;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int take_headers(const char *text, struct upload_about *out, struct error *err)
{
    size_t chars = strlen(text);
    out->headers = xcalloc(1, chars + 1);
    out->headers_len = chars * 3 / 4;
    bool whole = base64url_decode(text, chars, out->headers) &&
                 (out->headers_len == 0 || out->headers[out->headers_len - 1] == '\0');
    return whole ? 0 : error_set(err, E_CORRUPT, "its headers are damaged");
}

static int take_about(json_t *doc, struct upload_about *out, struct error *err)
{
    const char *object = NULL, *headers = NULL;
    int code = json_need_u64(doc, "", "bucket_id", &out->bucket_id, err);
    if (code == 0)
        code = json_need_str(doc, "", "object", &object, err);
    if (code == 0)
        code = json_need_str(doc, "", "headers", &headers, err);
    if (code != 0)
        return code;
    out->object = xstrdup(object);
    return take_headers(headers, out, err);
}

int upload_dir_read(const struct mountpath *mp, const char *id, struct upload_about *out,
                    struct error *err)
{
    _cleanup_free_ char *path = upload_dir_file(mp, id, "about.json");
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    *out = (struct upload_about){.object = NULL};
    int code = file_read_all(path, ABOUT_MAX, &text, err);
    if (code != 0)
        return code;
    code = json_parse(text.data, text.len, &doc, err);
    if (code == 0)
        code = take_about(doc, out, err);
    if (code == 0)
        return 0;
    upload_about_clear(out);
    return error_recode(err, E_CORRUPT, "'%s'", path);
}

int upload_dir_read_done(const struct mountpath *mp, const char *id, json_t **out,
                         struct error *err)
{
    _cleanup_free_ char *path = upload_dir_file(mp, id, "done.json");
    _cleanup_buf_ struct buf text = BUF_INIT;
    *out = NULL;
    struct error why = ERROR_INIT;
    int code = file_read_all(path, ABOUT_MAX, &text, &why);
    if (code == E_NOT_FOUND)
        return 0;
    if (code == 0)
        code = json_parse(text.data, text.len, out, &why);
    return code == 0 ? 0 : error_set(err, code, "'%s': %s", path, why.message);
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool stays(const char *file)
{
    return strcmp(file, "done.json") == 0 || strcmp(file, "about.json") == 0;
}

static int remove_bytes(const char *dir, struct error *err)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return error_errno(err, errno, "open '%s'", dir);
    int errnum = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.' && !stays(e->d_name) && unlinkat(dirfd(d), e->d_name, 0) != 0)
            errnum = errno;
    }
    closedir(d);
    return errnum == 0 ? 0 : error_errno(err, errnum, "remove the parts in '%s'", dir);
}

int upload_dir_finish(const struct mountpath *mp, const char *id, const json_t *reply,
                      struct error *err)
{
    _cleanup_free_ char *dir = dir_of(mp, id);
    _cleanup_free_ char *path = upload_dir_file(mp, id, "done.json");
    _cleanup_free_ char *text = json_text(reply);
    int code = pass("upload.named", id, err);
    if (code == 0)
        code = file_replace(path, text, strlen(text), FILE_MODE, err);
    if (code == 0)
        code = pass("upload.done", id, err);
    return code != 0 ? code : remove_bytes(dir, err);
}

/* Without about.json it is no upload any more, and what is left is the sweep's. */
int upload_dir_remove(const struct mountpath *mp, const char *id, struct error *err)
{
    _cleanup_free_ char *dir = dir_of(mp, id);
    _cleanup_free_ char *about = upload_dir_file(mp, id, "about.json");
    if (unlink(about) == 0) {
        int code = file_fsync_dir(dir, err);
        if (code != 0)
            return code;
    } else if (errno != ENOENT) {
        return error_errno(err, errno, "remove '%s'", about);
    }
    int code = pass("upload.gone", id, err);
    return code != 0 ? code : file_remove_tree(dir, err);
}

int upload_dir_each(const struct mountpath *mp, bool (*fn)(void *ctx, const char *id), void *ctx,
                    struct error *err)
{
    _cleanup_free_ char *root = root_of(mp);
    DIR *d = opendir(root);
    if (d == NULL)
        return error_errno(err, errno, "open '%s'", root);
    bool more = true;
    for (const struct dirent *e; more && (e = readdir(d)) != NULL;) {
        if (strlen(e->d_name) == UPLOAD_ID_CHARS)
            more = fn(ctx, e->d_name);
    }
    closedir(d);
    return 0;
}
