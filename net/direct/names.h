/* The addresses of nodes that are known by a name, as libcurl has found them: "node-1.example:80" →
 * "10.0.0.1:80".
 *
 * Each is forgotten after NAMES_KNOWN_MS: a pod that moves keeps its name alone.  A table of fixed
 * size; a name may take another one's place.  Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct names;

enum { NAMES_KNOWN_MS = 1000, NAMES_ADDRESS_MAX = 64 };

struct names *names_new(void);
void names_free(struct names *n); /* NULL is fine */

/* `now_ms`: clock_ms(). */
void names_learn(struct names *n, const char *authority, const char *address, uint64_t now_ms);
/* False: it is not known. */
bool names_find(struct names *n, const char *authority, uint64_t now_ms,
                char address[NAMES_ADDRESS_MAX]);
