#include "tests/bench/report.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

int report_cpu_read(pid_t pid, double *out_s)
{
    clockid_t clock;
    struct timespec t;
    int errnum = clock_getcpuclockid(pid, &clock);
    if (errnum != 0)
        return errnum;
    if (clock_gettime(clock, &t) != 0)
        return errno;
    *out_s = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
    return 0;
}

static json_t *latency_json(const struct histogram *h)
{
    double mean = h->count > 0 ? (double)h->sum / (double)h->count : 0;
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", mean / 1e3, "p50",
                     (double)histogram_quantile(h, 500) / 1e3, "p90",
                     (double)histogram_quantile(h, 900) / 1e3, "p99",
                     (double)histogram_quantile(h, 990) / 1e3, "max", (double)h->max / 1e3);
}

static json_t *errors_json(const struct load_stats *stats)
{
    static const char *const names[LOAD_ERROR_KINDS] = {
        [LOAD_ERROR_CONNECT] = "connect",
        [LOAD_ERROR_IO] = "io",
        [LOAD_ERROR_TIMEOUT] = "timeout",
        [LOAD_ERROR_PROTOCOL] = "protocol",
    };
    json_t *doc = json_object();
    for (unsigned i = 0; i < LOAD_ERROR_KINDS; i++)
        json_object_set_new(doc, names[i], json_integer((json_int_t)stats->errors[i]));
    return doc;
}

static json_t *status_json(const struct load_stats *stats, uint64_t *non_2xx)
{
    json_t *doc = json_object();
    *non_2xx = 0;
    for (unsigned i = 0; i < sizeof stats->status / sizeof stats->status[0]; i++) {
        if (stats->status[i] == 0)
            continue;
        char name[8];
        snprintf(name, sizeof name, "%u", i);
        json_object_set_new(doc, name, json_integer((json_int_t)stats->status[i]));
        if (i < 200 || i > 299)
            *non_2xx += stats->status[i];
    }
    return doc;
}

static double cpus_put(json_t *doc, const struct report_cpu *cpus, unsigned count)
{
    double total = 0;
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++) {
        double used = cpus[i].end_s - cpus[i].begin_s;
        total += used;
        json_array_append_new(list,
                              json_pack("{s:i, s:f}", "pid", (int)cpus[i].pid, "cpu_s", used));
    }
    json_object_set_new(doc, "servers", list);
    json_object_set_new(doc, "server_cpu_s", json_real(total));
    return total;
}

json_t *report_json(const struct load *load, const struct load_stats *stats, double elapsed_s,
                    double client_cpu_s, const struct report_cpu *cpus, unsigned cpu_count)
{
    uint64_t requests = stats->latency_ns.count;
    uint64_t bytes = stats->bytes_in + stats->bytes_out;
    uint64_t non_2xx;
    json_t *status = status_json(stats, &non_2xx);
    json_t *doc = json_pack(
        "{s:i, s:i, s:f, s:I, s:I, s:f, s:f, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:f}",
        "connections", (int)load->connections, "threads", (int)load->threads, "seconds", elapsed_s,
        "requests", (json_int_t)requests, "puts", (json_int_t)stats->puts, "requests_per_s",
        (double)requests / elapsed_s, "mb_per_s", (double)bytes / 1e6 / elapsed_s, "bytes_in",
        (json_int_t)stats->bytes_in, "bytes_out", (json_int_t)stats->bytes_out, "latency_us",
        latency_json(&stats->latency_ns), "errors", errors_json(stats), "status", status, "non_2xx",
        (json_int_t)non_2xx, "redirects", (json_int_t)stats->redirects, "reconnects",
        (json_int_t)stats->reconnects, "client_cpu_s", client_cpu_s);
    double server_cpu_s = cpus_put(doc, cpus, cpu_count);
    if (requests > 0)
        json_object_set_new(doc, "server_cpu_us_per_request",
                            json_real(server_cpu_s * 1e6 / (double)requests));
    return doc;
}
