/* What the daemons have in common around their own work: options that print and leave, the log,
 * signals, and the file that says that a daemon is ready.
 *
 *     int main(int argc, char **argv)
 *     {
 *         if (daemon_printed(&program, argc, argv))
 *             return 0;
 *         params_load(…);
 *         daemon_begin(…, &signals, …);  before any thread is made
 *         … start …
 *         daemon_write_ready(dir, doc);  {"id", "pid", "public_url", …}
 *         daemon_serve(signals, …);      until SIGTERM or SIGINT (daemon_reload.h)
 *         daemon_remove_ready(dir);
 *         … stop …
 *     }
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"
#include "common/param.h"
#include "net/http/server.h"

struct tls;

/* An option of one program that prints. */
struct daemon_printer {
    const char *option;
    void (*put)(struct buf *out);
};

struct daemon_program {
    const char *name;    /* "dfc-targetd" */
    const char *summary; /* one sentence for --help */
    const struct param_row *params;
    const struct http_route *const *routes; /* NULL-terminated list of tables */
    void (*more_params)(struct buf *out);   /* follows the table of --params-markdown; or NULL */
    const struct daemon_printer *printers;  /* ends with a row without option; or NULL */
};

/* --help, --version, --man, the tables for docs/ (--api-markdown, --params-markdown,
 * --metrics-markdown, --errors-markdown) and the program's own: prints to stdout and returns
 * true. */
bool daemon_printed(const struct daemon_program *p, int argc, char **argv);

struct daemon_config {
    const char *program; /* for the log's first line */
    const char *id;      /* checked with node_id_check() by its owner */
    const char *log_level;
    const char *log_format;
    const char *log_file;  /* "": standard error */
    size_t log_memory;     /* bytes of its last lines that are kept */
    uint64_t files_wanted; /* by connections, on all listeners; a limit below is warned of */
    const char *faults;
};

/* Sets up the log and the fault points, raises the limit of open files as far as it goes (each
 * connection has one, and each GET another), ignores SIGPIPE, and blocks SIGTERM and SIGINT in all
 * threads: they come as bytes of *signals_fd (signalfd), and in no thread as interruptions.  So are
 * SIGHUP, SIGUSR1 and SIGUSR2, which wait for daemon_serve() (daemon_reload.h).  In the
 * main thread, before any other is made. */
int daemon_begin(const struct daemon_config *config, int *signals_fd, struct error *err);
/* What it refuses of the log's parameters. */
int daemon_log_check(const char *level, const char *format, struct error *err);
/* The daemon ends by this error: into the log.  If that is a file, and daemon_write_ready() was not
 * reached, also to the standard error of the start, where a person or systemd looks. */
void daemon_ends(const char *program, const struct error *err);

/* Waits for SIGTERM or SIGINT, or until `other_fd` (-1: none) can be read.  True: a signal. */
bool daemon_await(int signals_fd, int other_fd);

/* True: a signal has come; false: none within this time. */
bool daemon_pause(int signals_fd, int ms);

/* <dir>/ready.json, atomically; doc's reference is not taken. */
int daemon_write_ready(const char *dir, json_t *doc, struct error *err);
void daemon_remove_ready(const char *dir);

/* The address that a listener binds to: its own, or "" and then that of all. */
const char *daemon_address(const char *own, const char *all);
/* What others call it: `advertise` where there is one.  But a listener between nodes that has an
 * address of its own is called by that, unless it stands for all addresses of the machine. */
const char *daemon_host(const char *own, const char *all, const char *advertise,
                        bool between_nodes);
/* "http://127.0.0.1:8080": how others reach a listener, over TLS "https://…". */
char *daemon_url(bool tls, const char *host, uint16_t port);
/* The threads of a listener with bulk data: as wanted, and for 0 one for each CPU, at least 2. */
unsigned daemon_http_threads(uint64_t wanted);
/* The certificate of the public listener (net/tls/tls.h); NULL where neither file is given. */
int daemon_tls_new(const char *cert_file, const char *key_file, struct tls **out,
                   struct error *err);
