"""docs/rules.md is complete: every rule stands there with its sentence and its value in each profile."""

from maniple.framework.rules import Rules
from maniple.profiles.catalogue import PROFILES
from tests.pages import ROOT, quoted, rows

COLUMNS = {
    "maniple": PROFILES["maniple"].rules,
    "volcano": PROFILES["volcano"].rules,
    "volcano, strict": PROFILES["volcano"].strict_rules,
    "kai": PROFILES["kai"].rules,
    "kai, strict": PROFILES["kai"].strict_rules,
}


def test_the_page_has_every_rule_with_its_sentence_and_values() -> None:
    values = {title: {name: on for name, _, on in rules.items()} for title, rules in COLUMNS.items()}
    wanted = [
        [name, sentence, *("yes" if values[title][name] else "no" for title in COLUMNS)]
        for name, sentence, _ in Rules().items()
    ]
    table = rows((ROOT / "docs" / "rules.md").read_text(encoding="utf-8"))
    titles = ["rule", "what it does", *COLUMNS]
    assert titles in table
    assert [[*quoted(row[0]), *row[1:]] for row in table if row != titles] == wanted


def test_sentences_are_sentences() -> None:
    for name, sentence, _ in Rules().items():
        assert sentence[-1] == ".", name
        assert ". " not in sentence, name
