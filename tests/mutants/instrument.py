#!/usr/bin/python3
"""Writes all mutants of C++ sources into them, each chosen at run time by its number (mutant.hpp).

usage: instrument.py [--only LIST] DATABASE TREE TABLE KINDS FILE...

DATABASE is the folder of a compile_commands.json of TREE, whose FILEs are changed in place; TABLE gets a line a mutant:
number, file, line, kind, its lines with what it changes in « », with tabs between. KINDS are those that are written,
with commas between:

  negate   a condition of if, while, for or ?:, or an operand of && or ||
  ignore   an operand of && or || left out, or an if that only returns a value
  compare  < and <=, > and >=, == and != exchanged
  drop     an expression that is a statement, break, continue, or a return without a value, left out
  zero     a constant that is a time, where it is used
  always   a condition of ?:, or of an if that does more than to return a value, holds
  never    it does not
  first    of + - * / % of numbers and times, std::min and std::max, only the first operand
  second   of + * of these, std::min and std::max, only the second

With --only those of that list alone (FILE, kind, text, reason), also where names have changed since.
Those of the list beside this file (planted: FILE, "instead: NEW", text with the expression in « », what is lost, with tabs
between) are written, too.

What only tells people is left alone: calls of the names in TELLS, and what is given to them. So is what the compiler
evaluates, and a break after which its switch has nothing more.
"""

import bisect
import json
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
from listed import read_list, shape
from clang.cindex import CursorKind, Index, TokenKind, TranslationUnit

TELLS = {"say", "note", "warn", "debug", "info", "error", "trace", "critical", "log"}
LONGEST = 80  # of a text in the table, in letters
PLANTED = os.path.join(os.path.dirname(os.path.realpath(__file__)), "planted")
KINDS = ("drop", "instead", "negate", "ignore", "always", "never", "compare", "zero", "first", "second")
RECKONS = {"+", "-", "*", "/", "%"}
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
NUMBERS = {"int", "unsigned int", "long", "unsigned long", "double"}
BODIES = {CursorKind.IF_STMT, CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.CXX_FOR_RANGE_STMT, CursorKind.DO_STMT}
CONSTANT = {CursorKind.STATIC_ASSERT, CursorKind.ENUM_CONSTANT_DECL, CursorKind.TEMPLATE_TYPE_PARAMETER,
            CursorKind.TEMPLATE_NON_TYPE_PARAMETER}


def bare(kind):
    """A type's name without const and &."""
    return kind.get_canonical().get_pointee().spelling.removeprefix("const ") if kind.kind.name.endswith("REFERENCE") else \
        kind.get_canonical().spelling.removeprefix("const ")


class File:
    def __init__(self, index, path, arguments, kinds):
        self.path = path
        self.kinds = kinds
        with open(path, "rb") as file:
            self.text = file.read()
        self.unit = index.parse(path, args=arguments, options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [str(d) for d in self.unit.diagnostics if d.severity >= 3]
        if errors:
            sys.exit(f"{path}: {errors[0]}")
        self.tokens = [t for t in self.unit.get_tokens(extent=self.unit.cursor.extent) if t.kind != TokenKind.COMMENT]
        self.starts = [t.extent.start.offset for t in self.tokens]
        self.macros = sorted((c.extent.start.offset, c.extent.end.offset) for c in self.unit.cursor.get_children()
                             if c.kind == CursorKind.MACRO_INSTANTIATION and self.mine(c))
        self.last = set()  # where a break is that changes nothing
        self.found = {}  # (start, end, kind): where the operator of a comparison is

    def mine(self, cursor):
        file = cursor.location.file
        return file is not None and file.name == self.path

    def extent(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def in_macro(self, start, end):
        """Whether a part of it comes from a macro, where texts and extents differ."""
        return any(begin < end and start < finish for begin, finish in self.macros)

    def token_at(self, offset):
        """The first one that begins at or after it."""
        return bisect.bisect_left(self.starts, offset)

    def shown(self, start, end):
        """Its lines, with what is changed in « »; where nothing else is in them, after the line before."""
        begin, finish = self.text.rfind(b"\n", 0, start) + 1, (self.text.find(b"\n", end) + 1 or len(self.text) + 1) - 1
        if not self.text[begin:start].strip() and not self.text[end:finish].strip():
            begin = self.text.rfind(b"\n", 0, max(begin - 1, 0)) + 1
        before, what, after = (" ".join(part.decode().split()) for part in
                               (self.text[begin:start], self.text[start:end], self.text[end:finish]))
        return f"{before} «{what if len(what) <= LONGEST else what[:LONGEST] + '...'}» {after}".strip()

    # --- what there is -----------------------------------------------------------------------------------------------

    def add(self, kind, start, end, operator=None):
        if kind in self.kinds and end > start and not self.in_macro(start, end):
            self.found[start, end, kind] = operator

    def drop(self, cursor):
        start, end = self.extent(cursor)
        semicolon = self.token_at(end)
        if semicolon < len(self.tokens) and self.tokens[semicolon].spelling == ";":
            self.add("drop", start, self.tokens[semicolon].extent.end.offset)

    def compare(self, cursor):
        children = list(cursor.get_children())
        operands = [c for c in children if c.kind.is_expression()]
        if len(operands) < 2:
            return
        left, right = self.extent(operands[0]), self.extent(operands[-1])
        if not (left[0] == cursor.extent.start.offset and left[1] <= right[0] and right[1] == cursor.extent.end.offset):
            return
        between = [t for t in self.tokens[self.token_at(left[1]):self.token_at(right[0])] if t.kind == TokenKind.PUNCTUATION]
        if len(between) != 1 or between[0].spelling not in OTHER:
            return
        extent = between[0].extent
        self.add("compare", left[0], right[1], (extent.start.offset, extent.end.offset, between[0].spelling))

    def reckon(self, cursor):
        """What is left of it without an operand, which must be of the same type."""
        children = list(cursor.get_children())
        limits = cursor.kind == CursorKind.CALL_EXPR and cursor.spelling in ("min", "max")
        operands = list(cursor.get_arguments()) if limits else [c for c in children if c.kind.is_expression()]
        operands = operands if limits else [operands[0], operands[-1]] if len(operands) >= 2 else []
        if len(operands) != 2 or not self.reckons(cursor.type):
            return
        first, second = map(self.extent, operands)
        operator = None
        if not limits:
            if not (first[0] == cursor.extent.start.offset and first[1] <= second[0] and second[1] == cursor.extent.end.offset):
                return
            gap = [t.spelling for t in self.tokens[self.token_at(first[1]):self.token_at(second[0])]
                   if t.kind == TokenKind.PUNCTUATION and t.spelling not in "()"]
            if len(gap) != 1 or gap[0] not in RECKONS:
                return
            operator = gap[0]
        for kind, operand, extent in (("first", operands[0], first), ("second", operands[1], second)):
            if kind == "second" and operator not in (None, "+", "*"):
                continue
            if bare(operand.type) == bare(cursor.type):
                self.add(kind, *self.extent(cursor), extent)

    @staticmethod
    def reckons(kind):
        name = bare(kind)
        return name in NUMBERS or name.startswith(("std::chrono::duration<", "std::chrono::time_point<"))

    def condition(self, cursor):
        """Where the condition is that its parentheses hold; nothing where that declares something."""
        first = self.token_at(cursor.extent.start.offset)
        while self.tokens[first].spelling != "(":
            if self.tokens[first].spelling == "constexpr":
                return None
            first += 1
        depth, last = 0, first
        while True:
            depth += {"(": 1, ")": -1}.get(self.tokens[last].spelling, 0)
            if depth == 0:
                break
            last += 1
        begin, end = self.tokens[first].extent.end.offset, self.tokens[last].extent.start.offset
        inside = [c for c in cursor.get_children() if begin <= c.extent.start.offset and c.extent.end.offset <= end]
        if cursor.kind == CursorKind.FOR_STMT:
            semicolons = [t.extent.start.offset for t in self.tokens[first:last] if t.spelling == ";"]
            inside = [c for c in inside if semicolons and semicolons[0] < c.extent.start.offset < semicolons[-1]]
        inside = [c for c in inside if c.kind.is_expression()]
        return inside[-1] if inside and (cursor.kind == CursorKind.FOR_STMT or self.ends(inside[-1], end)) else None

    def ends(self, cursor, end):
        return not self.text[cursor.extent.end.offset:end].strip()

    def constant_time(self, cursor):
        """Whether it names one. What is computed by the compiler cannot be changed at run time: nothing constant is looked into."""
        named = cursor.referenced if cursor.kind == CursorKind.DECL_REF_EXPR else None
        return (named is not None and named.kind == CursorKind.VAR_DECL and
                named.type.get_canonical().spelling.startswith("const std::chrono::duration<"))

    def connective(self, cursor):
        """The operands of && and ||, each with that."""
        operands = [c for c in cursor.get_children() if c.kind.is_expression()]
        if cursor.kind != CursorKind.BINARY_OPERATOR or len(operands) != 2:
            return []
        gap = self.tokens[self.token_at(operands[0].extent.end.offset):self.token_at(operands[1].extent.start.offset)]
        between = [t.spelling for t in gap if t.spelling not in "()"]
        return [(operand, between[0]) for operand in operands] if between in (["&&"], ["||"]) else []

    def only_returns(self, children, condition):
        """Whether what an if of this condition does is to return a value."""
        then = next((c for c in children if c.extent.start.offset >= condition.extent.end.offset), None)
        if then is not None and then.kind == CursorKind.COMPOUND_STMT:
            inside = list(then.get_children())
            then = inside[0] if len(inside) == 1 else None
        return then is not None and then.kind == CursorKind.RETURN_STMT and bool(list(then.get_children()))

    def tells(self, cursor):
        first = self.token_at(cursor.extent.start.offset)
        words = []
        for token in self.tokens[first:first + 7]:
            if token.spelling == "(":
                break
            words.append(token.spelling)
        return bool(words) and words[-1] in TELLS

    def walk(self, cursor):
        if cursor.kind in CONSTANT:
            return
        if cursor.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR, CursorKind.VAR_DECL,
                           CursorKind.FUNCTION_TEMPLATE, CursorKind.CONVERSION_FUNCTION):
            first = self.token_at(cursor.extent.start.offset)
            # Up to its body or value.
            for token in self.tokens[first:]:
                if token.spelling in ("{", "=", ";", "("):
                    break
                if token.spelling in ("constexpr", "consteval", "constinit"):
                    return
        if cursor.kind == CursorKind.CASE_STMT:  # not its label
            for child in list(cursor.get_children())[1:]:
                self.statement(child)
                self.walk(child)
            return
        children = list(cursor.get_children())
        if cursor.kind == CursorKind.CALL_EXPR and self.tells(cursor):
            return
        if cursor.kind == CursorKind.SWITCH_STMT:
            self.find_last(children[-1])
        if cursor.kind in (CursorKind.IF_STMT, CursorKind.WHILE_STMT, CursorKind.FOR_STMT, CursorKind.DO_STMT):
            found = self.condition(cursor) if cursor.kind != CursorKind.DO_STMT else None
            if found is not None:
                self.add("negate", *self.extent(found))
                if cursor.kind == CursorKind.IF_STMT and self.only_returns(children, found):
                    self.add("ignore", *self.extent(found), "if")
                elif cursor.kind == CursorKind.IF_STMT:
                    self.add("always", *self.extent(found))
                    then = [c for c in children if c.extent.start.offset >= found.extent.end.offset]
                    if len(then) != 1 or then[0].kind == CursorKind.COMPOUND_STMT:  # else as without what it does
                        self.add("never", *self.extent(found))
        elif cursor.kind == CursorKind.CONDITIONAL_OPERATOR and children:
            for kind in ("negate", "always", "never"):
                self.add(kind, *self.extent(children[0]))
        for operand, connective in self.connective(cursor):
            self.add("negate", *self.extent(operand))
            if connective not in [word for _, word in self.connective(operand)]:  # else each of its own
                self.add("ignore", *self.extent(operand), connective)
        if cursor.kind.is_expression():
            self.compare(cursor)
            self.reckon(cursor)
        if self.constant_time(cursor):
            self.add("zero", *self.extent(cursor))
        if cursor.kind in (CursorKind.COMPOUND_STMT, CursorKind.DEFAULT_STMT):
            for child in children:
                self.statement(child)
        elif cursor.kind in BODIES:
            for child in children[1:]:
                before = self.tokens[self.token_at(child.extent.start.offset) - 1].spelling
                if before in (")", "else", "do"):
                    self.statement(child)
        for child in children:
            self.walk(child)

    def find_last(self, body):
        for child in reversed(list(body.get_children())):
            while child.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
                child = list(child.get_children())[-1]
            if child.kind != CursorKind.BREAK_STMT:
                return
            self.last.add(child.extent.start.offset)

    def statement(self, cursor):
        plain = cursor.kind in (CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT)
        if plain and cursor.extent.start.offset in self.last:
            return
        bare = cursor.kind == CursorKind.RETURN_STMT and not list(cursor.get_children())
        if plain or bare or (cursor.kind.is_expression() and not self.tells(cursor)):
            self.drop(cursor)

    # --- the new text ------------------------------------------------------------------------------------------------

    def changed(self, number):
        """The text with all of them, and of each (number, line, kind, text). The first has this number."""
        # Which of the two ways to say that it is not equal.
        for start, end, kind in [one for one in self.found if one[2] == "negate"]:
            if (self.found.get((start, end, "compare")) or " ")[-1] in ("==", "!="):
                del self.found[start, end, "compare"]
        told, inside = [], {}
        # Of those of one extent, whose text holds which.
        ranges = sorted(self.found, key=lambda one: (one[0], -one[1], KINDS.index(one[2].split(":")[0])))
        above = []
        for one in ranges:
            while above and above[-1][1] <= one[0]:
                above.pop()
            inside.setdefault(above[-1] if above else None, []).append(one)
            above.append(one)
            line = self.text.count(b"\n", 0, one[0]) + 1
            told.append((number, line, one[2], self.shown(one[0], one[1])))
            inside[one, "number"] = number
            number += 1

        def between(parent, start, end):
            out, at = [], start
            for one in inside.get(parent, []):
                if one[0] < start or one[1] > end:
                    continue
                out += [self.text[at:one[0]].decode(), render(one)]
                at = one[1]
            return "".join(out) + self.text[at:end].decode()

        def render(one):
            start, end, kind = one
            on = f"::glidepod::mutants::on({inside[one, 'number']})"
            if kind == "negate":
                return f"({on} != static_cast<bool>({between(one, start, end)}))"
            if kind == "ignore":
                inner = f"static_cast<bool>({between(one, start, end)})"
                return f"({on} || {inner})" if self.found[one] == "&&" else f"(!{on} && {inner})"
            if kind in ("always", "never"):
                inner = f"static_cast<bool>({between(one, start, end)})"
                return f"({on} || {inner})" if kind == "always" else f"(!{on} && {inner})"
            if kind.startswith("instead:"):
                return f"({on} ? {kind.removeprefix('instead:')} : {between(one, start, end)})"
            if kind == "zero":
                return f"({on} ? decltype(+{between(one, start, end)}){{}} : {between(one, start, end)})"
            if kind == "drop":
                return f"{{ if (!{on}) {between(one, start, end)} }}"
            if kind in ("first", "second"):
                return f"({on} ? {between(one, *self.found[one])} : {between(one, start, end)})"
            begin, after, operator = self.found[one]
            left, right = between(one, start, begin), between(one, after, end)
            return f"({on} ? {left} {OTHER[operator]} {right} : {left} {operator} {right})"

        return '#include "tests/mutants/mutant.hpp"\n' + between(None, 0, len(self.text)), told

    def keep(self, name, shapes):
        """Of those that it has, only these."""
        for one in [one for one in self.found if shape(name, one[2], self.shown(one[0], one[1])) not in shapes]:
            del self.found[one]

    def plant(self, kind, text):
        """One of the list: what is in « » and blanks may be on several lines."""
        before, what, after = (r"\s+".join(map(re.escape, part.split())) for part in re.split("[«»]", text))
        found = list(re.finditer(rf"{before}\s*({what})\s*{after}", self.text.decode()))
        if len(found) != 1:
            sys.exit(f"{self.path}: planted: {len(found)} times: {text}")
        self.found[(*(len(self.text.decode()[:at].encode()) for at in found[0].span(1)), kind)] = None

    def look(self):
        for cursor in self.unit.cursor.get_children():
            if self.mine(cursor):
                self.walk(cursor)


def arguments_of(database, path):
    for entry in database:
        if os.path.realpath(os.path.join(entry["directory"], entry["file"])) == path:
            words = shlex.split(entry["command"])[1:]
            kept, skip = [], False
            for word in words:
                if skip:
                    skip = False
                elif word in ("-o", "-c"):
                    skip = word == "-o"
                elif word != entry["file"] and not word.startswith(("-W", "-g")):
                    kept.append(word)
            return kept
    sys.exit(f"{path}: not in the database")


def main():
    arguments, only = sys.argv[1:], None
    if arguments[:1] == ["--only"]:
        only = {shape(*row[:3]) for row in read_list(arguments[1])}
        arguments = arguments[2:]
    if len(arguments) < 5:
        sys.exit(__doc__.strip())
    database, tree, table, kinds, *files = arguments
    with open(os.path.join(database, "compile_commands.json")) as file:
        database = json.load(file)
    index, number = Index.create(), 0
    listed = {}
    for row in read_list(PLANTED):
        listed.setdefault(row[0], []).append((row[1], row[2]))
    with open(table, "w") as out:
        for name in files:
            path = os.path.realpath(os.path.join(tree, name))
            source = File(index, path, arguments_of(database, path), kinds.split(","))
            source.look()
            for kind, planted in listed.get(name, []):
                source.plant(kind, planted)
            if only is not None:
                source.keep(name, only)
            text, told = source.changed(number)
            with open(path, "w") as file:
                file.write(text)
            for mutant, line, kind, what in told:
                print(mutant, name, line, kind, what, sep="\t", file=out)
            number += len(told)
            print(f"{name}: {len(told)} mutants", flush=True)


if __name__ == "__main__":
    main()
