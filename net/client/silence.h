/* A connection whose peer's machine has gone without a word: its address is another's, or nobody's.
 *
 * TCP itself takes minutes to give up.  Here it takes `silence_ms`, or half as much again:
 *
 *   nothing is under way    probes by the kernel (silence_watch())
 *   bytes are under way     sent several times, and nothing was acknowledged (silence_found())
 *
 * A peer whose process stands still is not silent: its kernel acknowledges. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A new socket, before it is connected. */
void silence_watch(int fd, uint64_t silence_ms);
bool silence_found(int fd, uint64_t silence_ms);
