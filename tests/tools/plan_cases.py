#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Captures what the installed rsync says about many pairs of (source, destination) states, as the table of test_plan.c.

Run as root (it makes devices and foreign owners): tests/tools/plan_cases.py > tests/unit/plan_cases.h
Each set of options is one real run of `rsync OPTIONS -ii --out-format="%i %n" s/ d/` on freshly made trees, once as root and once as
user 1000 with group 1000; the user's runs are dry (-n), because a user can neither make devices nor give files away.
"""
import os
import shutil
import subprocess
import sys
import tempfile

T0 = 1577836800  # 2020-01-01
OLD, NEW = T0 - 86400, T0 + 86400
MY, OTHER = 1000, 1001


def f(**kw):
    return {"t": "f", "size": 3, "data": "a", "mtime": T0, "mode": 0o644, "uid": MY, "gid": MY, **kw}


def d(**kw):
    return {"t": "d", "mtime": T0, "mode": 0o755, "uid": MY, "gid": MY, **kw}


def l(**kw):
    return {"t": "l", "target": "x", "mtime": T0, "mode": 0o777, "uid": MY, "gid": MY, **kw}


def n(t, **kw):
    return {"t": t, "rdev": (1, 3) if t in "cb" else (0, 0), "mtime": T0, "mode": 0o644, "uid": MY, "gid": MY, **kw}


def variants(base):
    """The same thing with one or more attributes changed."""
    yield base
    for change in (
        {"mtime": NEW}, {"mtime": OLD}, {"nsec": 500}, {"mode": 0o600}, {"mode": 0o4755}, {"uid": OTHER}, {"gid": OTHER},
        {"mtime": OLD, "mode": 0o600}, {"mtime": NEW, "uid": OTHER, "gid": OTHER},
        {"mtime": OLD, "mode": 0o600, "uid": OTHER, "gid": OTHER},
    ):
        if base["t"] == "l" and "mode" in change:
            continue
        yield {**base, **change}


def cases():
    for make in (f, d, l, lambda **k: n("p", **k), lambda **k: n("s", **k), lambda **k: n("c", **k), lambda **k: n("b", **k)):
        yield make(), None
        yield make(uid=OTHER, gid=OTHER), None
        yield make(uid=OTHER, gid=OTHER), make()
        for v in variants(make()):
            yield make(), v
    for v in variants(f(size=5)):
        yield f(), v
    for v in variants(f(data="b")):
        yield f(), v
    for v in variants(f(size=0)):
        yield f(), v
    for v in variants(l(target="y")):
        yield l(), v
    for t in "cb":
        for v in variants(n(t, rdev=(1, 5))):
            yield n(t), v
    kinds = [f(), d(), l(), n("p"), n("s"), n("c"), n("b")]
    for a in kinds:
        for b in kinds:
            if a["t"] != b["t"]:
                for when in (T0, OLD, NEW):
                    yield a, {**b, "mtime": when}


OPTIONS = [
    "-a", "-r", "-rt", "-rl", "-rlt", "-rp", "-rtp", "-ro", "-rto", "-rg", "-rtg", "-rD", "-rtD", "-rt --devices", "-rt --specials", "-rlpt",
    "-ac", "-rc", "-rtc", "-a --size-only", "-r --size-only", "-rlD --size-only", "-aI", "-rI", "-aIc", "-aI --size-only", "-au", "-ru", "-auc", "-auI",
    "-a --existing", "-r --existing", "-a --ignore-existing", "-r --ignore-existing", "-a --existing --ignore-existing",
    "-au --existing", "-ac --size-only", "-rlptgoDu --size-only", "-rlpgoD", "-rlpgoDc",
]

AS_USER = ["-a", "-r", "-rto", "-rtg", "-rD", "-au", "-rlpt"]


def build(root, name, e):
    if e is None:
        return
    p = os.path.join(root, name)
    t = e["t"]
    if t == "f":
        with open(p, "w") as out:
            out.write(e["data"] * e["size"])
    elif t == "d":
        os.mkdir(p)
    elif t == "l":
        os.symlink(e["target"], p)
    else:
        kind = {"p": 0o010000, "s": 0o140000, "c": 0o020000, "b": 0o060000}[t]
        os.mknod(p, kind | 0o600, os.makedev(*e["rdev"]))
    os.chown(p, e["uid"], e["gid"], follow_symlinks=False)
    if t != "l":
        os.chmod(p, e["mode"])
    ns = e["mtime"] * 10**9 + e.get("nsec", 0)
    os.utime(p, ns=(ns, ns), follow_symlinks=False)


def run(options, user, table):
    work = tempfile.mkdtemp(prefix="plan-cases-")
    os.chmod(work, 0o755)
    try:
        s, dst = os.path.join(work, "s"), os.path.join(work, "d")
        os.mkdir(s)
        os.mkdir(dst)
        for i, (a, b) in enumerate(table):
            build(s, f"{i:04}", a)
            build(dst, f"{i:04}", b)
        for p in (s, dst):
            os.chown(p, MY, MY)
            os.utime(p, (T0, T0))
        argv = ["rsync"] + options.split() + ["-ii", "--out-format=%i %n", s + "/", dst + "/"]
        if user:
            argv = ["setpriv", "--reuid", str(MY), "--regid", str(MY), "--clear-groups"] + argv + ["-n", "--info=nonreg2"]
        env = {"PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C"}
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, umask=0o022)
        got = {}
        for line in done.stdout.splitlines():
            if line.startswith("skipping non-regular file"):
                got[int(line.split('"')[1])] = "skip"
            elif len(line) > 15 and line[12:16].isdigit() and line[1] in "fdLDS":
                got[int(line[12:16])] = line[:11]
            elif line[12:] == "./" or not line:
                pass
            else:
                print(f"{options}: {line}", file=sys.stderr)
        return [got.get(i, "") for i in range(len(table))]
    finally:
        shutil.rmtree(work)


def initializer(e):
    if e is None:
        return "{0}"
    kind = {"f": "S_IFREG", "d": "S_IFDIR", "l": "S_IFLNK", "p": "S_IFIFO", "s": "S_IFSOCK", "c": "S_IFCHR", "b": "S_IFBLK"}[e["t"]]
    text = f".mode = {kind} | {e['mode']:#06o}".replace("0o", "0") + f", .mtime_sec = {e['mtime']}, .uid = {e['uid']}, .gid = {e['gid']}"
    if "nsec" in e:
        text += f", .mtime_nsec = {e['nsec']}"
    if e["t"] == "f":
        text += f", .size_bytes = {e['size']}"
    if "rdev" in e:
        text += f", .rdev_major = {e['rdev'][0]}, .rdev_minor = {e['rdev'][1]}"
    return "{" + text + "}"


def policy(options, user):
    letters = "".join(w[1:] for w in options.split() if not w.startswith("--")).replace("a", "rlptgoD")
    words = {w[2:] for w in options.split() if w.startswith("--")}
    on = []
    for letter, names in {
        "r": ["recursive"], "l": ["links"], "p": ["perms"], "t": ["times"], "g": ["group"], "o": ["owner"], "D": ["devices", "specials"],
        "c": ["checksum"], "I": ["ignore_times"], "u": ["update"],
    }.items():
        if letter in letters:
            on += names
    on += [w.replace("-", "_") for w in sorted(words)]
    if not user:
        on.append("is_super")
    return "{" + ", ".join(f".{name} = true" for name in on) + "}"


def main():
    table = list(cases())
    version = subprocess.run(["rsync", "--version"], stdout=subprocess.PIPE, text=True).stdout.split()[2]
    print("/* SPDX-License-Identifier: MIT */")
    print(f"/* Made by tests/tools/plan_cases.py with rsync {version}; each row of results is one run of the command in it. */")
    print("/* clang-format off */")
    print("static const struct plan_pair plan_pairs[] = {")
    for a, b in table:
        same_data = "true" if b and a["t"] == b["t"] == "f" and (a["size"], a["data"]) == (b["size"], b["data"]) else "false"
        same_link = "true" if b and a["t"] == b["t"] == "l" and a["target"] == b["target"] else "false"
        print(f"\t{{{initializer(a)}, {initializer(b)}, {'true' if b else 'false'}, {same_data}, {same_link}}},")
    print("};\n")
    print("static const struct plan_run plan_runs[] = {")
    for options in OPTIONS:
        for user in (False, True) if options in AS_USER else (False,):
            who = "as uid 1000: " if user else ""
            print(f'\t{{"{who}rsync {options} -ii s/ d/", {policy(options, user)},\n\t {{')
            items = [f'"{item}",' for item in run(options, user, table)]
            for i in range(0, len(items), 10):
                print("\t\t" + " ".join(items[i : i + 10]))
            print("\t }},")
    print("};")


main()
