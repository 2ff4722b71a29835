/* Where requests to backends wait until there are few enough under way (limit.h): one gate for each
 * server, by its origin (common/origin.h).
 *
 *   gate_enter() ─▶ request ─▶ its answer begins ─▶ gate_leave()
 *
 * Threads: any; gate_enter() blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct gate;
struct gates;

enum gate_verdict { GATE_ANSWERED, GATE_REFUSED, GATE_UNKNOWN };

struct gates *gates_new(void);
/* Lets nobody in any more, nor wait. */
void gates_close(struct gates *g);
void gates_free(struct gates *g); /* nobody is inside; NULL is fine */

struct gate_pass {
    struct gate *gate; /* NULL: there are too many servers, and this one is not counted */
    unsigned cuts;
};

/* False: they are closed. */
bool gate_enter(struct gates *g, const char *url, struct gate_pass *out);
void gate_leave(struct gates *g, const struct gate_pass *pass, enum gate_verdict verdict);
