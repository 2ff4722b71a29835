/* One rank of a parallel job that writes or reads files in IOR's patterns, and compares every byte
 * that it reads:
 *
 *     plog-load KIND write|read|stat PATH [option…]
 *
 * KIND is posix, plfs or plog (tests/posix/file_kind.h).  The job's `ranks` write `segments` blocks
 * each, in transfers:
 *
 *     file   | block of rank 0 | block of rank 1 | … | block of rank 0 | block of rank 1 | …
 *            |<- segment 0                         ->|<- segment 1
 *
 * So block = transfer is N-1 strided, one segment is N-1 segmented.  --own is N-N: each rank has
 * the file PATH.RANK.  A byte's value depends on its file and place alone.
 *
 * It prints "ready", waits for a line, opens, moves its bytes, syncs if it writes, closes, and
 * prints JSON: microseconds of the steps; begin and end on the machine's monotonic clock.  `stat`
 * asks for the size of its files, in turn, --calls times.  With --hold 1 a writer syncs, prints
 * "held", and waits for a line before it closes.  Exit code 1: a call failed, or a byte is
 * another one. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "tests/posix/file_kind.h"

enum { PATH_LEN = 4096, WORD = 8 };

struct load {
    const struct file_kind *kind;
    const char *path;
    uint64_t ranks, transfer, block, segments, own; /* the pattern */
    uint64_t rank, shift, random;                   /* shift: reads what rank + shift wrote */
    uint64_t readers; /* 0: as many as ranks, each what it wrote; else a reader of so many shares */
    uint64_t seed, calls, hold;
    uint64_t begin, opened, moved, end; /* microseconds */
    uint64_t bytes;
    char *data, *wanted;
};

/* --- the pattern ------------------------------------------------------------------------------ */

struct piece {
    uint64_t file; /* of --own: the rank that it belongs to */
    uint64_t offset;
};

static uint64_t transfers_of_rank(const struct load *l)
{
    return l->segments * (l->block / l->transfer);
}

/* The i-th transfer of a rank. */
static struct piece piece_of_rank(const struct load *l, uint64_t rank, uint64_t i)
{
    const uint64_t each = l->block / l->transfer, segment = i / each, k = i % each;
    if (l->own)
        return (struct piece){.file = rank, .offset = i * l->transfer};
    return (struct piece){.offset = (segment * l->ranks + rank) * l->block + k * l->transfer};
}

/* The i-th transfer of the whole file, or of all files one after the other. */
static struct piece piece_of_all(const struct load *l, uint64_t i)
{
    const uint64_t each = transfers_of_rank(l);
    if (l->own)
        return (struct piece){.file = i / each, .offset = i % each * l->transfer};
    return (struct piece){.offset = i * l->transfer};
}

/* Each number below count once, in an order that jumps: a step without a common divisor. */
static uint64_t jump(uint64_t i, uint64_t count)
{
    uint64_t step = 7919, a = step, b = count;
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a == 1 ? i * step % count : i;
}

static void fill(const struct load *l, const struct piece *p, char *to)
{
    const uint64_t seed = (l->seed << 40) + (p->file << 32);
    uint64_t at = p->offset;
    for (size_t done = 0; done < l->transfer;) {
        const uint64_t word = (seed + at / WORD + 1) * 0x9e3779b97f4a7c15;
        const size_t skipped = at % WORD, left = l->transfer - done;
        const size_t n = WORD - skipped < left ? WORD - skipped : left;
        memcpy(to + done, (const char *)&word + skipped, n);
        done += n;
        at += n;
    }
}

/* --- what is measured ------------------------------------------------------------------------- */

static int fail(const struct load *l, const char *why)
{
    fprintf(stderr, "plog-load: rank %" PRIu64 ": %s\n", l->rank, why);
    return -1;
}

static int open_file(struct load *l, uint64_t file, int flags, struct file *f)
{
    char path[PATH_LEN];
    snprintf(path, sizeof path, l->own ? "%s.%" PRIu64 : "%s", l->path, file);
    if (l->kind->open(path, flags, f) != 0)
        return fail(l, file_error());
    return 0;
}

static int close_file(struct load *l, struct file *f, bool writes)
{
    int rc = writes ? l->kind->sync(f) : 0;
    if (rc != 0)
        fail(l, file_error());
    if (l->kind->close(f) != 0)
        rc = fail(l, file_error());
    return rc;
}

/* Says a word, and waits for a line. */
static void wait_for_line(const char *word)
{
    char line[16];
    printf("%s\n", word);
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        exit(2);
}

static int write_all(struct load *l)
{
    struct file f;
    const uint64_t count = transfers_of_rank(l);
    int rc = open_file(l, l->rank, O_WRONLY | O_CREAT, &f);
    l->opened = clock_us();
    if (rc != 0)
        return rc;
    for (uint64_t i = 0; rc == 0 && i < count; i++) {
        const struct piece p = piece_of_rank(l, l->rank, l->random ? jump(i, count) : i);
        fill(l, &p, l->data);
        if (l->kind->write(&f, l->data, l->transfer, p.offset) != 0)
            rc = fail(l, file_error());
        l->bytes += l->transfer;
    }
    if (l->hold && rc == 0 && (rc = l->kind->sync(&f)) == 0)
        wait_for_line("held");
    l->moved = clock_us();
    return close_file(l, &f, true) == 0 ? rc : -1;
}

static int read_piece(struct load *l, struct file *f, const struct piece *p)
{
    char why[256];
    size_t got;
    if (l->kind->read(f, l->data, l->transfer, p->offset, &got) != 0)
        return fail(l, file_error());
    l->bytes += got;
    fill(l, p, l->wanted);
    if (got == l->transfer && memcmp(l->data, l->wanted, got) == 0)
        return 0;
    size_t i = 0;
    while (i < got && l->data[i] == l->wanted[i])
        i++;
    snprintf(why, sizeof why, "byte %" PRIu64 " of file %" PRIu64 " is %s", p->offset + i, p->file,
             i < got ? "another one" : "beyond the end");
    return fail(l, why);
}

/* The first and last transfer of a reader's share. */
static void share(const struct load *l, uint64_t *first, uint64_t *end)
{
    const uint64_t all = l->ranks * transfers_of_rank(l);
    *first = l->readers == 0 ? 0 : all * l->rank / l->readers;
    *end = l->readers == 0 ? transfers_of_rank(l) : all * (l->rank + 1) / l->readers;
}

static int read_all(struct load *l)
{
    struct file f = {.fd = -1};
    uint64_t first, end, file = UINT64_MAX;
    int rc = 0;
    share(l, &first, &end);
    for (uint64_t i = first; rc == 0 && i < end; i++) {
        const uint64_t at = l->random ? first + jump(i - first, end - first) : i;
        const struct piece p = l->readers == 0
                                   ? piece_of_rank(l, (l->rank + l->shift) % l->ranks, at)
                                   : piece_of_all(l, at);
        if (p.file != file) {
            if (file != UINT64_MAX && close_file(l, &f, false) != 0)
                return -1;
            if (open_file(l, p.file, O_RDONLY, &f) != 0)
                return -1;
            l->opened = l->opened == 0 ? clock_us() : l->opened;
            file = p.file;
        }
        rc = read_piece(l, &f, &p);
    }
    l->moved = clock_us();
    if (file == UINT64_MAX)
        return rc;
    return close_file(l, &f, false) == 0 ? rc : -1;
}

static int stat_all(struct load *l)
{
    char path[PATH_LEN];
    const uint64_t wanted = transfers_of_rank(l) * l->transfer * (l->own ? 1 : l->ranks);
    uint64_t size;
    l->opened = clock_us();
    for (uint64_t i = 0; i < l->calls; i++) {
        snprintf(path, sizeof path, l->own ? "%s.%" PRIu64 : "%s", l->path, i % l->ranks);
        if (l->kind->stat(path, &size) != 0)
            return fail(l, file_error());
        if (size != wanted)
            return fail(l, "the size is another one");
    }
    l->moved = clock_us();
    return 0;
}

/* --- the program ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int (*run)(struct load *l);
} verbs[] = {{"write", write_all}, {"read", read_all}, {"stat", stat_all}};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static int usage(const char *why)
{
    fprintf(stderr,
            "plog-load: %s\n"
            "plog-load KIND write|read|stat PATH --ranks N --rank N --transfer BYTES\n"
            "    [--block BYTES] [--segments N] [--own 1] [--readers N] [--shift N]\n"
            "    [--random 1] [--seed N] [--calls N] [--hold 1]\n",
            why);
    return 2;
}

static int read_options(struct load *l, int argc, char **argv)
{
    const struct option options[] = {
        {"ranks", 1, NULL, 0},   {"rank", 1, NULL, 1},     {"transfer", 1, NULL, 2},
        {"block", 1, NULL, 3},   {"segments", 1, NULL, 4}, {"own", 1, NULL, 5},
        {"readers", 1, NULL, 6}, {"shift", 1, NULL, 7},    {"random", 1, NULL, 8},
        {"seed", 1, NULL, 9},    {"calls", 1, NULL, 10},   {"hold", 1, NULL, 11},
        {NULL, 0, NULL, 0}};
    uint64_t *const values[] = {&l->ranks,    &l->rank, &l->transfer, &l->block,
                                &l->segments, &l->own,  &l->readers,  &l->shift,
                                &l->random,   &l->seed, &l->calls,    &l->hold};
    struct error err;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == '?')
            return usage("there is no such option");
        if (parse_u64(optarg, values[c], &err) != 0)
            return usage(err.message);
    }
    l->block = l->block == 0 ? l->transfer : l->block;
    if (l->ranks == 0 || l->transfer == 0 || l->block % l->transfer != 0)
        return usage("--ranks and --transfer are at least 1; a block has whole transfers");
    if (l->rank >= (l->readers == 0 ? l->ranks : l->readers))
        return usage("--rank is less than --ranks, or --readers");
    return 0;
}

int main(int argc, char **argv)
{
    static struct load l = {.segments = 1, .calls = 1};
    size_t verb = 0;
    int rc = read_options(&l, argc, argv);
    if (rc != 0)
        return rc;
    while (argc - optind == 3 && verb < VERBS && strcmp(verbs[verb].name, argv[optind + 1]) != 0)
        verb++;
    if (argc - optind != 3 || verb == VERBS || (l.kind = file_kind_of(argv[optind])) == NULL)
        return usage("KIND is posix, plfs or plog, then the verb and PATH");
    l.path = argv[optind + 2];
    l.data = xcalloc(1, l.transfer);
    l.wanted = xcalloc(1, l.transfer);
    wait_for_line("ready");
    l.begin = clock_us();
    rc = verbs[verb].run(&l);
    l.end = clock_us();
    if (rc == 0)
        printf("{\"begin\": %" PRIu64 ", \"end\": %" PRIu64 ", \"open_us\": %" PRIu64
               ", \"move_us\": %" PRIu64 ", \"close_us\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n",
               l.begin, l.end, l.opened - l.begin, l.moved - l.opened, l.end - l.moved, l.bytes);
    free(l.data);
    free(l.wanted);
    return rc == 0 ? 0 : 1;
}
