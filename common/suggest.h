/* "Did you mean ...?": the nearest of some words, if any is near: pure. */
#pragma once

#include <stddef.h>

struct suggestion {
    const char *text; /* NULL: nothing is near enough */
    size_t distance;
};

#define SUGGESTION_INIT ((struct suggestion){NULL, (size_t)-1})

/* Keeps `candidate` in *best where it is nearer to `word` than what is there, and near enough. */
void suggest(struct suggestion *best, const char *word, const char *candidate);

/* Damerau-Levenshtein (adjacent letters swapped count once) over at most 64 letters. */
size_t suggest_distance(const char *a, const char *b);
