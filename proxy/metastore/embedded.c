/* The embedded metastore: two files and a lock in a directory of the primary.
 *
 *   snapshot   one record (frame.h): the state document as of some sequence number S
 *   log        a first record that only carries the number B from which the log goes on, then one
 *              delta (cluster/documents/delta.h) for each commit: B+1, B+2, …
 *
 * Commit: append the delta with one write, fdatasync.  Fold: replace the snapshot by the present
 * state, then the log by an empty one.  A crash between the two leaves a log that begins before the
 * snapshot; its first records are skipped by number.  For the very first commit the log is made
 * before the snapshot, so that a snapshot without a log always means that the log was lost.
 *
 * After a failed append nobody knows what the file holds, and after a failed fold which file it is.
 * Then the log is not written again until a fold has put the state it stands for, and a new empty
 * log, in its place. */
#include "proxy/metastore/metastore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cluster/documents/delta.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/lock_file.h"
#include "proxy/metastore/frame.h"
#include "proxy/metastore/moved.h"

#define FILE_MAX ((size_t)1 << 32)
enum { FILE_MODE = 0600, DIR_MODE = 0700 };

static const char log_head[] = "{\"format\": 1}";

struct embedded {
    struct metastore base;
    char *dir;
    char *snapshot_path;
    char *log_path;
    int lock_fd;
    int log_fd; /* -1 before the first commit */
    uint64_t fold_bytes;
    uint64_t fold_at; /* the log's length at which the next fold is due */
    uint64_t end;     /* the log's length */
    uint64_t sequence;
    bool in_doubt; /* an append or a fold failed: fold before the next append */
    const struct cluster_state *loaded;
};

static struct embedded *embedded(struct metastore *m)
{
    return (struct embedded *)m; /* base is its first member */
}

/* --- reading --------------------------------------------------------------------------------- */

static int damaged_snapshot(const struct embedded *e, const char *why, struct error *err)
{
    return error_set(err, E_CORRUPT,
                     "'%s' is damaged: %s. Put the directory '%s' back from a backup; or move it "
                     "away and start with --import FILE, FILE being the newest state document that "
                     "a node has kept (GET /v1/cluster/state at its control address)",
                     e->snapshot_path, why, e->dir);
}

static int damaged_log(const struct embedded *e, size_t offset, const char *why, struct error *err)
{
    return error_set(err, E_CORRUPT,
                     "'%s' is damaged at byte %zu: %s. Put the directory '%s' back from a backup; "
                     "or give up every change from there on with: truncate -s %zu '%s'",
                     e->log_path, offset, why, e->dir, offset, e->log_path);
}

static int state_of_text(const char *text, size_t len, struct cluster_state **out,
                         struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int r = json_parse(text, len, &doc, err);
    return r != 0 ? r : state_from_json(doc, out, err);
}

/* *out stays NULL where there is no snapshot. */
static int read_snapshot(struct embedded *e, struct cluster_state **out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    struct frame record;
    const char *why = "it is empty";
    int r = file_read_all(e->snapshot_path, FILE_MAX, &file, err);
    if (r == E_NOT_FOUND)
        return 0;
    if (r != 0)
        return r;
    if (frame_get(file.data, file.len, 0, &record, &why) != FRAME_OK)
        return damaged_snapshot(e, why, err);
    if (record.end != file.len)
        return damaged_snapshot(e, "something follows its record", err);
    struct error inner = ERROR_INIT;
    if (state_of_text(record.data, record.len, out, &inner) != 0)
        return damaged_snapshot(e, inner.message, err);
    e->sequence = record.sequence;
    return 0;
}

static int apply_record(const struct frame *record, const struct cluster_state **state,
                        struct error *err)
{
    _cleanup_json_ json_t *delta = NULL;
    struct cluster_state *next;
    int r;
    if ((r = json_parse(record->data, record->len, &delta, err)) != 0 ||
        (r = state_patch(*state, delta, &next, err)) != 0)
        return r;
    state_unref(*state);
    *state = next;
    return 0;
}

/* One record of the log's body; `number` is what its sequence must be. */
static int take_record(struct embedded *e, const struct frame *record, size_t offset,
                       uint64_t number, const struct cluster_state **state, struct error *err)
{
    struct error inner = ERROR_INIT;
    if (record->sequence != number)
        return damaged_log(e, offset, "a record is missing before it", err);
    if (number <= e->sequence)
        return 0; /* the snapshot has it */
    if (apply_record(record, state, &inner) != 0)
        return damaged_log(e, offset, inner.message, err);
    e->sequence = number;
    return 0;
}

/* The head of a log says where it goes on: not after the snapshot. */
static int check_head(const struct embedded *e, const struct frame *head, bool snapshot,
                      struct error *err)
{
    if (head->len != strlen(log_head) || memcmp(head->data, log_head, head->len) != 0)
        return damaged_log(e, 0, "it is not a log of this format", err);
    if (head->sequence > e->sequence && snapshot)
        return damaged_log(e, 0, "it goes on from a later snapshot", err);
    return 0;
}

static int scan_log(struct embedded *e, const struct buf *file, bool snapshot,
                    const struct cluster_state **state, struct error *err)
{
    struct frame record;
    const char *why = "it is empty";
    if (frame_get(file->data, file->len, 0, &record, &why) != FRAME_OK)
        return damaged_log(e, 0, why, err); /* it was put there whole, by a rename */
    int r = check_head(e, &record, snapshot, err);
    uint64_t number = record.sequence;
    enum frame_status status = FRAME_END;
    for (e->end = record.end; r == 0; e->end = record.end) {
        status = frame_get(file->data, file->len, e->end, &record, &why);
        if (status != FRAME_OK)
            break;
        r = snapshot ? take_record(e, &record, e->end, ++number, state, err)
                     : damaged_snapshot(e, "it is missing, and the log has changes", err);
    }
    if (r == 0 && status == FRAME_DAMAGED)
        r = damaged_log(e, e->end, why, err);
    if (r == 0 && number < e->sequence)
        e->in_doubt = true; /* older than the snapshot: to be replaced before it goes on */
    return r;
}

static int cut_torn_tail(struct embedded *e, size_t size, struct error *err)
{
    if (e->end == size)
        return 0;
    log_warn("metastore: an unfinished change was dropped", lstr("log", e->log_path),
             lu64("offset", e->end), lu64("bytes", size - e->end));
    if (ftruncate(e->log_fd, (off_t)e->end) != 0 || fdatasync(e->log_fd) != 0)
        return error_errno(err, errno, "cut '%s' to %llu bytes", e->log_path,
                           (unsigned long long)e->end);
    return 0;
}

static int open_log(struct embedded *e, struct error *err)
{
    if (e->log_fd >= 0)
        close(e->log_fd);
    e->log_fd = open(e->log_path, O_RDWR | O_CLOEXEC);
    return e->log_fd >= 0 ? 0 : error_errno(err, errno, "open '%s'", e->log_path);
}

static int read_log(struct embedded *e, const struct cluster_state **state, struct error *err)
{
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    bool snapshot = *state != NULL;
    int r = file_read_all(e->log_path, FILE_MAX, &file, err);
    if (r == E_NOT_FOUND)
        return snapshot ? damaged_log(e, 0, "it is missing", err) : 0;
    if (r != 0 || (r = scan_log(e, &file, snapshot, state, err)) != 0)
        return r;
    if (!snapshot)
        return 0; /* the first commit was cut short: as new */
    if ((r = open_log(e, err)) != 0)
        return r;
    return cut_torn_tail(e, file.len, err);
}

/* --- writing --------------------------------------------------------------------------------- */

static int write_snapshot(struct embedded *e, const struct cluster_state *s, uint64_t sequence,
                          struct error *err)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    _cleanup_free_ char *text = json_text(doc);
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    frame_put(&file, sequence, text, strlen(text));
    return file_replace(e->snapshot_path, file.data, file.len, FILE_MODE, err);
}

static int write_empty_log(struct embedded *e, uint64_t sequence, struct error *err)
{
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    frame_put(&file, sequence, log_head, strlen(log_head));
    int r;
    if ((r = file_replace(e->log_path, file.data, file.len, FILE_MODE, err)) != 0 ||
        (r = open_log(e, err)) != 0)
        return r;
    e->end = file.len;
    e->fold_at = e->end + e->fold_bytes;
    return 0;
}

static int fold(struct embedded *e, const struct cluster_state *s, struct error *err)
{
    int r = write_snapshot(e, s, e->sequence, err);
    if (r == 0) {
        /* Where this fails the new log may stand there all the same, and log_fd be that of a file
         * without a name, in which nothing that is written would be found again. */
        e->in_doubt = true;
        r = write_empty_log(e, e->sequence, err);
    }
    if (r == 0)
        e->in_doubt = false;
    else
        error_wrap(err, "fold the metastore's log");
    return r;
}

static int commit_first(struct embedded *e, const struct cluster_state *to, struct error *err)
{
    int r;
    if ((r = write_empty_log(e, 1, err)) != 0 || (r = write_snapshot(e, to, 1, err)) != 0) {
        if (e->log_fd >= 0)
            close(e->log_fd);
        e->log_fd = -1;
        return r;
    }
    e->sequence = 1;
    return 0;
}

static int append(struct embedded *e, const struct buf *record, struct error *err)
{
    int errnum = fault_errno("metastore.write");
    if (errnum != 0)
        return error_errno(err, errnum, "append to '%s'", e->log_path);
    int r = file_pwrite_all(e->log_fd, record->data, record->len, e->end, err);
    if (r != 0) {
        error_wrap(err, "append to '%s'", e->log_path);
        return r;
    }
    errnum = fault_errno("disk.sync");
    if (errnum == 0 && fdatasync(e->log_fd) != 0)
        errnum = errno;
    return errnum == 0 ? 0 : error_errno(err, errnum, "sync '%s'", e->log_path);
}

static int commit_delta(struct embedded *e, const struct cluster_state *from,
                        const struct cluster_state *to, struct error *err)
{
    _cleanup_json_ json_t *delta = state_delta(from, to);
    _cleanup_free_ char *text = json_text(delta);
    _cleanup_(buf_done)
    struct buf record = BUF_INIT;
    frame_put(&record, e->sequence + 1, text, strlen(text));
    int r = append(e, &record, err);
    if (r != 0) {
        e->in_doubt = true;
        return r;
    }
    e->end += record.len;
    e->sequence++;
    return 0;
}

static int embedded_commit(struct metastore *m, const struct cluster_state *from,
                           const struct cluster_state *to, struct error *err)
{
    struct embedded *e = embedded(m);
    int r;
    if (e->log_fd < 0)
        return commit_first(e, to, err);
    if (e->in_doubt && (r = fold(e, from, err)) != 0)
        return r;
    if ((r = commit_delta(e, from, to, err)) != 0)
        return r;
    struct error late = ERROR_INIT;
    if (e->end >= e->fold_at && fold(e, to, &late) != 0) {
        /* The change itself is safe; the log grows until a fold succeeds, unless it is in doubt. */
        e->fold_at = e->end + e->fold_bytes;
        log_warn("metastore: the log could not be folded", lerr(&late));
    }
    return 0;
}

/* --- opening --------------------------------------------------------------------------------- */

/* What file_replace() left behind when the process was killed in it. */
static int remove_temporaries(const struct embedded *e, struct error *err)
{
    DIR *dir = opendir(e->dir);
    if (dir == NULL)
        return error_errno(err, errno, "list '%s'", e->dir);
    int r = 0;
    const struct dirent *entry;
    while (r == 0 && (entry = readdir(dir)) != NULL) {
        if (strstr(entry->d_name, ".tmp-") == NULL)
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) != 0 && errno != ENOENT)
            r = error_errno(err, errno, "remove '%s/%s'", e->dir, entry->d_name);
    }
    closedir(dir);
    return r;
}

static void embedded_close(struct metastore *m)
{
    if (m == NULL)
        return;
    struct embedded *e = embedded(m);
    state_unref(e->loaded);
    if (e->log_fd >= 0)
        close(e->log_fd);
    if (e->lock_fd >= 0)
        close(e->lock_fd);
    free(e->dir);
    free(e->snapshot_path);
    free(e->log_path);
    free(e);
}

/* Earlier builds let everybody read the documents, which hold backends' URLs and jobs' own. */
static void restrict_modes(const struct embedded *e)
{
    file_restrict(e->dir, DIR_MODE);
    file_restrict(e->snapshot_path, FILE_MODE);
    file_restrict(e->log_path, FILE_MODE);
}

static int embedded_read(struct embedded *e, bool moved_ok, struct error *err)
{
    struct cluster_state *snapshot = NULL;
    _cleanup_free_ char *lock_path = xprintf("%s/lock", e->dir);
    int r;
    if ((r = file_mkdirs(e->dir, DIR_MODE, err)) != 0)
        return r;
    restrict_modes(e);
    if ((r = lock_file_take(lock_path, &e->lock_fd, err)) != 0 ||
        (r = moved_ok ? 0 : moved_refuse(e->dir, err)) != 0 ||
        (r = remove_temporaries(e, err)) != 0 || (r = read_snapshot(e, &snapshot, err)) != 0)
        return r;
    e->loaded = snapshot;
    return read_log(e, &e->loaded, err);
}

static int embedded_open(const struct metastore_config *config, struct metastore **out,
                         struct error *err)
{
    struct embedded *e = xcalloc(1, sizeof *e);
    e->base.ops = &metastore_embedded;
    e->dir = xstrdup(config->dir);
    e->snapshot_path = xprintf("%s/snapshot", config->dir);
    e->log_path = xprintf("%s/log", config->dir);
    e->lock_fd = -1;
    e->log_fd = -1;
    e->fold_bytes = config->fold_bytes;
    e->fold_at = config->fold_bytes;
    int r = embedded_read(e, config->moved_ok, err);
    if (r != 0) {
        embedded_close(&e->base);
        return r;
    }
    *out = &e->base;
    return 0;
}

static int embedded_load(struct metastore *m, struct cluster_state **out, struct error *err)
{
    const struct embedded *e = embedded(m);
    (void)err; /* open() has read it all */
    *out = e->loaded != NULL ? state_ref(e->loaded) : NULL;
    return 0;
}

const struct metastore_ops metastore_embedded = {
    .scheme = "embedded",
    .open = embedded_open,
    .load = embedded_load,
    .commit = embedded_commit,
    .close = embedded_close,
};
