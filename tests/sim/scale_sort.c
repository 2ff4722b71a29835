/* What the merge of a large sort costs: usage() and README.md.
 *
 * The exchange of tables, the merge, the cut into output shards and their orders are the targets'
 * own code (sort/task/exchange.h).  Streams are pipes between threads.  Of the last target all is
 * real; its senders' tables are made from a rule and encoded as a target does.  With --all each
 * target exchanges its own table, out of work files.  The orders are read, summed and dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "io/file.h"
#include "io/thread.h"
#include "sort/rows/table.h"
#include "sort/task/exchange.h"
#include "tests/sim/scale_sort_rule.h"
#include "tests/sim/scale_sort_threads.h"

#define JOB 0x736f7274 /* in every stream */
#define PIPE_BYTES (1 << 20)
#define OUTPUT_BYTES (UINT64_C(1) << 30) /* of an output shard */
#define THREADS_SHOWN 8
#define STRIDE 1000 /* places in the order between records added in turn */

struct options {
    uint64_t records;
    uint64_t targets;
    uint64_t memory; /* of a target's tables, bytes */
    bool shuffled;
    bool all;
    const char *directory; /* of work files */
};

struct run;

/* A target. */
struct node {
    struct run *run;
    struct sort_env env;
    struct sort_context c;
    struct sort_damage damage;
    struct rule_table *table; /* where it is not real: what it sends, … */
    bool *has;                /* … which are these targets' rows */
    bool real;
    struct catalog *catalog;
    struct rowset *rows;
    struct book *book;
    struct sort_figures figures;
    pthread_t thread;
    struct error err;
    struct bpipe *pipe; /* of one that is not real, to the last */
    uint64_t sent_bytes;
};

struct run {
    struct options o;
    struct rule rule;
    struct rule_counts expected;
    struct sort_spec *spec;
    struct node *nodes;
    char (*names)[16];
    uint64_t order_bytes;
    struct rule_sums found;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "scale_sort: FAILED: %s: %s\n", what, why);
    exit(1);
}

static void check(int rc, const char *what, const struct error *err)
{
    if (rc != 0)
        fail(what, err->message);
}

/* --- orders ----------------------------------------------------------------------------------- */

/* A builder: reads what it shall build. */
struct builder {
    pthread_t thread;
    struct bpipe *pipe;
    const struct rule *rule;
    struct rule_sums sums;
    uint64_t bytes;
    struct error err;
};

static ssize_t builder_pull(void *ctx, void *out, size_t max, struct error *err)
{
    struct builder *b = ctx;
    ssize_t n = bpipe_read(b->pipe, out, max, err);
    b->bytes += n > 0 ? (uint64_t)n : 0;
    return n;
}

/* The form is that of sort/rows/orders.h. */
static int builder_read(struct builder *b, struct decoder *d)
{
    char head[16];
    uint64_t more = 1;
    uint64_t shards = 0;
    int rc = decoder_get(d, head, sizeof head, &b->err);
    while (rc == 0 && more > 0) {
        rc = decoder_get_bounded(d, 1, "a mark", &more, &b->err);
        if (rc == 0 && more > 0)
            rc = rule_sums_read(&b->sums, d, b->rule->targets, &b->err);
    }
    if (rc == 0)
        rc = decoder_get_varint(d, &shards, &b->err);
    if (rc == 0 && shards != b->sums.shards)
        rc = error_set(&b->err, E_CORRUPT, "orders lack a shard");
    return rc == 0 ? decoder_get_checksum(d, &b->err) : rc;
}

static void *builder_main(void *arg)
{
    struct builder *b = arg;
    struct decoder d;
    decoder_init(&d, (struct source){.read = builder_pull, .ctx = b});
    if (builder_read(b, &d) != 0)
        bpipe_cancel(b->pipe, &b->err);
    decoder_done(&d);
    bpipe_unref(b->pipe);
    return NULL;
}

static void sum_own_orders(struct run *run, const struct node *last)
{
    for (size_t i = 0; i < book_count(last->book); i++) {
        struct blob_range range = book_range(last->book, i);
        struct error err = ERROR_INIT;
        struct decoder d;
        run->order_bytes += range.end - range.at;
        decoder_init(&d, source_blob(&range));
        check(rule_sums_read(&run->found, &d, run->rule.targets, &err), "own orders", &err);
        decoder_done(&d);
    }
}

/* --- what a target needs of the world --------------------------------------------------------- */

static int env_open_work_file(void *ctx, int *fd, struct error *err)
{
    const struct node *n = ctx;
    return file_open_unnamed(n->run->o.directory, fd, err);
}

static const char *env_target_name(void *ctx, unsigned number)
{
    const struct node *n = ctx;
    return n->run->names[number];
}

static unsigned env_owner(void *ctx, const char *name)
{
    const struct node *n = ctx;
    return (unsigned)(XXH3_64bits(name, strlen(name)) % n->run->rule.targets);
}

static unsigned slot_of(const struct node *to, unsigned from)
{
    for (unsigned round = 0; round < to->c.arrangement->rounds; round++) {
        const struct arrangement_step s = arrangement_step(to->c.arrangement, to->c.self, round);
        if (s.move == ARRANGEMENT_RECEIVE && s.peer == from)
            return round;
    }
    fail("a table", "its receiver does not expect it");
    return 0;
}

static int env_send_begin(void *ctx, unsigned to, enum sort_channel channel, struct bpipe **pipe,
                          void **handle, struct error *err)
{
    const struct node *n = ctx;
    struct node *peer = &n->run->nodes[to];
    *pipe = bpipe_new(PIPE_BYTES);
    *handle = NULL;
    if (channel == SORT_CHANNEL_MERGE)
        return links_offer(peer->c.links, slot_of(peer, n->c.self), *pipe, err);
    struct builder *b = xcalloc(1, sizeof *b);
    *b = (struct builder){.pipe = bpipe_ref(*pipe), .rule = &n->run->rule, .err = ERROR_INIT};
    *handle = b;
    return thread_start("builder", builder_main, b, &b->thread, err);
}

static int env_send_end(void *ctx, void *handle, struct error *err)
{
    struct run *run = ((const struct node *)ctx)->run;
    struct builder *b = handle;
    if (b == NULL)
        return 0;
    pthread_join(b->thread, NULL);
    int rc = b->err.code != 0 ? error_set(err, b->err.code, "%s", b->err.message) : 0;
    rule_sums_add(&run->found, &b->sums); /* by the last target's thread alone */
    run->order_bytes += b->bytes;
    free(b);
    return rc;
}

/* --- targets ---------------------------------------------------------------------------------- */

/* As sort/README.md shares it out. */
static struct sort_memory memory_of(uint64_t bytes)
{
    return (struct sort_memory){
        .rows = bytes / 2, .book = bytes / 8, .cutting = bytes / 8, .repeats = bytes / 8};
}

static void context_init(struct node *n, unsigned self)
{
    const struct options *o = &n->run->o;
    n->env = (struct sort_env){.ctx = n,
                               .open_work_file = env_open_work_file,
                               .target_name = env_target_name,
                               .send_begin = env_send_begin,
                               .send_end = env_send_end,
                               .owner = env_owner};
    n->c = (struct sort_context){
        .env = &n->env,
        .spec = n->run->spec,
        .job = JOB,
        .self = self,
        .participants = n->run->rule.targets,
        .inputs = self,
        .arrangement = arrangement_new(n->run->rule.targets, NULL, JOB),
        .order = {.algorithm = o->shuffled ? SORT_SHUFFLE : SORT_ALPHANUMERIC},
        .memory = memory_of(o->memory),
        .damage = &n->damage,
    };
    n->c.links = links_new(n->c.arrangement->rounds + 1);
    pthread_mutex_init(&n->damage.lock, NULL);
    notes_init(&n->c.notes);
    n->has = xcalloc(n->run->rule.targets, sizeof *n->has);
    n->has[self] = true;
}

/* What phase 1 would leave, but for the rows. */
static void make_real(struct node *n)
{
    const struct rule *r = &n->run->rule;
    struct error err = ERROR_INIT;
    n->real = true;
    n->catalog = catalog_new(&n->env, 0, 1);
    n->book = book_new(&n->env, n->c.memory.book);
    for (uint32_t i = 0; i < r->shards_each; i++) {
        const unsigned place = i * r->targets + n->c.self;
        _cleanup_free_ char *name = xprintf(RULE_SHARD, place);
        catalog_add(n->catalog, name, place, 0);
    }
    catalog_sort(n->catalog, NULL);
    check(rowset_new(&n->env, &n->c.order, n->c.memory.rows, 1, &n->rows, &err), "rows", &err);
}

/* Those of real targets, in an order that is not theirs. */
static void add_rows(struct run *run)
{
    struct error err = ERROR_INIT;
    char name[RULE_NAME];
    for (uint64_t first = 0; first < STRIDE; first++) {
        for (uint64_t k = first; k < run->rule.records; k += STRIDE) {
            const struct rule_record record = rule_record(&run->rule, k);
            struct node *n = &run->nodes[record.target];
            if (!n->real)
                continue;
            struct sort_row row;
            rule_row(&run->rule, k, &record, name, &row);
            row.shard = record.local;
            check(rowset_add(n->rows, &row, &err), "add a row", &err);
        }
    }
}

static void *node_main(void *arg)
{
    struct node *n = arg;
    if (exchange_tables(&n->c, n->catalog, n->rows, n->book, &n->figures, &n->err) != 0)
        fail(n->run->names[n->c.self], n->err.message);
    return NULL;
}

/* Those whose tables come together in the one that this target sends in a round. */
static void mark_senders(struct node *n, unsigned round)
{
    const struct arrangement *a = n->c.arrangement;
    unsigned last = a->position[n->c.self];
    for (unsigned i = last >> round << round; i <= last; i++)
        n->has[a->order[i]] = true;
}

static int pipe_put(void *ctx, const void *data, size_t len, struct error *err)
{
    struct node *n = ctx;
    n->sent_bytes += len;
    return bpipe_write(n->pipe, data, len, err);
}

/* A target that is not real sends what a real one would. */
static void *sender_main(void *arg)
{
    struct node *n = arg;
    struct run *run = n->run;
    struct table_head head = {.job = JOB, .order = n->c.order};
    n->table = rule_table_new(&run->rule, n->has);
    for (unsigned i = 0; i < run->rule.targets; i++) {
        head.rows += n->has[i] ? run->expected.records[i] : 0;
        head.bytes += n->has[i] ? run->expected.bytes[i] : 0;
    }
    void *handle;
    int rc = env_send_begin(n, arrangement_last(n->c.arrangement), SORT_CHANNEL_MERGE, &n->pipe,
                            &handle, &n->err);
    const struct sink sink = {.write = pipe_put, .ctx = n};
    if (rc == 0)
        rc = table_write(sink, &head, n->table->dict, rule_table_rows(n->table), &n->err);
    if (rc != 0)
        fail(run->names[n->c.self], n->err.message);
    bpipe_finish(n->pipe, NULL);
    bpipe_unref(n->pipe);
    return NULL;
}

static void node_free(struct node *n)
{
    rule_table_free(n->table);
    book_free(n->book);
    rowset_free(n->rows);
    catalog_free(n->catalog);
    links_free(n->c.links);
    notes_done(&n->c.notes);
    pthread_mutex_destroy(&n->damage.lock);
    arrangement_free(n->c.arrangement);
    free(n->has);
}

/* --- the run ---------------------------------------------------------------------------------- */

static struct sort_spec *make_spec(const struct options *o)
{
    struct error err = ERROR_INIT;
    struct sort_spec *spec = NULL;
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:{s:s}, s:s, s:I, s:{s:s, s:i}}", "input_bck", "b", "input_format",
                  "prefix", "train/", "output_format", "o-%08d", "output_shard_size",
                  (json_int_t)OUTPUT_BYTES, "algorithm", "kind", "shuffle", "seed", 1);
    if (!o->shuffled)
        json_object_del(doc, "algorithm");
    check(sort_spec_parse(doc, &spec, &err), "the request", &err);
    return spec;
}

static void run_init(struct run *run, const struct options *o)
{
    const unsigned targets = (unsigned)o->targets;
    uint64_t shards = o->records / o->targets / RULE_SHARD_RECORDS;
    *run = (struct run){
        .o = *o,
        .rule = {.records = o->records,
                 .targets = targets,
                 .shards_each = shards > 0 ? (uint32_t)shards : 1,
                 .shuffled = o->shuffled},
        .spec = make_spec(o),
        .nodes = xcalloc(targets, sizeof *run->nodes),
        .names = xcalloc(targets, sizeof *run->names),
    };
    run->expected.records = xcalloc(targets, sizeof *run->expected.records);
    run->expected.bytes = xcalloc(targets, sizeof *run->expected.bytes);
    rule_count(&run->rule, OUTPUT_BYTES, &run->expected);
    for (unsigned i = 0; i < targets; i++) {
        snprintf(run->names[i], sizeof run->names[i], "t%u", i + 1);
        run->nodes[i].run = run;
        context_init(&run->nodes[i], i);
    }
}

static void run_free(struct run *run)
{
    for (unsigned i = 0; i < run->rule.targets; i++)
        node_free(&run->nodes[i]);
    sort_spec_free(run->spec);
    free(run->nodes);
    free(run->names);
    free(run->expected.records);
    free(run->expected.bytes);
}

static void start(struct node *n, void *(*body)(void *))
{
    struct error err = ERROR_INIT;
    check(thread_start(n->run->names[n->c.self], body, n, &n->thread, &err), "a thread", &err);
}

/* Threads of real targets and of those that send for others; one target alone has neither. */
static uint64_t run_exchange(struct run *run)
{
    const struct node *last = &run->nodes[arrangement_last(run->nodes[0].c.arrangement)];
    const struct arrangement *a = last->c.arrangement;
    uint64_t begun = clock_us();
    for (unsigned i = 0; i < run->rule.targets; i++) {
        if (run->nodes[i].real)
            start(&run->nodes[i], node_main);
    }
    for (unsigned round = 0; !run->o.all && round < a->rounds; round++) {
        const struct arrangement_step s = arrangement_step(a, last->c.self, round);
        if (s.move != ARRANGEMENT_RECEIVE)
            continue;
        mark_senders(&run->nodes[s.peer], round);
        start(&run->nodes[s.peer], sender_main);
    }
    for (unsigned i = 0; i < run->rule.targets; i++) {
        if (run->nodes[i].thread != 0)
            pthread_join(run->nodes[i].thread, NULL);
    }
    return clock_us() - begun;
}

static void compare(const struct run *run)
{
    const struct rule_sums *a = &run->expected.sums;
    const struct rule_sums *b = &run->found;
    if (a->records != b->records || a->bytes != b->bytes || a->shards != b->shards)
        fail("the orders", "their counts are not those of the records");
    if (a->hash != b->hash)
        fail("the orders", "their records are not in the order of the request");
}

/* --- figures ---------------------------------------------------------------------------------- */

static uint64_t memory_peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss;
}

/* Of the tables of positions first..last. */
static uint64_t rows_of(const struct run *run, const struct arrangement *a, unsigned first,
                        unsigned last)
{
    uint64_t rows = 0;
    for (unsigned i = first; i <= last; i++)
        rows += run->expected.records[a->order[i]];
    return rows;
}

static void print_rounds(const struct run *run)
{
    const struct arrangement *a = run->nodes[0].c.arrangement;
    printf("%-6s %7s %14s %16s\n", "round", "tables", "rows", "the largest has");
    for (unsigned round = 0; round < a->rounds; round++) {
        uint64_t all = 0, most = 0;
        unsigned tables = 0;
        for (unsigned i = 0; i < a->count; i++) {
            const struct arrangement_step s = arrangement_step(a, a->order[i], round);
            if (s.move != ARRANGEMENT_SEND)
                continue;
            uint64_t rows = rows_of(run, a, i >> round << round, i);
            tables++;
            all += rows;
            most = rows > most ? rows : most;
        }
        printf("%-6u %7u %14llu %16llu\n", round + 1, tables, (unsigned long long)all,
               (unsigned long long)most);
    }
}

static void print_run(const struct run *run, uint64_t wall_us)
{
    const struct node *last = &run->nodes[arrangement_last(run->nodes[0].c.arrangement)];
    const double mib = 1048576;
    uint64_t sent = 0, work = 0;
    for (unsigned i = 0; i < run->rule.targets; i++) {
        sent += run->nodes[i].sent_bytes;
        work += run->nodes[i].real ? rowset_spilled(run->nodes[i].rows) : 0;
    }
    printf("%u targets, %llu records in %llu output shards\n", run->rule.targets,
           (unsigned long long)run->found.records, (unsigned long long)run->found.shards);
    print_rounds(run);
    printf("the last target receives %llu rows and cuts %llu\n",
           (unsigned long long)progress_get(&last->c.progress.rows_in),
           (unsigned long long)progress_get(&last->c.progress.rows_out));
    printf("MiB: orders %.0f, work files %.0f, peak memory %.0f", (double)run->order_bytes / mib,
           (double)work / mib, (double)memory_peak_kib() / 1024);
    if (!run->o.all)
        printf(", tables for the last %.0f", (double)sent / mib);
    printf("\nseconds %.1f\n", (double)wall_us / 1e6);
}

static void run_all(const struct options *o)
{
    struct run run;
    run_init(&run, o);
    for (unsigned i = 0; i < run.rule.targets; i++) {
        struct node *n = &run.nodes[i];
        if (o->all || i == arrangement_last(n->c.arrangement))
            make_real(n);
    }
    add_rows(&run);
    _cleanup_(threads_freep)
    struct threads *threads = threads_new();
    if (threads == NULL)
        fail("the threads", "/proc/self/task does not show their CPU time");
    uint64_t wall_us = run_exchange(&run);
    sum_own_orders(&run, &run.nodes[arrangement_last(run.nodes[0].c.arrangement)]);
    compare(&run);
    print_run(&run, wall_us);
    threads_print(threads, THREADS_SHOWN, o->records);
    run_free(&run);
}

static int usage(void)
{
    fputs("usage: scale_sort [--targets N] [--records N] [--order names|shuffle]\n"
          "                  [--real last|all] [--memory SIZE] [--directory DIR]\n",
          stderr);
    return 2;
}

static bool is_one_of(const char *text, const char *first, const char *second, bool *is_second)
{
    *is_second = strcmp(text, second) == 0;
    return *is_second || strcmp(text, first) == 0;
}

static bool parse_option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "--targets") == 0)
        return parse_u64(value, &o->targets, NULL) == 0 && o->targets >= 1 &&
               o->targets <= ARRANGEMENT_MAX;
    if (strcmp(name, "--records") == 0)
        return parse_u64(value, &o->records, NULL) == 0 && o->records >= 1 &&
               o->records <= RULE_RECORDS_MAX;
    if (strcmp(name, "--order") == 0)
        return is_one_of(value, "names", "shuffle", &o->shuffled);
    if (strcmp(name, "--real") == 0)
        return is_one_of(value, "last", "all", &o->all);
    if (strcmp(name, "--memory") == 0)
        return parse_size(value, &o->memory, NULL) == 0;
    o->directory = value;
    return strcmp(name, "--directory") == 0;
}

int main(int argc, char **argv)
{
    struct options o = {
        .records = 1000000000, .targets = 100, .memory = 96 << 20, .directory = "/tmp"};
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc || !parse_option(&o, argv[i], argv[i + 1]))
            return usage();
    }
    run_all(&o);
    return 0;
}
