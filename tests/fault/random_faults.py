#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random faults in source and destination, random options: random_faults.py FIRST-SEED COUNT, in an empty directory.

Whatever goes wrong: the run ends; every name of the destination has its whole old or its whole new content; nothing that was there is missing; exit
code 0 means that the trees are equal; no temporary is left. Prints what was not so, with the seed; exit code 1 then.
"""
import filecmp
import os
import random
import shutil
import subprocess
import sys

TIPTOE = os.environ["TIPTOE"]
SOURCE_OPERATIONS = "lookup read read open opendir readdir readlink".split()
DESTINATION_OPERATIONS = ("lookup write write fsync flush create rename chmod chown utimens truncate mkdir symlink link readdir opendir open"
                          " fsyncdir read").split()
ERRORS = "EIO EIO EIO ENOSPC EDQUOT EROFS ESTALE EACCES EPERM ENOENT delay=20".split()
PATTERNS = ["*", "*", "*f*", "*g1*", "*big*", "d*", "*link*", "e"]
OPTIONS = ["--fsync", "--delete", "-H", "--workers=1", "--dirty-limit=1M", "--cache=keep", "-c", "-u", "--ignore-existing"]


def make_version(top, version):
    """The same names, contents that say whose they are."""
    sizes = random.Random(1)
    for directory in range(4):
        os.makedirs(f"{top}/d{directory}/e")
        for number in range(8):
            for name in (f"d{directory}/f{number}", f"d{directory}/e/g{number}"):
                line = f"{version} {name}\n".encode()
                size = sizes.choice([0, 100, 5000, 70000])
                with open(f"{top}/{name}", "wb") as file:
                    file.write((line * (size // len(line) + 1))[:size])
    with open(f"{top}/big", "wb") as file:
        file.write(f"{version} big\n".encode() * 1500000)
    os.link(f"{top}/big", f"{top}/hard")
    os.symlink(f"to {version}", f"{top}/link")
    subprocess.run(["find", top, "-exec", "touch", "-h", "-d", f"@{1500000000 + version * 1000}", "{}", "+"], check=True)


def make_rules(random_, operations):
    rules = []
    for _ in range(random_.randint(0, 3)):
        when = f"{random_.randint(1, 50)}{random_.choice(['', '+'])}"
        rules.append(f"{random_.choice(operations)} {random_.choice(ERRORS)} {when} {random_.choice(PATTERNS)}\n")
    return rules


def set_rules(path, rules):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.writelines(rules)
    os.rename(path + ".new", path)


def is_same(a, b):
    if os.path.islink(a) or os.path.islink(b):
        return os.path.islink(a) and os.path.islink(b) and os.readlink(a) == os.readlink(b)
    return os.path.exists(a) and filecmp.cmp(a, b, shallow=False)


def names_of(top):
    for where, _, files in os.walk(top):
        for name in files:
            yield os.path.relpath(os.path.join(where, name), top)


def judge(code, options, errors):
    bad = []
    if code not in (0, 11, 23, 24) or "internal error" in errors or "Sanitizer" in errors:
        bad.append(f"exit code {code}")
    for name in names_of("below"):
        if ".tt-" in name:
            bad.append(f"temporary {name}")
        elif not any(is_same(f"{version}/{name}", f"below/{name}") for version in ("new", "old")):
            bad.append(f"torn {name}")
    for name in names_of("new"):
        if not os.path.lexists(f"below/{name}"):
            bad.append(f"missing {name}")
        elif code == 0 and "--ignore-existing" not in options and not is_same(f"new/{name}", f"below/{name}"):
            bad.append(f"exit code 0, but not copied: {name}")
        elif "--ignore-existing" in options and not is_same(f"old/{name}", f"below/{name}"):
            bad.append(f"replaced: {name}")
    return bad


def run(seed):
    random_ = random.Random(seed)
    shutil.rmtree("below", ignore_errors=True)
    subprocess.run(["cp", "-a", "old", "below"], check=True)
    source_option = random_.choice(["direct", "writeback", "no-type", "no-seek"])
    destination_option = random_.choice(["writeback", "direct", "no-rename2", "one-link"])
    subprocess.run(["faultfs", "-o", source_option, "--rules", "source.rules", "new", "source"], check=True)
    subprocess.run(["faultfs", "-o", destination_option, "--rules", "destination.rules", "below", "destination"], check=True)
    rules = make_rules(random_, SOURCE_OPERATIONS), make_rules(random_, DESTINATION_OPERATIONS)
    set_rules("source.rules", rules[0])
    set_rules("destination.rules", rules[1])
    options = random_.sample(OPTIONS, random_.randint(0, 3))
    ring = random_.choice(["on", "off"])
    result = subprocess.run(["timeout", "120", TIPTOE, "-a", *options, "source/", "destination"], capture_output=True, text=True, check=False,
                            env=dict(os.environ, TIPTOE_RING=ring))
    for where in "source", "destination":
        set_rules(where + ".rules", [])
        subprocess.run(["umount", where], check=True)
    bad = judge(result.returncode, options, result.stderr)
    if bad:
        print(f"seed {seed}: {bad[:5]}\n{source_option} {destination_option} {options} ring {ring}\n{rules}\n{result.stderr}")
    return bool(bad)


def main():
    for where in "source", "destination":
        os.mkdir(where)
        set_rules(where + ".rules", [])
    make_version("old", 1)
    make_version("new", 2)
    first, count = int(sys.argv[1]), int(sys.argv[2])
    sys.exit(1 if any([run(seed) for seed in range(first, first + count)]) else 0)


main()
