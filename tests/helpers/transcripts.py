"""What a page shows of commands, compared with what they print."""

import re

BORDERS = re.compile("[\u2500-\u257f]")
TIMES = re.compile(r"Took \d+ s\.")


def list_commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, `$ COMMAND`, each with the output that is shown below it."""
    parts = re.split(r"^\$ (.*)$", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def split_output(text: str) -> tuple[list[str], list[float]]:
    """Return the words of a text, 0 for every number, and the numbers, without borders of tables."""
    text = TIMES.sub("", BORDERS.sub(" ", text))
    number = r"\d[\d,]*(?:\.\d+)?"
    words = re.sub(number, "0", text).split()
    return words, [float(n.replace(",", "")) for n in re.findall(number, text)]


def check_shown(shown: str, printed: str) -> None:
    """Fail unless the words are the same, and numbers within what another processor may round otherwise.

    Where `shown` ends in a line of three dots, it is the beginning of what is printed.
    """
    shown, is_cut = re.subn(r"\n\.\.\.\n$", "\n", shown)
    (words, numbers), (printed_words, printed_numbers) = split_output(shown), split_output(printed)
    if is_cut:
        printed_words, printed_numbers = printed_words[: len(words)], printed_numbers[: len(numbers)]
    assert words == printed_words
    assert len(numbers) == len(printed_numbers)
    for number, printed_number in zip(numbers, printed_numbers, strict=True):
        assert abs(number - printed_number) <= max(0.05 * abs(number), 0.2), (number, printed_number)
