#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random patterns: what rsync lets through and what tiptoe's filter lets through must be the same.

filter_random.py FILTERTOOL [COUNT [SEED]]: COUNT (250) sets of one to three rules over one tree of names. Exits 77 without rsync.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

PARTS = ["a", "b", "ab", "ba", "abc", "a.b", "a*b", "a?", "[a]", "a\\b", "x-y", "]", "A", "1", "a b", "!", "-", "\u00e4"]
ATOMS = ["a", "b", "ab", "c", ".", "*", "*", "**", "***", "?", "/", "/", "[ab]", "[!a]", "[^b]", "[a-c]", "[[:alpha:]]", "[[:digit:]x]",
         "[[:foo:]]", "[]a]", "[a-]", "[", "[a", "\\*", "\\a", "\\\\", "\\", "]", "1", "A", " ", "!", "-", "x-y", "[/]", "[\\]]", "[b-a]", "[[:a]", "[+--/]"]
FIXED = ["", "!", "/", "//", "a//", "+ a", "- a", "+ ", "- ", "+", "-", "a/***", "a/**", "**", "***", "/**", "/***", "*/", "**/", "***/", "a/b", "/a/b", "a/*", "a**b", "/a**b",
         "**/a", "**a", "a**", "a***", "b***", "a/**/b", "**/a/**", "*", "/*", "/*/", "*/*", "/*/*", "./a", "/.", ".", "- !", "+ !", "- /a/", "*a\\", "a\\*b", "a\\b", "a\\\\b", "*\\b", "\\a", "[a]", "[[]a]", "a/b/", "/a/b/", "//a", "/a//b", "a***b", "*/***", "**/***", "**/b/"]


def make_tree(root, rng):
    names = []

    def fill(path, depth):
        for part in sorted(rng.sample(PARTS, 12 if depth == 0 else 6)):
            rel = os.path.join(path, part)
            if depth < 3 and rng.random() < 0.5:
                os.mkdir(os.path.join(root, rel))
                names.append(rel + "/")
                fill(rel, depth + 1)
            else:
                open(os.path.join(root, rel), "w").close()
                names.append(rel)

    fill("", 0)
    return names


# What stands before a pattern in --filter, and rules that do not parse.
PREFIXES = ["- ", "-_", "+ ", "exclude ", "include ", "-,", "-! ", "+! ", "-s ", "+s ", "-r ", "-sr ", "-p ", "-x ", "-/ ", "+/ ", "-/! ", "H ", "S ", "P ", "R ",
            "hide ", "show_", "protect ", "risk ", "-!p ", "exclude,! ", "H! ", "S/ "]
BROKEN = ["-", "- ", "+", "x a", "exclude", "excluded a", "-e a", "-n a", "-w a", "Hs a", "Pr a", "HC", "--", "-+ a", "! a", "!", "clear", "clear a", "clear,", ", a", "- a ",
          "-C a", ":! a", ".! a", "  - a", "exclude\ta", "-\ta", "_a", "S,", "-,/ a", "!,", "-,", "include,", "-- a", ":-+ a", ":C- a", ":CC"]


def random_rules(rng):
    rules = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        text = "".join(rng.choice(ATOMS) for _ in range(rng.randint(1, 5)))
        if rng.random() < 0.4:
            prefix = rng.choice(PREFIXES)
            if "/" in prefix and rng.random() < 0.7:
                # The end of the path to the source, which they see, too.
                text = rng.choice(["s/", "*/s/", "/**/s/", "s/**", "**/s/", "/*/*/s/"]) + text
            rules.append("--filter=" + prefix + text)
            continue
        rules.append(rng.choice(["--exclude=", "--exclude=", "--include="]) + text)
    if "--include=" in rules[-1] or rules[-1].startswith(("--filter=+", "--filter=i", "--filter=S", "--filter=s")):
        rules.append("--exclude=" + rng.choice(["*", "**", "*/", "a*", "/*/*"]))
    return rules


def main():
    if not shutil.which("rsync"):
        print("no rsync")
        return 77
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 250
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = random.Random(seed)
    work = tempfile.mkdtemp(prefix="filter-random-")
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    try:
        source, destination = os.path.join(work, "s"), os.path.join(work, "d")
        os.mkdir(source)
        os.mkdir(destination)
        names = make_tree(source, rng)
        sets = [["--exclude=" + p] for p in FIXED] + [["--include=" + p, "--exclude=*"] for p in FIXED]
        sets += [["--exclude=" + p, "--exclude=b"] for p in ("!", "- !", "")] + [["--exclude=b", "--exclude=!", "--exclude=a"]]
        sets += [["--filter=" + rule, "--exclude=b"] for rule in BROKEN]
        sets += [["--filter=" + prefix + "a", "--exclude=a*"] for prefix in PREFIXES]
        sets += [random_rules(rng) for _ in range(count)]
        request = "".join("\n".join(rules) + "\n\n" + "\n".join(names) + "\n\n" for rules in sets)
        answer = subprocess.run([tool, "-", source], input=request, stdout=subprocess.PIPE, text=True, check=True).stdout.split("%%\n")
        wrong = left_out = 0
        for rules, ours in zip(sets, answer):
            done = subprocess.run(["rsync", "-an8", "--out-format=%n"] + rules + [source + "/", destination + "/"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
            theirs = sorted(line for line in done.stdout.split("\n") if line and line != "./")
            mine = sorted(line for line in ours.split("\n") if line)
            refused = any(line.startswith("refused ") for line in mine)
            left_out += theirs != sorted(names)
            if refused != (done.returncode != 0) or (not refused and theirs != mine):
                wrong += 1
                print(f"{rules}: only rsync lets through {sorted(set(theirs) - set(mine))[:4]}, only tiptoe {sorted(set(mine) - set(theirs))[:4]} "
                      f"{done.stderr.strip()[:80]}")
        print(f"{len(sets)} sets of rules over {len(names)} names, {left_out} leave something out, {wrong} differ (seed {seed})")
        return 1 if wrong or left_out < len(sets) // 4 else 0
    finally:
        shutil.rmtree(work)


sys.exit(main())
