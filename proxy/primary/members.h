/* The primary's part in who is alive: registrations and keepalives come in from HTTP threads, a
 * timer in the control loop asks cluster/members/membership.h for verdicts and commits them.  What
 * they decide is pure: proxy/primary/admission.h. */
#pragma once

#include "cluster/props/quota.h"
#include "proxy/primary/admission.h"

struct proxy;
struct members;

/* In the control loop's thread. */
struct members *members_start(struct proxy *p);
void members_close(struct members *m); /* judges no more */
void members_stop(struct members *m);

/* Any thread; E_NOT_PRIMARY (false) where the proxy is not the primary. */
int members_register(struct proxy *p, const struct node *spec, const struct node_past *past,
                     struct command *join, struct error *err);
/* *lease_ms: cluster/members/lease.h. */
int members_keepalive(struct proxy *p, const struct keepalive *k, uint64_t *lease_ms,
                      struct error *err);
/* What this target has of buckets with a quota, and what the others have (quota_sums.h); *reply is
 * the caller's. */
int members_take_quotas(struct proxy *p, const struct cluster_state *s, const char *id,
                        json_t *list, json_t **reply, struct error *err);
/* Nothing where the proxy is not the primary. */
struct quota_amount members_quota_used(struct proxy *p, uint64_t bucket_id);
/* This run of the node stops: done(), in the control loop's thread, when every active proxy knows
 * that (proxy_commit_settled()), or why it could not be made known. */
int members_stop_node(struct proxy *p, const char *id, const char *boot,
                      void (*done)(void *arg, const struct error *err), void *arg,
                      struct error *err);
bool members_last(struct proxy *p, const char *id, struct keepalive *out);
uint64_t members_silent_ms(struct proxy *p, const char *id); /* membership_silent_ms() */
