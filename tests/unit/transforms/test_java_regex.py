"""Java's patterns in Python's terms: what they match, and what is refused."""

from __future__ import annotations

import re

import pytest

from icestream.transforms.java_regex import JavaRegexError, java_pattern
from icestream.transforms.java_replacement import BadReplacement, replaced_first


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        ("[a-z&&[^aeiou]]+", ["bcd"], ["bad"]),
        ("[a-c[x-z]]+", ["axz"], ["m"]),
        ("[^a-c&&b-d]+", ["ad"], ["b", "c"]),
        ("x(?i)b|c", ["xB", "C"], ["Xb"]),
        ("(x(?i)b|c)d", ["xBd", "Cd"], ["CD"]),
        ("(?i:a)b", ["Ab"], ["aB"]),
        ("(?s).", ["\n"], [""]),
        (".", ["x"], ["\n", "\r", "\u2028"]),
        ("\\Q[a\\E]*", ["[a", "[a]]"], ["a"]),
        ("(?<n>a)\\k<n>", ["aa"], ["ab"]),
        ("(a)\\11", ["aa1"], ["a11"]),
        ("\\p{Lower}\\P{Lower}", ["aA"], ["aa", "üA"]),
        ("\\p{Lu}\\pN\\p{IsAlphabetic}", ["Ü٣é"], ["ü٣é"]),
        ("\\d\\w", ["1a"], ["٣a", "1ü"]),
        ("a$", ["a"], ["a\nb"]),
        ("\\x41\\u0042\\0103\\x{44}\\cA", ["ABCD\x01"], ["ABCD"]),
        ("[]a]+", ["]a"], ["b"]),
        ("[a\\-c]+", ["a-c"], ["b"]),
        ("[a\\Q]-\\E]+", ["a]-"], ["b"]),
        ("a++b", ["aab"], []),
        ("\\R\\h", ["\r\n\t"], ["x "]),
        ("[^\\p{L}]", ["1"], ["a"]),
    ],
)
def test_patterns_match_what_java_matches(pattern: str, matches: list[str], others: list[str]) -> None:
    compiled = java_pattern(pattern)
    assert [text for text in (*matches, *others) if compiled.fullmatch(text)] == matches


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "has a group that does not end"),
        ("a)", "has a ) at position 1 that ends no group"),
        ("[a", "has a [ without its ]"),
        ("a{", "has a { at position 1 that is no repetition"),
        ("a{,3}", "has a { at position 1 that is no repetition"),
        ("[b-a]", "has a range before position 4 that is none"),
        ("\\y", "has \\y, which cannot be translated"),
        ("a\\", "has \\, which cannot be translated"),
        ("\\p{IsGreek}", "has \\p{IsGreek}, which cannot be translated"),
        ("\\X", "has \\X, which cannot be translated"),
        ("\\b{g}", "has \\b{…}, which cannot be translated"),
        ("(?x)a", "has the flag 'x', and only i and s can be translated"),
        ("(?<1>a)", "has an unknown kind of group at position 0"),
        ("\\k<a", "has a \\k without the name of a group"),
        ("*a", "cannot be used: nothing to repeat"),
        ("(?<=a+)b", "cannot be used: look-behind requires fixed-width pattern"),
        ("\\1", "cannot be used: invalid group reference"),
    ],
)
def test_what_cannot_be_translated_is_named(pattern: str, reason: str) -> None:
    with pytest.raises(JavaRegexError, match=re.escape(reason)):
        java_pattern(pattern)


@pytest.mark.parametrize(
    ("replacement", "result"),
    [("$1$2", "ab"), ("${first}", "a"), ("\\$1", "$1"), ("$0$10", "abca0"), ("$3", ""), ("", "")],
)
def test_replacements(replacement: str, result: str) -> None:
    assert replaced_first(java_pattern("(?<first>a)(b)(x)?c"), "abc", replacement) == result


@pytest.mark.parametrize(
    ("replacement", "reason"),
    [
        ("$", "Illegal group reference: group index is missing"),
        ("$x", "Illegal group reference"),
        ("$2", "No group 2"),
        ("${x}", "No group with name {x}"),
        ("${x", "named capturing group is missing trailing '}'"),
        ("${}", "named capturing group has 0 length name"),
        ("${1}", "capturing group name {1} starts with digit character"),
        ("\\", "character to be escaped is missing"),
    ],
)
def test_replacements_that_java_refuses(replacement: str, reason: str) -> None:
    with pytest.raises(BadReplacement, match=re.escape(reason)):
        replaced_first(java_pattern("(a)"), "a", replacement)
