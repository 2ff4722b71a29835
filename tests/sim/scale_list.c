/* What a page of a list costs over many targets: usage() and README.md.
 *
 * The merge is the proxy's (proxy/list/merge.h), and its loop is list.c's: all questions are
 * asked at once, and after each reply the merge is asked what it wants next.  The names are a rule,
 * so that no memory holds them: number k is "d<k / per directory>/f<k>", or "f<k>" without
 * directories, and a hash of k says which target has it.  A target's page is made from the rule as
 * target/store/list.h describes it, in time that is not counted. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proxy/list/merge.h"
#include "proxy/list/token.h"

struct names {
    uint64_t count;
    uint64_t per_directory; /* 0: no delimiter is asked for */
    uint64_t targets;
};

struct question {
    size_t source;
    char *after;
    size_t limit;
    size_t depth; /* of the questions whose answers led to this one */
};

struct figures {
    uint64_t calls, rounds, shown, bytes, cpu_us, memory;
};

static uint64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void fail(const char *what)
{
    fprintf(stderr, "scale_list: FAILED: %s\n", what);
    exit(1);
}

/* --- names, and the targets' pages ------------------------------------------------------------ */

/* The finalizer of splitmix64. */
static uint64_t owner_of(const struct names *n, uint64_t k)
{
    uint64_t z = k + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % n->targets;
}

/* The first name from k on that the target has; count: none. */
static uint64_t next_of(const struct names *n, uint64_t target, uint64_t k)
{
    while (k < n->count && owner_of(n, k) != target)
        k++;
    return k;
}

static uint64_t number_in(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* The first number behind a name or a prefix. */
static uint64_t behind(const struct names *n, const char *after)
{
    if (*after == '\0')
        return 0;
    return (number_in(after + 1) + 1) * (n->per_directory > 0 ? n->per_directory : 1);
}

static void put_prefix(struct buf *out, const struct names *n, uint64_t k)
{
    buf_printf(out, "d%010llu/", (unsigned long long)(k / n->per_directory));
}

static void put_entry(struct buf *out, uint64_t k)
{
    buf_printf(out,
               "{\"name\":\"f%010llu\",\"size\":1048576,\"version\":\"1.1.0\","
               "\"checksum\":\"xxh3:0123456789abcdef\",\"modified_ms\":1700000000000}",
               (unsigned long long)k);
}

static void put_page(struct buf *out, const struct names *n, const struct question *q)
{
    _cleanup_(buf_done)
    struct buf last = BUF_INIT;
    bool rolled = n->per_directory > 0;
    uint64_t k = next_of(n, q->source, behind(n, q->after));
    buf_puts(out, rolled ? "{\"entries\":[],\"prefixes\":[" : "{\"prefixes\":[],\"entries\":[");
    for (size_t i = 0; i < q->limit && k < n->count; i++) {
        buf_clear(&last);
        if (rolled)
            put_prefix(&last, n, k);
        else
            buf_printf(&last, "f%010llu", (unsigned long long)k);
        buf_puts(out, i > 0 ? "," : "");
        if (rolled)
            buf_printf(out, "\"%s\"", last.data);
        else
            put_entry(out, k);
        k = next_of(n, q->source, rolled ? (k / n->per_directory + 1) * n->per_directory : k + 1);
    }
    buf_printf(out, "],\"next\":\"%s\",\"from\":\"\"}", k < n->count ? buf_str(&last) : "");
}

/* --- one page of the proxy -------------------------------------------------------------------- */

struct page {
    const struct names *names;
    struct list_merge *merge;
    struct question *asked; /* under way */
    size_t asked_count;
    bool *asking;
    struct figures *f;
};

static void ask(struct page *p, size_t depth)
{
    for (size_t i = 0; i < p->names->targets; i++) {
        struct list_question q;
        if (p->asking[i] || !list_merge_wants(p->merge, i, &q))
            continue;
        p->asking[i] = true;
        p->asked[p->asked_count++] = (struct question){
            .source = i, .after = xstrdup(q.position.after), .limit = q.limit, .depth = depth};
        p->f->calls++;
    }
}

/* Takes the question. */
static void answer(struct page *p, struct question *q)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct error err = ERROR_INIT;
    put_page(&text, p->names, q);
    size_t len = text.len;
    uint64_t entered = cpu_us();
    p->asking[q->source] = false;
    if (list_merge_feed(p->merge, q->source, buf_steal(&text), len, &err) != 0)
        fail(err.message);
    if (!list_merge_done(p->merge))
        ask(p, q->depth + 1);
    p->f->cpu_us += cpu_us() - entered;
    p->f->bytes += len;
    free(q->after);
}

/* Replies come in the order of the questions. */
static void answer_all(struct page *p)
{
    uint64_t before = memory_in_use();
    size_t depth = 0;
    for (size_t at = 0; at < p->asked_count; at++) {
        if (p->asked[at].depth > depth)
            depth = p->asked[at].depth;
        answer(p, &p->asked[at]);
        uint64_t now = memory_in_use();
        if (now > before && now - before > p->f->memory)
            p->f->memory = now - before;
    }
    p->f->rounds += depth;
}

/* What the page must have shown from its first name on. */
static void check_shown(const struct names *n, const struct buf *page, uint64_t first, uint64_t *to)
{
    const char *mark = n->per_directory > 0 ? "\"d" : "{\"name\":\"f";
    *to = first;
    for (const char *at = page->data; (at = strstr(at, mark)) != NULL; ++*to) {
        at += strlen(mark);
        if (number_in(at) != *to)
            fail("a page lacks a name");
    }
}

/* A page behind `after`, and where the next one begins. */
static void run_page(const struct names *n, size_t limit, uint64_t *first, struct figures *f)
{
    _cleanup_(buf_done)
    struct buf after = BUF_INIT;
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    if (*first > 0)
        buf_printf(&after, n->per_directory > 0 ? "d%010llu/" : "f%010llu",
                   (unsigned long long)(*first - 1));
    const struct list_position position = {.after = buf_str(&after), .from = ""};
    struct page p = {.names = n, .f = f, .merge = list_merge_new(n->targets, &position, limit)};
    p.asked = xcalloc(n->targets * LIST_ROUNDS_MAX, sizeof p.asked[0]);
    p.asking = xcalloc(n->targets, sizeof p.asking[0]);
    uint64_t entered = cpu_us();
    ask(&p, 1);
    f->cpu_us += cpu_us() - entered;
    answer_all(&p);
    entered = cpu_us();
    list_merge_page(p.merge, &out);
    f->cpu_us += cpu_us() - entered;
    uint64_t to;
    check_shown(n, &out, *first, &to);
    f->shown += to - *first;
    *first = to;
    list_merge_free(p.merge);
    free(p.asked);
    free(p.asking);
}

/* --- the cases -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint64_t per_directory;
    size_t limit;
} cases[] = {
    {"names, 1,000 a page", 0, 1000},
    {"names, 10,000 a page", 0, 10000},
    {"directories of 1,000,000", 1000000, 1000},
    {"directories of 1,000", 1000, 1000},
    {"directories of 10", 10, 1000},
};

static void run_case(size_t i, const struct names *n, uint64_t pages)
{
    struct figures f = {0};
    uint64_t in_one = n->per_directory > 0 ? n->per_directory : 1;
    uint64_t units = (n->count + in_one - 1) / in_one;
    uint64_t first = 0, made = 0;
    for (; made < pages && first < units; made++)
        run_page(n, cases[i].limit, &first, &f);
    if (f.shown != first || f.shown == 0)
        fail("no page shows anything");
    printf("%-26s %6llu %10.0f %10.0f %8.1f %12.0f %12.1f %9.1f %14.0f\n", cases[i].name,
           (unsigned long long)made, (double)f.shown / (double)made, (double)f.calls / (double)made,
           (double)f.rounds / (double)made, (double)f.bytes / (double)made / 1024,
           (double)f.memory / 1024, (double)f.cpu_us / (double)made / 1000,
           (double)f.calls / (double)f.shown * (double)units);
    fflush(stdout);
}

static int usage(void)
{
    fputs("usage: scale_list [--targets N] [--names N] [--pages N]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct names n = {.count = 1000000000, .targets = 1000};
    uint64_t pages = 5;
    for (int i = 1; i < argc; i += 2) {
        uint64_t value;
        if (i + 1 == argc || parse_u64(argv[i + 1], &value, NULL) != 0 || value == 0)
            return usage();
        if (strcmp(argv[i], "--targets") == 0)
            n.targets = value;
        else if (strcmp(argv[i], "--names") == 0)
            n.count = value;
        else if (strcmp(argv[i], "--pages") == 0)
            pages = value;
        else
            return usage();
    }
    printf("%-26s %6s %10s %10s %8s %12s %12s %9s %14s\n", "a page of", "pages", "shown", "calls",
           "rounds", "replies KiB", "memory KiB", "cpu ms", "calls for all");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        n.per_directory = cases[i].per_directory;
        run_case(i, &n, pages);
    }
    return 0;
}
