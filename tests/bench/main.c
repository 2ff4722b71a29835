#include "tests/bench/load.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "tests/bench/options.h"
#include "tests/bench/report.h"

/* The bytes of every PUT: a memory file, for sendfile, and its mapping.  They do not compress,
 * unless they
   are asked to be zeros. */
static int body_make(struct load *load, struct error *err)
{
    load->body_fd = memfd_create("dfc-load", MFD_CLOEXEC);
    if (load->body_fd < 0)
        return error_errno(err, errno, "memfd_create");
    if (load->mode == LOAD_GET || load->body_bytes == 0)
        return 0;
    if (ftruncate(load->body_fd, (off_t)load->body_bytes) != 0)
        return error_errno(err, errno, "a body of %ju bytes", (uintmax_t)load->body_bytes);
    char *bytes =
        mmap(NULL, load->body_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, load->body_fd, 0);
    if (bytes == MAP_FAILED)
        return error_errno(err, errno, "mmap of %ju bytes", (uintmax_t)load->body_bytes);
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < load->body_bytes && !load->zeros; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (char)(state >> 56);
    }
    load->body = bytes;
    return 0;
}

static void body_free(struct load *load)
{
    if (load->body != NULL)
        munmap((void *)load->body, load->body_bytes);
    if (load->body_fd >= 0)
        close(load->body_fd);
}

static void stats_merge(struct load_stats *into, const struct load_stats *from)
{
    histogram_merge(&into->latency_ns, &from->latency_ns);
    for (unsigned i = 0; i < sizeof into->status / sizeof into->status[0]; i++)
        into->status[i] += from->status[i];
    for (unsigned i = 0; i < LOAD_ERROR_KINDS; i++)
        into->errors[i] += from->errors[i];
    into->puts += from->puts;
    into->redirects += from->redirects;
    into->reconnects += from->reconnects;
    into->bytes_in += from->bytes_in;
    into->bytes_out += from->bytes_out;
    if (from->last_answer_ns > into->last_answer_ns)
        into->last_answer_ns = from->last_answer_ns;
}

static unsigned share_of(unsigned total, unsigned parts, unsigned part)
{
    return total / parts + (part < total % parts);
}

static int workers_run(struct load *load, struct load_worker *workers, struct error *err)
{
    int rc = 0;
    unsigned begun = 0;
    load->begin_ns = load_now_ns();
    for (; begun < load->threads; begun++) {
        struct load_worker *w = &workers[begun];
        int errnum = pthread_create(&w->thread, NULL, load_worker_run, w);
        if (errnum != 0) {
            rc = error_errno(err, errnum, "thread %u", begun);
            atomic_store(&load->stop, true);
            break;
        }
    }
    for (unsigned i = 0; i < begun; i++)
        pthread_join(workers[i].thread, NULL);
    return rc;
}

static int load_run(struct load *load, struct load_stats *stats, struct error *err)
{
    if (load->threads > load->connections)
        load->threads = load->connections;
    struct load_worker *workers = calloc(load->threads, sizeof workers[0]);
    if (workers == NULL)
        return error_set(err, E_NOMEM, "%u threads", load->threads);
    int rc = 0;
    unsigned ready = 0;
    for (; ready < load->threads && rc == 0; ready++) {
        unsigned clients = share_of(load->connections, load->threads, ready);
        int errnum = load_worker_init(&workers[ready], load, clients, ready);
        if (errnum != 0)
            rc = error_errno(err, errnum, "%u clients", clients);
    }
    if (rc == 0)
        rc = workers_run(load, workers, err);
    for (unsigned i = 0; i < ready; i++) {
        stats_merge(stats, &workers[i].stats);
        load_worker_done(&workers[i]);
    }
    free(workers);
    return rc;
}

static int cpus_read(const struct load_options *options, struct report_cpu *cpus, bool end,
                     struct error *err)
{
    for (unsigned i = 0; i < options->pid_count; i++) {
        cpus[i].pid = options->pids[i];
        int errnum = report_cpu_read(cpus[i].pid, end ? &cpus[i].end_s : &cpus[i].begin_s);
        if (errnum != 0)
            return error_errno(err, errnum, "CPU time of process %d", (int)cpus[i].pid);
    }
    return 0;
}

static double own_cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Runs the load between two readings of the servers' CPU clocks and prints the report. */
static int measure(struct load *load, const struct load_options *options, struct error *err)
{
    struct report_cpu cpus[LOAD_PIDS_MAX];
    _cleanup_free_ struct load_stats *stats = calloc(1, sizeof *stats);
    if (stats == NULL)
        return error_set(err, E_NOMEM, "statistics");
    double cpu_begin_s = own_cpu_s();
    int rc = cpus_read(options, cpus, false, err);
    if (rc == 0)
        rc = load_run(load, stats, err);
    uint64_t end_ns = load_now_ns();
    if (rc == 0)
        rc = cpus_read(options, cpus, true, err);
    if (rc != 0)
        return rc;
    /* The worker's loop ends up to a tick after the last answer. */
    if (stats->last_answer_ns > load->begin_ns)
        end_ns = stats->last_answer_ns;
    double elapsed_s = (double)(end_ns - load->begin_ns) / 1e9;
    json_t *doc =
        report_json(load, stats, elapsed_s, own_cpu_s() - cpu_begin_s, cpus, options->pid_count);
    json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(doc);
    return 0;
}

static void files_limit_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    struct load load = {.body_fd = -1};
    struct load_options options = {0};
    struct error err = ERROR_INIT;
    signal(SIGPIPE, SIG_IGN); /* sendfile(2) has no MSG_NOSIGNAL */
    files_limit_raise();
    int rc = load_options_parse(argc, argv, &load, &options, &err);
    if (rc == 0 && options.help) {
        load_options_help();
    } else {
        if (rc == 0)
            rc = body_make(&load, &err);
        if (rc == 0)
            rc = measure(&load, &options, &err);
    }
    body_free(&load);
    load_options_done(&load);
    if (rc == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "dfc-load: %s\n", err.message);
    return rc == E_INVALID ? 2 : EXIT_FAILURE;
}
