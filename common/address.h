/* Which addresses may be connected to for a client that named the host (backends, downloads): all
 * of the public Internet's, and of the others those that the operator lists.  Pure; fuzzed.
 *
 * Refused unless a row has them: loopback, private (RFC 1918, RFC 6598, fc00::/7), link-local
 * (RFC 3927: metadata services of clouds are there), unspecified, multicast, reserved; and the same
 * inside of IPv6 (mapped, compatible, NAT64, 6to4, Teredo).
 *
 * A list is "CIDR[,CIDR]": "10.1.0.0/16,fd00::/8"; an address alone is one address. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/error.h"

struct address_list;

/* "" is a list without rows.  E_INVALID with the row that is wrong. */
int address_list_new(const char *text, struct address_list **out, struct error *err);
void address_list_free(struct address_list *l); /* NULL is fine */
bool address_list_has(const struct address_list *l, const struct sockaddr *address);

/* One that only hosts of a site, or of this machine, answer at.  Also what is no address of the
 * Internet at all. */
bool address_is_inner(const struct sockaddr *address);
/* Is it inner, and in no row? */
bool address_is_refused(const struct address_list *l, const struct sockaddr *address);
/* 0 where it has none. */
unsigned address_port(const struct sockaddr *address);
/* Is `host` this address?  It may be an IPv6 address in brackets; a name is no address. */
bool address_is_host(const struct sockaddr *address, const char *host, size_t len);
/* Is it one, and no name? */
bool address_is_literal(const char *host, size_t len);
