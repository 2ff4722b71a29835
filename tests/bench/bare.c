/* What a file system gives to a program that does nothing else: threads that each write files of
 * one size and give them their names by rename, for comparison with PUT (durable.py).
 *
 *   dfc-bare DIR SIZE FILES THREADS none|file|name
 *
 *   none   write, rename
 *   file   write, fdatasync, rename
 *   name   write, fdatasync, rename, fsync of the directory: what durability sync promises
 *
 * Files go into 256 directories below DIR, as a bucket's do.  Prints {"requests_per_s": …}. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

enum { DIRECTORIES = 256, THREADS_MAX = 1024, PATH_LEN = 4096 };
enum sync { SYNC_NONE, SYNC_FILE, SYNC_NAME };
static const char *const sync_names[] = {"none", "file", "name"};

static struct {
    const char *dir;
    uint64_t size, files, threads;
    enum sync sync;
    char *bytes;
    atomic_ullong next;
} bench;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void write_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0)
        die(path);
    for (uint64_t at = 0; at < bench.size;) {
        ssize_t n = write(fd, bench.bytes + at, bench.size - at);
        if (n <= 0)
            die("write");
        at += (uint64_t)n;
    }
    if (bench.sync != SYNC_NONE && fdatasync(fd) != 0)
        die("fdatasync");
    close(fd);
}

static void sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        die("fsync");
    close(fd);
}

static void put_one(unsigned long long number)
{
    char tmp[PATH_LEN], dir[PATH_LEN], path[PATH_LEN + 32];
    snprintf(tmp, sizeof tmp, "%s/tmp/%llu", bench.dir, number);
    snprintf(dir, sizeof dir, "%s/%02llx", bench.dir, number % DIRECTORIES);
    snprintf(path, sizeof path, "%s/%llu", dir, number);
    write_file(tmp);
    if (rename(tmp, path) != 0)
        die("rename");
    if (bench.sync == SYNC_NAME)
        sync_directory(dir);
}

static void *put_all(void *arg)
{
    (void)arg;
    for (unsigned long long i; (i = atomic_fetch_add(&bench.next, 1)) < bench.files;)
        put_one(i);
    return NULL;
}

static void make_directories(void)
{
    char path[PATH_LEN];
    for (unsigned i = 0; i <= DIRECTORIES; i++) {
        snprintf(path, sizeof path, i < DIRECTORIES ? "%s/%02x" : "%s/tmp", bench.dir, i);
        if (mkdir(path, 0750) != 0 && errno != EEXIST)
            die(path);
    }
}

static void read_arguments(char **argv)
{
    bench.dir = argv[1];
    if (parse_u64(argv[2], &bench.size, NULL) != 0 || parse_u64(argv[3], &bench.files, NULL) != 0 ||
        parse_u64(argv[4], &bench.threads, NULL) != 0 || bench.threads > THREADS_MAX)
        die("arguments");
    while (strcmp(argv[5], sync_names[bench.sync]) != 0) {
        if (bench.sync++ == SYNC_NAME)
            die(argv[5]);
    }
    bench.bytes = xcalloc(1, bench.size + 1);
    memset(bench.bytes, 'x', bench.size);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    if (argc != 6) {
        fprintf(stderr, "usage: %s DIR SIZE FILES THREADS none|file|name\n", argv[0]);
        return 2;
    }
    read_arguments(argv);
    make_directories();
    uint64_t began = clock_us();
    for (uint64_t i = 0; i < bench.threads; i++) {
        if ((errno = pthread_create(&threads[i], NULL, put_all, NULL)) != 0)
            die("pthread_create");
    }
    for (uint64_t i = 0; i < bench.threads; i++)
        pthread_join(threads[i], NULL);
    double seconds = (double)(clock_us() - began) / 1e6;
    printf("{\"requests_per_s\": %.1f}\n", (double)bench.files / seconds);
    free(bench.bytes);
    return 0;
}
