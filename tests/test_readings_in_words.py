"""Stories are told where readings that have votes differ, and the class shares of each come first."""

from undrift.method import is_open, measure_disagreement
from undrift.results import describe_readings, name_winner


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
    assert list(describe_readings(ALIKE, "kitchen.csv")) == []
    assert not is_open([])
    assert round(measure_disagreement(APART), 6) == 0.2


def test_the_stories_that_are_heard_are_told_with_their_class_shares():
    assert list(describe_readings(APART, "kitchen.csv")) == [
        "The text of kitchen.csv alone does not tell its class shares: "
        "readings differ on up to 20% of the rows.",
        "- negative 50.0%, positive 50.0%, if: The story of b.",
        "- negative 12.0%, positive 88.0%, if: The story of a.",
    ]
    assert list(describe_readings(APART, "kitchen.csv", "kitchen.csv")) == list(
        describe_readings(APART, "kitchen.csv")
    )
    later = list(describe_readings(APART, "june.csv", "kitchen.csv"))  # of which the stories are not
    assert later[1] == "- negative 50.0%, positive 50.0%, if this holds of kitchen.csv: The story of b."
    assert name_winner(APART) == "Most likely (60% of the votes): The story of b."
    assert name_winner([]) == ""


def test_of_many_classes_a_story_names_those_that_the_stories_differ_on():
    labels = [f"class{k}" for k in range(10)]
    first = dict.fromkeys(labels, 0.1)
    second = first | {"class3": 0.05, "class8": 0.15}
    third = first | {"class9": 0.11, "class0": 0.08, "class7": 0.095, "class5": 0.098}
    told = [
        {"name": str(i), "story": "A story.", "weight": 0.3, "shares": shares, "agreement": 0.8}
        for i, shares in enumerate((first, second, third))
    ]
    head, *lines = describe_readings(told, "kitchen.csv")
    assert head.endswith("on up to 20% of the rows. Of 10 classes these differ most:")
    classes = ["class0", "class3", "class7", "class8", "class9"]
    assert (
        lines[1] == "- class0: 10.0%, class3: 5.0%, class7: 10.0%, class8: 15.0%, class9: 10.0%, if: A story."
    )
    assert [[part.split(":")[0] for part in line[2:].split(", ")[:-1]] for line in lines] == [classes] * 3


def see(weight, **shares):
    return {"name": "r", "story": "A story.", "weight": weight, "shares": shares, "agreement": 0.97}


def test_no_average_hides_a_class_that_readings_see_very_differently():
    """They agree on 97% of the rows; of complaints one sees three times as many as the other."""
    torn = [see(0.5, bug=0.62, wish=0.36, complaint=0.02), see(0.5, bug=0.60, wish=0.34, complaint=0.06)]
    assert is_open(torn)
    head, *lines = describe_readings(torn, "may.csv")
    assert head == (
        "The text of may.csv alone does not tell the share of complaint (2% to 6%): "
        "readings differ on up to 3% of the rows."
    )
    assert lines[0] == "- bug 62.0%, wish 36.0%, complaint 2.0%, if: A story."
    near = [see(0.5, bug=0.62, wish=0.36, complaint=0.02), see(0.5, bug=0.60, wish=0.365, complaint=0.035)]
    assert not is_open(near)
    silent = [torn[0], see(0.09, bug=0.60, wish=0.34, complaint=0.06)]
    assert not is_open(silent), "nobody hears the second"
    pair = [see(0.5, bug=0.98, complaint=0.02), see(0.5, bug=0.94, complaint=0.06)]
    assert not is_open(pair), "of two classes either tells the other, and rows are few"
