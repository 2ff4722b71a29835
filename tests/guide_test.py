#!/usr/bin/env python3
"""blackbox/guide.py reads pages, and a page with a wrong output does not pass."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "blackbox"))

import guide  # noqa: E402
from lib import Failed, Ports  # noqa: E402

PAGE = """# Page

```console
$ echo one   two
one two
$ cat <<END
> three
> END
three
```

```sh
rm -rf /
```

```console fails
$ false
```

Commands in `sh` are not run by the tests.
"""


class Pages(unittest.TestCase):
    def test_the_commands_of_a_page(self):
        steps = guide.steps_of(PAGE)
        self.assertEqual([s.command for s in steps],
                         ["echo one   two", "cat <<END\nthree\nEND", "false"])
        self.assertEqual([s.expected for s in steps], [["one two"], ["three"], []])
        self.assertEqual([s.fails for s in steps], [False, False, True])

    def test_a_block_begins_with_a_command(self):
        with self.assertRaises(Failed):
            guide.steps_of("```console\nwhat is this\n```\n")


class Outputs(unittest.TestCase):
    def test_what_matches(self):
        for expected, output in ((["a b"], "a    b\n"), (["srt-… is done"], "srt-1-x9 is done\n"),
                                 ([], ""), (["…"], ""), (["first", "…", "last"],
                                                         "first\n2\n3\nlast\n"), (["a."], "a.")):
            self.assertTrue(guide.prints(expected, output), (expected, output))

    def test_what_does_not(self):
        for expected, output in (([], "a\n"), (["a"], ""), (["a"], "a\nb\n"), (["a."], "ab\n"), ([
                "a…c"
        ], "a\nc\n"), (["first", "…", "last"], "first\nlast\nmore\n"), (["ab"], "a b\n")):
            self.assertFalse(guide.prints(expected, output), (expected, output))

    def test_ports_and_the_directory_are_translated(self):
        t = guide.Translation("/tmp/x/dfc", 12060)
        self.assertEqual(t.command("curl http://127.0.0.1:8083/ --control-port=8081"),
                         "curl http://127.0.0.1:12063/ --control-port=12061")
        self.assertEqual(t.output("127.0.0.1:12063 127.0.0.1:40001 127.0.0.1:7 /tmp/x/dfc/a"),
                         "127.0.0.1:8083 127.0.0.1:40001 127.0.0.1:7 /home/me/dfc/a")


class Runs(unittest.TestCase):
    """Without a cluster."""

    def setUp(self):
        self.ports = Ports()
        self.addCleanup(self.ports.file.close)

    def run_page(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            guide.run_page(f.name, self.ports)

    def fails(self, text, sentence):
        with self.assertRaises(Failed) as caught:
            self.run_page(text)
        self.assertIn(sentence, str(caught.exception))

    def test_a_right_page_passes(self):
        self.run_page(PAGE)

    def test_one_session(self):
        self.run_page(
            "```console\n$ X=1; cd deploy\n```\n```console\n$ echo $X $PWD\n1 /home/me/dfc/deploy\n"
            "```\n"
        )

    def test_a_wrong_output_fails(self):
        self.fails(PAGE.replace("one two", "one  three"), "line 4: $ echo one   two")

    def test_a_wrong_status_fails(self):
        self.fails(PAGE.replace("$ false", "$ true"), "'true' ends with 0")
        self.fails(PAGE.replace("console fails", "console"), "'false' ends with 1")

    def test_commands_that_are_not_run_are_told_of(self):
        self.fails(PAGE.replace("not run by", "unknown to"), guide.NOT_RUN)


if __name__ == "__main__":
    unittest.main()
