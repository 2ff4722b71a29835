/* warmup: what is below paths of a mount comes into its disk cache.
 *
 *     words, lines of a list -> fts(3) -> a file, in ranges -> workers -> CONTROL_WARM, by pieces
 *
 * A worker takes the next range under a lock, so trees and lists of any size take constant
 * memory. */
#include "mount/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"
#include "mount/fuse/control.h"
#include "mount/program/options.h"

#define RANGE (64u << 20) /* of one worker at once */
#define STEP (4u << 20)   /* of one call, which no signal ends */

struct warmup {
    const struct options *options;
    pthread_mutex_t lock; /* guards all below */
    size_t next;          /* of the words */
    FILE *list;           /* paths, one a line; NULL: none is left */
    FTS *tree;            /* of one path; NULL: the next one is due */
    char *path;           /* of the file whose ranges are handed out; NULL: none */
    uint64_t size, offset;
    uint64_t files, bytes, had, has, failures;
    int fatal; /* an exit code: no other file will do better */
};

struct range {
    char *path;
    uint64_t offset, size;
};

/* ---- failures ---- */

static void failed(struct warmup *w, const char *path, int errnum)
{
    static const struct {
        int errnum;
        const char *text;
        int fatal;
    } rows[] = {
        {ENOTTY, "this is not in a mounted bucket or volume", PROGRAM_USAGE},
        {EOPNOTSUPP, "the mount has no cache: mount it with --cache-dir or --cache-group",
         PROGRAM_USAGE},
        {ENODEV, "the mount's cache group has no members: start them, or see 'dfcctl fs cache ls'",
         PROGRAM_FAILED},
        {ENOSPC, "the disk cache has not taken it: see --cache-size and --cache-free", 0},
        {ESTALE, "the object was replaced or deleted meanwhile", 0},
    };
    const char *text = strerror(errnum);
    pthread_mutex_lock(&w->lock);
    const bool is_late = w->fatal != 0; /* another worker has said why */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].errnum != errnum)
            continue;
        text = rows[i].text;
        if (w->fatal == 0)
            w->fatal = rows[i].fatal;
    }
    w->failures++;
    pthread_mutex_unlock(&w->lock);
    if (is_late)
        return;
    program_fail(PROGRAM_PARTLY, "'%s': %s", path, text);
}

/* ---- what comes next ---- */

/* A word, or a line that is not empty; malloc'ed.  NULL: there is none. */
static char *next_path(struct warmup *w)
{
    char *line = NULL;
    size_t room = 0;
    if (w->next < w->options->path_count)
        return xstrdup(w->options->paths[w->next++]);
    while (w->list != NULL && getline(&line, &room, w->list) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0')
            return line;
    }
    free(line);
    return NULL;
}

/* Another worker may go on in the tree meanwhile. */
static void failed_unlocked(struct warmup *w, const char *text, int errnum)
{
    _cleanup_free_ char *path = xstrdup(text);
    pthread_mutex_unlock(&w->lock);
    failed(w, path, errnum);
    pthread_mutex_lock(&w->lock);
}

/* The tree of the next path. */
static bool next_tree(struct warmup *w)
{
    _cleanup_free_ char *path = next_path(w);
    char *const paths[] = {path, NULL};
    if (path == NULL)
        return false;
    w->tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    if (w->tree == NULL)
        failed_unlocked(w, path, errno);
    return true;
}

/* The next entry; NULL: there is none. */
static FTSENT *next_entry(struct warmup *w)
{
    while (w->fatal == 0) {
        FTSENT *e = w->tree != NULL ? fts_read(w->tree) : NULL;
        if (e != NULL)
            return e;
        if (w->tree != NULL)
            fts_close(steal(w->tree));
        if (!next_tree(w))
            return NULL;
    }
    return NULL;
}

/* The next file; under the lock, but for failures.  False: there is none. */
static bool next_file(struct warmup *w)
{
    FTSENT *e;
    while ((e = next_entry(w)) != NULL) {
        if (e->fts_info == FTS_F) {
            w->path = xstrdup(e->fts_path);
            w->size = (uint64_t)e->fts_statp->st_size;
            w->offset = 0;
            w->files++;
            w->bytes += w->size;
            return true;
        }
        if (e->fts_info != FTS_DNR && e->fts_info != FTS_ERR && e->fts_info != FTS_NS)
            continue;
        failed_unlocked(w, e->fts_path, e->fts_errno);
    }
    return false;
}

static bool next_range(struct warmup *w, struct range *r)
{
    pthread_mutex_lock(&w->lock);
    bool found = w->fatal == 0 && (w->path != NULL || next_file(w));
    if (found) {
        uint64_t rest = w->size - w->offset;
        *r = (struct range){
            .path = xstrdup(w->path),
            .offset = w->offset,
            .size = rest < RANGE ? rest : RANGE,
        };
        w->offset += r->size;
        if (w->offset == w->size) {
            free(w->path);
            w->path = NULL;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return found;
}

/* ---- workers ---- */

static int warm_range(struct warmup *w, const struct range *r)
{
    uint64_t at = r->offset, end = r->offset + r->size;
    _cleanup_close_ int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    do { /* of an empty file, too: is it in a mount? */
        struct control_warm c = {
            .offset = at,
            .size = end - at < STEP ? end - at : STEP,
            .fetch = !w->options->check,
        };
        if (ioctl(fd, CONTROL_WARM, &c) != 0)
            return errno;
        at += c.size;
        pthread_mutex_lock(&w->lock);
        w->had += c.had_bytes;
        w->has += c.has_bytes;
        pthread_mutex_unlock(&w->lock);
    } while (at < end);
    return 0;
}

static void *work(void *context)
{
    struct warmup *w = context;
    struct range r;
    while (next_range(w, &r)) {
        int errnum = warm_range(w, &r);
        if (errnum != 0)
            failed(w, r.path, errnum);
        free(r.path);
    }
    return NULL;
}

static void run_workers(struct warmup *w)
{
    uint64_t started = 0;
    pthread_t *threads = xcalloc(w->options->parallel, sizeof *threads);
    while (started < w->options->parallel && pthread_create(&threads[started], NULL, work, w) == 0)
        started++;
    if (started == 0)
        work(w);
    for (uint64_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

static void report(const struct warmup *w)
{
    char bytes[16], had[16], has[16];
    format_size(w->bytes, bytes);
    format_size(w->had, had);
    format_size(w->has, has);
    if (w->options->check)
        printf("%" PRIu64 " files, %s: %s are cached\n", w->files, bytes, has);
    else
        printf("%" PRIu64 " files, %s: %s were cached, %s are cached now\n", w->files, bytes, had,
               has);
}

int program_warmup(const struct options *o)
{
    struct warmup w = {.options = o, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct stat st;
    for (size_t i = 0; i < o->path_count; i++) {
        if (stat(o->paths[i], &st) != 0)
            return program_fail(PROGRAM_NOT_FOUND, "'%s': %s", o->paths[i], strerror(errno));
    }
    if (o->list != NULL)
        w.list = strcmp(o->list, "-") == 0 ? stdin : fopen(o->list, "re");
    if (o->list != NULL && w.list == NULL)
        return program_fail(PROGRAM_NOT_FOUND, "open the list '%s': %s", o->list, strerror(errno));
    run_workers(&w);
    int code = PROGRAM_OK;
    if (w.list != NULL && ferror(w.list))
        code = program_fail(PROGRAM_FAILED, "read the list '%s': %s", o->list, strerror(errno));
    if (w.tree != NULL)
        fts_close(w.tree);
    if (w.list != NULL)
        fclose(w.list);
    free(w.path);
    if (w.fatal != 0 || code != PROGRAM_OK)
        return w.fatal != 0 ? w.fatal : code;
    report(&w);
    return w.failures > 0 ? PROGRAM_PARTLY : PROGRAM_OK;
}
