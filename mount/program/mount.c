/* mount: the parent waits until the root answers, the child serves.
 *
 *     parent --fork--> child: client, bucket, FUSE mount    errors go to the caller's stderr
 *        |   <--code-- child: leaves stdin, stdout, stderr   a byte through a pipe; none: it died
 *      stat(DIR)       child: serves until it is unmounted */
#include "mount/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/dfc.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/bucket/names.h"
#include "mount/fuse/session.h"
#include "mount/program/mounts.h"
#include "mount/program/options.h"
#include "mount/vfs/vfs.h"

#define THREADS 64 /* calls of programs at once: most of them wait */

struct mounted {
    const struct options *options;
    const char *bucket, *prefix;
    const char *directory; /* absolute */
    const char *ca_file;   /* absolute, or as given */
    int ready;             /* the pipe, or -1 */
};

static int exit_of(int result)
{
    static const struct {
        int result, code;
    } rows[] = {
        {DFC_INVALID, PROGRAM_USAGE},         {DFC_NOT_FOUND, PROGRAM_NOT_FOUND},
        {DFC_DENIED, PROGRAM_DENIED},         {DFC_UNREACHABLE, PROGRAM_UNREACHABLE},
        {DFC_TIMED_OUT, PROGRAM_UNREACHABLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].result == result)
            return rows[i].code;
    }
    return PROGRAM_FAILED;
}

/* Standard input, output and errors are the caller's: a pipe there ends when the caller returns. */
static int leave_caller(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0 || chdir("/") != 0)
        return program_fail(PROGRAM_FAILED, "leave the terminal: %s", strerror(errno));
    close(null);
    return PROGRAM_OK;
}

static int serve_mounted(const struct mounted *m, struct session *s)
{
    if (m->ready >= 0) {
        const char code = PROGRAM_OK;
        if (leave_caller() != PROGRAM_OK)
            return PROGRAM_FAILED;
        if (write(m->ready, &code, 1) != 1)
            return PROGRAM_FAILED; /* the caller was killed */
        close(m->ready);
    }
    log_info("mounted", lstr("bucket", m->bucket), lstr("prefix", m->prefix),
             lstr("directory", m->directory));
    int rc = session_serve(s);
    log_info("unmounted", lstr("directory", m->directory), li64("error", -rc));
    return rc == 0 ? PROGRAM_OK : PROGRAM_FAILED;
}

static int serve_vfs(const struct mounted *m, struct vfs *v)
{
    const struct options *o = m->options;
    const struct session_options session = {
        .source = o->url,
        .allow_other = o->allow_other || geteuid() == 0,
        .ttl_ms = o->ttl_ms,
        .threads = THREADS,
    };
    _cleanup_(session_freep)
    struct session *s = session_mount(&session, v, m->directory);
    if (s == NULL)
        return program_fail(PROGRAM_FAILED, "'%s' could not be mounted", m->directory);
    return serve_mounted(m, s);
}

static int serve_client(const struct mounted *m, struct dfc_client *client)
{
    struct dfc_error err;
    struct vfs *v;
    sigset_t all, before;
    const struct options *o = m->options;
    const struct vfs_options options = {
        .bucket = m->bucket,
        .prefix = m->prefix,
        .buffer_bytes = o->buffer_bytes,
        .readahead_bytes = o->readahead_bytes,
        .fetchers = (unsigned)o->parallel,
        .uid = (uid_t)o->uid,
        .gid = (gid_t)o->gid,
        .file_mode = (mode_t)o->file_mode,
        .directory_mode = (mode_t)o->directory_mode,
    };
    /* libfuse waits for a signal in the first thread: others must not get it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = vfs_open(&options, client, &v, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != DFC_OK)
        return program_fail(exit_of(rc), "%s", err.message);
    int code = serve_vfs(m, v);
    dfc_client_cancel(client);
    vfs_close(v);
    return code;
}

static int serve(const struct mounted *m)
{
    struct dfc_error err;
    struct error log_err = ERROR_INIT;
    struct dfc_client *client;
    const struct options *o = m->options;
    const struct dfc_client_options options = {
        .endpoints = o->endpoint,
        .attempts = (uint32_t)o->retries + 1,
        .idle_timeout_ms = (uint32_t)o->idle_timeout_ms,
        .idle_connections = (uint32_t)o->parallel + THREADS,
        .user_agent = "dfc-mount/" DFC_VERSION,
        .cluster_key_file = "",
        .ca_file = m->ca_file,
        .profile = o->profile,
        .keep_token = true,
        .insecure = o->insecure,
    };
    signal(SIGPIPE, SIG_IGN);
    if (o->log_file != NULL && log_set_file(o->log_file, &log_err) != 0)
        return program_fail(PROGRAM_FAILED, "%s", log_err.message);
    int rc = dfc_client_open(&options, &client, &err);
    if (rc != DFC_OK)
        return program_fail(exit_of(rc), "%s", err.message);
    int code = serve_client(m, client);
    dfc_client_close(client);
    return code;
}

/* The child's code; the root must answer, too. */
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
    const char code = (char)serve(m);
    /* Of a failure before the mount was there; later no one reads it. */
    if (code != PROGRAM_OK && write(m->ready, &code, 1) < 0)
        return PROGRAM_FAILED;
    return code;
}

static int check_directory(const char *given, const char *path)
{
    struct stat st;
    bool dead = false;
    if (path == NULL || stat(path, &st) != 0) {
        dead = errno == ENOTCONN || errno == ECONNABORTED;
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
    return PROGRAM_OK;
}

int program_mount(const struct options *o)
{
    _cleanup_free_ char *bucket = NULL;
    _cleanup_free_ char *prefix = NULL;
    _cleanup_free_ char *path = mounts_path(o->directory);
    int code = check_directory(o->directory, path);
    if (code != PROGRAM_OK)
        return code;
    if (!name_parse_url(o->url, &bucket, &prefix))
        return program_fail(PROGRAM_USAGE, "'%s' is not dfc://BUCKET[/PREFIX]", o->url);
    const char *ca_file = o->ca_file != NULL ? o->ca_file : getenv("DFC_CA_FILE");
    _cleanup_free_ char *ca_path =
        ca_file != NULL && ca_file[0] != '\0' ? realpath(ca_file, NULL) : NULL;
    struct mounted m = {
        .options = o,
        .bucket = bucket,
        .prefix = prefix,
        .directory = path,
        .ca_file = ca_path != NULL ? ca_path : ca_file,
        .ready = -1,
    };
    if (o->foreground)
        return serve(&m);
    close_range(STDERR_FILENO + 1, UINT_MAX, 0);
    return serve_apart(&m);
}
