#include "mount/tcmu/device.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "mount/tcmu/device_parts.h"
#include "mount/tcmu/sysfile.h"

#define CONFIGFS "/sys/kernel/config"
#define UIO "/sys/class/uio"
#define NAA_LOCAL (3ull << 60)
#define PREFIX "dfc-"
#define DATA_AREA_MB 64
#define WAIT_MS 30000
#define LOOK_MS 20

/* --- names ------------------------------------------------------------------------------------ */

void device_name(struct device *d, const char *directory)
{
    d->naa = NAA_LOCAL | XXH3_64bits(directory, strlen(directory)) >> 4;
    snprintf(d->name, sizeof d->name, PREFIX "%016" PRIx64, d->naa);
}

char *device_core(const struct device *d, const char *below)
{
    return xprintf(DEVICE_HBA "/%s%s", d->name, below);
}

char *device_port(const struct device *d, const char *below)
{
    return xprintf(DEVICE_LOOPBACK "/naa.%016" PRIx64 "%s", d->naa, below);
}

bool device_exists(const struct device *d)
{
    _cleanup_free_ char *core = device_core(d, "");
    return access(core, F_OK) == 0;
}

int device_lock(struct error *err)
{
    _cleanup_close_ int fd =
        open(DEVICE_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, errno, "open '" DEVICE_LOCK "'");
    while (flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR)
            return error_errno(err, errno, "lock '" DEVICE_LOCK "'");
    }
    return steal_fd(&fd);
}

bool device_wait(bool (*is)(void *context), void *context)
{
    for (unsigned waited_ms = 0; !is(context); waited_ms += LOOK_MS) {
        if (waited_ms >= WAIT_MS)
            return false;
        poll(NULL, 0, LOOK_MS);
    }
    return true;
}

/* --- the machine ------------------------------------------------------------------------------ */

/* Quietly: what is missing is seen by its effect. */
static void load_module(const char *module)
{
    const pid_t child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
        }
        execlp("modprobe", "modprobe", module, NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static int need_module(const char *module, const char *path, struct error *err)
{
    if (access(path, F_OK) != 0)
        load_module(module);
    if (access(path, F_OK) == 0)
        return 0;
    return error_set(err, E_UNSUPPORTED,
                     "the kernel has no module %s: run 'modprobe %s', or take a kernel that has it "
                     "(Debian's do); '--mode fuse' needs none",
                     module, module);
}

int device_check(struct error *err)
{
    if (geteuid() != 0)
        return error_set(err, E_UNSUPPORTED,
                         "'--mode tcmu' makes a disk, which only root may do: run the command as "
                         "root, or with '--mode fuse'");
    if (access(CONFIGFS, F_OK) != 0)
        load_module("configfs");
    if (access(CONFIGFS, F_OK) != 0)
        return error_set(err, E_UNSUPPORTED,
                         "the kernel has no configfs ('" CONFIGFS "' is missing): run 'modprobe "
                         "configfs'; '--mode fuse' needs none");
    int rc = need_module("target_core_user", "/sys/module/target_core_user", err);
    if (rc == 0)
        rc = need_module("tcm_loop", "/sys/module/tcm_loop", err);
    if (rc == 0 && access(DEVICE_TARGET, F_OK) != 0)
        rc = error_set(err, E_UNSUPPORTED,
                       "configfs is not mounted ('" DEVICE_TARGET "' is missing): run 'mount -t "
                       "configfs none " CONFIGFS "'");
    return rc;
}

/* --- the device ------------------------------------------------------------------------------- */

/* The first line of the uio device's name is "tcm-user/HBA/NAME/IMAGE". */
static char *find_uio(const struct device *d, char **image)
{
    _cleanup_free_ char *wanted = xprintf("tcm-user/" DEVICE_HBA_NUMBER "/%s/", d->name);
    for (unsigned i = 0; i < DEVICE_UIO_MOST; i++) {
        _cleanup_free_ char *path = xprintf(UIO "/uio%u/name", i);
        _cleanup_free_ char *name = sysfile_read(path);
        if (name == NULL || strncmp(name, wanted, strlen(wanted)) != 0)
            continue;
        if (image != NULL)
            *image = xstrdup(name + strlen(wanted));
        return xprintf("uio%u", i);
    }
    return NULL;
}

static int make_folder(const char *core, struct error *err)
{
    int rc = sysfile_make(DEVICE_HBA, err);
    return rc == 0 ? sysfile_make(core, err) : rc;
}

/* No read may end since a server is away: neither the ring nor the disk has a timeout. */
static int configure(const struct device *d, const char *image, uint64_t bytes, struct error *err)
{
    _cleanup_free_ char *control = device_core(d, "/control");
    _cleanup_free_ char *timeout = device_core(d, "/attrib/cmd_time_out");
    _cleanup_free_ char *full = device_core(d, "/attrib/qfull_time_out");
    _cleanup_free_ char *enable = device_core(d, "/enable");
    /* nl_reply_supported: no daemon of the machine is asked, or waited for. */
    _cleanup_free_ char *text =
        xprintf("dev_config=%s,dev_size=%" PRIu64 ",hw_block_size=%d,nl_reply_supported=-1,"
                "max_data_area_mb=%d",
                image, bytes, SCSI_SECTOR, DATA_AREA_MB);
    int rc = sysfile_write(control, text, err);
    if (rc == 0)
        rc = sysfile_write(timeout, "0", err);
    if (rc == 0)
        rc = sysfile_write(full, DEVICE_NEVER_S, err);
    return rc == 0 ? sysfile_write(enable, "1", err) : rc;
}

/* The kernel's parameters end at a comma, and a bucket's users choose names: so they are hashed. */
char *device_image(const char *bucket, const char *key, const uint8_t *id, uint64_t bytes)
{
    char hex[2 * DEVICE_ID + 1];
    if (id == NULL) {
        _cleanup_free_ char *name = xprintf("%s/%s", bucket, key);
        const XXH128_hash_t h = XXH3_128bits(name, strlen(name));
        return xprintf("dfc/%016" PRIx64 "%016" PRIx64 "-%" PRIu64, h.high64, h.low64, bytes);
    }
    format_hex(id, DEVICE_ID, hex);
    return xprintf("dfc/%s", hex);
}

int device_make(const struct device *d, const char *image, uint64_t bytes, struct error *err)
{
    _cleanup_close_ int lock = device_lock(err);
    _cleanup_free_ char *core = device_core(d, "");
    _cleanup_free_ char *enable = device_core(d, "/enable");
    int rc = lock < 0 ? lock : make_folder(core, err);
    if (rc == 0 && sysfile_number(enable) == 0)
        rc = configure(d, image, bytes, err);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *found = NULL;
    _cleanup_free_ char *uio = find_uio(d, &found);
    if (uio == NULL)
        return error_set(err, E_IO, "device '%s' has no uio device", core);
    if (strcmp(found, image) != 0)
        return error_set(err, E_INVALID, "device '%s' has another image: unmount it first", core);
    return 0;
}

/* --- its memory ------------------------------------------------------------------------------- */

struct opening {
    const char *path;
    int fd;
};

/* EBUSY: the kernel closes it for an earlier process; ENOENT: udev makes it. */
static bool is_open(void *context)
{
    struct opening *o = context;
    o->fd = open(o->path, O_RDWR | O_CLOEXEC);
    return o->fd >= 0 || (errno != EBUSY && errno != ENOENT);
}

int device_open(const struct device *d, struct device_ring *r, struct error *err)
{
    _cleanup_free_ char *uio = find_uio(d, NULL);
    *r = (struct device_ring){.uio = -1};
    if (uio == NULL)
        return error_set(err, E_NOT_FOUND, "device '%s' has no uio device", d->name);
    _cleanup_free_ char *path = xprintf("/dev/%s", uio);
    _cleanup_free_ char *size = xprintf(UIO "/%s/maps/map0/size", uio);
    struct opening o = {.path = path};
    device_wait(is_open, &o);
    if (o.fd < 0 && errno == EBUSY)
        return error_set(err, E_EXISTS,
                         "another process serves '%s' ('fuser %s' names it): 'dfcctl vdisc umount' "
                         "ends that, where the image was mounted",
                         path, path);
    if (o.fd < 0)
        return error_errno(err, errno, "open '%s'", path);
    r->uio = o.fd;
    r->bytes = (size_t)sysfile_number(size);
    r->map = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->uio, 0);
    if (r->map != MAP_FAILED)
        return 0;
    const int errnum = errno;
    r->map = NULL;
    device_close(r);
    return error_errno(err, errnum, "map '%s'", path);
}

void device_close(struct device_ring *r)
{
    if (r->map != NULL)
        munmap(r->map, r->bytes);
    if (r->uio >= 0)
        close(r->uio);
    *r = (struct device_ring){.uio = -1};
}

/* --- its owner -------------------------------------------------------------------------------- */

/* When a process began: another one may have its number later.  0: there is none. */
static unsigned long long began(pid_t pid)
{
    unsigned long long at = 0;
    _cleanup_free_ char *path = xprintf("/proc/%d/stat", (int)pid);
    _cleanup_free_ char *stat = sysfile_read(path);
    const char *behind_name = stat != NULL ? strrchr(stat, ')') : NULL;
    if (behind_name == NULL || behind_name[1] == '\0' || behind_name[2] == 'Z')
        return 0;
    /* Fields 3 to 22 of proc(5). */
    if (sscanf(behind_name + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &at) != 1)
        return 0;
    return at;
}

/* The kernel keeps an alias of the device for those who administer it. */
int device_claim(const struct device *d, pid_t supervisor, struct error *err)
{
    _cleanup_close_ int lock = device_lock(err);
    _cleanup_free_ char *core = device_core(d, "");
    _cleanup_free_ char *alias = device_core(d, "/alias");
    _cleanup_free_ char *text = xprintf("%d %llu", (int)supervisor, began(supervisor));
    int rc = lock < 0 ? lock : device_check_owner(d, supervisor, err);
    if (rc == 0)
        rc = make_folder(core, err);
    return rc == 0 ? sysfile_write(alias, text, err) : rc;
}

int device_check_owner(const struct device *d, pid_t supervisor, struct error *err)
{
    const pid_t owner = device_owner(d);
    if (owner == 0 || owner == supervisor)
        return 0;
    return error_set(err, E_EXISTS,
                     "process %d has mounted a disk at this directory already: 'dfcctl vdisc "
                     "umount' ends that",
                     (int)owner);
}

pid_t device_owner(const struct device *d)
{
    int pid;
    unsigned long long at;
    _cleanup_free_ char *path = device_core(d, "/alias");
    _cleanup_free_ char *text = sysfile_read(path);
    if (text == NULL || sscanf(text, "%d %llu", &pid, &at) != 2 || pid <= 0)
        return 0;
    return began(pid) == at && at != 0 ? pid : 0;
}
