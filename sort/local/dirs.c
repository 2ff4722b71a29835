#include "sort/local/dirs_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"
#include "io/direct.h"
#include "io/file.h"

#define KEY_MAP_PIECE (64 * 1024)

struct sort_output {
    char *name;
    char *hidden;
    int fd;
    struct direct direct;
    uint64_t size, written;
};

static void entry_free(struct dirs_output *o)
{
    free(o->name);
    free(o->hidden);
    free(o);
}

/* --- directories ------------------------------------------------------------------------------ */

static void note_made(void *arg, const char *path)
{
    struct dirs *d = arg;
    struct dirs_made *m = xcalloc(1, sizeof *m);
    m->path = xstrdup(path);
    m->before = d->made;
    d->made = m;
}

/* Inner ones first, and no more than empty ones: those that got something stay. */
static void remove_made(struct dirs *d)
{
    for (struct dirs_made *m = d->made, *before; m != NULL; m = before) {
        before = m->before;
        rmdir(m->path);
        free(m->path);
        free(m);
    }
}

static int make_hidden(struct dirs *d, struct error *err)
{
    if (mkdtemp(d->hidden) != NULL)
        return 0;
    int rc = error_errno(err, errno, "make a directory in '%s'", d->out);
    free(steal(d->hidden));
    return rc;
}

int dirs_open(const char *in, const char *out, const char *key_map, struct dirs **result,
              struct error *err)
{
    _cleanup_(dirs_closep)
    struct dirs *d = xcalloc(1, sizeof *d);
    d->in = xstrdup(in);
    d->out = xstrdup(out);
    d->key_map = key_map != NULL ? xstrdup(key_map) : NULL;
    pthread_mutex_init(&d->lock, NULL);
    int rc = file_mkdirs_each(out, 0777, note_made, d, err);
    if (rc != 0)
        return rc;
    d->hidden = xprintf("%s/%sXXXXXX", out, DIRS_HIDDEN);
    rc = make_hidden(d, err);
    if (rc == 0)
        *result = steal(d);
    return rc;
}

void dirs_close(struct dirs *d)
{
    if (d == NULL)
        return;
    for (struct dirs_output *o = d->finished, *next; o != NULL; o = next) {
        next = o->next;
        unlink(o->hidden);
        entry_free(o);
    }
    if (d->hidden != NULL)
        rmdir(d->hidden);
    remove_made(d);
    pthread_mutex_destroy(&d->lock);
    free(d->in);
    free(d->out);
    free(d->hidden);
    free(d->key_map);
    free(d);
}

/* --- input ------------------------------------------------------------------------------------ */

int dirs_open_shard(void *dirs, const char *name, int *fd, struct error *err)
{
    struct dirs *d = dirs;
    _cleanup_free_ char *path = xprintf("%s/%s", d->in, name);
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    return *fd < 0 ? error_errno(err, errno, "open '%s'", path) : 0;
}

static int key_map_path(const struct dirs *d, const struct sort_spec *spec, char **path,
                        struct error *err)
{
    if (d->key_map == NULL && spec->ekm_object == NULL)
        return error_set(err, E_UNSUPPORTED,
                         "'%s' is not read without a cluster: fetch it, and name the file",
                         spec->ekm_file);
    if (d->key_map != NULL) {
        *path = xstrdup(d->key_map);
        return 0;
    }
    int rc = dirs_check_name("field 'ekm_file'", spec->ekm_object, err);
    if (rc == 0)
        *path = xprintf("%s/%s", d->in, spec->ekm_object);
    return rc;
}

int dirs_read_key_map(void *dirs, const struct sort_spec *spec,
                      int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                      void *arg, struct error *err)
{
    _cleanup_free_ char *path = NULL;
    int rc = key_map_path(dirs, spec, &path, err);
    if (rc != 0)
        return rc;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "open '%s'", path);
    _cleanup_free_ char *piece = xmalloc(KEY_MAP_PIECE);
    for (ssize_t n = 1; rc == 0 && n > 0;) {
        n = read(fd, piece, KEY_MAP_PIECE);
        rc = n < 0 ? error_errno(err, errno, "read '%s'", path) : feed(arg, piece, (size_t)n, err);
    }
    return rc;
}

int dirs_open_work_file(void *dirs, int *fd, struct error *err)
{
    const struct dirs *d = dirs;
    return file_open_unnamed(d->hidden, fd, err);
}

/* --- output ----------------------------------------------------------------------------------- */

static int check_output(const char *name, struct error *err)
{
    return dirs_check_name("field 'output_format' or the key map", name, err);
}

int dirs_output_check(void *dirs, const char *name, struct error *err)
{
    const struct dirs *d = dirs;
    int rc = check_output(name, err);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *path = xprintf("%s/%s", d->out, name);
    if (access(path, F_OK) == 0)
        return error_set(err, E_OBJECT_EXISTS, "'%s' exists", name);
    return 0;
}

static void output_free(struct sort_output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    free(o->name);
    free(o->hidden);
    free(o);
}

int dirs_output_begin(void *dirs, const char *name, uint64_t size, struct sort_output **out,
                      struct error *err)
{
    struct dirs *d = dirs;
    int rc = check_output(name, err);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&d->lock);
    uint64_t number = d->next_output++;
    pthread_mutex_unlock(&d->lock);
    struct sort_output *o = xcalloc(1, sizeof *o);
    o->name = xstrdup(name);
    o->hidden = xprintf("%s/%llu", d->hidden, (unsigned long long)number);
    o->size = size;
    o->fd = open(o->hidden, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (o->fd < 0) {
        rc = error_errno(err, errno, "make '%s'", o->hidden);
        output_free(o);
        return rc;
    }
    direct_begin(&o->direct, o->fd, true);
    *out = o;
    return 0;
}

int dirs_output_write(void *dirs, struct sort_output *out, const void *data, size_t len,
                      struct error *err)
{
    (void)dirs;
    out->written += len;
    int rc = direct_write(&out->direct, data, len, err);
    return rc != 0 ? error_wrap(err, "write '%s'", out->name) : 0;
}

void dirs_output_discard(void *dirs, struct sort_output *out)
{
    (void)dirs;
    unlink(out->hidden);
    output_free(out);
}

int dirs_output_finish(void *dirs, struct sort_output *out, struct error *err)
{
    struct dirs *d = dirs;
    int rc = 0;
    if (out->size != SORT_SIZE_UNKNOWN && out->written != out->size)
        rc = error_set(err, E_INTERNAL, "'%s' has not the size that was announced", out->name);
    int errnum = rc == 0 ? file_sync(out->fd, "sync.file") : 0;
    if (errnum != 0)
        rc = error_errno(err, errnum, "sync '%s'", out->name);
    if (close(steal_fd(&out->fd)) != 0 && rc == 0)
        rc = error_errno(err, errno, "write '%s'", out->name);
    if (rc != 0) {
        dirs_output_discard(dirs, out);
        return rc;
    }
    struct dirs_output *done = xcalloc(1, sizeof *done);
    done->name = steal(out->name);
    done->hidden = steal(out->hidden);
    output_free(out);
    pthread_mutex_lock(&d->lock);
    done->next = d->finished;
    d->finished = done;
    pthread_mutex_unlock(&d->lock);
    return 0;
}

int dirs_outputs_prune(void *dirs, bool (*wanted)(void *arg, const char *name), void *arg,
                       struct error *err)
{
    struct dirs *d = dirs;
    int rc = 0;
    pthread_mutex_lock(&d->lock);
    for (struct dirs_output **at = &d->finished; rc == 0 && *at != NULL;) {
        struct dirs_output *o = *at;
        if (wanted(arg, o->name)) {
            at = &o->next;
            continue;
        }
        if (unlink(o->hidden) != 0)
            rc = error_errno(err, errno, "remove '%s'", o->hidden);
        *at = o->next;
        entry_free(o);
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static char *output_path(const struct dirs *d, const struct dirs_output *o)
{
    return xprintf("%s/%s", d->out, o->name);
}

/* A link refuses a name that is taken, as a rename does not. */
static int output_show(struct dirs *d, const struct dirs_output *o, struct error *err)
{
    _cleanup_free_ char *path = output_path(d, o);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int rc = file_mkdirs_each(path, 0777, note_made, d, err);
    *slash = '/';
    if (rc == 0 && link(o->hidden, path) != 0)
        rc = errno == EEXIST ? error_set(err, E_OBJECT_EXISTS, "'%s' exists", o->name)
                             : error_errno(err, errno, "name '%s'", path);
    return rc;
}

static bool are_neighbours(const char *name, const char *other)
{
    size_t len = (size_t)(strrchr(name, '/') - name);
    return strncmp(name, other, len + 1) == 0 && strchr(other + len + 1, '/') == NULL;
}

/* Of neighbours that follow one another the first one's directory is that of all. */
static int sync_names(const struct dirs *d, struct error *err)
{
    _cleanup_free_ char *synced = NULL;
    int rc = 0;
    for (const struct dirs_output *o = d->finished; rc == 0 && o != NULL; o = o->next) {
        char *path = output_path(d, o);
        if (synced == NULL || !are_neighbours(synced, path))
            rc = file_fsync_parent(path, err);
        free(synced);
        synced = path;
    }
    return rc;
}

int dirs_show(struct dirs *d, struct error *err)
{
    int rc = 0;
    const struct dirs_output *o = d->finished;
    while (o != NULL && (rc = output_show(d, o, err)) == 0)
        o = o->next;
    if (rc == 0)
        rc = sync_names(d, err);
    if (rc == 0)
        return 0;
    for (const struct dirs_output *shown = d->finished; shown != o; shown = shown->next) {
        _cleanup_free_ char *path = output_path(d, shown);
        unlink(path);
    }
    return rc;
}
