"""Java's patterns in RE2's terms: what they match, and what is refused."""

from __future__ import annotations

import pickle
import re

import pytest

from icestream.api.java_regex import JavaRegexError, java_pattern


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
        ("(?i)[^a]b", ["cB", "xb"], ["Ab", "ab"]),
        ("(?i)\\p{Lower}[m-o]\\Qk\\E", ["aNK"], ["aN\u212a"]),
        ("(?!x|y)[a-z]+", ["ab", "z"], ["x", "ya"]),
        ("^(?!dlq-)(?=.*-v1).*", ["a-v1"], ["dlq-v1", "a-v2"]),
        ("(?!_)(?:a|_b)", ["a"], ["_b"]),
        ("\\p{Lower}\\P{Lower}", ["aA"], ["aa", "üA"]),
        ("\\p{Lu}\\pN\\p{IsAlphabetic}", ["U3e"], ["u3e", "Ü٣é"]),
        ("\\d\\w", ["1a"], ["٣a", "1ü"]),
        ("a$", ["a"], ["a\nb"]),
        ("\\x41\\u0042\\x{44}", ["ABD"], ["ABC"]),
        ("[]a]+", ["]a"], ["b"]),
        ("[a\\-c]+", ["a-c"], ["b"]),
        ("[a\\Q]-\\E]+", ["a]-"], ["b"]),
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
        ("\\t", "has \\t, which cannot be translated"),
        ("\\b{g}", "has \\b{…}, which cannot be translated"),
        ("(?x)a", "has the flag 'x', and only i and s can be translated"),
        ("(?<1>a)", "has an unknown kind of group at position 0"),
        ("*a", "cannot be used: no argument for repetition operator: *"),
        ("(?<=a+)b", "has a (?<=…) at position 0, and patterns run in an engine that does not backtrack"),
        (".*(?<!2)", "has a (?<!…) at position 2"),
        ("a(?!b).*", "has a (?!…) at position 1, and patterns run in an engine that does not backtrack"),
        ("(?!a)b|c", "has a | behind a look-ahead"),
        ("(?!(a))b", "has a group in a look-ahead"),
        ("(?>a+)", "has a (?>…) at position 0"),
        ("(a)\\1", "refers to a group again at position 3"),
        ("(?<n>a)\\k<n>", "refers to a group again at position 7"),
        ("a++b", "bad repetition operator: ++ (possessive"),
        ("a{99999999999}", "repeats something more than 1000 times"),
        ("a{2,1001}", "repeats something more than 1000 times"),
        ("(?:a{1000}){1000}", "cannot be used: invalid repetition size"),
        ("\\x{110000}", "names the character 110000, which does not exist"),
        ("[" * 5000, "has more than 100 classes of characters in each other"),
        ("a" * 10_001, "the pattern has 10001 characters; at most 10000 can be used"),
    ],
)
def test_what_cannot_be_translated_is_named(pattern: str, reason: str) -> None:
    with pytest.raises(JavaRegexError, match=re.escape(reason)):
        java_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a*)*b",
        "(a|a)*b",
        "(a|aa)+b",
        "(.*a){25}b",
        "(?!(?:a+)+b)[^a]",
        "(" * 900 + "a" + ")" * 900 + "b",
    ],
)
def test_no_pattern_takes_longer_than_its_text(pattern: str) -> None:
    """With backtracking each would run until the end of the world."""
    assert java_pattern(pattern).fullmatch("a" * 20_000) is None


def test_a_pattern_crosses_processes() -> None:
    again = pickle.loads(pickle.dumps(java_pattern("(?!b)(a+)")))
    assert again.fullmatch("aa")[1] == "aa"
    assert again == java_pattern("(?!b)(a+)")
