/* The target where an upload in parts began: it alone has the parts.  Pure. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/smap.h"
#include "cluster/placement/upload_id.h"
#include "common/error.h"

/* False: it is unreachable, or was put into maintenance and then stopped. */
bool upload_node_answers(const struct node *n);
/* NULL: no target of the map has the seed. */
const struct node *upload_node(const struct smap *m, const struct upload_id *id);
/* The same by the text of an id, for a call of a client.  E_INVALID: no id.  E_NOT_FOUND: the
 * target has left the cluster, and the upload with it.  E_NODE_UNREACHABLE: it does not answer. */
int upload_node_find(const struct smap *m, const char *id, const struct node **out,
                     struct error *err);
