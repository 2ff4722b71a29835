#include "net/auth/window.h"

#include <string.h>

static uint64_t bit_of(uint64_t counter)
{
    return 1ull << (counter % 64);
}

static uint64_t *word_of(struct auth_window *w, uint64_t counter)
{
    return &w->taken[counter % AUTH_WINDOW / 64];
}

static void move_up(struct auth_window *w, uint64_t counter)
{
    if (counter - w->top >= AUTH_WINDOW) {
        memset(w->taken, 0, sizeof w->taken);
    } else {
        for (uint64_t c = counter; c != w->top; c--)
            *word_of(w, c) &= ~bit_of(c);
    }
    w->top = counter;
}

bool auth_window_take(struct auth_window *w, uint64_t counter)
{
    if (counter == 0 || (counter <= w->top && w->top - counter >= AUTH_WINDOW))
        return false;
    if (counter > w->top)
        move_up(w, counter);
    uint64_t *word = word_of(w, counter);
    bool fresh = (*word & bit_of(counter)) == 0;
    *word |= bit_of(counter);
    return fresh;
}
