/* A disk of a given speed: a FUSE file system that is one file, for a loop device.
 *
 *   dfc-slow-disk IMAGE BYTES_PER_SECOND FILE     serves IMAGE's bytes at FILE, until it is
 * unmounted
 *
 * Reads and writes share the speed, whoever has them done, the kernel's own write-back included
 * (which limits of a cgroup v1 do not hold back).  What was not used for BURST_MS is lost.  SIGUSR1
 * lifts the limit, SIGUSR2 brings it back.  One thread serves everything, as a disk with one arm.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BURST_MS 50

static int image_fd;
static uint64_t bytes_per_second;
static volatile sig_atomic_t unlimited;
static uint64_t free_at_ns; /* when all that was asked so far would be done */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void take_time(size_t bytes)
{
    if (unlimited)
        return;
    uint64_t now = now_ns();
    uint64_t oldest = now - BURST_MS * UINT64_C(1000000);
    if (free_at_ns < oldest)
        free_at_ns = oldest;
    free_at_ns += bytes * UINT64_C(1000000000) / bytes_per_second;
    struct timespec until = {.tv_sec = (time_t)(free_at_ns / 1000000000),
                             .tv_nsec = (long)(free_at_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR && !unlimited)
        ;
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, "/") != 0)
        return -ENOENT;
    if (fstat(image_fd, st) != 0)
        return -errno;
    st->st_mode = S_IFREG | 0600;
    st->st_nlink = 1;
    return 0;
}

/* Without the page cache between, each request comes here at once. */
static int open_file(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    fi->direct_io = 1;
    return 0;
}

static int read_file(const char *path, char *out, size_t len, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)path;
    (void)fi;
    take_time(len);
    ssize_t n = pread(image_fd, out, len, offset);
    return n < 0 ? -errno : (int)n;
}

static int write_file(const char *path, const char *data, size_t len, off_t offset,
                      struct fuse_file_info *fi)
{
    (void)path;
    (void)fi;
    take_time(len);
    ssize_t n = pwrite(image_fd, data, len, offset);
    return n < 0 ? -errno : (int)n;
}

static int sync_file(const char *path, int datasync, struct fuse_file_info *fi)
{
    (void)path;
    (void)datasync;
    (void)fi;
    return 0; /* the image is thrown away afterwards */
}

static void set_limit(int signal)
{
    unlimited = signal == SIGUSR1;
}

static const struct fuse_operations operations = {
    .getattr = get_attributes,
    .open = open_file,
    .read = read_file,
    .write = write_file,
    .fsync = sync_file,
};

int main(int argc, char **argv)
{
    bytes_per_second = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    if (bytes_per_second == 0) {
        fprintf(stderr, "usage: %s IMAGE BYTES_PER_SECOND FILE\n", argv[0]);
        return 2;
    }
    image_fd = open(argv[1], O_RDWR | O_CLOEXEC);
    if (image_fd < 0) {
        perror(argv[1]);
        return 1;
    }
    const struct sigaction action = {.sa_handler = set_limit};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    char foreground[] = "-f", one_thread[] = "-s";
    char *fuse_argv[] = {argv[0], foreground, one_thread, argv[3], NULL};
    return fuse_main(4, fuse_argv, &operations, NULL);
}
