/* A dataset image as a disk of the kernel, with its file system mounted.
 *
 *     supervisor --fork--> process: image, device, ring
 *         |                   |  --fork--> mounter, the first time: disk, mount
 *         |                   |  killed: commands stay in the ring, and readers wait
 *         |  --fork--> process: goes on with the ring
 *         |                   |  ends when nothing has the disk mounted
 *      removes the device
 *
 * The kernel asks the disk while it makes, mounts and removes it, and who waits for that cannot be
 * killed.  So the process that replies never waits for it: its end always frees the ring. */
#include "mount/program/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/dfc.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/image/objects.h"
#include "mount/program/client.h"
#include "mount/program/disk_parts.h"
#include "mount/program/mounts.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/program/serve.h"
#include "mount/program/supervisor.h"
#include "mount/tcmu/device.h"
#include "mount/tcmu/server.h"

#define THREADS 32
#define LOOK_MS 1000 /* for a disk that is still mounted elsewhere */

/* --- a process that serves -------------------------------------------------------------------- */

struct serving {
    struct mounted *m;
    struct vdisc *vdisc;
    struct objects objects;
    struct device_ring ring;
    struct server *server;
};

static int read_image(void *context, uint64_t offset, size_t size, void *to)
{
    const struct objects_read r = {.offset = offset, .size = size};
    return objects_read(context, &r, to);
}

/* This disk: another one may be mounted at the directory meanwhile. */
static bool is_mounted(const struct mounted *m)
{
    _cleanup_free_ char *source = mounts_source(m->directory, "iso9660");
    return source != NULL && strcmp(source, m->disk->path) == 0;
}

static int mount_disk(const struct mounted *m, struct error *err)
{
    const char *directory = m->directory, *path = m->disk->path;
    if (is_mounted(m) ||
        mount(path, directory, "iso9660", MS_RDONLY | MS_NODEV | MS_NOSUID, NULL) == 0)
        return 0;
    if (errno == ENODEV)
        return error_set(err, E_UNSUPPORTED,
                         "the kernel has no file system iso9660: run 'modprobe isofs', or use "
                         "'--mode fuse'");
    return error_errno(err, errno, "mount '%s' at '%s'", path, directory);
}

/* --- the process that mounts ------------------------------------------------------------------ */

static int attach(struct mounted *m, struct error *err)
{
    _cleanup_free_ char *path = NULL;
    int rc = device_attach(&m->disk->device, &path, err);
    if (rc == 0)
        snprintf(m->disk->path, sizeof m->disk->path, "%s", path);
    return rc == 0 ? mount_disk(m, err) : rc;
}

/* Of the process that will serve, while it has one thread.  It waits until there is a server. */
static int start_mounter(struct mounted *m)
{
    int ends[2];
    char go;
    struct disk *d = m->disk;
    const pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0)
        return program_fail(PROGRAM_FAILED, "start a process: %s", strerror(errno));
    if (child > 0) {
        close(ends[0]);
        d->mounter = child;
        d->go = ends[1];
        return PROGRAM_OK;
    }
    close(ends[1]);
    if (m->ready >= 0)
        close(m->ready);
    d->said = ERROR_INIT;
    if (read(ends[0], &go, 1) == 1)
        attach(m, &d->said);
    _exit(d->said.code == 0 ? 0 : 1);
}

static int end_mounter(const struct serving *v, int process, struct error *err)
{
    int status = 0;
    const struct disk *d = v->m->disk;
    struct pollfd fds[] = {{.fd = process, .events = POLLIN},
                           {.fd = server_failed_fd(v->server), .events = POLLIN}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        continue;
    if (fds[0].revents == 0)
        return server_failure(v->server, err);
    waitpid(d->mounter, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && d->said.code != 0)
        *err = d->said;
    else
        error_set(err, E_IO, "the process that mounts was killed");
    return err->code;
}

static int attach_apart(const struct serving *v, struct error *err)
{
    const struct disk *d = v->m->disk;
    _cleanup_close_ int process = pidfd_open(d->mounter, 0);
    _cleanup_close_ int go = d->go;
    if (process < 0 || write(go, "", 1) != 1)
        return error_errno(err, errno, "ask a process to mount");
    return end_mounter(v, process, err);
}

/* --- a process that serves -------------------------------------------------------------------- */

static int start(struct serving *v, struct error *err)
{
    struct disk *d = v->m->disk;
    const struct vdisc_table *t = vdisc_table_of(v->vdisc);
    const uint64_t bytes = vdisc_table_size(t);
    static_assert(DEVICE_ID == TABLE_ID, "an image id");
    _cleanup_free_ char *image =
        device_image(v->m->bucket, v->m->prefix, t->pinned ? t->image_id : NULL, bytes);
    int rc = device_claim(&d->device, v->m->supervisor, err);
    if (rc != 0)
        return rc;
    atomic_store(&d->ours, true);
    rc = device_make(&d->device, image, bytes, err);
    if (rc == 0)
        rc = device_open(&d->device, &v->ring, err);
    if (rc == E_EXISTS)
        atomic_store(&d->ours, false);
    if (rc != 0)
        return rc;
    const struct server_options options = {
        .uio = v->ring.uio,
        .map = v->ring.map,
        .bytes = v->ring.bytes,
        .disk = {.sectors = bytes / SCSI_SECTOR,
                 .read_most = DEVICE_READ_MOST,
                 .naa = d->device.naa},
        .threads = THREADS,
        .read = read_image,
        .context = &v->objects,
    };
    return server_start(&options, &v->server, err);
}

/* Until nothing has the disk mounted, or a signal comes. */
static int wait_for_end(struct serving *v, struct error *err)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    _cleanup_close_ int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    _cleanup_close_ int table = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                           {.fd = server_failed_fd(v->server), .events = POLLIN},
                           {.fd = table, .events = POLLPRI}};
    bool mounted = true;
    while (fds[0].revents == 0 && fds[1].revents == 0) {
        mounted = mounted && is_mounted(v->m);
        if (!mounted && device_is_idle(v->m->disk->path))
            return 0;
        if (poll(fds, 3, mounted ? -1 : LOOK_MS) < 0 && errno != EINTR)
            return error_errno(err, errno, "wait for the end of the mount");
    }
    return server_failure(v->server, err);
}

static int run(struct serving *v, struct error *err)
{
    struct disk *d = v->m->disk;
    int rc = start(v, err);
    if (rc == 0 && !disk_has_served(d))
        rc = attach_apart(v, err);
    if (rc != 0)
        return rc;
    atomic_store(&d->served, true);
    serve_ready(v->m);
    rc = wait_for_end(v, err);
    log_info("unmounted", lstr("directory", v->m->directory), li64("error", rc));
    return rc;
}

static int exit_of(int rc, const struct error *e)
{
    if (rc == 0)
        return PROGRAM_OK;
    return program_fail(rc == E_UNSUPPORTED ? PROGRAM_USAGE : PROGRAM_FAILED, "%s", e->message);
}

int serve_disk(struct mounted *m, struct dfc_client *client)
{
    sigset_t all;
    struct dfc_error told = {0};
    struct error err = ERROR_INIT;
    struct serving v = {.m = m, .ring = {.uio = -1}};
    const struct options *o = m->options;
    const struct objects_options options = {
        .buffer_bytes = o->buffer_bytes,
        .readahead_bytes = o->readahead_bytes,
        .fetchers = (unsigned)o->parallel,
        .cache_directories = m->cache_directories,
        .cache_bytes = o->cache_bytes,
        .cache_free_percent = o->cache_free_percent,
        .cache_idle_ms = o->cache_idle_ms,
        .group = serve_group(m),
    };
    sigfillset(&all); /* signals are read where the end is awaited */
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    int rc = vdisc_open_table(client, m->bucket, m->prefix, &v.vdisc, &told);
    if (rc != DFC_OK)
        return program_fail(client_exit_of(rc), "%s", told.message);
    int code;
    rc = objects_open(&v.objects, &options, v.vdisc, client, &told);
    if (rc == DFC_OK)
        code = exit_of(run(&v, &err), &err);
    else
        code = program_fail(client_exit_of(rc), "%s", told.message);
    dfc_client_cancel(client);
    server_stop(v.server);
    device_close(&v.ring);
    objects_close(&v.objects);
    vdisc_close(v.vdisc);
    return code;
}

/* --- the supervisor --------------------------------------------------------------------------- */

static int serve_one(void *context)
{
    struct mounted *m = context;
    const bool has_served = disk_has_served(m->disk);
    if (has_served)
        m->ready = -1; /* the caller has gone */
    const int code = has_served ? PROGRAM_OK : start_mounter(m);
    return code == PROGRAM_OK ? serve(m) : code;
}

bool disk_has_served(const struct disk *d)
{
    return atomic_load(&d->served);
}

static bool can_go_on(void *context)
{
    const struct mounted *m = context;
    return disk_has_served(m->disk);
}

static void detach(const struct mounted *m)
{
    if (is_mounted(m))
        umount2(m->directory, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* Programs that still use the mount get errors from now on. */
static int take_down(const struct mounted *m)
{
    struct error err = ERROR_INIT;
    const bool ours = atomic_load(&m->disk->ours);
    detach(m);
    const int rc = ours ? device_remove(&m->disk->device, m->supervisor, &err) : 0;
    detach(m); /* the mounter may have been at work until now */
    if (rc == 0)
        return PROGRAM_OK;
    log_error("the device is not removed", lerr(&err));
    return program_fail(PROGRAM_FAILED, "%s", err.message);
}

int disk_supervise(struct mounted *m)
{
    struct error err = ERROR_INIT;
    const struct supervised what = {
        .serve = serve_one,
        .started = serve_started,
        .can_go_on = can_go_on,
        .context = m,
        .restarts = m->options->restarts,
    };
    int rc = device_check(&err);
    if (rc != 0)
        return exit_of(rc, &err);
    struct disk *d =
        mmap(NULL, sizeof *d, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (d == MAP_FAILED)
        return program_fail(PROGRAM_FAILED, "memory: %s", strerror(errno));
    device_name(&d->device, m->directory);
    m->disk = d;
    m->supervisor = getpid();
    const int code = supervisor_run(&what);
    const int ended = take_down(m);
    munmap(d, sizeof *d);
    m->disk = NULL;
    return code == PROGRAM_OK ? ended : code;
}
