"""What a page shows of commands, compared with what they print."""

import re

BORDERS = re.compile("[\u2500-\u257f]")
TIMES = re.compile(r"Took \d+ s\.")


def list_commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, `$ COMMAND`, each with the output that is shown below it."""
    parts = re.split(r"^\$ (.*)$", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def split_output(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, 0 for every number, and the numbers, without borders of tables."""
    text = TIMES.sub("", BORDERS.sub(" ", text))
    number = r"\d[\d,]*(?:\.\d+)?"
    return re.sub(number, "0", text).split(), [digits.replace(",", "") for digits in re.findall(number, text)]


def check_shown(shown: str, printed: str) -> None:
    """Fail unless the words are the same, and numbers within what another processor may round otherwise."""
    (words, numbers), (printed_words, printed_numbers) = split_output(shown), split_output(printed)
    assert words == printed_words
    for number, printed_number in zip(numbers, printed_numbers, strict=True):
        last_digit = 10.0 ** -len(number.partition(".")[2])
        allowed = max(0.05 * float(number), 2 * last_digit)
        assert abs(float(number) - float(printed_number)) <= allowed, (number, printed_number)
