#!/usr/bin/env python3
"""words.py counts as it says."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import words  # noqa: E402


def many(count):
    return " ".join(["word"] * count) + "."


class Words(unittest.TestCase):
    def sentences(self, text):
        return [(line, sentence) for line, sentence, _ in words.sentences(text)]

    def test_sentences_of_paragraphs_lists_and_tables(self):
        text = ("# A title. Of two\n\nOne two.\nThree! (Four.) Five\n\n- six\n  seven\n2. eight\n"
                "| nine | ten \\| |\n|---|---|\n")
        self.assertEqual(self.sentences(text), [(3, "One two."), (3, "Three!"), (3, "(Four."),
                                                (3, "Five"), (6, "six seven"), (8, "eight"),
                                                (9, "nine"), (9, "ten \\|")])

    def test_code_is_not_looked_at(self):
        self.assertEqual(
            self.sentences(
                f"```sh\n{many(50)}\n```\n\n    {many(50)}\n\n<!-- {many(50)}\n-->\nEnd."),
            [(9, "End.")])

    def test_a_point_within_a_word_ends_nothing(self):
        self.assertEqual(len(self.sentences("See `a.b` in [the page. It](x.md) of 0.1.0 now.")), 2)

    def test_messages_have_the_words_of_the_glossary(self):
        source = ('/* "nobody here" */ char q = \'"\'; // "nobody"\nlog("no one "\n    /* so */ "acts "'
                  ' "for it"); f("nobody");')
        self.assertEqual(list(words.literals(source)), [(2, "no one acts for it"), (3, "nobody")])
        self.assertEqual(len(words.said(source)), 1)
        self.assertIn("2: 'acts? for'", words.said(source)[0])
        self.assertEqual(len(words.said('f("objects lie on %s"); f("it lies here");')), 2)

    def test_a_long_sentence_is_wrong(self):
        self.assertEqual(words.findings("One. " + many(35))[0], [])
        self.assertIn("1: 36 words", words.findings("One. " + many(36))[0][0])
        self.assertIn("1: 36 words", words.findings("| a | " + many(36) + " |")[0][0])

    def test_the_average_is_of_sentences_and_not_of_cells(self):
        self.assertEqual(words.findings(many(20) + " " + many(20))[0], [])
        self.assertEqual(len(words.findings(many(20) + " " + many(21) + "\n\n| a | b |\n")[0]), 1)

    def test_words_that_the_glossary_has_others_for(self):
        self.assertIn("write leader", words.findings("The acting owner answers.")[0][0])
        self.assertEqual(words.findings("`acting owner` is code.")[0], [])


if __name__ == "__main__":
    unittest.main()
