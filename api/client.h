/* The inside of a struct dfc_client: endpoints, idle connections, cancellation.
 *
 * Locks: `lock` guards the idle list alone; nothing is called with it held. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/dfc.h"
#include "api/retry.h"

/* A curl handle keeps its connections open between calls, so that handles are reused, the one
 * that was used last first. */
struct handle {
    CURL *easy;
    struct handle *next;
    char text[CURL_ERROR_SIZE]; /* what curl says about a failure */
};

struct handle *client_take(struct dfc_client *c, struct dfc_error *err);
void client_give(struct dfc_client *c, struct handle *h);

bool client_cancelled(const struct dfc_client *c);
/* DFC_CANCELLED with its message. */
int client_say_cancelled(struct dfc_error *err);
/* Pauses, unless cancelled before or meanwhile: false then. */
bool client_pause(struct dfc_client *c, uint64_t ms);

struct signer *client_signer(const struct dfc_client *c); /* of administration (signer.h) */
/* Control listeners that were named, NULL at the end; NULL: none. */
const char *const *client_control_endpoints(const struct dfc_client *c);
/* Where tokens are kept; without a path: nowhere. */
const struct token_cache *client_tokens(const struct dfc_client *c);
struct identity *client_identity(const struct dfc_client *c); /* NULL: anonymous */
uint32_t client_connect_timeout_ms(const struct dfc_client *c);
const char *client_ca_file(const struct dfc_client *c); /* NULL: the system's authorities */
bool client_is_tls(const struct dfc_client *c);         /* every endpoint is https:// */
bool client_is_default(const struct dfc_client *c);     /* nobody named a listener of the cluster */
bool client_is_insecure(const struct dfc_client *c);
uint32_t client_idle_timeout_ms(const struct dfc_client *c);
struct retry_policy client_retry(const struct dfc_client *c);
/* From now on so many tries of a call, also of one that runs. */
void client_attempts(struct dfc_client *c, uint32_t attempts);
/* From now on no call waits later than this (clock_ms()): silence and pauses end then.  0: no
 * limit.  A reply whose bytes arrive is not cut. */
void client_limit(struct dfc_client *c, uint64_t until_ms);
uint64_t client_left_ms(const struct dfc_client *c); /* UINT64_MAX: no limit */
/* A wait of so long, cut to what is left; 1 at least, since curl takes 0 for its default. */
uint32_t client_within_limit(const struct dfc_client *c, uint32_t ms);
const char *client_user_agent(const struct dfc_client *c);

/* Endpoints are numbered in their order; calls begin with the one that answered last. */
size_t client_endpoint_count(const struct dfc_client *c);
size_t client_endpoint_current(const struct dfc_client *c);
const char *client_endpoint_at(const struct dfc_client *c, size_t i);
void client_endpoint_answered(struct dfc_client *c, size_t i);
