/* mount: the caller waits until the root answers.
 *
 *     caller --fork--> supervisor: FUSE mount          errors go to the caller's stderr
 *        |                 |  --fork--> process: client, bucket; leaves stdin, stdout, stderr
 *        |   <--code-----------------   a byte through a pipe; none: it died
 *      stat(DIR)           |            serves until it is unmounted
 *                       unmounts, when a process has ended that is not replaced */
#include "mount/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/bucket/names.h"
#include "mount/fuse/session.h"
#include "mount/meta/engines.h"
#include "mount/program/disk.h"
#include "mount/program/mounts.h"
#include "mount/program/options.h"
#include "mount/program/serve.h"
#include "mount/program/supervisor.h"
#include "mount/tcmu/device.h"
#include "mount/vfs/ledger.h"
#include "mount/volume/calls.h"

static int serve_one(void *context)
{
    struct mounted *m = context;
    if (session_has_served(m->session))
        m->ready = -1; /* the caller has gone */
    return serve(m);
}

static bool can_go_on(void *context)
{
    const struct mounted *m = context;
    return !m->plogs && session_can_go_on(m->session); /* what writers had is gone */
}

/* Errors of a start in the background are the caller's; the log has what comes later. */
static int open_log(struct mounted *m)
{
    struct error err = ERROR_INIT;
    const char *path = m->options->log_file;
    if (path == NULL)
        return PROGRAM_OK;
    if (m->ready < 0)
        return log_set_file(path, &err) == 0 ? PROGRAM_OK
                                             : program_fail(PROGRAM_FAILED, "%s", err.message);
    m->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    return m->log >= 0
               ? PROGRAM_OK
               : program_fail(PROGRAM_FAILED, "open the log '%s': %s", path, strerror(errno));
}

/* The kernel wants the rights of root for it. */
static bool may_pass(const struct mounted *m)
{
    return m->bucket != NULL && !m->plogs && !m->image && m->cache_directories != NULL &&
           !m->options->no_passthrough && geteuid() == 0;
}

static int supervise_fuse(struct mounted *m)
{
    const struct options *o = m->options;
    _cleanup_free_ char *shown = engines_shown(o->url); /* everybody reads the table of mounts */
    const struct session_options options = {
        .source = shown,
        .allow_other = o->allow_other || geteuid() == 0,
        .writable = o->writable || ((m->bucket == NULL || m->plogs) && !o->read_only),
        .pass = may_pass(m),
        .attr_ttl_ms = o->attr_ttl_ms,
        .entry_ttl_ms = o->entry_ttl_ms,
        .threads = m->plogs ? SERVE_PLOG_THREADS : SERVE_THREADS,
    };
    const struct supervised what = {
        .serve = serve_one,
        .started = serve_started,
        .can_go_on = can_go_on,
        .context = m,
        .restarts = o->restarts,
    };
    _cleanup_close_ int ledger = ledger_memory();
    if (ledger < 0)
        return program_fail(PROGRAM_FAILED, "memory for the kernel's numbers: %s", strerror(errno));
    _cleanup_(volume_memory_freep)
    struct volume_memory *calls = volume_memory_new();
    if (calls == NULL)
        return program_fail(PROGRAM_FAILED, "memory for the kernel's calls: %s", strerror(errno));
    m->ledger = ledger;
    m->calls = calls;
    m->opened_s = clock_wall_ms() / 1000;
    m->supervisor = getpid();
    _cleanup_(session_unmountp)
    struct session *s = session_mount(&options, m->directory);
    if (s == NULL)
        return program_fail(PROGRAM_FAILED, "'%s' could not be mounted", m->directory);
    m->session = s;
    const int code = supervisor_run(&what);
    if (code != PROGRAM_OK && session_has_served(s) && !supervisor_was_stopped()) {
        session_leave(s);
        log_error("the mount is dead: programs get ENOTCONN until 'dfcctl fs umount'",
                  lstr("directory", m->directory));
    }
    return code;
}

static int supervise(struct mounted *m)
{
    signal(SIGPIPE, SIG_IGN);
    int code = open_log(m);
    if (code != PROGRAM_OK)
        return code;
    return m->image && options_by_tcmu(m->options) ? disk_supervise(m) : supervise_fuse(m);
}

/* The exit code of the processes behind; the root must answer, too. */
static int await(int ready, const char *directory)
{
    char code;
    struct stat st;
    ssize_t n;
    do
        n = read(ready, &code, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        return program_fail(PROGRAM_FAILED, "the process that serves '%s' has died", directory);
    if (code == PROGRAM_OK && stat(directory, &st) != 0)
        return program_fail(PROGRAM_FAILED, "'%s' does not answer: %s", directory, strerror(errno));
    return code;
}

static int serve_apart(struct mounted *m)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return program_fail(PROGRAM_FAILED, "pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        return program_fail(PROGRAM_FAILED, "fork: %s", strerror(errno));
    if (child > 0) {
        close(ends[1]);
        return await(ends[0], m->directory);
    }
    close(ends[0]);
    setsid();
    m->ready = ends[1];
    int rc = supervise(m);
    const char code = (char)rc;
    /* Of a failure before the mount was ready; later no one reads it. */
    if (rc > 0 && write(m->ready, &code, 1) < 0)
        return PROGRAM_FAILED;
    return rc < 0 ? PROGRAM_FAILED : rc;
}

static int check_directory(const char *given, const char *path)
{
    struct stat st;
    bool dead = false;
    if (path == NULL || stat(path, &st) != 0) {
        dead = mounts_is_dead(errno);
        if (!dead)
            return program_fail(PROGRAM_NOT_FOUND, "'%s': %s: make the directory first", given,
                                strerror(errno));
    }
    if (mounts_has(path))
        return program_fail(PROGRAM_FAILED,
                            dead ? "'%s' is a mount whose process has died: 'dfcctl fs umount' "
                                   "clears it"
                                 : "'%s' is mounted already: 'dfcctl fs umount' ends that",
                            given);
    if (dead || !S_ISDIR(st.st_mode))
        return program_fail(PROGRAM_USAGE, "'%s' is no directory", given);
    struct device disk;
    device_name(&disk, path);
    if (device_owner(&disk) != 0)
        return program_fail(PROGRAM_FAILED,
                            "'%s' is mounted already: 'dfcctl vdisc umount' ends that", given);
    return PROGRAM_OK;
}

/* "DIR:DIR…" with absolute paths, since later processes are in another directory.  What is not
 * there stays as it is: the cache says so. */
static char *absolute_list(const char *list)
{
    char *save = NULL;
    struct buf out = BUF_INIT;
    _cleanup_free_ char *copy = xstrdup(list);
    for (char *at = strtok_r(copy, ":", &save); at != NULL; at = strtok_r(NULL, ":", &save)) {
        _cleanup_free_ char *path = realpath(at, NULL);
        buf_printf(&out, "%s%s", out.len > 0 ? ":" : "", path != NULL ? path : at);
    }
    return buf_steal(&out);
}

static bool is_in(const char *path, const char *directory)
{
    const size_t len = strlen(directory);
    return strncmp(path, directory, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* What the mount reads itself must not be below it: it would wait for itself.  Paths are
 * absolute. */
static int check_apart(const struct options *o, const char *caches, const char *directory)
{
    static const char sqlite[] = "sqlite3://";
    char *save = NULL;
    _cleanup_free_ char *copy = xstrdup(caches != NULL ? caches : "");
    for (char *at = strtok_r(copy, ":", &save); at != NULL; at = strtok_r(NULL, ":", &save)) {
        if (is_in(at, directory))
            return program_fail(PROGRAM_USAGE,
                                "cache directory '%s' is where the mount will be: give another one",
                                at);
    }
    if (strncmp(o->url, sqlite, strlen(sqlite)) != 0)
        return PROGRAM_OK;
    _cleanup_free_ char *database = realpath(o->url + strlen(sqlite), NULL);
    if (database == NULL || !is_in(database, directory))
        return PROGRAM_OK;
    return program_fail(PROGRAM_USAGE, "the database '%s' is below '%s': mount elsewhere", database,
                        directory);
}

/* What is mounted; a volume has no bucket. */
static int parse_url(const struct options *o, bool image, char **bucket, char **prefix)
{
    if (options_of_volume(o))
        return PROGRAM_OK;
    if (!name_parse_url(o->url, bucket, prefix))
        return program_fail(PROGRAM_USAGE, "'%s' is not dfc://BUCKET%s", o->url,
                            image ? "/NAME.vdsc" : "[/PREFIX]");
    if (!image)
        return PROGRAM_OK;
    const size_t len = strlen(*prefix);
    if (len == 0 || o->url[strlen(o->url) - 1] == '/')
        return program_fail(PROGRAM_USAGE, "'%s' names no image: expected dfc://BUCKET/NAME.vdsc",
                            o->url);
    (*prefix)[len - 1] = '\0'; /* the slash of a prefix */
    return o->writable ? program_fail(PROGRAM_USAGE, "an image is not writable: omit --writable")
                       : PROGRAM_OK;
}

int program_mount(const struct options *o)
{
    _cleanup_free_ char *bucket = NULL;
    _cleanup_free_ char *prefix = NULL;
    _cleanup_free_ char *path = mounts_path(o->directory);
    const bool image = strcmp(o->verb, "mount-image") == 0;
    int code = check_directory(o->directory, path);
    if (code == PROGRAM_OK)
        code = parse_url(o, image, &bucket, &prefix);
    if (code != PROGRAM_OK)
        return code;
    const char *ca_file = o->ca_file != NULL ? o->ca_file : getenv("DFC_CA_FILE");
    _cleanup_free_ char *ca_path =
        ca_file != NULL && ca_file[0] != '\0' ? realpath(ca_file, NULL) : NULL;
    _cleanup_free_ char *caches =
        o->cache_directories != NULL ? absolute_list(o->cache_directories) : NULL;
    code = check_apart(o, caches, path);
    if (code != PROGRAM_OK)
        return code;
    _cleanup_free_ char *key_path =
        o->group_key_file != NULL ? realpath(o->group_key_file, NULL) : NULL;
    struct mounted m = {
        .options = o,
        .group_key_file = key_path != NULL            ? key_path
                          : o->group_key_file != NULL ? o->group_key_file
                                                      : "",
        .cache_directories = caches,
        .bucket = bucket,
        .prefix = prefix,
        .image = image,
        .plogs = strcmp(o->verb, "mount-plogs") == 0,
        .directory = path,
        .ca_file = ca_path != NULL ? ca_path : ca_file,
        .log = -1,
        .ready = -1,
    };
    if (o->foreground) {
        code = supervise(&m);
        return code < 0 ? program_fail(PROGRAM_FAILED, "a process that served was killed") : code;
    }
    close_range(STDERR_FILENO + 1, UINT_MAX, 0);
    return serve_apart(&m);
}
