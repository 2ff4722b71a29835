/* The primary's part in who is alive: registrations and keepalives come in from HTTP threads, a
 * timer in the control loop asks cluster/membership.h for verdicts and commits them. */
#pragma once

#include "cluster/membership.h"

struct proxy;
struct members;

/* In the control loop's thread. */
struct members *members_start(struct proxy *p);
void members_stop(struct members *m);

/* Any thread.  May this process have its id?  Its join is then to be committed. */
int members_register(struct members *m, const struct node *spec, struct error *err);
int members_keepalive(struct members *m, const struct keepalive *k, struct error *err);
bool members_last(struct members *m, const char *id, struct keepalive *out);
