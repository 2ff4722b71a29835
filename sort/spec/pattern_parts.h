/* The steps of the automaton that patterns compile into; pattern.c and pattern_compile.c alone
 * include this. */
#pragma once

#include "sort/spec/pattern.h"

enum step_kind { STEP_BYTE, STEP_CLASS, STEP_SPLIT, STEP_JUMP, STEP_BEGIN, STEP_END, STEP_MATCH };

struct step {
    enum step_kind kind;
    int32_t to;     /* split (the other way is the next step), jump: relative */
    uint32_t value; /* byte, number of a class, of a match */
};

struct class
{
    uint64_t bits[4];
};

struct patterns {
    struct step *steps;
    size_t step_count, step_room;
    struct class *classes;
    size_t class_count, class_room;
    uint32_t *begins; /* first step of each pattern */
    size_t count;
    uint64_t copied; /* steps that repetitions have written, kept or not */
};

#define PATTERNS_COPIES_MAX (16 * PATTERNS_STEPS_MAX) /* of those */

/* Adds one pattern's steps, the last of which matches with `value`.  Where it fails, what it has
 * added stays. */
int pattern_compile(struct patterns *set, const char *text, size_t len, uint32_t value,
                    struct error *err);
