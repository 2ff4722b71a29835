/* A disk that remembers: a FUSE file system with two files.
 *
 *   disk    the disk's bytes; every write and every flush (fsync) goes into the log
 *   mark    what is written here goes into the log as it is, at once: a test's own notes
 *
 * usage: recorder IMAGE LOG MOUNTPOINT
 *
 * A loop device on `disk` turns a file system's flushes into fsync, so the log says what a real
 * disk would have been told, in order; a cut of power at a record leaves what had been flushed
 * before it, and any part of what came since.  One thread serves everything: the log's order is
 * that in which things happened.
 *
 * A record of the log (little-endian): u32 kind ('W', 'F', 'M'), u32 length, u64 offset, bytes. */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct record {
    uint32_t kind;
    uint32_t len;
    uint64_t offset;
};

static int image_fd, log_fd;
static const char disk_name[] = "/disk", mark_name[] = "/mark";

/* A log with a gap proves nothing: whoever cannot write it ends. */
static void log_append(char kind, uint64_t offset, const char *data, size_t len)
{
    struct record r = {.kind = (uint32_t)kind, .len = (uint32_t)len, .offset = offset};
    struct iovec parts[] = {{&r, sizeof r}, {(void *)data, len}};
    if (writev(log_fd, parts, 2) != (ssize_t)(sizeof r + len)) {
        perror("recorder: log");
        abort();
    }
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_nlink = 1};
    if (strcmp(path, "/") == 0) {
        st->st_mode = S_IFDIR | 0700;
        st->st_nlink = 2;
        return 0;
    }
    st->st_mode = S_IFREG | 0600;
    if (strcmp(path, mark_name) == 0)
        return 0;
    if (strcmp(path, disk_name) != 0)
        return -ENOENT;
    struct stat image;
    if (fstat(image_fd, &image) != 0)
        return -errno;
    st->st_size = image.st_size;
    return 0;
}

/* Without the page cache between, each request comes here at once. */
static int open_file(const char *path, struct fuse_file_info *fi)
{
    fi->direct_io = 1;
    return strcmp(path, disk_name) == 0 || strcmp(path, mark_name) == 0 ? 0 : -ENOENT;
}

static int read_file(const char *path, char *out, size_t len, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, disk_name) != 0)
        return 0;
    ssize_t n = pread(image_fd, out, len, offset);
    return n < 0 ? -errno : (int)n;
}

static int write_file(const char *path, const char *data, size_t len, off_t offset,
                      struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, mark_name) == 0) {
        log_append('M', 0, data, len);
        return (int)len;
    }
    ssize_t n = pwrite(image_fd, data, len, offset);
    if (n < 0)
        return -errno;
    log_append('W', (uint64_t)offset, data, (size_t)n);
    return (int)n;
}

static int sync_file(const char *path, int datasync, struct fuse_file_info *fi)
{
    (void)datasync;
    (void)fi;
    if (strcmp(path, disk_name) == 0)
        log_append('F', 0, NULL, 0);
    return 0;
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
    if (argc != 4) {
        fprintf(stderr, "usage: %s IMAGE LOG MOUNTPOINT\n", argv[0]);
        return 2;
    }
    image_fd = open(argv[1], O_RDWR | O_CLOEXEC);
    log_fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (image_fd < 0 || log_fd < 0) {
        perror(argv[image_fd < 0 ? 1 : 2]);
        return 1;
    }
    char foreground[] = "-f", one_thread[] = "-s";
    char *fuse_argv[] = {argv[0], foreground, one_thread, argv[3], NULL};
    return fuse_main(4, fuse_argv, &operations, NULL);
}
