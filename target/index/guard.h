/* Flags that are set when this process dies of a fault of its own: SIGSEGV, SIGBUS, SIGILL, SIGFPE,
 * SIGABRT.  The flags lie in memory that outlives the process (index/session.h).  Whoever handled
 * the signal before (a sanitizer, a test) handles it afterwards, or the process ends of it.
 *
 * The handlers are global, as signals are; they are installed with the first flag and stay. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

void index_guard_add(_Atomic uint32_t *flag);
void index_guard_remove(_Atomic uint32_t *flag); /* one that was not added: fine */
