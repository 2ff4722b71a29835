#include "api/interruptible.h"

#include <stddef.h>

static _Thread_local bool (*ask)(void *context);
static _Thread_local void *ask_context;

void client_interruptible(bool (*interrupted)(void *context), void *context)
{
    ask = interrupted;
    ask_context = context;
}

bool client_is_interruptible(void)
{
    return ask != NULL;
}

bool client_is_interrupted(void)
{
    return ask != NULL && ask(ask_context);
}
