/* Samples of a ring: one lane that is pushed to, or the lanes that a cut of power has left. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "target/disk/mountpaths.h"

void samples_make_lane(struct mountpaths *mountpaths);
int samples_push(uint64_t number, struct error *err); /* any thread */

void samples_open(struct mountpaths *mountpaths); /* all that the lanes have */
void samples_check(const char *name);             /* the number of a push; prints an answer */
void samples_list(void);

void samples_close(void);
