#!/usr/bin/env python3
"""Fails when modules of a crate use each other in a circle.

Usage: circles.py [--deep] [CRATE_FOLDER...], by default every crate of the workspace.

Looked at are the modules at the top of each crate; with --deep, and always in ALL_LEVELS, also the
children of every module. `a` uses `b` when a file below `a` has a path (`crate::b::..` or
`super::b::..`, in `use` or elsewhere) that leads below `b`, also by way of a re-export. Test code
counts for nothing; neither does a module's use of its own children.
"""

import pathlib
import re
import sys

ALL_LEVELS = {"calibrate", "cli-support"}

# Where a path begins: at the crate, at a parent, or, in a re-export, at a child of this module.
START = re.compile(r"\b(crate|self|super(?:::super)*)::|\bpub(?:\([a-z]+\))? use ([a-z_0-9]+)::")
TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z]+\))? )?mod (\w+)\s*([;{])")


def tree(text, at):
    """The paths of a use tree that begins at an index: `a::{b, c::d}` is a::b and a::c::d."""
    if text[at : at + 1] == "{":
        paths, depth, start = [], 0, at + 1
        for index in range(at, len(text)):
            depth += {"{": 1, "}": -1}.get(text[index], 0)
            if depth == 0 or (depth == 1 and text[index] == ","):
                paths += tree(text, start + len(text[start:index]) - len(text[start:index].lstrip()))
                start = index + 1
            if depth == 0:
                return paths
    name = re.match(r"\w+", text[at:])
    if not name:
        return [[]]
    end = at + name.end()
    rest = tree(text, end + 2) if text[end : end + 2] == "::" else [[]]
    return [[name.group(), *path] for path in rest]


def read(source):
    """The modules of a crate: path to file and text, without comments and test code."""
    modules, tests = {}, set()
    for file in sorted(source.rglob("*.rs")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if parts in (["lib"], ["main"]) or parts[0] == "bin":
            parts = [] if parts == ["lib"] else None
        elif parts[-1] == "mod":
            parts.pop()
        if parts is None:
            continue
        text = re.sub(r"//.*", "", file.read_text())
        for found in reversed(list(TEST_MODULE.finditer(text))):
            if found.group(2) == "{":
                end = text.find("\n}", found.end())
                text = text[: found.start()] + text[end + 2 :]
            else:
                tests.add((*parts, found.group(1)))
        modules[tuple(parts)] = (file, text)
    prefixes = lambda path: {path[:length] for length in range(1, len(path) + 1)}
    return {path: module for path, module in modules.items() if not prefixes(path) & tests}


def references(path, text):
    """The absolute paths that a module names; whether each is re-exported."""
    for start in START.finditer(text):
        base = [] if start.group(1) == "crate" else list(path)
        if start.group(1) and start.group(1).startswith("super"):
            base = base[: len(base) - start.group(1).count("super")]
        if start.group(2):
            base.append(start.group(2))
        is_public = bool(start.group(2)) or bool(re.search(r"pub(\([a-z]+\))? use $", text[: start.start()]))
        for names in tree(text, start.end()):
            yield base + names, is_public


def circles(source, is_deep):
    """What ties siblings into circles, as lines of text."""
    modules = read(source)
    exported = {
        (path, names[-1]): names
        for path, (_, text) in modules.items()
        for names, is_public in references(path, text)
        if is_public and names
    }

    def module_of(names, patience=5):
        found = ()
        for index, name in enumerate(names):
            if (*found, name) in modules:
                found = (*found, name)
            elif (found, name) in exported and patience:
                return module_of(exported[found, name] + names[index + 1 :], patience - 1)
            else:
                break
        return found

    uses = {}
    for path, (file, text) in modules.items():
        for names, _ in references(path, text):
            target = module_of(names)
            common = 0
            while common < min(len(path), len(target)) and path[common] == target[common]:
                common += 1
            if common < min(len(path), len(target)) and (is_deep or common == 0):
                edge = (path[: common + 1], target[: common + 1])
                uses.setdefault(edge, set()).add(f"{file} uses {'::'.join(target)}")

    def reached(start):
        seen, todo = set(), [start]
        while todo:
            here = todo.pop()
            more = {b for a, b in uses if a == here} - seen
            seen |= more
            todo += more
        return seen

    for edge in sorted(uses):
        if edge[0] in reached(edge[1]):
            for tie in sorted(uses[edge]):
                yield f"  {'::'.join(edge[0])} -> {'::'.join(edge[1])}: {tie}"


def main():
    names = [name for name in sys.argv[1:] if name != "--deep"]
    crates = [pathlib.Path(name) for name in names]
    if not crates:
        manifests = [pathlib.Path("Cargo.toml"), *sorted(pathlib.Path().glob("*/Cargo.toml"))]
        crates = [manifest.parent for manifest in manifests]
    is_clean = True
    for crate in crates:
        is_deep = "--deep" in sys.argv or crate.name in ALL_LEVELS
        ties = list(circles(crate / "src", is_deep))
        if ties:
            is_clean = False
            print(f"{crate}/src: modules use each other in a circle", *ties, sep="\n")
    sys.exit(0 if is_clean else 1)


main()
