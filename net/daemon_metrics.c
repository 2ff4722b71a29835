#include "net/daemon_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/build.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "io/descriptors.h"

void daemon_metrics_begin(void)
{
    char labels[160];
    snprintf(labels, sizeof labels, "version=\"%s\",commit=\"%s\",built=\"%s\"", build_release(),
             build_commit(), build_date());
    metric_set(metric_get(M_build_info, labels), 1);
    metric_set(metric_get(M_process_start_time_seconds, NULL), clock_wall_ms() / 1000);
    metric_set(metric_get(M_process_max_fds, NULL), (int64_t)descriptors_limit());
}

static int64_t microseconds(const struct timeval *t)
{
    return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

static void measure_cpu(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) == 0)
        metric_set(metric_get(M_process_cpu_seconds_total, NULL),
                   microseconds(&used.ru_utime) + microseconds(&used.ru_stime));
}

/* "SIZE RESIDENT …", in pages. */
static void measure_memory(void)
{
    long long size, resident;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL)
        return;
    if (fscanf(f, "%lld %lld", &size, &resident) == 2)
        metric_set(metric_get(M_process_resident_memory_bytes, NULL),
                   resident * sysconf(_SC_PAGESIZE));
    fclose(f);
}

static void count_descriptors(void)
{
    int64_t count = -3; /* ".", "..", and that of this look */
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    metric_set(metric_get(M_process_open_fds, NULL), count);
}

void daemon_metrics_measure(void)
{
    measure_cpu();
    measure_memory();
}

void daemon_metrics_text(struct buf *out)
{
    daemon_metrics_measure();
    count_descriptors();
    metrics_text(out);
}

void daemon_metrics_reply(struct http_request *req)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    daemon_metrics_text(&text);
    http_reply_data(req, 200, "text/plain; version=0.0.4", buf_str(&text), text.len);
}
