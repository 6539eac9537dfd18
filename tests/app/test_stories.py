"""Stories are told where readings that have votes differ, and the class shares of each come first."""

from undrift.app.stories import is_open, measure_disagreement, name_winner, tell_stories


def read(name, weight, agreement, negative=0.5):
    return {
        "name": name,
        "story": f"The story of {name}.",
        "weight": weight,
        "shares": {"negative": negative, "positive": 1 - negative},
        "agreement": agreement,
    }


ALIKE = [read("a", 0.6, 0.95), read("b", 0.35, 0.91), read("c", 0.05, 0.2)]
APART = [read("a", 0.35, 0.8, 0.12), read("b", 0.6, 0.95), read("c", 0.05, 0.2)]


def test_readings_without_votes_do_not_open_a_question():
    assert not is_open(ALIKE)
    assert list(tell_stories(ALIKE, "kitchen.csv")) == []
    assert not is_open([])
    assert round(measure_disagreement(APART), 6) == 0.2


def test_the_stories_that_are_heard_are_told_with_their_class_shares():
    assert list(tell_stories(APART, "kitchen.csv")) == [
        "The text of kitchen.csv alone does not tell its class shares: "
        "readings differ on up to 20% of the rows.",
        "- negative 50.0%, positive 50.0%, if: The story of b.",
        "- negative 12.0%, positive 88.0%, if: The story of a.",
    ]
    assert name_winner(APART) == "Most likely (60% of the votes): The story of b."
    assert name_winner([]) == ""
