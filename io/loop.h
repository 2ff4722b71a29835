/* One libuv loop in one thread, and the way into it: posting messages.
 *
 * Everything that a loop owns is touched only by its thread.  Other threads hand it work:
 *
 *     loop_post(loop, fn, arg);       // fn(arg) runs in the loop's thread, in order of posting
 *
 * loop_stop() closes the loop: posted messages that have not run are run first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct loop;
struct loop_timer;
typedef struct uv_loop_s uv_loop_t;

int loop_new(const char *thread_name, struct loop **out, struct error *err); /* starts its thread */
void loop_free(struct loop *l); /* stops, joins; never from the loop's own thread */

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg);
/* Posts and waits for the end.  Never from the loop's own thread. */
void loop_call(struct loop *l, void (*fn)(void *arg), void *arg);
bool loop_here(const struct loop *l); /* is this the loop's thread? */
uv_loop_t *loop_uv(struct loop *l);   /* only in the loop's thread */

/* Timers: created, re-armed and freed in the loop's thread. */
struct loop_timer *loop_timer_new(struct loop *l, void (*fn)(void *arg), void *arg);
void loop_timer_start(struct loop_timer *t, uint64_t delay_ms, uint64_t repeat_ms);
void loop_timer_stop(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);
