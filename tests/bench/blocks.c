/* Reads of a block device past the page cache (vdisc_guest.py).
 *
 *   dfc-blocks DEVICE SIZE DEPTH SPAN SECONDS
 *
 * DEPTH threads read SIZE bytes at a time of the first SPAN bytes.  SECONDS 0: every block once, in
 * order; else blocks at random for so long.  Prints {"reads": …, "seconds": …, "longest_s": …,
 * "errors": …}; the longest read is that of all threads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

enum { THREADS_MAX = 256, ALIGNMENT = 4096 };

static struct {
    int fd;
    uint64_t size, depth, span, seconds;
    uint64_t until_us;
    atomic_ullong next;
} bench;

struct reader {
    pthread_t thread;
    uint64_t reads, errors, longest_us;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* splitmix64: a number that looks random of each number. */
static uint64_t scatter(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The block that is read next; false: there is none. */
static bool take(uint64_t *block)
{
    const uint64_t blocks = bench.span / bench.size, number = atomic_fetch_add(&bench.next, 1);
    *block = bench.seconds == 0 ? number : scatter(number) % blocks;
    return bench.seconds == 0 ? number < blocks : clock_us() < bench.until_us;
}

static void *read_blocks(void *arg)
{
    struct reader *r = arg;
    void *bytes = NULL;
    if ((errno = posix_memalign(&bytes, ALIGNMENT, bench.size)) != 0)
        die("memory");
    for (uint64_t block; take(&block);) {
        const uint64_t began = clock_us();
        const ssize_t n = pread(bench.fd, bytes, bench.size, (off_t)(block * bench.size));
        const uint64_t took = clock_us() - began;
        r->reads++;
        r->errors += n != (ssize_t)bench.size;
        r->longest_us = took > r->longest_us ? took : r->longest_us;
    }
    free(bytes);
    return NULL;
}

static void read_arguments(char **argv)
{
    if (parse_u64(argv[2], &bench.size, NULL) != 0 || parse_u64(argv[3], &bench.depth, NULL) != 0 ||
        parse_u64(argv[4], &bench.span, NULL) != 0 ||
        parse_u64(argv[5], &bench.seconds, NULL) != 0 || bench.depth > THREADS_MAX ||
        bench.depth == 0 || bench.size == 0 || bench.span < bench.size) {
        fprintf(stderr, "%s: arguments\n", argv[0]);
        exit(2);
    }
    bench.fd = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (bench.fd < 0)
        die(argv[1]);
}

int main(int argc, char **argv)
{
    static struct reader readers[THREADS_MAX];
    struct reader all = {0};
    if (argc != 6) {
        fprintf(stderr, "usage: %s DEVICE SIZE DEPTH SPAN SECONDS\n", argv[0]);
        return 2;
    }
    read_arguments(argv);
    const uint64_t began = clock_us();
    bench.until_us = began + bench.seconds * 1000000;
    for (uint64_t i = 0; i < bench.depth; i++) {
        if ((errno = pthread_create(&readers[i].thread, NULL, read_blocks, &readers[i])) != 0)
            die("pthread_create");
    }
    for (uint64_t i = 0; i < bench.depth; i++) {
        const struct reader *r = &readers[i];
        pthread_join(r->thread, NULL);
        all.reads += r->reads;
        all.errors += r->errors;
        all.longest_us = r->longest_us > all.longest_us ? r->longest_us : all.longest_us;
    }
    printf("{\"reads\": %" PRIu64 ", \"seconds\": %.3f, \"longest_s\": %.4f, \"errors\": %" PRIu64
           "}\n",
           all.reads, (double)(clock_us() - began) / 1e6, (double)all.longest_us / 1e6, all.errors);
    close(bench.fd);
    return 0;
}
