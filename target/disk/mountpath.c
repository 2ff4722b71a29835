#include "target/disk/mountpath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "io/file.h"
#include "io/meter.h"
#include "io/reader.h"
#include "target/format/attr.h"
#include "target/index/child.h"

enum { DIR_MODE = 0750, FILE_MODE = 0640, FORMAT_BYTES_MAX = 1 << 20 };

const char *mountpath_id(const struct mountpath *mp)
{
    return mp->format->mountpath;
}

void mountpath_path_label(const char *path, struct buf *out)
{
    buf_puts(out, "mountpath=\"");
    buf_put_json_escaped(out, path, strlen(path));
    buf_putc(out, '"');
}

void mountpath_labels(const struct mountpath *mp, struct buf *out)
{
    mountpath_path_label(mp->path, out);
}

int mountpath_failed(struct mountpath *mp, int code)
{
    if (code == E_IO || code == E_CORRUPT)
        metric_add(mp->errors, 1);
    if (code == E_IO)
        atomic_fetch_add(&mp->io_errors, 1);
    return code;
}

static bool is_within(const char *path, const char *top)
{
    size_t len = strlen(top);
    return strncmp(path, top, len) == 0 &&
           (path[len] == '\0' || path[len] == '/' || (len > 0 && top[len - 1] == '/'));
}

bool mountpath_paths_nest(const char *a, const char *b)
{
    return is_within(a, b) || is_within(b, a);
}

/* --- opening: a row of steps, each of which leaves the rest to the next ----------------------- */

static int open_dir_at(int at, const char *name, const struct mountpath *mp, int *fd,
                       struct error *err)
{
    *fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *fd >= 0 ? 0 : error_errno(err, errno, "open '%s/.dfc/%s'", mp->path, name);
}

/* A mountpath above would sweep, move and count what is not its own. */
static int check_above(const struct mountpath *mp, struct error *err)
{
    _cleanup_free_ char *at = xstrdup(mp->path);
    for (char *slash; (slash = strrchr(at, '/')) != NULL;) {
        *slash = '\0';
        _cleanup_free_ char *format = xprintf("%s/.dfc/format.json", at);
        if (access(format, F_OK) == 0)
            return error_set(err, E_MOUNTPATH, "'%s' is inside another mountpath, '%s'", mp->path,
                             *at != '\0' ? at : "/");
    }
    return 0;
}

/* Their journals hold back a new name until bytes that were sent to the disk are there.  The log of
 * btrfs does not. */
static bool keeps_order(long type)
{
    static const long in_order[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC};
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        if (type == in_order[i])
            return true;
    }
    return false;
}

static int open_root(struct mountpath *mp, const char *path, struct error *err)
{
    int code = file_mkdirs(path, DIR_MODE, err);
    if (code != 0)
        return code;
    mp->path = realpath(path, NULL);
    if (mp->path == NULL)
        return error_errno(err, errno, "resolve '%s'", path);
    if ((code = check_above(mp, err)) != 0)
        return code;
    _cleanup_free_ char *root = xprintf("%s/.dfc", mp->path);
    if ((code = file_mkdirs(root, DIR_MODE, err)) != 0)
        return code;
    mp->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    struct statfs fs;
    if (mp->root_fd < 0 || fstat(mp->root_fd, &st) != 0 || fstatfs(mp->root_fd, &fs) != 0)
        return error_errno(err, errno, "open '%s'", root);
    mp->device = st.st_dev;
    mp->syncs_replaced = !keeps_order((long)fs.f_type);
    _cleanup_buf_ struct buf labels = BUF_INIT;
    mountpath_labels(mp, &labels);
    mp->errors = metric_get(M_mountpath_errors_total, labels.data);
    mp->meter = meter_new(labels.data);
    return 0;
}

static int take_lock(struct mountpath *mp, struct error *err)
{
    mp->lock_fd = openat(mp->root_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (mp->lock_fd < 0)
        return error_errno(err, errno, "open '%s/.dfc/lock'", mp->path);
    if (flock(mp->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return error_errno(err, errno, "lock '%s/.dfc/lock'", mp->path);
    return error_set(err, E_MOUNTPATH,
                     "'%s' is in use: another daemon holds it, or it was given "
                     "twice",
                     mp->path);
}

static int make_dirs(struct mountpath *mp, struct error *err)
{
    static const char *const names[] = {"obj", "tmp", "trash", "jobs", "docs", "uploads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        _cleanup_free_ char *path = xprintf("%s/.dfc/%s", mp->path, names[i]);
        int code = file_mkdirs(path, DIR_MODE, err);
        if (code != 0)
            return code;
    }
    int code = open_dir_at(mp->root_fd, "obj", mp, &mp->obj_fd, err);
    if (code == 0)
        code = open_dir_at(mp->root_fd, "tmp", mp, &mp->tmp_fd, err);
    return code != 0 ? code : open_dir_at(mp->root_fd, "trash", mp, &mp->trash_fd, err);
}

static int read_format(const char *dir, struct format **format, char **as_text, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/format.json", dir);
    _cleanup_buf_ struct buf text = BUF_INIT;
    int code = file_read_all(path, FORMAT_BYTES_MAX, &text, err);
    if (code != 0)
        return code;
    _cleanup_json_ json_t *doc = NULL;
    code = json_parse(text.data, text.len, &doc, err);
    if (code == 0)
        code = format_from_json(doc, format, err);
    if (code != 0)
        return error_recode(err, E_MOUNTPATH, "'%s'", path);
    if (as_text != NULL)
        *as_text = buf_steal(&text);
    return 0;
}

int mountpath_peek(const char *path, struct format **out, struct error *err)
{
    *out = NULL;
    int code = read_format(path, out, NULL, err);
    return code == E_NOT_FOUND ? 0 : code;
}

int mountpath_save_format(struct mountpath *mp, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/format.json", mp->path);
    _cleanup_json_ json_t *doc = format_to_json(mp->format);
    _cleanup_free_ char *text = json_text(doc);
    if (mp->format_text != NULL && strcmp(mp->format_text, text) == 0)
        return 0;
    int errnum = fault_errno("roster.write");
    if (errnum != 0)
        return error_errno(err, errnum, "write '%s'", path);
    int code = file_replace(path, text, strlen(text), FILE_MODE, err);
    if (code != 0)
        return code;
    free(mp->format_text);
    mp->format_text = steal(text);
    return 0;
}

static int make_format(struct mountpath *mp, const char *target_id, struct error *err)
{
    _cleanup_free_ uint64_t *ids = NULL;
    size_t buckets;
    int code = mountpath_buckets(mp, &ids, &buckets, err);
    if (code != 0)
        return code;
    if (buckets > 0)
        return error_set(err, E_MOUNTPATH,
                         "'%s' holds objects, but its format.json is gone: it cannot be known "
                         "whose they are",
                         mp->path);
    char id[16];
    random_id("mp-", id);
    mp->format = format_new(target_id, id, mp->path);
    return mountpath_save_format(mp, err);
}

static int check_format(struct mountpath *mp, const char *target_id, bool moved_ok,
                        struct error *err)
{
    int code = read_format(mp->path, &mp->format, &mp->format_text, err);
    if (code == E_NOT_FOUND)
        return make_format(mp, target_id, err);
    if (code != 0 || (code = format_check(mp->format, target_id, mp->path, moved_ok, err)) != 0 ||
        strcmp(mp->format->path, mp->path) == 0)
        return code;
    free(mp->format->path);
    mp->format->path = xstrdup(mp->path);
    return mountpath_save_format(mp, err);
}

/* fn() for every entry of the directory but its dots, until one fails or *stop. */
static int each_entry(const char *path, const atomic_bool *stop,
                      int (*fn)(const char *path, const atomic_bool *stop, struct error *err),
                      struct error *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return error_errno(err, errno, "open '%s'", path);
    int code = 0;
    errno = 0;
    for (struct dirent *e; code == 0 && !*stop && (e = readdir(dir)) != NULL; errno = 0) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        _cleanup_free_ char *entry = xprintf("%s/%s", path, e->d_name);
        code = fn(entry, stop, err);
    }
    if (code == 0 && !*stop && errno != 0)
        code = error_errno(err, errno, "read directory '%s'", path);
    closedir(dir);
    return code;
}

static int remove_any(const char *path, const atomic_bool *stop, struct error *err)
{
    (void)stop;
    return file_remove_tree(path, err);
}

static int empty_tmp(struct mountpath *mp, struct error *err)
{
    static const atomic_bool never = false;
    _cleanup_free_ char *path = xprintf("%s/.dfc/tmp", mp->path);
    return each_entry(path, &never, remove_any, err);
}

/* Writes the largest attribute that an object can have and reads it back: 0 or an errno. */
static int write_and_read_attribute(const struct mountpath *mp, const char *name)
{
    unsigned char value[ATTR_ENCODED_MAX], back[ATTR_ENCODED_MAX];
    random_bytes(value, sizeof value);
    _cleanup_close_ int fd =
        openat(mp->tmp_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0 || fsetxattr(fd, ATTR_XATTR, value, sizeof value, 0) != 0)
        return errno;
    if (fgetxattr(fd, ATTR_XATTR, back, sizeof back) != (ssize_t)sizeof back ||
        memcmp(value, back, sizeof back) != 0)
        return EIO;
    return 0;
}

/* A full disk answers nothing: reading must go on there, and writing finds out by itself. */
static int probe_attributes(struct mountpath *mp, struct error *err)
{
    char name[MOUNTPATH_TMP_NAME];
    mountpath_tmp_name(mp, name);
    int errnum = write_and_read_attribute(mp, name);
    unlinkat(mp->tmp_fd, name, 0);
    if (errnum == 0 || errnum == ENOSPC || errnum == EDQUOT)
        return 0;
    error_errno(err, errnum, "an attribute of %d bytes", ATTR_ENCODED_MAX);
    return error_recode(err, E_MOUNTPATH, "the file system of '%s' does not keep user attributes",
                        mp->path);
}

static int open_life(struct mountpath *mp, struct error *err)
{
    _cleanup_free_ uint64_t *ids = NULL;
    size_t buckets;
    int code = mountpath_buckets(mp, &ids, &buckets, err);
    _cleanup_free_ char *root = xprintf("%s/.dfc", mp->path);
    return code != 0 ? code : crash_state_open(root, buckets > 0, &mp->crash_state, err);
}

static int open_steps(struct mountpath *mp, const char *path, const char *target_id, bool moved_ok,
                      struct error *err)
{
    int code;
    if ((code = open_root(mp, path, err)) != 0 || (code = take_lock(mp, err)) != 0 ||
        (code = make_dirs(mp, err)) != 0 || (code = empty_tmp(mp, err)) != 0 ||
        (code = probe_attributes(mp, err)) != 0 ||
        (code = check_format(mp, target_id, moved_ok, err)) != 0)
        return code;
    return open_life(mp, err);
}

int mountpath_open(const char *path, const char *target_id, bool moved_ok, struct mountpath **out,
                   struct error *err)
{
    struct mountpath *mp = xcalloc(1, sizeof *mp);
    mp->lock_fd = mp->root_fd = mp->obj_fd = mp->tmp_fd = mp->trash_fd = -1;
    mp->durable = bucket_dirs_new();
    int code = open_steps(mp, path, target_id, moved_ok, err);
    if (code != 0) {
        mountpath_close(mp);
        return error_recode(err, E_MOUNTPATH, "mountpath '%s'", path);
    }
    *out = mp;
    return 0;
}

/* What may not have reached the disk is looked for when the index is rebuilt. */
static void close_life(struct mountpath *mp)
{
    struct error why = ERROR_INIT;
    if (crash_state_close(mp->crash_state) || mp->index == NULL)
        return;
    error_set(&why, E_IO, "the last flush of '%s' failed", mp->path);
    index_set_stale(mp->index, &why);
}

static void cut_off(const struct mountpath *mp)
{
    _cleanup_free_ char *dir = xprintf("%s/.dfc/index", mp->path);
    index_child_cut_off(dir);
}

void mountpath_close(struct mountpath *mp)
{
    if (mp == NULL)
        return;
    disk_free(mp->disk);
    reader_close(mp->reader);
    if (mp->bad)
        cut_off(mp);
    close_life(mp);
    index_close(mp->index);
    int fds[] = {mp->obj_fd, mp->tmp_fd, mp->trash_fd, mp->root_fd, mp->lock_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    meter_unref(mp->meter);
    bucket_dirs_free(mp->durable);
    format_free(mp->format);
    free(mp->format_text);
    free(mp->path);
    free(mp);
}

int mountpath_erase(const char *path, struct error *err)
{
    _cleanup_free_ char *root = xprintf("%s/.dfc", path);
    return file_remove_tree(root, err);
}

/* --- afterwards ------------------------------------------------------------------------------- */

int mountpath_buckets(const struct mountpath *mp, uint64_t **ids, size_t *count, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/obj", mp->path);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return error_errno(err, errno, "open '%s'", path);
    *ids = NULL;
    *count = 0;
    int code = 0;
    for (struct dirent *e; (errno = 0, e = readdir(dir)) != NULL;) {
        uint64_t id;
        if (parse_u64(e->d_name, &id, NULL) != 0)
            continue;
        *ids = xrealloc(*ids, (*count + 1) * sizeof **ids);
        (*ids)[(*count)++] = id;
    }
    if (errno != 0) /* a bucket that was overlooked would be one that seems not to exist */
        code = error_errno(err, errno, "read directory '%s'", path);
    closedir(dir);
    return code;
}

static int find_file(const char *path, const atomic_bool *stop, struct error *err)
{
    (void)stop;
    (void)path;
    return error_set(err, E_EXISTS, "a file");
}

static int find_file_below(const char *path, const atomic_bool *stop, struct error *err)
{
    return each_entry(path, stop, find_file, err);
}

static int find_file_in_bucket(const char *path, const atomic_bool *stop, struct error *err)
{
    return each_entry(path, stop, find_file_below, err);
}

int mountpath_has_objects(const struct mountpath *mp, bool *has, struct error *err)
{
    static const atomic_bool never;
    _cleanup_free_ char *path = xprintf("%s/.dfc/obj", mp->path);
    int code = each_entry(path, &never, find_file_in_bucket, err);
    *has = code == E_EXISTS;
    return *has ? 0 : code;
}

bool mountpath_is_whole(const struct mountpath *mp)
{
    static const char *const parts[] = {"format.json", "obj", "index/data.mdb"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (faccessat(mp->root_fd, parts[i], F_OK, 0) != 0 && errno == ENOENT)
            return false;
    }
    return true;
}

int mountpath_capacity(const struct mountpath *mp, uint64_t *total_bytes, uint64_t *available_bytes,
                       struct error *err)
{
    struct statvfs st;
    if (fstatvfs(mp->root_fd, &st) != 0)
        return error_errno(err, errno, "capacity of '%s'", mp->path);
    *total_bytes = (uint64_t)st.f_blocks * st.f_frsize;
    *available_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    return 0;
}

void mountpath_tmp_name(struct mountpath *mp, char out[static MOUNTPATH_TMP_NAME])
{
    snprintf(out, MOUNTPATH_TMP_NAME, "%llx", atomic_fetch_add(&mp->next_tmp, 1));
}

/* --- directories of objects ------------------------------------------------------------------- */

/* 0 or an errno.  Another thread may make the same one. */
static int make_dir(const struct mountpath *mp, const char *path)
{
    return mkdirat(mp->obj_fd, path, DIR_MODE) == 0 || errno == EEXIST ? 0 : errno;
}

/* What is made anew counts as durable no more, should somebody have removed what was there. */
static int make_way(struct mountpath *mp, uint64_t bucket_id, unsigned fan, const char *dir)
{
    char bucket[24];
    bucket_dirs_forget(mp->durable, bucket_id, fan);
    int errnum = make_dir(mp, dir);
    if (errnum != ENOENT)
        return errnum;
    snprintf(bucket, sizeof bucket, "%llu", (unsigned long long)bucket_id);
    bucket_dirs_remove(mp->durable, bucket_id);
    errnum = make_dir(mp, bucket);
    return errnum != 0 ? errnum : make_dir(mp, dir);
}

int mountpath_make_dir(struct mountpath *mp, uint64_t bucket_id, const struct object_path *p,
                       struct error *err)
{
    char dir[OBJECT_PATH_MAX];
    snprintf(dir, sizeof dir, "%.*s", p->dir_len, p->text);
    if (faccessat(mp->obj_fd, dir, F_OK, 0) == 0)
        return 0;
    int errnum = fault_errno("disk.mkdir");
    if (errnum == 0)
        errnum = make_way(mp, bucket_id, p->fan, dir);
    return errnum == 0 ? 0
                       : mountpath_failed(
                             mp, error_errno(err, errnum, "make '%s/.dfc/obj/%s'", mp->path, dir));
}

/* 0 or an errno. */
static int sync_bucket(const struct mountpath *mp, const char *bucket)
{
    _cleanup_close_ int fd = openat(mp->obj_fd, bucket, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? errno : file_sync(fd, "sync.bucket");
}

int mountpath_sync_way(struct mountpath *mp, uint64_t bucket_id, const struct object_path *p,
                       struct error *err)
{
    char bucket[24];
    if (bucket_dirs_has(mp->durable, bucket_id, p->fan))
        return 0;
    snprintf(bucket, sizeof bucket, "%llu", (unsigned long long)bucket_id);
    int errnum = sync_bucket(mp, bucket);
    if (errnum == ENOENT)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    if (errnum == 0 && !bucket_dirs_has_bucket(mp->durable, bucket_id))
        errnum = file_sync(mp->obj_fd, "sync.buckets");
    if (errnum == 0)
        bucket_dirs_add(mp->durable, bucket_id, p->fan);
    return errnum == 0 ? 0
                       : mountpath_failed(mp, error_errno(err, errnum, "sync '%s/.dfc/obj/%s'",
                                                          mp->path, bucket));
}

int mountpath_trash_bucket(struct mountpath *mp, uint64_t bucket_id, struct error *err)
{
    char name[24], trash[MOUNTPATH_TMP_NAME];
    snprintf(name, sizeof name, "%llu", (unsigned long long)bucket_id);
    random_id("bucket-", trash); /* not a number: these outlive a restart */
    bucket_dirs_remove(mp->durable, bucket_id);
    if (renameat(mp->obj_fd, name, mp->trash_fd, trash) == 0 || errno == ENOENT)
        return 0;
    return error_errno(err, errno, "remove '%s/.dfc/obj/%s'", mp->path, name);
}

static int remove_trashed_bucket(const char *path, const atomic_bool *stop, struct error *err)
{
    int code = each_entry(path, stop, remove_any, err); /* one of the 256 at a time */
    return code != 0 || *stop ? code : file_remove_tree(path, err);
}

int mountpath_empty_trash(struct mountpath *mp, const atomic_bool *stop, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/trash", mp->path);
    return each_entry(path, stop, remove_trashed_bucket, err);
}
