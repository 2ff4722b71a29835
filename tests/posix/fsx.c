/* Random calls on one file, compared with an array in memory, in the manner of Apple's and SGI's
 * fsx, but without mapped pages:
 *
 *     posix-fsx KIND PATH [--seed N] [--calls N] [--size BYTES] [--io BYTES] [--forget N]
 *
 *     KIND      posix, plfs, plog: file_kind.h; the file at PATH is made, and removed at the end
 *     --size    the file is not longer (262144)
 *     --io      one read or write is not longer (32768)
 *     --forget  from call N on, one write is left out: the program must find that
 *
 * The seed decides everything.  Exit code 0: all calls did what they must; 1: one did not, and the
 * calls before it are printed; 2: bad arguments. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"
#include "tests/posix/file_kind.h"

enum { HANDLES_MAX = 2, LOG_ROWS = 24, LOG_WIDTH = 96, PATH_LEN = 4096, PAGE = 4096 };

struct fsx {
    uint64_t seed, calls, size_max, io_max, forget; /* forget 0: nothing */
    const struct file_kind *kind;
    char paths[2][PATH_LEN]; /* a rename takes the other one */
    unsigned at;             /* which of them it has */
    struct file files[HANDLES_MAX];
    unsigned handles;
    uint8_t *model, *data; /* what the file must be; what is written or read */
    uint64_t size, call, random;
    uint64_t last_offset, last_size; /* of the last write */
    char log[LOG_ROWS][LOG_WIDTH];
};

/* --- what happened ---------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void note(struct fsx *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(x->log[x->call % LOG_ROWS], LOG_WIDTH, fmt, ap);
    va_end(ap);
}

__attribute__((format(printf, 2, 3), noreturn)) static void fail(struct fsx *x, const char *fmt,
                                                                 ...)
{
    va_list ap;
    printf("%s '%s', seed %" PRIu64 ", call %" PRIu64 ": ", x->kind->name, x->paths[x->at], x->seed,
           x->call);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    for (uint64_t i = x->call > LOG_ROWS ? x->call - LOG_ROWS + 1 : 1; i <= x->call; i++)
        printf("  %" PRIu64 " %s\n", i, x->log[i % LOG_ROWS]);
    exit(1);
}

static void must(struct fsx *x, int rc)
{
    if (rc != 0)
        fail(x, "%s", file_error());
}

/* --- chance ----------------------------------------------------------------------------------- */

/* splitmix64 of Sebastiano Vigna: https://prng.di.unimi.it/splitmix64.c */
static uint64_t next(struct fsx *x)
{
    uint64_t z = x->random += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* 0 to limit - 1; every fourth at the edge of a page, if there is one. */
static uint64_t below(struct fsx *x, uint64_t limit)
{
    const uint64_t n = next(x) % limit;
    return next(x) % 4 == 0 ? n / PAGE * PAGE : n;
}

static uint64_t length_of_io(struct fsx *x)
{
    const uint64_t limit = next(x) % 2 == 0 ? 200 : x->io_max;
    return 1 + below(x, limit < x->io_max ? limit : x->io_max);
}

static struct file *any(struct fsx *x)
{
    return &x->files[next(x) % x->handles];
}

/* --- comparisons ------------------------------------------------------------------------------ */

static void compare(struct fsx *x, uint64_t offset, size_t wanted, size_t got)
{
    if (got != wanted)
        fail(x, "%zu bytes at %" PRIu64 " were read, not %zu", got, offset, wanted);
    for (size_t i = 0; i < got; i++) {
        if (x->data[i] != x->model[offset + i])
            fail(x, "byte %" PRIu64 " is %u, not %u", offset + i, x->data[i], x->model[offset + i]);
    }
}

static void read_at(struct fsx *x, struct file *f, uint64_t offset, uint64_t size)
{
    size_t got;
    const uint64_t left = offset < x->size ? x->size - offset : 0;
    must(x, x->kind->read(f, x->data, size, offset, &got));
    compare(x, offset, left < size ? left : size, got);
}

static void compare_size(struct fsx *x, uint64_t got)
{
    if (got != x->size)
        fail(x, "the size is %" PRIu64 ", not %" PRIu64, got, x->size);
}

/* Handles of other kinds, and those of paths, are shown what was done: of a kind that is not shared
 * there is one handle. */
static void show(struct fsx *x)
{
    if (!x->kind->is_shared)
        must(x, x->kind->sync(&x->files[0]));
}

/* --- calls ------------------------------------------------------------------------------------ */

static void model_resize(struct fsx *x, uint64_t size)
{
    if (size > x->size)
        memset(x->model + x->size, 0, size - x->size);
    x->size = size;
}

static void write_at(struct fsx *x, uint64_t offset)
{
    uint64_t size = length_of_io(x);
    size = size < x->size_max - offset ? size : x->size_max - offset;
    if (size == 0)
        return;
    for (uint64_t i = 0; i < size; i++)
        x->data[i] = (uint8_t)(i % 8 == 0 ? next(x) : x->data[i - 1] * 5U + 1);
    note(x, "write %" PRIu64 " at %" PRIu64, size, offset);
    x->last_offset = offset;
    x->last_size = size;
    if (x->forget != 0 && x->call >= x->forget)
        x->forget = 0;
    else
        must(x, x->kind->write(any(x), x->data, size, offset));
    if (offset + size > x->size)
        model_resize(x, offset + size);
    memcpy(x->model + offset, x->data, size);
}

static void call_write(struct fsx *x)
{
    write_at(x, below(x, x->size + 1));
}

static void call_write_anywhere(struct fsx *x)
{
    write_at(x, below(x, x->size_max));
}

static void call_append(struct fsx *x)
{
    write_at(x, x->size);
}

static void call_read(struct fsx *x)
{
    const uint64_t offset = below(x, x->size + PAGE), size = length_of_io(x);
    note(x, "read %" PRIu64 " at %" PRIu64, size, offset);
    read_at(x, any(x), offset, size);
}

static void call_read_back(struct fsx *x)
{
    note(x, "read %" PRIu64 " at %" PRIu64 ", which was written last", x->last_size,
         x->last_offset);
    read_at(x, any(x), x->last_offset, x->last_size);
}

static void call_shrink(struct fsx *x)
{
    const uint64_t size = below(x, x->size + 1);
    note(x, "truncate to %" PRIu64, size);
    must(x, x->kind->truncate(any(x), size));
    model_resize(x, size);
}

static void call_extend(struct fsx *x)
{
    const uint64_t size = x->size + below(x, x->size_max - x->size + 1);
    note(x, "truncate to %" PRIu64, size);
    must(x, x->kind->truncate(any(x), size));
    model_resize(x, size);
}

static void call_cut(struct fsx *x)
{
    const uint64_t size = below(x, x->size + 1);
    note(x, "truncate the path to %" PRIu64, size);
    show(x);
    must(x, x->kind->cut(x->paths[x->at], size));
    show(x);
    model_resize(x, size);
}

static void call_size(struct fsx *x)
{
    uint64_t size;
    note(x, "size");
    must(x, x->kind->size(any(x), &size));
    compare_size(x, size);
}

static void call_stat(struct fsx *x)
{
    uint64_t size;
    note(x, "size of the path");
    show(x);
    must(x, x->kind->stat(x->paths[x->at], &size));
    compare_size(x, size);
}

static void call_sync(struct fsx *x)
{
    note(x, "sync");
    must(x, x->kind->sync(any(x)));
}

static void call_reopen(struct fsx *x)
{
    struct file *f = any(x);
    note(x, "close and open");
    must(x, x->kind->close(f));
    must(x, x->kind->open(x->paths[x->at], O_RDWR, f));
}

/* By a reader that has just come. */
static void read_all(struct fsx *x)
{
    struct file f;
    must(x, x->kind->open(x->paths[x->at], O_RDONLY, &f));
    read_at(x, &f, 0, x->size_max);
    must(x, x->kind->close(&f));
}

static void call_whole(struct fsx *x)
{
    note(x, "read all");
    show(x);
    read_all(x);
}

static void close_all(struct fsx *x)
{
    for (unsigned i = 0; i < x->handles; i++)
        must(x, x->kind->close(&x->files[i]));
}

static void open_all(struct fsx *x, int flags)
{
    for (unsigned i = 0; i < x->handles; i++)
        must(x, x->kind->open(x->paths[x->at], i == 0 ? O_RDWR | flags : O_RDWR, &x->files[i]));
}

static void call_rename(struct fsx *x)
{
    note(x, "rename");
    if (!x->kind->is_shared)
        close_all(x);
    must(x, x->kind->rename(x->paths[x->at], x->paths[!x->at]));
    x->at = !x->at;
    if (!x->kind->is_shared)
        open_all(x, 0);
}

static void call_empty(struct fsx *x)
{
    note(x, "close, and open with O_TRUNC");
    close_all(x);
    open_all(x, O_TRUNC);
    model_resize(x, 0);
}

static void call_merge(struct fsx *x)
{
    if (x->kind->merge == NULL)
        return;
    note(x, "merge");
    close_all(x);
    must(x, x->kind->merge(x->paths[x->at]));
    open_all(x, 0);
}

static const struct {
    void (*run)(struct fsx *x);
    unsigned weight;
} calls[] = {
    {call_write, 60},     {call_write_anywhere, 10},
    {call_append, 20},    {call_read, 60},
    {call_read_back, 15}, {call_shrink, 6},
    {call_extend, 6},     {call_cut, 3},
    {call_size, 20},      {call_stat, 4},
    {call_sync, 5},       {call_reopen, 6},
    {call_whole, 3},      {call_rename, 2},
    {call_empty, 1},      {call_merge, 2},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void step(struct fsx *x)
{
    unsigned sum = 0, at = 0;
    for (unsigned i = 0; i < CALLS; i++)
        sum += calls[i].weight;
    uint64_t chance = next(x) % sum;
    while (chance >= calls[at].weight)
        chance -= calls[at++].weight;
    x->call++;
    note(x, "nothing");
    calls[at].run(x);
}

/* --- the program ------------------------------------------------------------------------------ */

static int usage(const char *why)
{
    fprintf(stderr,
            "posix-fsx: %s\nposix-fsx KIND PATH [--seed N] [--calls N] [--size BYTES]"
            " [--io BYTES] [--forget N]\n",
            why);
    return 2;
}

static int read_arguments(struct fsx *x, int argc, char **argv)
{
    uint64_t *const values[] = {&x->seed, &x->calls, &x->size_max, &x->io_max, &x->forget};
    static const struct option options[] = {{"seed", 1, NULL, 0},   {"calls", 1, NULL, 1},
                                            {"size", 1, NULL, 2},   {"io", 1, NULL, 3},
                                            {"forget", 1, NULL, 4}, {NULL, 0, NULL, 0}};
    struct error err;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == '?')
            return usage("there is no such option");
        if (parse_u64(optarg, values[c], &err) != 0)
            return usage(err.message);
    }
    if (argc - optind != 2 || (x->kind = file_kind_of(argv[optind])) == NULL)
        return usage("KIND is posix, plfs or plog, and PATH a file");
    if (x->size_max == 0 || x->io_max == 0 || x->size_max > UINT32_MAX)
        return usage("--size and --io are at least 1, and --size is less than 4 GiB");
    snprintf(x->paths[0], PATH_LEN, "%s", argv[optind + 1]);
    snprintf(x->paths[1], PATH_LEN, "%s.renamed", argv[optind + 1]);
    return 0;
}

int main(int argc, char **argv)
{
    static struct fsx x = {.seed = 1, .calls = 2000, .size_max = 256 << 10, .io_max = 32 << 10};
    const int rc = read_arguments(&x, argc, argv);
    if (rc != 0)
        return rc;
    x.random = x.seed;
    x.handles = x.kind->is_shared ? HANDLES_MAX : 1;
    x.model = xcalloc(1, x.size_max);
    x.data = xcalloc(1, (x.size_max > x.io_max ? x.size_max : x.io_max) + 1);
    open_all(&x, O_CREAT | O_TRUNC);
    while (x.call < x.calls)
        step(&x);
    close_all(&x);
    read_all(&x);
    must(&x, x.kind->remove(x.paths[x.at]));
    printf("ok %" PRIu64 " calls\n", x.call);
    free(x.model);
    free(x.data);
    return 0;
}
