#include "api/ctl/upload/upload_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define STATE_MAX_BYTES (64u << 10)

/* ---- where ---- */

static char *cache_directory(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/')
        return xprintf("%s/dfc/uploads", cache);
    return home != NULL && home[0] == '/' ? xprintf("%s/.cache/dfc/uploads", home) : NULL;
}

static bool make_directories(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        bool failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static char *state_path(const struct upload_state *s)
{
    struct checksum_value value;
    char hash[2 * CHECKSUM_MAX + 1];
    const char *const texts[] = {s->source, s->bucket, s->key};
    _cleanup_free_ char *directory = cache_directory();
    if (directory == NULL || !make_directories(directory))
        return NULL;
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_XXH3);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        checksum_update(sum, texts[i], strlen(texts[i]) + 1);
    checksum_final(sum, &value);
    checksum_hex(&value, hash);
    return xprintf("%s/%s.json", directory, hash);
}

/* ---- reading ---- */

static bool is_text(json_t *doc, const char *field, const char *wanted)
{
    const char *text = json_string_value(json_object_get(doc, field));
    return text != NULL && strcmp(text, wanted) == 0;
}

static bool is_number(json_t *doc, const char *field, json_int_t wanted)
{
    json_t *value = json_object_get(doc, field);
    return json_is_integer(value) && json_integer_value(value) == wanted;
}

static bool is_same_file(const struct upload_state *s, json_t *doc)
{
    return is_text(doc, "file", s->source) && is_text(doc, "about", s->about) &&
           is_number(doc, "size", (json_int_t)s->size) &&
           is_number(doc, "part_size", (json_int_t)s->part_size) &&
           is_number(doc, "modified_ns", s->modified_ns);
}

static void take_upload(struct upload_state *s)
{
    _cleanup_free_ char *text = xcalloc(1, STATE_MAX_BYTES + 1);
    _cleanup_json_ json_t *doc = NULL;
    if (pread(s->fd, text, STATE_MAX_BYTES, 0) <= 0 ||
        json_parse(text, strlen(text), &doc, NULL) != 0)
        return;
    const char *upload = json_string_value(json_object_get(doc, "upload"));
    if (upload == NULL || upload[0] == '\0' || !is_text(doc, "bucket", s->bucket) ||
        !is_text(doc, "name", s->key))
        return;
    *(is_same_file(s, doc) ? &s->upload : &s->stale) = xstrdup(upload);
}

/* Locked, and still the file of that name: its last holder may have removed it. */
static bool is_ours(const struct upload_state *s)
{
    struct stat own, named;
    return s->fd >= 0 && flock(s->fd, LOCK_EX | LOCK_NB) == 0 && fstat(s->fd, &own) == 0 &&
           stat(s->path, &named) == 0 && own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

void upload_state_open(struct upload_state *s, const char *source)
{
    s->fd = -1;
    s->source = realpath(source, NULL);
    if (s->source != NULL)
        s->path = state_path(s);
    if (s->path == NULL)
        return;
    s->fd = open(s->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (is_ours(s))
        take_upload(s);
    else
        free(steal(s->path));
}

/* ---- writing ---- */

void upload_state_keep(struct upload_state *s)
{
    if (s->path == NULL)
        return;
    _cleanup_json_ json_t *doc = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s}", "bucket", s->bucket, "name", s->key, "file",
        s->source, "about", s->about, "size", (json_int_t)s->size, "part_size",
        (json_int_t)s->part_size, "modified_ns", (json_int_t)s->modified_ns, "upload", s->upload);
    _cleanup_free_ char *text = doc != NULL ? json_text(doc) : NULL;
    if (text == NULL || ftruncate(s->fd, 0) != 0 ||
        pwrite(s->fd, text, strlen(text), 0) != (ssize_t)strlen(text))
        upload_state_drop(s);
}

void upload_state_drop(struct upload_state *s)
{
    if (s->path != NULL)
        unlink(s->path);
    free(steal(s->path));
}

void upload_state_done(struct upload_state *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->source);
    free(s->path);
    free(s->about);
    free(s->upload);
    free(s->stale);
}
