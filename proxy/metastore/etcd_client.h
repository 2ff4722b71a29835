/* Calls to etcd: several endpoints, one of which is used until it fails; logging in; TLS.
 *
 * A call is one attempt at one endpoint, bounded in time; a failed one makes the next endpoint the
 * one to use.  Every function blocks, any thread may call (never a loop's), several at once. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct etcd_client;

struct etcd_endpoints {
    const char *urls;          /* "etcd://host:port,host:port"; "etcds://…" for TLS */
    const char *user;          /* "": nobody logs in */
    const char *password_file; /* its first line */
    const char *ca_file;       /* PEM; "": the system's authorities */
    const char *cert_file;     /* PEM, the client's; "": none */
    const char *key_file;
    uint64_t connect_timeout_ms;
};

/* What is wrong with them, in a sentence. */
int etcd_endpoints_check(const struct etcd_endpoints *e, struct error *err);
int etcd_client_new(const struct etcd_endpoints *e, struct etcd_client **out, struct error *err);
void etcd_client_free(struct etcd_client *c); /* no call is under way */

/* POST path with the JSON; *reply is the answer's (to be released).  E_IN_DOUBT where it may have
 * been done; another code where it was not. */
int etcd_call(struct etcd_client *c, const char *path, const json_t *body, uint64_t timeout_ms,
              json_t **reply, struct error *err);
