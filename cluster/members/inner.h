/* Is an address one of the cluster's own networks: a node's control or data port?  Nothing that a
 * client names may lead there, whatever the operator lists: without a cluster key whoever reaches
 * such a port is taken for a node.  Pure.
 *
 *   the node's URL has this address               its port is the node's
 *   the address is an inner one (address.h),      the same: it may be another address of that node
 *   or the URL has a name
 *
 * So of hosts with names, and of inner ones, the ports of nodes are refused at all of them. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct smap;

bool inner_has(const struct smap *m, const struct sockaddr *address);
