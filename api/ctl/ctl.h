/* What a running command works with: the client, and how to print. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "api/ctl/args.h"
#include "api/ctl/exit.h"
#include "api/dfc.h"
#include "common/error.h"

struct ctl {
    struct dfc_client *client; /* NULL for local commands */
    FILE *out;                 /* standard output */
    FILE *err;                 /* standard error: errors, questions, progress */
    bool json;
    bool raw_units;
    bool headers;
    bool quiet;
    bool verbose;
    bool colour; /* on out */
    bool out_tty;
    bool err_tty;
    bool in_tty;
    bool watch_end; /* a command says: there is nothing more to watch */
};

/* The whole program: returns the exit code. */
int ctl_main(int argc, char **argv);

/* Report a failure, as one line or as {"error": {...}} on standard error, and give its exit code.
 * what ("put 'b/o'") may be NULL. */
int ctl_fail(const struct ctl *ctl, const struct dfc_error *err, const char *what);
int ctl_fail_common(const struct ctl *ctl, const struct error *err, enum exit_code code);
int ctl_usage(const struct ctl *ctl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A remark for people on standard error; nothing with --quiet or -o json. */
void ctl_remark(const struct ctl *ctl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What was done, on standard output; nothing with --quiet.  Without -o json only. */
void ctl_say(const struct ctl *ctl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print a document, indented, with a newline; its reference is taken over. */
void ctl_print_json(const struct ctl *ctl, json_t *doc);
/* A server's document: parsed, so that what is no JSON is reported instead of printed. */
int ctl_parse(const struct ctl *ctl, const char *text, json_t **doc);
/* What the cluster says of itself: its document, or the part `what` of it (dfc_cluster_show()). */
int ctl_cluster(const struct ctl *ctl, const char *what, json_t **doc);

/* Bytes as the user wants them. */
const char *ctl_size(const struct ctl *ctl, uint64_t bytes, char out[static 24]);
/* "2026-11-21 03:04:05" in UTC; "-" for 0. */
const char *ctl_time(int64_t unix_ms, char out[static 32]);

/* Asks on a terminal; without one, --yes is required.  EXIT_OK to go on. */
int ctl_confirm(const struct ctl *ctl, const struct args *args, const char *question);
