/* Which file has the cluster's key, for the commands that administer: --cluster-key-file, else
 * $DFC_CLUSTER_KEY_FILE, else the one that deploy/local/cluster makes below the current directory,
 * where all endpoints are of this machine. */
#pragma once

#include <stdbool.h>

#define KEY_FILE_LOCAL ".dfc-cluster/cluster.key"

/* Each may be NULL.  endpoints as for dfc_client_open().  local_exists: there is a KEY_FILE_LOCAL.
 * "" where there is none. */
const char *key_file_choose(const char *flag, const char *environment, const char *endpoints,
                            bool local_exists);
/* Is every one of them on a loopback address?  NULL or "": the default endpoint is. */
bool key_file_all_loopback(const char *endpoints);
