/* Kinds of jobs that were renamed.  Documents and nodes go on using the old name: pure. */
#pragma once

const char *job_kind_shown(const char *name);  /* for users */
const char *job_kind_asked(const char *given); /* for the cluster; given may be either name */
/* The present name where the given one is old; else NULL. */
const char *job_kind_renamed(const char *given);
