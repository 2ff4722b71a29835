/* umount: the root's attributes user.dfc.pid and user.dfc.supervisor name the processes of the
 * mount; umount waits for their end. */
#include "mount/program/program.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/parse.h"
#include "mount/program/mounts.h"
#include "mount/program/options.h"
#include "mount/tcmu/device.h"

#define REAPING_MS 10
#define REAPING_LOOKS 10
#define HELPER "fusermount3"

/* A process of the mount: a descriptor of it.  -1 with errno; ENOTCONN: all have died; ENODATA: the
 * mount has no such. */
static int process_open(const char *path, const char *attribute)
{
    char text[32];
    uint64_t pid;
    ssize_t n = getxattr(path, attribute, text, sizeof text - 1);
    if (n < 0)
        return -1;
    text[n] = '\0';
    if (parse_u64(text, &pid, NULL) != 0) {
        errno = EPROTO;
        return -1;
    }
    return pidfd_open((pid_t)pid, 0);
}

/* Users may unmount what they mounted, by a program that has the right. */
static int unmount_by_helper(const char *path, bool dead)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execlp(HELPER, HELPER, "-u", dead ? "-z" : "--", path, NULL);
        program_fail(PROGRAM_FAILED, "run %s: %s", HELPER, strerror(errno));
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return program_fail(PROGRAM_FAILED, "run %s: %s", HELPER, strerror(errno));
    return status == 0 ? PROGRAM_OK : PROGRAM_FAILED; /* it has said why */
}

static int unmount(const char *path, bool dead)
{
    if (umount2(path, UMOUNT_NOFOLLOW | (dead ? MNT_DETACH : 0)) == 0)
        return PROGRAM_OK;
    if (errno == EPERM)
        return unmount_by_helper(path, dead);
    if (errno == EBUSY)
        return program_fail(PROGRAM_FAILED,
                            "'%s' is in use: end the programs that use it ('fuser -m' names them)",
                            path);
    return program_fail(PROGRAM_FAILED, "unmount '%s': %s", path, strerror(errno));
}

/* Its parent is told at the same time: for a moment tables of processes still show it. */
static void await_reaping(int server)
{
    for (unsigned i = 0; i < REAPING_LOOKS && pidfd_send_signal(server, 0, NULL, 0) == 0; i++)
        poll(NULL, 0, REAPING_MS);
}

static int await(int process, const char *path, uint64_t until_ms)
{
    struct pollfd end = {.fd = process, .events = POLLIN};
    const uint64_t now_ms = clock_ms();
    const uint64_t left_ms = until_ms > now_ms ? until_ms - now_ms : 0;
    if (process < 0)
        return PROGRAM_OK; /* there was none */
    int n = poll(&end, 1, left_ms < INT32_MAX ? (int)left_ms : -1);
    if (n > 0) {
        await_reaping(process);
        return PROGRAM_OK;
    }
    return program_fail(PROGRAM_FAILED,
                        "'%s' is unmounted, but its process has not ended: another mount namespace "
                        "may have it, too ('grep -l %s /proc/[0-9]*/mountinfo' shows whose)",
                        path, path);
}

/* A disk of --mode tcmu, which may be unmounted already.  Its supervisor removes the device; if it
 * has died, this process does. */
static int umount_disk(const char *path, const struct device *d, const struct options *o)
{
    struct error err = ERROR_INIT;
    const pid_t owner = device_owner(d);
    _cleanup_close_ int supervisor = owner != 0 ? pidfd_open(owner, 0) : -1;
    _cleanup_free_ char *source = mounts_source(path, "iso9660");
    _cleanup_free_ char *disk = device_path(d);
    /* Another file system may be mounted there meanwhile; a disk may have been taken away. */
    const bool is_ours =
        source != NULL && (disk != NULL ? strcmp(source, disk) == 0 : access(source, F_OK) != 0);
    int code = is_ours ? unmount(path, false) : PROGRAM_OK;
    if (code == PROGRAM_OK)
        code = await(supervisor, path, clock_ms() + o->timeout_ms);
    if (code != PROGRAM_OK || !device_exists(d) || device_remove(d, owner, &err) == 0)
        return code;
    return program_fail(PROGRAM_FAILED, "%s", err.message);
}

int program_umount(const struct options *o)
{
    _cleanup_free_ char *path = mounts_path(o->directory);
    if (path == NULL)
        return program_fail(PROGRAM_NOT_FOUND, "'%s': %s", o->directory, strerror(errno));
    struct device disk;
    device_name(&disk, path);
    if (!mounts_has(path) && device_exists(&disk))
        return umount_disk(path, &disk, o);
    if (!mounts_has(path))
        return program_fail(PROGRAM_NOT_FOUND,
                            "no bucket is mounted at '%s', nor an image or a volume", o->directory);
    _cleanup_close_ int server = process_open(path, "user.dfc.pid");
    bool dead = server < 0 && mounts_is_dead(errno);
    _cleanup_close_ int supervisor = dead ? -1 : process_open(path, "user.dfc.supervisor");
    int code = unmount(path, dead);
    const uint64_t until_ms = clock_ms() + o->timeout_ms;
    if (code == PROGRAM_OK)
        code = await(server, path, until_ms);
    return code == PROGRAM_OK ? await(supervisor, path, until_ms) : code;
}
