/* dfc_profile_*, and what clients read. */
#include "api/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/failure.h"
#include "api/secret.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { FILE_MAX = 1 << 20 };

#define NAME_DEFAULT "default"

static const char *filled(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

char *dfc_profile_path(void)
{
    const char *config = filled(getenv("XDG_CONFIG_HOME"));
    const char *home = filled(getenv("HOME"));
    if (config != NULL)
        return xprintf("%s/dfc/config.json", config);
    return home != NULL ? xprintf("%s/.config/dfc/config.json", home) : NULL;
}

/* ---- reading ---- */

/* Of the file that was opened, so that nobody can put another one in its place. */
static int check_file(int fd, const char *path, struct dfc_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return failure_errno(err, errno, "look at '%s'", path);
    if (!S_ISREG(st.st_mode))
        return failure_set(err, DFC_LOCAL, E_INVALID, "'%s' is not a file", path);
    if (st.st_uid != geteuid())
        return failure_set(err, DFC_LOCAL, E_INVALID, "'%s' belongs to another user", path);
    if ((st.st_mode & 077) != 0)
        return failure_set(err, DFC_LOCAL, E_INVALID,
                           "the mode of '%s' is %03o, and it has secrets: chmod 600", path,
                           (unsigned)(st.st_mode & 0777));
    return DFC_OK;
}

static int read_text(int fd, const char *path, struct buf *out, struct dfc_error *err)
{
    buf_reserve(out, FILE_MAX + 1);
    while (out->len <= FILE_MAX) {
        ssize_t n = read(fd, out->data + out->len, FILE_MAX + 1 - out->len);
        if (n < 0 && errno != EINTR)
            return failure_errno(err, errno, "read '%s'", path);
        if (n == 0)
            return DFC_OK;
        out->len += n > 0 ? (size_t)n : 0;
    }
    return failure_set(err, DFC_LOCAL, E_TOO_LARGE, "'%s' is larger than %d bytes", path, FILE_MAX);
}

static void wipe(struct buf *text)
{
    if (text->data != NULL)
        OPENSSL_cleanse(text->data, text->len);
    buf_done(text);
}

/* *doc is NULL where there is no file. */
static int read_file(const char *path, json_t **doc, struct dfc_error *err)
{
    _cleanup_(wipe)
    struct buf text = BUF_INIT;
    struct error e = ERROR_INIT;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *doc = NULL;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return DFC_OK;
    if (fd < 0)
        return failure_errno(err, errno, "open '%s'", path);
    int rc = check_file(fd, path, err);
    if (rc == DFC_OK)
        rc = read_text(fd, path, &text, err);
    if (rc != DFC_OK)
        return rc;
    if (json_parse_secret(text.data, text.len, doc, &e) != 0)
        return failure_set(err, DFC_LOCAL, E_JSON, "'%s': %s", path, e.message);
    if (json_is_object(*doc))
        return DFC_OK;
    json_decref(*doc);
    *doc = NULL;
    return failure_set(err, DFC_LOCAL, E_JSON, "'%s': it must be an object", path);
}

static char *text_of(json_t *row, const char *field)
{
    return xstrdup(filled(json_string_value(json_object_get(row, field))));
}

static const char *current_of(json_t *doc)
{
    return filled(json_string_value(json_object_get(doc, "current")));
}

/* The key of a cluster is no other cluster's business. */
static bool fits(json_t *row, const char *endpoints)
{
    const char *own = filled(json_string_value(json_object_get(row, "endpoints")));
    return endpoints == NULL || (own != NULL && strcmp(own, endpoints) == 0);
}

int profile_load(const char *name, const char *endpoints, struct profile *out,
                 struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *path = dfc_profile_path();
    *out = (struct profile){0};
    if (name == NULL)
        name = filled(getenv("DFC_PROFILE"));
    if (name != NULL && name[0] == '\0')
        return DFC_OK;
    int rc = path != NULL ? read_file(path, &doc, err) : DFC_OK;
    if (rc != DFC_OK)
        return rc;
    const char *wanted = name != NULL ? name : current_of(doc);
    json_t *row = wanted != NULL ? json_object_get(json_object_get(doc, "profiles"), wanted) : NULL;
    if (name == NULL && (row == NULL || !fits(row, endpoints)))
        return DFC_OK;
    if (!json_is_object(row))
        return failure_set(err, DFC_NOT_FOUND, E_NOT_FOUND, "there is no profile '%s' in '%s'",
                           wanted, path != NULL ? path : "");
    *out = (struct profile){.endpoints = text_of(row, "endpoints"),
                            .access_key = text_of(row, "access_key"),
                            .secret_key = text_of(row, "secret_key"),
                            .ca_file = text_of(row, "ca_file")};
    return DFC_OK;
}

void profile_done(struct profile *p)
{
    free(p->endpoints);
    free(p->access_key);
    secret_free(p->secret_key);
    free(p->ca_file);
}

/* ---- writing ---- */

static int make_directories(const char *path, struct dfc_error *err)
{
    _cleanup_free_ char *part = xstrdup(path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return failure_errno(err, errno, "make '%s'", part);
        *slash = '/';
    }
    return DFC_OK;
}

static int write_all(int fd, const char *text, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        if (n < 0 && errno != EINTR)
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

static int write_file(const char *path, json_t *doc, struct dfc_error *err)
{
    int rc = make_directories(path, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_free_ char *temporary = xprintf("%s.XXXXXX", path);
    _cleanup_(secret_freep)
    char *text = json_text(doc);
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return failure_errno(err, errno, "make '%s'", temporary);
    bool written = write_all(fd, text, strlen(text)) == 0;
    written &= close(fd) == 0;
    if (written && rename(temporary, path) == 0)
        return DFC_OK;
    rc = failure_errno(err, errno, "write '%s'", path);
    unlink(temporary);
    return rc;
}

/* The file as it is, or a new document; *path is where it is. */
static int open_file(char **path, json_t **doc, struct dfc_error *err)
{
    *path = dfc_profile_path();
    if (*path == NULL)
        return failure_set(err, DFC_LOCAL, E_INVALID,
                           "neither HOME nor XDG_CONFIG_HOME is set: profiles have no place");
    int rc = read_file(*path, doc, err);
    if (rc == DFC_OK && *doc == NULL)
        *doc = json_object();
    if (rc == DFC_OK && !json_is_object(json_object_get(*doc, "profiles")))
        json_object_set_new(*doc, "profiles", json_object());
    return rc;
}

/* The name that a call means which names none. */
static char *name_of(const char *name, json_t *doc)
{
    if (filled(name) == NULL)
        name = filled(getenv("DFC_PROFILE"));
    if (name == NULL)
        name = current_of(doc);
    return xstrdup(name != NULL ? name : NAME_DEFAULT);
}

int dfc_profile_save(const char *name, const struct dfc_profile *p, char **saved,
                     struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *path = NULL;
    int rc = open_file(&path, &doc, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_free_ char *full = name_of(name, doc);
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s*}", "endpoints", p->endpoints, "access_key", p->access_key,
                  "secret_key", p->secret_key, "ca_file", filled(p->ca_file));
    json_t *profiles = json_object_get(doc, "profiles");
    _cleanup_free_ char *before = text_of(json_object_get(profiles, full), "ca_file");
    if (row != NULL && p->ca_file == NULL && before != NULL)
        json_object_set_new(row, "ca_file", json_string(before));
    if (row == NULL || json_object_set_new(profiles, full, row) != 0)
        return failure_set(err, DFC_INVALID, E_INVALID, "a part of the profile is not UTF-8");
    json_object_set_new(doc, "current", json_string(full));
    rc = write_file(path, doc, err);
    if (rc == DFC_OK && saved != NULL)
        *saved = steal(full);
    return rc;
}

int dfc_profile_remove(const char *name, char **removed, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *path = NULL;
    int rc = open_file(&path, &doc, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_free_ char *full = name_of(name, doc);
    const char *current = current_of(doc);
    if (json_object_del(json_object_get(doc, "profiles"), full) != 0)
        return failure_set(err, DFC_NOT_FOUND, E_NOT_FOUND, "there is no profile '%s' in '%s'",
                           full, path);
    if (current != NULL && strcmp(current, full) == 0)
        json_object_del(doc, "current");
    rc = write_file(path, doc, err);
    if (rc == DFC_OK && removed != NULL)
        *removed = steal(full);
    return rc;
}
