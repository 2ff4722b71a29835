/* The SCSI disk of a device: it appears, is set up, and goes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/tcmu/device_parts.h"
#include "mount/tcmu/server.h"
#include "mount/tcmu/sysfile.h"

#define GROUP "/tpgt_1"
#define LUN GROUP "/lun/lun_0"
#define SCSI "/sys/bus/scsi/devices"
#define BLOCK "/sys/block"

/* --- it appears ------------------------------------------------------------------------------- */

struct looking {
    char *folder; /* of the SCSI device */
    char *name;   /* "sdX" */
};

/* The port says where its disk is: "HOST:0:TARGET".  NULL with errno. */
static char *folder_of(const struct device *d)
{
    _cleanup_free_ char *path = device_port(d, GROUP "/address");
    _cleanup_free_ char *address = sysfile_read(path);
    return address != NULL ? xprintf(SCSI "/%s:0", address) : NULL;
}

static bool has_appeared(void *context)
{
    struct looking *l = context;
    _cleanup_free_ char *blocks = xprintf("%s/block", l->folder);
    l->name = sysfile_first(blocks, "sd");
    if (l->name == NULL)
        return false;
    _cleanup_free_ char *path = xprintf("/dev/%s", l->name);
    if (access(path, F_OK) == 0)
        return true;
    free(steal(l->name));
    return false;
}

static int find(const struct device *d, struct looking *l, struct error *err)
{
    l->folder = folder_of(d);
    if (l->folder == NULL)
        return error_errno(err, errno, "read the address of port %s", d->name);
    if (device_wait(has_appeared, l))
        return 0;
    return error_set(err, E_IO,
                     "no disk has appeared at '%s': the kernel's log says why (the "
                     "module sd_mod may be missing)",
                     l->folder);
}

/* What a disk does without is left out: the values are better, not needed. */
static void tune(const char *name)
{
    static const struct {
        const char *file, *value;
    } rows[] = {{"queue/scheduler", "none"}, {"queue/read_ahead_kb", "4096"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_free_ char *path = xprintf(BLOCK "/%s/%s", name, rows[i].file);
        sysfile_write(path, rows[i].value, NULL);
    }
}

/* 1: it is new. */
static int link_up(const struct device *d, struct error *err)
{
    _cleanup_free_ char *core = device_core(d, "");
    _cleanup_free_ char *below = xprintf(LUN "/%s", d->name);
    _cleanup_free_ char *link = device_port(d, below);
    if (symlink(core, link) == 0)
        return 1;
    return errno == EEXIST ? 0 : error_errno(err, errno, "link '%s'", link);
}

/* A nexus is a session of an initiator: the port's own name will do. */
static int make_port(const struct device *d, struct error *err)
{
    static const char *const folders[] = {"", GROUP, LUN};
    _cleanup_free_ char *nexus = device_port(d, GROUP "/nexus");
    int rc = sysfile_make(DEVICE_LOOPBACK, err);
    for (size_t i = 0; rc == 0 && i < sizeof folders / sizeof *folders; i++) {
        _cleanup_free_ char *path = device_port(d, folders[i]);
        rc = sysfile_make(path, err);
        _cleanup_free_ char *there = i == 1 ? sysfile_read(nexus) : NULL;
        if (rc == 0 && i == 1 && (there == NULL || there[0] == '\0')) {
            _cleanup_free_ char *name = xprintf("naa.%016" PRIx64, d->naa);
            rc = sysfile_write(nexus, name, err);
        }
    }
    return rc;
}

int device_attach(const struct device *d, char **path, struct error *err)
{
    struct looking l = {.name = NULL};
    _cleanup_close_ int lock = device_lock(err);
    int made = lock < 0 ? lock : make_port(d, err);
    cleanup_close_(&lock); /* the kernel asks the disk: nobody else waits for that */
    lock = -1;
    if (made == 0)
        made = link_up(d, err);
    int rc = made < 0 ? made : find(d, &l, err);
    if (rc == 0) {
        _cleanup_free_ char *timeout = xprintf("%s/timeout", l.folder);
        rc = sysfile_write(timeout, DEVICE_NEVER_S, err);
        if (made == 1)
            tune(l.name);
        *path = xprintf("/dev/%s", l.name);
    }
    free(l.folder);
    free(l.name);
    return rc;
}

char *device_path(const struct device *d)
{
    _cleanup_free_ char *folder = folder_of(d);
    _cleanup_free_ char *blocks = folder != NULL ? xprintf("%s/block", folder) : NULL;
    _cleanup_free_ char *name = blocks != NULL ? sysfile_first(blocks, "sd") : NULL;
    return name != NULL ? xprintf("/dev/%s", name) : NULL;
}

bool device_is_idle(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
    return fd >= 0 || errno == ENOENT || errno == ENXIO || errno == ENODEV;
}

/* --- it goes ---------------------------------------------------------------------------------- */

static int read_nothing(void *context, uint64_t offset, size_t size, void *to)
{
    (void)context;
    (void)offset;
    (void)size;
    (void)to;
    return -EIO;
}

static int remove_port(const struct device *d, struct error *err)
{
    _cleanup_free_ char *below = xprintf(LUN "/%s", d->name);
    _cleanup_free_ char *nexus = device_port(d, GROUP "/nexus");
    const char *const paths[] = {below, LUN, GROUP, ""};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof paths / sizeof *paths; i++) {
        _cleanup_free_ char *path = device_port(d, paths[i]);
        if (paths[i][0] != '\0' && strcmp(paths[i], GROUP) == 0)
            sysfile_write(nexus, "NULL", NULL);
        rc = sysfile_remove(path, err);
    }
    return rc;
}

/* The kernel asks the disk while it removes it, and reads that wait must end.  No error: the
 * caller has ended. */
static void reply_until_end(const struct device *d, int caller)
{
    struct server *s;
    struct device_ring r;
    struct error e = ERROR_INIT;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    int rc = device_open(d, &r, &e);
    const struct server_options options = {
        .uio = r.uio,
        .map = r.map,
        .bytes = r.bytes,
        .disk = {.sectors = 1, .read_most = DEVICE_READ_MOST, .naa = d->naa},
        .threads = 2,
        .read = read_nothing,
    };
    if (rc == 0)
        rc = server_start(&options, &s, &e);
    if (write(caller, &e, sizeof e) != (ssize_t)sizeof e || rc != 0)
        return;
    struct pollfd fds[] = {{.fd = caller, .events = POLLIN},
                           {.fd = server_failed_fd(s), .events = POLLIN}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        continue;
    server_stop(s);
}

/* Another process replies: this one cannot be killed while the kernel removes the disk, and then
 * would keep the ring, and its threads would be gone. */
static int start_replies(const struct device *d, pid_t *server, int *end, struct error *err)
{
    int ends[2];
    struct error e = ERROR_INIT;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return error_errno(err, errno, "make a pair of sockets");
    *server = fork();
    if (*server == 0) {
        close(ends[0]);
        reply_until_end(d, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    *end = ends[0];
    ssize_t n = -1;
    while (*server > 0 && (n = read(ends[0], &e, sizeof e)) < 0 && errno == EINTR)
        continue;
    if (n != (ssize_t)sizeof e)
        return error_set(err, E_IO, "no process replies for disk '%s'", d->name);
    if (e.code != 0)
        *err = e;
    return e.code;
}

static void end_replies(pid_t server, int end)
{
    if (end >= 0)
        close(end);
    while (server > 0 && waitpid(server, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Only a device without a ring has nobody to reply for it. */
static int remove_disk(const struct device *d, struct error *err)
{
    int end = -1;
    pid_t server = -1;
    struct error e = ERROR_INIT;
    _cleanup_free_ char *port = device_port(d, "");
    int rc = access(port, F_OK) == 0 ? start_replies(d, &server, &end, &e) : E_NOT_FOUND;
    if (rc == 0 || rc == E_NOT_FOUND)
        rc = remove_port(d, err);
    else
        *err = e;
    end_replies(server, end);
    return rc;
}

int device_remove(const struct device *d, pid_t supervisor, struct error *err)
{
    _cleanup_close_ int lock = device_lock(err);
    _cleanup_free_ char *core = device_core(d, "");
    int rc = lock < 0 ? lock : device_check_owner(d, supervisor, err);
    if (rc == 0)
        rc = remove_disk(d, err);
    if (rc == 0)
        rc = sysfile_remove(core, err);
    if (rc == 0) {
        sysfile_remove(DEVICE_HBA, NULL); /* other devices may be there */
        sysfile_remove(DEVICE_LOOPBACK, NULL);
    }
    return rc;
}
