/* For tests: a cluster's state, made by commands. */
#pragma once

#include "cluster/command/command.h"

/* *s is replaced by what comes of the command, which must succeed. */
void test_state_apply(const struct cluster_state **s, const struct command *cmd);
/* This target joins; empty, where it is not known yet. */
void test_state_join(const struct cluster_state **s, const char *id, const char *boot, bool lost);
