/* Users, roles and their grants, for people. */
#pragma once

#include "api/ctl/ctl.h"

/* "read, write on train-*, below shards/; see on the cluster": malloc'ed.  "-": none. */
char *grants_text(json_t *grants);
/* "100 requests/s, 1 MiB/s on each node": malloc'ed.  "-": no limit. */
char *rate_text(const struct ctl *ctl, const json_t *rate);
/* The texts of a list: "reader, writer"; malloc'ed.  "-": none. */
char *names_text(json_t *names);
/* All that a user's document says. */
void user_print(const struct ctl *ctl, json_t *user);
