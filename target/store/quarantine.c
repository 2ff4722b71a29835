#include "target/store/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/store/tmp_file.h"

enum { DIR_MODE = 0750, NOTE_MODE = 0640, ENTRY_MAX = 128, NOTE_MAX = 64 << 10 };

#define DIRECTORY "quarantine"

static int make_directory(const struct mountpath *mp, struct error *err)
{
    if (mkdirat(mp->root_fd, DIRECTORY, DIR_MODE) != 0)
        return errno == EEXIST ? 0
                               : error_errno(err, errno, "make '%s/.dfc/" DIRECTORY "'", mp->path);
    int errnum = file_sync(mp->root_fd, "sync.directory");
    return errnum == 0 ? 0 : error_errno(err, errnum, "sync '%s/.dfc'", mp->path);
}

/* "7-3f09…-1234": an inode's number is not used again while the file is there. */
static void entry_of(const struct quarantine *q, char out[static ENTRY_MAX])
{
    const char *hash = strrchr(q->path, '/');
    snprintf(out, ENTRY_MAX, "%llu-%.64s-%llu", (unsigned long long)q->bucket_id,
             hash != NULL ? hash + 1 : q->path, (unsigned long long)q->inode);
}

static int link_file(const struct quarantine *q, const char *entry, struct error *err)
{
    _cleanup_free_ char *to = xprintf(DIRECTORY "/%s", entry);
    if (linkat(AT_FDCWD, q->path, q->mp->root_fd, to, 0) == 0 || errno == EEXIST)
        return 0;
    return error_errno(err, errno, "link '%s' into quarantine", q->path);
}

/* The sync of its directory is that of the link's, too. */
static int write_note(const struct quarantine *q, const char *entry, struct error *err)
{
    char when[32];
    _cleanup_free_ char *path = xprintf("%s/.dfc/" DIRECTORY "/%s.json", q->mp->path, entry);
    _cleanup_json_ json_t *doc = json_pack(
        "{s:I, s:o, s:s, s:o, s:s, s:s, s:s}", "bucket_id", (json_int_t)q->bucket_id, "name",
        json_string_escaped(q->name), "what", q->what, "detail", json_string_escaped(q->detail),
        "path", q->path, "job", q->job_id, "at", clock_format_rfc3339(clock_wall_ms(), when));
    _cleanup_free_ char *text = json_text(doc);
    return file_replace(path, text, strlen(text), NOTE_MODE, err);
}

/* It has come to the disk before it gets its name, whatever the object's durability was.  One of an
 * object without bytes is whole again. */
static int write_stub(const struct quarantine *q, const char *entry, int fd, struct error *err)
{
    int code = 0;
    if (q->attr != NULL) {
        struct attr a = *q->attr;
        a.flags |= ATTR_DURABLE;
        code = object_set_attr(q->mp, fd, &a, err);
    }
    if (code == 0 && (q->attr == NULL || q->attr->size > 0)) {
        _cleanup_free_ char *mark = xprintf("%s %s", q->job_id, entry);
        if (fsetxattr(fd, QUARANTINE_XATTR, mark, strlen(mark), 0) != 0)
            code = error_errno(err, errno, "mark the stub of '%s'", q->path);
    }
    int errnum = code == 0 ? file_sync(fd, "sync.file") : 0;
    return errnum == 0 ? code : error_errno(err, errnum, "sync the stub of '%s'", q->path);
}

static bool is_the_one(const struct quarantine *q, const char *tmp)
{
    struct stat st;
    return fstatat(q->mp->tmp_fd, tmp, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == q->inode;
}

static int exchange(const struct quarantine *q, const char *tmp, struct error *err)
{
    if (renameat2(q->mp->tmp_fd, tmp, AT_FDCWD, q->path, RENAME_EXCHANGE) == 0)
        return 0;
    return error_errno(err, errno, "exchange '%s' for a stub", q->path);
}

static int sync_place(const struct quarantine *q, struct error *err)
{
    const char *slash = strrchr(q->path, '/');
    _cleanup_free_ char *dir = xstrndup(q->path, (size_t)(slash - q->path));
    return file_fsync_dir(dir, err);
}

/* Who writes the name meanwhile, though nobody should, is not undone. */
static int put_in_place(const struct quarantine *q, const char *tmp, bool *taken, struct error *err)
{
    int errnum = fault_errno("scrub.quarantine");
    int code = errnum == 0 ? exchange(q, tmp, err)
                           : error_errno(err, errnum, "exchange '%s' for a stub", q->path);
    if (code != 0)
        return code;
    *taken = is_the_one(q, tmp);
    if (!*taken)
        code = exchange(q, tmp, err);
    return code != 0 ? code : sync_place(q, err);
}

static int replace_by_stub(const struct quarantine *q, const char *entry, bool *taken,
                           struct error *err)
{
    char tmp[MOUNTPATH_TMP_NAME];
    _cleanup_close_ int fd = -1;
    int code = object_tmp_create(q->mp, tmp, &fd, err);
    if (code != 0)
        return code;
    code = write_stub(q, entry, fd, err);
    if (code == 0)
        code = put_in_place(q, tmp, taken, err);
    unlinkat(q->mp->tmp_fd, tmp, 0); /* the stub, or a link to what is in quarantine */
    return code;
}

static bool is_still_there(const struct quarantine *q)
{
    struct stat st;
    return stat(q->path, &st) == 0 && st.st_ino == q->inode;
}

int quarantine_take(const struct quarantine *q, bool *taken, struct error *err)
{
    char entry[ENTRY_MAX];
    *taken = false;
    if (!is_still_there(q))
        return 0;
    entry_of(q, entry);
    int code = make_directory(q->mp, err);
    if (code == 0)
        code = link_file(q, entry, err);
    if (code == 0)
        code = write_note(q, entry, err);
    if (code == 0)
        code = replace_by_stub(q, entry, taken, err);
    if (code == 0 && *taken)
        log_error("damaged file moved aside", lstr("mountpath", q->mp->path), lstr("name", q->name),
                  lstr("quarantine", entry));
    return mountpath_failed(q->mp, code);
}

int quarantine_name_stub(const struct mountpath *mp, const char *path, const struct attr *attr,
                         struct error *err)
{
    char job[ATTR_JOB_MAX + 1];
    if (quarantine_look(path, job) != QUARANTINE_STUB)
        return 0;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "open '%s'", path);
    int code = object_set_attr(mp, fd, attr, err);
    int errnum = code == 0 ? file_sync(fd, "sync.file") : 0;
    return errnum == 0 ? code : error_errno(err, errnum, "sync '%s'", path);
}

enum { MARK_MAX = ATTR_JOB_MAX + 1 + ENTRY_MAX };

static bool read_mark(const char *path, char mark[static MARK_MAX])
{
    ssize_t len = getxattr(path, QUARANTINE_XATTR, mark, MARK_MAX - 1);
    mark[len >= 0 ? len : 0] = '\0';
    return len >= 0;
}

enum quarantine_look quarantine_look(const char *path, char job[static ATTR_JOB_MAX + 1])
{
    char mark[MARK_MAX];
    *job = '\0';
    bool marked = read_mark(path, mark);
    if (!marked && errno == ENOENT)
        return QUARANTINE_NO_FILE;
    if (!marked)
        return errno == ENODATA ? QUARANTINE_NO_STUB : QUARANTINE_UNKNOWN;
    snprintf(job, ATTR_JOB_MAX + 1, "%.*s", (int)strcspn(mark, " "), mark);
    return QUARANTINE_STUB;
}

int quarantine_mark_no_room(const struct mountpath *mp, const char *stub, int fd, struct error *err)
{
    char mark[MARK_MAX];
    const char *as = stub != NULL && read_mark(stub, mark) ? mark : QUARANTINE_NO_ROOM;
    if (fsetxattr(fd, QUARANTINE_XATTR, as, strlen(as), 0) == 0)
        return 0;
    return error_errno(err, errno, "mark a stub on '%s'", mp->path);
}

bool quarantine_is_no_room(const char *path)
{
    char mark[MARK_MAX];
    return read_mark(path, mark) && strcmp(mark, QUARANTINE_NO_ROOM) == 0;
}

bool quarantine_fd_is_stub(int fd)
{
    return fgetxattr(fd, QUARANTINE_XATTR, NULL, 0) >= 0;
}

int quarantine_copy_mark(const struct mountpath *mp, int from, int to, struct error *err)
{
    char mark[MARK_MAX];
    ssize_t len = fgetxattr(from, QUARANTINE_XATTR, mark, sizeof mark);
    if (len >= 0 && fsetxattr(to, QUARANTINE_XATTR, mark, (size_t)len, 0) == 0)
        return 0;
    return error_errno(err, errno, "copy the mark of a stub to '%s'", mp->path);
}

bool quarantine_fd_is_no_room(int fd)
{
    char mark[sizeof QUARANTINE_NO_ROOM];
    const ssize_t len = sizeof mark - 1;
    return fgetxattr(fd, QUARANTINE_XATTR, mark, sizeof mark) == len &&
           memcmp(mark, QUARANTINE_NO_ROOM, (size_t)len) == 0;
}

int quarantine_open(const struct mountpath *mp, const char *path)
{
    char mark[MARK_MAX];
    if (!read_mark(path, mark))
        return -1;
    const char *space = strchr(mark, ' ');
    if (space == NULL) {
        errno = ENOENT;
        return -1;
    }
    _cleanup_free_ char *entry = xprintf(DIRECTORY "/%s", space + 1);
    return openat(mp->root_fd, entry, O_RDONLY | O_CLOEXEC);
}

static bool is_note(const char *entry)
{
    size_t len = strlen(entry);
    return len > 5 && strcmp(entry + len - 5, ".json") == 0;
}

/* One that cannot be read names nothing. */
static void tell_name(const char *directory, const char *entry,
                      void (*each)(void *ctx, uint64_t bucket_id, const char *name), void *ctx)
{
    _cleanup_free_ char *path = xprintf("%s/%s", directory, entry);
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_json_ json_t *note = NULL;
    uint64_t bucket_id;
    const char *name;
    if (file_read_all(path, NOTE_MAX, &text, NULL) == 0 &&
        json_parse(buf_str(&text), text.len, &note, NULL) == 0 &&
        json_need_u64(note, "", "bucket_id", &bucket_id, NULL) == 0 &&
        json_need_str(note, "", "name", &name, NULL) == 0 && *name != '\0')
        each(ctx, bucket_id, name);
}

int quarantine_names(const struct mountpath *mp, size_t most,
                     void (*each)(void *ctx, uint64_t bucket_id, const char *name), void *ctx,
                     struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/" DIRECTORY, mp->path);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return errno == ENOENT ? 0 : error_errno(err, errno, "open '%s'", path);
    for (const struct dirent *e; most > 0 && (errno = 0, e = readdir(dir)) != NULL;) {
        if (!is_note(e->d_name))
            continue;
        most--;
        tell_name(path, e->d_name, each, ctx);
    }
    closedir(dir);
    return 0;
}

int quarantine_count(const struct mountpath *mp, uint64_t *files, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/" DIRECTORY, mp->path);
    DIR *dir = opendir(path);
    *files = 0;
    if (dir == NULL)
        return errno == ENOENT ? 0 : error_errno(err, errno, "open '%s'", path);
    int code = 0;
    for (const struct dirent *e; (errno = 0, e = readdir(dir)) != NULL;)
        *files += e->d_name[0] != '.' && !is_note(e->d_name);
    if (errno != 0)
        code = error_errno(err, errno, "read directory '%s'", path);
    closedir(dir);
    return code;
}

uint64_t quarantine_stamp(const struct mountpath *mp)
{
    struct stat st;
    _cleanup_free_ char *path = xprintf("%s/.dfc/" DIRECTORY, mp->path);
    if (stat(path, &st) == 0)
        return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
    return errno == ENOENT ? 1 : 0;
}
